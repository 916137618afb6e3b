# libaccel. See README.md; `make help` lists the targets.
#
# The build needs nothing of CUDA, except nvcc for the kernels of gpu/own/: libaccel opens CUDA's
# libraries at run time.

BUILD     ?= build
VERSION   := $(file <VERSION)
# Folders of make install, below DESTDIR: GNU's names, or the same in capitals.
PREFIX      ?= /usr/local
prefix      ?= $(PREFIX)
exec_prefix ?= $(prefix)
BINDIR      ?= $(exec_prefix)/bin
bindir      ?= $(BINDIR)
LIBDIR      ?= $(exec_prefix)/lib
libdir      ?= $(LIBDIR)
datarootdir ?= $(prefix)/share
docdir      ?= $(datarootdir)/doc/libaccel
mandir      ?= $(datarootdir)/man
# systemd's units: user/ and system/ below it.
UNITDIR     ?= $(exec_prefix)/lib/systemd
unitdir     ?= $(UNITDIR)
# What to put before the tools' names to build for another machine: CROSS=aarch64-linux-gnu- with
# Debian's gcc-aarch64-linux-gnu.
CROSS     ?=
ifeq ($(origin CC),default)
CC := $(CROSS)gcc
endif
ifeq ($(origin AR),default)
AR := $(CROSS)ar
endif
# What is built for: x86_64 or aarch64.
ARCH      := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))
NVCC_ON_PATH := $(shell command -v nvcc 2>/dev/null)
CUDA_HOME ?= $(firstword $(patsubst %/bin/,%,$(dir $(NVCC_ON_PATH))) $(wildcard /usr/local/cuda))
# Compiles gpu/own/: the toolkit's, or the one that scripts/install-deps has fetched. Empty: these
# kernels are left out.
NVCC ?= $(firstword $(wildcard $(CUDA_HOME)/bin/nvcc) $(NVCC_ON_PATH) $(wildcard $(BUILD)/cuda-compiler/bin/nvcc))

# Only CI (.ci/run) sets -Werror: a new compiler's new warnings must not stop a build.
WERROR   ?=
WARN     := -std=c11 -Wall -Wextra $(WERROR)
CFLAGS   ?= -O2 -g
# For all that is compiled or linked, also the tests' programs.
CPPFLAGS ?=
LDFLAGS  ?=
# Compilers at a time when make builds for a test.
JOBS     ?= $(shell nproc)
# On AArch64, char has no sign and a product and a sum may become one operation, unless told
# otherwise: results are to be as on x86-64.
ARCH_FLAGS_aarch64 := -mbranch-protection=standard -fsigned-char -ffp-contract=off
# Static thread-local storage: the library is loaded at start, so an access costs one instruction.
# shim/start.ld needs each function and each variable in its own section. The constants of a file
# stay together.
CODE_FLAGS  := -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-semantic-interposition $(if $(findstring clang,$(CC)),,-fno-merge-constants) -ffunction-sections -fdata-sections -pthread $(ARCH_FLAGS_$(ARCH))
SHIM_CFLAGS := $(WARN) $(CFLAGS) $(CODE_FLAGS)
# See tests/sanitize/sanitize.mk.
SANITIZE       ?=
SANITIZE_FLAGS := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer)
INCLUDES := -I. -I$(BUILD)
# Empty if the linker does not take the script: gold does not know INSERT. Then a program's start
# touches some more pages.
START_LD := $(shell echo 'int x;' | $(CC) $(LDFLAGS) -shared -fPIC -xc - -o /dev/null -Wl,-T,shim/start.ld 2>/dev/null && echo -Wl,-T,shim/start.ld)
# A program's start and end must touch few pages: shim/start.ld lists the functions that they run,
# also glibc's pthread_atfork(). -fini with a name that does not exist leaves out _fini, which does
# nothing and would lie behind all other code.
SHIM_LDFLAGS := -shared -Wl,-soname,libaccel.so -Wl,-z,relro -Wl,-z,now -Wl,-z,defs \
                -Wl,-z,noexecstack -Wl,--as-needed -Wl,-fini=no_fini $(START_LD)

