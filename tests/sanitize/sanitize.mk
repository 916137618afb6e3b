# A part of the suite under gcc's AddressSanitizer and UndefinedBehaviorSanitizer, and under its ThreadSanitizer, each in a build folder of
# its own.

# Their runtimes look functions up when they start, by the dlsym that is ours, and before their own memory is there: what is
# called then is not instrumented.
$(addprefix $(BUILD)/shim/,hooks.o names.o resolve.o): SANITIZE_FLAGS :=

.PHONY: sanitize asan tsan sanitized-programs
sanitized-programs: all testgpu $(TEST_PROGRAMS) $(addprefix $(TESTS)/replay_,$(FUZZ_TARGETS))

sanitize:
	$(MAKE) asan
	$(MAKE) tsan
asan:
	scripts/install-deps build test
	$(MAKE) BUILD=build-asan CUDA_INCLUDE=$(CUDA_INCLUDE) SANITIZE=address,undefined CFLAGS='-O1 -g' sanitized-programs
	tests/sanitize/run build-asan address
tsan:
	scripts/install-deps build test
	$(MAKE) BUILD=build-tsan CUDA_INCLUDE=$(CUDA_INCLUDE) SANITIZE=thread CFLAGS='-O1 -g' sanitized-programs
	tests/sanitize/run build-tsan thread
