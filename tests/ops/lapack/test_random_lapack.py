#!/usr/bin/python3 -B
"""Random calls of LAPACK, case by case: the same INFO with libaccel as without, every residual within the bound of LAPACK's
own tests, nothing touched but what is documented to be. Every routine of the table, every flag, all four types, both
integer widths; matrices from well-conditioned to singular, near underflow and overflow, with NaN and Inf; with
OpenBLAS and the reference LAPACK as the original; short of memory; 8 threads. With TEST_LONG=1 with all builds of OpenBLAS, and
more calls of the singular values' algorithms. See random_lapack.c."""

import collections
import re
import tempfile
from pathlib import Path

from lib.calibrated import keys, put
from lib.log import lines_for, parse_log, said
from lib.programs import BUILD, LOG, LONG, NO_GPU, PLAIN, SHIM, TEST_GPU, start
from lib.table import routine_table
from lib.tap import Tap

SYSTEM = Path("/usr/lib/x86_64-linux-gnu")
SITE = next((BUILD / "venv/lib").glob("python3*/site-packages"))
TABLE = list(routine_table("LAPACK"))
# cuSOLVER has no such routine.
NOT_ON_GPU = {r for r in TABLE if re.fullmatch(r".gelsy", r)}

Lapack = collections.namedtuple("Lapack", "program arguments env", defaults=({},))
# -f: what each gets wrong and is not asked for; see cases.h.
LAPACKS = {
    "OpenBLAS": Lapack("random_lapack", ["-f", "tyesmv"]),
    "reference": Lapack("random_lapack", ["-f", "esmvg"], {"LD_LIBRARY_PATH": f"{SYSTEM}/blas:{SYSTEM}/lapack"}),
    "OpenBLAS, ILP64": Lapack("random_lapack64", ["-f", "tyesmv"]),
    "SciPy's OpenBLAS": Lapack("random_lapack", ["-l", next(SITE.glob("scipy.libs/libscipy_openblas-*")), "-p", "scipy_",
                                                 "-f", "esmvc"]),
    "NumPy's OpenBLAS, ILP64": Lapack("random_lapack64", ["-l", next(SITE.glob("numpy.libs/libscipy_openblas64_-*")),
                                                          "-p", "scipy_", "-x", "64_", "-f", "esmv"]),
}
# The number of threads changes the rounding; the workspace's best size with it.
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "TESTGPU_DELAY_US": "0"}

FOLDER = tempfile.TemporaryDirectory()
Run = collections.namedtuple("Run", "done cases decisions")
tap = Tap()



def routine(sym):
    """The routine that a name is of; '' where it is none of LAPACK's in the table."""
    name = re.fullmatch(r"(?:scipy_)?(\w+?)_?(?:64_)?", sym)[1]
    return name if name in TABLE else ""


def run(lapack, arguments, env, threads=1):
    """Runs the program. cases: what stands left of the bar in its report -> what stands right of it."""
    with tempfile.TemporaryDirectory() as folder:
        report, log = Path(folder, "report"), Path(folder, "log")
        done = start(lapack.program, *lapack.arguments, *arguments, "-o", report, threads,
                     env={**ENVIRONMENT, **lapack.env, "ACCEL_LOG_FILE": str(log), **env})
        text = report.read_text() if report.exists() else ""
        lines = parse_log(log.read_text()) if log.exists() else []
    cases = dict(line.split(" | ") for line in text.splitlines() if " | " in line)
    return Run(done, cases, [f for f in lines if routine(f["sym"]) and f["why"] != "workspace_query"])


def is_right(name, result):
    done = result.done
    wrong = [line for line in done.stderr.splitlines() if line.startswith("wrong: ")]
    return tap.ok(done.returncode == 0 and re.search(r"(?m)^\d+ cases, [1-9]\d* calls, 0 wrong,", done.stdout),
                  f"{name}: right", done.returncode, done.stdout[-300:], *wrong[:8], done.stderr[-200:])


