# Stand-ins for the CUDA libraries, for machines without a GPU: tests only, never installed.
# Usable on its own: make -f tests/testgpu/testgpu.mk testgpu

BUILD ?= build
CUDA_INCLUDE ?= /usr/local/cuda/include
# It stands in for the libraries of CUDA 13, which older headers do not describe:
# scripts/install-deps has fetched newer ones then.
TESTGPU_CUDA_INCLUDE ?= $(if $(shell grep -sE '^.define CUDA_VERSION 1[3-9]' $(CUDA_INCLUDE)/cuda.h),$(CUDA_INCLUDE),$(BUILD)/cuda/include)
WARN ?= -std=c11 -Wall -Wextra
# gcc's word, whatever CC is: newer clangs do not know it.
TESTGPU_LIBDIR := /usr/lib/$(shell $(CROSS)gcc -print-multiarch)
OPENBLAS_STATIC ?= $(firstword $(wildcard $(TESTGPU_LIBDIR)/openblas-pthread/libopenblas.a \
    $(TESTGPU_LIBDIR)/libopenblas.a /usr/lib64/libopenblas.a))

TESTGPU_SRC := tests/testgpu
TESTGPU_CFLAGS = $(WARN) -O2 -g $(ARCH_FLAGS_$(ARCH)) -fPIC -pthread -D_GNU_SOURCE -isystem $(TESTGPU_CUDA_INCLUDE) $(CPPFLAGS) $(TESTGPU_EXTRA)
TESTGPU_LDFLAGS = $(LDFLAGS) -shared -pthread -Wl,-z,defs -Wl,-z,nodelete -Wl,--as-needed -Wl,-Bsymbolic \
    -Wl,--exclude-libs,ALL $(TESTGPU_EXTRA)
