# Makefile of diffuse: differential privacy inside SQLite.
#
#   make deps demo    install what is missing, build, run the main job on real data
#   make deps test    install what is missing, build, run every test
#
# `make` without a target builds build/diffuse.so. All results go to build/.

CC      ?= cc
AR      ?= ar
PYTHON  ?= /usr/bin/python3
SQLITE3 ?= sqlite3
BUILD   ?= build

CFLAGS   ?= -O2 -g
WARNINGS  = -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Werror
# -ffp-contract=off: the ledger rounds sums up with error-free transformations, which an FMA would
# break. -fno-math-errno: the compiler can turn llrint() into one instruction.
# -fno-tree-slp-vectorize: gcc would otherwise join the halves of an identity in memory, and the
# loop over rows would take twice as long.
CODEGEN   = -std=c11 -fPIC -fvisibility=hidden -ffp-contract=off -fno-math-errno -fno-tree-slp-vectorize
CPPFLAGS += -Iext -I$(BUILD) -D_DEFAULT_SOURCE -D_POSIX_C_SOURCE=200809L -D_DARWIN_C_SOURCE
STATIC    = -l:libgsl.a -l:libgslcblas.a -l:libsodium.a
LINK      = -shared -Wl,--exclude-libs,ALL -Wl,-z,defs -Wl,--gc-sections -Wl,-z,relro,-z,now

SOURCES := $(sort $(wildcard ext/*.c ext/*/*.c))
OBJECTS := $(SOURCES:ext/%.c=$(BUILD)/obj/%.o)
MATH    := $(filter $(BUILD)/obj/math/%,$(OBJECTS))
NOISE   := $(filter $(BUILD)/obj/noise/%,$(OBJECTS))
SUMS    := $(filter $(BUILD)/obj/sums/% $(BUILD)/obj/mechanism/% $(addprefix $(BUILD)/obj/models/,sgd.o hiding.o),$(OBJECTS))
SERVICES := $(filter $(BUILD)/obj/os/% $(BUILD)/obj/base/number.o,$(OBJECTS))

.PHONY: all deps deps-hosts hosts-packages deps-accounting deps-fuzz static demo test test-slow unit check-sanitize \
        check-valgrind mutants check-questions check-versions check-newest check-settings check-defaults coverage injector fixed faults replays fuzz fuzzers bench \
        bench-coverage bench-growth \
        bench-libraries deps-bench bench-bounds bench-questions bench-sampler bench-shards bench-tables deps-shards bench-utility \
        deps-utility figures deps-figures deps-lint deps-report report-pictures errors lint clean format
.DELETE_ON_ERROR:
.SECONDARY:

all: $(BUILD)/diffuse.so

# ---- dependencies: apt-get, and only when something is missing -------------------------------------

PACKAGES = gcc make sqlite3 libsqlite3-dev libgsl-dev libsodium-dev \
           python3 python3-pytest python3-pytest-xdist python3-mpmath python3-numpy python3-scipy
SUDO     = $(shell test "$$(id -u)" = 0 || echo sudo)

deps:
	@missing=$$(for p in $(PACKAGES); do \
	    dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || echo $$p; done); \
	  if [ -n "$$missing" ]; then echo "installing:" $$missing; \
	    $(SUDO) apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive $(SUDO) apt-get install -y -qq --no-install-recommends $$missing; fi

# tests/hosts runs its story from these languages and drivers. Old and new drivers together cover SQLite's releases
# from the oldest supported release to the newest. All languages and drivers are optional. Except for Debian's
# packages, they go to build/. Some parts need pip, some npm, some go, and some mvn and javac. `make -k deps-hosts`
# installs the parts that it can install.
HOSTS  = build/hosts
WHEELS = apsw/3.39.4.0 apsw/3.42.0.1 apsw/3.46.1.0 apsw/newest pysqlite3-binary/0.5.0 pysqlite3-binary/newest
GO     = v1.14.6 v1.14.17 latest

deps-hosts: hosts-packages $(HOSTS)/frameworks/.done $(HOSTS)/engines/.done build/node/.done $(HOSTS)/node/.done $(HOSTS)/java/.done $(HOSTS)/java/Story.class \
            $(WHEELS:%=$(HOSTS)/python/%/.done) $(GO:%=$(HOSTS)/go/%/story)