def info(outcome):
    return outcome.split()[0]


def same_infos(name, native, result):
    other = [f"{case} | {native.cases.get(case)} | {outcome}" for case, outcome in result.cases.items()
             if case not in native.cases or info(native.cases[case]) != info(outcome)]
    tap.ok(result.cases and len(result.cases) == len(native.cases) and not other, f"{name}: INFO as without libaccel",
           len(result.cases), len(native.cases), *other[:8])


def lengths(outcome):
    return re.search(r" lengths=(\S*) ", outcome)[1]


def same_lengths(name, native, result):
    """What WORK(1), RWORK(1) and IWORK(1) tell at the end: a program that begins with the least workspace takes its next one from there."""
    told = [case for case, outcome in native.cases.items() if lengths(outcome)]
    other = [f"{case} | {native.cases[case]} | {result.cases.get(case)}" for case in told
             if case not in result.cases or lengths(result.cases[case]) != lengths(native.cases[case])]
    tap.ok(told and not other, f"{name}: lengths of workspace as without libaccel", len(told), *other[:8])


def same_integers(name, native, result):
    """Pivots, ranks, how many eigenvalues were found, IFAIL: of matrices where rounding decides none of them. ISUPPZ says where vectors are not zero. Of order 1, LAPACK 3.11's syevx leaves
    IFAIL(1) as it was, where the documentation has 0, as it is on the GPU."""
    told = [case for case in native.cases if re.search(r"kind=(uniform|well)$", case) and not re.search(r"evr |:.(sy|he)[eg]vx .*[UL] 1 ld=", case)]
    integers = {case: re.search(r"integers=\w+", native.cases[case])[0] for case in told}
    other = [f"{case} | {native.cases[case]} | {result.cases.get(case)}" for case in told if integers[case] not in result.cases.get(case, "")]
    tap.ok(not other, f"{name}: pivots, ranks and counts as without libaccel, in {len(told)} calls", *other[:8])


def all_decided(name, result):
    """Each call is in the log. LAPACK's own calls, where the original had one, are there, too."""
    calls = collections.Counter(case.split(":", 1)[1].split()[0] for case in result.cases)
    decided = collections.Counter(routine(f["sym"]) for f in result.decisions)
    missing = {r: (n, decided[r]) for r, n in calls.items() if decided[r] < n}
    tap.ok(calls and not missing, f"{name}: each call decided", missing)


def on_the_gpu(name, result):
    gpu = collections.Counter(routine(f["sym"]) for f in result.decisions if f["ran"] == "gpu0")
    bad = [f for f in result.decisions if f["ran"] != "gpu0" and f["why"] not in ("empty", "unsupported", "bad_argument")]
    tap.ok(gpu and not bad and not said(result.done), f"{name}: on the test GPU", *bad[:5], *said(result.done))


