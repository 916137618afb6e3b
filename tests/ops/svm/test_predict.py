#!/usr/bin/python3 -B
"""Predictions on the test GPU are libsvm's within rounding, and labels are the same: svm-predict, PyPI's libsvm, models of all kinds, models that change
between two predictions, threads, forks, a library that is closed. What libsvm itself must answer gets there; without a GPU, bit for bit."""

import random
import re
import tempfile
from collections import Counter
from pathlib import Path

from lib.log import lines_for, said
from lib.programs import BUILD, DEBIAN_PYTHON, LOG, LONG, NO_GPU, PLAIN, TEST_GPU, start
from lib.tap import Tap

tap = Tap()
folder = tempfile.TemporaryDirectory(prefix="accel-predict-")
HEART = "/usr/share/doc/liblinear-tools/examples/heart_scale"
ON_GPU = {**TEST_GPU, **LOG}
# The names of the functions that programs call; libaccel stands in front of the first one.
SYMBOLS = VALUES, LABEL, PROBABILITY = "svm_predict_values", "svm_predict", "svm_predict_probability"
BOUND = 1e-14  # a value may differ by this share of it, or of 1 if it is smaller


def place(name):
    return str(Path(folder.name, name))


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


def compare(name, *arguments, calls=None, env=ON_GPU, cpu=0):
    """A run of predict_calls with libaccel and without; all of its predictions but `cpu` of them are on the GPU."""
    plain, device = start("predict_calls", *arguments), start("predict_calls", *arguments, env=env)
    there, stayed = len(predictions(device, ran="gpu0")), len(predictions(device, ran="cpu"))
    tap.ok(plain.returncode == device.returncode == 0 and plain.stdout.count("\n") > 5 and is_near(plain.stdout, device.stdout),
           f"{name}: as libsvm predicts", *[f"{a}\n{b}" for a, b in zip(plain.stdout.splitlines(), device.stdout.splitlines()) if not is_near(a, b)][:5],
           device.stderr[-1000:])
    tap.ok(there > 0 and stayed == cpu and (calls is None or there == calls) and not said(device), f"{name}: on the GPU", there, stayed, *said(device))
    return plain, device


plain, device = compare("all types and kernels", "kernels", calls=560)
names = Counter(line["sym"] for line in predictions(device))
tap.ok(names == {VALUES: 280, LABEL: 280}, "the log has the function that the program calls", names)
none = start("predict_calls", "kernels", env=NO_GPU)
tap.ok(none.stdout == plain.stdout, "no GPU: bit for bit the same")
verified = start("predict_calls", "kernels", env={**ON_GPU, "ACCEL_VERIFY": "all", "ACCEL_VERIFY_ACTION": "abort"})
ratios = [float(line["verify"]) for line in predictions(verified)]
tap.ok(verified.returncode == 0 and len(ratios) == 560 and all(0 <= ratio <= 1 for ratio in ratios), "all are verified", max(ratios, default=None), verified.stderr[-500:])
# From its third run on the kernel gives something else.
SPOILT = {**ON_GPU, "ACCEL_VERIFY": "all", "TESTGPU_WRONG": "svm_vector:3+"}
done = start("predict_calls", "kernels", env={**SPOILT, "ACCEL_VERIFY_ACTION": "warn"})
tap.ok(done.returncode == 0 and not is_near(done.stdout, none.stdout) and "the GPU's result is wrong" in done.stderr, "verification finds a wrong result", done.stderr[-500:])
done = start("predict_calls", "kernels", env={**SPOILT, "ACCEL_VERIFY_ACTION": "cpu"})
tap.ok(done.returncode == 0 and is_near(done.stdout, none.stdout) and predictions(done, why="verify_failed"),
       "ACCEL_VERIFY_ACTION=cpu: libsvm predicts anew", done.stderr[-500:])
