#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""HPC Challenge on two MPI ranks: High Performance Linpack, matrix multiplication and the rest of the suite. With
TEST_LONG=1 with ACCEL=0, too."""

import re
from collections import namedtuple

import pytest

from lib.log import FAILURES, parse_moves
from lib.programs import LONG, NO_GPU, TEST_GPU, run
from lib.regress import Row
from programs.harness import SILENT, Product, check_decisions, check_same_bytes

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
    # rank that waits gives its core to others. About the network, which two ranks on one machine do
    # not need, Open MPI 5 writes lines that no two runs have alike.
    mpirun = ("mpirun --timeout 150 --oversubscribe --bind-to none --mca btl_vader_single_copy_mechanism none "
              "--mca mpi_yield_when_idle 1 --mca btl ^tcp -n 2")
    script = f'printf %s "$0" > hpccinf.txt; exec {mpirun} "$@"'
    done = run(["bash", "-c", script, INPUT, *exports, "hpcc"], env)
    text = done.files.get("hpccoutf.txt", b"").decode()
    answer = "\n".join(ANSWER.findall(text)).encode()
    return done._replace(files={"answer": answer}), text


def check_passed(done, text):
    """HPL's residual check, and all else of the suite."""
    assert done.rc == 0, done.stderr
    assert "Success=1" in text
    assert "FAILED" not in text
    assert re.search(r"^\|\|Ax-b\|\|.* PASSED$", text, re.M)
    assert not [line for line in text.splitlines() if re.match(r"Node\(s\) with error +[^0 ]", line)]


# To a file: mpirun mixes what the ranks write to stderr, within lines too.
TO_FILE = {"ACCEL_LOG": "2", "ACCEL_LOG_FILE": "@HOME@/log.%p"}
Hpcc = namedtuple("Hpcc", "row done text lines")


@pytest.fixture(scope="module")
def plain(request):
    row = Row(request)
    return Hpcc(row, *hpcc({}), None)


@pytest.fixture(scope="module")
def without(plain):
    """A run without a GPU, logged."""
    done, text = hpcc({**NO_GPU, **TO_FILE})
    return Hpcc(plain.row, done, text, parse_moves(done.log))


@pytest.fixture(scope="module")
def on_gpu(plain, request):
    row = Row(request)
    done, text = hpcc({**TEST_GPU, **TO_FILE})
    return Hpcc(row, done, text, parse_moves(done.log))


def test_passes(plain):
    check_passed(plain.done, plain.text)


@pytest.mark.parametrize("mode", SILENT if LONG else ("no GPU",))
def test_without_a_log(mode, plain):
    silent, text = hpcc({**SILENT[mode], "ACCEL_LOG": "0"})
    check_passed(silent, text)
    check_same_bytes(plain.done, silent)
    assert silent.stderr == plain.done.stderr


def test_every_byte_is_the_same_without_a_gpu(plain, without):
    check_passed(without.done, without.text)
    check_same_bytes(plain.done, without.done)


def test_products_run_on_the_cpu_without_a_gpu(without):
    check_decisions(without.lines, "cpu", "no_gpu", PRODUCTS)
    assert {f["ran"] for f in without.lines} == {"cpu"}


def test_row_of_no_gpu(plain, without):
    plain.row.write("hpcc", "no GPU", without.lines, len(plain.done.files["answer"].splitlines()), 0.0, 0.0, 0)


def test_passes_on_the_gpu(plain, on_gpu):
    check_passed(on_gpu.done, on_gpu.text)
    assert on_gpu.done.stdout == plain.done.stdout


def test_products_run_on_the_gpu(on_gpu):
    check_decisions(on_gpu.lines, "gpu0", "forced", PRODUCTS)


def test_both_ranks_decide_and_no_call_fails(on_gpu):
    assert len({f["pid"] for f in on_gpu.lines}) == 2
    assert not [f for f in on_gpu.lines if f["why"] in FAILURES]


def test_row_of_the_gpu(plain, on_gpu):
    """HPL's own residual of the solution, of which it allows 16."""
    residuals, floors = ([float(x) for x in re.findall(r"(?m)^\|\|Ax-b\|\|.*= +(\S+) +\.+ PASSED$", text)]
                         for text in (on_gpu.text, plain.text))
    on_gpu.row.write("hpcc", "test GPU", on_gpu.lines, len(residuals), max(residuals, default=float("inf")),
                     max(floors, default=0.0), 16)