# So many that each routine has a case for the GPU; the wheels' names are the point of theirs.
COUNT = {"OpenBLAS": 12, "reference": 12, "OpenBLAS, ILP64": 12} if LONG else {"OpenBLAS": 12}
# NumPy's has both a prefix and a suffix, and 64-bit integers.
SHORT = "OpenBLAS", "reference", "NumPy's OpenBLAS, ILP64"
for seed, (name, lapack) in enumerate(LAPACKS.items(), 1):
    if not LONG and name not in SHORT:
        continue
    arguments = ["-s", 1000 * seed, "-c", COUNT.get(name, 3)]
    native = run(lapack, arguments, PLAIN)
    if not is_right(f"{name}, without libaccel", native):
        continue
    for mode, env in {"ACCEL=0": {**SHIM, "ACCEL": "0"}, "no GPU": {**NO_GPU, "ACCEL_LOG": "1"}}.items():
        result = run(lapack, arguments, env)
        differ = [f"{case} | {native.cases.get(case)} | {outcome}" for case, outcome in result.cases.items()
                  if native.cases.get(case) != outcome]
        tap.ok(result.done.stdout == native.done.stdout and not differ, f"{name}, {mode}: the same bytes everywhere", *differ[:5])
        tap.ok(all(f["ran"] == "cpu" for f in result.decisions), f"{name}, {mode}: nothing ran elsewhere")
    result = run(lapack, arguments, {**TEST_GPU, "ACCEL_LOG": "1"})
    is_right(f"{name}, test GPU", result)
    same_infos(f"{name}, test GPU", native, result)
    same_lengths(f"{name}, test GPU", native, result)
    same_integers(f"{name}, test GPU", native, result)
    all_decided(f"{name}, test GPU", result)
    on_the_gpu(f"{name}, test GPU", result)
    lacking = next((line.split()[1:] for line in native.done.stdout.splitlines() if line.startswith("lacks: ")), [])
    ran = {routine(f["sym"]) for f in result.decisions if f["ran"] == "gpu0"}
    few = set(TABLE) - NOT_ON_GPU - set(lacking) - ran
    tap.ok(ran if name not in COUNT else not few, f"{name}: every routine ran on the GPU", *sorted(few))
    tap.ok(not ran & NOT_ON_GPU, f"{name}: but what cuSOLVER lacks", *sorted(ran & NOT_ON_GPU))

OPENBLAS = LAPACKS["OpenBLAS"]
for name, arguments, extra in (
    ("of order 1", ["-m", 1, "-n", 1, "-c", 4], {}),
    ("larger", ["-n", 160, "-c", 1, "-r", "[dc]*"], {}),
    ("memory for a part", ["-n", 40, "-c", 3], {"ACCEL_MEMORY": "20K"}),
    ("a small device", ["-n", 200, "-c", 2, "-r", "z@(getrf|posv|geqrf|syevd)"], {"TESTGPU_MEMORY": "13M"}),
    ("CUDA 12", ["-n", 30, "-c", 2], {"ACCEL_CUDA_DIR": str(BUILD / "testgpu-cuda12")}),
    ("delays", ["-n", 20, "-c", 2], {"TESTGPU_DELAY_US": "300"}),
):
    native = run(OPENBLAS, arguments, PLAIN)
    result = run(OPENBLAS, arguments, {**TEST_GPU, "ACCEL_LOG": "1", **extra})
    is_right(f"{name}, without libaccel", native)
    is_right(name, result)
    same_infos(name, native, result)
    same_lengths(name, native, result)
    same_integers(name, native, result)
    tap.ok(any(f["ran"] == "gpu0" for f in result.decisions), f"{name}: some on the GPU")
    if "memory" in name:
        tap.ok(any(f["why"] == "no_memory" for f in result.decisions), f"{name}: some too large")
    tap.ok(not said(result.done), f"{name}: nothing to say", *said(result.done))

