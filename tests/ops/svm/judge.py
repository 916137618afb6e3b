"""Trains by libsvm and on the test GPU, and judges the one by the other."""

import json
import math
import re

from lib.log import parse_log
from lib.programs import BUILD, LOG, NO_GPU, PLAIN, ROOT, TEST_GPU, VENV_PYTHON, start

SCRIPT = ROOT / "tests/fixtures/svm/problems.py"


def without_dots(text):
    """Shrinking prints stars, and dots in between."""
    return re.sub(r"^[.*]+$", "*", re.sub(r"\nWARNING: using -h 0 may be faster\n", "", text), flags=re.M)


def solve(python, env, shrinking, stop, place, dots, numbers, *which):
    """number -> its result; and the run."""
    # PyPI's adds up in threads, in any order.
    path = {"PYTHONPATH": str(BUILD / "libsvm"), "OMP_NUM_THREADS": "1"} if python == VENV_PYTHON else {}
    done = start(python, "-B", SCRIPT, shrinking, stop, place, dots, ",".join(map(str, numbers)), *which,
                 env={**env, **path}, timeout=3000)
    results = map(json.loads, done.stdout.splitlines())
    return {result["number"]: result for result in results}, done


def sections(done):
    """number -> the log's lines of its trainings: those within a call that libsvm runs itself are there, too."""
    parts = re.split(r"^problem (\d+)\n", done.stderr, flags=re.M)[1:]
    trainings = lambda text: [line for line in parse_log(text) if line["sym"] in ("svm_train", "svm_cross_validation")]
    return {int(number): trainings(text) for number, text in zip(parts[::2], parts[1::2])}


# ---- How different two results are ----

def difference(a, b):
    """libsvm itself has NaN and infinite numbers, too."""
    return 0 if a == b or math.isnan(a) and math.isnan(b) else math.inf if math.isnan(a - b) else abs(a - b)


def spread(one, other):
    return max((difference(x, y) for a, b in zip(one, other) for x, y in zip(a, b)), default=0)


def objectives(run):
    return [float(x) for x in re.findall(r"obj = (\S+),", run["lines"])]


def saved_error(run):
    """A file has 8 digits of each element."""
    return spread(run["loaded"], run["decisions"])


# Each in units of what it may be; `other` is libsvm with the other setting of shrinking.

def objective_ratio(plain, other, device):
    own = map(difference, objectives(plain), objectives(other))
    return max((difference(a, b) / max(1e-6 * max(1, abs(a)), 3 * c) for a, b,
                c in zip(objectives(plain), objectives(device), own)), default=0)


def decision_ratio(plain, other, device, eps):
    return spread(plain["decisions"], device["decisions"]) / (3 * max(eps,
                                                                      spread(plain["decisions"], other["decisions"])))


def validation_ratio(plain, other, device, eps):
    """Classes may differ where a decision value is within the bound of 0."""
    a, b, c = plain["targets"], other["targets"], device["targets"]
    if plain["classifies"]:
        return max((near / (3 * eps) for x, y, z, near in zip(a, b, c, plain["distances"]) if z not in (x, y)),
                   default=0)
    return spread([a], [c]) / (3 * max(eps, spread([a], [b])))


def differences(plain, other, device, eps):
    """What is different beyond the bounds."""
    if plain["rand"] != device["rand"]:
        yield "rand()"
    if plain["folds"]:
        if not validation_ratio(plain, other, device, eps) <= 1:
            yield f"predictions: {validation_ratio(plain, other, device, eps)} of the bound"
        if plain["again"] != plain["targets"]:
            yield "the test's own folds"
        return
    if plain["labels"] != device["labels"] or device["free"] != 0:
        yield "labels or free_sv"
    if device["indices"] != sorted(set(device["indices"])) and not device["labels"] or len(device["indices"]) != device["support"]:
        yield "sv_indices"
    if not decision_ratio(plain, other, device, eps) <= 1:
        yield f"decisions: {decision_ratio(plain, other, device, eps)} of the bound"
    # Where a problem has several solutions, with and without shrinking libsvm finds different ones.
    # Each loses digits of its own.
    if saved_error(device) > 3 * max(saved_error(plain), saved_error(other), 1e-7):
        yield f"the saved model: {saved_error(device)}, libsvm's {saved_error(plain)} and {saved_error(other)}"
    if len(objectives(plain)) != len(objectives(device)) or not objective_ratio(plain, other, device) <= 1:
        yield f"objectives: {objectives(plain)} and {objectives(device)}"
    if (plain["probability"] is False) != (device["probability"] is False):
        yield "probabilities"


# ---- Many problems ----

def check_problems(count, python, stop, place, dots, numbers, *which):
    """count: so many at least must be trained on the GPU. dots, numbers, which: see problems.py."""

    def run(env, shrinking, dots, numbers):
        return solve(python, env, shrinking, stop, place, dots, numbers, *which)

    plain = run(PLAIN, 1, dots, numbers)[0]
    other = run(PLAIN, 0, dots, plain)[0]
    # The models are judged, by libsvm's own predictions.
    device, on_gpu = run({**TEST_GPU, **LOG, "ACCEL_CPU": "svm_predict*"}, 1, 0, other)
    assert other
    assert len(device) == len(other), on_gpu.stderr[-2000:]
    log = sections(on_gpu)
    trained = [n for n in device if any(line["ran"] == "gpu0" for line in log[n])]
    forwarded = [n for n in device if n not in trained]
    wrong = [(n, what) for n in trained for what in differences(plain[n], other[n], device[n], 1e-3 * stop)]
    wrong += [(n, f"forwarded: {log[n]}") for n in forwarded
              if device[n] != plain[n] or any(line["why"] != "unsupported" for line in log[n])]
    assert not wrong, "\n".join(f"{n}: {plain[n]['options']} l={plain[n]['l']}: {what}" for n, what in wrong)
    assert len(trained) >= count, [plain[n]["options"] for n in forwarded]
    models = [(plain[n], other[n], device[n]) for n in trained if not plain[n]["folds"]]
    ways = sum(without_dots(device[n]["lines"]) == without_dots(other[n]["lines"]) for n in trained)
    print(f"the worst is {max((objective_ratio(*runs) for runs in models), default=0):.2g} of the bound for objectives, "
          f"{max((decision_ratio(*runs, 1e-3 * stop) for runs in models), default=0):.2g} for decisions; "
          f"{ways} print to the last digit what libsvm does without shrinking")
    # Without a GPU every number is the same.
    assert run(NO_GPU, 1, 0, other)[0] == {n: plain[n] for n in other}
