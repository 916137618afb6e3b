#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Where cuBLAS's own limits are, and a kernel's: C is scaled by beta where k or alpha is 0; batches of more than 65535
products; a shape of bfloat16 that is refused; operands at odd addresses, in host and in device memory, results that
overlap inputs, more than 2^31 elements from the first to the last, and m or k beyond 2^31. All on the test GPU, which
does nothing there that cuBLAS's documentation does not promise."""

import re

import pytest

from lib.log import lines_for, outcomes
from lib.programs import BUILD, LOG, LONG, PLAIN, TEST_GPU, start

LACKING = BUILD / "tests/liblacking.so"
GPU = {**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0", "TESTGPU_REPORT": "/dev/stderr"}


def run(part, **env):
    """A run whose results are right, without misuse of CUDA."""
    done = start("limits", part, LACKING, env={**GPU, **env})
    assert done.returncode == 0, done.stderr[-600:]
    assert "wrong" not in done.stdout
    assert done.stdout.endswith("done\n")
    assert "testgpu faults n=0" in done.stderr
    return done


def test_scaling_by_beta():
    """Operands in device memory, where the CPU cannot do it: every routine with k = 0 or alpha = 0."""
    done = start("cuda_program", "-l", LACKING, "-f", "y", "-n", 4, "-c", 24 if LONG else 8, env=GPU)
    assert done.returncode == 0, done.stderr[-800:]
    assert "0 calls wrong" in done.stdout
    families = {re.sub("^[sdcz]|_(64_)?$", "", f["sym"]) for f in lines_for(done, k="0") if f["ran"] == "gpu0"
                and "0" not in (f.get("m"), f["n"])}
    assert not {"gemm", "gemm3m", "syrk", "syr2k", "herk", "her2k", "gemmt", "gemmtr", "gemm_batch",
                "gemm_batch_strided"} - families


def test_70000_products_on_the_gpu_with_strides_and_with_arrays():
    assert len(lines_for(run("batch"), ran="gpu0")) == 2


@pytest.mark.parametrize("code", [15, 7])  # not supported; an invalid value, after which the routine is left to the CPU
def test_of_70000_products_in_device_memory_the_first_65535_stay(code):
    """The CPU has the others."""
    done = run("refused", TESTGPU_FAIL=f"cublasDgemmStridedBatched_64:2={code},cublasDgemmBatched_64:2={code}")
    assert [f["ran"] for f in lines_for(done)] == ["gpu0+cpu"] * 2


def test_a_refusal_of_bfloat16_is_of_one_shape():
    done = run("bfloat16", TESTGPU_FAIL="cublasGemmEx:1=15")
    assert outcomes(lines_for(done, sym="sbgemm_")) == [("cpu", "unsupported"), ("gpu0", "forced"), ("gpu0", "forced")]


def test_a_device_before_8_0_has_no_products_of_bfloat16():
    done = run("bfloat16", TESTGPU_ATTRIBUTES="75=7,76=5")  # cuda.h's numbers of the compute capability
    assert outcomes(lines_for(done, sym="sbgemm_")) == [("cpu", "unsupported")] * 3


def test_odd_addresses_all_on_the_gpu():
    assert len(lines_for(run("odd"), ran="gpu0")) == 4


def test_device_memory_at_odd_addresses():
    """No kernel gets it, and the device stays."""
    assert outcomes(lines_for(run("misaligned"))) == [("cpu", "unsupported")] * 16 + [("gpu0", "device_data")]


def test_more_than_2_31_elements_from_the_first_to_the_last():
    assert len(lines_for(run("far"), sym="sgemm_", ran="gpu0")) == 1


@pytest.mark.skipif(not LONG, reason="with TEST_LONG=1")
def test_m_and_k_beyond_2_31():
    """Of an 8 GB operand in 12 MB of memory: right in the first, the last and the rows between."""
    done = start("tall", 2049, env={**GPU, "ACCEL_MEMORY": "256M"})
    assert done.returncode == 0, done.stderr[-600:]
    assert done.stdout == "rows 2148532224\ndone\n"
    assert "testgpu faults n=0" in done.stderr
    lines = [[f[key] for key in ("m", "k", "ran", "up_mb", "down_mb")] for f in lines_for(done)]
    # Bytes: 4 m up, 4 m down; 2 * 4 k up (and C), 4 down.
    assert lines == [["2148532224", "1", "gpu0", "8594", "8594"], ["1", "2148532224", "gpu0", "17188", "0.000004"]]


def test_results_that_are_also_inputs():
    """The original's calls; blocks of one matrix are not."""
    native = start("limits", "overlap", LACKING, env={**PLAIN, "LD_LIBRARY_PATH": str(BUILD / "testgpu")})
    done = run("overlap")
    assert done.stdout == native.stdout
    assert outcomes(lines_for(done)) == [("cpu", "unsupported")] * 4 + [("gpu0", "forced")]
