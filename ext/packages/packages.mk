# Builds packages for people who have no compiler (ext/packages/README.md). The Makefile includes this file.
#
#   make deps-packages packages        everything, to build/packages/
#   make deps-test-packages test-packages    installs each package into an empty environment and makes a first release
#   make install PREFIX=... DESTDIR=...      without debugging symbols (STRIP=: keeps them)
#   make deps-wasm wasm                one page that runs in a browser, build/wasm/diffuse.html
#   make deps-report test-wasm         tests the page in Chromium, and runs the unit tests on wasm32

WORK     = build/packages-work
TOOLS    = build/packages-tools
ZIG_RELEASE = 0.17.1
EPOCH = SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)}

.PHONY: deps-packages packages debian-package amalgamation install deps-test-packages deps-datasette test-packages check-packages \
        deps-wasm wasm test-wasm

deps-packages: $(TOOLS)/python/.done $(TOOLS)/npm/.done $(WORK)/sources/.done
	$(MAKE) deps PACKAGES='gcc make git python3 libsqlite3-dev libgsl-dev libsodium-dev dpkg-dev debhelper lintian'

# zig compiles C for every platform of platforms.toml. twine and auditwheel check wheels. publint checks npm packages.
$(TOOLS)/python/.done:
	$(PIP) --target $(@D) ziglang==$(ZIG_RELEASE) twine auditwheel
	touch $@

$(TOOLS)/npm/.done:
	npm install --silent --no-fund --no-audit --prefix $(@D) publint
	touch $@

# Fetches Debian's source packages of GSL and libsodium. `deb-src` is switched on in a copy of apt's lists only.
$(WORK)/sources/.done:
	$(MAKE) deps PACKAGES=dpkg-dev
	/bin/sh ext/packages/debian.sh source $(@D) gsl libsodium
	touch $@

CROSS = ZIG=$(abspath $(TOOLS))/python/ziglang/zig JOBS=$${JOBS:-$$(nproc)}

