"""What the fault tests share: the operations of the routine table, runs with a fault planted, and what became of them.

A run with a fault has one of these outcomes:
    recovered  the program ended well, every result is right, and the log says which calls were left to the CPU or
               finished there
    absorbed   the same, and nothing is left to the CPU: a second attempt, or what failed was not needed
    stopped    the program was stopped with the message that a result cannot be made right
    wrong      anything else: a wrong result, a crash, a hang, silence or noise, misuse of CUDA, something that is not
               given back
"""

import json
import os
import re
import tempfile
from collections import Counter, defaultdict, namedtuple
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lib.log import parse_log, said
from lib.programs import ROOT, TEST_GPU, start
from lib.table import routine_table

# The threads of a BLAS change the rounding, and delays on the device the order: here, neither.
QUICK = {"OPENBLAS_NUM_THREADS": "1", "TESTGPU_DELAY_US": "0"}
GPU = {**TEST_GPU, **QUICK, "ACCEL_LOG": "1"}

# `lasting`: it goes on failing. `function`: what is made to fail; "async" for an operation while it
# runs.
Fault = namedtuple("Fault", "kind plant function lasting")
Outcome = namedtuple("Outcome", "fault what detail kept")

# What cannot be given back once these fail: what they should have freed, and what may still be in
# use.
KEEPING = re.compile(r"cuStreamSynchronize|Destroy|Free")
STOPPED = "cannot be made right"

# Events behind the steps of each of a schedule's engines: gpu/cuda/stream_ctx.h.
STEPS = int(re.search(r"#define CTX_STEPS (\d+)", (ROOT / "gpu/cuda/stream_ctx.h").read_text())[1])


def table():
    """operation -> its routines, of BLAS and of LAPACK."""
    found = []
    for row in "ROUTINE", "LAPACK":
        rows = defaultdict(list)
        for name, op in routine_table(row).items():
            rows[op].append(name)
        found.append(dict(rows))
    return found


# ---- The test GPU's report ----


class Report:
    """What the test GPU says at exit; `text` is empty where the program was stopped."""

    def __init__(self, text):
        self.text = text
        self.calls = {name: int(n) for name, n in re.findall(r"call name=(\S+) n=(\d+)", text)}
        self.fired = sum(int(n) for n in re.findall(r"planted .* fired=(\d+)", text))
        self.misuse = [line for line in text.splitlines() if line.startswith("testgpu fault ")]

    def operations(self):
        """Copies and kernels on streams, at least."""
        return sum(n for name, n in self.calls.items()
                   if re.match(r"cuMemcpy.*Async|cublas[SDCZ]|cublasGemmEx|cusolverDn[SDCZX]\w*$", name)
                   and not name.endswith("_bufferSize"))

    def left(self):
        """What has not been given back, less what a failed context holds, which nobody can give back."""
        line = re.search(r"testgpu leaked (.*)", self.text)
        return {key: int(n) for key, n in re.findall(r"(\w+)=(\d+)", line[1])} if line else {}


def run(program, arguments, env, timeout=120):
    """The finished process, or what it did not do in time; and the test GPU's report."""
    with tempfile.TemporaryDirectory(prefix="accel-faults-") as folder:
        path = Path(folder, "report")
        done = start(program, *arguments, env={**env, "TESTGPU_REPORT": str(path)}, timeout=timeout)
        return done, Report(path.read_text() if path.exists() else "")


# ---- Which faults ----


def uses(count, most):
    """The first, the second, … use: all, or of many the first, the last and some between."""
    if count <= most:
        return list(range(1, count + 1))
    return sorted({1 + round(i * (count - 1) / (most - 1)) for i in range(most)})


ALLOCATES = re.compile(r"cuMem(Host)?Alloc|cublasCreate|cusolverDnCreate")
START = re.compile(r"cuInit|cuDriver|cuDevice|cublasGetProperty")
TEXT = re.compile(r"cuGetError|cublasGetStatusName")  # nothing can be planted there
SETS_UP = re.compile(r"(cublas|cusolverDn)(Create|Destroy|Set)|bufferSize")


