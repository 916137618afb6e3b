#!/usr/bin/python3 -B
"""[operation…] Of each operation of the table, or of each n-th one from the k-th on with FAULTS_SHARE=k/n, every
CUDA, cuBLAS and cuSOLVER call made to fail at its first, second, …
n-th use: once, for good, with an error after which each call fails; without memory; refused; the device lost while it
runs. Operands in host memory, whole and in tiles, and in device memory. Types take turns."""

import os
import re
import sys
import tempfile
from collections import namedtuple

from faults import GPU, STEPS, Fault, Outcome, ended_well, judge, plan, record, report_on, run, sweep, table, uses
from lib.calibrated import calibrate_copies, calibrate_in_core
from lib.log import parse_log
from lib.programs import TESTS
from lib.tap import Tap

Workload = namedtuple("Workload", "program arguments env")

# What OpenBLAS 0.3.21 itself gets wrong: calls.c, cases.h.
BLAS_OF = ["-l", TESTS / "liblacking.so", "-f", "y"]
LAPACK_OF = ["-f", "tyesmv", "-k", "@(uniform|well)"]
# More than fits on the device at once: operands go through in tiles, panels, strips or loads. Too
# little for less than two of them, enough for one.
TILES = {"gemm_batch": (60, "60K"), **dict.fromkeys("gemv symv hemv trmv trsv ger gerc syr her syr2 her2".split(), (150, "40K"))}
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
    """The first workload of make(seed) that wanted(process, report, decisions) likes, with its process and report."""
    for seed in SEEDS:
        workload = make(seed)
        done, report, lines = decisions(workload)
        if done.returncode == 0 and wanted(done, report, lines):
            return workload, done, report
    return None, None, None


def on_gpu(lines):
    return [f for f in lines if f["ran"] == "gpu0"]


def attempt(workload, baseline, expected="", may_stop=False):
    """What a fault does to a workload."""
    def once(fault):
        try:
            done, report = run(workload.program, workload.arguments, {**GPU, **workload.env, "TESTGPU_FAIL": fault.plant})
        except Exception as error:  # it hangs
            return Outcome(fault, "wrong", f"{fault.plant}: {error}", 0)
        return judge(fault, done, report, baseline, expected, may_stop)
    return once


def check(tap, name, op, found, most, start_up=False, expected="", kept=False):
    workload, _, baseline = found
    outcomes = sweep(list(plan(baseline, most, start_up)), attempt(workload, baseline, expected))
    report_on(tap, name, op, outcomes)
    if kept:
        finished = sum(o.kept > 0 for o in outcomes)
        tap.ok(finished > 0, f"{name}: after {finished} faults, what the GPU had finished was kept and the CPU did the rest")


# ---- BLAS ----


def whole(routine):
    return lambda seed: Workload("random_calls", [*BLAS_OF, "-c", 1, "-n", 24, "-s", seed, "-r", routine], {})


def in_tiles(routine, op):
    size, memory = TILES.get(op, (150, "100K"))
    return lambda seed: Workload("random_calls", [*BLAS_OF, "-c", 1, "-n", size, "-s", seed, "-r", routine], {"ACCEL_MEMORY": memory})


def beside(routine, model):
    return lambda seed: Workload("random_calls", [*BLAS_OF, "-c", 1, "-n", 560, "-s", seed, "-r", routine], {"ACCEL_MODEL": model})


def blas_op(tap, number, op, routines):
    turn = lambda i: routines[(number + i) % len(routines)]
    found = pick(whole(turn(0)), lambda done, report, lines: lines and len(on_gpu(lines)) == len(lines) and min(sizes_of(lines)) > 4)
    if not tap.ok(found[0], f"{op}: {turn(0)} runs on the GPU"):
        return
    check(tap, f"{op}, {turn(0)}", op, found, 6, start_up=number == 0)
    # Several parts: more comes down than by one copy, or more kernels run.
    writes_parts = op not in ("gemv", "symv", "hemv", "trmv", "trsv")  # a vector is written at the end
    several = lambda done, report, lines: lines and len(on_gpu(lines)) == len(lines) and parts_of(report) >= 3 and (
        not writes_parts or report.calls.get("cuMemcpyDtoHAsync_v2", 0) >= 2)
    found = pick(in_tiles(turn(1), op), several)
    if tap.ok(found[0], f"{op}: {turn(1)} runs on the GPU in parts"):
        check(tap, f"{op} in parts, {turn(1)}", op, found, 3, kept=writes_parts)
    if op in BESIDE:
        kernels_beside(tap, op, "z" + op)
    in_device_memory(tap, op, turn(2))


