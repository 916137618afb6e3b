#!/usr/bin/python3 -B
"""liblinear's train(): Debian's programs, random problems in Debian's and PyPI's liblinear, scikit-learn's estimators. On the test GPU the
answers are the library's own within what its tolerance allows, and so are the lines that it prints; all other solvers, versions and inputs are
the library's own, bit for bit. ACCEL_VERIFY judges the models. With TEST_LONG=1 more problems, all versions of scikit-learn, and more calls of CUDA that fail."""

import json
import tempfile
from pathlib import Path

from lib.log import lines_for
from lib.own_tests import own_tests
from lib.programs import BUILD, LOG, LONG, NO_GPU, PLAIN, ROOT, SHIM, TEST_GPU, TESTS, VENV_PYTHON, start
from lib.tap import Tap

FIXTURES = ROOT / "tests/fixtures/liblinear"
HEART = "/usr/share/doc/liblinear-tools/examples/heart_scale"
DEBIAN = "/usr/lib/x86_64-linux-gnu/liblinear.so.4"
OTHERS = {path.name.replace(".", "")[:3]: next(path.glob("liblinear/clib*.so")) for path in sorted(BUILD.glob("liblinear/*"))}
NEWEST = max(OTHERS)
folder = Path(tempfile.mkdtemp(prefix="accel-liblinear-"))
tap = Tap()


def program(name, *arguments, env=PLAIN):
    return start(f"/usr/bin/liblinear-{name}", *arguments, env=env)


def train(*options, env=PLAIN, model="model"):
    """(finished process, the model's bytes)"""
    file = folder / model
    file.unlink(missing_ok=True)
    done = program("train", *options, HEART, file, env=env)
    return done, file.read_bytes() if file.exists() else b""


# ---- Debian's programs ----

GPU_LOG = {**TEST_GPU, **LOG}
for options, calls in ((["-s", 0], 1), (["-s", 2, "-B", 1, "-w1", 3], 1), (["-s", 11, "-p", 0.2], 1), (["-s", 2, "-v", 5], 5),
                       (["-s", 0, "-q"], 1), *([(["-s", 0, "-C"], 110)] if LONG else [])):
    own, _ = train(*options)
    done, _ = train(*options, env=GPU_LOG)
    lines = lines_for(done, sym="train", ran="gpu0", why="forced", solver=str(options[1]), features="14" if "-B" in options else "13")
    tap.ok(done.stdout == own.stdout and len(lines) == len(lines_for(done)) == calls, f"liblinear-train {options}: the same lines, and a log of the trainings alone", own.stdout, done.stdout, done.stderr)

for solver in (1, 3, 4, 5, 6, 7, 12, 13):
    own, model = train("-s", solver)
    done, ours = train("-s", solver, env=GPU_LOG)
    tap.ok((done.stdout, ours) == (own.stdout, model) and len(lines_for(done, sym="train", ran="cpu", why="unsupported")) == 1,
           f"solver {solver} is the library's own", done.stdout, done.stderr)

predictions = {}
for trained, trains in (("theirs", PLAIN), ("ours", TEST_GPU)):
    train("-s", 0, env=trains, model=trained)
    for predicts in (PLAIN, TEST_GPU):
        program("predict", "-b", 1, HEART, folder / trained, folder / "out", env=predicts)
        predictions[trained, bool(predicts)] = [[float(word) for word in line.split()[1:]] for line in
                                                (folder / "out").read_text().splitlines()[1:]]
first = predictions["theirs", False]
tap.ok(len(first) == 270 and all(abs(p - q) < 1e-5 for other in predictions.values() for row, its in zip(first, other) for p, q in zip(row, its)),
       "models saved with libaccel and without it predict alike")

own, model = train("-s", 0, "-B", 1)
for name, env in {"no GPU": NO_GPU, "ACCEL=0": {**SHIM, "ACCEL": "0"}, "ACCEL_ML=0": {**TEST_GPU, "ACCEL_ML": "0"}}.items():
    done, ours = train("-s", 0, "-B", 1, env=env)
    tap.ok((done.stdout, ours) == (own.stdout, model), f"{name}: bit for bit the same", done.stdout, done.stderr)

# A call of CUDA that fails at its n-th use: the program prints each line once, and the model is the
# library's own if it had the call.
_, on_gpu = train("-s", 0, "-B", 1, env=TEST_GPU)
places = [1, 5, 60] if not LONG else [*range(1, 40), *range(40, 300, 7)]
for function, why in {"cuMemAlloc": {"no_memory"}, "cuMemcpyHtoDAsync": {"error"}, "cuLaunchKernel": {"error"}, "cuMemcpyDtoHAsync": {"error"}}.items():
    wrong, fell = [], 0
    for place in places:
        done, ours = train("-s", 0, "-B", 1, env={**GPU_LOG, "TESTGPU_FAIL": f"{function}:{place}+"})
        whys = {line["why"] for line in lines_for(done, sym="train")}
        fell += whys == why
        if done.returncode or done.stdout != own.stdout or ours != (on_gpu if whys == {"forced"} else model) or not whys <= why | {"forced"}:
            wrong.append((place, whys, done.returncode, done.stdout, done.stderr))
    tap.ok(not wrong and fell, f"{function} fails: the library's own lines and model, in {fell} of {len(places)} runs", wrong[:2])

