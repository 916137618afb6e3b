#!/usr/bin/python3 -B
"""ACCEL_PRECISION: nothing but native unless it is asked for; the modes of cuBLAS, their workspace, their results, what the log and the verification say."""

import re
import tempfile
from pathlib import Path

from lib.log import lines_for, said
from lib.programs import BUILD, DEBIAN_PYTHON, LOG, TEST_GPU, start
from lib.tap import Tap

tap = Tap()
GPU = {**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0", "TESTGPU_MEMORY": "2G"}
BLACKWELL = {"TESTGPU_ATTRIBUTES": "75=10,76=0"}  # cuda.h's numbers of the compute capability

# For each type: a digest of the product's bytes, and its error in units of (|A| |B|) of each element, against long double.
PROGRAM = """
import hashlib, sys, numpy as np
from scipy.linalg import blas, lapack
rng = np.random.default_rng(5)
spread = float(sys.argv[2])
for letter in sys.argv[1]:
    real = np.float32 if letter in "sc" else np.float64
    def matrix(rows, cols):
        x = rng.standard_normal((rows, cols))
        if letter in "cz":
            x = x + 1j * rng.standard_normal((rows, cols))
        return np.asfortranarray(x * 10.0 ** rng.uniform(-spread, spread, (rows, cols)), dtype=(x.astype(np.complex64).dtype if letter == "c" else x.dtype if letter == "z" else real))
    a, b, c = matrix(90, 150), matrix(150, 70), matrix(90, 70)
    if "small" in sys.argv:
        a, b = np.asfortranarray(a * real(0.01)), np.asfortranarray(b * real(0.1))
    if "nan" in sys.argv:
        a[3, 5] = np.nan
    got = getattr(blas, letter + "gemm")(0.5, a, b, 2.0, c)
    wide = np.clongdouble if letter in "cz" else np.longdouble
    right = wide(0.5) * (a.astype(wide) @ b.astype(wide)) + 2 * c.astype(wide)
    error = np.nanmax(np.abs(got - right) / (np.abs(a).astype(np.longdouble) @ np.abs(b) + np.abs(c)))
    print(letter + "gemm", hashlib.sha1(got.tobytes()).hexdigest(), float(error))
if "others" in sys.argv:
    print("dsyrk", hashlib.sha1(blas.dsyrk(1.0, a).tobytes()).hexdigest(), 0)
    print("dgesv", hashlib.sha1(lapack.dgesv(a[:, :90], b[:90])[2].tobytes()).hexdigest(), 0)
"""


def products(types, *more, spread=0, **env):
    """{routine: (digest, error)}, the run, and the lines of the test GPU's trace."""
    with tempfile.NamedTemporaryFile("r", prefix="accel-trace-") as trace:
        done = start(DEBIAN_PYTHON, "-c", PROGRAM, types, spread, *more, env={**GPU, "TESTGPU_TRACE": trace.name, **env})
        results = {name: (digest, float(error)) for name, digest, error in re.findall(r"(?m)^(\w+) (\w+) (\S+)$", done.stdout)}
        return results, done, Path(trace.name).read_text().splitlines()


def logged(done, sym):
    return [f.get("precision") for f in lines_for(done, sym=sym + "_")]


def asked_of_cublas(trace):
    return [line for line in trace if re.search("MathMode|Emulation|SetWorkspace|emulated|tf32|bf16x9", line)]


# ---- Never without being asked ----

native, done, trace = products("sdcz", "others")
tap.ok(len(native) == 6 and not said(done), "all four types run", done.stderr[-500:])
tap.ok(len(trace) > 50 and not asked_of_cublas(trace), "by default no call of cuBLAS asks for another precision", *asked_of_cublas(trace)[:3])
tap.ok(not any(f.get("precision") for f in lines_for(done)), "and the log has no precision=", done.stderr[-300:])
again, done, trace = products("sdcz", "others", ACCEL_PRECISION="native")
tap.ok(again == native and not asked_of_cublas(trace) and not said(done), "nor with native, and the results are the same bits", *said(done))

# ---- Double precision, emulated ----

emulated, done, trace = products("sdcz", "others", ACCEL_PRECISION="emulated", ACCEL_VERIFY="all")
for name in ("dgemm", "zgemm"):
    tap.ok(emulated[name][0] != native[name][0] and logged(done, name) == ["emulated"], f"{name} is emulated, and the log says so", logged(done, name), said(done))
    tap.ok(emulated[name][1] < 16 * 2.0**-53, f"{name}'s error is {emulated[name][1]:.1e} of |A||B|, native {native[name][1]:.1e}")
for name in ("sgemm", "cgemm", "dsyrk", "dgesv"):
    tap.ok(emulated[name] == native[name] and logged(done, name) == [None], f"{name} is native, bit for bit", logged(done, name))
tap.ok(all(float(f["verify"]) <= 1 for f in lines_for(done)), "all results are verified by the native bound")
calls = [line for line in trace if re.search("cublas(SetMathMode|SetWorkspace|SetStream|[DZ]gemm|SetFixed)", line)]
order = " ".join(re.findall(r"cublas(SetMathMode\S*|SetWorkspace|[DZ]gemm|SetFixed)", "\n".join(calls)))
tap.ok(re.search("SetWorkspace.*SetFixed.*Dgemm.*SetFixed", order), "the workspace comes before the product", order)
modes = re.findall(r"cublasSetMathMode.* value=(\d+)", "\n".join(trace))
tap.ok(modes[0] == "8" and modes[-1] == "0" and set(modes) == {"0", "8"}, "the mode is the emulation's, and native again for what is not", modes)
sizes = [int(n) for n in re.findall(r"cublasSetWorkspace.* bytes=(\d+)", "\n".join(trace))]
tap.ok(sizes and min(sizes) > 128 << 20, "the workspace is the one that cuBLAS's documentation asks for", sizes)

# ---- What cuBLAS does by itself ----

for what, arguments, options in (("numbers too far apart for the bits", ["d"], {"spread": 30}), ("a NaN", ["d", "nan"], {}),
                                 ("no memory for the workspace", ["d"], {"TESTGPU_MEMORY": "200M"})):
    by_itself, done, trace = products(*arguments, ACCEL_PRECISION="emulated", **options)
    plain, _, _ = products(*arguments, **options)
    tap.ok(by_itself["dgemm"][0] == plain["dgemm"][0] and logged(done, "dgemm") == ["native"], f"{what}: native, and the log says so", logged(done, "dgemm"), done.stderr[-300:])

# A failure beside the product does not undo it: C has been written already, and beta is 2.
for function in ("cublasSetMathMode:1", "cublasSetWorkspace_v2:1", "cublasSetFixedPointEmulationMantissaBitCountPointer:1", "cublasSetFixedPointEmulationMantissaBitCountPointer:2",
                 "cublasSetStream_v2:2", "cuMemcpyDtoHAsync_v2:2"):
    failing, done, _ = products("d", ACCEL_PRECISION="emulated", TESTGPU_FAIL=function)
    tap.ok(done.returncode == 0 and failing.get("dgemm", (0, 1))[1] < 16 * 2.0**-53, f"{function} fails, and the results are right", done.stderr[-400:])

# A product too large for the workspace that there is room for goes through in tiles.
tiled, done, trace = products("d", ACCEL_PRECISION="emulated", TESTGPU_MEMORY="600M", ACCEL_MEMORY="450M")
tap.ok(logged(done, "dgemm") == ["emulated"], "with little memory it is emulated, too", logged(done, "dgemm"), done.stderr[-300:])

# ---- Single precision ----

for precision, mode, bound, env in (("tf32", "3", 2.1 * 2.0**-10, {}), ("bf16x9", "4", 16 * 2.0**-24, BLACKWELL)):
    plain, _, _ = products("sdc", **env)
    single, done, trace = products("sdc", ACCEL_PRECISION=precision, ACCEL_VERIFY="all", **env)
    for name in ("sgemm", "cgemm"):
        tap.ok(single[name][0] != plain[name][0] and logged(done, name) == [precision], f"{precision}: {name}, in the log too", logged(done, name), said(done))
        tap.ok(single[name][1] < bound, f"{precision}: {name}'s error is {single[name][1]:.1e} of |A||B|, native {plain[name][1]:.1e}")
    tap.ok(single["dgemm"] == plain["dgemm"], f"{precision}: dgemm is native")
    tap.ok(all(float(f["verify"]) <= 1 for f in lines_for(done)), f"{precision}: verified by its bound", [f["verify"] for f in lines_for(done)])
    if precision == "tf32":
        tap.ok(single["sgemm"][1] > 100 * plain["sgemm"][1], "tf32 is far less exact than native")
    _, done, _ = products("s", "small", ACCEL_PRECISION=precision, ACCEL_VERIFY="all", TESTGPU_WRONG=f"gemm_{precision}:1", **env)
    tap.ok("wrong" in "".join(said(done)), f"{precision}: a wrong element is found", done.stderr[-300:])

# ---- By routine ----

both, done, _ = products("sdcz", ACCEL_PRECISION="dgemm:emulated, SGEMM:tf32")
tap.ok([logged(done, f"{t}gemm")[0] for t in "sdcz"] == ["tf32", "emulated", None, None], "by routine", done.stderr[-500:])
both, done, _ = products("sdcz", ACCEL_PRECISION="emulated,tf32,cgemm:native")
tap.ok([logged(done, f"{t}gemm")[0] for t in "sdcz"] == ["tf32", "emulated", None, "emulated"], "of two for one routine the later counts", done.stderr[-500:])

# ---- Bad names, and what is not there: one line ----

for wrong in ("fast", "dgemm:tf32", "sgemm:emulated", "dgemmm:emulated", "dgemm:", ":tf32", "dsyrk:emulated", "emulated;tf32"):
    done = start("steps", "dgemm:64:2", env={**GPU, "ACCEL_PRECISION": wrong})
    lines = said(done)
    tap.ok(done.returncode == 0 and len(lines) == 1 and wrong in lines[0] and all(word in lines[0] for word in ("native", "emulated", "tf32", "bf16x9", "ROUTINE:emulated"))
           and logged(done, "dgemm") == [None, None], f"{wrong!r} is named in one line with those allowed, and native is used", *lines)

for what, env, precision in (("compute capability 9.0", {}, "bf16x9"), ("compute capability 7.5", {"TESTGPU_ATTRIBUTES": "75=7,76=5"}, "tf32,emulated"),
                             ("cuBLAS 12", {"ACCEL_CUDA_DIR": str(BUILD / "testgpu-cuda12")}, "emulated")):
    results, done, trace = products("sdsd", ACCEL_PRECISION=precision, **env)
    lines = said(done)
    tap.ok(len(lines) == len(precision.split(",")) and all(word in " ".join(lines) for word in precision.split(",")) and all("native precision is used" in line for line in lines)
           and not asked_of_cublas(trace) and not any(f.get("precision") for f in lines_for(done)),
           f"{what} has no {precision}: one line for each, and native is used", *lines, *asked_of_cublas(trace)[:2])

tap.done()