def kernels_beside(tap, op, routine):
    with tempfile.TemporaryDirectory() as folder:
        calibrate_copies(f"{folder}/model", folder)
        both = lambda done, report, lines: lines and len(on_gpu(lines)) == len(lines) and report.calls.get("cublasSetWorkspace_v2", 0) >= 2
        found = pick(beside(routine, f"{folder}/model"), both)
        if tap.ok(found[0], f"{op}: {routine} runs on the GPU, kernels beside each other"):
            check(tap, f"{op}, kernels beside each other, {routine}", op, found, 2, kept=True)


def sizes_of(lines):
    return [int(f[key]) for f in lines for key in ("m", "n", "k") if key in f] or [0]


def parts_of(report):
    return sum(n for name, n in report.calls.items() if name.startswith("cublas") and name[6] in "SDCZG" and "GetS" not in name and "GetP" not in name)


def in_device_memory(tap, op, routine):
    """Operands in host, device and managed memory, mixed. The program calls CUDA itself, and ends where those calls fail: what it
    does not call is made to fail. A device that fails with the program's matrices on it stops the program."""
    workload = Workload("cuda_program", [*BLAS_OF, "-c", 1, "-n", 20, "-r", routine], {})
    done, baseline, lines = decisions(workload)
    check_in_device_memory(tap, op, routine, workload, done, baseline, lines)


