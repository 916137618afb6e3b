"""Trains by libsvm and on the test GPU, and judges the one by the other."""

import json
import re

from lib.log import lines_for
from lib.programs import BUILD, LOG, NO_GPU, PLAIN, ROOT, TEST_GPU, VENV_PYTHON, start

SCRIPT = ROOT / "tests/fixtures/svm/problems.py"


def problems(python, shrinking, env, stop, place, *which):
    # PyPI's adds up in threads, in any order.
    path = {"PYTHONPATH": str(BUILD / "libsvm"), "OMP_NUM_THREADS": "1"} if python == VENV_PYTHON else {}
    done = start(python, "-B", SCRIPT, shrinking, stop, place, *which, env={**env, **path}, timeout=3000)
    return [json.loads(line) for line in done.stdout.splitlines()], done


def objectives(run):
    return [float(x) for x in re.findall(r"obj = (\S+),", run["lines"])]


def spread(one, other):
    return max((abs(x - y) for a, b in zip(one, other) for x, y in zip(a, b)), default=0)


def differences(plain, other, device, eps):
    """What is different beyond the bounds: `other` is libsvm with the other setting of shrinking."""
    bound = 3 * max(eps, spread(plain["decisions"], other["decisions"]))
    if plain["labels"] != device["labels"] or device["free"] != 0 or plain["rand"] != device["rand"]:
        yield "labels, free_sv or rand()"
    if device["indices"] != sorted(set(device["indices"])) and not device["labels"] or len(device["indices"]) != device["support"]:
        yield "sv_indices"
    if spread(plain["decisions"], device["decisions"]) > bound:
        yield f"decisions: {spread(plain['decisions'], device['decisions'])} > {bound}"
    rounding = spread(plain["loaded"], plain["decisions"])  # a file has 8 digits of each element
    if spread(device["loaded"], device["decisions"]) > 3 * max(rounding, 1e-7):
        yield "the saved model"
    own = [abs(a - b) for a, b in zip(objectives(plain), objectives(other))]
    for a, b, c in zip(objectives(plain), objectives(device), own):
        if abs(a - b) > max(1e-6 * max(1, abs(a)), 3 * c):
            yield f"objective: {a} and {b}"
    if (plain["probability"] is False) != (device["probability"] is False):
        yield "probabilities"


def compare_problems(tap, name, count, python, stop, place, *which):
    """`which` are the arguments of problems.py that say what to train; `count` is how many problems that is."""
    plain, done = problems(python, 1, PLAIN, stop, place, *which)
    other = problems(python, 0, PLAIN, stop, place, *which)[0]
    device, on_gpu = problems(python, 1, {**TEST_GPU, **LOG}, stop, place, *which)
    bits = problems(python, 1, NO_GPU, stop, place, *which)[0]
    wrong = [f"{a['options']} l={a['l']}: {what}" for a, b, c in zip(plain, other, device) for what in differences(a, b, c, 1e-3 * stop)]
    tap.ok(len(plain) == len(device) == count and not wrong, f"{name}: as libsvm solves them", *wrong, done.stderr, on_gpu.stderr[-2000:])
    ran = len(lines_for(on_gpu, sym="svm_train", ran="gpu0"))
    tap.ok(ran == count, "each was trained on the GPU", f"{ran} of {count}", *lines_for(on_gpu, ran="cpu")[:5])
    tap.ok(bits == plain, "no GPU: every number the same")
