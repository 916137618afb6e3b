# Which branches no test takes: the suite with a build that counts them. An hour. CHECK=... for some
# of it. make mutants reads which test has run which line.
COVERAGE := build-coverage
# Not with such a build: what it exports, needs and how many instructions a call takes, and what
# builds others or no product at all.
COVERAGE_CHECK = $(filter-out tests/unit/run tests/style/run tests/report/test_interface.py tests/shim/test_entry_cost.py \
    tests/shim/test_footprint.py tests/suites/% tests/docs/% tests/proof/% tests/ci/% tests/build/%,$(CHECK))
.PHONY: coverage
coverage:
	scripts/install-deps build test
	$(call fetched_for,$(COVERAGE))
	$(CC) -O1 -fPIC -c -o $(COVERAGE)/ends.o tests/coverage/ends.c
	$(MAKE) -j$(JOBS) BUILD=$(COVERAGE) CUDA_INCLUDE=$(CUDA_INCLUDE) NVCC=$(NVCC) CFLAGS='-O0 -g --coverage' \
	    LDFLAGS='-Wl,--whole-archive -lgcov -Wl,--no-whole-archive -Wl,--wrap=_exit,--wrap=abort $(abspath $(COVERAGE))/ends.o' OWN_ARCHITECTURES=80 all test-programs testgpu
	BUILD=$(COVERAGE) tests/coverage/run $(if $(filter file,$(origin CHECK)),$(UNIT_SOURCES)) $(COVERAGE_CHECK)
