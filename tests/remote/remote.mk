# Tests whose programs have the test GPU in their process, with a server (accel serve) that owns it
# instead: what is right there is right here. SERVED=... for some of them, TEST_LONG=1 for their
# long forms. tests/lib/served.py says which programs it concerns. Trainings are no server's.
SERVED ?= tests/reference/test_blas.py tests/reference/test_lapack.py tests/ops/test_calls.py tests/ops/lapack/test_random_lapack.py \
    $(wildcard tests/gpu/test_storms*.py) $(filter-out tests/programs/test_svm_%,$(wildcard tests/programs/test_*.py)) tests/regress/test_printed.py
.PHONY: test-served
test-served:
	scripts/install-deps build test
	$(MAKE) -j$(JOBS) all test-programs testgpu
	BUILD=$(BUILD) TEST_LONG=$(TEST_LONG) TEST_SERVED=1 prove -j2 --timer $(SERVED)
