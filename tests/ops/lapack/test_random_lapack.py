#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Random calls of LAPACK, case by case: the same INFO with libaccel as without, every residual within the bound of
LAPACK's own tests, nothing touched but what is documented to be. Every routine of the table, every flag, all four
types, both integer widths; matrices from well-conditioned to singular, near underflow and overflow, with NaN and Inf;
with OpenBLAS and the reference LAPACK as the original; short of memory; 8 threads. With TEST_LONG=1 with all builds of
OpenBLAS, and more calls of the singular values' algorithms. See random_lapack.c."""

import re
import tempfile
from collections import Counter, namedtuple
from functools import cache
from pathlib import Path

import pytest

from lib.calibrated import keys, put
from lib.log import lines_for, parse_log, said
from lib.programs import BUILD, LOG, LONG, NO_GPU, PLAIN, REFERENCE, SERVED, SHIM, TEST_GPU, start
from lib.table import routine_table

TABLE = list(routine_table("LAPACK"))
# cuSOLVER has no such routine.
NOT_ON_GPU = {r for r in TABLE if re.fullmatch(r".gelsy", r)}
# A server takes few of these: which rows they exchange, their pivots say.
NOT_SERVED = {r for r in TABLE if SERVED and re.fullmatch(r".laswp", r)}
in_process = pytest.mark.skipif(SERVED, reason="what is asked of the device is a server's, which has no calibration and has other calls, too")

# wheels: what brings the library.
Lapack = namedtuple("Lapack", "program arguments env wheels", defaults=({}, None))
# -f: what each gets wrong and is not asked for; see cases.h.
LAPACKS = {
    "OpenBLAS": Lapack("random_lapack", ["-f", "tyesmv"]),
    "reference": Lapack("random_lapack", ["-f", "esmvg"], REFERENCE),
    "OpenBLAS, ILP64": Lapack("random_lapack64", ["-f", "tyesmv"]),
    "SciPy's OpenBLAS": Lapack("random_lapack", ["-p", "scipy_", "-f", "esmvc"],
                               wheels="scipy.libs/libscipy_openblas-*"),
    "NumPy's OpenBLAS, ILP64": Lapack("random_lapack64", ["-p", "scipy_", "-x", "64_", "-f", "esmv"],
                                      wheels="numpy.libs/libscipy_openblas64_-*"),
}
OPENBLAS = LAPACKS["OpenBLAS"]
# The number of threads changes the rounding; the workspace's best size with it.
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "TESTGPU_DELAY_US": "0"}
ON_GPU = {**TEST_GPU, "ACCEL_LOG": "1"}

# cases: what stands left of the bar in the report -> what stands right of it.
Run = namedtuple("Run", "done cases decisions")


def routine(sym):
    """The routine that a name is of; '' where it is none of LAPACK's in the table."""
    name = re.fullmatch(r"(?:scipy_)?(\w+?)_?(?:64_)?", sym)[1]
    return name if name in TABLE else ""


def run(lapack, arguments, env, threads=1):
    library = []
    if lapack.wheels:
        library = ["-l", *(BUILD / "venv/lib").glob(f"python3*/site-packages/{lapack.wheels}")]
    with tempfile.TemporaryDirectory() as folder:
        report, log = Path(folder, "report"), Path(folder, "log")
        done = start(lapack.program, *library, *lapack.arguments, *arguments, "-o", report, threads,
                     env={**ENVIRONMENT, **lapack.env, "ACCEL_LOG_FILE": str(log), **env})
        text = report.read_text() if report.exists() else ""
        lines = parse_log(log.read_text()) if log.exists() else []
    cases = dict(line.split(" | ") for line in text.splitlines() if " | " in line)
    return Run(done, cases, [f for f in lines if routine(f["sym"]) and f["why"] != "workspace_query"])


def on_the_gpu(result):
    return {routine(f["sym"]) for f in result.decisions if f["ran"] == "gpu0"}


# ---- What is compared ----


def check_right(result):
    wrong = [line for line in result.done.stderr.splitlines() if line.startswith("wrong: ")]
    assert result.done.returncode == 0, (result.done.stdout[-300:], result.done.stderr[-200:], wrong[:8])
    assert re.search(r"(?m)^\d+ cases, [1-9]\d* calls, 0 wrong,", result.done.stdout)


def differing(native, result, what, cases=None):
    """Cases whose outcomes differ in what matters."""
    return [f"{case} | {outcome} | {result.cases.get(case)}" for case, outcome in native.cases.items()
            if (cases is None or case in cases) and what(outcome) != what(result.cases.get(case, ""))][:8]


def info(outcome):
    return outcome.split()[:1]


def lengths(outcome):
    """What WORK(1), RWORK(1) and IWORK(1) tell at the end: a program that begins with the least workspace takes its
    next one from there."""
    return re.findall(r" lengths=(\S*) ", outcome)


