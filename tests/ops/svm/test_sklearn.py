#!/usr/bin/python3 -B
"""Support vector machines of scikit-learn from PyPI: fits on the test GPU give scikit-learn's answers, of each version whose structs are
known; those of another version are its own. With TEST_LONG=1 all fits of sklearn_fits.py by the newest version, and some by all
versions; else one of each kind by the newest, and one by the oldest."""

import json
import shutil
import tempfile
from collections import Counter
from pathlib import Path

from lib.log import lines_for, parse_log, said
from lib.programs import BUILD, LOG, LONG, NO_GPU, ROOT, TEST_GPU, VENV_PYTHON, start
from lib.tap import Tap

FITS = ROOT / "tests/fixtures/svm/sklearn_fits.py"
NEWEST = "1.9"
OTHERS = sorted(BUILD.glob("sklearn/*"))
tap = Tap()

# A fit is made twice: with shrinking and without.
CALLS = {"max_iter_late": {"cpu": 1, "gpu0": 1}}
CAPPED = ["max_iter", "max_iter_none", "max_iter_some", "max_iter_svr", "max_iter_nu_svr", "max_iter_probability"] if LONG else ["max_iter", "max_iter_nu_svr"]
SHORT = ["rbf", "precomputed_weight", "nu_svc", "sample_weight_svr", "sparse", "max_iter_late", "probability"] + CAPPED
FEW = ["sample_weight", "sparse", "one_class"] if LONG else ["sample_weight"]


def fits(names, packages, *settings):
    env = {"PYTHONPATH": str(packages)} if packages else {}
    for some in settings:
        env.update(some)
    return start(VENV_PYTHON, "-B", FITS, *names, env=env, timeout=1200)


def results(done):
    """(name -> line, what scikit-learn printed before it)"""
    found, printed = {}, []
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            fit = json.loads(line)
            found[fit["name"]] = {**fit, "printed": printed}
            printed = []
        else:
            printed.append(line)
    return found


def flat(values):
    return [one for value in values for one in (flat(value) if isinstance(value, list) else [value])]


def distance(first, second):
    first, second = flat(first), flat(second)
    return max(map(lambda a, b: abs(a - b), first, second)) if len(first) == len(second) else float("inf")


# The least that values may differ by: the tolerance of scikit-learn's fits.
EPS = 1e-3


def compare(plain, ours):
    """What is not the same in a fit on the GPU; values may differ by three times what they differ by with and without shrinking."""
    wrong = []
    # The steps are the same until max_iter ends them: values differ in rounding alone.
    bound = 1e-9 if plain["exact"] else 3 * max(EPS, distance(plain["values"], plain["others"]))
    for key in ("values", "others"):
        if not distance(plain[key], ours[key]) <= bound:
            wrong.append(f"{key}: {distance(plain[key], ours[key])}, bound {bound}")
    for row, value, one, other in zip(range(len(plain["values"])), plain["values"], plain["predicted"], ours["predicted"]):
        sure = min(abs(v) for v in flat([value])) > bound
        if (one != other and sure) if isinstance(one, int) else abs(one - other) > bound:
            wrong.append(f"row {row}: {one}, {other}")
    for key in ("fit_status", "warnings", "support_is_of_x"):
        if plain[key] != ours[key]:
            wrong.append(f"{key}: {plain[key]}, {ours[key]}")
    for one, other in zip(plain["iterations"], ours["iterations"]):
        if not 0 < other <= 2 * one + 50 if not plain["exact"] else one != other:
            wrong.append(f"iterations: {one}, {other}")
    if abs(plain["support"] - ours["support"]) > 2 + plain["support"] // 20 or sum(ours["of_class"]) not in (
            ours["support"], 2 * ours["support"]):
        wrong.append(f"support vectors: {plain['support']}, {ours['support']}, {ours['of_class']}")
    if "probabilities" in plain:
        off = distance(plain["probabilities"][0], ours["probabilities"][0])
        if not off <= 3 * max(EPS, distance(*plain["probabilities"])):
            wrong.append(f"probabilities: {off}")
    shape = lambda fit: [line.split("=")[0].split(" =")[0].strip(".*") for line in fit["printed"]]
    if shape(plain) != shape(ours) or plain["exact"] and plain["printed"] != ours["printed"]:
        wrong.append(f"printed: {plain['printed']}, {ours['printed']}")
    return wrong


