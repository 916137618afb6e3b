#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Predictions on the test GPU are libsvm's within rounding, and labels are the same: svm-predict, PyPI's libsvm, models
of all kinds, models that change between two predictions, threads, forks, a library that is closed. What libsvm itself
must answer gets there; without a GPU, bit for bit."""

import random
import re
from collections import Counter

import pytest

from lib.log import lines_for, outcomes, said
from lib.programs import BUILD, DEBIAN_PYTHON, LOG, LONG, NO_GPU, PLAIN, TEST_GPU, start

HEART = "/usr/share/doc/liblinear-tools/examples/heart_scale"
ON_GPU = {**TEST_GPU, **LOG}
# The names of the functions that programs call; libaccel stands in front of the first one.
SYMBOLS = VALUES, LABEL, PROBABILITY = "svm_predict_values", "svm_predict", "svm_predict_probability"
BOUND = 1e-14  # a value may differ by this share of it, or of 1 if it is smaller


def predictions(done, **fields):
    return [line for line in lines_for(done, **fields) if line["sym"] in SYMBOLS]


def is_near(one, other):
    """Whether all words are the same, or numbers that differ by rounding."""
    words = one.split(), other.split()
    if len(words[0]) != len(words[1]):
        return False
    for a, b in zip(*words):
        try:
            near = a == b or abs(float(a) - float(b)) <= BOUND * max(1, abs(float(a)))
        except ValueError:
            near = False
        if not near:
            return False
    return True


def calls(*arguments, **env):
    """A run of predict_calls on the GPU that ends well."""
    done = start("predict_calls", *arguments, env={**ON_GPU, **env})
    assert done.returncode == 0, done.stderr[-500:]
    return done


def compare(*arguments, count=None, cpu=0):
    """A run of predict_calls with libaccel and without; all of its predictions but `cpu` of them are on the GPU."""
    plain, device = start("predict_calls", *arguments), calls(*arguments)
    assert plain.returncode == 0
    assert plain.stdout.count("\n") > 5
    assert is_near(plain.stdout, device.stdout)
    there = len(predictions(device, ran="gpu0"))
    assert there > 0
    assert count is None or there == count
    assert len(predictions(device, ran="cpu")) == cpu
    assert not said(device)
    return plain, device


def test_all_types_and_kernels():
    plain, device = compare("kernels", count=560)
    # The log has the function that the program calls.
    assert Counter(line["sym"] for line in predictions(device)) == {VALUES: 280, LABEL: 280}
    assert start("predict_calls", "kernels", env=NO_GPU).stdout == plain.stdout


def test_all_are_verified():
    ratios = [float(line["verify"]) for line in predictions(calls("kernels", ACCEL_VERIFY="all",
                                                                  ACCEL_VERIFY_ACTION="abort"))]
    assert len(ratios) == 560
    assert all(0 <= ratio <= 1 for ratio in ratios)


# From its third run on the kernel gives something else.
SPOILT = {"ACCEL_VERIFY": "all", "TESTGPU_WRONG": "svm_vector:3+"}


def test_verification_finds_a_wrong_result():
    done = calls("kernels", **SPOILT, ACCEL_VERIFY_ACTION="warn")
    assert not is_near(done.stdout, start("predict_calls", "kernels").stdout)
    assert "the GPU's result is wrong" in done.stderr


def test_libsvm_predicts_anew_after_a_wrong_result():
    done = calls("kernels", **SPOILT, ACCEL_VERIFY_ACTION="cpu")
    assert is_near(done.stdout, start("predict_calls", "kernels").stdout)
    assert predictions(done, why="verify_failed")


@pytest.mark.parametrize("arguments, count, cpu", [
    pytest.param(["change", 4000 if LONG else 150], None, 0, id="a model that changes between predictions"),
    pytest.param(["meanwhile"], 12, 1, id="a model that changes while it is read, and back"),
    pytest.param(["threads"], 320, 0, id="eight threads, two models"),
    pytest.param(["fork"], 8, 4, id="before and after a fork, in the child by libsvm")])
def test_as_libsvm_predicts(arguments, count, cpu):
    compare(*arguments, count=count, cpu=cpu)


def test_input_that_libsvm_is_not_made_for():
    """It gets libsvm's own answer, also where the GPU is required."""
    plain, device = compare("bad", cpu=18)
    assert is_near(plain.stdout, calls("bad", ACCEL_REQUIRE="gpu").stdout)
    for i, (own, ours) in enumerate(zip(plain.stdout.splitlines(), device.stdout.splitlines())):
        assert i in (0, 6) or own == ours
    assert len(lines_for(device, why="unsupported")) == 18


@pytest.mark.parametrize("program", [pytest.param("own_predict", id="of the program"),
                                     pytest.param("own_predict_hidden", id="of the program, among no dynamic symbols"),
                                     pytest.param("own_predict_elsewhere", id="of another library")])