compare("a model that changes between predictions", "change", 4000 if LONG else 150)
compare("a model that changes while it is read, and back", "meanwhile", calls=12, cpu=1)
compare("eight threads, two models", "threads", calls=320)
compare("before and after a fork, in the child by libsvm", "fork", calls=8, cpu=4)
plain, device = compare("input that libsvm is not made for", "bad", cpu=18)
required = start("predict_calls", "bad", env={**ON_GPU, "ACCEL_REQUIRE": "gpu"})
tap.ok(required.returncode == 0 and is_near(plain.stdout, required.stdout), "also where the GPU is required", required.returncode, required.stderr[-500:])
stays = [line for line in range(plain.stdout.count("\n")) if line not in (0, 6)]
tap.ok(all(plain.stdout.splitlines()[i] == device.stdout.splitlines()[i] for i in stays) and len(lines_for(device, why="unsupported")) == 18,
       "it gets libsvm's own answer", device.stdout, device.stderr)

# A function under the name svm_predict that is not libsvm's: the log has the function of libsvm's
# that it calls.
for program, where in {"own_predict": "the program", "own_predict_hidden": "the program, among no dynamic symbols", "own_predict_elsewhere": "another library"}.items():
    plain, device, bits = (start(program, env=env) for env in (PLAIN, ON_GPU, {**NO_GPU, **LOG}))
    values = re.findall(r"(?m)^own (.*)\nlibsvm's (.*)\nvalue (.*)$", plain.stdout)
    tap.ok(plain.returncode == 0 and len(values) == 2 and all(float(own) == 10 * float(theirs) != 0 and theirs == value for own, theirs, value in values),
           f"a svm_predict of {where}: plain", plain.stdout, plain.stderr)
    for done, ran in ((device, "gpu0"), (bits, "cpu")):
        same = is_near(plain.stdout, done.stdout) if ran == "gpu0" else plain.stdout == done.stdout
        tap.ok(same and [line["sym"] for line in predictions(done, ran=ran)] == [VALUES, LABEL, VALUES] * 2, f"a svm_predict of {where}: libsvm's functions are in the log, {ran}",
               plain.stdout, done.stdout, done.stderr)

# A sign that rounding decides is libsvm's; a regression has none.
plain, device = start("predict_calls", "even"), start("predict_calls", "even", env=ON_GPU)
tap.ok(plain.stdout.splitlines()[:3] == device.stdout.splitlines()[:3] and is_near(plain.stdout, device.stdout)
       and len(predictions(device, ran="cpu", why="unsupported")) == 6 and len(predictions(device, ran="gpu0")) == 2,
       "values that are 0 within rounding: libsvm's", plain.stdout, device.stdout, device.stderr)

# The device adds |v|^2 to differences, of which rounding leaves little where vectors are far from
# 0: libsvm's.
plain, device = start("predict_calls", "far"), start("predict_calls", "far", env=ON_GPU)
tap.ok(plain.stdout.count("\n") == 8 and is_near(plain.stdout, device.stdout) and not said(device), "sparse vectors far from 0: as libsvm predicts", plain.stdout, device.stdout)
done = start("predict_calls", "far", env={**ON_GPU, "ACCEL_REQUIRE": "gpu"})
tap.ok(done.returncode == 0 and len(predictions(done, ran="cpu", why="unsupported")) == 12 and len(predictions(done, ran="gpu0")) == 4,
       "they are no fallback, and the model's next vector runs on the GPU", done.returncode, done.stderr[-500:])

plain, device = start("predict_calls", "always-far"), start("predict_calls", "always-far", env=ON_GPU)
tap.ok(plain.stdout == device.stdout and ["up_mb" in f for f in predictions(device)] == 8 * [True] + 4 * [False],
       "where all are far, the device is asked eight times", plain.stdout, device.stdout, *predictions(device))

# ---- Debian's programs ----


def predict(options, env=PLAIN, data=HEART, model="model", out="out"):
    done = start("/usr/bin/svm-predict", *options, data, place(model), place(out), env=env)
    return done, Path(place(out)).read_text()