def check(version, packages, names):
    plain = fits(names, packages)
    found = results(plain)
    tap.ok(plain.returncode == 0 and list(found) == names, f"scikit-learn {version}: runs", plain.stderr)
    none = fits(names, packages, NO_GPU)
    tap.ok(none.stdout == plain.stdout and not said(none), f"scikit-learn {version}: without a GPU, bit for bit the same", none.stderr)
    done = fits(names, packages, TEST_GPU, LOG)
    ours = results(done)
    tap.ok(done.returncode == 0 and not said(done), f"scikit-learn {version}: the test GPU was never misused", *said(done), done.stderr[-2000:])
    for name in names:
        wrong = compare(found[name], ours[name]) if name in found and name in ours else ["no result"]
        tap.ok(not wrong, f"scikit-learn {version}: {name} is as without libaccel", *wrong)
    calls = Counter((f["sym"], f["ran"]) for f in parse_log(done.stderr) if f["sym"].endswith("_train"))
    expected = Counter()
    for name in names:
        symbol = "svm_csr_train" if "sparse" in name else "svm_train"
        expected.update({(symbol, ran): number for ran, number in CALLS.get(name, {"gpu0": 2}).items()})
    tap.ok(calls == expected, f"scikit-learn {version}: the log has each call, and where it ran", calls, expected)
    # Each predicted row is a call; those of a precomputed kernel are scikit-learn's.
    rows = Counter((f["sym"], f["ran"], f.get("why")) for f in parse_log(done.stderr) if "_predict" in f["sym"])
    called = ("svm_predict", "svm_predict_values")  # by predict() and by decision_function()
    stay = {(sym, "cpu", "unsupported") for sym in called} if any("precomputed" in name for name in names) else set()
    tap.ok({key for key in rows if key[1] == "cpu"} == stay and all(rows[sym, "gpu0", "forced"] >= 50 for sym in called),
           f"scikit-learn {version}: rows are predicted on the GPU", rows)


check(NEWEST, None, fits(["--list"], None).stdout.split() if LONG else SHORT)
# Verification judges them by all but the gap that max_iter has left.
done = fits(CAPPED, None, TEST_GPU, LOG, {"ACCEL_VERIFY": "all", "ACCEL_VERIFY_ACTION": "abort", "ACCEL_CPU": "svm_predict*"})
lines = lines_for(done, sym="svm_train", ran="gpu0")
tap.ok(done.returncode == 0 and len(lines) == 2 * len(CAPPED) and all(0 <= float(line["verify"]) <= 1 for line in lines),
       "fits that max_iter ends are verified", lines, done.stderr[-1000:])
# A device that fails leaves the whole to scikit-learn, with the random numbers that it draws.
plain = fits(["rbf"], None)
failing = "probability" if LONG else "rbf"
native = fits([failing], None) if LONG else plain
for fault in ("cuMemcpyDtoHAsync:2+", "cuMemAlloc:1+")[:2 if LONG else 1]:
    done = fits([failing], None, TEST_GPU, LOG, {"TESTGPU_FAIL": fault})
    tap.ok(done.stdout == native.stdout and lines_for(done, sym="svm_train", ran="cpu") and not lines_for(done, sym="svm_train", ran="gpu0"),
           f"{fault} fails: scikit-learn's own answer", done.stderr[-2000:])

tap.ok([p.name.rpartition(".")[0] for p in OTHERS] == ["1.3", "1.4", "1.5", "1.6", "1.7", "1.8"], "a wheel of each minor version", OTHERS)
for packages in OTHERS if LONG else OTHERS[:1]:
    check(packages.name, packages, FEW)

# A version that is not known, and one without metadata: the newest package with other metadata
# beside it.
SITE = next(Path(VENV_PYTHON).parents[1].glob("lib/python3*/site-packages"))
for metadata in ("scikit_learn-1.10.0.dist-info", "other-1.9.1.dist-info")[:2 if LONG else 1]:
    folder = tempfile.mkdtemp(prefix="accel-sklearn-")
    Path(folder, "sklearn").symlink_to(SITE / "sklearn")
    Path(folder, metadata).mkdir()
    done = fits(["rbf"], folder, TEST_GPU, LOG)
    tap.ok(done.stdout == plain.stdout and len(lines_for(done, sym="svm_train", ran="cpu", why="unsupported")) == 2
           and not lines_for(done, sym="svm_train", ran="gpu0"), f"{metadata}: fits are scikit-learn's own", done.stderr)
    shutil.rmtree(folder)

tap.done()
