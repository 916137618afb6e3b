#!/usr/bin/python3 -B
"""Where cuBLAS's own limits are, and a kernel's: C is scaled by beta where k or alpha is 0; batches of more than 65535 products;
a shape of bfloat16 that is refused; operands at odd addresses, in host and in device memory, results that overlap inputs, more than 2^31
elements from the first to the last, and m or k beyond 2^31. All on the test GPU, which does nothing there that cuBLAS's documentation does not promise."""

import collections
import re

from lib.log import lines_for, outcomes
from lib.programs import BUILD, LOG, LONG, PLAIN, TEST_GPU, start
from lib.tap import Tap

LACKING = BUILD / "tests/liblacking.so"
GPU = {**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0", "TESTGPU_REPORT": "/dev/stderr"}

tap = Tap()


def run(part, env={}):
    done = start("limits", part, LACKING, env={**GPU, **env})
    tap.ok(done.returncode == 0 and "wrong" not in done.stdout and done.stdout.endswith("done\n"), f"{part}: right",
           done.returncode, done.stdout, done.stderr[-600:])
    tap.ok("testgpu faults n=0" in done.stderr, f"{part}: no misuse of CUDA",
           *[line for line in done.stderr.splitlines() if "fault" in line][:5])
    return done


# ---- Scaling by beta: operands in device memory, where the CPU cannot do it ----

done = start("cuda_program", "-l", LACKING, "-f", "y", "-n", 4, "-c", 24 if LONG else 8, env=GPU)
tap.ok(done.returncode == 0 and "0 calls wrong" in done.stdout, "scaling: every routine with k = 0 or alpha = 0", done.returncode, done.stdout,
       done.stderr[-800:])
scaled = collections.Counter(re.sub(r"_(64_)?$", "", f["sym"]) for f in lines_for(done, k="0") if f["ran"] == "gpu0" and "0" not in (f.get("m"), f["n"]))
families = {re.sub("^[sdcz]", "", sym) for sym in scaled}
tap.ok({"gemm", "gemm3m", "syrk", "syr2k", "herk", "her2k", "gemmt", "gemmtr", "gemm_batch", "gemm_batch_strided"} <= families,
       "scaling: k = 0 of every family was on the GPU", *sorted(families))

# ---- Long batches ----

done = run("batch")
tap.ok(len(lines_for(done, ran="gpu0")) == 2, "batch: 70000 products on the GPU, with strides and with arrays", *lines_for(done))

for code in (15, 7):  # not supported; an invalid value, after which the routine is left to the CPU
    done = run("refused", {"TESTGPU_FAIL": f"cublasDgemmStridedBatched_64:2={code},cublasDgemmBatched_64:2={code}"})
    lines = [f["ran"] for f in lines_for(done)]
    tap.ok(lines == ["gpu0+cpu"] * 2, f"refused: of 70000 products in device memory the first 65535 stay, the CPU has the others ({code})", *lines_for(done))

# ---- bfloat16 ----

done = run("bfloat16", {"TESTGPU_FAIL": "cublasGemmEx:1=15"})
ran = outcomes(lines_for(done, sym="sbgemm_"))
tap.ok(ran == [("cpu", "unsupported"), ("gpu0", "forced"), ("gpu0", "forced")], "bfloat16: a refusal is of one shape", *ran)

done = run("bfloat16", {"TESTGPU_ATTRIBUTES": "75=7,76=5"})  # cuda.h's numbers of the compute capability
ran = outcomes(lines_for(done, sym="sbgemm_"))
tap.ok(ran == [("cpu", "unsupported")] * 3, "bfloat16: a device before 8.0 has no such products", *ran)

# ---- Odd addresses, more than 2^31 elements ----

done = run("odd")
tap.ok(len(lines_for(done, ran="gpu0")) == 4, "odd addresses: all on the GPU", *lines_for(done))
done = run("misaligned")
ran = outcomes(lines_for(done))
tap.ok(ran == [("cpu", "unsupported")] * 16 + [("gpu0", "device_data")],
       "device memory at odd addresses: no kernel gets it, and the device stays", *ran)
done = run("far")
tap.ok(len(lines_for(done, sym="sgemm_", ran="gpu0")) == 1, "2^31 elements: on the GPU", done.stdout, *lines_for(done))

# ---- m and k beyond 2^31, of an 8 GB operand in 12 MB of memory ----

if LONG:
    done = start("tall", 2049, env={**GPU, "ACCEL_MEMORY": "256M"})
    tap.ok(done.returncode == 0 and done.stdout == "rows 2148532224\ndone\n" and "testgpu faults n=0" in done.stderr,
           "m and k beyond 2^31: right in the first, the last and the rows between", done.returncode, done.stdout, done.stderr[-600:])
    lines = [[f[key] for key in ("m", "k", "ran", "up_mb", "down_mb")] for f in lines_for(done)]
    # Bytes: 4 m up, 4 m down; 2 * 4 k up (and C), 4 down.
    tap.ok(lines == [["2148532224", "1", "gpu0", "8594", "8594"], ["1", "2148532224", "gpu0", "17188", "0.000004"]],
           "m and k beyond 2^31: on the GPU, with the bytes that it takes", *lines)
else:
    print("# m and k beyond 2^31: with TEST_LONG=1")

# ---- Results that are also inputs ----

native = start("limits", "overlap", LACKING, env={**PLAIN, "LD_LIBRARY_PATH": str(BUILD / "testgpu")})
done = run("overlap")
tap.ok(done.stdout == native.stdout, "overlap: the original's results", native.stdout, done.stdout)
ran = outcomes(lines_for(done))
tap.ok(ran == [("cpu", "unsupported")] * 4 + [("gpu0", "forced")], "overlap: the original's calls; blocks of one matrix are not", *ran)
tap.done()
