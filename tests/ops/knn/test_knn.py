#!/usr/bin/python3 -B
"""Nearest neighbours of R's packages class and FNN on the test GPU: to the last bit what the packages compute by themselves, and R's random numbers where
they leave them. What the device is not made for, or fails at, is the packages' own. With TEST_LONG=1 all that way without a GPU and with settings that keep it off, too."""

import shutil
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

from lib.log import lines_for, parse_log
from lib.programs import LOG, LONG, NO_GPU, PLAIN, ROOT, SHIM, TEST_GPU, TESTS, start
from lib.tap import Tap

SCRIPT = ROOT / "tests/fixtures/knn/neighbours.R"
tap = Tap()


def neighbours(*cases, env=PLAIN):
    return start("/usr/bin/Rscript", "--vanilla", SCRIPT, *cases, env=env)


def same(done, plain):
    return done.returncode == 0 and done.stdout == plain.stdout


ON_GPU = {**TEST_GPU, **LOG}
VERIFY = {"ACCEL_VERIFY": "all", "ACCEL_VERIFY_ACTION": "cpu"}
NAMES = "VR_knn", "get_KNNX_brute", "get_KNN_brute"
# Of each case, the calls that go to the GPU.
CALLS = {"iris": 4, "ties": 24, "twins": 2, "cv": 2, "wide": 1, "one": 1, "all": 1, "knnx": 3, "equal": 2, "self": 4, "vote": 1, "few": 3, "many": 2,
         "far": 1, "seed": 1, "broken": 1, "leaves": 0, "generator": 1}

plain = neighbours()
cases = Counter(line.split()[0] for line in plain.stdout.splitlines())
tap.ok(plain.returncode == 0 and set(cases) == {*CALLS, "infinite", "crowd"}, "the packages themselves", plain.stderr, cases)
for name, env in {"no GPU": NO_GPU, **({"ACCEL=0": {**SHIM, "ACCEL": "0"}, "ACCEL_POLICY=cpu": {**TEST_GPU, "ACCEL_POLICY": "cpu"}} if LONG else {})}.items():
    done = neighbours(env=env)
    tap.ok(same(done, plain), f"{name}: to the last bit the same", done.stderr)

done = neighbours(env={**ON_GPU, **VERIFY})
lines = parse_log(done.stderr)
tap.ok(same(done, plain), "on the GPU: to the last bit the same, random numbers too", done.stderr[:3000])
on_gpu = lines_for(done, ran="gpu0", why="forced")
tap.ok(len(on_gpu) == sum(CALLS.values()) and {line["verify"] for line in on_gpu} == {"0"}, "their calls run on the GPU, and are verified",
       Counter(line["sym"] for line in on_gpu), done.stderr[-3000:])
tap.ok(sorted((line["sym"], line["why"]) for line in lines if line["ran"] == "cpu") ==
       [("VR_knn", "unsupported")] * 3 + [("get_KNNX_brute", "unsupported")] * 2, "infinite numbers and too many ties are the packages' own",
       *[line for line in lines if line["ran"] == "cpu"])
for sym, sizes in {"VR_knn": (257, 43, 40, 9), "get_KNNX_brute": (250, 50, 40, 100), "get_KNN_brute": (400, 400, 3, 5)}.items():
    fields = dict(zip(("train", "test", "features", "k"), map(str, sizes)))
    tap.ok(len(lines_for(done, sym=sym, ran="gpu0", **fields)) == 1, f"{sym}: sizes in the log", *[line for line in lines if line["sym"] == sym][:9])

# R is linked to a BLAS with threads; class and FNN compute with one.
for case in "one", "knnx":
    env = {**TEST_GPU, **LOG, "ACCEL_POLICY": "auto"}
    times = {threads: parse_log(neighbours(case, env={**env, "OPENBLAS_NUM_THREADS": threads}).stderr)[0]["est_cpu_ms"] for threads in ("1", "2")}
    tap.ok(times["1"] == times["2"], f"{case}: the BLAS's threads are not counted", times)

many, few = neighbours("many"), neighbours("few")
done = neighbours("many", env={**ON_GPU, "ACCEL_MEMORY": "1M", "ACCEL_LOG": "2"})
blocks = done.stderr.count("event=d2h")
tap.ok(same(done, many) and len(lines_for(done, ran="gpu0")) == 2 and blocks > 4, f"little memory: {blocks} blocks, the same", done.stderr[:3000])
done = neighbours("many", env={**ON_GPU, "TESTGPU_FAIL": "cuMemAlloc:1+"})
tap.ok(same(done, many) and len(lines_for(done, ran="cpu", why="no_memory")) == 2, "no memory: the packages' own", done.stderr[:3000])

for function in "cuMemcpyHtoDAsync", "cuLaunchKernel", "cuMemcpyDtoHAsync":
    done = neighbours("few", env={**ON_GPU, "TESTGPU_FAIL": f"{function}:2+"})
    tap.ok(same(done, few) and lines_for(done, ran="cpu", why="error"), f"{function} fails from its second use on: the packages' own, random numbers too",
           done.stderr[:3000])

# The distance of the first query to the first point is wrong.
for place, sym in enumerate(NAMES, 1):
    done = neighbours("few", env={**ON_GPU, **VERIFY, "TESTGPU_WRONG": f"distances:{place}"})
    tap.ok(same(done, few) and lines_for(done, sym=sym, ran="cpu", why="verify_failed"), f"{sym}: a wrong distance is seen, and the package computes anew",
           done.stderr[:3000])

