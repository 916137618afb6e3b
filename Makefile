# libaccel. See README.md; `make help` lists the targets.
#
# CUDA is needed for its headers alone: it is opened at run time.

BUILD     ?= build
# Where make install puts things, below DESTDIR, by the names of GNU's standards or in capitals.
PREFIX      ?= /usr/local
prefix      ?= $(PREFIX)
exec_prefix ?= $(prefix)
BINDIR      ?= $(exec_prefix)/bin
bindir      ?= $(BINDIR)
LIBDIR      ?= $(exec_prefix)/lib
libdir      ?= $(LIBDIR)
datarootdir ?= $(prefix)/share
docdir      ?= $(datarootdir)/doc/libaccel
ifeq ($(origin CC),default)
CC := gcc
endif
NVCC      := $(shell command -v nvcc 2>/dev/null)
CUDA_HOME ?= $(firstword $(patsubst %/bin/,%,$(dir $(NVCC))) $(wildcard /usr/local/cuda))
# Headers of the toolkit, or those that scripts/install-deps has fetched.
CUDA_INCLUDE ?= $(firstword $(wildcard $(CUDA_HOME)/include) $(wildcard $(BUILD)/cuda/include))

# Empty for a compiler that nobody has seen, whose new warnings must not stop the build.
WERROR   ?= -Werror
WARN     := -std=c11 -Wall -Wextra $(WERROR)
CFLAGS   ?= -O2 -g
# Of all that is compiled, and of all that is linked, the tests' programs too.
CPPFLAGS ?=
LDFLAGS  ?=
# Compilers at a time, of what is built for a test.
JOBS     ?= $(shell nproc)
# Static thread-local storage: the library is loaded at start, and an access costs one instruction.
SHIM_CFLAGS := $(WARN) $(CFLAGS) -fPIC -fvisibility=hidden -ftls-model=initial-exec \
               -fno-semantic-interposition -pthread
# See tests/sanitize/sanitize.mk.
SANITIZE       ?=
SANITIZE_FLAGS := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer)
INCLUDES := -I. -I$(BUILD)
SHIM_LDFLAGS := -shared -Wl,-soname,libaccel.so -Wl,-z,relro -Wl,-z,now -Wl,-z,defs \
                -Wl,-z,noexecstack -Wl,--as-needed

