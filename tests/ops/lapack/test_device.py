#!/usr/bin/python3 -B
"""LAPACK on device and managed memory, mixed with host memory: as on host memory alone."""

from lib.log import lines_for, said
from lib.programs import LOG, TEST_GPU, start
from lib.tap import Tap

tap = Tap()
for policy in "gpu", "auto":
    done = start("device_lapack", env={**TEST_GPU, **LOG, "ACCEL_POLICY": policy})
    tap.ok(done.returncode == 0 and "\n0 wrong" in done.stdout, f"{policy}: right", done.stdout, done.stderr[-300:])
    tap.ok(not said(done), f"{policy}: nothing to say", *said(done))
    for routine in "dgesv_", "dgeqrf_", "dtrtri_", "dsyevd_", "dlacpy_", "dlaswp_", "dgecon_", "dpocon_", "dsytri_", "dsygst_":
        tap.ok(lines_for(done, sym=routine, ran="gpu0", why="device_data"), f"{policy}: {routine} runs where its data are")

# Copies of a whole matrix, exchanges of rows and the factors of a condition number stay on the
# device.
done = start("device_lapack", env={**TEST_GPU, "ACCEL_LOG": "1"})
for symbol in "dlacpy_", "dgecon_", "dpocon_":
    still = [f for f in lines_for(done, sym=symbol, ran="gpu0", why="device_data") if not float(f.get("up_mb", 0))]
    tap.ok(still, f"{symbol}: what is in device memory does not leave it")

# Where the GPU does not take a call, the original has it on copies.
for fault in ("cusolverDnXgetrf:1+=CUSOLVER_STATUS_NOT_SUPPORTED", "cusolverDnCreate:1+=CUSOLVER_STATUS_ARCH_MISMATCH",
              "cusolverDnXsyevd:2=CUSOLVER_STATUS_ALLOC_FAILED", "cusolverDnDlaswp:5=CUSOLVER_STATUS_ALLOC_FAILED",
              "cusolverDnDlaswp:14=CUSOLVER_STATUS_NOT_SUPPORTED"):
    done = start("device_lapack", env={**TEST_GPU, **LOG, "TESTGPU_FAIL": fault})
    tap.ok(done.returncode == 0 and "\n0 wrong" in done.stdout, f"{fault}: right", done.stdout, done.stderr[-300:])
    tap.ok([f for f in lines_for(done, ran="cpu") if f["why"] in ("unsupported", "no_memory")], f"{fault}: said in the log")
tap.done()
