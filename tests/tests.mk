# What the test suite builds. `make check` runs it all under prove.

TESTS      := $(BUILD)/tests
of_obj   = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
of_obj64 = $(patsubst %.c,$(BUILD)/obj64/%.o,$(1))
# Headers are the compiler's to find: it writes them beside the program, or the object where a program has several sources.
HEADERS_TOO = -MMD -MP -MT $@
TEST_FLAGS  = -std=gnu11 -Wall -Wextra $(WERROR) -O2 -g -I. -Itests/shim -I$(BUILD) $(HEADERS_TOO) $(SANITIZE_FLAGS) $(CPPFLAGS) $(LDFLAGS)

UNIT_TESTS    := test_pack test_text test_settings test_config test_pattern test_ranks test_report test_decide test_model test_nominal test_calibration test_names test_parse test_gpu test_cuda_api test_find_cuda test_residual test_verify test_number test_tally test_contention test_linker test_forks test_file test_objects test_lane test_pool test_triangles
UNIT_TESTS    += test_two_devices test_shape
TEST_PROGRAMS := $(addprefix $(TESTS)/,random_calls random_calls64 liblacking.so liblacking64.so scopes forks forks_anytime signals steps put_model damage lookups start_up libearly.so turmoil handlers surroundings \
                   bad_arguments bad_arguments_longjmp own_memory repeated cuda_program \
                   libcaller_lp64.so libcaller_ilp64.so libcaller_none.so libcaller_none_too.so plug_ins constructors libat_load.so libasker.so namespaces libforeign.so libforeign_linked.so foreigners \
                   neighbours libregistrations.so libhandled.so libunlocks.so handled_calls libwrapper.so libother_dlsym.so libauditor.so libifunc.so libcaller_ifunc.so \
                   unread limits tall \
                   fp_state libentry_provider.so libentry_cost.so \
                   $(UNIT_TESTS) \
                   test_testgpu)
TEST_PROGRAMS += $(TESTS)/interrupts

.PHONY: test-programs
test-programs: $(TEST_PROGRAMS) reference-programs $(BUILD)/regret/replay

include tests/reference/reference.mk
include tests/lapack/lapack.mk
include tests/regret/regret.mk
include tests/fuzz/fuzz.mk
include tests/proof/proof.mk
include tests/faults/faults.mk
include tests/toy/toy.mk

$(TESTS)/.made:
	@mkdir -p $(TESTS)
	@touch $@
$(TEST_PROGRAMS): $(TESTS)/.made tests/tests.mk

# Objects of programs with several sources; those in obj64 are for 64-bit integers.
$(BUILD)/obj/%.o: %.c $(BUILD)/compiler.flags | cuda-headers $(BUILD)/functions.def $(BUILD)/other_ops.def
	@mkdir -p $(@D)
	$(CC) $(TEST_FLAGS) -isystem $(CUDA_INCLUDE) -fPIC -c -o $@ $<
$(BUILD)/obj64/%.o: %.c $(BUILD)/compiler.flags | cuda-headers $(BUILD)/functions.def $(BUILD)/other_ops.def
	@mkdir -p $(@D)
	$(CC) $(TEST_FLAGS) -isystem $(CUDA_INCLUDE) -fPIC -DTEST_ILP64 -c -o $@ $<
