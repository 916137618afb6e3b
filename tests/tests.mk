# What the test suite builds. `make check` runs it all under prove.

TESTS    := $(BUILD)/tests
# NVIDIA's headers, the toolkit's or those that scripts/install-deps has fetched: for programs with
# CUDA of their own, and the test GPU.
CUDA_INCLUDE ?= $(firstword $(wildcard $(CUDA_HOME)/include) $(wildcard $(BUILD)/cuda/include))
.PHONY: cuda-headers
cuda-headers:
	@test -f "$(CUDA_INCLUDE)/cuda.h" -a -f "$(CUDA_INCLUDE)/cublas_v2.h" -a -f "$(CUDA_INCLUDE)/cusolverDn.h" -a -f "$(CUDA_INCLUDE)/cufft.h" || { \
	  echo "make: no CUDA headers (cuda.h, cublas_v2.h, cusolverDn.h, cufft.h); set CUDA_HOME, or run scripts/install-deps headers" >&2; exit 1; }

of_obj    = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
of_obj64  = $(patsubst %.c,$(BUILD)/obj64/%.o,$(1))
# Headers are the compiler's to find: it writes them beside the program, or the object where a
# program has several sources.
HEADERS_TOO = -MMD -MP -MT $@ -MF $@.headers
TEST_FLAGS  = -std=gnu11 -Wall -Wextra $(WERROR) -O2 -g $(ARCH_FLAGS_$(ARCH)) -I. -I$(BUILD) $(addprefix -isystem ,$(CUDA_INCLUDE)) $(HEADERS_TOO) $(SANITIZE_FLAGS) $(CPPFLAGS) $(LDFLAGS)

# What tests share.
TEST_LIB := $(BUILD)/obj/tests/lib.a

# fetched_for(folder): what scripts/install-deps has fetched serves another build folder, too.
define fetched_for
	mkdir -p $(1)
	for part in venv lapack liblinear libsvm sklearn promtool; do ln -sfn $(abspath $(BUILD))/$$part $(1)/$$part; done
endef

include tests/fixtures/fixtures.mk

