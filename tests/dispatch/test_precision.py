#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""ACCEL_PRECISION: nothing but native unless it is asked for; the modes of cuBLAS, their workspace, their results, what
the log and the verification say."""

import re
import tempfile
from pathlib import Path

import pytest

from lib.calibrated import AUTO, keys, lines, put
from lib.log import lines_for, said, summaries
from lib.programs import BUILD, DEBIAN_PYTHON, LOG, TEST_GPU, TESTS, start

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
        done = start(DEBIAN_PYTHON, "-c", PROGRAM, types, spread, *more,
                     env={**GPU, "TESTGPU_TRACE": trace.name, **env})
        results = {name: (digest, float(error)) for name, digest,
                   error in re.findall(r"(?m)^(\w+) (\w+) (\S+)$", done.stdout)}
        return results, done, Path(trace.name).read_text().splitlines()


def logged(done, sym):
    return [f.get("precision") for f in lines_for(done, sym=sym + "_")]


def asked_of_cublas(trace):
    return [line for line in trace if re.search("MathMode|Emulation|SetWorkspace|emulated|tf32|bf16x9", line)]


# ---- Never without being asked ----


@pytest.fixture(scope="module")
def plain():
    """All four types and others, without the setting: (results, run, trace)."""
    return products("sdcz", "others")


def test_by_default_no_call_of_cublas_asks_for_another_precision(plain):
    native, done, trace = plain
    assert len(native) == 6, done.stderr[-500:]
    assert not said(done)
    assert len(trace) > 50
    assert not asked_of_cublas(trace)
    assert not any(f.get("precision") for f in lines_for(done))


def test_nor_with_native_and_the_results_are_the_same_bits(plain):
    again, done, trace = products("sdcz", "others", ACCEL_PRECISION="native")
    assert again == plain[0]
    assert not asked_of_cublas(trace)
    assert not said(done)


# ---- Double precision, emulated ----


@pytest.fixture(scope="module")
def emulated():
    return products("sdcz", "others", ACCEL_PRECISION="emulated", ACCEL_VERIFY="all")


@pytest.mark.parametrize("name", ["dgemm", "zgemm"])
def test_double_precision_is_emulated_and_the_log_says_so(name, emulated, plain):
    results, done, _ = emulated
    assert results[name][0] != plain[0][name][0]
    assert logged(done, name) == ["emulated"]
    assert results[name][1] < 16 * 2.0**-53


@pytest.mark.parametrize("name, told", [("sgemm", None), ("cgemm", None), ("dsyrk", "native"), ("dgesv", "native")])
def test_others_are_native_bit_for_bit(name, told, emulated, plain):
    results, done, _ = emulated
    assert results[name] == plain[0][name]
    assert logged(done, name) == [told]


def test_all_results_are_verified_by_the_native_bound(emulated):
    assert all(float(f["verify"]) <= 1 for f in lines_for(emulated[1]))


def test_calls_of_cublas_for_emulation(emulated):
    """The mode is the emulation's, and native again for what is not. The workspace, which is the one that cuBLAS's
    documentation asks for, comes before the product."""
    trace = "\n".join(emulated[2])
    order = " ".join(re.findall(r"cublas(SetMathMode\S*|SetWorkspace|[DZ]gemm|SetFixed)", trace))
    assert re.search("SetWorkspace.*SetFixed.*Dgemm.*SetFixed", order)
    modes = re.findall(r"cublasSetMathMode.* value=(\d+)", trace)
    assert modes[0] == "8"
    assert modes[-1] == "0"
    assert set(modes) == {"0", "8"}
    assert min(int(n) for n in re.findall(r"cublasSetWorkspace.* bytes=(\d+)", trace)) > 128 << 20


@pytest.mark.parametrize("arguments, options", [
    pytest.param(["d"], {"spread": 30}, id="numbers too far apart for the bits"),
    pytest.param(["d", "nan"], {}, id="a NaN"),
    pytest.param(["d"], {"TESTGPU_MEMORY": "200M"}, id="no memory for the workspace")])
def test_what_cublas_does_by_itself_is_native_and_the_log_says_so(arguments, options):
    by_itself, done, _ = products(*arguments, ACCEL_PRECISION="emulated", **options)
    assert by_itself["dgemm"][0] == products(*arguments, **options)[0]["dgemm"][0]
    assert logged(done, "dgemm") == ["native"]


@pytest.mark.parametrize("function", ["cublasSetMathMode:1", "cublasSetWorkspace_v2:1",
                                      "cublasSetFixedPointEmulationMantissaBitCountPointer:1",
                                      "cublasSetFixedPointEmulationMantissaBitCountPointer:2", "cublasSetStream_v2:2",
                                      "cuMemcpyDtoHAsync_v2:2"])
def test_a_failure_beside_the_product_does_not_undo_it(function):
    """C has been written already, and beta is 2."""
    failing, done, _ = products("d", ACCEL_PRECISION="emulated", TESTGPU_FAIL=function)
    assert done.returncode == 0, done.stderr[-400:]
    assert failing["dgemm"][1] < 16 * 2.0**-53


def test_with_little_memory_it_is_emulated_too():
    """A product too large for the workspace that there is room for goes through in tiles."""
    assert logged(products("d", ACCEL_PRECISION="emulated", TESTGPU_MEMORY="600M", ACCEL_MEMORY="450M")[1],
                  "dgemm") == ["emulated"]


# ---- Single precision ----


@pytest.mark.parametrize("precision, bound", [("tf32", 2.1 * 2.0**-10), ("bf16x9", 16 * 2.0**-24)])
def test_single_precision(precision, bound):
    """Verified by its bound. dgemm is native."""
    env = BLACKWELL if precision == "bf16x9" else {}
    plain, _, _ = products("sdc", **env)
    single, done, _ = products("sdc", ACCEL_PRECISION=precision, ACCEL_VERIFY="all", **env)
    for name in ("sgemm", "cgemm"):
        assert single[name][0] != plain[name][0], name
        assert logged(done, name) == [precision], name
        assert single[name][1] < bound, name
    assert single["dgemm"] == plain["dgemm"]
    assert all(float(f["verify"]) <= 1 for f in lines_for(done))
    assert precision != "tf32" or single["sgemm"][1] > 100 * plain["sgemm"][1]


@pytest.mark.parametrize("precision", ["tf32", "bf16x9"])
def test_a_wrong_element_in_single_precision_is_found(precision):
    env = BLACKWELL if precision == "bf16x9" else {}
    _, done, _ = products("s", "small", ACCEL_PRECISION=precision, ACCEL_VERIFY="all",
                          TESTGPU_WRONG=f"gemm_{precision}:1", **env)
    assert "wrong" in "".join(said(done))


# ---- Other products: each by the precisions that cuBLAS's notes name for it, the rest in native
# precision ----

B200 = {**BLACKWELL, "TESTGPU_CUBLAS_MINOR": "3"}  # of CUDA 13.2
GEMM, RANK_K, OTHERS = "gemm|gemm_batch|gemm_batch_strided", "syrk|herk|syr2k|her2k", "symm|hemm|trmm|trsm|gemmt"


def random(letters, precision, **env):
    """{routine: what the log says of its calls}, random calls of Level 3 whose results the program judges; the run; and
    the trace's lines."""
    with tempfile.NamedTemporaryFile("r", prefix="accel-trace-") as trace:
        done = start("random_calls", "-l", TESTS / "liblacking.so", "-f", "y", "-r",
                     f"[{letters}]@({GEMM}|{RANK_K}|{OTHERS})", "-s", 7, "-c", 6, 1,
                     env={**GPU, "TESTGPU_SEED": "1", "TESTGPU_TRACE": trace.name, "ACCEL_PRECISION": precision,
                          "ACCEL_VERIFY": "all", **env})
        seen = {}
        for f in lines_for(done):
            if f["ran"] == "gpu0":
                seen.setdefault(re.sub("_$", "", f["sym"].removeprefix("cblas_")), set()).add(f.get("precision"))
        return seen, done, Path(trace.name).read_text().splitlines()


