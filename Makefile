# diffuse: differential privacy inside SQLite.
#
#   make deps demo    install what is missing, build, run the main job on real data
#   make deps test    install what is missing, build, run every test
#
# `make` alone builds build/diffuse.so. Everything that is made goes to build/.

CC      ?= cc
AR      ?= ar
PYTHON  ?= /usr/bin/python3
SQLITE3 ?= sqlite3
BUILD   ?= build

CFLAGS   ?= -O2 -g
WARNINGS  = -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Werror
# No contraction: the books round sums upward with error-free transformations that an FMA breaks.
# No math errno: lets the compiler turn llrint() into one instruction.
CODEGEN   = -std=c11 -fPIC -fvisibility=hidden -ffp-contract=off -fno-math-errno
CPPFLAGS += -Iext -I$(BUILD) -D_DEFAULT_SOURCE -D_POSIX_C_SOURCE=200809L
STATIC    = -l:libgsl.a -l:libgslcblas.a -l:libmd.a
LINK      = -shared -Wl,--exclude-libs,ALL -Wl,-z,defs -Wl,--gc-sections -Wl,-z,relro,-z,now

SOURCES := $(sort $(wildcard ext/*.c ext/*/*.c))
OBJECTS := $(SOURCES:ext/%.c=$(BUILD)/obj/%.o)
MATH    := $(filter $(BUILD)/obj/math/%,$(OBJECTS))
NOISE   := $(filter $(BUILD)/obj/noise/%,$(OBJECTS))
RELEASE := $(filter $(BUILD)/obj/release/%,$(OBJECTS))

.PHONY: all deps static demo test unit check-sanitize check-valgrind bench figures deps-figures clean format
.DELETE_ON_ERROR:
.SECONDARY:

all: $(BUILD)/diffuse.so

# ---- dependencies: apt-get, and only when something is missing -------------------------------------

PACKAGES = gcc make sqlite3 libsqlite3-dev libgsl-dev libmd-dev libxxhash-dev \
           python3 python3-pytest python3-mpmath python3-numpy python3-scipy
SUDO     = $(shell test "$$(id -u)" = 0 || echo sudo)

deps:
	@missing=$$(for p in $(PACKAGES); do \
	    dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || echo $$p; done); \
	  if [ -n "$$missing" ]; then echo "installing:" $$missing; \
	    $(SUDO) apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive $(SUDO) apt-get install -y -qq --no-install-recommends $$missing; fi

# ---- the extension ---------------------------------------------------------------------------------

$(BUILD)/diffuse.so: $(OBJECTS)
	$(CC) $(CFLAGS) $(LINK) -o $@ $^ $(STATIC) -lm

$(BUILD)/obj/%.o: ext/%.c | $(BUILD)/ledger_sql.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CODEGEN) $(CFLAGS) $(WARNINGS) -ffunction-sections -MMD -MP -c -o $@ $<

# The ledger's schema is a file that people can read; the extension carries it as a string.
$(BUILD)/ledger_sql.h: sql/ledger.sql
	@mkdir -p $(@D)
	{ echo 'static const char ledger_sql[] ='; \
	  sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/.*/"&\\n"/' $<; echo ';'; } > $@

# For programs that link SQLite themselves: compiled with SQLITE_CORE, to be handed to
# sqlite3_auto_extension(); link it with GSL, libmd and SQLite.
static: $(BUILD)/libdiffuse.a
$(BUILD)/libdiffuse.a: $(SOURCES) $(BUILD)/ledger_sql.h
	$(MAKE) BUILD=$(BUILD)/core CPPFLAGS='$(CPPFLAGS) -DSQLITE_CORE' $(BUILD)/core/libdiffuse.a
	cp $(BUILD)/core/libdiffuse.a $@
$(BUILD)/core/libdiffuse.a: $(OBJECTS)
	$(AR) rcs $@ $^

# ---- tests -----------------------------------------------------------------------------------------

# A unit test links only the rooms it tests, never SQLite: that keeps math/ and noise/ free of it.
UNITS := $(patsubst tests/unit/test_%.c,$(BUILD)/unit/%,$(wildcard tests/unit/test_*.c))

unit: $(UNITS)
$(BUILD)/unit/%: tests/unit/test_%.c tests/unit/check.h $(MATH) $(NOISE) $(RELEASE)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -Itests/unit $(CODEGEN) $(CFLAGS) $(WARNINGS) -o $@ $< \
	  -Wl,--start-group $(RELEASE) $(NOISE) $(MATH) -Wl,--end-group $(STATIC) -lm

test: all unit static
	$(PYTHON) -m pytest -q tests

# ---- figures: SVG files of the papers' results, drawn from SQL alone (sql/papers.md shows them) ------

deps-figures:
	$(MAKE) deps PACKAGES='python3 python3-matplotlib'

figures: all
	@$(PYTHON) -c 'import matplotlib' 2>/dev/null || \
	  { echo 'figures need python3-matplotlib (make deps-figures)' >&2; exit 1; }
	BUILD=$(BUILD) $(PYTHON) bench/figures.py $(BUILD)/figures

clean:
	rm -rf $(BUILD)

format:
	clang-format -i $(wildcard ext/*.[ch] ext/*/*.[ch] tests/unit/*.[ch])

-include $(OBJECTS:.o=.d)
