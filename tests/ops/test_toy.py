#!/usr/bin/python3 -B
"""A library that is no BLAS, with a struct argument and a double result, in a libaccel of its own build (tests/toy/): its exported names
are those of its row, a version is accepted or not, a call runs on the test GPU, and one that does not finds its original with registers and
stack as they were passed."""

import tempfile

from lib.calibrated import key_that_is_missed, put
from lib.log import lines_for
from lib.programs import BUILD, LOG, NO_GPU, SHIM, TEST_GPU, exported, start
from lib.tap import Tap

TOY = BUILD / "tests/toy"
tap = Tap()
folder = tempfile.TemporaryDirectory(prefix="accel-toy-")


def with_toy(env):
    return {name: value.replace(str(BUILD / "libaccel.so"), str(TOY / "libaccel.so")) for name, value in env.items()}


def call(what, library, *settings):
    env = {"LD_LIBRARY_PATH": str(TOY / library)}
    for some in settings:
        env.update(some)
    return start(str(TOY / "toy_call"), what, env=with_toy(env))


added = exported(TOY / "libaccel.so") ^ exported(BUILD / "libaccel.so")
tap.ok(added == {"toy_score"}, "a function of another library is exported under its plain name alone", repr(added))

SCORES = "score 2.5\n" * 3
done = call("score", "1")
tap.ok(done.stdout == SCORES, "libtoy itself", done.stdout, done.stderr)
done = call("score", "1", TEST_GPU, LOG)
lines = lines_for(done, sym="toy_score", ran="gpu0", why="forced", features="1000")
tap.ok(done.stdout == SCORES and len(lines) == 3, "on the GPU: the double result, and the operation's own fields in the log",
       done.stdout, done.stderr)
done = call("score", "1", TEST_GPU, {"ACCEL_LOG": "json"})
tap.ok(done.stdout == SCORES and done.stderr.count('"sym": "toy_score", "features": 1000, "ran": "gpu0"') == 3,
       "the same fields in JSON", done.stdout, done.stderr)
done = call("score", "1", TEST_GPU, LOG, {"ACCEL_VERIFY": "all"})
tap.ok(done.stdout == SCORES and [float(line["verify"]) <= 1 for line in lines_for(done, sym="toy_score", ran="gpu0")] == [True] * 3,
       "verification: the operation judges its own results", done.stdout, done.stderr)
for action, scores, whys in ("cpu", SCORES, ["forced", "verify_failed", "verify_failed"]), ("warn", None, ["forced"] * 3):
    done = call("score", "1", TEST_GPU, LOG, {"ACCEL_VERIFY": "all", "ACCEL_VERIFY_ACTION": action, "TESTGPU_WRONG": "2"})
    tap.ok((done.stdout == scores if scores else done.stdout != SCORES) and [line["why"] for line in lines_for(done, sym="toy_score")] == whys,
           f"a wrong one, ACCEL_VERIFY_ACTION={action}", done.stdout, done.stderr)
for features, why in ((63, "small"), (64, "slower")):
    done = call(f"{features}", "1", TEST_GPU, LOG, {"ACCEL_POLICY": "auto"})
    tap.ok(len(lines_for(done, sym="toy_score", features=str(features), why=why)) == 3, f"{features} features: {why}, as for the entry", done.stderr)
# Nominal times: 3 steps of a millisecond on the device; half of the 2 * 1000 operations at a tenth
# of 25 Gflop/s on the CPU. A calibration's come first, also another library's on this CPU; so
# decisions follow them.
AUTO = {"ACCEL_POLICY": "auto", "ACCEL_START": "wait", "XDG_CACHE_HOME": folder.name}
line, = lines_for(call("score", "1", TEST_GPU, LOG, AUTO), sym="toy_score")[:1]
tap.ok(3 < float(line["est_gpu_ms"]) < 53.2 and 0 < float(line["est_cpu_ms"]) < 0.01, "nominal times, of the work that each side is thought to do", line)
model = folder.name + "/model"
cpu = key_that_is_missed(folder.name, {'[gpu "none"]': ""}, "dgemm:400:1", {})
for library in f"libtoy.so {(TOY / '1/libtoy.so').resolve().stat().st_size}", "libanother.so 1":
    put(model, {f'[{cpu} threads=1 library="{library}"]': "toy_score 500:500 1000:1000 2000:2000\n"})
    lines = lines_for(call("score", "1", TEST_GPU, LOG, AUTO, {"ACCEL_MODEL": model}), sym="toy_score")
    tap.ok([(line["ran"], line["why"]) for line in lines] == [("gpu0", "faster")] * 3 and abs(float(lines[0]["est_cpu_ms"]) - 1000) < 200,
           f"a calibration of {library}: its times are the estimates", *lines)