# ---- ACCEL_VERIFY ----

VERIFY = {**GPU_LOG, "ACCEL_VERIFY": "all"}
for options, known in ((["-s", 0], True), (["-s", 2, "-B", 1, "-w1", 3], True), (["-s", 11, "-p", 0.2], True), (["-s", 0, "-e", 1e-9], False)):
    done, _ = train(*options, env={**VERIFY, "ACCEL_VERIFY_ACTION": "abort"})
    line, = lines_for(done, sym="train", ran="gpu0") or [{}]
    verify = line.get("verify", "")
    tap.ok(0 < float(verify) <= 1 if known else verify == "unknown" and "WARNING: actred and prered too small" in done.stdout,
           f"liblinear-train {options}: {'verified' if known else 'not judged, because it ends before the gradient is small'}", line, done.stderr)

# From its eighth run on a kernel gives something else: the method cannot mend that. Its lines so
# far are followed by the library's own.
SPOILT = {**VERIFY, "TESTGPU_WRONG": "linear_dense_fold:8+"}
own, model = train("-s", 0)
spoilt, ours = train("-s", 0, env={**SPOILT, "ACCEL_VERIFY_ACTION": "warn"})
tap.ok(spoilt.returncode == 0 and ours != model and "the GPU's result is wrong" in spoilt.stderr and lines_for(spoilt, ran="gpu0"),
       "a planted error makes a wrong model, and verification says so", spoilt.stderr)
done, ours = train("-s", 0, env={**SPOILT, "ACCEL_VERIFY_ACTION": "cpu"})
tap.ok(done.returncode == 0 and ours == model and done.stdout == spoilt.stdout + own.stdout and lines_for(done, ran="cpu", why="verify_failed"),
       "ACCEL_VERIFY_ACTION=cpu: the library trains anew; the program sees the lines of both", done.stdout, done.stderr)
done, ours = train("-s", 0, env={**SPOILT, "ACCEL_VERIFY_ACTION": "abort"})
tap.ok(done.returncode < 0 and not ours, "ACCEL_VERIFY_ACTION=abort: there is no model", done.returncode, done.stderr)

# ---- cross_validation() and find_parameters() of PyPI's builds, which call train() where nobody
# sees it ----

PYPI = {"PYTHONPATH": str(OTHERS[NEWEST].parents[1])}
CROSS = f"""import ctypes, sys
sys.modules["scipy"] = None  # loading it takes longer than all else here
from liblinear.liblinearutil import *
y, x = svm_read_problem({HEART!r})
y[0] = float(sys.argv[2])
x[0][int(sys.argv[3])] = 0.5
print(train(y, x, sys.argv[1]), "rand", ctypes.CDLL(None).rand())"""


def cross(options, env, label=1, columns=13):
    return start(VENV_PYTHON, "-B", "-c", CROSS, options, label, columns, env={**PYPI, **env})


# In the short form each function once. The search for a C begins at a large one, so that there are
# few.
for options, call in {"-s 2 -v 5 -w1 2 -B 1 -R": ("cross_validation", "2", "5"), "-s 0 -C -c 256 -v 3": ("find_parameters", "0", "3"), **({
        "-s 0 -v 3": ("cross_validation", "0", "3"), "-s 0 -C -c 0.25 -v 3": ("find_parameters", "0", "3"), "-s 2 -C -q": ("find_parameters", "2", "5")} if LONG else {})}.items():
    own, done, bare = (cross(options, env) for env in (PLAIN, GPU_LOG, NO_GPU))
    lines = lines_for(done, sym=call[0], solver=call[1], folds=call[2], ran="gpu0", why="forced")
    tap.ok(done.returncode == 0 and "rand" in own.stdout and done.stdout == bare.stdout == own.stdout and len(lines) == 1 and not lines_for(done, sym="train"),
           f"liblinear-official {options}: one call; lines, result and rand() are the library's", done.stdout, own.stdout, done.stderr, own.stderr[-500:])

