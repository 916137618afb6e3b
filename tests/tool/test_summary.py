#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""accel run --summary: one table of all processes, however the program ends; the program's exit status, signals and job
control are its own."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import subprocess
import tempfile
import termios
import time

import pytest

from lib.log import summaries, table_of
from lib.logs import decision, write
from lib.programs import BUILD, DEBIAN_PYTHON, SHIM, clean_env, start

TOOL = str(BUILD / "accel")
GPU = {"ACCEL_CUDA_DIR": str(BUILD / "testgpu"), "ACCEL_POLICY": "gpu"}
ENV = {**clean_env(tempfile.gettempdir()), **GPU}
# Two products, and what follows them.
CALLS = """import multiprocessing, numpy, os, signal, subprocess, sys, time
a = numpy.ones((64, 64))
def call(_=0): return (a @ a)[0, 0]
call(), call()
"""
ANOTHER = "import numpy, os; a = numpy.ones((64, 64)); a @ a"


def run(program, form="json", env=None):
    return start(TOOL, "run", "--summary", "--", DEBIAN_PYTHON, "-c", program,
                 env={**GPU, "ACCEL_SUMMARY": form, **(env or {})})


def counts(text):
    """Calls and processes of the summaries."""
    return [(s["calls"], s["processes"]) for s in summaries(text)]


# ---- Every way to end ----

KILLED = [(f"SIG{s}", f"os.kill(os.getpid(), signal.SIG{s})", -signal.Signals["SIG" + s], 2, 1)
          for s in ("TERM", "HUP", "KILL", "SEGV")]
# The child would hold a pipe open.
GOES_FIRST = """r, w = os.pipe()
if os.fork() == 0:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1); os.dup2(1, 2)
    call(); os.write(w, b'x'); signal.alarm(3); time.sleep(60)
os.read(r, 1); os._exit(5)"""
POOL = "p = multiprocessing.get_context('fork').Pool(2); p.map(call, range(6), 1); p.terminate(); p.join()"


@pytest.mark.parametrize("end, status, calls, processes", [pytest.param(*case, id=name) for name, *case in (
    ("at the end", "", 0, 2, 1), ("exit()", "sys.exit(3)", 3, 2, 1), ("_exit()", "os._exit(4)", 4, 2, 1),
    ("abort()", "os.abort()", -signal.SIGABRT, 2, 1), *KILLED,
    ("exec", f"os.execv({DEBIAN_PYTHON!r}, [{DEBIAN_PYTHON!r}, '-c', {ANOTHER!r}])", 0, 3, 2),
    ("a fork without exec", "if os.fork() == 0: call(); os._exit(0)\nos.wait()", 0, 3, 2),
    ("a fork whose child is killed", "if os.fork() == 0: call(); os.kill(os.getpid(), signal.SIGKILL)\nos.wait()", 0, 3,
     2),
    ("a parent that goes first", GOES_FIRST, 5, 3, 2), ("multiprocessing.Pool", POOL, 0, 8, None),
    ("spawned processes", f"subprocess.run([{DEBIAN_PYTHON!r}, '-c', {ANOTHER + '; os._exit(0)'!r}])", 0, 3, 2))])
def test_one_summary_of_all_calls(end, status, calls, processes):
    done = run(CALLS + end)
    assert done.returncode == status, done.stderr
    (found,) = counts(done.stderr)
    assert found == (calls, processes or found[1])


# ---- What a person sees ----


def test_the_table_and_a_hint():
    lines = run(CALLS + "time.sleep(1); os._exit(0)", "1").stderr.splitlines()
    assert len(lines) > 6
    assert lines[0].startswith(f"accel: summary of {DEBIAN_PYTHON}: ")
    assert lines[3].split()[1:6] == ["dgemm", "64", "2", "gpu0", "forced"]
    assert lines[4].startswith("accel: outside these calls ")
    assert max(map(len, lines)) <= 100
    assert lines[-1].startswith("accel: hint: ")
    assert lines[-1].endswith(" % of the time is outside these calls: no setting will help there")


