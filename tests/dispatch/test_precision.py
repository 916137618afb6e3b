#!/usr/bin/python3 -B
"""ACCEL_PRECISION: nothing but native unless it is asked for; the modes of cuBLAS, their workspace, their results, what the log and the verification say."""

import re
import tempfile
from pathlib import Path

from lib.calibrated import AUTO, keys, lines, put
from lib.log import lines_for, said, summaries
from lib.programs import BUILD, DEBIAN_PYTHON, LOG, TEST_GPU, TESTS, start
from lib.tap import Tap

tap = Tap()
GPU = {**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0", "TESTGPU_MEMORY": "2G"}
BLACKWELL = {"TESTGPU_ATTRIBUTES": "75=10,76=0"}  # cuda.h's numbers of the compute capability

# For each type: a digest of the product's bytes, and its error in units of (|A| |B|) of each
# element, against long double.
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
for name, told in ("sgemm", None), ("cgemm", None), ("dsyrk", "native"), ("dgesv", "native"):
    tap.ok(emulated[name] == native[name] and logged(done, name) == [told], f"{name} is native, bit for bit", logged(done, name))
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

# ---- Other products: each by the precisions that cuBLAS's notes name for it, the rest in native
# precision ----

B200 = {**BLACKWELL, "TESTGPU_CUBLAS_MINOR": "3"}  # of CUDA 13.2
GEMM, RANK_K, OTHERS = "gemm|gemm_batch|gemm_batch_strided", "syrk|herk|syr2k|her2k", "symm|hemm|trmm|trsm|gemmt"


def random(letters, precision, **env):
    """{routine: what the log says of its calls}, random calls of Level 3 whose results the program judges; the lines, the trace and the run."""
    with tempfile.NamedTemporaryFile("r", prefix="accel-trace-") as trace:
        done = start("random_calls", "-l", TESTS / "liblacking.so", "-f", "y", "-r", f"[{letters}]@({GEMM}|{RANK_K}|{OTHERS})", "-s", 7, "-c", 6, 1,
                     env={**GPU, "TESTGPU_SEED": "1", "TESTGPU_TRACE": trace.name, "ACCEL_PRECISION": precision, "ACCEL_VERIFY": "all", **env})
        seen = {}
        for f in lines_for(done):
            if f["ran"] == "gpu0":
                seen.setdefault(re.sub("_$", "", f["sym"].removeprefix("cblas_")), set()).add(f.get("precision"))
        return seen, done, Path(trace.name).read_text().splitlines()


def of(seen, names):
    return {name: told for name, told in seen.items() if re.fullmatch(f"[sdcz]({names})", name)}


def has(seen, names, told, least):
    """Whether at least so many routines of these names ran, and in this precision where they could."""
    there = of(seen, names)
    return len(there) >= least and all(told in one and one <= {told, "native"} for one in there.values())


def good(done):
    return done.returncode == 0 and re.search(r"calls, 0 wrong$", done.stdout, re.M) and not said(done) and all(float(f.get("verify", 0)) <= 1 for f in lines_for(done) if f.get("verify") != "unknown")


seen, done, trace = random("sdcz", "native", **B200)
tap.ok(good(done) and len(seen) >= 40 and set().union(*seen.values()) == {None} and not asked_of_cublas(trace), "native: no routine of Level 3 asks cuBLAS for another precision", len(seen), done.stdout[-300:], done.stderr[-300:])
for what, env, emulates in ("B200 with CUDA 13.2", B200, True), ("B200 with CUDA 13.0", BLACKWELL, False), ("RTX PRO 6000", {"TESTGPU_ATTRIBUTES": "75=12,76=0", "TESTGPU_CUBLAS_MINOR": "3"}, False):
    seen, done, trace = random("dz", "emulated", **env)
    tap.ok(good(done) and has(seen, GEMM, "emulated", 6), f"{what}: gemm and its batches are emulated, within the native bounds", seen, done.stdout[-300:], *said(done))
    tap.ok(has(seen, RANK_K, "emulated", 6) if emulates else set().union(*of(seen, RANK_K).values()) == {"native"}, f"{what}: syrk and its relatives are {'emulated' if emulates else 'native'}", of(seen, RANK_K))
    tap.ok(set().union(*of(seen, OTHERS).values()) == {"native"}, f"{what}: the others are native, and the log says so", of(seen, OTHERS))
seen, done, trace = random("sc", "bf16x9", **B200)
tap.ok(good(done) and has(seen, f"{GEMM}|{RANK_K}", "bf16x9", 12) and set().union(*of(seen, OTHERS).values()) == {"native"}, "bf16x9: products and syrk, within the native bounds; the others are native",
       seen, done.stdout[-300:], *said(done))
seen, done, trace = random("sc", "tf32")
judged = [float(f["verify"]) for f in lines_for(done) if f.get("verify", "unknown") != "unknown"]
tap.ok(has(seen, f"{GEMM}|{RANK_K}|{OTHERS}", "tf32", 20) and judged and max(judged) <= 1 and not said(done), "tf32: all of Level 3, verified by its bound", seen, max(judged, default=None), *said(done))
tap.ok(not good(done), "which the native bound is not")
_, done, _ = products("d", "others", "small", ACCEL_PRECISION="dsyrk_:emulated", ACCEL_VERIFY="all", TESTGPU_WRONG="syrk_emulated:1", **B200)
tap.ok("wrong" in "".join(said(done)) and logged(done, "dsyrk") == ["emulated"] and logged(done, "dgemm") == [None], "emulated: a wrong element of syrk is found; by routine", done.stderr[-300:])

# ---- By routine ----

both, done, _ = products("sdcz", ACCEL_PRECISION="dgemm:emulated, SGEMM:tf32")
tap.ok([logged(done, f"{t}gemm")[0] for t in "sdcz"] == ["tf32", "emulated", None, None], "by routine", done.stderr[-500:])
both, done, _ = products("sdcz", ACCEL_PRECISION="emulated,tf32,cgemm:native")
tap.ok([logged(done, f"{t}gemm")[0] for t in "sdcz"] == ["tf32", "emulated", None, "emulated"], "of two for one routine the later counts", done.stderr[-500:])

# ---- The estimate: measured rates before the nominal ones ----

with tempfile.TemporaryDirectory() as folder:
    model = f"{folder}/model"
    known = keys(folder)
    rates = "up_gbps=100\ndown_gbps=100\ndgemm " + " ".join(f"{n}x{n}x{n}:{(n / 500) ** 3:.6f}" for n in (200, 300, 500, 800, 1000, 2000)) + "\n"

    def estimated(gain, **env):
        """What emulated products of order 500 are thought to take, and the calibration afterwards."""
        put(model, {known["blas"]: lines(100), known["gpu"]: f"gain_emulated={gain}\n{rates}" if gain else rates})
        done = start("steps", "dgemm:500:2", env={**AUTO, **LOG, "ACCEL_START": "wait", "ACCEL_MODEL": model, "ACCEL_PRECISION": "emulated", "TESTGPU_DELAY_US": "0", **env})
        return [float(f["est_gpu_ms"]) for f in lines_for(done, sym="dgemm_")][-1], Path(model).read_text()

    nominal, faster, slower = (estimated(gain)[0] for gain in (None, 5, 0.5))
    tap.ok(faster < 0.9 * nominal < nominal * 1.2 < slower, "a calibration's rate of the precision counts, and an old file's nominal one", faster, nominal, slower)
    tap.ok("\ngain_emulated=5\n" in estimated(5, ACCEL_LEARN="1")[1] and "gain_" not in estimated(None, ACCEL_LEARN="1")[1], "and stays there when libaccel learns")

# ---- What it would bring: the summary's hint, on cards that are slow in double precision ----


def hints(**env):
    """Of five products of order 4000, which a card with 900 Gflop/s would need 0.7 s for. Nothing is computed."""
    done = start(str(BUILD / "accel"), "run", "--summary", "--", DEBIAN_PYTHON, "-c", "import numpy; a = numpy.ones((4000, 4000)); b = a.copy()\nfor i in range(5): a @ b",
                 env={**TEST_GPU, "ACCEL_SUMMARY": "json", "TESTGPU_MEMORY": "4G", "TESTGPU_DATA": "0", "TESTGPU_GFLOPS": "900", "TESTGPU_DELAY_US": "0", **env})
    found = summaries(done.stderr)
    return [hint for hint in found[0]["hints"] if "ACCEL_PRECISION" in hint] if len(found) == 1 and found[0]["rows"][0]["ran"] == "gpu0" else [done.stderr]


# By the estimates it would save 0.82 s, by the measured time less, unless the machine is busy.
SLOW = {"TESTGPU_ATTRIBUTES": "75=8,76=9"}
rtx = hints(**SLOW)
wanted = r"dgemm on this card: native 0\.\d{3} TF/s, emulated \d+\.\d; ACCEL_PRECISION=emulated would save about 0\.([5-7]\d|8[0-3]) s in 5 calls \(docs/precision\.md .*\)"
tap.ok(len(rtx) == 1 and re.fullmatch(wanted, rtx[0]), "a card with slow double precision: the summary says what emulation would save", *rtx)
for what, env in (("a card that is as fast in native precision", {}), ("cuBLAS 12, which cannot emulate", {**SLOW, "ACCEL_CUDA_DIR": str(BUILD / "testgpu-cuda12")}),
                  ("one that is asked to emulate", {**SLOW, "ACCEL_PRECISION": "emulated"})):
    none = hints(**env)
    tap.ok(not none, f"{what}: no such hint", *none)

# ---- Bad names, and what is not there: one line ----

for wrong in ("fast", "dgemm:tf32", "sgemm:emulated", "dgemmm:emulated", "dgemm:", ":tf32", "dsymm:emulated", "dgesv:emulated", "zgemm3m:emulated", "emulated;tf32"):
    done = start("steps", "dgemm:64:2", env={**GPU, "ACCEL_PRECISION": wrong})
    lines = said(done)
    tap.ok(done.returncode == 0 and len(lines) == 1 and wrong in lines[0] and all(word in lines[0] for word in ("native", "emulated", "tf32", "bf16x9", "double precision alone", "ROUTINE:emulated"))
           and logged(done, "dgemm") == [None, None], f"{wrong!r} is named in one line with those allowed, and native is used", *lines)

for what, env, precision in (("compute capability 9.0", {}, "bf16x9"), ("compute capability 7.5", {"TESTGPU_ATTRIBUTES": "75=7,76=5"}, "tf32,emulated"),
                             ("cuBLAS 12", {"ACCEL_CUDA_DIR": str(BUILD / "testgpu-cuda12")}, "emulated")):
    results, done, trace = products("sdsd", ACCEL_PRECISION=precision, **env)
    lines = said(done)
    tap.ok(len(lines) == len(precision.split(",")) and all(word in " ".join(lines) for word in precision.split(",")) and all("native precision is used" in line for line in lines)
           and not asked_of_cublas(trace) and {f.get("precision") for f in lines_for(done)} in ({None, "native"}, {"native"}),
           f"{what} has no {precision}: one line for each, and native is used", *lines, *asked_of_cublas(trace)[:2])

tap.done()