def integers(outcome):
    """Pivots, ranks, how many eigenvalues were found, IFAIL."""
    return re.findall(r"integers=\w+", outcome)


def check_infos(native, result):
    assert result.cases
    assert len(result.cases) == len(native.cases)
    assert not differing(native, result, info)


def check_outcomes(native, result):
    check_infos(native, result)
    told = {case for case, outcome in native.cases.items() if lengths(outcome)[0]}
    assert told
    assert not differing(native, result, lengths, told)
    # Of matrices where rounding decides none of them. ISUPPZ says where vectors are not zero. Of
    # order 1, LAPACK 3.11's syevx leaves IFAIL(1) as it was, where the documentation has 0, as it
    # is on the GPU.
    told = {case for case in native.cases
            if re.search(r"kind=(uniform|well)$", case) and not re.search(r"evr |:.(sy|he)[eg]vx .*[UL] 1 ld=", case)}
    assert not differing(native, result, integers, told)


# ---- Each library ----

# So many that each routine has a case for the GPU; the wheels' names are the point of theirs.
COUNT = {"OpenBLAS": 12, "reference": 12, "OpenBLAS, ILP64": 12} if LONG else {"OpenBLAS": 12}
# NumPy's has both a prefix and a suffix, and 64-bit integers.
NAMES = LAPACKS if LONG else ("OpenBLAS", "reference", "NumPy's OpenBLAS, ILP64")
Library = namedtuple("Library", "name run native")


@pytest.fixture(scope="module", params=NAMES)
def library(request):
    arguments = ["-s", 1000 * ([*LAPACKS].index(request.param) + 1), "-c", COUNT.get(request.param, 3)]

    def run_with(env):
        return run(LAPACKS[request.param], arguments, env)

    native = run_with(PLAIN)
    check_right(native)
    return Library(request.param, run_with, native)


@pytest.fixture(scope="module")
def on_gpu(library):
    return library.run(ON_GPU)


@pytest.mark.parametrize("env", [pytest.param({**SHIM, "ACCEL": "0"}, id="ACCEL=0"),
                                 pytest.param({**NO_GPU, "ACCEL_LOG": "1"}, id="no GPU")])
def test_the_same_bytes_everywhere(library, env):
    result = library.run(env)
    assert result.done.stdout == library.native.done.stdout
    assert not differing(library.native, result, str)
    assert not result.cases.keys() - library.native.cases.keys()
    assert all(f["ran"] == "cpu" for f in result.decisions)


def test_on_the_gpu(library, on_gpu):
    check_right(on_gpu)
    check_outcomes(library.native, on_gpu)
    assert not [f for f in on_gpu.decisions if f["ran"] != "gpu0"
                and f["why"] not in ("empty", "unsupported", "bad_argument")]
    assert not said(on_gpu.done)


def test_each_call_is_decided(on_gpu):
    """LAPACK's own calls, where the original had one, are in the log, too."""
    calls = Counter(case.split(":", 1)[1].split()[0] for case in on_gpu.cases)
    decided = Counter(routine(f["sym"]) for f in on_gpu.decisions)
    assert calls
    assert not {r: (n, decided[r]) for r, n in calls.items() if decided[r] < n}


def test_every_routine_ran_on_the_gpu_but_what_cusolver_lacks(library, on_gpu):
    ran = on_the_gpu(on_gpu)
    lacking = next((line.split()[1:] for line in library.native.done.stdout.splitlines() if line.startswith("lacks: ")),
                   [])
    assert ran
    assert library.name not in COUNT or not set(TABLE) - NOT_ON_GPU - NOT_SERVED - set(lacking) - ran
    assert not ran & NOT_ON_GPU


# ---- Sizes, memory, devices ----


@pytest.mark.parametrize("arguments, extra", [
    pytest.param(["-m", 1, "-n", 1, "-c", 4], {}, id="of order 1"),
    pytest.param(["-n", 160, "-c", 1, "-r", "[dc]*"], {}, id="larger"),
    pytest.param(["-n", 40, "-c", 3], {"ACCEL_MEMORY": "20K"}, id="memory for a part"),
    pytest.param(["-n", 200, "-c", 2, "-r", "z@(getrf|posv|geqrf|syevd)"], {"TESTGPU_MEMORY": "13M"},
                 id="a small device"),
    pytest.param(["-n", 30, "-c", 2], {"ACCEL_CUDA_DIR": str(BUILD / "testgpu-cuda12")}, id="CUDA 12"),
    pytest.param(["-n", 20, "-c", 2], {"TESTGPU_DELAY_US": "300"}, id="delays")])
def test_openblas(arguments, extra):
    native, result = run(OPENBLAS, arguments, PLAIN), run(OPENBLAS, arguments, {**ON_GPU, **extra})
    check_right(native)
    check_right(result)
    check_outcomes(native, result)
    assert on_the_gpu(result)
    assert "ACCEL_MEMORY" not in extra or [f for f in result.decisions if f["why"] == "no_memory"]
    assert not said(result.done)


