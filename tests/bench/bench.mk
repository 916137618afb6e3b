# The programs that tests/bench/bench times, built into $(BUILD)/bench.
BENCH := $(BUILD)/bench
BENCH_PROGRAMS := $(addprefix $(BENCH)/,call_dgemm call_dgemm_local libcall_dgemm.so spawn pack_rates schedules)
BENCH_CC = $(CC) $(WARN) -O2

bench-programs: $(BENCH_PROGRAMS) $(addprefix $(TESTS)/,repeated steps served_times put_model)
.PHONY: bench-programs

$(BENCH):
	mkdir -p $@

$(BENCH)/call_dgemm: tests/bench/call_main.c tests/bench/call_dgemm.c tests/bench/call_dgemm.h | $(BENCH)
	$(BENCH_CC) $(filter %.c,$^) -o $@ -lblas

# No BLAS among its own libraries: it comes with the one it opens.
$(BENCH)/call_dgemm_local: tests/bench/call_main.c tests/bench/call_dgemm.h | $(BENCH)
	$(BENCH_CC) -DLOCAL_SCOPE '-Wl,-rpath,$$ORIGIN' $< -o $@ -ldl

$(BENCH)/libcall_dgemm.so: tests/bench/call_dgemm.c tests/bench/call_dgemm.h | $(BENCH)
	$(BENCH_CC) -fPIC -shared $< -o $@ -lblas

$(BENCH)/spawn: tests/bench/spawn.c | $(BENCH)
	$(BENCH_CC) $< -o $@

$(BENCH)/pack_rates: tests/bench/pack_rates.c $(LAYERS) | $(BENCH)
	$(BENCH_CC) -I. -o $@ $^

$(BENCH)/schedules: tests/bench/schedules.c tests/lib/schedule_cases.c tests/lib/split_cases.c $(LAYERS) | $(BENCH)
	$(BENCH_CC) -I. -I$(BUILD) -o $@ $^ -lm -ldl -lpthread