.SECONDARY:
-include $(wildcard $(addsuffix /*.d,$(TESTS) $(BUILD)/proof $(BUILD)/regret $(BUILD)/obj/tests/* $(BUILD)/obj64/tests/*))

# Programs and libraries as users have them: linked to the system's BLAS, by its generic name.
CALLS := $(addprefix tests/shim/,calls.c generator.c interfaces.c matrices.c provider.c)
# Weak references, to names that the linked BLAS may lack, are for the dynamic linker to bind.
CALLS_LINK := -Wl,--no-as-needed,-z,dynamic-undefined-weak
$(TESTS)/random_calls: $(call of_obj,tests/shim/random_calls.c $(CALLS)) $(LAYERS)
	$(CC) $(TEST_FLAGS) -o $@ $(filter %.o %.a,$^) $(CALLS_LINK) -l:libblas.so.3 -lm -lpthread -ldl
$(TESTS)/random_calls64: $(call of_obj64,tests/shim/random_calls.c $(CALLS)) $(LAYERS)
	$(CC) $(TEST_FLAGS) -o $@ $(filter %.o %.a,$^) $(CALLS_LINK) -l:libblas64.so.3 -lm -lpthread -ldl
$(TESTS)/liblacking.so: tests/shim/lacking.c
	$(CC) $(TEST_FLAGS) -shared -fPIC -o $@ $< -l:libblas.so.3
$(TESTS)/liblacking64.so: tests/shim/lacking.c
	$(CC) $(TEST_FLAGS) -DTEST_ILP64 -shared -fPIC -o $@ $< -l:libblas64.so.3
$(TESTS)/cuda_program: $(call of_obj,tests/shim/cuda_program.c $(CALLS)) $(LAYERS) | $(BUILD)/testgpu/libcuda.so.1
	$(CC) $(TEST_FLAGS) -o $@ $(filter %.o %.a,$^) $(CALLS_LINK) -l:libblas.so.3 \
	  $(BUILD)/testgpu/libcuda.so.1 -Wl,-rpath,'$$ORIGIN/../testgpu' -lm -lpthread -ldl
$(TESTS)/own_memory: tests/shim/own_memory.c | $(BUILD)/testgpu/libcuda.so.1
	$(CC) $(TEST_FLAGS) -isystem $(CUDA_INCLUDE) -o $@ $< -l:libblas.so.3 \
	  $(BUILD)/testgpu/libcuda.so.1 -Wl,-rpath,'$$ORIGIN/../testgpu' -lpthread
$(TESTS)/repeated: tests/shim/repeated.c | $(BUILD)/testgpu/libcuda.so.1
	$(CC) $(TEST_FLAGS) -isystem $(CUDA_INCLUDE) -o $@ $< -l:libblas.so.3 -l:liblapack.so.3 \
	  $(BUILD)/testgpu/libcuda.so.1 -Wl,-rpath,'$$ORIGIN/../testgpu'
$(TESTS)/scopes: tests/shim/scopes.c
	$(CC) $(TEST_FLAGS) -o $@ $< -ldl -lpthread
$(TESTS)/lookups: tests/shim/lookups.c
	$(CC) $(TEST_FLAGS) -o $@ $< -ldl
$(TESTS)/libearly.so: tests/shim/early.c
	$(CC) $(TEST_FLAGS) -shared -fPIC -o $@ $< -l:libblas.so.3
$(TESTS)/start_up: tests/shim/start_up.c $(TESTS)/libearly.so
	$(CC) $(TEST_FLAGS) -o $@ $< -L$(TESTS) -learly -l:libblas.so.3 -Wl,-rpath,'$$ORIGIN'
$(TESTS)/forks: tests/shim/forks.c
	$(CC) $(TEST_FLAGS) -o $@ $< -l:libblas.so.3
$(TESTS)/forks_anytime: tests/shim/forks_anytime.c
	$(CC) $(TEST_FLAGS) -o $@ $< -l:libblas.so.3 -lpthread
$(TESTS)/signals: tests/shim/signals.c
	$(CC) $(TEST_FLAGS) -o $@ $< -l:libblas.so.3 -lpthread
$(TESTS)/turmoil: tests/shim/turmoil.c
	$(CC) $(TEST_FLAGS) -o $@ $< -l:libblas.so.3 -ldl -lpthread
$(TESTS)/handlers: tests/shim/handlers.c
	$(CC) $(TEST_FLAGS) -o $@ $< -l:libblas.so.3 -lpthread
$(TESTS)/interrupts: tests/shim/interrupts.c
	$(CC) $(TEST_FLAGS) -o $@ $< -l:libblas.so.3 -lpthread
$(TESTS)/handled_calls: tests/shim/handled_calls.c
	$(CC) $(TEST_FLAGS) -o $@ $< -l:libblas.so.3 -ldl
$(TESTS)/surroundings: tests/shim/surroundings.c
	$(CC) $(TEST_FLAGS) -o $@ $< -l:libblas.so.3
$(TESTS)/steps: tests/shim/steps.c
	$(CC) $(TEST_FLAGS) -fopenmp -o $@ $< -l:liblapack.so.3 -l:libblas.so.3 -lm -lpthread
$(TESTS)/damage: tests/shim/damage.c
	$(CC) $(TEST_FLAGS) -o $@ $< -l:libblas.so.3
$(TESTS)/put_model: tests/shim/put_model.c $(LAYERS)
	$(CC) $(TEST_FLAGS) -o $@ $(filter %.c %.a,$^) -lm
$(TESTS)/fp_state: tests/shim/fp_state.c
	$(CC) $(TEST_FLAGS) -o $@ $< -l:libblas.so.3 -lm
$(TESTS)/bad_arguments: tests/shim/bad_arguments.c
	$(CC) $(TEST_FLAGS) -o $@ $< -l:libblas.so.3
$(TESTS)/bad_arguments_longjmp: tests/shim/bad_arguments.c
	$(CC) $(TEST_FLAGS) -DTEST_XERBLA -rdynamic -o $@ $< -l:libblas.so.3
$(TESTS)/limits: tests/shim/limits.c | $(BUILD)/testgpu/libcuda.so.1
	$(CC) $(TEST_FLAGS) -isystem $(CUDA_INCLUDE) -o $@ $< -l:liblapack.so.3 -l:libblas.so.3 $(BUILD)/testgpu/libcuda.so.1 \
	  -Wl,-rpath,'$$ORIGIN/../testgpu' -lm -ldl
$(TESTS)/tall: tests/shim/tall.c
	$(CC) $(TEST_FLAGS) -o $@ $< -l:libblas64.so.3
$(TESTS)/unread: tests/shim/unread.c $(LAYERS)
	$(CC) $(TEST_FLAGS) -rdynamic -o $@ $(filter %.c %.a,$^) -ldl
$(TESTS)/libcaller_lp64.so: tests/shim/caller.c
	$(CC) $(TEST_FLAGS) -shared -fPIC -o $@ $< -l:libblas.so.3
$(TESTS)/libcaller_ilp64.so: tests/shim/caller.c
	$(CC) $(TEST_FLAGS) -DTEST_ILP64 -shared -fPIC -o $@ $< -l:libblas64.so.3
$(TESTS)/libasker.so: tests/shim/asker.c
	$(CC) $(TEST_FLAGS) -shared -fPIC -o $@ $< -ldl
$(TESTS)/namespaces: tests/shim/namespaces.c
	$(CC) $(TEST_FLAGS) -o $@ $< -ldl
$(TESTS)/libforeign.so: tests/shim/foreign.c
	$(CC) $(TEST_FLAGS) -shared -fPIC -o $@ $<
$(TESTS)/libforeign_linked.so: tests/shim/foreign.c
	$(CC) $(TEST_FLAGS) -shared -fPIC -Wl,--no-as-needed -o $@ $< -l:libblas.so.3
$(TESTS)/foreigners: tests/shim/foreigners.c
	$(CC) $(TEST_FLAGS) -o $@ $< -ldl
$(TESTS)/neighbours: tests/shim/neighbours.c tests/shim/load.h
	$(CC) $(TEST_FLAGS) -o $@ $< -l:libblas.so.3 -ldl -lpthread
$(addprefix $(TESTS)/lib,unlocks.so registrations.so handled.so wrapper.so other_dlsym.so auditor.so ifunc.so): $(TESTS)/lib%.so: tests/shim/%.c
	$(CC) $(TEST_FLAGS) -shared -fPIC -o $@ $< -ldl
$(TESTS)/libcaller_ifunc.so: tests/shim/caller.c $(TESTS)/libifunc.so
	$(CC) $(TEST_FLAGS) -shared -fPIC -o $@ $< -L$(TESTS) -lifunc -Wl,-rpath,'$$ORIGIN'
$(TESTS)/plug_ins: tests/shim/plug_ins.c tests/shim/load.h
	$(CC) $(TEST_FLAGS) -o $@ $< -ldl
$(TESTS)/constructors: tests/shim/constructors.c
	$(CC) $(TEST_FLAGS) -rdynamic -o $@ $< -l:liblapack.so.3 -l:libblas.so.3 -ldl -lpthread
$(TESTS)/libat_load.so: tests/shim/at_load.c
	$(CC) $(TEST_FLAGS) -shared -fPIC -o $@ $<
$(TESTS)/libcaller_none.so $(TESTS)/libcaller_none_too.so: tests/shim/caller.c
	$(CC) $(TEST_FLAGS) -shared -fPIC -o $@ $<

$(TESTS)/libentry_provider.so: tests/shim/entry_provider.c
	$(CC) $(TEST_FLAGS) -fno-builtin -shared -fPIC -o $@ $<
$(TESTS)/libentry_cost.so: $(call of_obj,tests/shim/entry_cost.c tests/shim/call_sites.c) $(LAYERS) $(TESTS)/libentry_provider.so
	$(CC) $(TEST_FLAGS) -shared -o $@ $(filter %.o %.a,$^) -L$(TESTS) -lentry_provider -Wl,-rpath,'$$ORIGIN'

# Unit tests: the layers' own objects, and cmocka.
UNIT_LIBS  = -lcmocka -lm -ldl -lpthread
$(addprefix $(TESTS)/,$(UNIT_TESTS)): $(TESTS)/%: tests/unit/%.c $(LAYERS)
	$(CC) $(TEST_FLAGS) -o $@ tests/unit/$*.c $(filter %.o,$^) $(LAYERS) $(UNIT_LIBS)
$(addprefix $(TESTS)/,test_settings test_config): $(call of_obj,tests/unit/settings_fixture.c)
$(TESTS)/test_number $(TESTS)/test_tally: $(BUILD)/tool/number.o $(BUILD)/tool/tally.o
$(TESTS)/test_objects: | $(TESTS)/libhashed_gnu.so $(TESTS)/libhashed_sysv.so
$(TESTS)/libhashed_%.so: tests/unit/hashed.c | $(TESTS)/.made
	$(CC) $(TEST_FLAGS) -shared -fPIC -Wl,--hash-style=$* -o $@ $<
# Calls of libc are counted. The compiler's own checks of memory take their place.
$(TESTS)/test_pack: UNIT_LIBS += -Wl,--wrap=memcpy,--wrap=memmove,--wrap=memset
$(addprefix $(TESTS)/,test_gpu test_cuda_api test_lane test_pool test_two_devices test_triangles): TEST_FLAGS += -isystem $(CUDA_INCLUDE)
$(addprefix $(TESTS)/,test_gpu test_cuda_api test_lane test_pool test_two_devices): | $(BUILD)/testgpu/libcuda.so.1
$(TESTS)/test_gpu: UNIT_LIBS += $(BUILD)/testgpu/libcuda.so.1 -Wl,-rpath,'$$ORIGIN/../testgpu'

# One prove run, two at a time. CHECK=... for some of it. TEST_LONG=1, which `make test-all` sets, asks tests that have a short form
# and a long one for the long one; tests/ci/parts lists them, and which tests `make test` has not at all.
TEST_FOLDERS  := shim programs reference lapack suites regret tool fuzz proof ci build
ALL_TESTS     := $(foreach folder,$(TEST_FOLDERS),$(wildcard tests/$(folder)/test_*.py)) tests/unit/run tests/style/run
TESTS_NOT_OFTEN := $(shell awk -F ' *[|] *' '$$2 == "none" && $$3 ~ /^tests\// { print $$3 }' tests/ci/parts)
TEST_LONG     ?=
CHECK         ?= $(if $(filter 1,$(TEST_LONG)),$(ALL_TESTS),$(filter-out $(TESTS_NOT_OFTEN),$(ALL_TESTS)))
.PHONY: check
check: all test-programs testgpu
	BUILD=$(BUILD) TEST_LONG=$(TEST_LONG) prove -j2 --timer $(CHECK)

# The whole of the suites of which tests/suites/test_suites.py runs a part: an hour and more.
.PHONY: suites
suites:
	BUILD=$(BUILD) tests/suites/run --all