def test_a_svm_predict_that_is_not_libsvms(program):
    """The log has the function of libsvm's that it calls."""
    plain, device, bits = (start(program, env=env) for env in (PLAIN, ON_GPU, {**NO_GPU, **LOG}))
    values = re.findall(r"(?m)^own (.*)\nlibsvm's (.*)\nvalue (.*)$", plain.stdout)
    assert plain.returncode == 0
    assert len(values) == 2
    assert all(float(own) == 10 * float(theirs) != 0 and theirs == value for own, theirs, value in values)
    assert is_near(plain.stdout, device.stdout)
    assert plain.stdout == bits.stdout
    assert [line["sym"] for line in predictions(device, ran="gpu0")] == [VALUES, LABEL, VALUES] * 2
    assert [line["sym"] for line in predictions(bits, ran="cpu")] == [VALUES, LABEL, VALUES] * 2


def test_values_that_are_0_within_rounding_are_libsvms():
    """A sign that rounding decides is libsvm's; a regression has none."""
    plain, device = start("predict_calls", "even"), start("predict_calls", "even", env=ON_GPU)
    assert plain.stdout.splitlines()[:3] == device.stdout.splitlines()[:3]
    assert is_near(plain.stdout, device.stdout)
    assert len(predictions(device, ran="cpu", why="unsupported")) == 6
    assert len(predictions(device, ran="gpu0")) == 2


def test_sparse_vectors_far_from_0():
    """The device adds |v|^2 to differences, of which rounding leaves little where vectors are far from 0: libsvm's.
    They are no fallback, and the model's next vector runs on the GPU."""
    plain, device = start("predict_calls", "far"), start("predict_calls", "far", env=ON_GPU)
    assert plain.stdout.count("\n") == 8
    assert is_near(plain.stdout, device.stdout)
    assert not said(device)
    required = calls("far", ACCEL_REQUIRE="gpu")
    assert len(predictions(required, ran="cpu", why="unsupported")) == 12
    assert len(predictions(required, ran="gpu0")) == 4


def test_where_all_are_far_the_device_is_asked_eight_times():
    plain, device = start("predict_calls", "always-far"), start("predict_calls", "always-far", env=ON_GPU)
    assert plain.stdout == device.stdout
    assert ["up_mb" in f for f in predictions(device)] == 8 * [True] + 4 * [False]


# ---- Debian's programs ----


def train(folder, *options, name="model"):
    assert start("/usr/bin/svm-train", "-q", *options, HEART, folder / name).returncode == 0


def predict(folder, *options, **env):
    done = start("/usr/bin/svm-predict", *options, HEART, folder / "model", folder / "out", env=env)
    return done, (folder / "out").read_text()


@pytest.mark.parametrize("options", ["", "-t 0", "-s 2", "-s 3", "-b 1", "-s 3 -b 1"][::1 if LONG else 2])
def test_svm_predict(options, tmp_path):
    train(tmp_path, *options.split())
    ask = ["-b", "1"] if "-b" in options else []
    (plain, told), (device, answer) = predict(tmp_path, *ask), predict(tmp_path, *ask, **ON_GPU)
    assert plain.stdout == device.stdout
    assert is_near(told, answer)
    assert len(predictions(device, ran="gpu0", l=lines_for(device)[0]["l"])) == 270
    # Without the sigmoids of classes, svm_predict_probability() goes on as svm_predict().
    name = PROBABILITY if options == "-b 1" else LABEL
    assert {line["sym"] for line in predictions(device)} == {name}
    stays = predict(tmp_path, *ask, **ON_GPU, ACCEL_CPU=name)[0]
    assert set(outcomes(predictions(stays))) == {("cpu", "user")}
    assert not said(stays)


def test_accel_diff_runs_them_with_libaccel_and_without_and_counts_their_decisions(tmp_path):
    model, labels = tmp_path / "compared", tmp_path / "labels"
    for symbol, count, program, file in (("svm_train", 1, ["svm-train", HEART, model], model),
                                         ("svm_predict", 270, ["svm-predict", HEART, model, labels], labels)):
        done = start(str(BUILD / "accel"), "diff", "--expect", f"{symbol} on gpu == {count}", "--output", file, "--",
                     *program,
                     env={key: value for key, value in TEST_GPU.items() if key != "LD_PRELOAD"})
        assert done.returncode == 0, (done.stdout, done.stderr)
        assert f"expect {symbol} on gpu == {count}: ok" in done.stdout
        assert f"{file.name} (text): ok" in done.stdout


def test_what_is_small_is_forwarded(tmp_path):
    """132 support vectors."""
    train(tmp_path, "-c", "1")
    assert {line["why"] for line in predictions(predict(tmp_path,
                                                        **{**ON_GPU, "ACCEL_POLICY": "auto"})[0])} == {"small"}


def test_what_is_turned_off_is_forwarded(tmp_path):
    train(tmp_path, "-c", "1")
    off = predict(tmp_path, **ON_GPU, ACCEL_ML="0")[0]
    assert {line["why"] for line in predictions(off)} <= {"user"}
    assert not lines_for(off, ran="gpu0")