# On one core, so that it takes long enough for a hint on any machine.
STARTING = {"ACCEL_POLICY": "auto", "OPENBLAS_NUM_THREADS": "1", "TESTGPU_START_MS": "100"}
LARGE = "import numpy\na = numpy.ones((3000, 3000))\na @ a"
HINT = ("1 call ran on the CPU while the GPU was starting, in ",
        "ACCEL_START=wait makes calls wait for it, which took ", ", and would save about ")


@pytest.mark.parametrize("form, width", [("1", 100), ("json", 2000)], ids=["the table", "JSON"])
def test_a_hint_to_accel_start(form, width):
    done = run(LARGE, form, STARTING)
    text = " ".join(done.stderr.replace("\naccel:",
                                        "").split()) if form == "1" else "\n".join(summaries(done.stderr)[0]["hints"])
    assert not [part for part in HINT if part not in text]
    cpu, gpu, took, saved = map(float, re.search("in ([0-9.]+) s in place of about ([0-9.]+) s: ACCEL_START=.* took "
                                                 "([0-9.]+) s.* about ([0-9.]+) s", text).groups())
    assert saved == pytest.approx(cpu - gpu - took, abs=0.06 + 0.01 * cpu)
    assert max(map(len, done.stderr.splitlines())) <= width


def test_no_hint_to_accel_start_where_waiting_takes_longer():
    """The program has ended before the GPU was there."""
    done = run(LARGE.replace("3000", "2000"), "json", {**STARTING, "TESTGPU_START_MS": "60000"})
    (found,) = summaries(done.stderr)
    assert [row for row in found["rows"] if row["why"] == "warming" and row["estimated_s"] > row["elsewhere_s"]]
    assert "ACCEL_START" not in "\n".join(found["hints"])


def test_the_gpu_s_line_has_the_time_of_its_start():
    done = start(DEBIAN_PYTHON, "-c", CALLS, env={**SHIM, **GPU, "ACCEL_LOG": "json", "TESTGPU_START_MS": "100"})
    (gpu,) = [line for line in map(json.loads, done.stderr.splitlines()) if line.get("event") == "gpu"]
    assert gpu["start_ms"] >= 100


def test_a_log_gives_no_hint_for_what_a_start_costs(tmp_path):
    """And none for calls while a ready GPU loads their kernels."""
    lines = [decision(i) | {"ran": "cpu", "why": "warming", "ms": 400, "est_gpu_ms": 20} for i in range(1, 5)]
    gpu = {"v": 1, "time": 1, "host": "node17", "rank": 0, "pid": lines[0]["pid"], "tid": 1, "event": "gpu",
           "gpu": "Test GPU", "gpu_id": "x", "index": 0, "memory_mb": 1, "cuda": 13000, "cublas": 130100,
           "figures": "nominal"}
    for at, start_ms, hint in ((4, 300, "took 0.30 s, and would save about 1.22 s"), (4, 1500, None), (4, None, None),
                               (2, 300, "took 1.06 s, and would save about 0.46 s"), (1, 300, None)):
        event = gpu | ({} if start_ms is None else {"start_ms": start_ms})
        told = start(TOOL, "explain", write(tmp_path / "log", [*lines[:at], event, *lines[at:]])).stdout
        told = " ".join(told.split())
        assert (hint in told) if hint else ("ACCEL_START" not in told)


def test_no_hint_to_accel_start_where_calls_wait():
    done = run(LARGE, "json", {**STARTING, "TESTGPU_START_MS": "0", "ACCEL_START": "wait"})
    text = "\n".join(summaries(done.stderr)[0]["hints"])
    assert HINT[0] not in text
    assert HINT[1] not in text
    assert max(map(len, done.stderr.splitlines())) <= 2000


def with_another_form(other):
    """A process that a program starts with another form tells what the summary has, in the summary's form."""
    return f"import os, sys; os.environ['ACCEL_SUMMARY'] = {other!r}; os.execv(sys.executable, [sys.executable, " \
           f"'-c', {CALLS!r}])"


def test_json_of_a_process_that_has_text():
    (found,) = summaries(run(with_another_form("1"), "json").stderr)
    assert {"start", "gpu"} <= {part["event"] for part in found["about"]}


