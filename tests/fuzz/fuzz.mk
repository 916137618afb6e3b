# Fuzzers: `make fuzz` lets clang's libFuzzer look for inputs; what it has found is replayed by the ordinary tests.

FUZZ_SECONDS ?= 60
FUZZ_SEED    ?= 0
FUZZ_BUILD   ?= build-fuzz
FUZZ_FLAGS   := -fsanitize=address,undefined -fno-sanitize-recover=undefined

FUZZ_TARGETS := settings config model_file adapter
FUZZ_OBJECTS_settings   := shim/names $(addprefix dispatch/,settings complaints spelling config pattern ranks output held_signals log_file say text)
FUZZ_OBJECTS_config     := $(FUZZ_OBJECTS_settings)
FUZZ_OBJECTS_model_file := shim/names gpu/svd_choice $(addprefix dispatch/,decide model model_file grown held_signals shape lapack_rules pattern text)
FUZZ_OBJECTS_adapter    := $(addprefix shim/,names adapter row_major invoke_x86_64) \
                           $(addprefix dispatch/,decide model shape lapack_rules pattern sites log output held_signals log_file ranks say text)

define fuzz_target
$(TESTS)/replay_$(1): tests/fuzz/$(1).c tests/fuzz/replay.c tests/fuzz/fuzz.h $(patsubst %,$(BUILD)/%.o,$(FUZZ_OBJECTS_$(1))) $(TESTS)/.made
	$$(CC) $$(TEST_FLAGS) -o $$@ $$(filter %.c %.o,$$^) -lm -lpthread
$(BUILD)/fuzz/$(1): tests/fuzz/$(1).c tests/fuzz/fuzz.h $(patsubst %,$(BUILD)/%.o,$(FUZZ_OBJECTS_$(1)))
	@mkdir -p $$(@D)
	$$(CC) $$(TEST_FLAGS) $(FUZZ_FLAGS) -fsanitize=fuzzer -o $$@ $$(filter %.c %.o,$$^) -lm -lpthread
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