# Each algorithm for singular values that a calibration can choose, on every kind of matrix: what
# Xgesvdp perturbs, and what gesvdj does not end with, Xgesvd has.
SVD = ["-n", 40, "-c", 8 if LONG else 4, "-r", "?@(gesvd|gesdd|gelss|gelsd)"]
SVD_KEYS = keys(tempfile.mkdtemp(dir=FOLDER.name))
for algorithm in ("gesvdp", "gesvdj"):
    model, report = Path(FOLDER.name, algorithm), Path(FOLDER.name, f"{algorithm}.report")
    put(model, {SVD_KEYS["blas"]: "", SVD_KEYS["lapack"]: "", SVD_KEYS["gpu"]: "".join(
        f"svd_{t}_{wanted} 48:{algorithm}\n" for t in "sdcz" for wanted in ("values", "vectors"))})
    native = run(OPENBLAS, SVD, PLAIN)
    result = run(OPENBLAS, SVD, {**TEST_GPU, "ACCEL_LOG": "1", "ACCEL_MODEL": str(model), "TESTGPU_REPORT": str(report)})
    is_right(algorithm, result)
    same_infos(algorithm, native, result)
    on_the_gpu(algorithm, result)
    calls = dict(re.findall(r"call name=cusolverDn(\w+) n=(\d+)", report.read_text()))
    used = [int(calls.get(name, 0)) for name in (("Xgesvdp",) if algorithm == "gesvdp" else [f"{t}gesvdj" for t in "SDCZ"])]
    tap.ok(all(used), f"{algorithm}: it was used", used)
    tap.ok(algorithm != "gesvdp" or int(calls.get("Xgesvd", 0)) > 0, f"{algorithm}: not where it perturbs", calls.get("Xgesvd"))
    tap.ok(not re.search(r"(?m)^testgpu fault ", report.read_text()), f"{algorithm}: no misuse", report.read_text()[:500])
    failing = {"TESTGPU_FAIL": "cusolverDnXgesvdp:1+=7" if algorithm == "gesvdp" else "cusolverDnCreateGesvdjInfo:1+=7"}
    for what, extra in (("lacks the memory", {"TESTGPU_MEMORY": "10M"}), ("fails", failing)) if LONG else (("fails", failing),):
        result = run(OPENBLAS, SVD, {**TEST_GPU, "ACCEL_LOG": "1", "ACCEL_MODEL": str(model), **extra})
        is_right(f"{algorithm} {what}", result)
        same_infos(f"{algorithm} {what}", native, result)
        tap.ok(what != "fails" or {f["ran"] for f in result.decisions if f["why"] == "forced"} == {"gpu0"} and not said(result.done),
               f"{algorithm} {what}: Xgesvd has it", *said(result.done))

    # No memory for one of the blocks, whichever it is, and enough for those that come after it: the
    # matrix is put back from its copy only where there is a copy.
    env = {**TEST_GPU, **LOG, **ENVIRONMENT, "ACCEL_MODEL": str(model)}
    for what, faults in (("an allocation fails", [{"TESTGPU_FAIL": f"cuMemAlloc:{nth}=2,cuMemAlloc:{nth + 1}=2"} for nth in range(1, 12, 1 if LONG else 3)]),
                         ("the budget ends", [{"ACCEL_MEMORY": f"{kilobytes}K"} for kilobytes in range(1040, 2000, 80 if LONG else 160)])):
        runs = [start("singular_values", 200, env={**env, **fault}) for fault in faults]
        bad = [f"{fault}: {done.stdout} {said(done)}" for fault, done in zip(faults, runs) if done.returncode != 0 or said(done)]
        tap.ok(not bad, f"{algorithm}: {what}: the values are the matrix's", *bad)
        tap.ok({"gpu0", "cpu"} <= {f["ran"] for done in runs for f in lines_for(done, sym="dgesvd_")}, f"{algorithm}: {what}: with all in place, and without")

native, result = (run(OPENBLAS, ["-n", 24, "-c", 1], env, threads=8) for env in (PLAIN, {**TEST_GPU, "ACCEL_LOG": "1"}))
is_right("8 threads, without libaccel", native)
is_right("8 threads", result)
same_infos("8 threads", native, result)
tap.ok(len({f["tid"] for f in result.decisions if f["ran"] == "gpu0"}) == 8, "8 threads on the GPU")

# Every kernel's result spoilt: the check itself is checked, routine by routine. lacpy has no
# kernel.
result = run(OPENBLAS, ["-n", 12, "-c", 10, "-k", "@(uniform|well)"], {**TEST_GPU, "TESTGPU_WRONG": "1+"})
noticed = {case.split()[0] for case, outcome in result.cases.items() if "WRONG" in outcome}
unnoticed = {r for r in TABLE if not r.endswith("lacpy")} - NOT_ON_GPU - noticed
tap.ok(not unnoticed, "wrong kernels are noticed", *sorted(unnoticed))
tap.done()