# Libraries that are no BLAS.
OPS_LIBRARIES := ops/svm ops/liblinear ops/xgboost ops/lightgbm ops/gsl ops/knn
# Folders of further libraries to build in. Each has sources, functions.def with rows of FUNCTION
# (ops/routines.def), and ops.def with its operations (ops/ops.def).
OPS_EXTRA ?=

# The layers: see docs/architecture.md.
sources           = $(wildcard $(foreach folder,$(1),$(folder)/*.c $(folder)/*.S))
BASE_SOURCES     := $(call sources,$(addprefix base/,text file thread memory host output math))
CALL_SOURCES     := $(call sources,call)
GPU_SOURCES      := $(call sources,$(addprefix gpu/,pack plan device cache exec exec/blas exec/lapack exec/ml remote cuda/api cuda))
OPS_SOURCES      := $(call sources,ops ops/rules ops/blas ops/lapack $(OPS_LIBRARIES) $(OPS_EXTRA))
DISPATCH_SOURCES := $(call sources,report dispatch/settings dispatch/cost dispatch)
SHIM_SOURCES     := $(call sources,shim shim/elf shim/arch/$(ARCH))
CPU_REF_SOURCES  := $(call sources,cpu_ref)
object_of         = $(patsubst %,$(BUILD)/%.o,$(basename $(1)))
# What a program's start touches comes first, of gpu/ and ops/ these files: see shim/start.ld.
STARTING := gpu/cuda/place.c gpu/plan/precision.c ops/names.c
OBJECTS  := $(call object_of,$(BASE_SOURCES) $(SHIM_SOURCES) $(DISPATCH_SOURCES) $(STARTING) \
              $(CALL_SOURCES) $(filter-out $(STARTING),$(GPU_SOURCES) $(OPS_SOURCES)) $(CPU_REF_SOURCES))
# All objects that export nothing, for the tool and the tests.
LAYERS  := $(BUILD)/layers.a
EXPORTS := $(addprefix $(BUILD)/shim/,shim.o elf/hooks.o arch/$(ARCH)/entry.o)

.PHONY: all shared build-deps demo test test-all check bench install uninstall dist clean help format format-check
.DEFAULT_GOAL := all

# Completion and manual pages come from a program that is run: not with sanitizers, which a build
# need not be able to run, nor for another machine.
all: $(BUILD)/libaccel.so $(BUILD)/accel $(if $(SANITIZE)$(CROSS),,shared)

# $(call flags,NAME,TEXT): a rule for NAME.flags, which holds TEXT; make rebuilds its dependents
# when TEXT changes. A new file gets an old date: nothing has been built with another text yet.
same = $(and $(findstring x$(1)x,x$(2)x),$(findstring x$(2)x,x$(1)x))
define flags
$(BUILD)/$(1).flags: export FLAGS_TEXT = $(strip $(2))
$(BUILD)/$(1).flags: $(if $(call same,$(file <$(BUILD)/$(1).flags),$(strip $(2))),,changed-flags)
	@mkdir -p $$(@D); [ -e $$@ ] || old='-d @0'; printf '%s\n' "$$$$FLAGS_TEXT" >$$@; touch $$$$old $$@
endef
.PHONY: changed-flags
$(eval $(call flags,compiler,$(CC) $(CFLAGS) $(CODE_FLAGS) $(CPPFLAGS) $(SANITIZE)))
$(eval $(call flags,link,$(LDFLAGS) $(SHIM_LDFLAGS)))
# Of a checkout of its own; else what make dist has put into the file COMMIT. None if neither knows.
COMMIT := $(or $(if $(wildcard .git),$(shell git rev-parse --short=12 HEAD 2>/dev/null)),$(file <COMMIT))
$(eval $(call flags,version,$(VERSION) $(COMMIT)))

# A source that is gone leaves the library, too.
$(eval $(call flags,objects,$(OBJECTS:$(BUILD)/%=%)))
$(BUILD)/libaccel.so: $(OBJECTS) shim/start.ld $(BUILD)/symbols.map $(BUILD)/link.flags $(BUILD)/objects.flags
	$(CC) $(CFLAGS) $(LDFLAGS) $(SHIM_LDFLAGS) $(SANITIZE_FLAGS) -Wl,--version-script=$(BUILD)/symbols.map -o $@.new $(OBJECTS) $(OLD_GLIBC_LINK) -ldl -lpthread
	mv $@.new $@

$(BUILD)/%.o: %.c $(BUILD)/compiler.flags | $(BUILD)/functions.def $(BUILD)/other_ops.def
	@mkdir -p $(@D)
	$(CC) $(SHIM_CFLAGS) $(SANITIZE_FLAGS) $(INCLUDES) $(CPPFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/%.o: %.S $(BUILD)/compiler.flags | $(BUILD)/functions.def $(BUILD)/other_ops.def
	@mkdir -p $(@D)
	$(CC) $(INCLUDES) $(CPPFLAGS) -MMD -MP -c -o $@ $<

LAYER_OBJECTS := $(sort $(filter-out $(EXPORTS),$(OBJECTS)))
$(eval $(call flags,layers,$(notdir $(LAYER_OBJECTS))))
$(LAYERS): $(LAYER_OBJECTS) $(BUILD)/layers.flags
	rm -f $@
	$(AR) rcsT $@ $(LAYER_OBJECTS)

OWN_SOURCES := $(wildcard gpu/own/*.cu)
# Code for 8.0 runs on 8.6 and 8.9, too, that for 10.0 on 10.3, and so on; each architecture takes
# the compiler some seconds.
OWN_ARCHITECTURES ?= 70 75 80 90 100 120
$(eval $(call flags,own,$(NVCC) $(OWN_ARCHITECTURES) $(OWN_SOURCES)))
$(BUILD)/gpu/own/own.fatbin: $(OWN_SOURCES) $(wildcard gpu/own/*.h gpu/own/*.cuh) scripts/compile-kernels $(BUILD)/own.flags
	WERROR='$(WERROR)' scripts/compile-kernels '$(NVCC)' '$(OWN_ARCHITECTURES)' $@ $(OWN_SOURCES)
$(BUILD)/gpu/cuda/own_image.o: $(BUILD)/gpu/own/own.fatbin

$(BUILD)/base/host/version.o: INCLUDES += -DACCEL_VERSION='"$(VERSION)"' -DACCEL_COMMIT='"$(COMMIT)"'
$(BUILD)/base/host/version.o: $(BUILD)/version.flags

# With -fno-math-errno an optimising compiler takes an instruction for a square root, so that libm
# is not needed. -O3: loops over columns gain from vectors.
$(call object_of,$(CPU_REF_SOURCES)): SHIM_CFLAGS += -O3
$(call object_of,$(foreach library,$(OPS_LIBRARIES),$(call sources,$(library))) $(wildcard ops/lapack/spectral*.c)): SHIM_CFLAGS += -O2
$(call object_of,$(OPS_SOURCES) $(CPU_REF_SOURCES)): SHIM_CFLAGS += -fno-math-errno

# What the dynamic linker calls when it relocates the library: other functions' addresses are there
# by then, the table for calls may not be (LD_AUDIT).
$(addprefix $(BUILD)/,shim/elf/bindings.o shim/elf/objects.o shim/elf/symbols.o base/thread/linker.o ops/names.o): SHIM_CFLAGS += -fno-plt

# $(call tables,FOLDER,EXTRA): rules for the files that are made from the tables and from those of
# the folders EXTRA, in $(BUILD)/FOLDER (empty, or with a slash at its end).
TABLES := ops/routines.def ops/blas/blas.def ops/lapack/lapack.def ops/manglings.def
define tables
$(eval $(call flags,$(1)extra,$(2)))
$(BUILD)/$(1)functions.def: $(BUILD)/$(1)extra.flags
	printf '%s' '$(foreach folder,$(2),#include "$(folder)/functions.def"@)' | tr @ '\n' >$$@
$(BUILD)/$(1)other_ops.def: $(BUILD)/$(1)extra.flags
	printf '%s' '$(foreach folder,$(2),#include "$(folder)/ops.def"@)' | tr @ '\n' >$$@
$(BUILD)/$(1)symbols.map: symbols.map $(TABLES) $(BUILD)/$(1)functions.def $(2:%=%/functions.def)
	$(CC) -E -P -x c -I. -I$(BUILD)/$(1) -o $$@ $$<
# Where a name is looked up: see ops/names.c.
$(BUILD)/$(1)names_places.inc: ops/names_list.def ops/names_places.awk $(TABLES) $(BUILD)/$(1)functions.def $(2:%=%/functions.def)
	$(CC) -E -P -x c -I. -I$(BUILD)/$(1) $$< | tr ';' '\n' | sed 's/[[:space:]]//g' | grep . | LC_ALL=C awk -f ops/names_places.awk > $$@
$(BUILD)/$(1)ops/names.o: $(BUILD)/$(1)names_places.inc
endef
$(eval $(call tables,,$(OPS_LIBRARIES) $(OPS_EXTRA)))

-include $(OBJECTS:.o=.d)

include tool/tool.mk
include packaging/glibc/glibc.mk
include packaging/preload/preload.mk

# ---- Tests, benchmark, demo ----

include tests/tests.mk
include tests/testgpu/testgpu.mk
include tests/bench/bench.mk
include tests/sanitize/sanitize.mk
include tests/clang/clang.mk

$(TEST_PROGRAMS) $(PROOF_PROGRAMS) $(REGRET)/replay $(REGRET)/record $(FUZZ_PROGRAMS): \
    $(BUILD)/compiler.flags $(BUILD)/link.flags tests/tests.mk
$(TESTGPU_CUDA) $(TESTGPU_CUBLAS) $(TESTGPU_CUBLAS_12) $(TESTGPU_SOLVER) $(TESTGPU_SOLVER_12) $(TESTGPU_CUFFT) $(TESTGPU_CUFFT_12) $(TESTGPU_TESTS): $(BUILD)/compiler.flags | cuda-headers

build-deps:
	scripts/install-deps build

demo:
	scripts/install-deps build demo
	$(MAKE) all
	scripts/demo

test:
	scripts/install-deps build test
	$(MAKE) -j$(JOBS) all test-programs testgpu
	$(MAKE) check
test-all:
	$(MAKE) test TEST_LONG=1
	$(MAKE) check-packages

# Runs programs of the test suite and some more, and prints a table of their numbers. REGRESS=...
# chooses some.
REGRESS ?=
.PHONY: regress
regress:
	scripts/install-deps build test regress
	$(MAKE) -j$(JOBS) all test-programs testgpu
	BUILD=$(BUILD) tests/regress/run $(REGRESS)

bench:
	scripts/install-deps build bench
	$(MAKE) all bench-programs testgpu
	tests/bench/bench

# The files that install puts there and uninstall removes. uninstall removes no folder except its
# own.
INSTALLED = $(addprefix $(DESTDIR)$(libdir)/,libaccel.so $(PRELOAD_FILES)) \
            $(DESTDIR)$(bindir)/accel $(addprefix $(DESTDIR)$(docdir)/,$(DOCUMENTS) $(PAGES)) \
            $(addprefix $(DESTDIR)$(datarootdir)/,$(COMPLETIONS)) $(addprefix $(DESTDIR)$(mandir)/,$(MANUAL)) \
            $(addprefix $(DESTDIR)$(unitdir)/,$(UNITS))
DOCUMENTS := README.md CONTRIBUTING.md CHANGELOG.md LICENSE
PAGES     := $(wildcard docs/*.md docs/*.json)
UNITS     := $(patsubst packaging/systemd/%,%,$(wildcard packaging/systemd/*/*))
install: all
	install -d $(DESTDIR)$(libdir) $(DESTDIR)$(bindir) $(DESTDIR)$(docdir)/docs
	install -m 755 $(BUILD)/libaccel.so $(DESTDIR)$(libdir)/libaccel.so
	for file in $(PRELOAD_FILES); do \
	    install -d $(DESTDIR)$(libdir)/$${file%/*} && rm -f $(DESTDIR)$(libdir)/$$file && \
	    cp -P $(BUILD)/$$file $(DESTDIR)$(libdir)/$$file || exit 1; done
	install -m 755 $(BUILD)/accel $(DESTDIR)$(bindir)/accel
	install -m 644 $(DOCUMENTS) $(DESTDIR)$(docdir)/
	install -m 644 $(PAGES) $(DESTDIR)$(docdir)/docs/
	for file in $(COMPLETIONS); do install -D -m 644 $(BUILD)/share/$$file $(DESTDIR)$(datarootdir)/$$file || exit 1; done
	for file in $(MANUAL); do install -D -m 644 $(BUILD)/share/man/$$file $(DESTDIR)$(mandir)/$$file || exit 1; done
	for file in $(UNITS); do \
	    install -D -m 644 packaging/systemd/$$file $(DESTDIR)$(unitdir)/$$file && \
	    sed -i 's,@bindir@,$(bindir),' $(DESTDIR)$(unitdir)/$$file || exit 1; done
uninstall:
	rm -f $(INSTALLED)
	for folder in $(addprefix $(DESTDIR)$(libdir)/,$(PRELOAD_FOLDERS)) \
	    $(DESTDIR)$(docdir)/docs $(DESTDIR)$(docdir); do [ ! -d $$folder ] || rmdir --ignore-fail-on-non-empty $$folder; done

include packaging/packaging.mk

# Lists the tracked files; without git, as in an unpacked archive, all files except build folders.
SOURCES = $(if $(and $(wildcard .git),$(shell git ls-files Makefile 2>/dev/null)),git ls-files -z,find . -mindepth 1 \( -path ./.git -o -path './build*' -o -path './$(patsubst $(CURDIR)/%,%,$(abspath $(BUILD)))' -o -path './libaccel-*.tar.gz*' \) -prune -o \( -type f -o -type l \) -printf '%P\0')
ARCHIVE := libaccel-$(VERSION)
DISTDIR ?= .
# With the commit in a file, which an unpacked archive has already.
dist:
	folder=$$(mktemp -d) && trap 'rm -r "$$folder"' EXIT && echo '$(COMMIT)' >"$$folder/COMMIT" && \
	  $(SOURCES) | LC_ALL=C sort -z | tar --null --no-recursion --verbatim-files-from --owner=0 --group=0 --numeric-owner \
	  --transform='flags=rSH;s,^,$(ARCHIVE)/,' -czf $(DISTDIR)/$(ARCHIVE).tar.gz.new -T - $(if $(wildcard COMMIT),,-C "$$folder" COMMIT)
	tar -tzf $(DISTDIR)/$(ARCHIVE).tar.gz.new | grep -qx '$(ARCHIVE)/Makefile'
	mv $(DISTDIR)/$(ARCHIVE).tar.gz.new $(DISTDIR)/$(ARCHIVE).tar.gz

FORMATTED = $(shell $(SOURCES) | grep -zE '\.([ch]|cuh?)$$' | tr '\0' ' ')
format:
	clang-format -i $(FORMATTED)
format-check:
	clang-format --dry-run -Werror $(FORMATTED)

clean:
	rm -rf $(BUILD)

help:
	@echo 'make               builds $(BUILD)/libaccel.so and $(BUILD)/accel'
	@echo 'make install       installs them below PREFIX'
	@echo 'make uninstall     removes the files of make install; needs the same settings'
	@echo 'make dist          packs the sources: libaccel-$(VERSION).tar.gz'
	@echo 'make deb           builds a package for Debian, make rpm one for Red Hat and SUSE, make wheel one for pip, in DISTDIR (docs/packages.md)'
	@echo 'make check-packages  builds, installs and runs the packages'
	@echo 'make clean         removes $(BUILD)'
	@echo 'make build-deps    installs the packages that the build needs'
	@echo 'make demo          installs missing packages, builds, runs programs under libaccel'
	@echo
	@echo 'make test          installs missing packages, builds, runs the test suite (a quarter of an hour)'
	@echo 'make test-all      the same, with the long tests (half an hour)'
	@echo 'make check         builds and runs the test suite, installs nothing; CHECK=tests/... chooses tests'
	@echo 'make asan          the suite under AddressSanitizer and UndefinedBehaviorSanitizer'
	@echo 'make tsan          the tests with threads under ThreadSanitizer'
	@echo 'make sanitize      both'
	@echo 'make test-served   tests of results, with a server that has the test GPU in place of each program (half an hour; SERVED=... some)'
	@echo 'make faults        makes each CUDA call of each operation fail, and prints a table (half an hour)'
	@echo 'make clang         builds all with clang, and runs the part of the suite that depends on the compiler'
	@echo 'make coverage      the suite with a build that counts, and which branches of shim/ and gpu/cuda/ no test takes (an hour)'
	@echo 'make mutants       changes lines of the sources, one at a time, and says which changes no test notices'
	@echo 'make mutants-kept  some that tests have noticed before: each is to be noticed again'
	@echo 'make fuzz          runs clang'\''s libFuzzer on settings, config files, calibrations and arguments'
	@echo 'make regress       runs real programs without a GPU and with the test GPU, and prints a table of their numbers'
	@echo 'make test-arm64    compiles for AArch64, and runs some tests and Debian'\''s NumPy, Octave and R of arm64 under qemu-user (docs/testing.md)'
	@echo 'make browser       shows the pages of accel report to headless Chromium, in light and dark'
	@echo 'make engines       fetches Dask, Ray, Spark and MPICH, and runs jobs on them (1.2 GB, some minutes)'
	@echo 'make gallery       runs the examples of scikit-learn, SciPy, statsmodels, R and Octave with and without libaccel (hours; make gallery-sample: some)'
	@echo 'make suites        runs all tests of NumPy, scipy.linalg and scikit-learn, with and without libaccel (an hour)'
	@echo 'make regret        calibrates, times every routine, prints the time that decisions lose (a quarter of an hour)'
	@echo 'make bench         measures the cost of the interception'
	@echo 'make gpu-bundle    packs the files of scripts/gpu-proof for a machine with a GPU and no network'
	@echo 'make format        formats the sources; make format-check checks them'
	@echo
	@echo 'Settings, as NAME=value:'
	@echo '  BUILD=$(BUILD)                 where to build'
	@echo '  CROSS                       what the tools'\'' names begin with, to build for another machine: aarch64-linux-gnu-'
	@echo '  CC CFLAGS CPPFLAGS LDFLAGS  the compiler and its flags; WERROR=-Werror makes warnings errors'
	@echo '  JOBS=$(JOBS)                      compilers at a time when make builds for a test'
	@echo '  CUDA_HOME CUDA_INCLUDE      a CUDA Toolkit, for nvcc; its headers, which tests alone need'
	@echo '  NVCC OWN_ARCHITECTURES      the compiler of gpu/own/, empty: these kernels are left out; the devices that they are compiled for'
	@echo '  JSON_C_LIBS                 how accel is linked with json-c ($(JSON_C_LIBS))'
	@echo '  DESTDIR PREFIX LIBDIR BINDIR UNITDIR, or by the names of GNU: prefix exec_prefix libdir bindir datarootdir docdir mandir unitdir'
	@echo '  OPS_EXTRA                   folders of further libraries to build in, such as tests/toy'
	@echo '  OLD_GLIBC=1                 the library and the tool run with glibc 2.28 and newer ones'
	@echo '  DISTDIR                     folder of make dist'\''s archive and of packages (.)'
	@echo '  SANITIZE                    sanitizers to compile with: address, undefined, thread'
	@echo '  CHECK TEST_LONG=1           make check: these tests; all tests in their long form'
	@echo '  REGRESS FAULTS PACKAGES ENGINES   make regress, faults, check-packages, engines: these tests'
	@echo '  GALLERY GALLERY_JOBS GALLERY_LIMIT   make gallery: names or patterns; so many at a time; seconds for each'
	@echo '  MUTANTS MUTANTS_SEED MUTANTS_KEPT_SEED MUTATED   make mutants, mutants-kept: how many; the seeds; of these sources alone'
	@echo '  FUZZ_SECONDS FUZZ_SEED FUZZ_BUILD   make fuzz: seconds for each target; the seed, 0: random; the build folder'
