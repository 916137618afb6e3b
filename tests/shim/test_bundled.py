#!/usr/bin/python3 -B
"""A library that has MKL in itself and is linked to cuBLAS, as PyTorch's: its calls are taken, with the
cuBLAS that it has loaded, and accel doctor says the truth about it."""

import re
import shutil
import tempfile
from pathlib import Path

from lib.calibrated import AUTO
from lib.log import lines_for, outcomes
from lib.programs import BUILD, DEBIAN_PYTHON, LOG, NO_GPU, RUNTIME, TEST_GPU, TESTS, start
from lib.tap import Tap

tap = Tap()
TOOL = str(BUILD / "accel")
GPU = {"TESTGPU_DELAY_US": "0"}
# Loads the library, and perhaps multiprocessing as PyTorch does, calls its functions, and perhaps
# starts CUDA in between.
PROGRAM = """
import ctypes, sys
library, words, n = ctypes.CDLL(sys.argv[1]), sys.argv[3:], int(sys.argv[2])
for word in words:
    if word == "multiprocessing":
        import multiprocessing.connection
    elif word == "cuda":
        driver, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
        assert driver.cuInit(0) == driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    else:
        print(word, getattr(library, "bundled_" + word)(n), "wrong")
"""
WORDS = ["product", "wide", "batch"]
RIGHT = "".join(f"{word} 0 wrong\n" for word in WORDS)


def call(library, *words, n=96, env):
    return start(DEBIAN_PYTHON, "-c", PROGRAM, library, n, *words, env={**GPU, **env})


def doctor(library, *words, env={}):
    done = start(
        TOOL,
        "doctor",
        "--",
        DEBIAN_PYTHON,
        "-c",
        PROGRAM,
        library,
        96,
        *words,
        env={**GPU, "ACCEL_CUDA_DIR": str(BUILD / "testgpu"), **env},
    )
    return done, re.findall(r"(?m)^(OK|WARN|FAIL) +(\S.*?)  +(.*)\n(?: +-> (.*)\n)?", done.stdout)


def has(rows, state, what, pattern):
    return any(
        (state, what) == row[:2] and re.search(pattern, f"{row[2]} -> {row[3]}") for row in rows
    )


# ---- Its calls, by 32-bit and by 64-bit integers under the plain names ----

for width in "lp64", "ilp64":
    library = TESTS / f"libbundled_{width}.so"
    for mode, env in {
        "without libaccel": {},
        "no GPU": {**NO_GPU, **LOG},
        "test GPU": {**TEST_GPU, **LOG},
    }.items():
        done = call(library, *WORDS, env=env)
        tap.ok(
            done.returncode == 0 and done.stdout == RIGHT,
            f"{width}, {mode}",
            done.returncode,
            done.stdout,
            done.stderr[-500:],
        )
        if env:
            ran = "gpu0" if mode == "test GPU" else "cpu"
            told = [
                (f["sym"], f["ran"], f.get("m"), f.get("n"), f.get("k"), f.get("group_size"))
                for f in lines_for(done)
            ]
            wanted = [
                (name, ran, "96", "96", "96", size)
                for name, size in (
                    ("dgemm_", None),
                    ("dgemm_64_", None),
                    ("cblas_dgemm_batch", "3"),
                )
            ]
            tap.ok(
                told == wanted, f"{width}, {mode}: each call is in the log, with its sizes", *told
            )

done = call(TESTS / "libbundled_untold.so", "product", env={**TEST_GPU, **LOG})
tap.ok(
    done.returncode == 0
    and done.stdout == "product 0 wrong\n"
    and outcomes(lines_for(done)) == [("cpu", "unsupported")],
    "nothing tells its integers: its calls are passed on",
    done.returncode,
    done.stdout,
    done.stderr[-500:],
)

# ---- The cuBLAS that it has loaded ----

with tempfile.TemporaryDirectory() as folder:
    for part in "tests", "testgpu":
        Path(folder, part).mkdir()
    copy = Path(shutil.copy(TESTS / "libbundled_lp64.so", Path(folder, "tests")))
    for name in "libcublas.so.13", "libcuda.so.1":
        shutil.copy(BUILD / "testgpu" / name, Path(folder, "testgpu"))
    done = call(copy, "product", env={**TEST_GPU, **LOG})
    used = re.findall(r"cublas_library=(\S+)", done.stderr)
    tap.ok(
        done.stdout == "product 0 wrong\n" and used == [f"{folder}/testgpu/libcublas.so.13"],
        "the copy of cuBLAS that it has loaded is the one in use, not that of ACCEL_CUDA_DIR",
        *used,
        done.stdout,
        done.stderr[-500:],
    )

