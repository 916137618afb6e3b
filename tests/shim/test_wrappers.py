#!/usr/bin/python3 -B
"""Profilers and tools that wrap a process, or BLAS and LAPACK, by each of their ways: before
libaccel and behind it, they see what docs/hpc.md says."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from lib.log import lines_for
from lib.programs import DEBIAN_PYTHON, LOG, NO_GPU, ROOT, SHIM, TEST_GPU, TESTS, start
from lib.tap import Tap

tap = Tap()
folder = tempfile.TemporaryDirectory(prefix="accel-wrappers-")
SOURCES = ROOT / "tests/fixtures/wrappers"
MODES = {
    "ACCEL=0": {**SHIM, "ACCEL": "0"},
    "no GPU": {**NO_GPU, **LOG},
    "test GPU": {**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0"},
}
BLAS = ["-Wl,--no-as-needed", "-l:liblapack.so.3", "-l:libblas.so.3", "-lpthread", "-ldl"]
WRAPPED = "dgemm_", "dgesv_"


def build(name, *words):
    path = Path(folder.name, name)
    command = [
        "gcc",
        "-std=gnu11",
        "-O1",
        "-fPIC",
        *words,
        "-o",
        path,
        *(BLAS if not name.startswith("lib") else ["-shared", "-ldl"]),
    ]
    done = subprocess.run(
        [str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    tap.ok(done.returncode == 0, f"{name} is built", done.stdout[-500:])
    return str(path)


def run(program, *words, env, before=(), behind=()):
    """The finished process, and the lines of the wrappers."""
    with tempfile.TemporaryFile() as seen:
        preload = ":".join(filter(None, [*before, env.get("LD_PRELOAD"), *behind]))
        done = start(
            program,
            *words,
            env={**env, "LD_PRELOAD": preload, "TEST_WRAPPER": str(seen.fileno())},
            pass_fds=[seen.fileno()],
        )
        seen.seek(0)
        return done, seen.read().decode().splitlines()


def same(name, done, native):
    own = [line for line in done.stderr.splitlines() if not line.startswith("accel ")]
    return tap.ok(
        (done.returncode, done.stdout, own)
        == (native.returncode, native.stdout, native.stderr.splitlines()),
        f"{name}: the same",
        done.returncode,
        done.stdout,
        done.stderr[-500:],
        "---",
        native.returncode,
        native.stdout,
    )


def places(library):
    return (("before libaccel", {"before": [library]}), ("behind libaccel", {"behind": [library]}))


def on_gpu(done):
    return {
        sym: len([line for line in lines_for(done, sym=sym) if line["ran"] != "cpu"])
        for sym in WRAPPED
    }


program = build("program", SOURCES / "program.c")

# ---- A process: main, exit, _exit, fork ----

process = build("libprocess.so", SOURCES / "process.c")
for way, status in {
    "return": 9,
    "exit": 5,
    "_exit": 6,
    "_Exit": 7,
    "quick_exit": 8,
    "thread": 0,
    "exec": 5,
    "kill": -15,
}.items():
    native, wanted = run(program, way, env={}, before=[process])
    tap.ok(
        native.returncode == status and "WRONG" not in native.stdout and "main begins" in wanted,
        f"{way}: right without libaccel",
        native.stdout,
        native.stderr,
    )
    for mode, env in MODES.items():
        if way == "thread" and mode == "test GPU":
            tap.skip(
                f"{way}, {mode}",
                "threads of the driver stay, by which the process does (docs/limits.md)",
            )
            continue
        for place, preloads in places(process):
            done, seen = run(program, way, env=env, **preloads)
            if same(f"a wrapper of main {place}, {way}, {mode}", done, native):
                tap.ok(
                    seen == wanted,
                    f"a wrapper of main {place}, {way}, {mode}: it sees the same",
                    seen,
                    wanted,
                )

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
for number, (kind, flags) in enumerate(KINDS.items()):
    library = build(f"libcalls{number}.so", SOURCES / "calls.c", *flags)
    preloads = (
        [library] if kind != "two of them" else [library, build("libother.so", SOURCES / "calls.c")]
    )
    native, wanted = run(program, env={}, before=preloads)
    count = {sym: wanted.count(sym) for sym in WRAPPED}
    tap.ok(
        native.returncode == 9
        and "WRONG" not in native.stdout
        and count == {"dgemm_": 9 * len(preloads), "dgesv_": len(preloads)},
        f"a wrapper, {kind}: right without libaccel",
        count,
        native.stdout,
    )
    for mode, env in MODES.items():
        name = f"a wrapper {{}}, {kind}, {mode}"
        done, seen = run(program, env=env, before=preloads)
        if same(name.format("before libaccel"), done, native):
            tap.ok(seen == wanted, name.format("before libaccel") + ": it sees all calls", seen)
        done, seen = run(program, env=env, behind=preloads)
        if same(name.format("behind libaccel"), done, native):
            gpu = on_gpu(done)
            tap.ok(
                {sym: seen.count(sym) for sym in WRAPPED}
                == {sym: count[sym] - len(preloads) * gpu[sym] for sym in WRAPPED},
                name.format("behind libaccel") + ": it sees those of the CPU",
                seen,
                gpu,
            )
            tap.ok(
                gpu
                == (
                    {"dgemm_": 5, "dgesv_": 1} if mode == "test GPU" else dict.fromkeys(WRAPPED, 0)
                ),
                name.format("behind libaccel") + ": the others are on the GPU",
                gpu,
                done.stderr[-600:],
            )

# Its code tells that its arguments are others: its calls are passed on to it.
for kind, flags in {"few": [], "many": ["-DWHOLE"]}.items():
    wide = build(f"libwide_{kind}.so", SOURCES / "calls.c", "-DREADS=int64_t", *flags)
    native, wanted = run(program, env={}, before=[wide])
    done, seen = run(program, env=MODES["test GPU"], behind=[wide])
    if same(f"a wrapper of {kind} functions with other integers", done, native):
        tap.ok(
            seen.count("dgemm_") == wanted.count("dgemm_") == 9 and on_gpu(done)["dgemm_"] == 0,
            f"{kind} functions with other integers: each call is its own",
            seen,
        )

wide = build("libelements.so", SOURCES / "calls.c", "-DREADS=int32_t", "-DELEMENT=float")
native, wanted = run(program, env={}, before=[wide])
done, seen = run(program, env=MODES["test GPU"], behind=[wide])
if same("a wrapper with other elements", done, native):
    tap.ok(
        seen.count("dgemm_") == wanted.count("dgemm_") == 9 and on_gpu(done)["dgemm_"] == 0,
        "other elements: each call is its own",
        seen,
    )

# A wrapper asks for the next one, which is libaccel's, not that of a BLAS that another preload
# between the two is linked to.
wrapper = build("libnext.so", SOURCES / "calls.c")
linked = build("libbetween.so", SOURCES / "process.c", *BLAS)
native, wanted = run(program, env={}, before=[wrapper, linked])
done, seen = run(program, env=MODES["test GPU"], before=[wrapper, linked])
if same("a wrapper, and a preload that is linked to BLAS, before libaccel", done, native):
    tap.ok(seen == wanted, "and a preload that is linked to BLAS: they see all calls", seen)
    tap.ok(
        on_gpu(done) == {"dgemm_": 5, "dgesv_": 1},
        "and a preload that is linked to BLAS: they reach libaccel",
        on_gpu(done),
    )

# A program asks the wrapper for its function: it gets that, and not what is behind it.
opens = build("libopens.so", SOURCES / "calls.c", '-DOPENS="liblapack.so.3"')
ASKS = f"""
import ctypes
n, one, matrix = ctypes.c_int32(3), ctypes.c_double(1), ctypes.c_double * 9
for i in range(2):
    a, c = matrix(*[1] * 9), matrix()
    ctypes.CDLL({opens!r})["dgemm_"](b"N", b"N", *[ctypes.byref(x) for x in (n, n, n, one)], a,
                                     ctypes.byref(n), a, *[ctypes.byref(x) for x in (n, one)], c,
                                     ctypes.byref(n), ctypes.c_size_t(1), ctypes.c_size_t(1))
    print(list(c))
