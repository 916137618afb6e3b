#!/usr/bin/python3 -B
"""What must stay as it is: fork, dlsym and dlerror, bad arguments and their messages, a program's own CUDA."""

import re
import subprocess
import tempfile
from pathlib import Path

from lib.log import lines_for, parse_log
from lib.programs import BUILD, LOG, LONG, NO_GPU, RUNTIME, SHIM, TESTS, TEST_GPU, start
from lib.tap import Tap

tap = Tap()

# ---- fork ----

for mode, env in {"no GPU": NO_GPU, "test GPU": TEST_GPU}.items():
    for when in ("before", "after"):
        done = start("forks", when, env={**env, **LOG})
        lines = parse_log(done.stderr)
        results = [line.split() for line in done.stdout.splitlines()]
        tap.ok(done.returncode == 0 and {r[2] for r in results} == {"125000"}, f"fork {when} first use, {mode}: right",
               done.stdout, done.stderr)
        children = {r[1] for r in results if r[0] == "child"}
        where = {(f["ran"], f["why"]) for f in lines if f["pid"] in children}
        parent = {(f["ran"], f["why"]) for f in lines if f["pid"] not in children}
        if mode == "no GPU":
            continue
        tap.ok(parent == {("gpu0", "forced")}, f"fork {when} first use: the parent stays on the GPU", parent)
        if when == "after":
            # CUDA does not survive a fork: the child computes on the CPU.
            tap.ok(where == {("cpu", "forked")}, "fork after first use: the child computes on the CPU", where)
        else:
            # Two processes that know nothing of each other's CUDA.
            tap.ok(where == {("gpu0", "forced")}, "fork before first use: the child starts CUDA by itself", where)

# The child calls no CUDA function: the test GPU counts that as a fault.
done = start("forks", "after", env={**TEST_GPU, "TESTGPU_REPORT": "/dev/stderr"})
tap.ok("fault what=forked" not in done.stderr and "testgpu" in done.stderr, "the child calls no CUDA function", done.stderr[-500:])

# ---- Options of AddressSanitizer's runtime: those of a library of the program's stay ----

# A sanitizer's runtime, which comes first, has such a function itself.
OPTIONS = "import ctypes; ask = ctypes.CDLL(None).__asan_default_options; ask.restype = ctypes.c_char_p; print(ask().decode())"
OURS = "verify_asan_link_order=0"
with tempfile.TemporaryDirectory(prefix="accel-options-") as folder:
    for name, options, expected in () if RUNTIME else (("none", None, OURS), ("empty", "", OURS), ("some", "exitcode=42", OURS + ":exitcode=42"),
                                    ("more than there is room for", 200 * "exitcode=42:", 200 * "exitcode=42:")):
        behind = Path(folder, f"lib{len(expected)}.so")
        if options is not None:
            subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", behind], text=True, check=True,
                           input=f'const char *__asan_default_options(void) {{ return "{options}"; }}')
        also = "" if options is None else f":{behind}"
        done = start("/usr/bin/python3", "-c", OPTIONS, env={**NO_GPU, "LD_PRELOAD": SHIM["LD_PRELOAD"] + also})
        tap.ok(done.returncode == 0 and done.stdout == expected + "\n", f"options of a library: {name}", done.stdout[:300], done.stderr[-300:])

# ---- dlsym ----

ASKER = TESTS / "libasker.so"
native = start("lookups", ASKER)
tap.ok(native.returncode == 0 and native.stdout.count("7 10 15 22") == 4 and f"{ASKER}: undefined symbol: dgesv_)" in native.stdout
       and f"none ({TESTS}/lookups: undefined symbol: dgemm_)" in native.stdout, "look-ups without libaccel", native.stdout)
for mode, env in {"no GPU": NO_GPU, "ACCEL=0": {**SHIM, "ACCEL": "0"}, "test GPU": TEST_GPU, "logged": {**NO_GPU, **LOG}}.items():
    done = start("lookups", ASKER, env=env)
    tap.ok(done.stdout == native.stdout and done.returncode == 0, f"look-ups answer the same, and dlerror() names the same object, {mode}",
           native.stdout, "---", done.stdout)
done = start("lookups", ASKER, env={**TEST_GPU, **LOG})
products = native.stdout.count("7 10 15 22")
tap.ok(len(lines_for(done, sym="dgemm_", ran="gpu0", m="2")) == products, "a function found by dlsym is seen", done.stderr)

