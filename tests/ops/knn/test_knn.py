#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Nearest neighbours of R's packages class and FNN on the test GPU: to the last bit what the packages compute by
themselves, and R's random numbers where they leave them. What the device is not made for, or fails at, is the packages'
own. With TEST_LONG=1 all that way without a GPU and with settings that keep it off, too."""

import shutil
import subprocess
from collections import Counter
from functools import cache

import pytest

from lib.log import lines_for, parse_log
from lib.programs import LOG, LONG, NO_GPU, PLAIN, ROOT, SHIM, TEST_GPU, TESTS, start

SCRIPT = ROOT / "tests/fixtures/knn/neighbours.R"
ON_GPU = {**TEST_GPU, **LOG}
VERIFY = {"ACCEL_VERIFY": "all", "ACCEL_VERIFY_ACTION": "cpu"}
NAMES = "VR_knn", "get_KNNX_brute", "get_KNN_brute"
# Of each case, the calls that go to the GPU.
CALLS = {"iris": 4, "ties": 24, "twins": 2, "cv": 2, "wide": 1, "one": 1, "all": 1, "knnx": 3, "equal": 2, "self": 4,
         "vote": 1, "few": 3, "many": 2,
         "far": 1, "seed": 1, "broken": 1, "leaves": 0, "generator": 1}


def neighbours(*cases, env=PLAIN):
    done = start("/usr/bin/Rscript", "--vanilla", SCRIPT, *cases, env=env)
    assert done.returncode == 0, done.stderr[:3000]
    return done


@cache
def plain(*cases):
    """What the packages themselves compute, random numbers too."""
    return neighbours(*cases).stdout


def same(*cases, env):
    """The same, to the last bit, with libaccel."""
    done = neighbours(*cases, env=env)
    assert done.stdout == plain(*cases)
    return done


def test_the_packages_themselves():
    assert {line.split()[0] for line in plain().splitlines()} == {*CALLS, "infinite", "crowd"}


@pytest.mark.parametrize("env", [pytest.param(NO_GPU, id="no GPU"), *([
    pytest.param({**SHIM, "ACCEL": "0"}, id="ACCEL=0"), pytest.param({**TEST_GPU, "ACCEL_POLICY": "cpu"},
                                                                     id="ACCEL_POLICY=cpu")] if LONG else [])])
def test_the_same_without_a_gpu(env):
    same(env=env)


@pytest.fixture(scope="module")
def on_gpu():
    return same(env={**ON_GPU, **VERIFY})


def test_their_calls_run_on_the_gpu_and_are_verified(on_gpu):
    lines = lines_for(on_gpu, ran="gpu0", why="forced")
    assert len(lines) == sum(CALLS.values())
    assert {line["verify"] for line in lines} == {"0"}


def test_infinite_numbers_and_too_many_ties_are_the_packages_own(on_gpu):
    assert Counter((line["sym"], line["why"]) for line in lines_for(on_gpu, ran="cpu")) == {("VR_knn",
                                                                                             "unsupported"): 3,
                                                                                            ("get_KNNX_brute",
                                                                                             "unsupported"): 2}


@pytest.mark.parametrize("sym, sizes", [("VR_knn", (257, 43, 40, 9)), ("get_KNNX_brute", (250, 50, 40, 100)),
                                        ("get_KNN_brute", (400, 400, 3, 5))])
def test_sizes_in_the_log(sym, sizes, on_gpu):
    assert len(lines_for(on_gpu, sym=sym, ran="gpu0", **dict(zip(("train", "test", "features", "k"),
                                                                 map(str, sizes))))) == 1


@pytest.mark.parametrize("case", ["one", "knnx"])
def test_the_blas_threads_are_not_counted(case):
    """R is linked to a BLAS with threads; class and FNN compute with one."""
    one, two = (parse_log(neighbours(case, env={**ON_GPU, "ACCEL_POLICY": "auto",
                                                "OPENBLAS_NUM_THREADS": threads}).stderr)[0] for threads in ("1", "2"))
    assert one["est_cpu_ms"] == two["est_cpu_ms"]


# ---- Memory, failures, wrong results ----


def test_blocks_in_little_memory():
    done = same("many", env={**ON_GPU, "ACCEL_MEMORY": "1M", "ACCEL_LOG": "2"})
    assert len(lines_for(done, ran="gpu0")) == 2
    assert done.stderr.count("event=d2h") > 4


def test_without_memory_the_packages_own():
    assert len(lines_for(same("many", env={**ON_GPU, "TESTGPU_FAIL": "cuMemAlloc:1+"}), ran="cpu",
                         why="no_memory")) == 2


@pytest.mark.parametrize("function", ["cuMemcpyHtoDAsync", "cuLaunchKernel", "cuMemcpyDtoHAsync"])
def test_a_call_that_fails_from_its_second_use_on_the_packages_own(function):
    assert lines_for(same("few", env={**ON_GPU, "TESTGPU_FAIL": f"{function}:2+"}), ran="cpu", why="error")


@pytest.mark.parametrize("place, sym", enumerate(NAMES, 1))
def test_a_wrong_distance_is_seen_and_the_package_computes_anew(place, sym):
    """That of the first query to the first point."""
    assert lines_for(same("few", env={**ON_GPU, **VERIFY, "TESTGPU_WRONG": f"distances:{place}"}), sym=sym, ran="cpu",
                     why="verify_failed")


# ---- Where it pays, by the estimates without a calibration of a function's first call ----


@pytest.mark.parametrize("case, calls, pays", [("iris", 1, False), ("large", 2, True)])
def test_where_it_pays(case, calls, pays):
    lines = parse_log(neighbours(case, env={**NO_GPU, **LOG}).stderr)[:calls]
    assert len(lines) == calls
    for line in lines:
        gpu, cpu = float(line["est_gpu_ms"]), float(line["est_cpu_ms"])
        assert gpu < 0.5 * cpu if pays else gpu > 2 * cpu


def test_a_small_call_is_the_packages_own():
    line = parse_log(neighbours("iris", env={**ON_GPU, "ACCEL_POLICY": "auto"}).stderr)[0]
    assert (line["ran"], line["why"]) == ("cpu", "slower")


# ---- Other libraries ----

# A namesake, called through a table as R calls the packages.
CALL = """
import ctypes, sys
table = (ctypes.c_void_p * 3).in_dll(ctypes.CDLL(sys.argv[1]), "table")
for at in table:
    function = ctypes.CFUNCTYPE(ctypes.c_long, *[ctypes.c_long] * 8, ctypes.c_double)(at)
    print(function(1, 2, 3, 4, 5, 6, 7, 8, 9.5), flush=True)