for pattern, why in (("toy_*", "user"), ("blas:*,lapack:*", "forced")):
    done = call("score", "1", TEST_GPU, LOG, {"ACCEL_CPU": pattern})
    tap.ok(done.stdout == SCORES and len(lines_for(done, sym="toy_score", why=why)) == 3,
           f"ACCEL_CPU={pattern}: {why}", done.stdout, done.stderr)
done = call("score", "2", TEST_GPU, LOG)
tap.ok(done.stdout == SCORES and len(lines_for(done, sym="toy_score", ran="cpu", why="unsupported")) == 3
       and "features" not in done.stderr,
       "another version is the original's, and the log says so", done.stdout, done.stderr)

for value, why in (("0", "user"), ("liblinear", "user"), ("libsvm", "forced"), ("1,xgboost", "forced")):
    done = call("score", "1", TEST_GPU, LOG, {"ACCEL_ML": value})
    tap.ok(done.stdout == SCORES and len(lines_for(done, sym="toy_score", why=why)) == 3,
           f"a library that ACCEL_ML turns off or on, ACCEL_ML={value}: {why}", done.stdout, done.stderr)

# Each of these calls fails, whenever it comes.
FAULTS = {"cuMemAlloc:1+": "no_memory", "cublasDgemm:1+": "error", "cuMemcpyHtoDAsync:1+": "error", "cuMemcpyDtoHAsync:1+": "error"}
for fault, why in FAULTS.items():
    done = call("score", "1", TEST_GPU, LOG, {"TESTGPU_FAIL": fault})
    tap.ok(done.stdout == SCORES and done.returncode == 0 and why in {line.get("why") for line in lines_for(done, sym="toy_score")},
           f"{fault} fails: the original's result", done.stdout, done.stderr)

# Through dlsym, as ctypes does; a model without features is not understood.
PYTHON = f"""import ctypes
class Model(ctypes.Structure):
    _fields_ = [("features", ctypes.c_int), ("weights", ctypes.c_void_p), ("bias", ctypes.c_double)]
x = (ctypes.c_double * 3)(1, 2, 3)
score = ctypes.CDLL("{TOY}/1/libtoy.so").toy_score
score.restype = ctypes.c_double
for features in 3, 0:
    print(score(ctypes.byref(Model(features, ctypes.addressof(x), 0.25)), x))
"""
done = start("/usr/bin/python3", "-c", PYTHON, env=with_toy({**TEST_GPU, **LOG}))
tap.ok(done.stdout == "14.25\n0.25\n" and len(lines_for(done, sym="toy_score", ran="gpu0", features="3")) == 1
       and len(lines_for(done, sym="toy_score", ran="cpu", why="unsupported")) == 1,
       "a pointer from dlsym; a call that the operation cannot read is the original's", done.stdout, done.stderr)

# The library notes all registers and the stack, and returns something in each register for results.
AS_PASSED = "differs:; returned: 1111 2222 4369 8738\n" * 3
for name, settings in {
    "without libaccel": [],
    "ACCEL=0": [SHIM, {"ACCEL": "0"}],
    "no GPU": [NO_GPU],
    "left to the CPU by the user": [SHIM, {"ACCEL_POLICY": "cpu"}],
    "another version": [TEST_GPU, "2"],
    "another version, logged": [TEST_GPU, LOG, "2"],
}.items():
    library = "witness2" if "2" in settings else "witness"
    done = call("witness", library, *[some for some in settings if some != "2"])
    tap.ok(done.stdout == AS_PASSED, f"{name}: registers and stack are as they were passed", done.stdout, done.stderr)
# The entry reads the struct of an accepted version alone, and not that at NULL.
for name, library, first in ("NULL", "witness", 0), ("an integer, to another version", "witness2", 77):
    done = start(str(TOY / "toy_call"), "witness", first, env=with_toy({**TEST_GPU, "ACCEL_POLICY": "auto", "LD_LIBRARY_PATH": str(TOY / library)}))
    tap.ok(done.stdout == AS_PASSED, f"{name} for the struct: as it was passed", done.stdout, done.stderr, done.returncode)
# Where libaccel is to say how long the call took, it calls the original itself.
done = call("witness", "witness", NO_GPU, LOG)
tap.ok(done.stdout == "differs: saved stack sp; returned: 1111 2222 4369 8738\n" * 3,
       "no GPU, logged: all argument registers and all results are passed on", done.stdout, done.stderr)
tap.done()
