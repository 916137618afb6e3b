# Faults, by operation: `make faults` runs the tests of this folder (FAULTS=... some of them) and prints a table. `make check` runs those of tests/shim
# and tests/lapack.

FAULT_PROGRAMS := $(addprefix $(TESTS)/,libplant.so write_back columns parts libparts.so)
test-programs: $(FAULT_PROGRAMS)
$(FAULT_PROGRAMS): $(TESTS)/.made tests/faults/faults.mk

$(TESTS)/libplant.so: tests/faults/plant.c
	$(CC) $(TEST_FLAGS) -fno-builtin -shared -fPIC -o $@ $< -ldl
$(TESTS)/write_back: tests/faults/write_back.c
	$(CC) $(TEST_FLAGS) -o $@ $< -l:liblapack.so.3 -lm
$(TESTS)/columns: tests/faults/columns.c
	$(CC) $(TEST_FLAGS) -o $@ $< -l:libblas.so.3
# Its own dgemm comes before that of the BLAS that tells the width of integers.
$(TESTS)/libparts.so: tests/faults/parts.c
	$(CC) $(TEST_FLAGS) -DPARTS_BLAS -shared -fPIC -o $@ $<
$(TESTS)/parts: tests/faults/parts.c $(TESTS)/libparts.so
	$(CC) $(TEST_FLAGS) -o $@ $< -L$(TESTS) -lparts -Wl,--no-as-needed -l:libblas.so.3 -Wl,-rpath,'$$ORIGIN'

FAULTS ?=
.PHONY: faults
faults: all test-programs testgpu
	BUILD=$(BUILD) tests/faults/run $(FAULTS)