def test_text_of_a_process_that_has_json():
    done = run(with_another_form("json"), "1")
    assert "\naccel: libaccel " in done.stderr
    assert "\naccel: GPU " in done.stderr
    assert "{" not in done.stderr


def test_nothing_was_called_one_line():
    done = run("pass", "1")
    assert done.returncode == 0
    assert "no call of BLAS, LAPACK or machine learning was seen; accel doctor -- PROGRAM, with its arguments, says " \
           "why\n" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_table_goes_where_the_log_goes(tmp_path):
    log = tmp_path / "log"
    assert not run(CALLS, "1", {"ACCEL_LOG_FILE": str(log)}).stderr
    assert log.read_text().startswith("accel: summary of ")


def test_a_full_disk_the_summary_is_lost():
    done = run(CALLS, "1", {"ACCEL_LOG_FILE": "/dev/full"})
    assert done.returncode == 0
    assert done.stderr == "accel: ACCEL_LOG_FILE: /dev/full cannot be written (No space left on device); the summary " \
                          "is lost\n"


def test_summary_goes_before_accel_summary_0():
    assert run(CALLS, "0").stderr.startswith("accel: summary of ")


def test_a_program_that_is_not_there_its_message_alone():
    done = start(TOOL, "run", "--summary", "no-such-program")
    assert (done.returncode, done.stderr) == (127, "accel run: no-such-program: No such file or directory\n")


def test_a_process_that_cannot_open_the_tool_s_table_prints_its_own():
    env = {**SHIM, **GPU, "ACCEL_SUMMARY": "json", "ACCEL_SUMMARY_TABLE": "/proc/1/fd/9999"}
    assert counts(start(DEBIAN_PYTHON, "-c", CALLS, env=env).stderr) == [(2, 1)]


def test_a_file_that_is_no_table_stays_as_it_is(tmp_path):
    other = tmp_path / "other"
    other.write_bytes(b"\1" * 500000)
    env = {**SHIM, **GPU, "ACCEL_SUMMARY": "json", "ACCEL_SUMMARY_TABLE": str(other)}
    assert counts(start(DEBIAN_PYTHON, "-c", CALLS, env=env).stderr) == [(2, 1)]
    assert other.read_bytes() == b"\1" * 500000


# ---- LAPACK's calls of BLAS are in the time of LAPACK's ----

SESSION = "set.seed(1); a <- matrix(rnorm(40000), 200); s <- svd(a); e <- eigen(a)"


def session_of_r(form):
    return start(TOOL, "run", "--summary", "--policy", "cpu", "Rscript", "--vanilla", "-e", SESSION,
                 env={"ACCEL_SUMMARY": form}).stderr


def test_a_session_of_r_a_row_for_each_of_its_calls():
    told = session_of_r("1")
    lines = table_of(told)
    assert len(told.partition("accel: hint:")[0].splitlines()) <= 20
    assert {line.split()[1] for line in lines[3:-2]} == {"dgesdd", "dgeev"}
    assert lines[-2].startswith("accel: outside these calls ")


def test_the_rows_add_up_to_its_time():
    begun = time.monotonic()
    found = summaries(session_of_r("json"))[0]
    took = time.monotonic() - begun
    assert abs(sum(row["s"] for row in found["rows"] if not row["inner"]) + found["outside_s"] - found["s"]) < 1e-4
    assert found["calls_s"] < found["s"] < took
    assert sum(row["calls"] for row in found["rows"] if row["inner"]) > 20, "calls inside others are in JSON alone"
    assert found["calls"] < 20, "and in no sum"


# ---- Signals, the terminal, what outlives the program ----

HANDLER = """import signal, sys, time
seen = []
for s in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1): signal.signal(s, lambda n, f: seen.append(n))
print('ready', flush=True)
"""
WAITS = "while not seen: time.sleep(0.01)\ntime.sleep(0.3)\nprint(*map(int, seen), flush=True); sys.exit(6)"
SLEEPS = "import time\nprint('ready', flush=True)\ntime.sleep(600)"
LEAVES = """import subprocess
p = subprocess.Popen(['sleep', '600'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(p.pid, flush=True)"""