"""


@pytest.mark.parametrize("env", [pytest.param(PLAIN, id="plain"), pytest.param(ON_GPU, id="on the GPU"),
                                 pytest.param({**NO_GPU, **LOG}, id="no GPU")])
def test_namesakes_get_registers_and_stack_as_they_were(env):
    done = start("/usr/bin/python3", "-B", "-c", CALL, TESTS / "libnamesake_knn.so", env=env)
    assert done.stdout == "".join(f"{each} 1 2 3 4 5 6 7 8 9.5\n42\n" for each in NAMES)
    assert [(line["sym"], line["why"]) for line in parse_log(done.stderr)] == [(each, "unsupported") for each in NAMES
                                                                               if env]


# Another package of the same process has a function of that name: R calls both from one place.
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


@pytest.mark.parametrize("order", ["before", "after"])
def test_another_librarys_vr_knn_that_is_loaded(order):
    """Each gets its own calls, whichever was loaded first."""
    own, done, bits = (both(TESTS / "libregistered.so", order, env) for env in (PLAIN, ON_GPU, NO_GPU))
    assert "42" in own.stdout
    assert done.returncode == bits.returncode == 0
    assert done.stdout == own.stdout
    assert bits.stdout == own.stdout
    assert Counter((line["sym"], line["ran"]) for line in parse_log(done.stderr)) == {("VR_knn", "gpu0"): 1
                                                                                      if order == "before" else 2}


CLOSED = """
import ctypes, sys
ours = ctypes.CDLL(None).R_registerRoutines if sys.argv[1] else None
for path in sys.argv[2:]:
    library = ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
    print((ours or library.R_registerRoutines)(None, None, None, None, None))
    ctypes.CDLL(None).dlclose(ctypes.c_void_p(library._handle))
"""


@pytest.mark.parametrize("env", [pytest.param(PLAIN, id="plain"), pytest.param(ON_GPU, id="on the GPU")])
def test_an_r_that_the_program_closes_and_another_one_that_it_opens_then(env, tmp_path):
    libraries = [tmp_path / f"lib{number}.so" for number in (41, 42)]
    for number, library in zip((41, 42), libraries):
        source = f"char room[{number} << 20] = {{1}}; int R_registerRoutines(void) {{ return {number}; }}\n"
        subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", library], input=source, text=True, check=True)
    done = start("/usr/bin/python3", "-B", "-c", CLOSED, "ours" if env else "", *libraries, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "41\n42\n"


def test_a_registration_without_any_r_says_that_nothing_was_done():
    program = "import ctypes; print(ctypes.CDLL(None).R_registerRoutines(None, None, None, None, None))"
    done = start("/usr/bin/python3", "-B", "-c", program, env=ON_GPU)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "0\n"


@pytest.mark.parametrize("name, description, answer", [
    pytest.param("", "class\nVersion: 7.3-99", "1", id="class 7.3"),
    pytest.param("_fused", "class\nVersion: 7.3-99", "42", id="fused sums"),
    pytest.param("", "class\nVersion: 7.4-1", "42", id="class 7.4"),
    pytest.param("", "class\nVersion: 7.30", "42", id="class 7.30"),
    pytest.param("", "classes\nVersion: 7.3-99", "42", id="another package"),
    pytest.param("", None, "42", id="no description")])
def test_what_makes_a_library_known(name, description, answer, tmp_path):
    """It answers 42, and the GPU the class of the nearest point."""
    library = tmp_path / "class/libs/class.so"
    library.parent.mkdir(parents=True)
    shutil.copy(TESTS / f"libregistered{name}.so", library)
    if description:
        (tmp_path / "class/DESCRIPTION").write_text(f"Package: {description}\n")
    done = both(library, "alone", ON_GPU)
    assert done.stdout == f"[1] {answer}\n"
    assert len(lines_for(done, ran="gpu0")) == (answer == "1")