TESTGPU_HEADERS := $(wildcard $(TESTGPU_SRC)/*.h)

TESTGPU_PARTS := $(filter-out test_%,$(basename $(notdir $(sort $(wildcard $(TESTGPU_SRC)/*.c)))))
# What computes, for cuBLAS and for cuSOLVER.
TESTGPU_COMPUTES := matrix openblas openblas_gemv
TESTGPU_CUDA := $(patsubst %,$(BUILD)/testgpu/obj/%.o,$(filter-out cublas_% solver_% cufft_% $(TESTGPU_COMPUTES),$(TESTGPU_PARTS)))
# The kernels of gpu/own/, and some with mistakes for the test GPU's own tests. They are
# instrumented: each access to memory calls a function of kernel_memory.c; objcopy gives it a name
# that no sanitizer has. Vectors would make one access of several.
TESTGPU_CXX ?= $(CROSS)g++
TESTGPU_KERNELS := $(patsubst %.cu,$(BUILD)/testgpu/obj/%.cu.o,$(wildcard gpu/own/*.cu $(TESTGPU_SRC)/*.cu))
TESTGPU_CXXFLAGS = -std=c++14 -Wall -Wextra $(WERROR) -O2 -g -fPIC -fno-exceptions -fno-rtti -fno-gnu-unique -fno-tree-vectorize $(ARCH_FLAGS_$(ARCH)) -I. $(CPPFLAGS) \
    -fsanitize=thread,bounds --param tsan-distinguish-volatile=1 --param tsan-instrument-func-entry-exit=0
TESTGPU_CUBLAS_PARTS := $(filter cublas_%,$(TESTGPU_PARTS)) $(TESTGPU_COMPUTES)
TESTGPU_CUBLAS := $(TESTGPU_CUBLAS_PARTS:%=$(BUILD)/testgpu/obj/%.o)
TESTGPU_CUBLAS_12 := $(TESTGPU_CUBLAS_PARTS:%=$(BUILD)/testgpu-cuda12/obj/%.o)
TESTGPU_SOLVER_PARTS := $(filter solver_%,$(TESTGPU_PARTS)) $(TESTGPU_COMPUTES)
TESTGPU_SOLVER := $(TESTGPU_SOLVER_PARTS:%=$(BUILD)/testgpu/obj/%.o)
TESTGPU_SOLVER_12 := $(TESTGPU_SOLVER_PARTS:%=$(BUILD)/testgpu-cuda12/obj/%.o)
TESTGPU_CUFFT_PARTS := $(filter cufft_%,$(TESTGPU_PARTS))
TESTGPU_CUFFT := $(TESTGPU_CUFFT_PARTS:%=$(BUILD)/testgpu/obj/%.o)
TESTGPU_CUFFT_12 := $(TESTGPU_CUFFT_PARTS:%=$(BUILD)/testgpu-cuda12/obj/%.o)
TESTGPU_TESTS := $(patsubst $(TESTGPU_SRC)/%.c,$(BUILD)/testgpu/obj/%.o,$(wildcard $(TESTGPU_SRC)/test_*.c))

.PHONY: testgpu test-testgpu
testgpu: $(BUILD)/testgpu/libcuda.so.1 $(BUILD)/testgpu/libcublas.so.13 \
    $(BUILD)/testgpu/libcusolver.so.12 $(BUILD)/testgpu/libcufft.so.12 \
    $(BUILD)/testgpu-cuda12/libcuda.so.1 $(BUILD)/testgpu-cuda12/libcublas.so.12 \
    $(BUILD)/testgpu-cuda12/libcusolver.so.11 $(BUILD)/testgpu-cuda12/libcufft.so.11

$(BUILD)/testgpu/obj/%.o: $(TESTGPU_SRC)/%.c $(TESTGPU_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(TESTGPU_CFLAGS) -DTESTGPU_CUBLAS_MAJOR=13 -c -o $@ $<

# These run on the stacks of a kernel's threads. Sanitizers do not know those stacks.
$(BUILD)/testgpu/obj/kernel.o $(BUILD)/testgpu/obj/kernel_memory.o: TESTGPU_EXTRA :=

$(BUILD)/testgpu/obj/%.cu.o: %.cu $(wildcard gpu/own/*.h gpu/own/*.cuh) $(TESTGPU_HEADERS)
	@mkdir -p $(@D)
	$(TESTGPU_CXX) $(TESTGPU_CXXFLAGS) -x c++ -c -o $@.new $<
	$(CROSS)objcopy $$($(CROSS)nm -u $@.new | sed -n 's/.* U __\([tu][a-z]*san_.*\)/--redefine-sym __\1=testgpu_\1/p') $@.new $@
	rm $@.new

$(BUILD)/testgpu-cuda12/obj/%.o: $(TESTGPU_SRC)/%.c $(TESTGPU_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(TESTGPU_CFLAGS) -DTESTGPU_CUBLAS_MAJOR=12 -c -o $@ $<

$(BUILD)/testgpu/libcuda.so.1: $(TESTGPU_CUDA) $(TESTGPU_KERNELS) $(TESTGPU_SRC)/libcuda.map
	$(CC) $(TESTGPU_LDFLAGS) -Wl,-soname,libcuda.so.1 \
	    -Wl,--version-script=$(TESTGPU_SRC)/libcuda.map -o $@.new $(TESTGPU_CUDA) $(TESTGPU_KERNELS) -lm
	mv $@.new $@

$(BUILD)/testgpu-cuda12/libcuda.so.1: $(BUILD)/testgpu/libcuda.so.1
	@mkdir -p $(@D)
	cp $< $@.new
	mv $@.new $@

# The wrapped getenv keeps the stand-in's own BLAS from reading the program's settings, the wrapped
# gemv from reading behind x. openblas.o is linked last, so that it is the first to be ended.
define testgpu_link
	@test -n "$(OPENBLAS_STATIC)" || { echo "libopenblas.a not found: set OPENBLAS_STATIC" >&2; false; }
	$(CC) $(TESTGPU_LDFLAGS) -Wl,-soname,$(@F) -Wl,-rpath,'$$ORIGIN' -Wl,--enable-new-dtags \
	    -Wl,--wrap=getenv -Wl,--wrap=cgemv_ -Wl,--wrap=zgemv_ -Wl,--version-script=$(filter %.map,$^) \
	    -o $@.new $(filter-out %/openblas.o,$(filter %.o,$^)) -Wl,--push-state,--no-as-needed $(filter %/libcuda.so.1,$^) \
	    -Wl,--pop-state $(OPENBLAS_STATIC) -lm $(filter %/openblas.o,$^)
	mv $@.new $@
endef

$(BUILD)/testgpu/libcublas.so.13: $(TESTGPU_CUBLAS) $(BUILD)/testgpu/libcuda.so.1 $(TESTGPU_SRC)/libcublas.map
	$(testgpu_link)

$(BUILD)/testgpu-cuda12/libcublas.so.12: $(TESTGPU_CUBLAS_12) $(BUILD)/testgpu-cuda12/libcuda.so.1 $(TESTGPU_SRC)/libcublas.map
	$(testgpu_link)

$(BUILD)/testgpu/libcusolver.so.12: $(TESTGPU_SOLVER) $(BUILD)/testgpu/libcuda.so.1 $(TESTGPU_SRC)/libcusolver.map
	$(testgpu_link)

$(BUILD)/testgpu-cuda12/libcusolver.so.11: $(TESTGPU_SOLVER_12) $(BUILD)/testgpu-cuda12/libcuda.so.1 $(TESTGPU_SRC)/libcusolver.map
	$(testgpu_link)

# Without a BLAS.
define testgpu_link_alone
	$(CC) $(TESTGPU_LDFLAGS) -Wl,-soname,$(@F) -Wl,-rpath,'$$ORIGIN' -Wl,--enable-new-dtags \
	    -Wl,--version-script=$(filter %.map,$^) -o $@.new $(filter %.o,$^) -Wl,--push-state,--no-as-needed \
	    $(filter %/libcuda.so.1,$^) -Wl,--pop-state -lm
	mv $@.new $@
endef

$(BUILD)/testgpu/libcufft.so.12: $(TESTGPU_CUFFT) $(BUILD)/testgpu/libcuda.so.1 $(TESTGPU_SRC)/libcufft.map
	$(testgpu_link_alone)

$(BUILD)/testgpu-cuda12/libcufft.so.11: $(TESTGPU_CUFFT_12) $(BUILD)/testgpu-cuda12/libcuda.so.1 $(TESTGPU_SRC)/libcufft.map
	$(testgpu_link_alone)

$(BUILD)/tests/test_testgpu: $(TESTGPU_TESTS) $(BUILD)/testgpu/libcuda.so.1 $(BUILD)/testgpu/libcublas.so.13 \
    $(BUILD)/testgpu/libcusolver.so.12 $(BUILD)/testgpu/libcufft.so.12
	@mkdir -p $(@D)
	$(CC) -pthread $(LDFLAGS) $(TESTGPU_EXTRA) -o $@ $(TESTGPU_TESTS) -L$(BUILD)/testgpu -l:libcublas.so.13 \
	    -l:libcusolver.so.12 -l:libcufft.so.12 -l:libcuda.so.1 -Wl,-rpath,'$$ORIGIN/../testgpu' -rdynamic -lcmocka -lm -ldl

test-testgpu: $(BUILD)/tests/test_testgpu
	CMOCKA_MESSAGE_OUTPUT=TAP $<