def of(seen, names):
    return {name: told for name, told in seen.items() if re.fullmatch(f"[sdcz]({names})", name)}


def check_asked(seen, names, told, least):
    """At least so many routines of these names ran, and in this precision where they could."""
    there = of(seen, names)
    assert len(there) >= least
    assert not {name: one for name, one in there.items() if told not in one or not one <= {told, "native"}}


def check_native(seen, names):
    """And the log says so."""
    assert set().union(*of(seen, names).values()) == {"native"}


def judged(done):
    return [float(f["verify"]) for f in lines_for(done) if f.get("verify", "unknown") != "unknown"]


def is_right(done):
    return done.returncode == 0 and bool(re.search(r"calls, 0 wrong$", done.stdout, re.M))


def check_good(done):
    """Within the native bounds."""
    assert is_right(done)
    assert not said(done)
    assert max(judged(done), default=0) <= 1


def test_native_no_routine_of_level_3_asks_cublas_for_another_precision():
    seen, done, trace = random("sdcz", "native", **B200)
    check_good(done)
    assert len(seen) >= 40
    assert set().union(*seen.values()) == {None}
    assert not asked_of_cublas(trace)


@pytest.mark.parametrize("env, emulates", [
    pytest.param(B200, True, id="B200 with CUDA 13.2"), pytest.param(BLACKWELL, False, id="B200 with CUDA 13.0"),
    pytest.param({"TESTGPU_ATTRIBUTES": "75=12,76=0", "TESTGPU_CUBLAS_MINOR": "3"}, False, id="RTX PRO 6000")])
