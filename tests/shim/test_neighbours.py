#!/usr/bin/python3 -B
"""Other libraries that stand between a program and its BLAS, or beside it: preloads before and after libaccel, an auditor of the dynamic
linker, RTLD_DEEPBIND, functions chosen when they are bound; providers that come and go, and two at once, under load."""

import os
import tempfile
from pathlib import Path

from lib.log import lines_for, said
from lib.programs import LOG, NO_GPU, SHIM, TEST_GPU, TESTS, UNDER_TSAN, start
from lib.tap import Tap

tap = Tap()
MODES = {"ACCEL=0": {**SHIM, "ACCEL": "0"}, "no GPU": NO_GPU, "test GPU": {**TEST_GPU, "TESTGPU_DELAY_US": "0"},
         "test GPU, logged": {**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0"}}
COUNT = 5000 if os.environ.get("TEST_LONG") == "1" else 100
LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")


def compare(name, steps, extra=None, modes=MODES, gpu=True, preloads=(), after=(), of_cpu=None):
    """The same output and status with libaccel, beside these preloads, as without it; the line of_cpu is printed if a call stays on the CPU."""
    extra = extra or {}

    def preload(shim):
        return {"LD_PRELOAD": ":".join(filter(None, [*map(str, preloads), shim, *map(str, after)]))}

    native = start("neighbours", TESTS, *steps, env={**extra, **preload("")})
    if not tap.ok(native.returncode == 0 and "WRONG" not in native.stdout, f"{name}: right without libaccel", native.returncode, native.stdout,
                  native.stderr[-500:]):
        return
    for mode, env in modes.items():
        done = start("neighbours", TESTS, *steps, env={**env, **extra, **preload(env["LD_PRELOAD"])})
        own = [line for line in done.stderr.splitlines() if not line.startswith("accel ")]
        printed, wanted = ([line for line in text.splitlines() if not mode.startswith("test GPU") or line != of_cpu] for text in (done.stdout, native.stdout))
        tap.ok((done.returncode, printed, own) == (0, wanted, native.stderr.splitlines()), f"{name}, {mode}: the same", done.returncode,
               done.stdout, *own[:10], "---", native.stdout)
        if gpu and mode == "test GPU, logged":
            tap.ok(lines_for(done, ran="gpu0"), f"{name}: seen by libaccel", done.stderr[-300:])


# ---- How objects are bound ----

LOCAL = ["open:libcaller_lp64.so", "open:libcaller_ilp64.so"]
compare("RTLD_DEEPBIND", ["linked", "deep:libcaller_lp64.so", "deep:libcaller_ilp64.so"])
compare("RTLD_DEEPBIND, a library that is linked to no BLAS", ["deep:libcaller_none.so", "linked"])
compare("functions chosen when they are bound (IFUNC)", ["open:libcaller_ifunc.so", "linked"])
compare("IFUNC, preloaded", ["linked", *LOCAL], after=[TESTS / "libifunc.so"])

# ---- LD_AUDIT ----

compare("an auditor", ["linked", *LOCAL], {"LD_AUDIT": str(TESTS / "libauditor.so")})
compare("an auditor that sees what dgemm_ returns", ["linked", *LOCAL], {"LD_AUDIT": str(TESTS / "libauditor.so"), "TEST_PLTEXIT": "1"})

# The auditor and its libraries are objects of another namespace, and none of those that the program
# has started with.
for case in "not-called", "called", "unneeded":
    steps, audit = (case, TESTS, LIBRARIES / "blas/libblas.so.3"), {"LD_AUDIT": str(TESTS / "libauditor.so")}
    native = start("plug_ins", *steps, env=audit)
    tap.ok(native.returncode == 0 and "WRONG" not in native.stdout, f"an auditor, dlclose of a provider, {case}: right without libaccel", native.stdout)
    for mode, env in MODES.items():
        done = start("plug_ins", *steps, env={**env, **audit})
        tap.ok((done.returncode, done.stdout) == (0, native.stdout) and not said(done), f"an auditor, dlclose of a provider, {case}, {mode}: the same",
               done.returncode, done.stdout, done.stderr[-500:], "---", native.stdout)

# ---- Other preloads, before libaccel and after it ----

PRELOADS = {"a wrapper of dgemm_": TESTS / "libwrapper.so", "another dlsym": TESTS / "libother_dlsym.so",
            "jemalloc": LIBRARIES / "libjemalloc.so.2", "tcmalloc": LIBRARIES / "libtcmalloc_minimal.so.4",
            "libfaketime": LIBRARIES / "faketime/libfaketimeMT.so.1"}
for name, path in PRELOADS.items():
    if UNDER_TSAN and "malloc" in name:
        tap.skip(name, "ThreadSanitizer has an allocator of its own")
        continue
    if not tap.ok(path.exists(), f"{name} is there", f"{path}: scripts/install-deps test"):
        continue
    for place in "before", "after":
        compare(f"{name} {place} libaccel", ["linked", *LOCAL, f"load:{COUNT}"], preloads=[path] if place == "before" else [],
                after=[path] if place == "after" else [], of_cpu="the wrapper was called" if path.name == "libwrapper.so" and place == "after" else None)
for fake in "2020-01-01 00:00:00", "+0 x1000", "-3000d":
    compare(f"libfaketime, {fake}", ["linked", *LOCAL, f"load:{COUNT}"], {"FAKETIME": fake}, preloads=[PRELOADS["libfaketime"]])

# NVBLAS with its file: its own messages are about GPUs, which it has none of.
nvblas = sorted(Path("/usr/local").glob("cuda*/lib*/libnvblas.so.1?"))
if nvblas:
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "nvblas.conf")
        config.write_text(f"NVBLAS_LOGFILE {folder}/log\nNVBLAS_CPU_BLAS_LIB {LIBRARIES}/libblas.so.3\nNVBLAS_GPU_LIST ALL\n")
        steps, calm = ["linked", *LOCAL], {"NVBLAS_CONFIG_FILE": str(config), "CUDA_VISIBLE_DEVICES": "-1"}

        def printed(done):
            return [line for line in done.stdout.splitlines() if not line.startswith("[NVBLAS]")]

        native = start("neighbours", TESTS, *steps, env={**calm, "LD_PRELOAD": str(nvblas[0])})
        tap.ok(native.returncode == 0 and "WRONG" not in native.stdout, "NVBLAS: right without libaccel", native.stdout, native.stderr[-500:])
        for mode in "ACCEL=0", "no GPU":
            shim = MODES[mode]["LD_PRELOAD"]
            for place, preload in {"before": f"{nvblas[0]}:{shim}", "after": f"{shim}:{nvblas[0]}"}.items():
                done = start("neighbours", TESTS, *steps, env={**MODES[mode], **calm, "LD_PRELOAD": preload})
                tap.ok((done.returncode, printed(done)) == (0, printed(native)) and not said(done), f"NVBLAS {place} libaccel, {mode}: the same",
                       done.returncode, done.stdout, done.stderr[-500:])
else:
    tap.skip("NVBLAS", "no libnvblas in a CUDA toolkit under /usr/local")

# ---- Providers that come and go, and two at once, while threads call ----

compare("two providers at once", [f"load:{5 * COUNT}"])
# With BLIS's OpenMP build, which libblis.so.4 may name, this crashes without libaccel: OpenMP's
# threads stay behind when it goes.
compare("a provider is closed and opened again", [f"reopen:{COUNT}:{LIBRARIES}/blas/libblas.so.3:{LIBRARIES}/blis-pthread/libblis.so.4"])

tap.done()
