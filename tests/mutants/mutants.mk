# Mutants: whether the tests notice a change of one line of the sources. An hour for some dozens.
MUTANTS      ?= 40
MUTANTS_SEED ?= 1
MUTATED      ?=
.PHONY: mutants
mutants:
	scripts/install-deps build test mutants
	$(MAKE) -j$(JOBS) all test-programs testgpu
	BUILD=$(BUILD) PYTHONPATH=$(BUILD)/mutator tests/mutants/run $(MUTANTS_SEED) $(MUTANTS) $(MUTATED)

# Some of those that tests have killed before: each is to be killed again.
MUTANTS_KEPT_SEED ?= $(shell git rev-list --count HEAD 2>/dev/null || echo 1)
.PHONY: mutants-kept
mutants-kept:
	scripts/install-deps build test
	$(MAKE) -j$(JOBS) all test-programs testgpu
	BUILD=$(BUILD) tests/mutants/run --kept $(MUTANTS_KEPT_SEED) $(MUTANTS)