def tool(program):
    return subprocess.Popen([TOOL, "run", "--summary", DEBIAN_PYTHON, "-c", program], env=ENV, stderr=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)


def signalled(program, number):
    """The tool's status, its stdout behind the first line and its stderr, where the signal is sent when the program has
    written a line."""
    with tool(program) as process:
        process.stdout.readline()
        process.send_signal(number)
        said = process.communicate(timeout=300)  # until the program has ended, too
    return process.returncode, *said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1], ids=lambda number: number.name)
def test_what_is_sent_to_the_tool_comes_to_the_program_once(number):
    status, stdout, stderr = signalled(HANDLER + WAITS, number)
    assert (stdout, status) == (f"{int(number)}\n", 6)
    assert "accel: summary of" in stderr


def test_of_a_program_that_sigterm_ends_the_tool_ends_by_it_after_the_table():
    status, _, stderr = signalled(SLEEPS, signal.SIGTERM)
    assert status == -signal.SIGTERM
    assert "accel: summary of" in stderr


def test_sigkill_of_the_tool_ends_the_program():
    status, _, stderr = signalled(SLEEPS, signal.SIGKILL)
    assert status == -signal.SIGKILL
    assert not stderr


def test_a_child_that_outlives_the_program_does_not_hold_the_tool_up():
    with tool(LEAVES) as process:
        said = process.communicate(timeout=300)
        os.kill(int(said[0]), signal.SIGKILL)
    assert process.returncode == 0
    assert "accel: summary of" in said[1]


def test_sigchld_that_is_ignored():
    done = subprocess.run(["env", "--ignore-signal=CHLD", TOOL, "run", "--summary", "sh", "-c", "exit 7"], env=ENV,
                          stderr=subprocess.PIPE, timeout=300)
    assert done.returncode == 7
    assert done.stderr.startswith(b"accel: summary of sh")


def on_terminal(program, keys):
    """Runs the program under the tool as a shell's job; types `keys`, each when the program has printed a line or been
    stopped. Returns what the terminal shows."""
    leader, terminal = pty.openpty()
    shell = os.fork()
    if shell == 0:  # the leader of a session of its own, as a shell is
        os.setsid()
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
        for i in range(3):
            os.dup2(terminal, i)
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTOU])
            os.tcsetpgrp(0, os.getpid())
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            os.execve(TOOL, [TOOL, "run", "--summary", DEBIAN_PYTHON, "-c", program], ENV)
        while True:
            _, status = os.waitpid(pid, os.WUNTRACED)
            if os.WIFSTOPPED(status):
                os.write(1, b"stopped\n")
                os.killpg(pid, signal.SIGCONT)
                continue
            os.write(1, b"ended %d\n" % os.waitstatus_to_exitcode(status))
            os._exit(0)
    os.close(terminal)
    text = ""
    try:
        while select.select([leader], [], [], 100)[0]:
            text += os.read(leader, 4096).decode()
            while keys and keys[0][0] in text:
                os.write(leader, keys.pop(0)[1])
    except OSError:  # all ends are closed
        pass
    os.close(leader)  # ends the session, if it has not ended
    os.waitpid(shell, 0)
    return text.replace("\r", "")


def test_control_c_the_program_has_one_sigint_the_tool_prints_the_table():
    text = on_terminal(HANDLER + WAITS, [("ready", b"\3")])
    assert "^C2\n" in text
    assert "accel: summary of" in text
    assert "ended 6" in text


def test_control_z_stops_both_and_both_go_on():
    text = on_terminal("print('ready', flush=True)\nprint('read', input(), flush=True)",
                       [("ready", b"\x1a"), ("stopped", b"word\n")])
    assert text.index("stopped\n") < text.index("read word") < text.index("accel: summary of")
    assert "ended 0" in text


def test_a_limit_on_the_size_of_files_the_tool_says_so():
    done = start("/bin/bash", "-c", 'ulimit -f 0; exec "$@"', "sh", TOOL, "run", "--summary", "--", "/bin/true")
    assert done.returncode == 126
    assert "no place for the summary" in done.stderr
