# Mutants: whether the tests notice a change of one line of the sources. An hour for some dozens.
MUTANTS      ?= 40
MUTANTS_SEED ?= 1
MUTATED      ?=
.PHONY: mutants
mutants:
	scripts/install-deps build test mutants
	$(MAKE) -j$(JOBS) all test-programs testgpu
	BUILD=$(BUILD) PYTHONPATH=$(BUILD)/mutator tests/mutants/run $(MUTANTS_SEED) $(MUTANTS) $(MUTATED)
