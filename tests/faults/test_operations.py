#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Of each operation of the table, or of each n-th one from the k-th on with FAULTS_SHARE=k/n, every CUDA, cuBLAS and
cuSOLVER call made to fail at its first, second, … n-th use: once, for good, with an error after which each call
fails; without memory; refused; the device lost while it runs. Operands in host memory, whole and in tiles, and in
device memory. Types take turns."""

import os
import re
from collections import namedtuple

import pytest

from faults.faults import GPU, STEPS, Fault, Outcome, check, ended_well, judge, plan, record, run, sweep, table, uses
from lib.calibrated import calibrate_copies, calibrate_in_core
from lib.log import parse_log
from lib.programs import TESTS

Workload = namedtuple("Workload", "program arguments env")

# number: of the operation in its part of the table.
Operation = namedtuple("Operation", "number name routines")

# What OpenBLAS 0.3.21 itself gets wrong: calls.c, cases.h.
BLAS_OF = ["-l", TESTS / "liblacking.so", "-f", "y"]
LAPACK_OF = ["-f", "tyesmv", "-k", "@(uniform|well)"]
# More than fits on the device at once: operands go through in tiles, panels, strips or loads. Too
# little for less than two of them, enough for one.
TILES = {
    "gemm_batch": (60, "60K"),
    **dict.fromkeys("gemv symv hemv trmv trsv ger gerc syr her syr2 her2".split(), (150, "40K"))
}
# LAPACK's operations whose matrix comes up in panels while it is factored, if the link is slow:
# calibrate_in_core().
IN_CORE = ("potrf", "posv", "getrf", "gesv", "geqrf", "gels")
# LAPACK's operations that take a matrix above the device's memory in panels: the least and the
# greatest size, and the memory in KB, in single precision.
PANELS = {**dict.fromkeys("potrf posv potrs getrf gesv getrs trtrs potri trtri getri lauum".split(), (105, 125, 38)),
          **dict.fromkeys("geqrf orgqr ormqr gels".split(), (170, 190, 108))}
# Of Level 3, whose blocks are computed beside each other where memory is ample: products, and
# panels, whose blocks need each other.
BESIDE = ("gemm", "trsm")
# Wide matrices go another way than others.
WIDE = ("gels",)
# Whose calls with operands in device memory, in device_lapack.c, are the CPU's alone, and why:
# there is nothing to fail.
ON_CPU_ALONE = {"sygv": "unsupported", "gesvd": "empty"}
SEEDS = range(1, 60)


def decisions(workload):
    """The finished process, its report and its decisions."""
    done, report = run(workload.program, workload.arguments, {**GPU, **workload.env})
    return done, report, parse_log(done.stderr)


def pick(make, wanted):
    """The first workload of make(seed) that wanted(report, decisions) likes, with its process and report."""
    for seed in SEEDS:
        workload = make(seed)
        done, report, lines = decisions(workload)
        if done.returncode == 0 and wanted(report, lines):
            return workload, done, report
    pytest.fail("no such call runs on the GPU")


def on_gpu(lines):
    return [f for f in lines if f["ran"] == "gpu0"]


def all_on_gpu(lines):
    return lines and len(on_gpu(lines)) == len(lines)


def attempt(workload, baseline, expected="", may_stop=False):
    """What a fault does to a workload."""
    def once(fault):
        try:
            done, report = run(workload.program, workload.arguments,
                               {**GPU, **workload.env, "TESTGPU_FAIL": fault.plant})
        except Exception as error:  # it hangs
            return Outcome(fault, "wrong", f"{fault.plant}: {error}", 0)
        return judge(fault, done, report, baseline, expected, may_stop)
    return once


def check_faults(op, found, most, start_up=False, expected="", kept=False):
    """kept: after some of the faults, what the GPU had finished was kept and the CPU did the rest."""
    workload, _, baseline = found
    outcomes = sweep(list(plan(baseline, most, start_up)), attempt(workload, baseline, expected))
    check(op.name, outcomes)
    assert not kept or sum(o.kept > 0 for o in outcomes) > 0


def selected():
    """Operations of BLAS and of LAPACK."""
    blas, lapack = table()
    first, step = map(int, os.environ.get("FAULTS_SHARE", "1/1").split("/"))
    wanted = [*blas, *lapack][first - 1::step]
    return [[Operation(i, name, routines) for i, (name, routines) in enumerate(rows.items()) if name in wanted]
            for rows in (blas, lapack)]


BLAS, LAPACK = selected()


def turn(op, more=0):
    """The routine whose turn it is."""
    return op.routines[(op.number + more) % len(op.routines)]


def of(operations, names=None):
    """Gives the test each of these operations."""
    some = [op for op in operations if names is None or op.name in names]
    return pytest.mark.parametrize("op", some, ids=[op.name for op in some])


# ---- BLAS ----


def sizes_of(lines):
    return [int(f[key]) for f in lines for key in ("m", "n", "k") if key in f] or [0]


def parts_of(report):
    return sum(n for name, n in report.calls.items()
               if name.startswith("cublas") and name[6] in "SDCZG" and "GetS" not in name and "GetP" not in name)


@of(BLAS)
def test_blas(op):
    make = lambda seed: Workload("random_calls", [*BLAS_OF, "-c", 1, "-n", 24, "-s", seed, "-r", turn(op)], {})
    found = pick(make, lambda report, lines: all_on_gpu(lines) and min(sizes_of(lines)) > 4)
    check_faults(op, found, 6, start_up=op.number == 0)


@of(BLAS)
def test_blas_in_parts(op):
    """More comes down than by one copy, or more kernels run."""
    size, memory = TILES.get(op.name, (150, "100K"))
    make = lambda seed: Workload("random_calls", [*BLAS_OF, "-c", 1, "-n", size, "-s", seed, "-r", turn(op, 1)],
                                 {"ACCEL_MEMORY": memory})
    writes_parts = op.name not in ("gemv", "symv", "hemv", "trmv", "trsv")  # a vector is written at the end
    found = pick(make, lambda report, lines: all_on_gpu(lines) and parts_of(report) >= 3
                 and (not writes_parts or report.calls.get("cuMemcpyDtoHAsync_v2", 0) >= 2))
    check_faults(op, found, 3, kept=writes_parts)


@of(BLAS, BESIDE)
def test_kernels_beside_each_other(op, tmp_path):
    model = str(tmp_path / "model")
    calibrate_copies(model, str(tmp_path))
    make = lambda seed: Workload("random_calls", [*BLAS_OF, "-c", 1, "-n", 560, "-s", seed, "-r", "z" + op.name],
                                 {"ACCEL_MODEL": model})
    found = pick(make, lambda report, lines: all_on_gpu(lines) and report.calls.get("cublasSetWorkspace_v2", 0) >= 2)
    check_faults(op, found, 2, kept=True)


@of(BLAS)
def test_blas_in_device_memory(op):
    """Operands in host, device and managed memory, mixed. The program calls CUDA itself, and ends where those calls
    fail: what it does not call is made to fail. A device that fails with the program's matrices on it stops the
    program."""
    workload = Workload("cuda_program", [*BLAS_OF, "-c", 1, "-n", 20, "-r", turn(op, 2)], {})
    check_in_device_memory(op, workload, *decisions(workload))


def check_in_device_memory(op, workload, done, baseline, lines):
    assert done.returncode == 0, done.stdout + done.stderr[-300:]
    assert on_gpu(lines)
    kinds = ("cublas", "cusolver", "cuEvent", "cuMemcpy2D", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuStreamWait")
    faults = [Fault("device data", f"{name}:{n}{more}", name, bool(more)) for name, count in baseline.calls.items()
              if name.startswith(kinds) and "Destroy" not in name and "Get" not in name
              for n in uses(count, 3)[1:] for more in ("", "+")]
    check(op.name, sweep(faults, device_attempt(workload)), least=8)


def device_attempt(workload):
    def once(fault):
        done, report = run(workload.program, workload.arguments, {**GPU, **workload.env, "TESTGPU_FAIL": fault.plant})
        if "cannot be made right" in done.stderr and done.returncode == -6:
            return Outcome(fault, "stopped",
                           [line for line in done.stderr.splitlines() if "cannot be made right" in line][0], 0)
        if not ended_well(
                done, "") and "\n0 calls wrong" not in "\n" + done.stdout and not done.stdout.endswith("\n0 wrong\n"):
            return Outcome(fault, "wrong",
                           f"{fault.plant}: {done.returncode} {done.stdout[-200:]} {done.stderr[-300:]}", 0)
        if not report.text or report.misuse:
            return Outcome(fault, "wrong", f"{fault.plant}: misuse of CUDA: {report.misuse[:2]}", 0)
        elsewhere = [f for f in parse_log(done.stderr) if f["why"] in ("error", "no_memory", "unsupported")]
        return Outcome(fault, "missed" if report.fired == 0 else "recovered" if elsewhere else "absorbed", fault.plant,
                       0)
    return once


# ---- LAPACK ----


def of_routine(lines, routine):
    return [f for f in lines if f["sym"].rstrip("_") == routine]


def asked(lines, routine):
    """Its calls that compute."""
    return [f for f in of_routine(lines, routine) if f["why"] != "workspace_query"]


def lapack_case(routine):
    return lambda seed: Workload("random_lapack", [*LAPACK_OF, "-c", 1, "-n", 20, "-s", seed, "-r", routine], {})


def of_first_calls(op):
    """The decisions on its routine."""
    return [f for seed in range(1, 7) for f in of_routine(decisions(lapack_case(turn(op))(seed))[2], turn(op))]


@of(LAPACK)
def test_lapack(op):
    first = of_first_calls(op)
    if not on_gpu(first):  # nothing to fail
        record(op.name, [])
        assert {f["why"] for f in first if f["why"] not in ("workspace_query", "empty")} == {"unsupported"}
        return
    own = lambda lines: of_routine(lines, turn(op))
    found = pick(lapack_case(turn(op)), lambda report, lines: on_gpu(own(lines)) and min(sizes_of(own(lines))) > 2
                 and not [f for f in lines if f["why"] == "unsupported"])
    # INFO of each call is in the last line.
    check_faults(op, found, 4, start_up=op.number == 0, expected=found[1].stdout.splitlines()[-1])


def is_wide(fields):
    return int(fields.get("m", 0)) < int(fields["n"])


def both_rings(report):
    """The report, with what may stay: where the first ring cannot be had, its job uses the other one, and the next
    job has the first."""
    report.text = re.sub(r"(testgpu leaked .*)host_allocations=\d+(.*) events=\d+",
                         rf"\1host_allocations=2\2 events={23 + 3 * STEPS}", report.text)
    return report


def check_lapack(op, found):
    workload, done, report = found
    check_faults(op, (workload, done, both_rings(report)), 3, expected=done.stdout.splitlines()[-1])


# The original's own calls of BLAS would leave other rings and handles behind than a matrix in
# panels.
ORIGINALS_BLAS = {"ACCEL_CPU": "blas2:*,blas3:*"}
PANEL_CASES = [(op, wide) for op in LAPACK if op.name in PANELS
               for wide in (False, True) if op.name in WIDE or not wide]


@pytest.mark.parametrize("op, wide", PANEL_CASES, ids=[op.name + ", wide" * wide for op, wide in PANEL_CASES])
def test_lapack_in_panels(op, wide):
    """A matrix above the device's memory. Whatever fails, nothing has been written, so no program is stopped."""
    routine = turn(op, 1)
    least, most, kilobytes = PANELS[op.name]
    memory = kilobytes * {"s": 1, "d": 2, "c": 2, "z": 4}[routine[0]]
    make = lambda seed: Workload("random_lapack", [
        *LAPACK_OF, "-c", 1, "-m", least, "-n", most, "-r", routine, "-s", seed
    ], {"ACCEL_MEMORY": f"{memory}K", **ORIGINALS_BLAS})

    def several(report, lines):
        mine = asked(lines, routine)
        return (all_on_gpu(mine) and (op.name not in WIDE or {wide} == set(map(is_wide, mine)))
                and report.calls.get("cuMemcpyDtoHAsync_v2", 0) >= 4
                and max(float(f["up_mb"]) for f in mine) * 1e3 > kilobytes)

    check_lapack(op, pick(make, several))