# Unit tests, tests/FOLDER/test_X.c: with the objects of all layers, what is shared in tests/lib,
# and cmocka.
UNIT_SOURCES := $(filter-out tests/testgpu/%,$(wildcard tests/*/test_*.c tests/*/*/test_*.c))
unit_test     = $(addprefix $(TESTS)/,$(basename $(notdir $(1))))
UNIT_TESTS   := $(call unit_test,$(UNIT_SOURCES))
UNIT_LIBS     = -lcmocka -lm -ldl -lpthread
$(foreach source,$(UNIT_SOURCES),$(eval $(call unit_test,$(source)): $(call of_obj,$(source))))
$(UNIT_TESTS): $(TEST_LIB) $(LAYERS) | $(TESTS) $(CUDA_DRIVER)
	$(CC) $(TEST_FLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(UNIT_LIBS)
$(TEST_LIB): $(call of_obj,$(wildcard tests/lib/*.c))
	rm -f $@
	$(AR) rcs $@ $^
# What the tool's own main() is not needed for.
$(BUILD)/tool.a: $(TOOL_OBJECTS) $(BUILD)/tool.flags
	rm -f $@
	$(AR) rcsT $@ $(TOOL_OBJECTS)
$(call unit_test,$(filter tests/tool/%,$(UNIT_SOURCES))): $(BUILD)/tool.a
# The tool's objects come behind the layers, and these need functions of those.
$(TESTS)/test_bench_plan $(TESTS)/test_solve_bench $(TESTS)/test_timing $(TESTS)/test_elf_file $(TESTS)/test_served_copies: UNIT_LIBS := $(LAYERS) $(UNIT_LIBS)
$(TESTS)/test_log_file $(TESTS)/test_replayed_call: UNIT_LIBS += $(JSON_C_LIBS)
$(TESTS)/test_objects: | $(HASHED)
# Its own dgemm_ is libaccel's there, and its memory runs out; other libraries play libaccel, and
# those that a user has named. It needs none of the assembler's entries.
$(TESTS)/test_resolve: | $(HASHED) $(NAMES)
$(TESTS)/test_resolve: UNIT_LIBS += -Wl,--export-dynamic-symbol=dgemm_,--wrap=malloc,--wrap=dlopen,--wrap=dispatch_original_libraries,--wrap=accel_own_object,--unresolved-symbols=ignore-in-object-files
$(TESTS)/test_keep: | $(HASHED) $(NAMES) $(CALLERS) $(BRINGING)
$(TESTS)/test_keep: UNIT_LIBS += -Wl,--unresolved-symbols=ignore-in-object-files
# It plays the assembler's data, the dispatcher and the resolver.
$(TESTS)/test_slots: UNIT_LIBS += -Wl,--wrap=dispatch_filter,--wrap=dispatch_takes_library,--wrap=accel_resolve,--wrap=accel_resolve_unasked,--wrap=accel_resolve_known,--wrap=accel_objects_unloads,--wrap=accel_object_of,--wrap=accel_message,--unresolved-symbols=ignore-in-object-files
$(TESTS)/test_registrations: UNIT_LIBS += -Wl,--wrap=accel_object_of,--wrap=accel_is_own,--wrap=dladdr,--wrap=accel_real_lookup,--wrap=accel_real_lookup_in,--wrap=dispatch_is_on,--wrap=accel_slots_bind,--wrap=malloc,--unresolved-symbols=ignore-in-object-files
$(TESTS)/test_device: UNIT_LIBS += -Wl,--wrap=accel_call_fault,--wrap=scheduled_describe,--wrap=model_work_of,--wrap=accel_decide
# Calls of libc are counted. The compiler's own checks of memory take their place.
$(TESTS)/test_pack: UNIT_LIBS += -Wl,--wrap=memcpy,--wrap=memmove,--wrap=memset
# Memory that is short; a function that is looked up by its name.
$(TESTS)/test_reads $(TESTS)/test_code_sizes: UNIT_LIBS += -Wl,--wrap=mmap
$(TESTS)/test_smo_solve: UNIT_LIBS += -Wl,--wrap=calloc
$(TESTS)/test_code_sizes: UNIT_LIBS += -Wl,--export-dynamic-symbol=drotg_
# Machines with more CPUs than there are, on which threads cannot be started.
$(TESTS)/test_copy_pool $(TESTS)/test_task_pool $(TESTS)/test_staging: UNIT_LIBS += -Wl,--wrap=sched_getaffinity,--wrap=sched_setaffinity,--wrap=pthread_create,--wrap=getrusage
# Threads that are slow to unpack.
$(TESTS)/test_staging: UNIT_LIBS += -Wl,--wrap=pack_to_host,--wrap=copy_pool_attend
# A clock that is put back while somebody waits, and one of the test's own.
$(TESTS)/test_monotonic_wait $(TESTS)/test_copy_pool $(TESTS)/test_task_pool $(TESTS)/test_output $(TESTS)/test_measure $(TESTS)/test_measure_failures $(TESTS)/test_served_copies: UNIT_LIBS += -Wl,--wrap=clock_gettime
# A library that answers as the test says.
$(TESTS)/test_kernels: UNIT_LIBS += -Wl,--wrap=accel_real_lookup,--wrap=accel_provider_find,--wrap=accel_provider_names_threads,--wrap=accel_object_of,--wrap=accel_object_imports
$(TESTS)/test_library: UNIT_LIBS += -Wl,--wrap=accel_real_handle,--wrap=accel_real_dlclose,--wrap=accel_provider_find,--wrap=accel_object_of,--wrap=calloc,--wrap=strdup,--wrap=dlmopen,--wrap=dlinfo
# A clock of the test's own, and who learns from its times.
$(TESTS)/test_decided_run: UNIT_LIBS += -Wl,--wrap=clock_gettime,--wrap=cost_learn_cpu,--wrap=cost_learn_gpu
# A device, its thread and the clock, which the test plays.
$(TESTS)/test_device_life: UNIT_LIBS += -Wl,--wrap=gpu_start,--wrap=gpu_is_gone,--wrap=thread_spawn,--wrap=monotonic_timed_lock,--wrap=clock_gettime
$(TESTS)/test_decomposed: UNIT_LIBS += -Wl,--wrap=spectral_decompose,--wrap=verify_apart
$(TESTS)/test_device_notes: UNIT_LIBS += -Wl,--wrap=gpu_is_gone,--wrap=clock_gettime
$(TESTS)/test_select_devices: UNIT_LIBS += -Wl,--wrap=gpu_start,--wrap=thread_spawn,--wrap=clock_gettime,--wrap=gpu_cached,--wrap=mmap
$(TESTS)/test_several_plan: UNIT_LIBS += -Wl,--wrap=cost_schedule_rates,--wrap=gpu_peer_gbps,--wrap=split_cache_make,--wrap=factorisation_make,--wrap=copy_pool_size,--wrap=thread_spawn,--wrap=gpu_start,--wrap=clock_gettime
$(TESTS)/test_guided_call: UNIT_LIBS += -Wl,--wrap=op_xgboost_train,--wrap=gpu_start,--wrap=clock_gettime
$(TESTS)/test_dispatch_call: UNIT_LIBS += -Wl,--wrap=op_gemm_batch,--wrap=clock_gettime,--wrap=cost_learn_cpu,--wrap=exit_guard_hold,--wrap=exit_guard_release,--wrap=exit_guard_has_begun,--wrap=gpu_is_gone
# A program whose file is gone.
$(TESTS)/test_settings: UNIT_LIBS += -Wl,--wrap=file_program
# Lists of objects that a test has made.
$(TESTS)/test_object_list: UNIT_LIBS += -Wl,--wrap=dl_iterate_phdr
# A dynamic linker that does not tell all; functions that dladdr() finds.
$(TESTS)/test_real_linker: UNIT_LIBS += -rdynamic -Wl,--wrap=dlinfo,--wrap=dlmopen
$(TESTS)/test_real_linker: | $(HASHED)
# A host without memory for what is copied, of which nothing is read; a program that was started by
# another path.
$(TESTS)/test_measure_failures: UNIT_LIBS += -Wl,--wrap=malloc,--wrap=calloc,--wrap=pack_from_host,--wrap=pack_to_host
$(TESTS)/test_device_start: UNIT_LIBS += -Wl,--wrap=calloc
$(TESTS)/test_find_cuda: UNIT_LIBS += -Wl,--wrap=getauxval,--wrap=fopen,--wrap=readlink
$(TESTS)/test_gpu $(TESTS)/test_stream_ctx $(TESTS)/test_place: UNIT_LIBS += $(CUDA_LINK)
# LAPACK's reference reports to the test.
$(TESTS)/test_least_lengths: UNIT_LIBS += -Wl,--export-dynamic-symbol=xerbla_
# Old drivers, and machines with and without a device.
$(TESTS)/test_place: UNIT_LIBS += -Wl,--wrap=access,--wrap=dlsym
# A clock of the test's own, and what takes time by it.
$(TESTS)/test_looks: UNIT_LIBS += -Wl,--wrap=clock_gettime,--wrap=pack_matrix_digest,--wrap=dirty_tracking_is_unchanged
# Watches that end.
$(TESTS)/test_admission: UNIT_LIBS += -Wl,--wrap=write_watch_leave
# A clock that goes on while somebody waits.
$(TESTS)/test_exit_guard: UNIT_LIBS += -Wl,--wrap=clock_gettime,--wrap=nanosleep
# Who waits for what the driver frees.
$(TESTS)/test_pool: UNIT_LIBS += -Wl,--wrap=pthread_cond_wait
# Memory that is short, and counted.
$(TESTS)/test_guided_objects: UNIT_LIBS += -Wl,--wrap=malloc,--wrap=free
# Host memory that is short.
$(TESTS)/test_condition: UNIT_LIBS += -Wl,--wrap=malloc,--wrap=calloc,--wrap=free
$(TESTS)/test_pipeline_ends $(TESTS)/test_gang: UNIT_LIBS += -Wl,--wrap=malloc,--wrap=calloc
$(TESTS)/test_linear_calls $(TESTS)/test_svm_calls: UNIT_LIBS += -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free
$(addprefix $(TESTS)/test_,solver solver_in_core solver_panels solver_results solver_shared solver_upload): UNIT_LIBS += -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free
# A system that refuses to write a file.
$(TESTS)/test_calibration_files: UNIT_LIBS += -Wl,--wrap=malloc,--wrap=realloc,--wrap=fchmod,--wrap=fsync,--wrap=rename,--wrap=openat,--wrap=mkostemp,--wrap=mkdir,--wrap=flock,--wrap=nanosleep
$(TESTS)/test_plan_memory $(TESTS)/test_together $(TESTS)/test_peer_tiles: UNIT_LIBS += -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free

TEST_PROGRAMS := $(PROGRAMS) $(LIBRARIES) $(UNIT_TESTS) $(TESTS)/test_testgpu
$(TEST_PROGRAMS): tests/fixtures/fixtures.mk

.PHONY: test-programs
test-programs: $(TEST_PROGRAMS) reference-programs $(BUILD)/regret/replay

include tests/reference/reference.mk
include tests/regret/regret.mk
include tests/fuzz/fuzz.mk
include tests/coverage/coverage.mk
include tests/mutants/mutants.mk
include tests/proof/proof.mk
include tests/faults/faults.mk
include tests/toy/toy.mk
include tests/hostdevice/hostdevice.mk
include tests/browser/browser.mk
include tests/remote/remote.mk
include tests/engines/engines.mk
include tests/gallery/gallery.mk
include tests/arm64/arm64.mk

$(TESTS):
	@mkdir -p $@

# Objects of programs with several sources; those in obj64 are for 64-bit integers.
$(BUILD)/obj/%.o: %.c $(BUILD)/compiler.flags tests/tests.mk | $(BUILD)/functions.def $(BUILD)/other_ops.def
	@mkdir -p $(@D)
	$(CC) $(TEST_FLAGS) -fPIC -c -o $@ $<
$(BUILD)/obj64/%.o: %.c $(BUILD)/compiler.flags tests/tests.mk | $(BUILD)/functions.def $(BUILD)/other_ops.def
	@mkdir -p $(@D)
	$(CC) $(TEST_FLAGS) -fPIC -DTEST_ILP64 -c -o $@ $<
$(OF_CUDA) $(call of_obj,$(FIXTURES)/calls/cuda_program.c $(wildcard tests/proof/*.c)): | cuda-headers
.SECONDARY:
-include $(addsuffix .headers,$(TEST_PROGRAMS) $(PROOF_PROGRAMS) $(REGRET)/record $(REGRET)/replay) \
    $(wildcard $(foreach folder,$(BUILD)/obj/tests $(BUILD)/obj64/tests,$(addsuffix /*.headers,$(folder)/* $(folder)/*/*)))

