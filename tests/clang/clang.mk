# The sources and the suite's programs by clang, in a build folder of their own, and what of the
# suite depends on what a compiler makes of them. CHECK=... for other tests.

CLANG_CHECK := $(if $(filter file,$(origin CHECK)),tests/unit/run tests/shim/test_behaviour.py tests/shim/test_entry_cost.py tests/ops/test_calls.py,$(CHECK))

.PHONY: clang
clang:
	scripts/install-deps build test clang
	$(call fetched_for,build-clang)
	$(MAKE) -j$(JOBS) BUILD=build-clang CC=clang CUDA_INCLUDE=$(CUDA_INCLUDE) NVCC=$(NVCC) OWN_ARCHITECTURES=80 all test-programs testgpu
	BUILD=build-clang prove -j2 --timer $(CLANG_CHECK)
