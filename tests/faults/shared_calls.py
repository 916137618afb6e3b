"""Faults of calls that several devices share: what must hold of each run."""

from collections import Counter

from faults.faults import QUICK, Fault, Outcome, amiss, check, plan, run, sweep, uses
from lib.log import complaints, parse_log
from lib.programs import LONG
from lib.split import several

MOST = 6 if LONG else 2
GOOD = {"+".join(f"gpu{i}" for i in range(3) if some >> i & 1) + cpu for some in range(1, 8)
        for cpu in ("", "+cpu")} | {"cpu"}


def env_of(extra):
    return {**several(2), **QUICK, **extra}


def judge(fault, done, report, names, calls):
    """The results are right and complete, each call has one line, and the lines say of each failure what it was."""
    lines = [line for line in parse_log(done.stderr) if line["sym"] in names]  # an original may call others
    spoken = complaints(done)
    outcome = amiss(fault, done, report, lines, calls, GOOD, spoken)
    if outcome:
        return outcome
    reasons = Counter(line["why"] for line in lines)
    elsewhere = reasons["error"] + reasons["no_memory"] + reasons["no_gpu"] + reasons["unsupported"]
    # A device that is left alone has no further part.
    for gpu in ("gpu0", "gpu1", "gpu2"):
        if any(f"accel: {gpu} is left alone" in line
               for line in spoken) and gpu in lines[-1]["ran"] and len(lines) > 20:
            return Outcome(fault, "wrong", f"{fault.plant}: {gpu} goes on {spoken[-3:]}", 0)
    kept = sum(line["ran"].endswith("+cpu") for line in lines)
    return Outcome(fault, "recovered" if elsewhere or spoken else "absorbed", "", kept)


def break_each(program, arguments, extra, shared_least=3):
    """Runs a workload with each call of CUDA and cuBLAS failing in turn, and with a device lost at each copy and
    kernel, or some of them. Returns the lines of the run without a fault."""
    done, baseline = run(program, arguments, env_of(extra))
    lines = parse_log(done.stderr)
    assert done.returncode == 0, done.stdout[-400:]
    assert sum("+" in line["ran"] for line in lines) >= shared_least, lines
    assert not complaints(done), complaints(done)
    faults = list(plan(baseline, MOST))
    faults += [
        Fault("lost", f"async:{n}=CUDA_ERROR_{code}", "async", True)
        for n in uses(baseline.operations(), 80 if LONG else 12)
        for code in (("LAUNCH_FAILED", "ECC_UNCORRECTABLE") if LONG else ("LAUNCH_FAILED",))
    ]

    def attempt(fault):
        try:
            ended, report = run(program, arguments, {**env_of(extra), "TESTGPU_FAIL": fault.plant})
        except Exception as error:  # it hangs
            return Outcome(fault, "wrong", f"{fault.plant}: {error}", 0)
        return judge(fault, ended, report, {line["sym"] for line in lines}, len(lines))

    check("several devices", sweep(faults, attempt))
    return lines