def test_a_forwarded_svm_predict_of_a_small_model_costs_at_most_20_instructions_more():
    """Of libsvm's svm_predict() and the svm_predict_values() that it calls: the first call finds that."""

    def cost(vectors, env):
        return [int(line) for line in start("predict_calls", "cost", vectors, env=env).stdout.split()][1:]

    auto = {**TEST_GPU, "ACCEL_POLICY": "auto"}
    small, large, bare = cost(255, auto), cost(256, auto), cost(255, NO_GPU)
    assert len(small) == len(bare) == 2
    assert 0 < min(small + bare)
    assert max(small + bare) <= 20
    assert min(large) > 20


def test_support_vectors_are_copied_to_the_gpu_once(tmp_path):
    """Then each call brings one, and fetches a kernel value for each."""
    train(tmp_path, "-c", "1")
    sent = [float(line["up_mb"]) for line in predictions(predict(tmp_path, **ON_GPU)[0])]
    assert len(sent) == 270
    assert sent[0] > 1e-2
    assert max(sent[1:]) < 1e-3


VECTORS, FEATURES, ROWS = 600, 250, 10


def write_model(path, line):
    """A model whose vector i is line(i)."""
    path.write_text(f"svm_type c_svc\nkernel_type rbf\ngamma 0.01\nnr_class 2\ntotal_sv {VECTORS}\nrho 0.1\nlabel 1 -1\n"
                    f"nr_sv {VECTORS // 2} {VECTORS // 2}\nSV\n" + "".join(f"{1 - 2 * (i >= VECTORS // 2)} {line(i)}\n"
                                                                           for i in range(VECTORS)))


def test_the_copy_of_a_model_is_charged_to_the_predictions_so_far(tmp_path):
    """A model goes to the GPU when as many predictions as there have been would pay for the copy: each call has its
    share of 4 ns for an element."""

    def row(i):
        return " ".join(f"{k}:{(i * k) % 97 / 97:.3f}" for k in range(1, FEATURES + 1))

    write_model(tmp_path / "model", row)
    (tmp_path / "rows").write_text("".join(f"1 {row(i)}\n" for i in range(ROWS)))
    done = start(str(BUILD / "accel"), "estimate", "--gpu", "H100", "--", "svm-predict", tmp_path / "rows",
                 tmp_path / "model", tmp_path / "out", env=LOG)
    shares = [float(share) for share in re.findall(rf"sym={LABEL} l={VECTORS} features={FEATURES} .*est_gpu_ms=(\S+)",
                                                   done.stderr)]
    assert len(shares) == ROWS
    for call, share in enumerate(shares, 1):
        assert abs(share - shares[-1] - VECTORS * FEATURES * 4e-6 * (1 / call - 1 / ROWS)) < 0.01, call


def test_vectors_with_different_features_take_libsvm_longer(tmp_path):
    """Up to four times as long for an element: of four features all have the same one, or each has one at random."""

    def estimate_of(choose):
        def line(i):
            return " ".join(f"{k}:0.5" for k in range(1, 4 * FEATURES + 1) if choose(i, k))

        write_model(tmp_path / "model", line)
        (tmp_path / "row").write_text(f"1 {line(VECTORS)}\n")
        done = start("/usr/bin/svm-predict", tmp_path / "row", tmp_path / "model", tmp_path / "out",
                     env={**NO_GPU, **LOG})
        return float(predictions(done)[0]["est_cpu_ms"])

    shuffled = random.Random(1)
    few = [set(shuffled.sample(range(1, 4 * FEATURES + 1), FEATURES)) for _ in range(VECTORS + 1)]
    alike, other = estimate_of(lambda i, k: k % 4 == 0), estimate_of(lambda i, k: k in few[i])
    assert 3.5 < other / alike < 4.1
    assert abs(alike / (VECTORS * FEATURES * 0.8e-6) - 1) < 0.1


OPENED = """
import ctypes, _ctypes, sys
class Node(ctypes.Structure):
    _fields_ = [("index", ctypes.c_int), ("value", ctypes.c_double)]
for model in 2 * sys.argv[1:]:
    lib = ctypes.CDLL("libsvm.so.3")
    lib.svm_load_model.restype = ctypes.c_void_p
    lib.svm_predict_values.restype = ctypes.c_double
    at = ctypes.c_void_p(lib.svm_load_model(model.encode()))
    x = (Node * 14)(*[(k + 1, k / 13 - 0.5) for k in range(13)], (-1, 0))
    for k in range(3):
        values = (ctypes.c_double * 1)()
        label = lib.svm_predict_values(at, x, values)
        print(label, values[0])
    _ctypes.dlclose(lib._handle)
"""


def test_a_libsvm_that_is_closed_and_opened_again_with_two_models(tmp_path):
    train(tmp_path, "-c", "1")
    train(tmp_path, "-c", "10", "-g", "0.5", name="other")
    plain, device = (start(DEBIAN_PYTHON, "-c", OPENED, tmp_path / "model", tmp_path / "other", env=env)
                     for env in (PLAIN, ON_GPU))
    assert plain.stdout.count("\n") == 12
    assert is_near(plain.stdout, device.stdout)
    assert len(predictions(device, ran="gpu0")) == 12