def test_what_is_emulated(env, emulates):
    """gemm and its batches everywhere."""
    seen, done, _ = random("dz", "emulated", **env)
    check_good(done)
    check_asked(seen, GEMM, "emulated", 6)
    if emulates:
        check_asked(seen, RANK_K, "emulated", 6)
    else:
        check_native(seen, RANK_K)
    check_native(seen, OTHERS)


def test_bf16x9_is_for_products_and_syrk():
    seen, done, _ = random("sc", "bf16x9", **B200)
    check_good(done)
    check_asked(seen, f"{GEMM}|{RANK_K}", "bf16x9", 12)
    check_native(seen, OTHERS)


def test_tf32_is_for_all_of_level_3_verified_by_its_bound():
    seen, done, _ = random("sc", "tf32")
    check_asked(seen, f"{GEMM}|{RANK_K}|{OTHERS}", "tf32", 20)
    assert not said(done)
    assert 0 <= max(judged(done)) <= 1
    assert not is_right(done)  # by the native bound


def test_a_wrong_element_of_an_emulated_syrk_is_found():
    _, done, _ = products("d", "others", "small", ACCEL_PRECISION="dsyrk_:emulated", ACCEL_VERIFY="all",
                          TESTGPU_WRONG="syrk_emulated:1", **B200)
    assert "wrong" in "".join(said(done))
    assert logged(done, "dsyrk") == ["emulated"]
    assert logged(done, "dgemm") == [None]


@pytest.mark.parametrize("value, expected", [
    pytest.param("dgemm:emulated, SGEMM:tf32", ["tf32", "emulated", None, None], id="by routine"),
    pytest.param("emulated,tf32,cgemm:native", ["tf32", "emulated", None, "emulated"],
                 id="of two for one routine the later counts")])
def test_by_routine(value, expected):
    _, done, _ = products("sdcz", ACCEL_PRECISION=value)
    assert [logged(done, f"{t}gemm")[0] for t in "sdcz"] == expected


# ---- The estimate: measured rates before the nominal ones ----


@pytest.fixture
def estimated(tmp_path):
    """What emulated products of order 500 are thought to take by a calibration with this gain, and the calibration
    afterwards."""
    known, model = keys(tmp_path), tmp_path / "model"
    rates = "up_gbps=100\ndown_gbps=100\ndgemm " + " ".join(f"{n}x{n}x{n}:{(n / 500) ** 3:.6f}"
                                                            for n in (200, 300, 500, 800, 1000, 2000)) + "\n"

    def run(gain, **env):
        put(model, {known["blas"]: lines(100), known["gpu"]: f"gain_emulated={gain}\n{rates}" if gain else rates})
        done = start("steps", "dgemm:500:2", env={**AUTO, **LOG, "ACCEL_START": "wait", "ACCEL_MODEL": str(model),
                                                  "ACCEL_PRECISION": "emulated",
                                                  "TESTGPU_DELAY_US": "0", **env})
        return [float(f["est_gpu_ms"]) for f in lines_for(done, sym="dgemm_")][-1], model.read_text()

    return run


