#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""What libsvm itself must answer gets there as it was: wrong input, namesakes, a device that fails or has no memory,
with rand() where it was. Threads train at once. No memory is lost or misused."""

import re
import signal
from functools import cache

import pytest

from lib.log import lines_for
from lib.programs import LOG, LONG, NO_GPU, PLAIN, ROOT, TEST_GPU, TESTS, start

ON_GPU = {**TEST_GPU, **LOG}


def numbers(done):
    return [float(word) for word in re.findall(r"-?\d+\.\d+", done.stdout)]


def check_near(plain, device):
    assert len(numbers(plain)) == len(numbers(device))
    assert not [(a, b) for a, b in zip(numbers(plain), numbers(device)) if abs(a - b) >= 1e-2 * max(1, abs(a))]


def test_input_that_it_is_not_made_for():
    """Its own answer to the last bit, and a line each."""
    plain, device = start("svm_calls", "bad"), start("svm_calls", "bad", env=ON_GPU)
    count = plain.stdout.count("\n")
    assert plain.returncode == 0
    assert count > 10
    assert device.stdout == plain.stdout
    assert len(lines_for(device, sym="svm_train", ran="cpu", why="unsupported")) == count


# ---- A NULL that stands for data ----

# What libsvm does not look at may be NULL, and is as good as any other call: so many train.
UNREAD = {"regress_null_weights": 1, "regress_null_classes": 3}


@cache
def null_calls():
    """name -> a run without libaccel: libsvm crashes by it, or answers."""
    return {name: start("null_calls", name) for name in start("null_calls").stdout.split()}


def test_calls_of_which_some_crash():
    runs = null_calls().values()
    assert len(runs) == 29
    assert 15 < sum(plain.returncode == -signal.SIGSEGV for plain in runs) < 29
    for plain in runs:
        if plain.returncode == -signal.SIGSEGV:
            assert re.fullmatch(r"crash in libsvm\.so\.3 at \S+\n", plain.stdout), plain
        else:
            assert plain.returncode == 0, plain
            assert plain.stdout.count("\n") == 1, plain


@pytest.mark.parametrize("mode", ["no GPU", "test GPU"])
def test_libsvm_sees_a_null_as_it_is(mode):
    """It crashes by it at the same address, or answers as without libaccel."""
    for name, plain in null_calls().items():
        done = start("null_calls", name, env=ON_GPU if mode == "test GPU" else {**NO_GPU, **LOG})
        assert done.returncode == plain.returncode, name
        # libsvm validates by trainings and predictions, each of which is decided for itself, until
        # it comes to the NULL.
        ran = [line for line in lines_for(done, ran="gpu0") if not name.startswith("validate")
               or line["sym"] == "svm_cross_validation"]
        assert len(ran) == (UNREAD.get(name, 0) if mode == "test GPU" else 0), name
        if ran:
            check_near(plain, done)
        else:
            assert done.stdout == plain.stdout, name


# ---- Threads, rand(), failures ----


def test_four_threads_train_all_types_at_once():
    plain, device = start("svm_calls", "threads"), start("svm_calls", "threads", env=ON_GPU)
    check_near(plain, device)
    assert len(lines_for(device, sym="svm_train", ran="gpu0")) == 20


@pytest.fixture(scope="module")
def plain_rand():
    return start("svm_calls", "rand").stdout


def tail(text):
    return re.findall(r"rand \d+", text)


def test_probabilities_and_folds_draw_the_same_numbers(plain_rand):
    device = start("svm_calls", "rand", env=ON_GPU)
    assert tail(device.stdout) == tail(plain_rand)
    assert len(lines_for(device, ran="gpu0")) == 2
    assert not lines_for(device, ran="cpu")


def test_the_same_to_the_last_bit_without_a_gpu(plain_rand):
    assert start("svm_calls", "rand", env=NO_GPU).stdout == plain_rand


FAULTS = [f"TESTGPU_FAIL={name}:{when}" for name in ("cuLaunchKernel", "cuMemAllocAsync", "async")
          for when in ("1", "3", "9", "30")]
FAULTS += ["TESTGPU_MEMORY=18M", "TESTGPU_FAIL=cuMemcpyDtoHAsync_v2:1+", "TESTGPU_FAIL=*:120+"]


@pytest.mark.parametrize("fault", FAULTS if LONG else FAULTS[:1] + FAULTS[-2:])
def test_a_failure_leaves_libsvms_own_answer_and_rand_where_it_was(fault, plain_rand):
    device = start("svm_calls", "rand", env={**ON_GPU, **dict([fault.split("=", 1)])})
    if lines_for(device, ran="gpu0"):
        assert tail(device.stdout) == tail(plain_rand)
    else:
        assert device.stdout == plain_rand


# ---- Namesakes, memory ----


@pytest.mark.parametrize("env", [pytest.param(ON_GPU, id="test GPU"), pytest.param(NO_GPU, id="no GPU"),
                                 pytest.param(PLAIN, id="plain")])
@pytest.mark.parametrize("version", ["none", "999", "324", "324_plain"])
def test_a_namesake_of_this_libsvm_version_gets_registers_and_stack_as_they_were(version, env, tmp_path):
    (tmp_path / "libsvm.so.3").symlink_to(TESTS / f"libnamesake_{version}.so")
    done = start("svm_calls", "namesake", env={**env, "LD_LIBRARY_PATH": str(tmp_path)})
    assert done.stdout == "80 1 3 4 5 6 7 8.5\n42\n"
    if env is ON_GPU:
        # Lines of the question go nowhere, those of another thread where they should; the print
        # function that was set meanwhile has stayed.
        assert re.findall("tried.*", done.stderr) == (["tried beside", "tried, prints"] if version.startswith("324")
                                                      else [])
        assert len(lines_for(done, sym="svm_train", ran="cpu", why="unsupported")) == 1


# valgrind does not understand the test GPU's threads, which take turns on stacks of their own: of
# calls that it runs, only what is lost counts. glibc's own memory of a thread (allocate_dtv) may
# look lost while that thread ends beside the process.
LOSS = re.compile(r"[\d,]+ (?:\([^)]*\) )?bytes in [\d,]+ blocks are definitely lost.*\n(?:==\d+==    .*\n)+")


@pytest.mark.skipif(not LONG, reason="with TEST_LONG=1")
@pytest.mark.parametrize("what", ["bad", "rand"])
def test_valgrind_has_nothing_to_say_of_libaccel(what):
    sources = "|".join(path.name for path in (ROOT / "ops/svm").glob("*.c"))
    done = start("/usr/bin/valgrind", "--leak-check=full", "--errors-for-leak-kinds=definite", TESTS / "svm_calls",
                 what, env=ON_GPU, timeout=1000)
    assert done.returncode == 0, done.stderr[-3000:]
    losses = LOSS.findall(done.stderr)
    assert not [loss for loss in losses if "allocate_dtv" not in loss]
    # What the summary of losses tells must be in the records that were read.
    told = re.search(r"definitely lost: ([\d,]+) bytes", done.stderr)
    assert told is None or told[1] == "0" or losses
    assert not re.search(rf"\((?:{sources}):\d+\)", LOSS.sub("", done.stderr))
    assert what != "bad" or "ERROR SUMMARY: 0 errors" in done.stderr
