#!/usr/bin/python3 -B
"""HPC Challenge on two MPI ranks: High Performance Linpack, matrix multiplication and the rest of the suite. With TEST_LONG=1 with ACCEL=0, too."""

import re

from harness import Product, decisions, same_bytes
from lib.log import FAILURES
from lib.programs import LONG, NO_GPU, SHIM, TEST_GPU, run
from lib.regress import record
from lib.tap import Tap

INPUT = """HPLinpack benchmark input file

HPL.out      output file name
8            device out
1            problem sizes
640          N
1            block sizes
64           NB
0            row-major process mapping
1            process grids
1            P
2            Q
16.0         threshold
1            panel factorisations
2            right-looking
1            recursive stopping criteria
4            NBMIN
1            panels in recursion
2            NDIV
1            recursive panel factorisations
1            Crout
1            broadcasts
1            modified ring
1            lookahead depths
0            depth
2            mixed swapping
64           swapping threshold
0            L1 transposed
0            U transposed
1            equilibration
8            memory alignment in doubles
##### separator
0            additional sizes for PTRANS
1200
0            additional block sizes for PTRANS
40
"""

# What HPL prints of its answer: these are the same in every run of the same arithmetic.
ANSWER = re.compile(r"^(HPL_(?:RnormI|Anorm1|AnormI|Xnorm1|XnormI|BnormI)=.*|\|\|Ax-b\|\|.*(?:PASSED|FAILED))$", re.M)

# HPL is column-major and its updates are as deep as a block. Without lookahead their widths do not
# depend on when a message arrives. The suite's own test of dgemm is square, of a size that follows
# from N: on one rank, then on both.
PRODUCTS = [
    Product("cblas_dgemm", 576, 257, 64),
    Product("cblas_dgemm", 576, 320, 64),
    Product("cblas_dgemm", 260, 260, 260, times=3),
]


def hpcc(ranks_env):
    exports = [word for name, value in ranks_env.items() for word in ("-x", f"{name}={value}")]
    # mpirun refuses to run as root otherwise, and its own folder must lie in the test's.
    env = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "TMPDIR": "@HOME@",
           "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    # Neither binding to cores nor reading another process's memory is allowed in every container. A
    # rank that waits gives its core to others.
    mpirun = "mpirun --timeout 150 --oversubscribe --bind-to none --mca btl_vader_single_copy_mechanism none --mca mpi_yield_when_idle 1 -n 2"
    script = f'printf %s "$0" > hpccinf.txt; exec {mpirun} "$@"'
    done = run(["bash", "-c", script, INPUT, *exports, "hpcc"], env)
    text = done.files.get("hpccoutf.txt", b"").decode()
    answer = "\n".join(ANSWER.findall(text)).encode()
    return done._replace(files={"answer": answer}), text


def passed(tap, name, done, text):
    tap.ok(done.rc == 0, f"{name}: exit status 0", done.rc, done.stderr)
    tap.ok("Success=1" in text and "FAILED" not in text, f"{name}: nothing failed", text[-2000:])
    tap.ok(re.search(r"^\|\|Ax-b\|\|.* PASSED$", text, re.M), f"{name}: HPL's residual check passed")
    wrong = [line for line in text.splitlines() if re.match(r"Node\(s\) with error +[^0 ]", line)]
    tap.ok(not wrong, f"{name}: no node with an error", *wrong)


def main():
    tap = Tap()
    plain, text = hpcc({})
    passed(tap, "hpcc", plain, text)

    for label, env in (("no GPU", NO_GPU), *([("ACCEL=0", {**SHIM, "ACCEL": "0"})] if LONG else [])):
        silent, text = hpcc({**env, "ACCEL_LOG": "0"})
        passed(tap, f"hpcc, {label}", silent, text)
        same_bytes(tap, f"hpcc, {label}", plain, silent)
        tap.ok(silent.stderr == plain.stderr, f"hpcc, {label}: same stderr", silent.stderr)

    # To a file: mpirun mixes what the ranks write to stderr, within lines too.
    to_file = {"ACCEL_LOG": "2", "ACCEL_LOG_FILE": "@HOME@/log.%p"}
    logged, text = hpcc({**NO_GPU, **to_file})
    passed(tap, "hpcc, no GPU, logged", logged, text)
    same_bytes(tap, "hpcc, no GPU, logged", plain, logged)
    lines = decisions(tap, "hpcc, no GPU", logged.log, "cpu", "no_gpu", PRODUCTS)
    tap.ok(lines and all(f["ran"] == "cpu" for f in lines), "hpcc, no GPU: nothing ran elsewhere")

    answers = len(plain.files["answer"].splitlines())
    record(tap, "hpcc", "no GPU", 0, lines, answers, 0.0, 0.0, 0)

    failed = tap.failed
    gpu, text = hpcc({**TEST_GPU, **to_file})
    passed(tap, "hpcc, test GPU", gpu, text)
    tap.ok(gpu.stdout == plain.stdout, "hpcc, test GPU: same stdout", gpu.stdout)
    lines = decisions(tap, "hpcc, test GPU", gpu.log, "gpu0", "forced", PRODUCTS)
    tap.ok(len({f["pid"] for f in lines}) == 2, "hpcc, test GPU: both ranks decided")
    tap.ok(not [f for f in lines if f["why"] in FAILURES], "hpcc, test GPU: no failures")
    # HPL's own residual of the solution, of which it allows 16.
    residuals = [float(x) for x in re.findall(r"(?m)^\|\|Ax-b\|\|.*= +(\S+) +\.+ PASSED$", text)]
    floors = [float(x) for x in re.findall(r"\|\|Ax-b\|\|.*= +(\S+) +\.+ PASSED", plain.files["answer"].decode())]
    record(tap, "hpcc", "test GPU", failed, lines, len(residuals), max(residuals, default=float("inf")), max(floors, default=0.0), 16)
    tap.done()


main()