hosts-packages:
	$(MAKE) deps PACKAGES='php-cli php-sqlite3 libdbd-sqlite3-perl'

build/node/.done:
	npm install --silent --no-fund --no-audit --prefix $(@D) better-sqlite3
	touch $@

# node:sqlite needs node 22.13, and the system's node may be older.
$(HOSTS)/node/.done:
	npm install --silent --no-fund --no-audit --prefix $(@D) node-linux-$$(node -p process.arch)@24
	touch $@

$(HOSTS)/java/.done: tests/hosts/pom.xml
	mvn -q -B -f tests/hosts/pom.xml -Dmaven.repo.local=$(abspath $(HOSTS))/m2 \
	  -DoutputDirectory=$(abspath $(@D)) dependency:copy
	rm -rf $(HOSTS)/m2
	touch $@

$(HOSTS)/java/Story.class: tests/hosts/Story.java
	javac -d $(@D) $<

# These Python wheels contain their own SQLite.
$(HOSTS)/python/%/.done:
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --upgrade \
	  --no-deps --only-binary :all: --target $(@D) $(subst /,==,$(subst /newest,,$*))
	touch $@

# The frameworks of sql/frameworks.md.
$(HOSTS)/frameworks/.done:
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --upgrade \
	  --target $(@D) sqlalchemy django
	touch $@

# The engines of sql/shards.md. Spark also needs Java. Dask uses scipy if there is one, which must fit its numpy.
$(HOSTS)/engines/.done:
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --upgrade \
	  --target $(@D) 'dask[dataframe]' pyspark scipy
	touch $@

# go-sqlite3 compiles the SQLite that it contains. A SQLite before 3.38 has JSON only with the tag
# sqlite_json.
$(HOSTS)/go/%/story: tests/hosts/story.go
	@mkdir -p $(@D) && cp $< $(@D) && cd $(@D) && rm -f go.mod go.sum && \
	  export GOFLAGS='-mod=mod -modcacherw' CGO_CFLAGS=-O1 \
	         GOMODCACHE=$(abspath $(HOSTS))/go/mod GOCACHE=$(abspath $(HOSTS))/go/cache && set -x && \
	  go mod init story && go get github.com/mattn/go-sqlite3@$* && go build -tags sqlite_json -o story .

# Google's dp-accounting, because one test compares numbers with it (needs pip). This target
# installs only packages that Debian's Python does not have. dp-accounting uses Debian's numpy,
# scipy and mpmath.
deps-accounting:
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --upgrade \
	  --no-deps --target build/python dp-accounting absl-py attrs dm-tree wrapt

# A headless browser, in which tests/report looks at the pages of dp_report. Without a browser, these tests are
# skipped.
deps-report:
	$(MAKE) deps PACKAGES='chromium fonts-dejavu-core'

# Makes the pictures of sql/reporting.md again. Look at the pictures before you commit them.
report-pictures: all
	BUILD=$(BUILD) PICTURES=1 $(PYTHON) -m pytest -q -p no:cacheprovider tests/report/test_browser.py

# Writes the tables of sql/troubleshooting.md from the errors of ext/ and the advice that stands beside them.
errors:
	$(PYTHON) sql/troubleshooting.py

# ---- the extension ---------------------------------------------------------------------------------

$(BUILD)/diffuse.so: $(OBJECTS)
	$(CC) $(CFLAGS) $(LINK) $(LDFLAGS) -o $@ $^ $(STATIC) -lm

GENERATED = $(BUILD)/ledger_sql.h $(BUILD)/page_html.h $(BUILD)/page_sql.h $(BUILD)/version.h

COMPILE = @echo CC $<; mkdir -p $(@D); $(CC) $(CPPFLAGS) $(CODEGEN) $(CFLAGS) $(WARNINGS) \
          -ffunction-sections -MMD -MP -c -o $@ $<

$(BUILD)/obj/%.o: ext/%.c | $(GENERATED)
	$(COMPILE)