def library(function):
    return "CUBLAS" if function.startswith("cublas") else "CUSOLVER" if function.startswith("cusolver") else "CUDA"


def plan(report, most, start_up=False):
    """Faults for a run that made these calls, `most` of each function and kind. start_up: also while CUDA starts."""
    for function, count in report.calls.items():
        if TEXT.match(function) or (START.match(function) and not start_up):
            continue
        lib, few = library(function), uses(count, min(most, 3))
        allocates = ALLOCATES.match(function)
        for n in uses(count, most):
            yield Fault("no memory" if allocates else "once", f"{function}:{n}", function, False)
        for n in few:
            if lib == "CUDA":
                yield Fault("sticky", f"{function}:{n}=CUDA_ERROR_LAUNCH_FAILED", function, True)
            yield Fault("no memory" if allocates else "for good", f"{function}:{n}+", function, True)
        if lib == "CUDA" and not allocates:
            for n in few:
                yield Fault("no memory", f"{function}:{n}=CUDA_ERROR_OUT_OF_MEMORY", function, False)
        elif lib != "CUDA" and not SETS_UP.search(function):
            for n in few:
                failed, refused = f"{lib}_STATUS_ALLOC_FAILED", f"{lib}_STATUS_NOT_SUPPORTED"
                yield Fault("no memory", f"{function}:{n}={failed}", function, False)
                yield Fault("no memory", f"{function}:{n}={failed},{function}:{n + 1}={failed}", function, False)
                yield Fault("no memory", f"{function}:{n}+={failed}", function, True)
                yield Fault("refused", f"{function}:{n}={refused}", function, False)
                yield Fault("refused", f"{function}:{n}+={refused}", function, True)
    codes = ("ILLEGAL_ADDRESS", "ECC_UNCORRECTABLE", "LAUNCH_FAILED")
    for i, n in enumerate(uses(report.operations(), 3 * most)):
        yield Fault("lost", f"async:{n}=CUDA_ERROR_{codes[i % 3]}", "async", True)


# ---- What became of a run ----


def ended_well(done, expected):
    """Whether the program's last line is the expected one, or has no wrong call."""
    last = (done.stdout.splitlines() or [""])[-1]
    return done.returncode == 0 and (last == expected
                                     if expected else re.search(r"\b0 (calls )?wrong", done.stdout) is not None)


def leak(fault, given_up, report, baseline):
    """What is left at exit and should not be, as text. A GPU that is left alone is left with nothing of ours; one
    that is in use, with no more of what does not depend on sizes than without the fault, except for what a stream
    context makes when it first follows a schedule, or first one with kernels beside each other: a call that finds less
    on the device may do so."""
    left, usual = report.left(), dict(baseline.left())
    made = left["streams"] - usual[
        "streams"]  # those of copies come with events of three engines, the one beside with its own
    if made in (1, 2, 3):
        usual["streams"] += made
        usual["events"] += {1: 1, 2: 3, 3: 4}[made] * STEPS
    kinds = ("device_allocations", "host_allocations", "streams", "events", "handles")
    if fault.lasting or KEEPING.search(fault.function):
        return ""
    more = [
        f"{kind}={left[kind]}" for kind in kinds
        if given_up and left[kind] > 0 or not given_up and kind != "device_allocations" and left[kind] > usual[kind]
    ]
    return " ".join(more)