def test_8_threads():
    native, result = (run(OPENBLAS, ["-n", 24, "-c", 1], env, threads=8) for env in (PLAIN, ON_GPU))
    check_right(native)
    check_right(result)
    check_infos(native, result)
    assert len({f["tid"] for f in result.decisions if f["ran"] == "gpu0"}) == 8


def test_wrong_kernels_are_noticed():
    """Every kernel's result spoilt: the check itself is checked, routine by routine. lacpy has no kernel."""
    result = run(OPENBLAS, ["-n", 12, "-c", 10, "-k", "@(uniform|well)"], {**TEST_GPU, "TESTGPU_WRONG": "1+"})
    noticed = {case.split()[0] for case, outcome in result.cases.items() if "WRONG" in outcome}
    assert not {r for r in TABLE if not r.endswith("lacpy")} - NOT_ON_GPU - NOT_SERVED - noticed


# ---- Each algorithm for singular values that a calibration can choose, on every kind of
# matrix ----

SVD = ["-n", 40, "-c", 8 if LONG else 4, "-r", "?@(gesvd|gesdd|gelss|gelsd)"]
# The kernels of each, and what makes it fail.
ALGORITHMS = {"gesvdp": (["Xgesvdp"], "cusolverDnXgesvdp:1+=7"),
              "gesvdj": ([f"{t}gesvdj" for t in "SDCZ"], "cusolverDnCreateGesvdjInfo:1+=7")}


@cache
def native_svd():
    return run(OPENBLAS, SVD, PLAIN)


@pytest.fixture(params=ALGORITHMS)
def algorithm(request):
    return request.param


@pytest.fixture
def chosen(algorithm, tmp_path):
    """An environment in which a calibration chooses the algorithm."""
    found = keys(tmp_path)
    lines = "".join(f"svd_{t}_{wanted} 48:{algorithm}\n" for t in "sdcz" for wanted in ("values", "vectors"))
    put(tmp_path / "model", {found["blas"]: "", found["lapack"]: "", found["gpu"]: lines})
    return {**ON_GPU, "ACCEL_MODEL": str(tmp_path / "model")}


@in_process
def test_singular_values(algorithm, chosen, tmp_path):
    """What Xgesvdp perturbs, and what gesvdj does not end with, Xgesvd has."""
    report = tmp_path / "report"
    result = run(OPENBLAS, SVD, {**chosen, "TESTGPU_REPORT": str(report)})
    check_right(result)
    check_infos(native_svd(), result)
    assert on_the_gpu(result)
    assert not [f for f in result.decisions if f["ran"] != "gpu0"
                and f["why"] not in ("empty", "unsupported", "bad_argument")]
    assert not said(result.done)
    calls = dict(re.findall(r"call name=cusolverDn(\w+) n=(\d+)", report.read_text()))
    assert not [name for name in ALGORITHMS[algorithm][0] if int(calls.get(name, 0)) == 0]
    assert algorithm != "gesvdp" or int(calls.get("Xgesvd", 0)) > 0
    assert not re.search(r"(?m)^testgpu fault ", report.read_text())


def test_xgesvd_has_it_where_the_algorithm_fails(algorithm, chosen):
    result = run(OPENBLAS, SVD, {**chosen, "TESTGPU_FAIL": ALGORITHMS[algorithm][1]})
    check_right(result)
    check_infos(native_svd(), result)
    assert {f["ran"] for f in result.decisions if f["why"] == "forced"} == {"gpu0"}
    assert not said(result.done)


@pytest.mark.skipif(not LONG, reason="with TEST_LONG=1")
def test_the_algorithm_lacks_the_memory(chosen):
    result = run(OPENBLAS, SVD, {**chosen, "TESTGPU_MEMORY": "10M"})
    check_right(result)
    check_infos(native_svd(), result)


@in_process
@pytest.mark.parametrize("faults", [
    pytest.param([{"TESTGPU_FAIL": f"cuMemAlloc:{nth}=2,cuMemAlloc:{nth + 1}=2"}
                  for nth in range(1, 12, 1 if LONG else 3)], id="an allocation fails"),
    pytest.param([{"ACCEL_MEMORY": f"{kilobytes}K"} for kilobytes in range(1040, 2000, 80 if LONG else 160)],
                 id="the budget ends")])
def test_the_values_are_the_matrixs(faults, chosen):
    """No memory for one of the blocks, whichever it is, and enough for those that come after it: the matrix is put back
    from its copy only where there is a copy."""
    ran = set()
    for fault in faults:
        done = start("singular_values", 200, env={**TEST_GPU, **LOG, **ENVIRONMENT, **chosen, **fault})
        assert done.returncode == 0, (fault, done.stdout)
        assert not said(done), fault
        ran |= {f["ran"] for f in lines_for(done, sym="dgesvd_")}
    assert ran >= {"gpu0", "cpu"}  # with all in place, and without
