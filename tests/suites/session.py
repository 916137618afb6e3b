"""One run of a suite under pytest, without libaccel or with it on the test GPU, to its end across crashes."""

import collections
import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from lib.log import summaries
from lib.programs import TEST_GPU, VENV_PYTHON, clean_env

HERE = Path(__file__).resolve().parent
SITE = next((Path(VENV_PYTHON).parents[1] / "lib").glob("python3*/site-packages"), Path())

# A table at exit, not a line a call: there are millions. No delays: a test has some thousand calls.
MODES = {
    "native": {},
    "libaccel": {**TEST_GPU, "TESTGPU_DELAY_US": "0", "ACCEL_SUMMARY": "json",
                 "TESTGPU_THREADS": "1",  # some of scikit-learn's fits take a hundred thousand iterations
                 "TESTGPU_MEMORY": "8G"},  # SciPy asks for all singular vectors of a long matrix
}
SAME = {
    # One thread to a product, so that results do not depend on what else the machine does, and the
    # runs, which go at once, do not wait for each other. scikit-learn's tests set OpenBLAS's number
    # of threads to that of joblib's CPUs.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "LOKY_MAX_CPU_COUNT": "1",
    # Which tests have memory enough must not depend on the moment.
    "NPY_AVAILABLE_MEM": "2GB",
    "SCIPY_AVAILABLE_MEM": "2GB",
    "SKLEARN_SEED": "0",
}

# outcomes: id -> outcome. listed: every id that was collected. gpu: routine -> calls that ran on
# the GPU. bad: rows of the summary that a healthy GPU does not give, and misuse of it. output: what
# pytest printed.
Session = collections.namedtuple("Session", "outcomes listed gpu bad output")


def read_events(record):
    """(outcomes, listed, [ids started and not ended])"""
    outcomes, listed, open_ids = {}, set(), {}
    for line in record.read_text().splitlines():
        kind, name, *rest = json.loads(line)
        if kind == "listed":
            listed.add(name)
        elif kind == "started":
            open_ids[name] = True
        else:
            open_ids.pop(name, None)
            outcomes[name] = rest[0]
    return outcomes, listed, list(open_ids)


def read_summaries(folder):
    """Of all processes that came to their end: (routine -> calls on the GPU, what is wrong)."""
    gpu, bad = collections.Counter(), []
    for log in sorted(folder.glob("log.*")):
        for row in [row for s in summaries(log.read_text(errors="replace")) for row in s["rows"]]:
            if row["ran"] == "gpu0":
                gpu[row["routine"]] += row["calls"]
            if row["ran"] == "gpu0+cpu" or row["why"] in ("error", "no_gpu", "no_memory"):
                bad.append("{routine} ran={ran} why={why}: {calls}".format(**row))
    for report in sorted(folder.glob("testgpu.*")):
        faults = re.search(r"testgpu faults .*", report.read_text(errors="replace"))
        if not faults or faults[0] != "testgpu faults n=0":
            bad.append(f"{report}: {faults and faults[0]}")
    return gpu, bad


def wait(process, record, limit):
    """How the process ended, or None where it was killed: nothing had happened for so many seconds."""
    size, since = -1, time.monotonic()
    while process.poll() is None:
        time.sleep(0.2)
        if record.stat().st_size != size:
            size, since = record.stat().st_size, time.monotonic()
        elif time.monotonic() - since > limit:
            process.send_signal(signal.SIGABRT)  # pytest's fault handler prints where every thread is
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            return None
    return process.returncode


def name_of_end(code):
    if code is None:
        return "hung"
    return signal.Signals(-code).name if code < 0 else f"exit status {code}"


def run_session(mode, paths, folder, options=(), only=None, limit=600, root=SITE, hypothesis=True):
    """Runs pytest on these files, folders or classes below root, and once more for what is left after each crash. A
    test that did not end has the signal's name as its outcome. hypothesis: pytest's plug-in of that name, which takes most of pytest's start."""
    folder = Path(folder)
    folder.mkdir(parents=True)
    record, output = folder / "record", folder / "output"
    record.touch()
    crashes = {}
    command = [VENV_PYTHON, "-m", "pytest", "-c", os.devnull, "--rootdir", str(root), "-p", "record",
               "-p", "no:cacheprovider", "--continue-on-collection-errors", *["--hypothesis-seed=0"] * hypothesis, "-q", "--tb=short",
               *options, *[str(root / path) for path in paths]]
    if only is not None:
        (folder / "only").write_text("\n".join(only) + "\n")
    while True:
        with tempfile.TemporaryDirectory(prefix="accel-suite-", ignore_cleanup_errors=True) as home, \
                open(output, "ab") as out:
            env = {**clean_env(home), **SAME, **MODES[mode], "TMPDIR": home, "PYTHONPATH": str(HERE),
                   # numpy-config, and what builds the suites' examples
                   "PATH": f"{Path(VENV_PYTHON).parent}:{os.environ['PATH']}",
                   "ACCEL_SUITES_RECORD": str(record), "ACCEL_LOG_FILE": str(folder / "log.%p"),
                   "TESTGPU_REPORT": str(folder / "testgpu.%p")}
            if not hypothesis:
                env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
            if only is not None:
                env["ACCEL_SUITES_ONLY"] = str(folder / "only")
            process = subprocess.Popen(command, cwd=home, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                       start_new_session=True)
            try:
                code = wait(process, record, limit)
            finally:
                with contextlib.suppress(ProcessLookupError):  # what the tests left behind, too
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        outcomes, listed, unfinished = read_events(record)
        unfinished = [name for name in unfinished if name not in crashes]
        crashes.update({name: name_of_end(code) for name in unfinished})
        if not unfinished:
            break
    # The end itself counts as a test: a crash in a destructor, or before the first test. 1: some
    # tests failed; 5: nothing was left.
    end = "clean" if code in (0, 1, 5) else name_of_end(code)
    gpu, bad = read_summaries(folder)
    return Session({**outcomes, **crashes, "the end of pytest": end}, listed, gpu, bad, output)
