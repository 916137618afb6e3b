#!/usr/bin/python3 -B
"""GSL's Cholesky, LU, QR, LQ, singular values and tridiagonal matrices on the test GPU: the results that GSL's manual defines, the permutation, signs and
order of eigenvalues of GSL itself, nothing changed around a matrix, and GSL's own answer where the device has none."""

from lib.log import lines_for, parse_log
from lib.programs import LOG, LONG, NO_GPU, TEST_GPU, start
from lib.tap import Tap

tap = Tap()
plain = start("gsl_calls")
tap.ok(plain.returncode == 0 and plain.stdout.count("exact") == 24 and "WRONG" not in plain.stdout, "GSL itself", plain.stdout, plain.stderr)
done = start("gsl_calls", env={**TEST_GPU, **LOG})
tap.ok(done.stdout == plain.stdout, "on the GPU: the same", plain.stdout, done.stdout, done.stderr[:3000])
for symbol, calls in {"gsl_linalg_cholesky_decomp1": [("150", "gpu0", "forced"), ("100", "cpu", "unsupported")],
                      "gsl_linalg_LU_decomp": [("140", "gpu0", "forced"), ("76", "cpu", "unsupported")],
                      "gsl_linalg_QR_decomp": [("110", "gpu0", "forced"), ("85", "gpu0", "forced"), ("75", "gpu0", "forced")],
                      "gsl_linalg_SV_decomp": [("120", "gpu0", "forced"), ("80", "gpu0", "forced")],
                      "gsl_linalg_SV_decomp_mod": [("115", "gpu0", "forced")],
                      "gsl_linalg_LQ_decomp": [("70", "gpu0", "forced"), ("83", "gpu0", "forced")],
                      "gsl_linalg_symmtd_decomp": [("130", "gpu0", "forced"), ("77", "gpu0", "forced")],
                      "gsl_linalg_hermtd_decomp": [("81", "gpu0", "forced"), ("78", "gpu0", "forced")]}.items():
    for m, ran, why in calls:
        tap.ok(len(lines_for(done, sym=symbol, m=m, ran=ran, why=why)) == 1, f"{symbol} {m}: {ran}, {why}",
               *[str(line) for line in parse_log(done.stderr) if line["sym"] == symbol])
# SV_decomp_mod calls SV_decomp, too.
STAY = {"LU_decomp": 2, "QR_decomp": 2, "SV_decomp": 2, "SV_decomp_mod": 1, "LQ_decomp": 2, "symmtd_decomp": 1, "hermtd_decomp": 0}
stay = {name: len(lines_for(done, sym=f"gsl_linalg_{name}", ran="cpu", why="unsupported")) for name in STAY}
tap.ok(stay == STAY, "LU that is not square or has tiny elements, QR with fewer rows than columns, LQ with more, all others with a stride: cpu, unsupported", stay, done.stderr[:2000])
for name in ("symmtd", "hermtd"):
    tap.ok(len(lines_for(done, sym=f"gsl_linalg_{name}_decomp", m="96", ran="gpu0")) == 2, f"gsl_eigen_*: their {name}_decomp on the GPU", done.stderr[:2000])
done = start("gsl_calls", env={**NO_GPU, **LOG})
tap.ok(done.stdout == plain.stdout and len(lines_for(done, sym="gsl_linalg_SV_decomp", ran="cpu", why="no_gpu")) == 2,
       "without a GPU: GSL", done.stdout, done.stderr[:2000])
for fault, why in {"cuMemAlloc:1+": "no_memory", "cuMemcpyDtoHAsync:1+": "error"}.items():
    done = start("gsl_calls", env={**TEST_GPU, **LOG, "TESTGPU_FAIL": fault})
    tap.ok(done.stdout == plain.stdout and why in {line["why"] for line in lines_for(done, sym="gsl_linalg_LU_decomp", m="140")},
           f"{fault} fails: GSL's own result", plain.stdout, done.stdout, done.stderr[:2000])

plain, done = start("gsl_calls", "scaled"), start("gsl_calls", "scaled", env={**TEST_GPU, **LOG})
ran = [(line["m"], line["ran"]) for line in lines_for(done, sym="gsl_linalg_LU_decomp")]
tap.ok(done.stdout == plain.stdout and ran == [("74", "gpu0"), ("72", "gpu0"), ("76", "cpu")], "LU of large and small elements runs there, but for denormal ones",
       plain.stdout, done.stdout, *ran)
plain = start("gsl_calls")

# GSL's functions alone on the GPU; after one result that is wrong, all is the CPU's.
VERIFY = {**TEST_GPU, **LOG, "ACCEL_POLICY": "auto", "ACCEL_GPU": "gsl_*", "ACCEL_VERIFY": "all", "ACCEL_VERIFY_ACTION": "cpu", "TESTGPU_DELAY_US": "0"}
done = start("gsl_calls", env=VERIFY)
ran = [line for line in parse_log(done.stderr) if line["ran"] == "gpu0"]
symbols = {line["sym"] for line in ran}
tap.ok(done.stdout == plain.stdout and len(ran) >= 20 and all(0 <= float(line["verify"]) <= 0.5 for line in ran),
       f"all of {len(ran)} results of {len(symbols)} functions are verified", *[line for line in ran if not 0 <= float(line["verify"]) <= 0.5][:3], done.stderr[-500:])
# The third kernel is that of the matrix that is not definite.
KERNELS, found, bad = [n for n in range(1, 54) if n != 3], set(), []
for nth in KERNELS if LONG else (1, *range(4, 54, 4)):
    spoilt = start("gsl_calls", env={**VERIFY, "ACCEL_VERIFY": "off", "TESTGPU_WRONG": str(nth)})
    done = start("gsl_calls", env={**VERIFY, "TESTGPU_WRONG": str(nth)})
    failed = lines_for(done, why="verify_failed")
    found.update(line["sym"] for line in failed[:1])
    if spoilt.stdout == plain.stdout or done.stdout != plain.stdout or not failed or "verification: the GPU's result is wrong" not in done.stderr:
        bad.append(f"{nth}: {done.stderr[:300]}")
tap.ok(not bad and found == symbols and len(symbols) == 8, f"a wrong element of each of {len(found)} functions is found, and GSL computes anew", symbols - found, *bad[:4])
tap.done()