for options in ([], ["-t", "0"], ["-s", "2"], ["-s", "3"], ["-b", "1"], ["-s", "3", "-b", "1"])[::1 if LONG else 2]:
    start("/usr/bin/svm-train", "-q", *options, HEART, place("model"))
    ask = options[-2:] if "-b" in options else []
    plain, told = predict(ask)
    device, answer = predict(ask, ON_GPU)
    tap.ok(plain.stdout == device.stdout and is_near(told, answer) and len(predictions(device, ran="gpu0", l=str(lines_for(device)[0]["l"]))) == 270,
           f"svm-predict {' '.join(options)}: each of 270 predictions on the GPU, its output as without", device.stderr[-500:])
    # Without the sigmoids of classes, svm_predict_probability() goes on as svm_predict().
    name = PROBABILITY if options == ["-b", "1"] else LABEL
    tap.ok({line["sym"] for line in predictions(device)} == {name}, f"svm-predict {' '.join(options)}: the log says {name}", device.stderr[-300:])
    stays = predict(ask, {**ON_GPU, "ACCEL_CPU": name})[0]
    tap.ok({(line["ran"], line["why"]) for line in predictions(stays)} == {("cpu", "user")} and not said(stays), f"ACCEL_CPU={name}: it stays", stays.stderr[-300:])

# accel diff runs them with libaccel and without, and counts their decisions.
for symbol, calls, program, file in (("svm_train", 1, ["svm-train", HEART, place("compared")], "compared"),
                                     ("svm_predict", 270, ["svm-predict", HEART, place("compared"), place("labels")], "labels")):
    done = start(str(BUILD / "accel"), "diff", "--expect", f"{symbol} on gpu == {calls}", "--output", place(file), "--", *program,
                 env={key: value for key, value in TEST_GPU.items() if key != "LD_PRELOAD"})
    tap.ok(done.returncode == 0 and f"expect {symbol} on gpu == {calls}: ok" in done.stdout and f"{file} (text): ok" in done.stdout,
           f"accel diff: {symbol} makes the same file", done.stdout, done.stderr)

# Forwarded: what is small, what is turned off.
auto = {**ON_GPU, "ACCEL_POLICY": "auto"}
start("/usr/bin/svm-train", "-q", "-c", "1", HEART, place("model"))
small = predict([], auto)[0]
tap.ok({line["why"] for line in predictions(small)} == {"small"}, "132 support vectors: small", small.stderr[-300:])
off = predict([], {**ON_GPU, "ACCEL_ML": "0"})[0]
tap.ok({line["why"] for line in predictions(off)} <= {"user"} and not lines_for(off, ran="gpu0"), "ACCEL_ML=0: libsvm's", off.stderr[-300:])

# In instructions, of libsvm's svm_predict() and the svm_predict_values() that it calls: the first
# call finds that.
cost = lambda vectors, env: [int(line) for line in start("predict_calls", "cost", vectors, env=env).stdout.split()][1:]
small, large, bare = cost(255, {**TEST_GPU, "ACCEL_POLICY": "auto"}), cost(256, {**TEST_GPU, "ACCEL_POLICY": "auto"}), cost(255, NO_GPU)
tap.ok(len(small) == len(bare) == 2 and 0 < min(small + bare) and max(small + bare) <= 20 < min(large, default=0),
       "a forwarded svm_predict of a small model: at most 20 instructions more", small, bare, large)

# The vectors go up once; then each call brings one, and fetches a kernel value for each.
start("/usr/bin/svm-train", "-q", "-c", "1", HEART, place("model"))
device = predict([], ON_GPU)[0]
sent = [float(line["up_mb"]) for line in predictions(device)]
tap.ok(len(sent) == 270 and sent[0] > 1e-2 and max(sent[1:]) < 1e-3, "support vectors are copied to the GPU once", sent[:3])

