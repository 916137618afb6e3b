# What scripts/gpu-proof runs beside libaccel: the C tests, which are built on the machine itself,
# and its own programs.

PROOF          := $(BUILD)/proof
PROOF_PROGRAMS := $(addprefix $(PROOF)/,measure time_calls time_calls_xt time_repeats time_ml ending lapack_rules libR.so)
PROOF_TESTS    := $(addprefix $(TESTS)/,random_calls random_calls64 steps liblacking.so liblacking64.so cuda_program \
                    random_lapack random_lapack64 fortran_calls lapacke device_lapack again served_times) $(UNIT_TESTS)

.PHONY: proof-programs gpu-bundle
proof-programs: $(PROOF_PROGRAMS) $(PROOF_TESTS)
test-programs: $(PROOF_PROGRAMS)

$(PROOF)/measure: $(call of_obj,$(wildcard tests/proof/measure*.c) tests/proof/driver.c) $(LAYERS)
	@mkdir -p $(@D)
	$(CC) $(TEST_FLAGS) -o $@ $(filter %.o %.a,$^) -lm -ldl -lpthread
# Linked as users' programs are: by the generic names of BLAS and LAPACK.
$(addprefix $(PROOF)/,time_calls time_repeats ending lapack_rules): $(PROOF)/%: tests/proof/%.c
	@mkdir -p $(@D)
	$(CC) $(TEST_FLAGS) -o $@ $(filter %.c %.o,$^) -l:liblapack.so.3 -l:libblas.so.3 -lm -lpthread
$(PROOF)/time_calls_xt: tests/proof/time_calls.c $(call of_obj,$(addprefix tests/proof/,cublasxt.c driver.c judge.c products.c)) $(LAYERS)
	@mkdir -p $(@D)
	$(CC) $(TEST_FLAGS) -o $@ $(filter %.c %.o %.a,$^) -l:liblapack.so.3 -l:libblas.so.3 -lm -ldl -lpthread
$(PROOF)/time_calls: $(call of_obj,tests/proof/judge.c tests/proof/products.c)
$(PROOF)/time_repeats: $(call of_obj,tests/proof/products.c)
# As fast as the memory: a judgement of gigabytes takes time that others could have.
$(call of_obj,tests/proof/judge.c tests/proof/products.c): TEST_FLAGS += -O3
# Debian has svm.h in a folder of its own.
$(PROOF)/time_ml: tests/proof/time_ml.c
	@mkdir -p $(@D)
	$(CC) $(TEST_FLAGS) -isystem /usr/include/libsvm -o $@ $< -l:libsvm.so.3 -l:liblinear.so.4 -lm -ldl
$(PROOF)/libR.so: tests/proof/r.c
	@mkdir -p $(@D)
	$(CC) $(TEST_FLAGS) -fPIC -shared -Wl,-soname,libR.so -o $@ $<

# High Performance Linpack of one process, where its sources have been fetched.
HPL := $(BUILD)/hpl
$(HPL)/xhpl: tests/proof/hpl/main.c tests/proof/hpl/mpi.h tests/proof/hpl/hpccmema.h $(HPL)/source/.complete
	$(CC) -O2 -w -DAdd_ -DF77_INTEGER=int -DStringSunStyle -I tests/proof/hpl -I $(HPL)/source/include -o $@ $< \
	    $(HPL)/source/src/*/*.c $(HPL)/source/testing/*/*.c -l:libblas.so.3 -lm
$(HPL)/source/.complete:
	scripts/fetch-reference-tests hpl

# What scripts/gpu-proof takes along to a machine without a network.
gpu-bundle:
	scripts/install-deps bundle
	$(MAKE) reference-programs
	[ ! -e $(HPL)/source/.complete ] || $(MAKE) $(HPL)/xhpl
	scripts/gpu-bundle