# Each row of its own fold; a class with a weight that a fold takes away, of which the library
# warns; a solver that stays; too many folds, and folds that take 1.6 GB together.
UNSUPPORTED = [("-s 0 -v 4 -w7 2 -q", 7, 13), ("-s 1 -v 4 -q", 1, 13), ("-s 0 -v 101 -q", 1, 13), ("-s 0 -v 10 -q", 1, 2000000), ("-s 0 -v 270 -q", 1, 13)]
for options, label, columns in UNSUPPORTED if LONG else UNSUPPORTED[:3]:
    own, done = cross(options, PLAIN, label, columns), cross(options, GPU_LOG, label, columns)
    tap.ok(done.returncode == 0 and "rand" in own.stdout and done.stdout == own.stdout and len(lines_for(done, sym="cross_validation", ran="cpu", why="unsupported")) == 1
           and ("WARNING: class label 7" in done.stderr) == (label == 7), f"liblinear-official {options}, {columns} columns: the library's own", done.stdout, own.stdout, done.stderr)

# After a failure on the way the library draws the same folds, and each line comes once.
for options, places in ({"-s 0 -v 3": [1, 5, 60, 200], "-s 0 -C -c 32 -v 3": [1, 60, 300]} if LONG else {"-s 0 -v 3": [1, 60]}).items():
    own = cross(options, PLAIN).stdout
    wrong, whys = [], []
    for function in ("cuMemAlloc", "cuLaunchKernel", "cuMemcpyDtoHAsync"):
        for place in places:
            done = cross(options, {**GPU_LOG, "TESTGPU_FAIL": f"{function}:{place}+"})
            whys += [line["why"] for line in lines_for(done)]
            if done.returncode or done.stdout != own:
                wrong.append((function, place, done.returncode, done.stdout, done.stderr))
    tap.ok(not wrong and len(whys) == 3 * len(places) and {"no_memory", "error"} <= set(whys),
           f"liblinear-official {options}, CUDA's calls fail: the library's own lines, result and rand(), in {len(whys)} runs", whys, wrong[:2])

for options in ("-s 0 -v 3", "-s 0 -C -c 256 -v 3") if LONG else ("-s 0 -v 3",):
    own = cross(options, PLAIN)
    done = cross(options, {**VERIFY, "ACCEL_VERIFY_ACTION": "abort"})
    line, = lines_for(done, ran="gpu0") or [{}]
    tap.ok(0 < float(line.get("verify", "nan")) <= 1, f"liblinear-official {options}: verified", line, done.stderr)
    spoilt = cross(options, {**SPOILT, "ACCEL_VERIFY_ACTION": "cpu"})
    tap.ok(spoilt.returncode == 0 and spoilt.stdout.endswith(own.stdout) and spoilt.stdout != own.stdout and lines_for(spoilt, ran="cpu", why="verify_failed"),
           f"liblinear-official {options}: a planted error is seen, and the library begins again with the same folds", spoilt.stdout, spoilt.stderr)

words = (0, 66) if LONG else (12, 5)
with open(folder / "cross", "w") as theirs, open(folder / "our_cross", "w") as ours:
    own = start(VENV_PYTHON, "-B", FIXTURES / "cross.py", OTHERS[NEWEST], *words, "spread", stdout=theirs, timeout=1200)
    done = start(VENV_PYTHON, "-B", FIXTURES / "cross.py", OTHERS[NEWEST], *words, env={**GPU_LOG, "TESTGPU_DELAY_US": "0"}, stdout=ours, timeout=1200)
judged = start(VENV_PYTHON, "-B", FIXTURES / "cross.py", "compare", folder / "our_cross", folder / "cross")
calls = [len(lines_for(done, sym=name, ran="gpu0")) for name in ("cross_validation", "find_parameters")]
tap.ok(judged.stdout == f"compared {calls[0]}\n" and calls[0] == calls[1] >= (5 if LONG else 2), "random problems: predictions, parameters, lines and rand()",
       calls, judged.stdout, judged.stderr, own.stderr[-500:], done.stderr[-500:])

# ---- Random problems ----

CASES = 66 if LONG else 12  # of each solver, with rows out of order (6) and with a column twice (10)
for version, library in {"230": DEBIAN, **(OTHERS if LONG else {NEWEST: OTHERS[NEWEST]})}.items():
    def problems(env, *words):
        return start(VENV_PYTHON, "-B", FIXTURES / "train.py", library, version, 0, CASES, *words, env=env, timeout=1200)
    theirs, ours = folder / "theirs.npz", folder / "ours.npz"
    own, done = problems(PLAIN, "spread", theirs), problems(VERIFY, ours)
    for file, run in ((theirs, own), (ours, done)):
        Path(f"{file}.out").write_text(run.stdout)
    judged = start(VENV_PYTHON, "-B", FIXTURES / "train.py", "compare", ours, theirs)
    tap.ok(judged.returncode == 0 and judged.stdout.startswith("compared ") and len(lines_for(done, sym="train", ran="gpu0")) >= CASES,
           f"{CASES} random problems of liblinear {version}: lines, objectives, decision values and labels", judged.stdout, judged.stderr,
           own.stderr[-500:], done.stderr[-500:])
    ratios = [line["verify"] for line in lines_for(done, sym="train", ran="gpu0")]
    judged = [float(ratio) for ratio in ratios if ratio != "unknown"]
    tap.ok(len(judged) > CASES / 2 and max(judged) <= 1, f"liblinear {version}: verification finds no model wrong", max(judged, default=0), ratios)
    tap.note(f"liblinear {version}: {len(judged)} of {len(ratios)} judged, the worst is {max(judged):.2g} of the bound")
    plain, forwarded = folder / "plain.npz", folder / "forwarded.npz"
    problems(PLAIN, plain), problems(NO_GPU, forwarded)
    tap.ok(plain.read_bytes() == forwarded.read_bytes(), f"with no GPU those of liblinear {version} are the same, bit for bit")