# The extension contains, as strings, the ledger's schema (sql/ledger.sql) and the page of dp_report: its
# text (ext/report/page.html) and the SQL that fills it (ext/report/page.sql).
$(BUILD)/ledger_sql.h: sql/ledger.sql
$(BUILD)/page_html.h: ext/report/page.html
$(BUILD)/page_sql.h: ext/report/page.sql
$(BUILD)/ledger_sql.h $(BUILD)/page_html.h $(BUILD)/page_sql.h:
	@mkdir -p $(@D)
	{ echo 'static const char $(basename $(@F))[] ='; \
	  sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/.*/"&\\n"/' $<; echo ';'; } > $@

# The version that dp_version() returns.
$(BUILD)/version.h: VERSION
	@mkdir -p $(@D)
	echo '#define DIFFUSE_VERSION "'$$(cat $<)'"' > $@

# A static library for programs that link SQLite. It is compiled with SQLITE_CORE. Such a program
# passes sqlite3_diffuse_init() to sqlite3_auto_extension(), and also links GSL, libsodium and
# SQLite.
static: $(BUILD)/libdiffuse.a

CORE := $(SOURCES:ext/%.c=$(BUILD)/core/%.o)
$(CORE): CPPFLAGS += -DSQLITE_CORE
$(BUILD)/core/%.o: ext/%.c | $(GENERATED)
	$(COMPILE)

$(BUILD)/libdiffuse.a: $(CORE)
	@rm -f $@
	$(AR) rcs $@ $^

# ---- the main job, on real data --------------------------------------------------------------------

$(BUILD)/star.db: fixtures/star.csv sql/star.sql
	@mkdir -p $(@D)
	rm -f $@ $@-ledger*
	$(SQLITE3) $@ < sql/star.sql

# Every run starts with a new copy of the database and a new ledger.
demo: $(BUILD)/diffuse.so $(BUILD)/star.db
	@rm -f $(BUILD)/demo.db $(BUILD)/demo.db-ledger*
	@cp $(BUILD)/star.db $(BUILD)/demo.db
	@$(SQLITE3) $(BUILD)/demo.db < sql/demo.sql
	@! $(SQLITE3) $(BUILD)/demo.db < sql/attack.sql 2>&1

# ---- tests -----------------------------------------------------------------------------------------

# A unit test links only the rooms (folders of ext/) that it tests, and never SQLite. So math/ and
# noise/ cannot depend on SQLite. The rooms are linked as an archive. If a test itself defines all
# functions of a file, such as a source of random bytes that fails, the linker leaves out that file.
UNITS := $(patsubst test_%.c,$(BUILD)/unit/%,$(notdir $(wildcard tests/*/test_*.c)))
vpath test_%.c $(sort $(dir $(wildcard tests/*/test_*.c)))

unit: $(UNITS)
$(BUILD)/unit/%: $(BUILD)/unit/%.o $(BUILD)/rooms.a
	@$(CC) $(CFLAGS) -o $@ $^ $(STATIC) -lm
$(BUILD)/unit/%.o: test_%.c $(wildcard tests/helpers/*.h)
	@mkdir -p $(@D)
	@echo CC $<
	@$(CC) $(CPPFLAGS) -Itests/helpers $(CODEGEN) $(CFLAGS) $(WARNINGS) -MMD -MP -c -o $@ $<
-include $(wildcard $(BUILD)/unit/*.d)
$(BUILD)/rooms.a: $(SUMS) $(NOISE) $(MATH) $(SERVICES)
	rm -f $@
	$(AR) rcs $@ $^

# pytest runs one process for each core and one more, because some tests wait. It keeps the compiled tests in build/. If a process
# crashes, the run ends. A crash inside a test is a failure of that test. A crash elsewhere changes the exit status
# (tests/helpers/plugin.py).
WORKERS ?= $(shell expr $$(nproc) + 1)
PYTEST   = PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(abspath $(BUILD))/pycache $(PYTHON) -m pytest -q -p no:cacheprovider -n $(WORKERS) --dist loadgroup --max-worker-restart=0 \
           $(PYTEST_OPTIONS)

test: all unit static injector fixed replays bench-libraries $(BUILD)/star.db
	BUILD=$(BUILD) $(PYTEST) -m 'not slow' tests

# Compares the ways of evaluating a question on random questions about QUESTION_SEEDS random databases, with links and
# without. 100 take ten minutes.
QUESTION_SEEDS ?= 100
check-questions: all fixed
	BUILD=$(BUILD) QUESTION_SEEDS=$(QUESTION_SEEDS) $(PYTEST) -k random tests/query/test_three_ways.py tests/query/test_direct_questions.py \
	  tests/query/test_questions.py

# Runs the tests of `make test` with other versions of SQLite instead of the system's, one after the other: 3.34.0, 3.36.0, 3.38.0,
# 3.42.0, 3.45.1 and the newest. Their sources come from go-sqlite3 (needs go), and Python must load the system's libsqlite3, as
# Debian's does. The programs that link SQLite themselves keep the system's version, except `fixed`. Their tests (the mark "own")
# are left out.
SQLITES = v1.14.6 v1.14.8 v1.14.12 v1.14.17 v1.14.22 latest
SQLITE_OPTIONS = -DSQLITE_ENABLE_JSON1 -DSQLITE_ENABLE_COLUMN_METADATA -DSQLITE_ENABLE_DBSTAT_VTAB \
                 -DSQLITE_ENABLE_STMTVTAB -DSQLITE_ENABLE_MATH_FUNCTIONS -DSQLITE_ENABLE_SESSION \
                 -DSQLITE_ENABLE_PREUPDATE_HOOK -DSQLITE_ENABLE_DESERIALIZE -DSQLITE_ENABLE_FTS5 \
                 -DSQLITE_ENABLE_RTREE -DHAVE_USLEEP=1
check-versions: all unit static injector fixed replays bench-libraries $(BUILD)/star.db $(SQLITES:%=$(HOSTS)/sqlite/%/fixed) \
                $(HOSTS)/sqlite/bin/sqlite3
	for version in $(SQLITES); do folder=$(abspath $(HOSTS))/sqlite/$$version; \
	  export BUILD=$(BUILD) LD_LIBRARY_PATH=$$folder FIXED=$$folder/fixed PATH=$(abspath $(HOSTS))/sqlite/bin:$$PATH; \
	  $(PYTHON) -c 'import sqlite3; print("SQLite", sqlite3.sqlite_version)' && $(PYTEST) -m 'not slow and not own' tests || exit 1; done

check-newest:
	$(MAKE) check-versions SQLITES=latest

# Runs the tests of `make test` while each setting of the extension's connections is turned the other way
# (tests/helpers/other_settings.py), and the story of the hosts on a SQLite that is built with other defaults (needs go).
check-settings: all unit static injector fixed replays bench-libraries $(BUILD)/star.db
	OTHER_SETTINGS=1 BUILD=$(BUILD) $(PYTEST) -m 'not slow and not own' tests

OTHER_DEFAULTS = -DSQLITE_DEFAULT_FOREIGN_KEYS=1 -DSQLITE_DEFAULT_RECURSIVE_TRIGGERS=1 -DSQLITE_DQS=0 -DSQLITE_TRUSTED_SCHEMA=0 \
                 -DSQLITE_DEFAULT_AUTOVACUUM=1 -DSQLITE_DEFAULT_AUTOMATIC_INDEX=0 -DSQLITE_DEFAULT_SYNCHRONOUS=0 \
                 -DSQLITE_DEFAULT_PAGE_SIZE=65536 -DSQLITE_DEFAULT_MMAP_SIZE=268435456 -DSQLITE_SECURE_DELETE -DSQLITE_TEMP_STORE=2 \
                 -DSQLITE_DEFAULT_FILE_FORMAT=1 -DSQLITE_DEFAULT_WORKER_THREADS=4 -DSQLITE_DEFAULT_JOURNAL_SIZE_LIMIT=0 \
                 -DSQLITE_DEFAULT_CACHE_SIZE=10 -DSQLITE_ENABLE_QPSG -DSQLITE_DEFAULT_DEFENSIVE=1 -DSQLITE_CASE_SENSITIVE_LIKE
$(HOSTS)/sqlite/defaults/libsqlite3.so.0: private SQLITE_OPTIONS += $(OTHER_DEFAULTS)
check-defaults: all fixed $(HOSTS)/sqlite/defaults/libsqlite3.so.0
	BUILD=$(BUILD) LD_LIBRARY_PATH=$(abspath $(HOSTS))/sqlite/defaults $(PYTEST) tests/base/test_settings.py tests/functions tests/ledger

# The system's shell refuses to run with another library than its own.
$(HOSTS)/sqlite/bin/sqlite3:
	@mkdir -p $(@D)
	printf '#!/bin/sh\nexec env -u LD_LIBRARY_PATH %s "$$@"\n' "$$(command -v $(SQLITE3))" >$@ && chmod +x $@

$(HOSTS)/sqlite/%/libsqlite3.so.0:
	@mkdir -p $(@D) && cd $(@D) && rm -f go.mod go.sum && set -x && export GOFLAGS='-mod=mod -modcacherw' \
	  GOMODCACHE=$(abspath $(HOSTS))/go/mod GOCACHE=$(abspath $(HOSTS))/go/cache && \
	  go mod init sqlite && go get github.com/mattn/go-sqlite3@$(subst defaults,latest,$*) && \
	  $(CC) -w -O2 -shared -fPIC -Wl,-soname,$(@F) $(SQLITE_OPTIONS) -o $(@F) \
	    $$(go list -m -f '{{.Dir}}' github.com/mattn/go-sqlite3)/sqlite3-binding.c -lm -lpthread -ldl

$(HOSTS)/sqlite/%/fixed: tests/fixed/fixed.c $(HOSTS)/sqlite/%/libsqlite3.so.0 $(BUILD)/libdiffuse.a
	$(CC) $(CPPFLAGS) -D_GNU_SOURCE $(CODEGEN) $(CFLAGS) -o $@ $(filter %.c %.a %.0,$^) $(TRACED) $(STATIC) -lm -lpthread -ldl

# Runs the slowest tests, and the parameters that the mark "sample" leaves out. They rarely find an error, and take half an hour.
test-slow: all unit static injector fixed replays bench-libraries $(BUILD)/star.db
	BUILD=$(BUILD) $(PYTEST) -m slow tests

# Runs tests of `make test` with AddressSanitizer and UndefinedBehaviorSanitizer. Python itself is not
# instrumented, so the runtime of the sanitizers is preloaded. Only the unit tests and check-valgrind look for leaks.
# Tests marked "plain" measure time or memory, which the sanitizers change, and are left out. So are statistical
# tests (the mark "alarm") and most parameters of tests that have many (AT_MOST), except the unit tests: they repeat the same
# code with other numbers. If a sanitizer ends a process, its message is shown at the end.
AT_MOST ?= 4
SANITIZE = -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
check-sanitize:
	$(MAKE) BUILD=$(BUILD)/sanitize CFLAGS='$(SANITIZE)' all unit static injector fixed replays \
	  $(BUILD)/sanitize/star.db
	@rm -f $(BUILD)/sanitize/said.*
	BUILD=$(BUILD)/sanitize LD_PRELOAD=$$($(CC) -print-file-name=libasan.so) \
	  ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:log_path=$(abspath $(BUILD))/sanitize/said \
	  UBSAN_OPTIONS=print_stacktrace=1:log_path=$(abspath $(BUILD))/sanitize/said \
	  $(PYTEST) --at-most $(AT_MOST) -m 'not plain and not slow and (own or not alarm)' tests || { cat $(BUILD)/sanitize/said.* 2>/dev/null; exit 1; }

# Lists the lines and branches of ext/ that the tests do not reach (tests/coverage.md gives the
# reasons). If a test kills a process, the counters of this process are lost.
COVERAGE = -O1 -g --coverage -fprofile-update=atomic
coverage:
	$(MAKE) BUILD=build/coverage CFLAGS='$(COVERAGE)' all unit static injector fixed replays build/coverage/star.db
	find build/coverage -name '*.gcda' -delete
	mkdir -p build/coverage/bin && printf '#!/bin/sh\nexec %s --coverage "$$@"\n' "$$(command -v $(CC))" >build/coverage/bin/cc && \
	  chmod +x build/coverage/bin/cc
	-BUILD=build/coverage DIFFUSE_FAULTS=20 $(PYTHON) -m pytest -q -p no:cacheprovider $(PYTEST_OPTIONS) \
	  -m 'not plain' tests
	-BUILD=build/coverage PATH=$(CURDIR)/build/coverage/bin:$$PATH $(PYTHON) -m pytest -q -p no:cacheprovider \
	  tests/ledger/test_curves.py tests/test_build.py
	$(PYTHON) tests/coverage.py build/coverage

# Changes ext/ROOM in MUTANTS random ways, one after the other, and lists the changes that no test of the room notices. The same SEED
# makes the same changes. Use it by hand: one mutant takes from seconds to minutes.
ROOM    ?= sums
MUTANTS ?= 25
SEED    ?= 1
mutants:
	$(PYTHON) tests/mutants.py $(ROOM) $(MUTANTS) $(SEED)

# Runs the demo and a story of every function and of many errors under valgrind, which fails on a
# leak or an invalid access.
VALGRIND = valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite
check-valgrind: $(BUILD)/diffuse.so $(BUILD)/star.db
	@rm -f $(BUILD)/demo.db $(BUILD)/demo.db-ledger* $(BUILD)/story.db $(BUILD)/story.db-ledger*
	@cp $(BUILD)/star.db $(BUILD)/demo.db
	$(VALGRIND) $(SQLITE3) $(BUILD)/demo.db < sql/demo.sql
	$(VALGRIND) $(SQLITE3) $(BUILD)/story.db < tests/faults/story.sql >$(BUILD)/story.txt 2>&1; test $$? -ne 9 || \
	  { cat $(BUILD)/story.txt; exit 1; }

# ---- benchmarks: bench/results.md (make bench) and bench/growth.md (make bench-growth) ---------------------

# Makes tables of 1, 10 or 100 million rows in build/bench/ and keeps them. With 10 million rows,
# `make bench` takes a quarter of an hour. It writes bench/results.md and bench/questions.md. ONLY=section
# measures only one section again.
ROWS ?= 10000000
bench: all bench-libraries
	BUILD=$(BUILD) $(PYTHON) bench/suite.py --rows $(ROWS) $(ONLY:%=--only %) \
	  $(if $(filter 10000000,$(ROWS)),,--output $(BUILD)/bench/results-$(ROWS).md)
	$(if $(ONLY),,$(MAKE) bench-questions)

# Needs python3-matplotlib (make deps-figures).
bench-growth: all bench-libraries
	BUILD=$(BUILD) $(PYTHON) bench/growth.py $(ONLY:%=--only %)

bench-libraries: $(BUILD)/bench/sync.so $(BUILD)/bench/decode.so
$(BUILD)/bench/%.so: bench/%.c
	@mkdir -p $(@D)
	@echo CC $<
	@$(CC) $(CODEGEN) -fvisibility=default $(CFLAGS) $(WARNINGS) -shared -o $@ $<

# Installs DuckDB, OpenDP, SmartNoise SQL and diffprivlib with pip. `make bench` compares with the systems that are
# installed.
deps-bench: $(BUILD)/python-bench $(BUILD)/python-utility $(BUILD)/python-utility-smartnoise
$(BUILD)/python-bench:
	$(PIP) --target $@ duckdb

# Measures draws of noise per second, and compares with GSL and, if it is installed, OpenDP.
bench-sampler: $(BUILD)/bench/sampler
	BUILD=$(BUILD) $(PYTHON) bench/sampler.py

$(BUILD)/bench/sampler: bench/sampler.c $(BUILD)/rooms.a
	@mkdir -p $(@D)
	@echo CC $<
	@$(CC) $(CPPFLAGS) $(CODEGEN) $(CFLAGS) $(WARNINGS) -o $@ $^ $(STATIC) -lm

# Measures one release from a folder of shards, with processes and with Dask. Dask needs pip.
# Without Dask, only processes are measured.
deps-shards:
	$(PIP) --target $(BUILD)/python-shards 'dask[distributed]'

# Measures questions by unit beside plain SQLite, and writes bench/questions.md.
bench-questions: $(BUILD)/diffuse.so
	BUILD=$(BUILD) $(PYTHON) bench/questions.py

# Measures cross tables beside one group_count, and writes bench/tables.md.
bench-tables: $(BUILD)/diffuse.so $(BUILD)/bench/tables
	BUILD=$(BUILD) $(PYTHON) bench/tables.py

$(BUILD)/bench/tables: bench/tables.c $(BUILD)/rooms.a
	@mkdir -p $(@D)
	@echo CC $<
	@$(CC) $(CPPFLAGS) $(CODEGEN) $(CFLAGS) $(WARNINGS) -o $@ $^ $(STATIC) -lm

# Measures how often 95% intervals contain the exact figures, and writes bench/coverage.md, in a quarter of an hour.
bench-coverage: $(BUILD)/diffuse.so
	BUILD=$(BUILD) $(PYTHON) bench/coverage.py

bench-shards: $(BUILD)/diffuse.so
	BUILD=$(BUILD) $(PYTHON) bench/shards.py

# ---- faults: a program that fails the n-th allocation or call of the file system ---------------------

WITH_SQLITE = -l:libsqlite3.a $(STATIC) -lm -lpthread -ldl
WRAPPED     = malloc calloc realloc free getrandom $(addprefix sqlite3_,malloc malloc64 realloc64 mprintf \
              vmprintf value_dup aggregate_context set_auxdata str_new str_append str_appendall \
              str_appendchar str_appendf)
WRAP        = $(WRAPPED:%=-Wl,--wrap=%)

injector: $(BUILD)/injector
$(BUILD)/injector: tests/faults/injector.c $(BUILD)/libdiffuse.a
	@echo CC $<
	@$(CC) $(CPPFLAGS) -D_GNU_SOURCE $(CODEGEN) $(CFLAGS) -o $@ $^ $(WRAP) $(WITH_SQLITE)

# Builds a program whose noise is the same in every run, and two loadable extensions: one whose noise and clock are the same in every
# run, and one whose guard has no authorizer (ext/functions/internal.h).
fixed: $(BUILD)/fixed $(BUILD)/fixed.so $(BUILD)/bare/diffuse.so

TRACED = -Wl,--wrap=discrete_gaussian_draw,--wrap=gaussian_bridge_draw

BARE = ext/functions/public_tables.c ext/functions/guard.c
$(BUILD)/bare/diffuse.so: $(BARE) $(filter-out %/functions/public_tables.o %/functions/guard.o,$(OBJECTS))
	@echo CC $(BARE)
	@mkdir -p $(@D)
	@$(CC) $(CPPFLAGS) -DGUARD_AUTHORIZERS=0 $(CODEGEN) $(CFLAGS) $(WARNINGS) $(LINK) -o $@ $(filter %.c %.o,$^) $(STATIC) -lm

$(BUILD)/fixed.so: tests/fixed/extension.c tests/fixed/noise.h $(filter-out %/noise/entropy.o,$(OBJECTS))
	@echo CC $<
	@$(CC) $(CPPFLAGS) $(CODEGEN) $(CFLAGS) $(WARNINGS) $(LINK) -o $@ $(filter %.c %.o,$^) $(STATIC) -lm

$(BUILD)/fixed: tests/fixed/fixed.c tests/fixed/noise.h $(BUILD)/libdiffuse.a
	@echo CC $<
	@$(CC) $(CPPFLAGS) -D_GNU_SOURCE $(CODEGEN) $(CFLAGS) -o $@ $(filter %.c %.a,$^) $(TRACED) $(WITH_SQLITE)

# Makes the n-th call fail for every n of every statement, and kills processes a thousand times. This takes more than an
# hour. `make test` tries only some values of n.
faults: all injector replays $(BUILD)/star.db
	BUILD=$(BUILD) DIFFUSE_FAULTS=all $(PYTEST) tests/faults

# ---- fuzzing: libFuzzer targets, with clang ---------------------------------------------------------

FUZZ_SECONDS ?= 60
FUZZERS  := options vectors keys calls ledgers states
FUZZFLAGS = -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all

# The fuzz targets with their own main(), compiled by any compiler. `make test` runs them on the
# corpora.
replays: $(FUZZERS:%=$(BUILD)/replay/%)
$(BUILD)/replay/%: tests/fuzz/%.c tests/fuzz/replay.c tests/fuzz/fuzz.h $(BUILD)/libdiffuse.a
	@mkdir -p $(@D)
	@echo CC $<
	@$(CC) $(CPPFLAGS) -D_GNU_SOURCE -DSQLITE_CORE $(CODEGEN) $(CFLAGS) -o $@ $< tests/fuzz/replay.c \
	  $(BUILD)/libdiffuse.a $(WITH_SQLITE)

# Runs each target for FUZZ_SECONDS, starting from its corpus. New inputs go to build/fuzz/corpus/,
# and findings go to build/fuzz/. `make -k -j` runs several targets at once and continues after a
# finding.
fuzz: $(FUZZERS:%=fuzz-%)
$(FUZZERS:%=fuzz-%): fuzz-%: fuzzers
	@mkdir -p build/fuzz/corpus/$*
	@build/fuzz/$* -max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=4096 -timeout=60 \
	  -artifact_prefix=build/fuzz/$*- -print_final_stats=1 -verbosity=0 -dict=tests/fuzz/words \
	  build/fuzz/corpus/$* tests/fuzz/corpus/$* 2>build/fuzz/$*.log || { cat build/fuzz/$*.log; exit 1; }
	@echo "$*: $$(grep number_of_executed_units build/fuzz/$*.log)" && touch build/fuzz/$*.passed

# Installs clang and its runtime for fuzzers and sanitizers.
deps-fuzz:
	$(MAKE) deps PACKAGES='clang libclang-rt-dev'

fuzzers:
	@rm -f build/fuzz/*.passed
	@command -v clang >/dev/null || { echo 'fuzzing needs clang (make deps-fuzz)' >&2; exit 1; }
	$(MAKE) BUILD=build/fuzz CC=clang CFLAGS='$(FUZZFLAGS) -fsanitize=fuzzer-no-link' static
	@for target in $(FUZZERS); do echo CC tests/fuzz/$$target.c && \
	  clang $(CPPFLAGS) -Ibuild/fuzz -D_GNU_SOURCE -DSQLITE_CORE $(CODEGEN) $(FUZZFLAGS) -fsanitize=fuzzer -o build/fuzz/$$target \
	    tests/fuzz/$$target.c build/fuzz/libdiffuse.a $(WITH_SQLITE) || exit 1; done

# Compares the errors of diffuse and of other systems at the same (epsilon, delta)
# (bench/utility.md). This needs pip and takes more than an hour. SmartNoise SQL needs an older OpenDP, so it
# is installed in a folder of its own.
PIP = $(PYTHON) -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --upgrade
deps-utility: $(BUILD)/nafld2.csv $(BUILD)/python-utility-smartnoise

$(BUILD)/python-utility-smartnoise:
	$(PIP) --target $@ smartnoise-sql

$(BUILD)/python-utility:
	$(PIP) --target $@ 'opendp[polars]' diffprivlib 'scikit-learn<1.7' pipeline-dp dp-accounting rdata

# Extracts the data set nafld2 from Debian's package of the R package survival. R itself is not
# needed.
$(BUILD)/nafld2.csv: bench/nafld2.py | $(BUILD)/python-utility
	@mkdir -p $(BUILD)/survival
	cd $(BUILD)/survival && apt-get download -qq r-cran-survival && dpkg-deb -x r-cran-survival_*.deb .
	PYTHONPATH=$(BUILD)/python-utility $(PYTHON) bench/nafld2.py \
	  $(BUILD)/survival/usr/lib/R/library/survival/data $@

bench-utility: $(BUILD)/diffuse.so
	BUILD=$(BUILD) $(PYTHON) bench/utility.py

bench-bounds: $(BUILD)/diffuse.so $(BUILD)/nafld2.csv
	BUILD=$(BUILD) $(PYTHON) bench/utility_bounds.py

# ---- figures: SVG files of the papers' results, drawn from SQL alone (sql/papers.md shows them) ------

deps-figures:
	$(MAKE) deps PACKAGES='python3 python3-matplotlib'

figures: all
	@$(PYTHON) -c 'import matplotlib' 2>/dev/null || \
	  { echo 'figures need python3-matplotlib (make deps-figures)' >&2; exit 1; }
	BUILD=$(BUILD) $(PYTHON) bench/figures.py $(BUILD)/figures

# ---- lint ------------------------------------------------------------------------------------------

deps-lint:
	$(MAKE) deps PACKAGES='python3 clang-tidy cppcheck clang-format'

lint: $(GENERATED)
	@command -v clang-tidy >/dev/null && command -v cppcheck >/dev/null || \
	  { echo 'lint needs clang-tidy and cppcheck (make deps-lint)' >&2; exit 1; }
	$(PYTHON) tests/lint.py $(BUILD)

clean:
	rm -rf $(BUILD)

format:
	clang-format -i $(wildcard $(addsuffix /*.[ch],ext ext/* tests/* bench))

include ext/packages/packages.mk

-include $(OBJECTS:.o=.d) $(CORE:.o=.d)