# The layers, from the lowest up: docs/architecture.md.
sources           = $(wildcard $(foreach folder,$(1),$(folder)/*.c $(folder)/*.S))
BASE_SOURCES     := $(call sources,base)
GPU_SOURCES      := $(call sources,gpu gpu/cuda)
OPS_SOURCES      := $(call sources,ops ops/blas ops/lapack)
DISPATCH_SOURCES := $(call sources,report dispatch dispatch/cost)
SHIM_SOURCES     := $(call sources,shim shim/elf shim/arch/x86_64)
CPU_REF_SOURCES  := $(call sources,cpu_ref)
object_of         = $(patsubst %,$(BUILD)/%.o,$(basename $(1)))
# Of cpu_ref/, what checks results while programs run; the rest is for tests.
VERIFY_SOURCES   := $(patsubst %,cpu_ref/%.c,apply equation judge verify verify_lapack verify_test verify_factored \
                      verify_qr verify_eigen verify_singular)
OBJECTS := $(call object_of,$(BASE_SOURCES) $(GPU_SOURCES) $(OPS_SOURCES) $(DISPATCH_SOURCES) $(SHIM_SOURCES) $(VERIFY_SOURCES))
# All objects that export nothing: the tool and the tests take from here what they use.
LAYERS  := $(BUILD)/layers.a
EXPORTS := $(addprefix $(BUILD)/shim/,shim.o elf/hooks.o arch/x86_64/entry.o)

.PHONY: all build-deps demo test test-all check bench install clean help format format-check
.DEFAULT_GOAL := all

all: $(BUILD)/libaccel.so $(BUILD)/accel

# $(call flags,NAME,TEXT): NAME.flags has that text; what depends on it is made anew when the text changes. The first one is old: there
# is nothing yet that was made otherwise.
same = $(and $(findstring x$(1)x,x$(2)x),$(findstring x$(2)x,x$(1)x))
define flags
$(BUILD)/$(1).flags: export FLAGS_TEXT = $(strip $(2))
$(BUILD)/$(1).flags: $(if $(call same,$(file <$(BUILD)/$(1).flags),$(strip $(2))),,changed-flags)
	@mkdir -p $$(@D); [ -e $$@ ] || old='-d @0'; printf '%s\n' "$$$$FLAGS_TEXT" >$$@; touch $$$$old $$@
endef
.PHONY: changed-flags
$(eval $(call flags,compiler,$(CC) $(CFLAGS) $(CPPFLAGS) $(SANITIZE)))
$(eval $(call flags,headers,$(realpath $(CUDA_INCLUDE))))
$(eval $(call flags,link,$(LDFLAGS)))

$(BUILD)/libaccel.so: $(OBJECTS) $(BUILD)/symbols.map $(BUILD)/link.flags
	$(CC) $(CFLAGS) $(LDFLAGS) $(SHIM_LDFLAGS) $(SANITIZE_FLAGS) -Wl,--version-script=$(BUILD)/symbols.map -o $@.new $(OBJECTS) -ldl -lpthread
	mv $@.new $@

$(BUILD)/%.o: %.c $(BUILD)/compiler.flags
	@mkdir -p $(@D)
	$(CC) $(SHIM_CFLAGS) $(SANITIZE_FLAGS) $(INCLUDES) $(CPPFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/%.o: %.S $(BUILD)/compiler.flags
	@mkdir -p $(@D)
	$(CC) $(INCLUDES) $(CPPFLAGS) -MMD -MP -c -o $@ $<

LAYER_OBJECTS := $(sort $(filter-out $(EXPORTS),$(OBJECTS)) $(call object_of,$(CPU_REF_SOURCES)))
$(eval $(call flags,layers,$(notdir $(LAYER_OBJECTS))))
$(LAYERS): $(LAYER_OBJECTS) $(BUILD)/layers.flags
	rm -f $@
	$(AR) rcsT $@ $(LAYER_OBJECTS)

# CUDA's headers are seen by these alone.
$(call object_of,$(GPU_SOURCES) $(OPS_SOURCES)): INCLUDES += -isystem $(CUDA_INCLUDE)
$(call object_of,$(GPU_SOURCES) $(OPS_SOURCES)): $(BUILD)/headers.flags | cuda-headers

# Square roots are instructions: libm is not needed for them. Loops over columns are worth vectors.
$(call object_of,$(VERIFY_SOURCES)): SHIM_CFLAGS += -O3 -fno-math-errno

.PHONY: cuda-headers
cuda-headers:
	@test -f "$(CUDA_INCLUDE)/cuda.h" -a -f "$(CUDA_INCLUDE)/cublas_v2.h" -a -f "$(CUDA_INCLUDE)/cusolverDn.h" || { \
	  echo "make: no CUDA headers (cuda.h, cublas_v2.h, cusolverDn.h); set CUDA_HOME, or run scripts/install-deps build" >&2; exit 1; }

TABLES := ops/blas/blas.def ops/lapack/lapack.def ops/manglings.def
$(BUILD)/symbols.map: symbols.map $(TABLES)
	@mkdir -p $(@D)
	$(CC) -E -P -x c -I. -o $@ $<

# Entry numbers in the order of the names: see ops/names.c.
$(BUILD)/names_sorted.inc: $(TABLES)
	@mkdir -p $(@D)
	printf '#include "ops/manglings.def"\n#define ROUTINE(name, NAME, family, dtype, row_major, flops, args) ACCEL_MANGLINGS(N, name, NAME)\n#define LAPACK(name, NAME, family, dtype, flops, args) ACCEL_LAPACK_MANGLINGS(N, name, NAME)\n#define N(abi, width, trust, symbol, sibling) symbol;\n#include "ops/blas/blas.def"\n' \
	  | $(CC) -E -P -x c -I. - | tr ';' '\n' | sed 's/[[:space:]]//g' | grep . \
	  | awk '{print $$1, NR - 1}' | LC_ALL=C sort -k1,1 | awk '{print $$2 ","}' > $@
$(BUILD)/ops/names.o: $(BUILD)/names_sorted.inc

-include $(patsubst %.o,%.d,$(OBJECTS) $(call object_of,$(CPU_REF_SOURCES)))

include tool/tool.mk

# ---- Tests, benchmark, demo ----

include tests/tests.mk
include tests/testgpu/testgpu.mk
include tests/bench/bench.mk
include tests/sanitize/sanitize.mk

$(TEST_PROGRAMS) $(LAPACK_PROGRAMS) $(FAULT_PROGRAMS) $(PROOF_PROGRAMS) $(REGRET)/replay $(REGRET)/record $(FUZZ_PROGRAMS): \
    $(BUILD)/compiler.flags $(BUILD)/link.flags
$(TESTGPU_CUDA) $(TESTGPU_CUBLAS) $(TESTGPU_CUBLAS_12) $(TESTGPU_SOLVER) $(TESTGPU_SOLVER_12) $(TESTGPU_TESTS): $(BUILD)/compiler.flags

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

# Programs of the test suite and some more, and a table of what they compute. REGRESS=... for some of it.
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

install: all
	install -d $(DESTDIR)$(libdir) $(DESTDIR)$(bindir) $(DESTDIR)$(docdir)
	install -m 755 $(BUILD)/libaccel.so $(DESTDIR)$(libdir)/libaccel.so
	install -m 755 $(BUILD)/accel $(DESTDIR)$(bindir)/accel
	install -m 644 README.md LICENSE $(DESTDIR)$(docdir)/

FORMATTED = $(shell git ls-files '*.c' '*.h' 2>/dev/null)
format:
	clang-format -i $(FORMATTED)
format-check:
	clang-format --dry-run -Werror $(FORMATTED)

clean:
	rm -rf $(BUILD)

help:
	@echo 'make            builds $(BUILD)/libaccel.so and $(BUILD)/accel (needs the CUDA headers)'
	@echo 'make demo       installs what is missing, builds, runs a program under libaccel'
	@echo 'make test       installs what is missing, builds, runs the test suite (a quarter of an hour)'
	@echo 'make test-all   the same with what takes long (half an hour)'
	@echo 'make check      builds, and runs the test suite without installing anything'
	@echo 'make sanitize   the suite, in part, under AddressSanitizer and UndefinedBehaviorSanitizer'
	@echo 'make fuzz       clang'\''s libFuzzer on settings, config files, calibrations and arguments (FUZZ_SECONDS=60 each)'
	@echo 'make faults     each CUDA call made to fail, by routine family, and a table (some minutes)'
	@echo 'make regress    real programs without a GPU and with the test GPU, and a table of their numbers'
	@echo 'make suites     all of NumPy, scipy.linalg and scikit-learn tests, with and without libaccel (an hour)'
	@echo 'make bench      what the interception costs'
	@echo 'make gpu-bundle packs what scripts/gpu-proof takes along to a machine with a GPU and no network'
	@echo 'make install    PREFIX=$(PREFIX) LIBDIR=$(LIBDIR) BINDIR=$(BINDIR) DESTDIR='
	@echo 'make clean'
