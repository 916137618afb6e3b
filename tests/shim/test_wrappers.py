#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Profilers and tools that wrap a process, or BLAS and LAPACK, by each of their ways: before libaccel and behind it,
they see what docs/hpc.md says."""

import os
import shutil
import subprocess
import tempfile

import pytest

from lib.log import lines_for
from lib.programs import DEBIAN_PYTHON, LOG, NO_GPU, ROOT, SHIM, TEST_GPU, TESTS, start

SOURCES = ROOT / "tests/fixtures/wrappers"
CALLS, PROCESS, PROGRAM = (SOURCES / f"{name}.c" for name in ("calls", "process", "program"))
MODES = {
    "ACCEL=0": {**SHIM, "ACCEL": "0"}, "no GPU": {**NO_GPU, **LOG},
    "test GPU": {**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0"}
}
ON_GPU = MODES["test GPU"]
BLAS = ["-Wl,--no-as-needed", "-l:liblapack.so.3", "-l:libblas.so.3", "-lpthread", "-ldl"]
# The program's calls that libaccel puts on the GPU; where a wrapper stands.
MOVED, NONE = {"dgemm_": 5, "dgesv_": 1}, {"dgemm_": 0, "dgesv_": 0}
PLACES = {"before libaccel": "before", "behind libaccel": "behind"}

of_each_mode = pytest.mark.parametrize("mode", MODES)
at_each_place = pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """build(name, word...): the path of a program, or of a library if its name begins with lib."""
    folder = tmp_path_factory.mktemp("wrappers")

    def build(name, *words):
        links = ["-shared", "-ldl"] if name.startswith("lib") else BLAS
        command = ["gcc", "-std=gnu11", "-O1", "-fPIC", *words, "-o", folder / name, *links]
        done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
        assert done.returncode == 0, done.stdout[-500:]
        return str(folder / name)

    return build


@pytest.fixture(scope="module")
def program(build):
    return build("program", PROGRAM)


def run(program, *words, env={}, before=(), behind=()):
    """The finished process, and the lines of the wrappers."""
    with tempfile.TemporaryFile() as seen:
        preload = ":".join(filter(None, [*before, env.get("LD_PRELOAD"), *behind]))
        done = start(program, *words, env={**env, "LD_PRELOAD": preload, "TEST_WRAPPER": str(seen.fileno())},
                     pass_fds=[seen.fileno()])
        seen.seek(0)
        return done, seen.read().decode().splitlines()


def check_same(done, native):
    own = [line for line in done.stderr.splitlines() if not line.startswith("accel ")]
    assert (done.returncode, done.stdout, own) == (native.returncode, native.stdout, native.stderr.splitlines())


def count(seen):
    return {sym: seen.count(sym) for sym in MOVED}


def on_gpu(done):
    return {sym: sum(line["ran"] != "cpu" for line in lines_for(done, sym=sym)) for sym in MOVED}


# ---- A process: main, exit, _exit, fork ----

WAYS = {"return": 9, "exit": 5, "_exit": 6, "_Exit": 7, "quick_exit": 8, "thread": 0, "exec": 5, "kill": -15}


@pytest.fixture(scope="module", params=WAYS)
def ended(request, build, program):
    """A way to end, a wrapper of main, and a run without libaccel."""
    process = build("libprocess.so", PROCESS)
    native, wanted = run(program, request.param, before=[process])
    assert native.returncode == WAYS[request.param], native.stderr
    assert "WRONG" not in native.stdout
    assert "main begins" in wanted
    return request.param, process, native, wanted


@at_each_place
@of_each_mode
def test_wrapper_of_main_sees_the_same(ended, mode, place, program):
    way, process, native, wanted = ended
    if way == "thread" and mode == "test GPU":
        pytest.skip("threads of the driver stay, by which the process does (docs/limits.md)")
    done, seen = run(program, way, env=MODES[mode], **{place: [process]})
    check_same(done, native)
    assert seen == wanted


# ---- BLAS and LAPACK: a preload sees all calls before libaccel, those of the CPU behind it ----

KINDS = {
    "RTLD_NEXT": [],
    "its functions found at once": ["-DEARLY"],
    "a library of its own choice": ['-DOPENS="liblapack.so.3"'],
    "it reads sizes": ["-DREADS=int32_t"],
    "dlvsym": ["-DVERSIONED"],
    "many functions": ["-DWHOLE"],
    "many functions, it reads sizes": ["-DWHOLE", "-DREADS=int32_t"],
    "two of them": [],
}


@pytest.fixture(scope="module", params=KINDS)
def wrapper(request, build, program):
    """Wrappers of a kind, and a run without libaccel."""
    preloads = [build("libcalls.so", CALLS, *KINDS[request.param])]
    if request.param == "two of them":
        preloads.append(build("libother.so", CALLS))
    native, wanted = run(program, before=preloads)
    assert native.returncode == 9
    assert "WRONG" not in native.stdout
    assert count(wanted) == {"dgemm_": 9 * len(preloads), "dgesv_": len(preloads)}
    return preloads, native, wanted


@of_each_mode
def test_wrapper_before_libaccel_sees_all_calls(wrapper, mode, program):
    preloads, native, wanted = wrapper
    done, seen = run(program, env=MODES[mode], before=preloads)
    check_same(done, native)
    assert seen == wanted


@of_each_mode
def test_wrapper_behind_libaccel_sees_the_calls_of_the_cpu(wrapper, mode, program):
    preloads, native, wanted = wrapper
    done, seen = run(program, env=MODES[mode], behind=preloads)
    check_same(done, native)
    assert on_gpu(done) == (MOVED if mode == "test GPU" else NONE)
    assert count(seen) == {sym: n - len(preloads) * on_gpu(done)[sym] for sym, n in count(wanted).items()}


@pytest.mark.parametrize("flags",
                         (["-DREADS=int64_t"], ["-DREADS=int64_t", "-DWHOLE"], ["-DREADS=int32_t", "-DELEMENT=float"]),
                         ids=("integers, few functions", "integers, many functions", "elements"))
def test_wrapper_with_other_arguments_has_its_own_calls(flags, build, program):
    """Its code tells that its integers or elements are others: its calls are passed on to it."""
    wide = build("libwide.so", CALLS, *flags)
    native, wanted = run(program, before=[wide])
    done, seen = run(program, env=ON_GPU, behind=[wide])
    check_same(done, native)
    assert seen.count("dgemm_") == wanted.count("dgemm_") == 9
    assert on_gpu(done)["dgemm_"] == 0


def test_wrapper_and_a_preload_that_is_linked_to_blas_before_libaccel(build, program):
    """A wrapper asks for the next one, which is libaccel's, not that of a BLAS that another preload between the two
    is linked to."""
    preloads = [build("libnext.so", CALLS), build("libbetween.so", PROCESS, *BLAS)]
    native, wanted = run(program, before=preloads)
    done, seen = run(program, env=ON_GPU, before=preloads)
    check_same(done, native)
    assert seen == wanted
    assert on_gpu(done) == MOVED


ASKS = """
import ctypes, sys
n, one, matrix = ctypes.c_int32(3), ctypes.c_double(1), ctypes.c_double * 9
for i in range(2):
    a, c = matrix(*[1] * 9), matrix()
    ctypes.CDLL(sys.argv[1])["dgemm_"](b"N", b"N", *[ctypes.byref(x) for x in (n, n, n, one)], a,
                                       ctypes.byref(n), a, *[ctypes.byref(x) for x in (n, one)], c,
                                       ctypes.byref(n), ctypes.c_size_t(1), ctypes.c_size_t(1))
    print(list(c))