# ---- accel doctor ----

done, rows = doctor(TESTS / "libbundled_lp64.so", "product")
if has(rows, "WARN", "preload", "ptrace is not permitted"):
    tap.skip("accel doctor", "ptrace(2) is not permitted here")
else:
    tap.ok(
        done.returncode == 0
        and has(
            rows,
            "OK",
            "BLAS",
            r"/libbundled_lp64\.so, opened with dlopen by python\S+, 32-bit integers; "
            r"called with 1 thread, first dgemm_ ",
        ),
        "accel doctor: the width as it was called",
        done.stdout,
    )
    tap.ok(
        "DEEPBIND" not in done.stdout and not has(rows, "WARN", "CUDA", ""),
        "accel doctor: no hint at what is not so",
        done.stdout,
    )
    done, rows = doctor(TESTS / "libbundled_lp64.so", "wide")
    tap.ok(
        has(
            rows,
            "OK",
            "BLAS",
            r"libbundled_lp64\.so, .*, 64-bit integers; called with 1 thread, first dgemm_64_",
        ),
        "accel doctor: the other width of the same library",
        done.stdout,
    )
    done, rows = doctor(TESTS / "libbundled_untold.so", "product")
    tap.ok(
        done.returncode == 1
        and has(
            rows,
            "WARN",
            "BLAS",
            r"libbundled_untold\.so, .*, integers of unknown width; called, first dgemm_, "
            r"and passed on: they cannot be told -> its calls stay on the CPU",
        )
        and has(rows, "FAIL", "calls", "^no call of BLAS or LAPACK came that libaccel can run")
        and "DEEPBIND" not in done.stdout,
        "accel doctor: calls that are passed on have come",
        done.stdout,
    )

    # ---- A process that may fork for CUDA ----

    done, rows = doctor(TESTS / "libbundled_lp64.so", "multiprocessing", "product")
    tap.ok(
        done.returncode == 0
        and has(
            rows,
            "WARN",
            "CUDA",
            r"^python\S+ has loaded CUDA and not started it: its calls stay on the CPU.* "
            r"-> set ACCEL_START=background",
        ),
        "accel doctor: CUDA is left to the program, and the way out",
        done.stdout,
    )
    done, rows = doctor(
        TESTS / "libbundled_lp64.so",
        "multiprocessing",
        "product",
        env={"ACCEL_START": "background"},
    )
    tap.ok(
        has(rows, "OK", "BLAS", "called with")
        and not has(rows, "WARN", "CUDA", "")
        and not has(rows, "OK", "CUDA", "stay on the CPU"),
        "accel doctor: and once it is taken",
        done.stdout,
    )
    done, rows = doctor(
        TESTS / "libbundled_lp64.so", "multiprocessing", "product", "cuda", "product"
    )
    tap.ok(
        has(
            rows,
            "OK",
            "CUDA",
            r"^python\S+ has loaded CUDA: its calls stay on the CPU until it starts CUDA itself",
        ),
        "accel doctor: a program that starts CUDA later",
        done.stdout,
    )

with tempfile.TemporaryDirectory() as folder:
    settings = {**AUTO, **LOG, "XDG_CACHE_HOME": folder}
    done = call(TESTS / "libbundled_lp64.so", "multiprocessing", "product", n=700, env=settings)
    tap.ok(
        outcomes(lines_for(done)) == [("cpu", "no_gpu")],
        "CUDA is left to the program",
        done.stdout,
        done.stderr[-500:],
    )
    if RUNTIME:
        tap.skip("ACCEL_START=wait", "a sanitizer's run takes long for a product that pays")
    else:
        # The first call that pays has its kernels loaded.
        done = call(
            TESTS / "libbundled_lp64.so",
            "multiprocessing",
            *["product"] * 3,
            n=700,
            env={**settings, "ACCEL_START": "wait"},
        )
        tap.ok(
            done.stdout == "product 0 wrong\n" * 3
            and ("gpu0", "faster") in outcomes(lines_for(done)),
            "ACCEL_START says that it may start",
            done.stdout,
            done.stderr[-500:],
        )
tap.done()