@of(LAPACK, IN_CORE)
def test_lapack_while_its_matrix_comes_up(op, tmp_path):
    """A matrix that fits, and comes up while it is factored. Whatever fails, nothing has been written."""
    routine, model = turn(op, 2), str(tmp_path / "model")
    calibrate_in_core(model, str(tmp_path), {})
    make = lambda seed: Workload("random_lapack", [
        *LAPACK_OF, "-c", 1, "-m", 130, "-n", 160, "-r", routine, "-s", seed
    ], {"ACCEL_MODEL": model, **ORIGINALS_BLAS})
    factors = "cusolverDnX" + {"posv": "potrf", "gesv": "getrf", "gels": "geqrf"}.get(op.name, op.name)
    check_lapack(
        op, pick(make, lambda report, lines: all_on_gpu(asked(lines, routine)) and report.calls.get(factors, 0) >= 3))


@of([op for op in LAPACK if any(name[0] == "d" for name in op.routines)])  # others are of complex matrices alone
def test_lapack_in_device_memory(op):
    if not on_gpu(of_first_calls(op)):
        pytest.skip("it is not for the GPU: nothing to fail")
    double = next(name for name in op.routines if name[0] == "d")
    workload = Workload("device_lapack", [double], {})
    done, baseline, lines = decisions(workload)
    if op.name in ON_CPU_ALONE:
        assert done.returncode == 0, done.stdout + done.stderr[-300:]
        assert {f["why"] for f in lines} == {ON_CPU_ALONE[op.name]}
    elif "combinations" in done.stdout:
        check_in_device_memory(op, workload, done, baseline, lines)
    else:
        pytest.skip("device_lapack.c has no such call")