def check_in_device_memory(tap, op, routine, workload, done, baseline, lines):
    if not tap.ok(done.returncode == 0 and on_gpu(lines), f"{op}: {routine} runs where its operands are", done.stdout, done.stderr[-300:]):
        return
    faults = [Fault("device data", f"{name}:{n}{more}", name, bool(more)) for name, count in baseline.calls.items()
              if name.startswith(("cublas", "cusolver", "cuEvent", "cuMemcpy2D", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuStreamWait"))
              and "Destroy" not in name and "Get" not in name for n in uses(count, 3)[1:] for more in ("", "+")]
    report_on(tap, f"{op}, operands in device memory, {routine}", op, sweep(faults, device_attempt(workload)), least=8)


def device_attempt(workload):
    def once(fault):
        done, report = run(workload.program, workload.arguments, {**GPU, **workload.env, "TESTGPU_FAIL": fault.plant})
        if "cannot be made right" in done.stderr and done.returncode == -6:
            return Outcome(fault, "stopped", [line for line in done.stderr.splitlines() if "cannot be made right" in line][0], 0)
        if not ended_well(done, "") and "\n0 calls wrong" not in "\n" + done.stdout and not done.stdout.endswith("\n0 wrong\n"):
            return Outcome(fault, "wrong", f"{fault.plant}: {done.returncode} {done.stdout[-200:]} {done.stderr[-300:]}", 0)
        if not report.text or report.misuse:
            return Outcome(fault, "wrong", f"{fault.plant}: misuse of CUDA: {report.misuse[:2]}", 0)
        elsewhere = [f for f in parse_log(done.stderr) if f["why"] in ("error", "no_memory", "unsupported")]
        return Outcome(fault, "missed" if report.fired == 0 else "recovered" if elsewhere else "absorbed", fault.plant, 0)
    return once


# ---- LAPACK ----


def lapack_case(routine):
    return lambda seed: Workload("random_lapack", [*LAPACK_OF, "-c", 1, "-n", 20, "-s", seed, "-r", routine], {})


def in_panels(routine, op):
    least, most, kilobytes = PANELS[op]
    memory = kilobytes * {"s": 1, "d": 2, "c": 2, "z": 4}[routine[0]]
    arguments = [*LAPACK_OF, "-c", 1, "-m", least, "-n", most, "-r", routine]
    # The original's own calls of BLAS would leave other rings and handles behind than this one.
    return lambda seed: Workload("random_lapack", [*arguments, "-s", seed], {"ACCEL_MEMORY": f"{memory}K", "ACCEL_CPU": "blas2:*,blas3:*"})


def is_wide(fields):
    return int(fields.get("m", 0)) < int(fields["n"])


def lapack_op_in_panels(tap, op, routine, wide=False):
    """A matrix above the device's memory. Whatever fails, nothing has been written, so no program is stopped."""
    def several(done, report, lines):
        mine = [f for f in lines if f["sym"].rstrip("_") == routine and f["why"] != "workspace_query"]
        return mine and len(on_gpu(mine)) == len(mine) and (op not in WIDE or {wide} == set(map(is_wide, mine))) and report.calls.get("cuMemcpyDtoHAsync_v2", 0) >= 4 and max(
            float(f["up_mb"]) for f in mine) * 1e3 > PANELS[op][2]
    found = pick(in_panels(routine, op), several)
    if tap.ok(found[0], f"{op}: {routine} runs on the GPU in panels{', wide' * wide}"):
        # Where the first ring cannot be had, its job uses the other one, and the next job has the
        # first: both stay, as they may.
        both = found[2]
        both.text = re.sub(r"(testgpu leaked .*)host_allocations=\d+(.*) events=\d+", rf"\1host_allocations=2\2 events={23 + 3 * STEPS}", both.text)
        check(tap, f"{op} in panels, {routine}{', wide' * wide}", op, found, 3, expected=found[1].stdout.splitlines()[-1])


def lapack_op_in_core(tap, op, routine):
    """A matrix that fits, and comes up while it is factored. Whatever fails, nothing has been written."""
    with tempfile.TemporaryDirectory() as folder:
        model = f"{folder}/model"
        calibrate_in_core(model, folder, {})
        arguments = [*LAPACK_OF, "-c", 1, "-m", 130, "-n", 160, "-r", routine]
        def several(done, report, lines):
            mine = [f for f in lines if f["sym"].rstrip("_") == routine and f["why"] != "workspace_query"]
            return mine and len(on_gpu(mine)) == len(mine) and report.calls.get("cusolverDnX" + {"posv": "potrf", "gesv": "getrf", "gels": "geqrf"}.get(op, op), 0) >= 3
        found = pick(lambda seed: Workload("random_lapack", [*arguments, "-s", seed], {"ACCEL_MODEL": model, "ACCEL_CPU": "blas2:*,blas3:*"}), several)
        if tap.ok(found[0], f"{op}: {routine} runs on the GPU while its matrix comes up"):
            both = found[2]
            both.text = re.sub(r"(testgpu leaked .*)host_allocations=\d+(.*) events=\d+", rf"\1host_allocations=2\2 events={23 + 3 * STEPS}", both.text)
            check(tap, f"{op} while it comes up, {routine}", op, found, 3, expected=found[1].stdout.splitlines()[-1])


def lapack_op(tap, number, op, routines):
    routine = routines[number % len(routines)]
    own = lambda lines: [f for f in lines if f["sym"].rstrip("_") == routine]
    tried = [own(decisions(lapack_case(routine)(seed))[2]) for seed in range(1, 7)]
    if not any(map(on_gpu, tried)):
        busy = [f for lines in tried for f in lines if f["why"] not in ("workspace_query", "empty")]
        tap.ok(busy and {f["why"] for f in busy} == {"unsupported"}, f"{op}: {routine} is not for the GPU: nothing to fail", *busy[:3])
        record(op, [])
        return
    found = pick(lapack_case(routine), lambda done, report, lines: on_gpu(own(lines)) and min(sizes_of(own(lines))) > 2
                 and not [f for f in lines if f["why"] == "unsupported"])
    if not tap.ok(found[0], f"{op}: {routine} runs on the GPU"):
        return
    # INFO of each call is in the last line.
    check(tap, f"{op}, {routine}", op, found, 4, start_up=number == 0, expected=found[1].stdout.splitlines()[-1])
    if op in PANELS:
        for wide in (False, True) if op in WIDE else (False,):
            lapack_op_in_panels(tap, op, routines[(number + 1) % len(routines)], wide)
    if op in IN_CORE:
        lapack_op_in_core(tap, op, routines[(number + 2) % len(routines)])
    double = next((name for name in routines if name[0] == "d"), None)
    if not double:  # of complex matrices alone
        return
    workload = Workload("device_lapack", [double], {})
    done, baseline, lines = decisions(workload)
    if op in ON_CPU_ALONE:
        tap.ok(done.returncode == 0 and {f["why"] for f in lines} == {ON_CPU_ALONE[op]}, f"{op}: {double} with operands in device memory is the CPU's", done.stdout, done.stderr[-300:])
    elif "combinations" in done.stdout:
        check_in_device_memory(tap, op, double, workload, done, baseline, lines)


# ---- All ----

tap = Tap()
blas, lapack = table()
first, step = map(int, os.environ.get("FAULTS_SHARE", "1/1").split("/"))
wanted = sys.argv[1:] or [*blas, *lapack][first - 1::step]
for op in wanted:
    if op not in blas and op not in lapack:
        tap.ok(False, f"{op} is an operation of the table", *blas, *lapack)
for test, rows in ((blas_op, blas), (lapack_op, lapack)):
    for number, (op, routines) in enumerate(rows.items()):
        if op in wanted:
            test(tap, number, op, routines)
tap.done()
