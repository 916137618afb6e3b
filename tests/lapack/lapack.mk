# Programs that call LAPACK, for the tests beside this file. They are linked to the system's LAPACK, by its generic name.

LAPACK_PROGRAMS := $(addprefix $(TESTS)/,lapacke lapacke64 device_lapack)
test-programs: $(LAPACK_PROGRAMS)
$(LAPACK_PROGRAMS): $(TESTS)/.made tests/lapack/lapack.mk

$(TESTS)/lapacke: tests/lapack/lapacke.c
	$(CC) $(TEST_FLAGS) -o $@ $< -ldl -lm
$(TESTS)/lapacke64: tests/lapack/lapacke.c
	$(CC) $(TEST_FLAGS) -DTEST_ILP64 -o $@ $< -ldl -lm
$(TESTS)/device_lapack: tests/lapack/device_lapack.c | testgpu
	$(CC) $(TEST_FLAGS) -isystem $(CUDA_INCLUDE) -o $@ $< -l:liblapack.so.3 $(BUILD)/testgpu/libcuda.so.1 \
	  -Wl,-rpath,'$$ORIGIN/../testgpu' -lm