def judge(fault, done, report, baseline, expected="", may_stop=False):
    """The outcome of a run with this fault. baseline: the report of the run without one."""
    def wrong(why):
        lines = [line for line in done.stderr.splitlines() if not line.startswith("accel pid=")]
        return Outcome(
            fault, "wrong",
            f"{fault.plant}: {why} (status {done.returncode}) {done.stdout[-200:]} {' | '.join(lines[-4:])[-500:]}", 0)

    spoken = said(done)
    if STOPPED in done.stderr and done.returncode == -6:
        return Outcome(fault, "stopped", spoken[-1], 0) if may_stop else wrong("stopped")
    if not ended_well(done, expected):
        return wrong("not the right results")
    if not report.text or report.misuse:
        return wrong(f"misuse of CUDA: {report.misuse[:2]}")
    try:
        lines = parse_log(done.stderr)
    except ValueError as error:
        return wrong(error)
    if report.fired == 0:
        return Outcome(fault, "missed", fault.plant, 0)
    reasons = Counter(f["why"] for f in lines)
    given_up = bool(reasons["error"] or reasons["no_gpu"])
    routines = [line for line in spoken
                if "is left to the CPU from here on" in line]  # what else there is, is about the device
    device = [line for line in spoken if line not in routines]
    if bool(spoken) != given_up and not (device and "left alone" in device[0]) or len(device) > 1 or len(
            set(routines)) < len(routines):
        return wrong(f"{len(spoken)} lines are said")
    if not all(
            re.search(r"CUDA_ERROR|CUBLAS|cuBLAS|CUSOLVER|cuSOLVER|out of memory|not found", line) for line in spoken):
        return wrong("the line does not say what failed")
    remains = leak(fault, bool(device), report, baseline)
    if remains:
        return wrong("left behind: " + remains)
    left_to_cpu = [f for f in lines if f["why"] in ("error", "no_gpu", "no_memory", "unsupported")]
    kept = sum(f["ran"] == "gpu0+cpu" and float(f.get("down_mb", 0)) > 0 for f in lines)
    return Outcome(fault, "recovered" if left_to_cpu or spoken else "absorbed", "", kept)


def sweep(faults, attempt):
    """The outcomes of attempt(fault) for all faults, as many at once as there are cores."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(attempt, faults))


# ---- Saying it ----


def record(row, outcomes):
    """A line for the table that tests/faults/run prints."""
    path = os.environ.get("FAULTS_RECORD")
    injected = [o for o in outcomes if o.what != "missed"]
    line = {
        "row": row, "kinds": Counter(o.fault.kind for o in injected), "outcomes": Counter(o.what for o in injected),
        "kept": sum(o.kept > 0 for o in injected),
        "messages": sorted({o.detail for o in injected if o.what == "stopped"})
    }
    if path:
        with open(path, "a") as out:  # one write: several tests append
            out.write(json.dumps(line) + "\n")


def amiss(fault, done, report, lines, calls, places, spoken):
    """Of a program that compares its results, and whose calls have a line each: an Outcome if something is wrong that
    a fault must not do, or if the fault was not met; else None. places: where a call may run; spoken: what libaccel
    says."""
    def wrong(why):
        return Outcome(fault, "wrong",
                       f"{fault.plant}: {why} (status {done.returncode}) {done.stdout[-200:]} {said(done)[-3:]}", 0)

    if done.returncode != 0 or " 0 wrong" not in done.stdout:
        return wrong("not the right results")
    if report.misuse or not report.text:
        return wrong(f"misuse of CUDA: {report.misuse[:2]}")
    ran = Counter(line["ran"] for line in lines)
    if len(lines) != calls or set(ran) - places:
        return wrong(f"{len(lines)} lines of {calls}: {ran}")
    if report.fired == 0:
        return Outcome(fault, "missed", fault.plant, 0)
    return wrong("a message comes twice") if len(set(spoken)) < len(spoken) else None


def check(row, outcomes, least=20):
    """No outcome of a sweep is wrong, and so many faults were met; writes its line in the table. Returns what was
    counted."""
    record(row, outcomes)
    count = Counter(o.what for o in outcomes)
    wrong = [o.detail for o in outcomes if o.what == "wrong"]
    assert not wrong, "\n".join([f"{len(wrong)} wrong: {dict(count)}", *wrong[:6]])
    assert len(outcomes) - count["missed"] >= least, f"of {least} faults: {dict(count)}"
    return count
