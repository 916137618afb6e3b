"""One run of an example: what it prints and draws, and what libaccel says of it."""

import collections
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lib.log import summaries
from lib.programs import NO_GPU, TEST_GPU, clean_env
from suites.session import read_summaries

HERE = Path(__file__).resolve().parent
ONE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "LOKY_MAX_CPU_COUNT": "1"}
SAME = {**ONE, "MPLBACKEND": "Agg", "TZ": "UTC", "PYTHONWARNINGS": "default", "COLUMNS": "120", "POLARS_MAX_THREADS": "1",
        # What asks for the network is refused at once.
        **{name: "http://127.0.0.1:9" for name in ("http_proxy", "https_proxy", "ftp_proxy")}, "no_proxy": ""}
SUMMARY = {"ACCEL_SUMMARY": "json"}
MODES = {
    "plain": {},
    "no GPU": {**NO_GPU, **SUMMARY},
    "test GPU": {**TEST_GPU, **SUMMARY, "TESTGPU_DELAY_US": "0", "TESTGPU_THREADS": "1", "TESTGPU_MEMORY": "8G"},
    # The kernels that OpenBLAS has for other processors, which round differently.
    "Haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "Sandybridge": {"OPENBLAS_CORETYPE": "Sandybridge"},
    "Nehalem": {"OPENBLAS_CORETYPE": "Nehalem"},
}

# Where it can be, no session of its own: Linux gives each session its own share of the processors,
# which the runner's priority says nothing of.
GROUP = {"process_group": 0} if sys.version_info >= (3, 11) else {"start_new_session": True}

# end: "ok", "too long", or how it failed. seconds: on the wall. texts: name -> lines; arrays: name
# -> bytes of a file in NumPy's format. loaded: whether the example's process had libaccel. calls:
# how many it looked at; gpu: how many ran there. bad: what a healthy GPU does not say.
Output = collections.namedtuple("Output", "end seconds texts arrays loaded calls gpu bad")

# What differs from run to run by nature: addresses, times of day, dates, the seconds in a file.
CHANGING = [(r"\b0x[0-9a-fA-F]{6,}\b", "0x"), (r"\b\d\d:\d\d:\d\d\b", "hh:mm:ss"), (r"\(D:20\d{12}\)", "(date)"),
            (re.escape(tempfile.gettempdir()) + r"/[\w./-]*", "TMPDIR")]
# The second is what Matplotlib says of its first start in a home, if that takes more than 5 s.
LEFT_OUT = ("accel: ", "Matplotlib is building the font cache")


def drawn(pdf):
    """What the pages of a file of R's pdf() are drawn by, without fonts, colours and tables."""
    return "".join(re.findall(r"(?ms)^<< /Length \d+ \d+ R >>\nstream\n(.*?)^endstream", pdf)) if pdf.startswith("%PDF") else pdf


def lines_of(data):
    """What is printed, without what differs by nature and what libaccel itself says."""
    text = drawn(data.decode(errors="replace"))
    for pattern, same in CHANGING:
        text = re.sub(pattern, same, text)
    return [line for line in text.splitlines() if not line.startswith(LEFT_OUT)]


def how_it_ended(process, limit):
    """The kernel limits the processor's time; what only waits ends, too."""
    try:
        code = process.wait(20 * limit)
    except subprocess.TimeoutExpired:
        return "too long"
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return "too long"
    if code < 0:
        return signal.Signals(-code).name
    return f"exit status {code}" if code else "ok"


def run(example, mode, limit, extra={}):
    """limit: of the processor's time, in seconds, for each process. With the test GPU it is larger: that is no fast one."""
    limit *= 5 if mode == "test GPU" else 1
    with tempfile.TemporaryDirectory(prefix="accel-gallery-", ignore_cleanup_errors=True) as home:
        for name in ("out", "log", "cwd"):
            Path(home, name).mkdir()
        env = {**clean_env(home), **SAME, **MODES[mode], **extra, "TMPDIR": home, "GALLERY_OUT": f"{home}/out",
               "ACCEL_LOG_FILE": f"{home}/log/log.%p", "TESTGPU_REPORT": f"{home}/log/testgpu.%p"}
        argv = ["bash", "-c", f'ulimit -t {limit}; exec "$@"', "bash", *map(str, example.argv)]
        with open(f"{home}/stdout", "wb") as out, open(f"{home}/stderr", "wb") as err:
            begin = time.monotonic()
            process = subprocess.Popen(argv, cwd=f"{home}/cwd", env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err, **GROUP)
            try:
                end = how_it_ended(process, limit)
                seconds = time.monotonic() - begin
            finally:
                with contextlib.suppress(ProcessLookupError):  # what the example left behind, too
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        files = sorted(Path(home, "out").iterdir())
        texts = {name: lines_of(Path(home, name).read_bytes()) for name in ("stdout", "stderr")}
        texts.update({path.stem: lines_of(path.read_bytes()) for path in files if path.suffix == ".txt"})
        logs = Path(home, "log")
        gpu, bad = read_summaries(logs)
        calls = sum(s["calls"] for log in logs.glob("log.*") for s in summaries(log.read_text(errors="replace")))
        return Output(end, seconds, texts, {path.stem: path.read_bytes() for path in files if path.suffix == ".npy"},
                      Path(home, "out/libaccel").exists(), calls, sum(gpu.values()),
                      [line for line in bad if not line.endswith(": None")])  # of a process that was killed there is no report
