#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""liblinear's train(): Debian's programs, random problems in Debian's and PyPI's liblinear, scikit-learn's estimators.
On the test GPU the answers are the library's own within what its tolerance allows, and so are the lines that it prints;
all other solvers, versions and inputs are the library's own, bit for bit. ACCEL_VERIFY judges the models. With
TEST_LONG=1 more problems, all versions of scikit-learn, and more calls of CUDA that fail."""

import json
from functools import cache
from pathlib import Path

import pytest

from lib.log import lines_for
from lib.own_tests import own_tests
from lib.programs import BUILD, LOG, LONG, NO_GPU, PLAIN, ROOT, SHIM, TEST_GPU, TESTS, VENV_PYTHON, start

FIXTURES = ROOT / "tests/fixtures/liblinear"
HEART = "/usr/share/doc/liblinear-tools/examples/heart_scale"
DEBIAN = "/usr/lib/x86_64-linux-gnu/liblinear.so.4"
GPU_LOG = {**TEST_GPU, **LOG}
VERIFY = {**GPU_LOG, "ACCEL_VERIFY": "all"}
# From its eighth run on a kernel gives something else: the method cannot mend that.
SPOILT = {**VERIFY, "TESTGPU_WRONG": "linear_dense_fold:8+"}
# Those of PyPI that the build has.
OTHERS = {path.name.replace(".", "")[:3]: path for path in sorted(BUILD.glob("liblinear/*"))}
NEWEST = max(OTHERS, default="none")


def library_of(version):
    return DEBIAN if version == "230" else next(OTHERS[version].glob("liblinear/clib*.so"))


def run_train(folder, *options, env=PLAIN):
    """(finished process, the model's bytes)"""
    model = folder / "model"
    model.unlink(missing_ok=True)
    done = start("/usr/bin/liblinear-train", *options, HEART, model, env=env)
    return done, model.read_bytes() if model.exists() else b""


@pytest.fixture
def train(tmp_path):
    return lambda options, env=PLAIN: run_train(tmp_path, *options.split(), env=env)


# ---- Debian's programs ----


@pytest.mark.parametrize("options, calls", [("-s 0", 1), ("-s 2 -B 1 -w1 3", 1), ("-s 11 -p 0.2", 1), ("-s 2 -v 5", 5),
                                            ("-s 0 -q", 1),
                                            *([("-s 0 -C", 110)] if LONG else [])])
def test_the_same_lines_and_a_log_of_the_trainings_alone(options, calls, train):
    own, done = train(options)[0], train(options, GPU_LOG)[0]
    assert done.stdout == own.stdout
    features = "14" if "-B" in options else "13"
    assert len(lines_for(done, sym="train", ran="gpu0", why="forced", solver=options.split()[1],
                         features=features)) == calls
    assert len(lines_for(done)) == calls


@pytest.mark.parametrize("solver", [1, 3, 4, 5, 6, 7, 12, 13])
def test_other_solvers_are_the_librarys_own(solver, train):
    (own, model), (done, ours) = train(f"-s {solver}"), train(f"-s {solver}", GPU_LOG)
    assert done.stdout == own.stdout
    assert ours == model
    assert len(lines_for(done, sym="train", ran="cpu", why="unsupported")) == 1


def test_models_saved_with_libaccel_and_without_it_predict_alike(tmp_path):
    predictions = []
    for trains in (PLAIN, TEST_GPU):
        run_train(tmp_path, "-s", 0, env=trains)
        for predicts in (PLAIN, TEST_GPU):
            start("/usr/bin/liblinear-predict", "-b", 1, HEART, tmp_path / "model", tmp_path / "out", env=predicts)
            predictions.append([[float(word) for word in line.split()[1:]]
                                for line in (tmp_path / "out").read_text().splitlines()[1:]])
    first = predictions[0]
    assert len(first) == 270
    for other in predictions:
        assert len(other) == 270
        assert all(abs(p - q) < 1e-5 for row, its in zip(first, other) for p, q in zip(row, its))


@pytest.mark.parametrize("env", [pytest.param(NO_GPU, id="no GPU"), pytest.param({**SHIM, "ACCEL": "0"}, id="ACCEL=0"),
                                 pytest.param({**TEST_GPU, "ACCEL_ML": "0"}, id="ACCEL_ML=0")])
def test_bit_for_bit_the_same(env, train):
    (own, model), (done, ours) = train("-s 0 -B 1"), train("-s 0 -B 1", env)
    assert done.stdout == own.stdout
    assert ours == model


@pytest.mark.parametrize("function, why", [("cuMemAlloc", "no_memory"), ("cuMemcpyHtoDAsync", "error"),
                                           ("cuLaunchKernel", "error"),
                                           ("cuMemcpyDtoHAsync", "error")])
def test_a_call_of_cuda_that_fails_at_its_nth_use(function, why, train):
    """The program prints each line once, and the model is the library's own if it had the call."""
    (own, model), (_, on_gpu), fell = train("-s 0 -B 1"), train("-s 0 -B 1", TEST_GPU), 0
    for place in [*range(1, 40), *range(40, 300, 7)] if LONG else (1, 5, 60):
        done, ours = train("-s 0 -B 1", {**GPU_LOG, "TESTGPU_FAIL": f"{function}:{place}+"})
        whys = {line["why"] for line in lines_for(done, sym="train")}
        assert done.returncode == 0, place
        assert done.stdout == own.stdout, place
        assert whys <= {why, "forced"}, place
        assert ours == (on_gpu if whys == {"forced"} else model), place
        fell += whys == {why}
    assert fell


# ---- ACCEL_VERIFY ----


@pytest.mark.parametrize("options", ["-s 0", "-s 2 -B 1 -w1 3", "-s 11 -p 0.2"])
def test_verified(options, train):
    done, _ = train(options, {**VERIFY, "ACCEL_VERIFY_ACTION": "abort"})
    assert 0 < float(lines_for(done, sym="train", ran="gpu0")[0]["verify"]) <= 1


def test_not_judged_because_it_ends_before_the_gradient_is_small(train):
    done, _ = train("-s 0 -e 1e-9", {**VERIFY, "ACCEL_VERIFY_ACTION": "abort"})
    assert lines_for(done, sym="train", ran="gpu0")[0]["verify"] == "unknown"
    assert "WARNING: actred and prered too small" in done.stdout


def test_a_planted_error_makes_a_wrong_model_and_verification_says_so(train):
    spoilt, ours = train("-s 0", {**SPOILT, "ACCEL_VERIFY_ACTION": "warn"})
    assert spoilt.returncode == 0
    assert ours != train("-s 0")[1]
    assert "the GPU's result is wrong" in spoilt.stderr
    assert lines_for(spoilt, ran="gpu0")


def test_the_library_trains_anew_after_a_wrong_model(train):
    """The program sees the lines of both."""
    (own, model), (spoilt, _) = train("-s 0"), train("-s 0", {**SPOILT, "ACCEL_VERIFY_ACTION": "warn"})
    done, ours = train("-s 0", {**SPOILT, "ACCEL_VERIFY_ACTION": "cpu"})
    assert done.returncode == 0
    assert ours == model
    assert done.stdout == spoilt.stdout + own.stdout
    assert lines_for(done, ran="cpu", why="verify_failed")


def test_there_is_no_model_after_abort(train):
    done, ours = train("-s 0", {**SPOILT, "ACCEL_VERIFY_ACTION": "abort"})
    assert done.returncode < 0
    assert not ours


# ---- cross_validation() and find_parameters() of PyPI's builds, which call train() where nobody
# sees it ----

CROSS = f"""import ctypes, sys
sys.modules["scipy"] = None  # loading it takes longer than all else here
from liblinear.liblinearutil import *
y, x = svm_read_problem({HEART!r})
y[0] = float(sys.argv[2])
x[0][int(sys.argv[3])] = 0.5
print(train(y, x, sys.argv[1]), "rand", ctypes.CDLL(None).rand())"""


def cross(options, env, label=1, columns=13):
    return start(VENV_PYTHON, "-B", "-c", CROSS, options, label, columns,
                 env={"PYTHONPATH": str(OTHERS[NEWEST]), **env})


@cache
def own_cross(options, label=1, columns=13):
    """What the library prints, with its rand()."""
    done = cross(options, PLAIN, label, columns)
    assert "rand" in done.stdout, done.stderr[-500:]
    return done.stdout


# In the short form each function once. The search for a C begins at a large one, so that there are
# few.
@pytest.mark.parametrize("options, sym, folds", [
    ("-s 2 -v 5 -w1 2 -B 1 -R", "cross_validation", "5"), ("-s 0 -C -c 256 -v 3", "find_parameters", "3"),
    *([("-s 0 -v 3", "cross_validation", "3"), ("-s 0 -C -c 0.25 -v 3", "find_parameters", "3"),
       ("-s 2 -C -q", "find_parameters", "5")] if LONG else [])])
def test_one_call_whose_lines_result_and_rand_are_the_librarys(options, sym, folds):
    done = cross(options, GPU_LOG)
    assert done.returncode == 0, done.stderr
    assert done.stdout == own_cross(options)
    assert cross(options, NO_GPU).stdout == own_cross(options)
    assert len(lines_for(done, sym=sym, solver=options.split()[1], folds=folds, ran="gpu0", why="forced")) == 1
    assert not lines_for(done, sym="train")


# Each row of its own fold; a class with a weight that a fold takes away, of which the library
# warns; a solver that stays; too many folds, and folds that take 1.6 GB together.
@pytest.mark.parametrize("options, label, columns", [
    ("-s 0 -v 4 -w7 2 -q", 7, 13), ("-s 1 -v 4 -q", 1, 13), ("-s 0 -v 101 -q", 1, 13), ("-s 0 -v 10 -q", 1, 2000000),
    ("-s 0 -v 270 -q", 1, 13)][:5 if LONG else 3])
def test_folds_that_are_the_librarys_own(options, label, columns):
    done = cross(options, GPU_LOG, label, columns)
    assert done.returncode == 0, done.stderr
    assert done.stdout == own_cross(options, label, columns)
    assert len(lines_for(done, sym="cross_validation", ran="cpu", why="unsupported")) == 1
    assert ("WARNING: class label 7" in done.stderr) == (label == 7)


@pytest.mark.parametrize("options, places", [("-s 0 -v 3", (1, 5, 60, 200)), ("-s 0 -C -c 32 -v 3", (1, 60, 300))]
                         if LONG else [("-s 0 -v 3", (1, 60))])
def test_after_a_failure_on_the_way_the_library_draws_the_same_folds(options, places):
    """And each line comes once."""
    whys = []
    for function in ("cuMemAlloc", "cuLaunchKernel", "cuMemcpyDtoHAsync"):
        for place in places:
            done = cross(options, {**GPU_LOG, "TESTGPU_FAIL": f"{function}:{place}+"})
            assert done.returncode == 0, (function, place)
            assert done.stdout == own_cross(options), (function, place)
            whys += [line["why"] for line in lines_for(done)]
    assert len(whys) == 3 * len(places)
    assert {"no_memory", "error"} <= set(whys)


each_cross = pytest.mark.parametrize("options", ["-s 0 -v 3", "-s 0 -C -c 256 -v 3"][:2 if LONG else 1])


@each_cross
def test_folds_are_verified(options):
    done = cross(options, {**VERIFY, "ACCEL_VERIFY_ACTION": "abort"})
    assert 0 < float(lines_for(done, ran="gpu0")[0]["verify"]) <= 1


@each_cross
def test_a_planted_error_is_seen_and_the_library_begins_again_with_the_same_folds(options):
    spoilt = cross(options, {**SPOILT, "ACCEL_VERIFY_ACTION": "cpu"})
    assert spoilt.returncode == 0, spoilt.stderr
    assert spoilt.stdout.endswith(own_cross(options))
    assert spoilt.stdout != own_cross(options)
    assert lines_for(spoilt, ran="cpu", why="verify_failed")


def test_random_problems_predictions_parameters_lines_and_rand(tmp_path):
    words = (0, 66) if LONG else (12, 5)
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    with open(theirs, "w") as to:
        start(VENV_PYTHON, "-B", FIXTURES / "cross.py", library_of(NEWEST), *words, "spread", stdout=to, timeout=1200)
    with open(ours, "w") as to:
        done = start(VENV_PYTHON, "-B", FIXTURES / "cross.py", library_of(NEWEST), *words,
                     env={**GPU_LOG, "TESTGPU_DELAY_US": "0"}, stdout=to, timeout=1200)
    judged = start(VENV_PYTHON, "-B", FIXTURES / "cross.py", "compare", ours, theirs)
    calls = len(lines_for(done, sym="cross_validation", ran="gpu0"))
    assert calls >= (5 if LONG else 2), done.stderr[-500:]
    assert calls == len(lines_for(done, sym="find_parameters", ran="gpu0"))
    assert judged.stdout == f"compared {calls}\n", judged.stderr


# ---- Random problems ----

CASES = 66 if LONG else 12  # of each solver, with rows out of order (6) and with a column twice (10)


@pytest.fixture(scope="module", params=["230", *(OTHERS if LONG else [NEWEST])])
def problems(request):
    """Runs the random problems in a version's library."""

    def run(env, *words):
        return start(VENV_PYTHON, "-B", FIXTURES / "train.py", library_of(request.param), request.param, 0, CASES,
                     *words, env=env, timeout=1200)

    return run


def test_random_problems_lines_objectives_decision_values_and_labels(problems, tmp_path):
    theirs, ours = tmp_path / "theirs.npz", tmp_path / "ours.npz"
    own, done = problems(PLAIN, "spread", theirs), problems(VERIFY, ours)
    for file, run in ((theirs, own), (ours, done)):
        Path(f"{file}.out").write_text(run.stdout)
    compared = start(VENV_PYTHON, "-B", FIXTURES / "train.py", "compare", ours, theirs)
    assert compared.returncode == 0, (compared.stderr, own.stderr[-500:], done.stderr[-500:])
    assert compared.stdout.startswith("compared ")
    lines = lines_for(done, sym="train", ran="gpu0")
    assert len(lines) >= CASES
    # Verification finds no model wrong.
    judged = [float(line["verify"]) for line in lines if line["verify"] != "unknown"]
    assert len(judged) > CASES / 2
    assert max(judged) <= 1
    print(f"{len(judged)} of {len(lines)} judged, the worst is {max(judged):.2g} of the bound")


def test_random_problems_bit_for_bit_without_a_gpu(problems, tmp_path):
    plain, forwarded = tmp_path / "plain.npz", tmp_path / "forwarded.npz"
    problems(PLAIN, plain)
    problems(NO_GPU, forwarded)
    assert plain.read_bytes() == forwarded.read_bytes()


def test_nan_infinite_values_and_labels_that_are_no_integers():
    """The library's own answer."""
    plain, done = (start(VENV_PYTHON, "-B", FIXTURES / "wrong.py", DEBIAN, env=env) for env in (PLAIN, GPU_LOG))
    assert plain.returncode == done.returncode == 0
    assert done.stdout == plain.stdout
    assert done.stdout.count("w ") == 4
    assert len(lines_for(done, sym="train", ran="cpu", why="unsupported")) == 4


CALL = """import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.train.argtypes = [ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_long] * 5, ctypes.c_double]
print(library.train((ctypes.c_int * 64)(80), bytes(512), 3, 4, 5, 6, 7, 8.5))"""


def test_a_namesake_gets_its_arguments_as_they_were():
    """A library of that name and version whose models are something else. It prints while libaccel tries it, from two
    threads, and sets its function anew: only lines of the trial are left out, and the function that is set meanwhile
    stays."""
    done = start(VENV_PYTHON, "-B", "-c", CALL, TESTS / "libnamesake_linear.so", env=GPU_LOG)
    assert sorted(done.stdout.split("\n")) == ["", "42", "80 1 3 4 5 6 7 8.5"]
    assert [line for line in done.stderr.splitlines() if line.startswith("tried")] == ["tried beside", "tried, prints"]


# ---- scikit-learn ----

FORWARDED = {"svc_dual", "logistic_l1"}


def flat(values):
    return [x for value in values for x in (flat(value) if isinstance(value, list) else [value])]


def fits(packages, env):
    found = start(VENV_PYTHON, "-B", FIXTURES / "fits.py", env={"PYTHONPATH": packages, **env}, timeout=600)
    return found, {fit["name"]: fit for fit in map(json.loads, found.stdout.splitlines())}


def worst_difference(one, other):
    return max(abs(a - b) for key in ("coef", "intercept") for a, b in zip(flat(one[key]), flat(other[key])))


# Of the venv, and of other versions.
@pytest.mark.parametrize("packages", ["", *(map(str, sorted(BUILD.glob("sklearn/*"))) if LONG else [])],
                         ids=lambda path: Path(path).name or "venv")
def test_scikit_learn(packages):
    """Each fit is one call: coefficients, n_iter_, warnings and labels are scikit-learn's, without a GPU bit for
    bit."""
    (own, theirs), (done, ours) = fits(packages, PLAIN), fits(packages, GPU_LOG)
    assert len(theirs) == 10, own.stderr[-500:]
    assert ours.keys() == theirs.keys(), done.stderr[-500:]
    assert len(lines_for(done, sym="train", ran="gpu0")) == len(theirs) - len(FORWARDED)
    assert len(lines_for(done, sym="train", ran="cpu", why="unsupported")) == len(FORWARDED)
    for name, fit in theirs.items():
        assert worst_difference(fit, ours[name]) <= (0 if name in FORWARDED else 1e-3), name
        assert fit["n_iter"] == ours[name]["n_iter"], name
        assert fit["warnings"] == ours[name]["warnings"], name
        assert name == "svr" or fit["labels"] == ours[name]["labels"], name
    assert fits(packages, NO_GPU)[0].stdout == own.stdout


@pytest.mark.skipif(not LONG, reason="with TEST_LONG=1")
def test_scikit_learns_own_tests_end_as_without_libaccel():
    tests, ours, done = own_tests("liblinear", GPU_LOG)
    assert len(tests) >= 80
    assert not set(tests) ^ set(ours), done.stdout[-500:]
    assert ours == tests
    assert len(lines_for(done, sym="train", ran="gpu0")) > 200
