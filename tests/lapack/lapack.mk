# Programs that call LAPACK, for the tests beside this file. They are linked to the system's LAPACK, by its generic name.

LAPACK_PROGRAMS := $(addprefix $(TESTS)/,lapacke lapacke64 device_lapack fortran_calls singular_values random_lapack random_lapack64)
test-programs: $(LAPACK_PROGRAMS)
$(LAPACK_PROGRAMS): $(TESTS)/.made tests/lapack/lapack.mk

$(TESTS)/lapacke: tests/lapack/lapacke.c
	$(CC) $(TEST_FLAGS) -o $@ $< -ldl -lm
$(TESTS)/lapacke64: tests/lapack/lapacke.c
	$(CC) $(TEST_FLAGS) -DTEST_ILP64 -o $@ $< -ldl -lm
$(TESTS)/fortran_calls $(TESTS)/singular_values: $(TESTS)/%: tests/lapack/%.c
	$(CC) $(TEST_FLAGS) -o $@ $< -l:liblapack.so.3 -l:libblas.so.3 -lm
$(TESTS)/device_lapack: tests/lapack/device_lapack.c | $(BUILD)/testgpu/libcuda.so.1
	$(CC) $(TEST_FLAGS) -isystem $(CUDA_INCLUDE) -o $@ $< -l:liblapack.so.3 $(BUILD)/testgpu/libcuda.so.1 \
	  -Wl,-rpath,'$$ORIGIN/../testgpu' -lm

# Random calls of LAPACK: see random_lapack.c.
LAPACK_CASES := $(addprefix tests/lapack/,random_lapack.c test.c library.c arrays.c sources.c linear.c orthogonal.c \
                  spectral.c singular.c)
# Weak references, to names that the linked LAPACK may lack, are for the dynamic linker to bind.
LAPACK_LINK := -Wl,--no-as-needed,-z,dynamic-undefined-weak
$(TESTS)/random_lapack: $(call of_obj,$(LAPACK_CASES)) $(LAYERS)
	$(CC) $(TEST_FLAGS) -o $@ $(filter %.o %.a,$^) $(LAPACK_LINK) -l:liblapack.so.3 -l:libblas.so.3 -lm -lpthread -ldl
$(TESTS)/random_lapack64: $(call of_obj64,$(LAPACK_CASES)) $(LAYERS)
	$(CC) $(TEST_FLAGS) -o $@ $(filter %.o %.a,$^) $(LAPACK_LINK) -l:liblapack64.so.3 -l:libblas64.so.3 -lm -lpthread -ldl
