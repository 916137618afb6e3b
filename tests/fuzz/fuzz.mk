# Fuzzers: `make fuzz` lets clang's libFuzzer look for inputs; what it has found is replayed by the
# ordinary tests.

FUZZ_SECONDS ?= 60
FUZZ_SEED    ?= 0
FUZZ_BUILD   ?= build-fuzz
FUZZ_FLAGS   := -fsanitize=address,undefined -fno-sanitize-recover=undefined

FUZZ_TARGETS := settings config calibration parse

define fuzz_target
$(TESTS)/replay_$(1): $(call of_obj,tests/fuzz/$(1).c tests/fuzz/replay.c) $(LAYERS) | $(TESTS)
	$$(CC) $$(TEST_FLAGS) -o $$@ $$(filter %.o %.a,$$^) -lm -ldl -lpthread
$(BUILD)/fuzz/$(1): tests/fuzz/$(1).c tests/fuzz/fuzz.h $(LAYERS)
	@mkdir -p $$(@D)
	$$(CC) $$(TEST_FLAGS) $(FUZZ_FLAGS) -fsanitize=fuzzer -o $$@ $$(filter %.c %.a,$$^) -lm -ldl -lpthread
endef
$(foreach target,$(FUZZ_TARGETS),$(eval $(call fuzz_target,$(target))))

FUZZ_PROGRAMS := $(addprefix $(TESTS)/replay_,$(FUZZ_TARGETS))
test-programs: $(FUZZ_PROGRAMS)

.PHONY: fuzz fuzz-programs
fuzz-programs: $(addprefix $(BUILD)/fuzz/,$(FUZZ_TARGETS))
fuzz:
	scripts/install-deps fuzz
	$(MAKE) -j$(JOBS) BUILD=$(FUZZ_BUILD) CC=clang CFLAGS='-O1 -g -fsanitize=fuzzer-no-link $(FUZZ_FLAGS)' fuzz-programs
	FUZZ_SECONDS=$(FUZZ_SECONDS) FUZZ_SEED=$(FUZZ_SEED) tests/fuzz/run $(addprefix $(FUZZ_BUILD)/fuzz/,$(FUZZ_TARGETS))
