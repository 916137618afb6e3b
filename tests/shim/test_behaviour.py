#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""What must stay as it is: fork, dlsym and dlerror, bad arguments and their messages, a program's own CUDA."""

import re
import subprocess

import pytest

from lib.log import lines_for, outcomes, parse_log
from lib.programs import BUILD, LOG, LONG, NO_GPU, RUNTIME, SHIM, TESTS, TEST_GPU, start

# ---- fork ----

PLACES = {"no GPU": NO_GPU, "test GPU": TEST_GPU}
# CUDA does not survive a fork: the child of a process that has used it computes on the CPU. Before
# that, two processes know nothing of each other's CUDA.
OF_CHILDREN = {"before": ("gpu0", "forced"), "after": ("cpu", "forked")}


@pytest.mark.parametrize("when", OF_CHILDREN)
@pytest.mark.parametrize("mode", PLACES)
def test_fork_around_the_first_use(when, mode):
    done = start("forks", when, env={**PLACES[mode], **LOG})
    results = [line.split() for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr
    assert {result[2] for result in results} == {"125000"}
    if mode == "test GPU":
        children = {result[1] for result in results if result[0] == "child"}
        lines = parse_log(done.stderr)
        assert set(outcomes(line for line in lines if line["pid"] not in children)) == {("gpu0", "forced")}
        assert set(outcomes(line for line in lines if line["pid"] in children)) == {OF_CHILDREN[when]}


def test_child_of_a_fork_calls_no_cuda_function():
    """The test GPU counts that as a fault."""
    done = start("forks", "after", env={**TEST_GPU, "TESTGPU_REPORT": "/dev/stderr"})
    assert "testgpu" in done.stderr
    assert "fault what=forked" not in done.stderr


# ---- Options of AddressSanitizer's runtime: those of a library of the program's stay ----

ASKS = """
import ctypes
ask = ctypes.CDLL(None).__asan_default_options
ask.restype = ctypes.c_char_p
print(ask().decode())
"""
OURS = "verify_asan_link_order=0"


@pytest.mark.skipif(bool(RUNTIME), reason="a sanitizer's runtime, which comes first, has such a function itself")
@pytest.mark.parametrize("options, expected", ((None, OURS), ("", OURS), ("exitcode=42", OURS + ":exitcode=42"),
                                               (200 * "exitcode=42:", 200 * "exitcode=42:")),
                         ids=("none", "empty", "some", "more than there is room for"))
def test_options_of_a_library_for_address_sanitizer(options, expected, tmp_path):
    preload = SHIM["LD_PRELOAD"]
    if options is not None:
        preload += f":{tmp_path}/libbehind.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", tmp_path / "libbehind.so"], text=True,
                       check=True, input=f'const char *__asan_default_options(void) {{ return "{options}"; }}')
    done = start("/usr/bin/python3", "-c", ASKS, env={**NO_GPU, "LD_PRELOAD": preload})
    assert (done.returncode, done.stdout) == (0, expected + "\n"), done.stderr[-300:]


# ---- dlsym ----

ASKER = TESTS / "libasker.so"


@pytest.fixture(scope="module")
def lookups():
    """What the program prints of its look-ups without libaccel."""
    done = start("lookups", ASKER)
    assert done.returncode == 0
    assert done.stdout.count("7 10 15 22") == 4
    assert f"{ASKER}: undefined symbol: dgesv_)" in done.stdout
    assert f"none ({TESTS}/lookups: undefined symbol: dgemm_)" in done.stdout
    return done.stdout


@pytest.mark.parametrize("env", (NO_GPU, {**SHIM, "ACCEL": "0"}, TEST_GPU, {**NO_GPU, **LOG}),
                         ids=("no GPU", "ACCEL=0", "test GPU", "logged"))
def test_lookups_answer_the_same_and_dlerror_names_the_same_object(env, lookups):
    done = start("lookups", ASKER, env=env)
    assert (done.returncode, done.stdout) == (0, lookups)


def test_function_found_by_dlsym_is_seen(lookups):
    done = start("lookups", ASKER, env={**TEST_GPU, **LOG})
    assert len(lines_for(done, sym="dgemm_", ran="gpu0", m="2")) == lookups.count("7 10 15 22")


# ---- Bad arguments: the original's own message, also where its handler leaves by longjmp ----

WRONG = {"bad_arguments": 15, "bad_arguments_longjmp": 10}  # calls