# A model goes to the GPU when as many predictions as there have been would pay for the copy: each
# call has its share of 4 ns for an element.
VECTORS, FEATURES, ROWS = 600, 250, 10
row = lambda i: " ".join(f"{k}:{(i * k) % 97 / 97:.3f}" for k in range(1, FEATURES + 1))
Path(place("large")).write_text(f"svm_type c_svc\nkernel_type rbf\ngamma 0.01\nnr_class 2\ntotal_sv {VECTORS}\nrho 0.1\nlabel 1 -1\n"
                                f"nr_sv {VECTORS // 2} {VECTORS // 2}\nSV\n" + "".join(f"{1 - 2 * (i >= VECTORS // 2)} {row(i)}\n" for i in range(VECTORS)))
Path(place("rows")).write_text("".join(f"1 {row(i)}\n" for i in range(ROWS)))
done = start(str(BUILD / "accel"), "estimate", "--gpu", "H100", "--", "svm-predict", place("rows"), place("large"), place("out"), env=LOG)
shares = [float(share) for share in re.findall(rf"sym={LABEL} l={VECTORS} features={FEATURES} .*est_gpu_ms=(\S+)", done.stderr)]
shares = [share - shares[-1] for share in shares]
expected = [VECTORS * FEATURES * 4e-6 * (1 / call - 1 / ROWS) for call in range(1, ROWS + 1)]
tap.ok(len(shares) == ROWS and all(abs(a - b) < 0.01 for a, b in zip(shares, expected)), "the copy of a model is charged to the predictions so far", shares, expected,
       done.stderr[-500:])

# libsvm takes up to four times as long for an element where vectors have different features: of
# four features all have the same one, or each has one at random.
def estimate_of(choose):
    line = lambda i: " ".join(f"{k}:0.5" for k in range(1, 4 * FEATURES + 1) if choose(i, k))
    Path(place("sparse")).write_text(f"svm_type c_svc\nkernel_type rbf\ngamma 0.01\nnr_class 2\ntotal_sv {VECTORS}\nrho 0.1\nlabel 1 -1\nnr_sv {VECTORS // 2} {VECTORS // 2}\nSV\n"
                                     + "".join(f"1 {line(i)}\n" for i in range(VECTORS)))
    Path(place("row")).write_text(f"1 {line(VECTORS)}\n")
    done = start("/usr/bin/svm-predict", place("row"), place("sparse"), place("out"), env={**NO_GPU, **LOG})
    return float(predictions(done)[0]["est_cpu_ms"])


shuffled = random.Random(1)
few = {i: set(shuffled.sample(range(1, 4 * FEATURES + 1), FEATURES)) for i in range(VECTORS + 1)}
alike, other = estimate_of(lambda i, k: k % 4 == 0), estimate_of(lambda i, k: k in few[i])
tap.ok(3.5 < other / alike < 4.1 and abs(alike / (VECTORS * FEATURES * 0.8e-6) - 1) < 0.1, "vectors with different features take libsvm longer", alike, other)

# ---- A library that is closed, and opened again with another model ----

OPENED = f"""
import ctypes, _ctypes
class Node(ctypes.Structure):
    _fields_ = [("index", ctypes.c_int), ("value", ctypes.c_double)]
for model in 2 * ["{place('model')}", "{place('other')}"]:
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
start("/usr/bin/svm-train", "-q", "-c", "10", "-g", "0.5", HEART, place("other"))
plain, device = start(DEBIAN_PYTHON, "-c", OPENED), start(DEBIAN_PYTHON, "-c", OPENED, env=ON_GPU)
tap.ok(plain.stdout.count("\n") == 12 and is_near(plain.stdout, device.stdout) and len(predictions(device, ran="gpu0")) == 12,
       "a libsvm that is closed and opened again, with two models", plain.stdout, device.stdout, device.stderr)

folder.cleanup()
tap.done()
