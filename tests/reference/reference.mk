# The reference BLAS and CBLAS test programs of Levels 2 and 3, and those of LAPACK
# (scripts/fetch-reference-tests), linked to the system's shared BLAS and LAPACK as users' programs
# are.

REFERENCE        := $(BUILD)/lapack
REFERENCE_TESTS  := $(TESTS)/reference
REFERENCE_LEVELS := 2 3
REFERENCE_FLAGS  := -O1 -w -std=legacy

REFERENCE_PROGRAMS := $(foreach l,$(REFERENCE_LEVELS),$(foreach t,s d c z, \
                        $(REFERENCE_TESTS)/x$(t)blat$(l) $(REFERENCE_TESTS)/cblas_x$(t)blat$(l)))

# Made by LAPACK's own makefiles, of what is in TESTING alone: the routines are the shared
# library's.
REFERENCE_LAPACK := $(foreach t,s d c z,$(addprefix $(REFERENCE)/TESTING/,LIN/xlintst$(t) LIN/xlintstrf$(t) EIG/xeigtst$(t)))
REFERENCE_MAKE   := $(MAKE) FC=gfortran FFLAGS='$(REFERENCE_FLAGS) -frecursive' FFLAGS_DRV='$(REFERENCE_FLAGS)' \
                      FFLAGS_NOOPT='-O0 -w -std=legacy' TMGLIB=../../libtmglib.a AR=ar ARFLAGS=cr RANLIB=ranlib \
                      LDFLAGS='-Wl,--no-as-needed -l:liblapack.so.3 -l:libblas.so.3'

.PHONY: reference-programs
reference-programs: $(REFERENCE_PROGRAMS) $(REFERENCE_LAPACK)

$(REFERENCE)/.complete:
	scripts/fetch-reference-tests

$(REFERENCE_TESTS)/cblas_x%: tests/reference/cblas_globals.c $(REFERENCE)/.complete
	@mkdir -p $(@D)/obj-$*
	cp $(REFERENCE)/CBLAS/include/cblas_mangling_with_flags.h.in $(@D)/obj-$*/cblas_mangling.h
	cd $(@D)/obj-$* && $(CC) -O1 -w -DADD_ -I. -I$(abspath $(REFERENCE))/CBLAS/include -c $(CURDIR)/$< \
	  $(foreach f,c_$(subst blat,blas,$*) c_$(subst blat,,$*)chke auxiliary c_xerbla,$(abspath $(REFERENCE))/CBLAS/testing/$(f).c)
	gfortran $(REFERENCE_FLAGS) -o $@ $(REFERENCE)/CBLAS/testing/c_$*.f $(@D)/obj-$*/*.o -l:libblas.so.3

$(REFERENCE_TESTS)/x%: $(REFERENCE)/.complete
	@mkdir -p $(@D)
	gfortran $(REFERENCE_FLAGS) -o $@ $(REFERENCE)/BLAS/TESTING/$*.f -l:libblas.so.3

# Every object has a source of its own: nothing needs LIN's .NOTPARALLEL.
$(REFERENCE_LAPACK) &: $(REFERENCE)/.complete
	touch $(REFERENCE)/make.inc
	$(REFERENCE_MAKE) -C $(REFERENCE)/TESTING/MATGEN
	$(REFERENCE_MAKE) -C $(REFERENCE)/TESTING/EIG
	grep -v NOTPARALLEL $(REFERENCE)/TESTING/LIN/Makefile | \
	  $(REFERENCE_MAKE) -C $(REFERENCE)/TESTING/LIN -f - $(notdir $(filter $(REFERENCE)/TESTING/LIN/%,$(REFERENCE_LAPACK)))