# Where it pays, by the estimates without a calibration of a function's first call.
for case, calls, pays in ("iris", 1, False), ("large", 2, True):
    done = neighbours(case, env={**NO_GPU, **LOG})
    times = [(float(line["est_gpu_ms"]), float(line["est_cpu_ms"])) for line in parse_log(done.stderr)[:calls]]
    tap.ok(len(times) == calls and all((gpu < 0.5 * cpu, gpu > 2 * cpu) == (pays, not pays) for gpu, cpu in times), f"{case}: {'pays' if pays else 'does not pay'}",
           done.stderr)
done = neighbours("iris", env={**ON_GPU, "ACCEL_POLICY": "auto"})
line, *_ = parse_log(done.stderr) or [{}]
tap.ok((line.get("ran"), line.get("why")) == ("cpu", "slower"), "a small call is the package's own", line)

# A namesake, called through a table as R calls the packages.
CALL = """
import ctypes, sys
table = (ctypes.c_void_p * 3).in_dll(ctypes.CDLL(sys.argv[1]), "table")
for at in table:
    function = ctypes.CFUNCTYPE(ctypes.c_long, *[ctypes.c_long] * 8, ctypes.c_double)(at)
    print(function(1, 2, 3, 4, 5, 6, 7, 8, 9.5), flush=True)
"""
for name, env in {"plain": PLAIN, "on the GPU": ON_GPU, "no GPU": {**NO_GPU, **LOG}}.items():
    done = start("/usr/bin/python3", "-B", "-c", CALL, TESTS / "libnamesake_knn.so", env=env)
    good = done.stdout == "".join(f"{each} 1 2 3 4 5 6 7 8 9.5\n42\n" for each in NAMES)
    good = good and [(line["sym"], line["why"]) for line in parse_log(done.stderr)] == [(each, "unsupported") for each in NAMES if env]
    tap.ok(good, f"namesakes, {name}: registers and stack as they were", done.stdout, done.stderr)

# Another package of the same process has a function of that name: R calls both from one place,
# whichever was loaded first.
BOTH = """
path <- commandArgs(TRUE)[1]
other <- function() {
    dyn.load(path)
    print(.C("another", 1L, 0L, 2L, 1L, 1L, c(0, 5), 1:2, 1, res = 0L, 0, integer(3), 2L, 0L, 1L, PACKAGE = sub(".so", "", basename(path)))$res)
}
own <- function() print(class::knn(iris[1:120, 1:4], iris[121:150, 1:4], iris$Species[1:120], 5))
for (call in switch(commandArgs(TRUE)[2], before = c(other, own, other), after = c(own, other, own), alone = c(other))) call()
"""


def both(path, order, env):
    return start("/usr/bin/Rscript", "--vanilla", "-e", BOTH, path, order, env=env)


for order in "before", "after":
    own, done, bits = (both(TESTS / "libregistered.so", order, env) for env in (PLAIN, ON_GPU, NO_GPU))
    calls = Counter((line["sym"], line["ran"]) for line in parse_log(done.stderr))
    tap.ok("42" in own.stdout and same(done, own) and same(bits, own) and calls == {("VR_knn", "gpu0"): 1 if order == "before" else 2},
           f"another library's VR_knn, loaded {order} class: each gets its own calls", own.stdout, done.stdout, done.stderr, bits.stdout, bits.stderr)

# An R that the program closes, and another one that it opens then.
CLOSED = """
import ctypes, sys
ours = ctypes.CDLL(None).R_registerRoutines if sys.argv[1] else None
for path in sys.argv[2:]:
    library = ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
    print((ours or library.R_registerRoutines)(None, None, None, None, None))
    ctypes.CDLL(None).dlclose(ctypes.c_void_p(library._handle))
"""
with tempfile.TemporaryDirectory(prefix="accel-knn-") as folder:
    libraries = [Path(folder, f"lib{number}.so") for number in (41, 42)]
    for number, library in zip((41, 42), libraries):
        subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", library], input=f"char room[{number} << 20] = {{1}}; int R_registerRoutines(void) {{ return {number}; }}\n", text=True, check=True)
    for env in PLAIN, ON_GPU:
        done = start("/usr/bin/python3", "-B", "-c", CLOSED, "ours" if env else "", *libraries, env=env)
        tap.ok(done.returncode == 0 and done.stdout == "41\n42\n", f"one R is closed, another one is opened, {'on the GPU' if env else 'plain'}", done.returncode, done.stdout, done.stderr)

# Without any R, it says that nothing was done.
done = start("/usr/bin/python3", "-B", "-c", "import ctypes; print(ctypes.CDLL(None).R_registerRoutines(None, None, None, None, None))", env=ON_GPU)
tap.ok(done.returncode == 0 and done.stdout == "0\n", "a registration without any R", done.returncode, done.stdout, done.stderr)

# What makes a library known: it answers 42, and the GPU the class of the nearest point.
with tempfile.TemporaryDirectory(prefix="accel-knn-") as folder:
    library = Path(folder, "class/libs/class.so")
    library.parent.mkdir(parents=True)
    for what, name, description, answer in (("class 7.3", "", "class\nVersion: 7.3-99", "1"), ("fused sums", "_fused", "class\nVersion: 7.3-99", "42"),
                                            ("class 7.4", "", "class\nVersion: 7.4-1", "42"), ("class 7.30", "", "class\nVersion: 7.30", "42"),
                                            ("another package", "", "classes\nVersion: 7.3-99", "42"), ("no description", "", None, "42")):
        shutil.copy(TESTS / f"libregistered{name}.so", library)
        Path(folder, "class/DESCRIPTION").unlink(missing_ok=True)
        if description:
            Path(folder, "class/DESCRIPTION").write_text(f"Package: {description}\n")
        done = both(library, "alone", ON_GPU)
        tap.ok(done.stdout == f"[1] {answer}\n" and len(lines_for(done, ran="gpu0")) == (answer == "1"), f"{what}: {answer}", done.stdout, done.stderr)
tap.done()
