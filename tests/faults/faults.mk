# Faults, by operation: `make faults` runs the tests of this folder (FAULTS=... some of them,
# FAULTS_SHARE=k/n each n-th operation from the k-th on) and prints a table. `make check` runs those
# of tests/gpu and tests/ops/lapack.

FAULTS ?=
.PHONY: faults
faults:
	scripts/install-deps build test
	$(MAKE) -j$(JOBS) all test-programs testgpu
	BUILD=$(BUILD) tests/faults/run $(FAULTS)