@pytest.mark.parametrize("env", (NO_GPU, {**NO_GPU, **LOG}, TEST_GPU, {**TEST_GPU, **LOG}),
                         ids=("no GPU", "no GPU, logged", "test GPU", "test GPU, logged"))
@pytest.mark.parametrize("program", WRONG)
def test_bad_arguments_get_the_originals_messages_and_results(program, env):
    native, done = start(program), start(program, env=env)
    own = "".join(line + "\n" for line in done.stderr.splitlines() if not line.startswith(("accel ", "accel: ")))
    assert native.returncode == 0
    assert native.stdout
    assert (done.stdout, own, done.returncode) == (native.stdout, native.stderr, native.returncode)


@pytest.mark.parametrize("program", WRONG)
def test_bad_arguments_are_logged_and_the_right_call_still_runs_on_the_gpu(program):
    """After ten longjmps out of the original, it is still seen."""
    done = start(program, env={**TEST_GPU, **LOG})
    assert len(lines_for(done, ran="cpu", why="bad_argument")) == WRONG[program]
    assert len(lines_for(done, ran="gpu0")) == 1


# ---- A program that uses CUDA itself: host, device and managed operands mixed; its state; a
# capture ----

SETTINGS = {
    "auto": {"ACCEL_POLICY": "auto"}, "gpu": {}, "delays": {"TESTGPU_DELAY_US": "1000"},
    "tiles": {"ACCEL_MEMORY": "100K"}, "silent": {"ACCEL_LOG": "0", "ACCEL_POLICY": "auto"},
}


def cuda_program(env):
    return start("cuda_program", "-c", 1, env=env)


@pytest.fixture(scope="module", params=SETTINGS)
def with_cuda(request):
    return cuda_program({**TEST_GPU, **LOG, "TESTGPU_REPORT": "/dev/stderr", **SETTINGS[request.param]})


def test_program_with_cuda_of_its_own_is_right(with_cuda):
    assert with_cuda.returncode == 0, with_cuda.stdout + with_cuda.stderr[-800:]


@pytest.mark.parametrize("what", ("context kept", "mode kept", "capture kept"))
def test_its_context_its_capture_mode_and_another_threads_capture_survive(with_cuda, what):
    assert what in with_cuda.stdout


def test_cuda_is_not_misused(with_cuda):
    assert "testgpu faults n=0" in with_cuda.stderr, [
        line for line in with_cuda.stderr.splitlines() if "fault" in line
    ][:5]


def test_calls_on_device_memory_go_where_it_is_and_use_it_in_place():
    done = cuda_program({**TEST_GPU, "ACCEL_POLICY": "auto", "ACCEL_LOG": "2"})
    assert lines_for(done, why="device_data")
    assert re.search(r"event=in_place operand=[abc]", done.stderr)


def test_cublas_fails_with_device_operands():
    """The GPU fails under a program that keeps its operands there: copies for the CPU where that is still
    possible."""
    recovered = stopped = 0
    for function in "cublasDgemm", "cublasZgemm":
        # Which routines the program's BLAS has says which calls are whose: what fails for good
        # meets all that follow.
        for n in (*(range(1, 16) if LONG else (6, 15)), "15+"):
            done = cuda_program({**TEST_GPU, "TESTGPU_FAIL": f"{function}:{n}", **LOG})
            ended = "cannot be made right" in done.stderr
            assert (done.returncode == 0
                    or ended), f"{function} {n}: {done.returncode} {done.stdout} {done.stderr[-300:]}"
            recovered += done.returncode == 0
            stopped += done.returncode != 0
    assert recovered
    assert stopped


def test_library_that_the_program_has_loaded_is_the_one_that_is_used():
    """CUDA on the linker's path is found."""
    done = cuda_program({**SHIM, **LOG, "ACCEL_POLICY": "gpu", "LD_LIBRARY_PATH": str(BUILD / "testgpu")})
    assert done.returncode == 0, done.stderr[-500:]
    assert lines_for(done, ran="gpu0")


def test_first_calls_of_four_threads_at_once_without_a_gpu():
    """They come while one of them finds that there is none."""
    for _ in range(100 if LONG else 30):
        assert start("steps", "threads:4:200:2", env={**NO_GPU, **LOG, "OPENBLAS_NUM_THREADS": "1"}).returncode == 0