# ---- Bad arguments: the original's own message, also where its handler leaves by longjmp ----

for program in ("bad_arguments", "bad_arguments_longjmp"):
    native = start(program)
    tap.ok(native.returncode == 0 and native.stdout, f"{program}: without libaccel", native.stderr)
    for mode, env in {"no GPU": NO_GPU, "no GPU, logged": {**NO_GPU, **LOG}, "test GPU": TEST_GPU,
                      "test GPU, logged": {**TEST_GPU, **LOG}}.items():
        done = start(program, env=env)
        own = "".join(line + "\n" for line in done.stderr.splitlines() if not line.startswith(("accel ", "accel: ")))
        tap.ok((done.stdout, own, done.returncode) == (native.stdout, native.stderr, native.returncode),
               f"{program}, {mode}: the original's messages and results", native.stdout, native.stderr, "---", done.stdout, own)
    done = start(program, env={**TEST_GPU, **LOG})
    wrong = 15 if program == "bad_arguments" else 10
    tap.ok(len(lines_for(done, ran="cpu", why="bad_argument")) == wrong, f"{program}: logged as bad_argument", done.stderr)
    # After ten longjmps out of the original, the right call is still seen.
    tap.ok(len(lines_for(done, ran="gpu0")) == 1, f"{program}: the right call still runs on the GPU", done.stderr)

# ---- A program that uses CUDA itself: host, device and managed operands mixed; its state; a
# capture ----

for mode, env in {"auto": {"ACCEL_POLICY": "auto"}, "gpu": {}, "delays": {"TESTGPU_DELAY_US": "1000"},
                  "tiles": {"ACCEL_MEMORY": "100K"}, "silent": {"ACCEL_LOG": "0", "ACCEL_POLICY": "auto"}}.items():
    done = start("cuda_program", "-c", 1, env={**TEST_GPU, **LOG, "TESTGPU_REPORT": "/dev/stderr", **env})
    tap.ok(done.returncode == 0, f"a program with CUDA of its own, {mode}", done.stdout, done.stderr[-800:])
    tap.ok("context kept" in done.stdout and "mode kept" in done.stdout, f"its context and capture mode, {mode}", done.stdout)
    tap.ok("capture kept" in done.stdout, f"another thread's capture survives, {mode}", done.stdout)
    tap.ok("testgpu faults n=0" in done.stderr, f"no misuse of CUDA, {mode}",
           *[line for line in done.stderr.splitlines() if "fault" in line][:5])
done = start("cuda_program", "-c", 1, env={**TEST_GPU, "ACCEL_POLICY": "auto", "ACCEL_LOG": "2"})
tap.ok(lines_for(done, why="device_data"), "calls on device memory go where it is")
tap.ok(re.search(r"event=in_place operand=[abc]", done.stderr), "and it is used in place")

# The GPU fails under a program that keeps its operands there: copies for the CPU where that is
# still possible.
recovered = stopped = 0
bad = []
for function, n in [(function, n) for function in ("cublasDgemm", "cublasZgemm") for n in (range(1, 16) if LONG else (6, 15))]:
    done = start("cuda_program", "-c", 1, env={**TEST_GPU, "TESTGPU_FAIL": f"{function}:{n}", **LOG})
    if done.returncode == 0:
        recovered += 1
    elif "cannot be made right" in done.stderr:
        stopped += 1
    else:
        bad.append(f"{function} {n}: {done.returncode} {done.stdout} {done.stderr[-300:]}")
tap.ok(recovered and stopped and not bad, f"cuBLAS fails with device operands: {recovered} right, {stopped} stopped, none wrong", *bad[:3])

# ---- The library that the program has loaded is the one that is used ----

done = start("cuda_program", "-c", 1, env={**SHIM, **LOG, "ACCEL_POLICY": "gpu", "LD_LIBRARY_PATH": str(BUILD / "testgpu")})
tap.ok(done.returncode == 0 and lines_for(done, ran="gpu0"), "CUDA on the linker's path is found", done.stderr[-500:])
# ---- Threads whose first calls come while one of them finds that there is no GPU ----

ended = [start("steps", "threads:4:200:2", env={**NO_GPU, **LOG, "OPENBLAS_NUM_THREADS": "1"}).returncode for _ in range(100 if LONG else 30)]
tap.ok(set(ended) == {0}, "no GPU, first calls of four threads at once", *ended)

tap.done()