amalgamation: $(BUILD)/amalgamation/diffuse.c
$(BUILD)/amalgamation/diffuse.c: ext/packages/amalgamate.py ext/packages/diffuse.h.in $(SOURCES) $(wildcard ext/*/*.h) $(GENERATED)
	$(PYTHON) ext/packages/amalgamate.py $(BUILD) $(@D)

# Copies the amalgamation to the folder of the compilers, unless it has not changed. It is then not compiled again.
COPY_AMALGAMATION = @mkdir -p $(WORK)/amalgamation && for file in diffuse.c diffuse.h; do \
	  cmp -s $(BUILD)/amalgamation/$$file $(WORK)/amalgamation/$$file || cp $(BUILD)/amalgamation/$$file $(WORK)/amalgamation; done

packages: amalgamation
	@test -e $(TOOLS)/python/.done && test -e $(WORK)/sources/.done || \
	  { echo 'packages need a cross compiler and sources (make deps-packages)' >&2; exit 1; }
	$(COPY_AMALGAMATION)
	$(CROSS) $(PYTHON) ext/packages/compile.py $(WORK)
	rm -rf build/packages
	$(EPOCH) $(PYTHON) ext/packages/packages.py $(WORK) build/packages
	$(MAKE) debian-package
	cd build/packages && sha256sum $$(ls | grep -v checksums.txt) >checksums.txt

# Builds the Debian package from the last commit, with the system's own libraries. Its maintainer is the person of DEBFULLNAME and
# DEBEMAIL, or the author of the commit.
debian-package:
	rm -rf $(WORK)/debian && mkdir -p $(WORK)/debian/diffuse build/packages
	git archive HEAD | tar -x -C $(WORK)/debian/diffuse
	cp -r $(WORK)/debian/diffuse/ext/packages/debian $(WORK)/debian/diffuse/debian
	maintainer=$$(git log -1 --format='%an <%ae>') && if [ "$$DEBEMAIL" ]; then maintainer="$$DEBFULLNAME <$$DEBEMAIL>"; fi && \
	  sed -i "s|@MAINTAINER@|$$maintainer|" $(WORK)/debian/diffuse/debian/control && \
	  $(EPOCH) $(PYTHON) ext/packages/debian_changelog.py "$$maintainer" >$(WORK)/debian/diffuse/debian/changelog
	cd $(WORK)/debian/diffuse && $(EPOCH) env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS -u BUILD \
	  DEB_BUILD_OPTIONS="noautodbgsym" dpkg-buildpackage -b -us -uc
	cp $(WORK)/debian/libsqlite3-mod-diffuse_*.deb build/packages/

# Checks packages as an uploader would: metadata, names of platforms, symbols, and the oldest C library that a package needs. The
# Debian package is not for Debian's own archive, so it closes no bug there.
check-packages:
	PYTHONPATH=$(TOOLS)/python $(PYTHON) -m twine check --strict build/packages/*.whl
	$(PYTHON) ext/packages/check.py build/packages $(TOOLS)
	lintian --fail-on error,warning,info --suppress-tags initial-upload-closes-no-bugs --allow-root build/packages/*.deb

# ---- WebAssembly -----------------------------------------------------------------------------------

# Debian's Emscripten compiles SQLite from the source of Debian's package sqlite3. SQLite's own scripts need Tcl.
deps-wasm: $(WORK)/sources/.sqlite3
	$(MAKE) deps PACKAGES='gcc make python3 libsqlite3-dev libgsl-dev libsodium-dev emscripten tcl'

$(WORK)/sources/.sqlite3: | $(WORK)/sources/.done
	/bin/sh ext/packages/debian.sh source $(@D) sqlite3
	touch $@

$(WORK)/sqlite/sqlite3.c: | $(WORK)/sources/.sqlite3
	@mkdir -p $(@D)
	cd $(@D) && ../sources/sqlite3/configure --quiet --disable-tcl && env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS $(MAKE) -s sqlite3.c

wasm: $(BUILD)/wasm/diffuse.html
WASM = ext/packages/wasm/wasm.py ext/packages/compile.py
$(BUILD)/wasm/diffuse.html: ext/packages/wasm/page.html $(WASM) $(BUILD)/amalgamation/diffuse.c $(WORK)/sqlite/sqlite3.c
	@command -v emcc >/dev/null || { echo 'wasm needs Emscripten (make deps-wasm)' >&2; exit 1; }
	$(COPY_AMALGAMATION)
	$(PYTHON) ext/packages/wasm/wasm.py page $(WORK) $@

# The unit tests, compiled for wasm32. Node runs them. They cover the rooms that do not know SQLite: all integers, all noise.
$(WORK)/wasm/libtests.a: $(WASM) $(BUILD)/wasm/diffuse.html
	$(PYTHON) ext/packages/wasm/wasm.py libraries $(WORK) $@

test-wasm: $(WORK)/wasm/libtests.a
	NODE_PATH=/usr/share/nodejs $(MAKE) BUILD=$(BUILD)/wasm CC=emcc AR=emar WARNINGS= STATIC=$(abspath $<) unit \
	  CFLAGS='-O2 -I$(abspath $(WORK))/include -sALLOW_MEMORY_GROWTH=1 -sINITIAL_MEMORY=64MB -sTOTAL_STACK=4MB -sENVIRONMENT=node \
	          -sSINGLE_FILE=1 -sEXIT_RUNTIME=1 -Wno-unused-command-line-argument'
	BUILD=$(BUILD) $(PYTHON) -m pytest -q -p no:cacheprovider tests/packages/test_wasm.py

# ---- install ---------------------------------------------------------------------------------------

PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
INSTALL ?= install
STRIP   ?= strip
VERSION_NUMBER = $(shell cat VERSION)
FILL = sed -e 's|@VERSION@|$(VERSION_NUMBER)|g' -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@LIBDIR@|$(LIBDIR)|g'

INSTALLED = $(BUILD)/install
install: all $(INSTALLED)/libdiffuse.a
	$(INSTALL) -d $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/share/man/man7
	$(INSTALL) -m 644 $(BUILD)/diffuse.so $(INSTALLED)/libdiffuse.a $(DESTDIR)$(LIBDIR)
	$(STRIP) -S -x $(DESTDIR)$(LIBDIR)/diffuse.so
	$(STRIP) -S $(DESTDIR)$(LIBDIR)/libdiffuse.a
	$(INSTALL) -m 644 $(BUILD)/amalgamation/diffuse.h $(DESTDIR)$(PREFIX)/include
	$(FILL) ext/packages/diffuse.pc.in >$(DESTDIR)$(LIBDIR)/pkgconfig/diffuse.pc
	$(FILL) ext/packages/diffuse.7.in >$(DESTDIR)$(PREFIX)/share/man/man7/diffuse.7

# The static library is compiled from the amalgamation, so that it adds few names to a program that links it.
$(INSTALLED)/libdiffuse.a: $(BUILD)/amalgamation/diffuse.c
	@mkdir -p $(@D)
	$(CC) $(CODEGEN) $(CFLAGS) -DSQLITE_CORE -I$(<D) -c -o $(@D)/diffuse.o $<
	rm -f $@ && $(AR) rcsD $@ $(@D)/diffuse.o

# ---- tests by hand ---------------------------------------------------------------------------------

# The tests of node:sqlite need a newer node than the system may have. better-sqlite3 brings the source of SQLite, from which the
# tests build hosts for other platforms.
FOR_TESTS = gcc sqlite3 libsqlite3-dev libgsl-dev libsodium-dev python3-venv python3-pytest qemu-user-static libc6-arm64-cross \
            libc6-s390x-cross musl wine64
deps-test-packages: deps-datasette $(TOOLS)/node/.done $(TOOLS)/arm64/.done
	$(MAKE) deps PACKAGES='$(FOR_TESTS)'
# Installs Datasette, with which tests/packages/test_datasette.py tests the plugin. Without Datasette, these tests are
# skipped.
deps-datasette: build/datasette/.done build/datasette-1/.done
# The plugin refuses Datasette 1.0. One test checks that.
build/datasette-1/.done:
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check --pre 'datasette>=1.0a0'
	touch $@
build/datasette/.done:
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check 'datasette>=0.65,<1'
	touch $@
# Fetches programs and libraries for another CPU. qemu runs the programs.
$(TOOLS)/arm64/.done:
	/bin/sh ext/packages/debian.sh root arm64 $(@D) python3 musl
	touch $@
$(TOOLS)/node/.done:
	npm install --silent --no-fund --no-audit --ignore-scripts --prefix $(@D) better-sqlite3 node-linux-$$(node -p process.arch)@24
	touch $@

test-packages: all fixed check-packages
	$(CROSS) $(PYTHON) ext/packages/compile.py $(WORK) linux-s390x
	$(PYTHON) -m pytest -q -p no:cacheprovider $(PYTEST_OPTIONS) tests/packages