"""
for place, preloads in places(opens):
    native, wanted = run(DEBIAN_PYTHON, "-c", ASKS, env={}, before=[opens])
    tap.ok(
        (native.stdout, wanted) == (f"{[3.0] * 9}\n" * 2, ["dgemm_"] * 2),
        f"a wrapper that is asked itself, {place}: right without libaccel",
        native.stdout,
        native.stderr,
    )
    for mode, env in MODES.items():
        done, seen = run(DEBIAN_PYTHON, "-c", ASKS, env=env, **preloads)
        if same(f"a wrapper that is asked itself, {place}, {mode}", done, native):
            tap.ok(
                seen == wanted,
                f"a wrapper that is asked itself, {place}, {mode}: it sees each call",
                seen,
            )

# Calls before libaccel's constructor, of a library's, go the same way.
early = build("libstart.so", SOURCES / "calls.c")
native, wanted = run("start_up", "early", env={}, before=[early])
tap.ok(
    native.returncode == 0 and wanted.count("dgemm_") == 2,
    "calls of a constructor: right without libaccel",
    native.stdout,
    wanted,
)
for mode, env in MODES.items():
    done, seen = run("start_up", "early", env=env, behind=[early])
    if same(f"calls of a constructor, {mode}", done, native):
        tap.ok(
            seen.count("dgemm_") == 2 - on_gpu(done)["dgemm_"],
            f"calls of a constructor, {mode}: the wrapper sees those of the CPU",
            seen,
            on_gpu(done),
        )

# One that finds libaccel's function where there was none without libaccel: what it passes on comes
# to a BLAS that is not in the global scope, and not back to itself.
falls_back = build(
    "libfalls_back.so", SOURCES / "calls.c", "-DVERSIONED", '-DFALLS_BACK="liblapack.so.3"'
)
for case in "local", "pointer", "tail":
    native, wanted = run("scopes", case, TESTS, env={}, before=[falls_back])
    tap.ok(
        native.returncode == 0 and set(wanted) == {"dgemm_"},
        f"a wrapper without a next function, {case}: right without libaccel",
        native.stdout,
        native.stderr,
    )
    for mode, env in MODES.items():
        done, seen = run("scopes", case, TESTS, env=env, before=[falls_back])
        if same(f"a wrapper without a next function, {case}, {mode}", done, native):
            tap.ok(
                seen == wanted,
                f"a wrapper without a next function, {case}, {mode}: it sees each call once",
                len(seen),
                len(wanted),
            )

# A library of the program's own is not taken for a wrapper, whatever it imports.
linked = build("liblinked.so", SOURCES / "calls.c", "-Wl,-soname,liblinked.so")
beside = build(
    "beside", SOURCES / "program.c", "-Wl,--no-as-needed", linked, f"-Wl,-rpath,{folder.name}"
)
native, wanted = run(beside, env={})
done, seen = run(beside, env=MODES["test GPU"])
if same("a library that the program is linked to", done, native):
    tap.ok(
        seen == wanted and on_gpu(done) == dict.fromkeys(WRAPPED, 0),
        "a library that the program is linked to: each call is its own",
        seen,
    )

# The CPU library whose speed counts is the one behind the wrapper.
done, _ = run(
    program,
    env={**MODES["test GPU"], "ACCEL_LOG": "0", "ACCEL_SUMMARY": "1"},
    behind=[build("libspeed.so", SOURCES / "calls.c")],
)
cpu = [line for line in done.stderr.splitlines() if line.startswith("accel: CPU ")]
tap.ok(
    any("/libblas.so.3, 2 threads" in line for line in cpu),
    "the summary names the library behind the wrapper",
    *done.stderr.splitlines(),
)

# ---- --wrap, and the executable's table of addresses (GOTCHA) ----

WAYS = {
    "--wrap": (
        build(
            "wrapped",
            SOURCES / "program.c",
            SOURCES / "calls.c",
            "-DLINKED",
            "-Wl,--wrap=dgemm_,--wrap=dgesv_",
        ),
        [],
    ),
    "patched": (program, [build("libpatches.so", SOURCES / "calls.c", "-DPATCHES")]),
}
for way, (path, library) in WAYS.items():
    native, wanted = run(path, env={}, before=library)
    tap.ok(
        native.returncode == 9 and "WRONG" not in native.stdout and wanted.count("dgemm_") == 8,
        f"{way}: right without libaccel",
        wanted,
        native.stdout,
    )
    for mode, env in MODES.items():
        for place, preloads in places(*library) if library else (("in the program", {}),):
            done, seen = run(path, env=env, **preloads)
            if same(f"{way}, {place}, {mode}", done, native):
                tap.ok(seen == wanted, f"{way}, {place}, {mode}: it sees all calls", seen)
                tap.ok(
                    mode != "test GPU" or on_gpu(done) == {"dgemm_": 5, "dgesv_": 1},
                    f"{way}, {place}, {mode}: they reach libaccel",
                    on_gpu(done),
                    done.stderr[-600:],
                )

# ---- Debuggers, tracers and their agents in the process ----

AGENTS = {"gdb's agent": "/usr/lib/libinproctrace.so", "rr's agent": "/usr/lib/rr/librrpreload.so"}
native, _ = run(program, "exit", env={})
for name, agent in AGENTS.items():
    if not os.path.exists(agent):
        tap.skip(name, f"no {agent} here")
        continue
    for place, preloads in places(agent):
        # gdb's listens at a socket that is named after the process.
        done, _ = run(program, "exit", env={**MODES["test GPU"], "TMPDIR": folder.name}, **preloads)
        if same(f"{name} {place}", done, native):
            tap.ok(
                on_gpu(done) == {"dgemm_": 5, "dgesv_": 1},
                f"{name} {place}: calls reach libaccel",
                on_gpu(done),
            )

lazy = build("lazy", SOURCES / "program.c", "-no-pie", "-Wl,-z,lazy")
out = Path(folder.name, "out")
TOOLS = {
    "gdb": [
        "-batch",
        "-iex",
        "set debuginfod enabled off",
        "-ex",
        "set startup-with-shell off",
        "-ex",
        "break main",
        "-ex",
        "run",
        "-ex",
        "break dgesv_",
        "-ex",
        "continue",
        "-ex",
        "delete",
        "-ex",
        "continue",
        "--args",
        lazy,
    ],
    "ltrace": ["-f", "-e", "dgesv_", "-o", out, lazy],
    "perf": ["record", "-q", "-o", out, lazy],
    "strace": ["-f", "-o", out, lazy],
}
for tool, words in TOOLS.items():
    path = shutil.which(tool)
    plain, _ = run(path, *words, env={}) if path else (None, None)
    if not path or plain.stdout.count(": right") != 10:
        tap.skip(tool, f"{tool} cannot trace a program here" if path else f"no {tool} here")
        continue
    # The tool itself calls no BLAS.
    done, _ = run(path, *words, env=MODES["test GPU"])
    results = [
        [
            line
            for line in run_.stdout.splitlines()
            if line.endswith((": right", ": WRONG")) or " ended by " in line
        ]
        for run_ in (plain, done)
    ]
    tap.ok(
        done.returncode == plain.returncode and results[0] == results[1],
        f"{tool}: the same",
        done.returncode,
        done.stdout[-800:],
        done.stderr[-500:],
    )
    tap.ok(
        on_gpu(done) == {"dgemm_": 5, "dgesv_": 1},
        f"{tool}: calls reach libaccel",
        on_gpu(done),
        done.stderr[-500:],
    )

tap.done()