done = start(VENV_PYTHON, "-B", FIXTURES / "wrong.py", DEBIAN, env=PLAIN)
ours = start(VENV_PYTHON, "-B", FIXTURES / "wrong.py", DEBIAN, env=GPU_LOG)
tap.ok(done.returncode == ours.returncode == 0 and done.stdout == ours.stdout and done.stdout.count("w ") == 4
       and len(lines_for(ours, sym="train", ran="cpu", why="unsupported")) == 4,
       "NaN, infinite values and labels that are no integers: the library's own answer", done.stdout, ours.stdout, ours.stderr)

# A library of that name and version whose models are something else. It prints while libaccel tries
# it, from two threads, and sets its function anew.
CALL = """import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.train.argtypes = [ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_long] * 5, ctypes.c_double]
print(library.train((ctypes.c_int * 64)(80), bytes(512), 3, 4, 5, 6, 7, 8.5))"""
done = start(VENV_PYTHON, "-B", "-c", CALL, TESTS / "libnamesake_linear.so", env=GPU_LOG)
tried = [line for line in done.stderr.splitlines() if line.startswith("tried")]
tap.ok(sorted(done.stdout.split("\n")) == ["", "42", "80 1 3 4 5 6 7 8.5"] and tried == ["tried beside", "tried, prints"],
       "a namesake: its arguments as they were; only lines of the trial are left out, and the function that is set meanwhile stays", done.stdout, done.stderr)

# ---- scikit-learn ----

FORWARDED = {"svc_dual", "logistic_l1"}


def flat(values):
    return [x for value in values for x in (flat(value) if isinstance(value, list) else [value])]


def fits(packages, env):
    found = start(VENV_PYTHON, "-B", FIXTURES / "fits.py", env={"PYTHONPATH": packages, **env}, timeout=600)
    return found, {fit["name"]: fit for fit in map(json.loads, found.stdout.splitlines())}


for packages in ["", *(map(str, sorted(BUILD.glob("sklearn/*"))) if LONG else [])]:
    (own, theirs), (done, ours) = fits(packages, PLAIN), fits(packages, GPU_LOG)
    version = Path(packages).name or "of the venv"
    on_gpu, on_cpu = len(lines_for(done, sym="train", ran="gpu0")), len(lines_for(done, sym="train", ran="cpu", why="unsupported"))
    tap.ok((on_gpu, on_cpu) == (len(theirs) - len(FORWARDED), len(FORWARDED)) and len(theirs) == 10,
           f"scikit-learn {version}: each fit is one call", on_gpu, on_cpu, own.stderr[-500:], done.stderr[-500:])
    wrong = []
    for name, fit in theirs.items():
        mine = ours.get(name, {})
        worst = max(abs(a - b) for key in ("coef", "intercept") for a, b in zip(flat(fit[key]), flat(mine[key]))) if mine else 9
        same = all(fit[key] == mine.get(key) for key in ("n_iter", "warnings")) and (name == "svr" or fit["labels"] == mine.get("labels"))
        if not same or worst > (0 if name in FORWARDED else 1e-3):
            wrong.append((name, worst, fit["n_iter"], mine.get("n_iter"), fit["warnings"], mine.get("warnings")))
    tap.ok(not wrong, f"scikit-learn {version}: coefficients, n_iter_, warnings and labels", wrong)
    bare, forwarded = fits(packages, NO_GPU)
    tap.ok(bare.stdout == own.stdout, f"scikit-learn {version}: with no GPU bit for bit the same")

if LONG:
    tests, ours, done = own_tests("liblinear", GPU_LOG)
    calls = len(lines_for(done, sym="train", ran="gpu0"))
    tap.ok(len(tests) >= 80 and ours == tests and calls > 200, f"{len(tests)} tests of scikit-learn's own, with {calls} calls on the GPU, end as without libaccel",
           *set(tests) ^ set(ours), done.stdout[-500:])
tap.done()
