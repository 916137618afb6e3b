# What the decisions cost: a recording of times (make regret), and its replay.

REGRET := $(BUILD)/regret

regret-programs: $(REGRET)/record $(REGRET)/replay
.PHONY: regret-programs regret

$(REGRET)/record: tests/regret/record.c $(BUILD)/tool.a $(LAYERS)
	@mkdir -p $(@D)
	$(CC) $(WARN) $(HEADERS_TOO) -O2 -I. -I$(BUILD) $(SANITIZE_FLAGS) $(CPPFLAGS) $(LDFLAGS) -o $@ $(filter %.c %.o %.a,$^) -lm -ldl -lpthread
$(REGRET)/replay: tests/regret/replay.c $(LAYERS)
	@mkdir -p $(@D)
	$(CC) $(WARN) $(HEADERS_TOO) -O2 -I. -I$(BUILD) $(SANITIZE_FLAGS) $(CPPFLAGS) $(LDFLAGS) -o $@ $(filter %.c %.a,$^) -lm -ldl -lpthread

# Calibrates, records and replays: on the GPU of this machine, or else on the test GPU as three
# devices. An hour at most, on a machine that has nothing else to do; the recordings are kept.
regret:
	scripts/install-deps build test
	$(MAKE) -j$(JOBS) all regret-programs testgpu
	tests/regret/record-all
