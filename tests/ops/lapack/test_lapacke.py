#!/usr/bin/python3 -B
"""LAPACK through its C interface: LAPACKE of Debian, which calls the Fortran names, and those inside the wheels' OpenBLAS,
which do not."""

from lib.log import lines_for, said
from lib.programs import BUILD, LOG, NO_GPU, TEST_GPU, start
from lib.tap import Tap

tap = Tap()
ON_GPU = {**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0"}


def wheel(pattern):
    found = sorted((BUILD / "venv").glob(f"lib/python3*/site-packages/{pattern}"))
    tap.ok(found, f"there is {pattern}")
    return str(found[0]) if found else "missing"


LIBRARIES = {
    "Debian's LAPACKE": ("lapacke", "liblapacke.so.3", "LAPACKE_", ""),
    "the wheel's, 32-bit integers": ("lapacke", wheel("scipy.libs/libscipy_openblas-*.so"), "scipy_LAPACKE_", ""),
    "the wheel's, 64-bit integers": ("lapacke64", wheel("numpy.libs/libscipy_openblas64_-*.so"), "scipy_LAPACKE_", "64_"),
}
for name, (program, library, prefix, suffix) in LIBRARIES.items():
    arguments = (library, prefix, suffix)
    plain = start(program, *arguments)
    tap.ok(plain.returncode == 0, f"{name}: right without libaccel", plain.stdout, plain.stderr[-300:])
    for kind, env in ("no GPU", {**NO_GPU}), ("ACCEL=0", {**TEST_GPU, "ACCEL": "0"}):
        done = start(program, *arguments, env=env)
        same = done.stdout == plain.stdout and done.stderr == plain.stderr
        tap.ok(done.returncode == 0 and same, f"{name}, {kind}: the same", done.stdout, done.stderr[-300:])
    done = start(program, *arguments, env=ON_GPU)
    tap.ok(done.returncode == 0 and not said(done), f"{name}, test GPU: right", done.stdout, done.stderr[-300:])
    infos = [line for line in done.stdout.splitlines() if "dpotrf" in line or "dgetrf" in line]
    tap.ok(infos == [line for line in plain.stdout.splitlines() if "dpotrf" in line or "dgetrf" in line],
           f"{name}, test GPU: the same INFO for what is singular, indefinite, not a number, or wrong", *infos)
    for routine in "dgesv", "dsyevr", "zgesdd", "dgecon", "dsytri", "zhetrf", "zhetrs", "dsygst":
        lines = lines_for(done, sym=f"{prefix}{routine}{suffix}", ran="gpu0", why="forced")
        tap.ok(lines, f"{name}, test GPU: {routine} runs there", done.stderr[-600:])
    tap.ok(lines_for(done, sym=f"{prefix}dpotrf{suffix}", ran="cpu", why="bad_argument"), f"{name}: a bad argument is the library's own")
    # An older cuSOLVER has no factorisation of Hermitian matrices.
    done = start(program, *arguments, env={**ON_GPU, "ACCEL_CUDA_DIR": str(BUILD / "testgpu-cuda12")})
    tap.ok(done.returncode == 0 and not said(done), f"{name}, an older cuSOLVER: right", done.stdout, done.stderr[-300:])
    for routine, ran, why in ("zhetrf", "cpu", "unsupported"), ("zhetrs", "cpu", "unsupported"), ("dsytri", "gpu0", "forced"):
        lines = lines_for(done, sym=f"{prefix}{routine}{suffix}", ran=ran, why=why)
        tap.ok(lines, f"{name}, an older cuSOLVER: {routine} {ran} {why}", done.stderr[-600:])
tap.done()