"""


@at_each_place
@of_each_mode
def test_wrapper_that_is_asked_itself_sees_each_call(mode, place, build):
    """A program asks the wrapper for its function: it gets that, and not what is behind it."""
    opens = build("libopens.so", CALLS, '-DOPENS="liblapack.so.3"')
    native, wanted = run(DEBIAN_PYTHON, "-c", ASKS, opens, before=[opens])
    done, seen = run(DEBIAN_PYTHON, "-c", ASKS, opens, env=MODES[mode], **{place: [opens]})
    assert (native.stdout, wanted) == (f"{[3.0] * 9}\n" * 2, ["dgemm_"] * 2), native.stderr
    check_same(done, native)
    assert seen == wanted


@of_each_mode
def test_calls_of_a_constructor_go_the_same_way(mode, build):
    """Calls before libaccel's constructor, of a library's."""
    early = build("libstart.so", CALLS)
    native, wanted = run("start_up", "early", before=[early])
    done, seen = run("start_up", "early", env=MODES[mode], behind=[early])
    assert native.returncode == 0
    assert wanted.count("dgemm_") == 2
    check_same(done, native)
    assert seen.count("dgemm_") == 2 - on_gpu(done)["dgemm_"]


@of_each_mode
@pytest.mark.parametrize("case", ("local", "pointer", "tail"))
def test_wrapper_without_a_next_function_sees_each_call_once(case, mode, build):
    """One that finds libaccel's function where there was none without libaccel: what it passes on comes to a BLAS
    that is not in the global scope, and not back to itself."""
    falls_back = build("libfalls_back.so", CALLS, "-DVERSIONED", '-DFALLS_BACK="liblapack.so.3"')
    native, wanted = run("scopes", case, TESTS, before=[falls_back])
    done, seen = run("scopes", case, TESTS, env=MODES[mode], before=[falls_back])
    assert native.returncode == 0, native.stderr
    assert set(wanted) == {"dgemm_"}
    check_same(done, native)
    assert seen == wanted


def test_library_that_the_program_is_linked_to_is_no_wrapper(build):
    """Whatever it imports: each call is its own."""
    linked = build("liblinked.so", CALLS, "-Wl,-soname,liblinked.so")
    beside = build("beside", PROGRAM, "-Wl,--no-as-needed", linked, f"-Wl,-rpath,{os.path.dirname(linked)}")
    native, wanted = run(beside)
    done, seen = run(beside, env=ON_GPU)
    check_same(done, native)
    assert seen == wanted
    assert on_gpu(done) == NONE


def test_cpu_library_whose_speed_counts_is_the_one_behind_the_wrapper(build, program):
    done, _ = run(program, env={**ON_GPU, "ACCEL_LOG": "0", "ACCEL_SUMMARY": "1"}, behind=[build("libspeed.so", CALLS)])
    assert any("/libblas.so.3, 2 threads" in line for line in done.stderr.splitlines()
               if line.startswith("accel: CPU "))


# ---- --wrap, and the executable's table of addresses (GOTCHA) ----


def check_sees_all(program, preloads, mode):
    """A wrapper in the program, or beside libaccel at this place, sees what it sees without libaccel."""
    native, wanted = run(program, before=[path for paths in preloads.values() for path in paths])
    done, seen = run(program, env=MODES[mode], **preloads)
    assert native.returncode == 9
    assert "WRONG" not in native.stdout
    assert wanted.count("dgemm_") == 8
    check_same(done, native)
    assert seen == wanted
    assert mode != "test GPU" or on_gpu(done) == MOVED


@of_each_mode
def test_wrap_of_the_linker_sees_all_calls(mode, build):
    check_sees_all(build("wrapped", PROGRAM, CALLS, "-DLINKED", "-Wl,--wrap=dgemm_,--wrap=dgesv_"), {}, mode)


@at_each_place
@of_each_mode
def test_patched_table_sees_all_calls(mode, place, build, program):
    check_sees_all(program, {place: [build("libpatches.so", CALLS, "-DPATCHES")]}, mode)


# ---- Debuggers, tracers and their agents in the process ----

AGENTS = {"gdb's agent": "/usr/lib/libinproctrace.so", "rr's agent": "/usr/lib/rr/librrpreload.so"}


@at_each_place
@pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS)
def test_agent_in_the_process(agent, place, program, tmp_path):
    if not os.path.exists(agent):
        pytest.skip(f"no {agent} here")
    native, _ = run(program, "exit")
    # gdb's listens at a socket that is named after the process.
    done, _ = run(program, "exit", env={**ON_GPU, "TMPDIR": str(tmp_path)}, **{place: [agent]})
    check_same(done, native)
    assert on_gpu(done) == MOVED


GDB = ["set startup-with-shell off", "break main", "run", "break dgesv_", "continue", "delete", "continue"]
TOOLS = {
    "gdb": [
        "-batch", "-iex", "set debuginfod enabled off", *(word for command in GDB for word in ("-ex", command)),
        "--args"
    ], "ltrace": ["-f", "-e", "dgesv_", "-o", "OUT"], "perf": ["record", "-q", "-o", "OUT"],
    "strace": ["-f", "-o", "OUT"],
}


def results(done):
    return [line for line in done.stdout.splitlines() if line.endswith((": right", ": WRONG")) or " ended by " in line]


@pytest.mark.parametrize("tool", TOOLS)
def test_program_under_a_tool_is_the_same(tool, build, tmp_path):
    path = shutil.which(tool)
    if not path:
        pytest.skip(f"no {tool} here")
    lazy = build("lazy", PROGRAM, "-no-pie", "-Wl,-z,lazy")
    words = [str(tmp_path / "out") if word == "OUT" else word for word in TOOLS[tool]]
    plain, _ = run(path, *words, lazy)
    if plain.stdout.count(": right") != 10:
        pytest.skip(f"{tool} cannot trace a program here")
    # The tool itself calls no BLAS.
    done, _ = run(path, *words, lazy, env=ON_GPU)
    assert (done.returncode, results(done)) == (plain.returncode, results(plain)), done.stderr[-500:]
    assert on_gpu(done) == MOVED
