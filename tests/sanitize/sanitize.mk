# The suite under gcc's AddressSanitizer and UndefinedBehaviorSanitizer, and under its
# ThreadSanitizer, each in a build folder of its own. CHECK=... for some of it.

# Their runtimes look functions up when they start, by the dlsym that is ours, and before their own
# memory is there: what is called then is not instrumented.
$(addprefix $(BUILD)/,shim/elf/hooks.o shim/elf/bindings.o shim/elf/objects.o shim/elf/symbols.o \
    base/thread/linker.o ops/names.o shim/elf/real_linker.o gpu/device/exit_guard.o): SANITIZE_FLAGS :=

# Not under AddressSanitizer: what a build has in it, exports and needs (it has more), how many
# instructions a call takes, the sources' style, the manual pages, documents' commands, and scripts
# that make builds or run packages' own tests.
ASAN_CHECK := $(if $(filter file,$(origin CHECK)),tests/sanitize/test_training.py) $(filter-out tests/report/test_interface.py tests/shim/test_entry_cost.py tests/shim/test_footprint.py tests/tool/test_pages.py tests/style/run tests/suites/% tests/docs/% tests/proof/% tests/ci/% tests/build/%,$(CHECK))
# Under ThreadSanitizer: what has threads, and none of the programs whose own libraries it would
# judge.
TSAN_CHECK := $(if $(filter file,$(origin CHECK)),tests/unit/run tests/sanitize/test_threads.py tests/sanitize/test_training.py \
                tests/shim/test_scopes.py tests/shim/test_hardening.py tests/dispatch/test_devices.py tests/dispatch/test_start.py tests/dispatch/test_waits.py \
                tests/dispatch/test_several.py tests/dispatch/test_split.py tests/dispatch/test_peers.py,$(CHECK))

.PHONY: sanitize asan tsan
sanitize:
	$(MAKE) asan
	$(MAKE) tsan
# sanitized(folder, kind, flags, tests)
, := ,
define sanitized
	scripts/install-deps build test
	$(call fetched_for,$(1))
	$(MAKE) -j$(JOBS) BUILD=$(1) CUDA_INCLUDE=$(CUDA_INCLUDE) NVCC=$(NVCC) SANITIZE=$(3) CFLAGS='-O1 -g' OWN_ARCHITECTURES=80 all test-programs testgpu
	tests/sanitize/run $(1) $(2) $(4)
endef
asan:
	$(call sanitized,build-asan,address,address$(,)undefined,$(ASAN_CHECK))
tsan:
	$(call sanitized,build-tsan,thread,thread,$(TSAN_CHECK))
