#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Support vector machines of scikit-learn from PyPI: fits on the test GPU give scikit-learn's answers, of each version
whose structs are known; those of another version are its own. With TEST_LONG=1 all fits of sklearn_fits.py by the
newest version, and some by all versions; else one of each kind by the newest, and one by the oldest."""

import json
import sys
from collections import Counter, namedtuple
from pathlib import Path

import pytest

from lib.log import lines_for, parse_log, said
from lib.programs import BUILD, LOG, LONG, NO_GPU, ROOT, TEST_GPU, VENV_PYTHON, start

FITS = ROOT / "tests/fixtures/svm/sklearn_fits.py"
NEWEST = "1.9"
OTHERS = ["1.3", "1.4", "1.5", "1.6", "1.7", "1.8"]
HAS_WHEEL = [version for version in OTHERS if version > "1.4" or sys.version_info < (3, 13)]  # in the build

# A fit is made twice: with shrinking and without.
CALLS = {"max_iter_late": {"cpu": 1, "gpu0": 1}}
CAPPED = ["max_iter", "max_iter_none", "max_iter_some", "max_iter_svr", "max_iter_nu_svr",
          "max_iter_probability"] if LONG else ["max_iter", "max_iter_nu_svr"]
SHORT = ["rbf", "precomputed_weight", "nu_svc", "sample_weight_svr", "sparse", "max_iter_late", "probability"] + CAPPED
FEW = ["sample_weight", "sparse", "one_class"] if LONG else ["sample_weight"]


def packages_of(version):
    """The folder of a version's wheel; None: the venv's is the newest."""
    if version == NEWEST:
        return None
    if version not in HAS_WHEEL:
        pytest.skip(f"scikit-learn {version} has no wheel for this Python")
    (folder,) = BUILD.glob(f"sklearn/{version}.*")
    return folder


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
    return max(abs(a - b) for a, b in zip(first, second)) if len(first) == len(second) else float("inf")


def shape(fit):
    return [line.split("=")[0].split(" =")[0].strip(".*") for line in fit["printed"]]


# The least that values may differ by: the tolerance of scikit-learn's fits.
EPS = 1e-3


def compare(plain, ours):
    """What is not the same in a fit on the GPU; values may differ by three times what they differ by with and without
    shrinking."""
    wrong = []
    # The steps are the same until max_iter ends them: values differ in rounding alone.
    bound = 1e-9 if plain["exact"] else 3 * max(EPS, distance(plain["values"], plain["others"]))
    for key in ("values", "others"):
        if not distance(plain[key], ours[key]) <= bound:
            wrong.append(f"{key}: {distance(plain[key], ours[key])}, bound {bound}")
    for row, value, one, other in zip(range(len(plain["values"])), plain["values"], plain["predicted"],
                                      ours["predicted"]):
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
    if shape(plain) != shape(ours) or plain["exact"] and plain["printed"] != ours["printed"]:
        wrong.append(f"printed: {plain['printed']}, {ours['printed']}")
    return wrong


# plain, ours: (the run, results of it), without libaccel and on the test GPU.
Fits = namedtuple("Fits", "packages names plain ours")


@pytest.fixture(scope="module", params=[NEWEST, *(OTHERS if LONG else HAS_WHEEL[:1])])
def version(request):
    """Fits by a version of scikit-learn."""
    packages, names = packages_of(request.param), FEW
    if request.param == NEWEST:
        names = fits(["--list"], None).stdout.split() if LONG else SHORT
    plain, ours = fits(names, packages), fits(names, packages, TEST_GPU, LOG)
    assert plain.returncode == 0, plain.stderr
    assert ours.returncode == 0, ours.stderr[-2000:]
    return Fits(packages, names, (plain, results(plain)), (ours, results(ours)))


def test_bit_for_bit_the_same_without_a_gpu(version):
    none = fits(version.names, version.packages, NO_GPU)
    assert none.stdout == version.plain[0].stdout
    assert not said(none)


def test_each_fit_is_as_without_libaccel(version):
    (_, plain), (done, ours) = version.plain, version.ours
    assert not said(done)  # nor was the test GPU misused
    assert list(plain) == version.names
    assert list(ours) == version.names
    assert not {name: wrong for name in version.names if (wrong := compare(plain[name], ours[name]))}


def test_the_log_has_each_call_and_where_it_ran(version):
    calls = Counter((f["sym"], f["ran"]) for f in parse_log(version.ours[0].stderr) if f["sym"].endswith("_train"))
    expected = Counter()
    for name in version.names:
        symbol = "svm_csr_train" if "sparse" in name else "svm_train"
        expected.update({(symbol, ran): number for ran, number in CALLS.get(name, {"gpu0": 2}).items()})
    assert calls == expected


def test_rows_are_predicted_on_the_gpu(version):
    """Each predicted row is a call; those of a precomputed kernel are scikit-learn's."""
    rows = Counter((f["sym"], f["ran"], f.get("why")) for f in parse_log(version.ours[0].stderr)
                   if "_predict" in f["sym"])
    called = ("svm_predict", "svm_predict_values")  # by predict() and by decision_function()
    stay = {(sym, "cpu", "unsupported") for sym in called} if any("precomputed" in name
                                                                  for name in version.names) else set()
    assert {key for key in rows if key[1] == "cpu"} == stay
    assert all(rows[sym, "gpu0", "forced"] >= 50 for sym in called)


def test_fits_that_max_iter_ends_are_verified():
    """By all but the gap that max_iter has left."""
    done = fits(CAPPED, None, TEST_GPU, LOG, {"ACCEL_VERIFY": "all", "ACCEL_VERIFY_ACTION": "abort",
                                              "ACCEL_CPU": "svm_predict*"})
    lines = lines_for(done, sym="svm_train", ran="gpu0")
    assert done.returncode == 0, done.stderr[-1000:]
    assert len(lines) == 2 * len(CAPPED)
    assert all(0 <= float(line["verify"]) <= 1 for line in lines)


@pytest.mark.parametrize("fault", ("cuMemcpyDtoHAsync:2+", "cuMemAlloc:1+")[:2 if LONG else 1])
def test_a_device_that_fails_leaves_the_whole_to_scikit_learn(fault):
    """With the random numbers that it draws."""
    names = ["probability" if LONG else "rbf"]
    done = fits(names, None, TEST_GPU, LOG, {"TESTGPU_FAIL": fault})
    assert done.stdout == fits(names, None).stdout
    assert lines_for(done, sym="svm_train", ran="cpu")
    assert not lines_for(done, sym="svm_train", ran="gpu0")


def test_there_is_a_wheel_of_each_minor_version():
    assert [path.name.rpartition(".")[0] for path in sorted(BUILD.glob("sklearn/*"))] == HAS_WHEEL


# One that is not known, and one without metadata.
@pytest.mark.parametrize("metadata", ("scikit_learn-1.10.0.dist-info", "other-1.9.1.dist-info")[:2 if LONG else 1])
def test_fits_of_another_version_are_its_own(metadata, tmp_path):
    """The newest package with other metadata beside it."""
    site = next(Path(VENV_PYTHON).parents[1].glob("lib/python3*/site-packages"))
    (tmp_path / "sklearn").symlink_to(site / "sklearn")
    (tmp_path / metadata).mkdir()
    done = fits(["rbf"], tmp_path, TEST_GPU, LOG)
    assert done.stdout == fits(["rbf"], None).stdout
    assert len(lines_for(done, sym="svm_train", ran="cpu", why="unsupported")) == 2
    assert not lines_for(done, sym="svm_train", ran="gpu0")