# One prove run, those that take longest first; at its end, what has failed. CHECK=... for some of
# it. Three at a time, for two cores: many tests wait for what is slow on purpose. TEST_LONG=1,
# which `make test-all` sets, asks tests that have a short form and a long one for the long one;
# tests/ci/parts lists them, and which tests `make test` has not at all. make faults, make regress,
# make browser, make engines, make gallery, make check-packages, make tsan and make test-arm64 have
# their own.
LONGEST_TESTS := tests/unit/run tests/tool/test_calibrate.py tests/dispatch/test_load.py tests/dispatch/test_start.py tests/gpu/test_resident.py tests/gpu/test_faults.py tests/tool/test_calibrate_program.py
ALL_TESTS     := $(LONGEST_TESTS) $(filter-out $(LONGEST_TESTS) tests/faults/% tests/packages/% tests/regress/% tests/sanitize/% tests/browser/% tests/engines/% tests/gallery/test_gallery.py tests/arm64/%,$(wildcard tests/*/test_*.py tests/*/*/test_*.py)) tests/style/run
TESTS_NOT_OFTEN := $(shell awk -F ' *[|] *' '$$2 == "none" && $$3 ~ /^tests\// { print $$3 }' tests/ci/parts)
TEST_LONG     ?=
CHECK         ?= $(if $(filter 1,$(TEST_LONG)),$(ALL_TESTS),$(filter-out $(TESTS_NOT_OFTEN),$(ALL_TESTS)))
# Tests in C alone: no other unit test is linked.
CHECK_IN_C    := $(if $(filter-out %.c,$(CHECK)),,$(CHECK))
.PHONY: check
check: all testgpu $(if $(CHECK_IN_C),$(call unit_test,$(CHECK_IN_C)) $(PROGRAMS) $(LIBRARIES),test-programs)
	rm -rf $(BUILD)/tap
	mkdir -p $(BUILD)/tap
	BUILD=$(BUILD) TEST_LONG=$(TEST_LONG) PERL_TEST_HARNESS_DUMP_TAP=$(BUILD)/tap prove -j3 --timer $(if $(CHECK_IN_C),tests/unit/run :: $(CHECK_IN_C),$(CHECK)) || { \
	    find $(BUILD)/tap -type f -exec awk '/^not ok/ { print FILENAME ": " $$0 } !/^#/ { failed = /^not ok/ } /^#/ && failed' {} +; \
	    exit 1; }

# All of the suites; tests/suites/test_suites.py runs a part of them. An hour and more.
.PHONY: suites
suites:
	scripts/install-deps build test
	$(MAKE) -j$(JOBS) all test-programs testgpu
	BUILD=$(BUILD) tests/suites/run --all
