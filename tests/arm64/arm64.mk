# make test-arm64: libaccel, the test GPU and tests for AArch64, compiled for Debian's arm64 tree
# (scripts/install-deps arm64), and run there under qemu-user (tests/arm64/enter).
ARM64      := $(BUILD)/arm64
ARM64_TREE := $(ARM64)/tree
ARM64_MAKE  = $(MAKE) BUILD=$(ARM64) CROSS=aarch64-linux-gnu- CPPFLAGS=--sysroot=$(ARM64_TREE) LDFLAGS=--sysroot=$(ARM64_TREE) \
    OPENBLAS_STATIC=$(ARM64_TREE)/usr/lib/aarch64-linux-gnu/openblas-pthread/libopenblas.a CUDA_INCLUDE='$(CUDA_INCLUDE)' TESTGPU_CUDA_INCLUDE='$(TESTGPU_CUDA_INCLUDE)' NVCC='$(NVCC)'
ARM64_TESTS    := tests/ops/test_toy.py tests/arm64/test_calls.py tests/programs/test_numpy.py tests/programs/test_octave.py tests/programs/test_r.py
# What these run.
ARM64_PROGRAMS := $(addprefix $(TESTS)/,random_calls random_calls64 fp_state fp_modes put_model steps) $(LACKING)
# Those that take long under qemu are left out (copy pool, gpu, schedule, smo, staging ...), and
# test_pack.c, which counts calls of libc that a compiler for AArch64 puts in for short loops.
ARM64_UNIT := $(addprefix tests/,base/test_ranks.c base/test_text.c cpu_ref/test_linear_judge.c cpu_ref/test_svm_judge.c cpu_ref/test_verify.c \
    dispatch/test_calibration.c dispatch/test_decide.c dispatch/test_model.c dispatch/test_settings.c gpu/test_choose.c gpu/test_stream_ctx.c gpu/test_nominal.c gpu/test_pool.c \
    gpu/test_admission.c ops/lapack/test_triangles.c ops/test_names.c ops/test_parse.c ops/test_series.c ops/test_shape.c report/test_report.c shim/test_objects.c shim/test_reads.c tool/test_elf_file.c)
ARM64_UNIT_PROGRAMS := $(addprefix $(TESTS)/,$(basename $(notdir $(ARM64_UNIT))))
.PHONY: test-arm64 arm64-programs run-arm64
arm64-programs: all testgpu $(TOY_PROGRAMS) $(ARM64_PROGRAMS) $(ARM64_UNIT_PROGRAMS)
# IF_POSSIBLE=1: where the machine cannot (tests/arm64/enter), says so, and that is all.
test-arm64:
	@if [ "$(IF_POSSIBLE)" = 1 ] && { [ "$$(id -u)" -ne 0 ] || ! printf '6.7\n%s\n' "$$(uname -r)" | sort -CV; }; then \
	    echo "test-arm64: left out: it needs root, and Linux 6.7 or newer"; \
	else scripts/install-deps build headers arm64 && $(MAKE) run-arm64; fi
# A make of its own: what has been fetched by now, this one's variables have looked for before.
run-arm64:
	$(MAKE) -j$(JOBS) $(BUILD)/libaccel.so
	$(ARM64_MAKE) -j$(JOBS) arm64-programs
	BUILD=$(BUILD) prove tests/arm64/test_names.py
	BUILD=$(ARM64) prove --timer --exec 'tests/arm64/enter $(ARM64_TREE)' tests/unit/run :: $(ARM64_UNIT)
	BUILD=$(ARM64) prove --timer --exec 'tests/arm64/enter $(ARM64_TREE)' $(ARM64_TESTS)