def test_a_calibrations_rate_of_the_precision_counts_and_an_old_files_nominal_one(estimated):
    nominal, faster, slower = (estimated(gain)[0] for gain in (None, 5, 0.5))
    assert faster < 0.9 * nominal
    assert nominal * 1.2 < slower


def test_it_stays_there_when_libaccel_learns(estimated):
    assert "\ngain_emulated=5\n" in estimated(5, ACCEL_LEARN="1")[1]
    assert "gain_" not in estimated(None, ACCEL_LEARN="1")[1]


# ---- What it would bring: the summary's hint, on cards that are slow in double precision ----


def hints(**env):
    """Of five products of order 4000, which a card with 900 Gflop/s would need 0.7 s for. Nothing is computed."""
    program = "import numpy; a = numpy.ones((4000, 4000)); b = a.copy()\nfor i in range(5): a @ b"
    done = start(str(BUILD / "accel"), "run", "--summary", "--", DEBIAN_PYTHON, "-c", program,
                 env={**TEST_GPU, "ACCEL_SUMMARY": "json", "TESTGPU_MEMORY": "4G", "TESTGPU_DATA": "0",
                      "TESTGPU_GFLOPS": "900", "TESTGPU_DELAY_US": "0", **env})
    (found,) = summaries(done.stderr)
    assert found["rows"][0]["ran"] == "gpu0"
    return [hint for hint in found["hints"] if "ACCEL_PRECISION" in hint]


# By the estimates it would save 0.82 s, by the measured time less, unless the machine is busy.
SLOW = {"TESTGPU_ATTRIBUTES": "75=8,76=9"}


def test_a_card_with_slow_double_precision_the_summary_says_what_emulation_would_save():
    (hint,) = hints(**SLOW)
    assert re.fullmatch(r"dgemm on this card: native 0\.\d{3} TF/s, emulated \d+\.\d; ACCEL_PRECISION=emulated would save about "
                        r"0\.([5-7]\d|8[0-3]) s in 5 calls \(docs/precision\.md .*\)", hint)


@pytest.mark.parametrize("env", [pytest.param({}, id="a card that is as fast in native precision"),
                                 pytest.param({**SLOW, "ACCEL_CUDA_DIR": str(BUILD / "testgpu-cuda12")},
                                              id="cuBLAS 12, which cannot emulate"),
                                 pytest.param({**SLOW, "ACCEL_PRECISION": "emulated"},
                                              id="one that is asked to emulate")])
def test_no_such_hint(env):
    assert not hints(**env)


# ---- Bad names, and what is not there: one line ----


@pytest.mark.parametrize("wrong", ["fast", "dgemm:tf32", "sgemm:emulated", "dgemmm:emulated", "dgemm:", ":tf32",
                                   "dsymm:emulated", "dgesv:emulated",
                                   "zgemm3m:emulated", "emulated;tf32"])
def test_a_bad_name_is_named_in_one_line_with_those_allowed_and_native_is_used(wrong):
    done = start("steps", "dgemm:64:2", env={**GPU, "ACCEL_PRECISION": wrong})
    assert done.returncode == 0
    (line,) = said(done)
    for word in (wrong, "native", "emulated", "tf32", "bf16x9", "double precision alone", "ROUTINE:emulated"):
        assert word in line
    assert logged(done, "dgemm") == [None, None]


@pytest.mark.parametrize("env, precision", [pytest.param({}, "bf16x9", id="compute capability 9.0"),
                                            pytest.param({"TESTGPU_ATTRIBUTES": "75=7,76=5"}, "tf32,emulated",
                                                         id="compute capability 7.5"),
                                            pytest.param({"ACCEL_CUDA_DIR": str(BUILD / "testgpu-cuda12")}, "emulated",
                                                         id="cuBLAS 12")])
def test_what_is_not_there_has_one_line_and_native_is_used(env, precision):
    _, done, trace = products("sdsd", ACCEL_PRECISION=precision, **env)
    messages = said(done)
    assert len(messages) == len(precision.split(","))
    assert all(word in " ".join(messages) for word in precision.split(","))
    assert all("native precision is used" in line for line in messages)
    assert not asked_of_cublas(trace)
    assert {f.get("precision") for f in lines_for(done)} in ({None, "native"}, {"native"})
