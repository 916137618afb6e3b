#!/usr/bin/python3 -B
"""accel run --summary: one table of all processes, however the program ends; the program's exit status, signals and job control are its own."""

import fcntl
import os
import pty
import select
import signal
import subprocess
import tempfile
import termios
import time
from pathlib import Path

from lib.log import summaries, table_of
from lib.programs import BUILD, DEBIAN_PYTHON, SHIM, clean_env, start
from lib.tap import Tap

TOOL = str(BUILD / "accel")
GPU = {"ACCEL_CUDA_DIR": str(BUILD / "testgpu"), "ACCEL_POLICY": "gpu"}
ENV = {**clean_env(tempfile.gettempdir()), **GPU}
# Two products, and what follows them.
CALLS = "import multiprocessing, numpy, os, signal, subprocess, sys, time\na = numpy.ones((64, 64))\ndef call(_=0): return (a @ a)[0, 0]\ncall(), call()\n"
tap = Tap()


def run(program, form="json", env=None):
    return start(TOOL, "run", "--summary", "--", DEBIAN_PYTHON, "-c", program, env={**GPU, "ACCEL_SUMMARY": form, **(env or {})})


def counts(text):
    """Calls and processes of the only summary."""
    found = summaries(text)
    return [(s["calls"], s["processes"]) for s in found]


# ---- Every way to end ----

for name, end, status, expected in (
    ("at the end", "", 0, (2, 1)),
    ("exit()", "sys.exit(3)", 3, (2, 1)),
    ("_exit()", "os._exit(4)", 4, (2, 1)),
    ("abort()", "os.abort()", -signal.SIGABRT, (2, 1)),
    *((f"SIG{s}", f"os.kill(os.getpid(), signal.SIG{s})", -signal.Signals["SIG" + s], (2, 1)) for s in ("TERM", "HUP", "KILL", "SEGV")),
    ("exec", f"os.execv({DEBIAN_PYTHON!r}, [{DEBIAN_PYTHON!r}, '-c', 'import numpy; a = numpy.ones((64, 64)); a @ a'])", 0, (3, 2)),
    ("a fork without exec", "if os.fork() == 0: call(); os._exit(0)\nos.wait()", 0, (3, 2)),
    ("a fork whose child is killed", "if os.fork() == 0: call(); os.kill(os.getpid(), signal.SIGKILL)\nos.wait()", 0, (3, 2)),
    ("a parent that goes first", "r, w = os.pipe()\nif os.fork() == 0: call(); os.write(w, b'x'); signal.alarm(3); time.sleep(60)\nos.read(r, 1); os._exit(5)", 5, (3, 2)),
    ("multiprocessing.Pool", "p = multiprocessing.get_context('fork').Pool(2); p.map(call, range(6), 1); p.terminate(); p.join()", 0, (8, None)),
    ("spawned processes", f"subprocess.run([{DEBIAN_PYTHON!r}, '-c', 'import numpy, os; a = numpy.ones((64, 64)); a @ a; os._exit(0)'])", 0, (3, 2)),
):
    if name == "a parent that goes first":  # whose child would hold a pipe open
        end = end.replace("call();", "os.dup2(os.open(os.devnull, os.O_WRONLY), 1); os.dup2(1, 2); call();")
    done = run(CALLS + end)
    found = counts(done.stderr)
    tap.ok(done.returncode == status and len(found) == 1 and found[0][0] == expected[0] and expected[1] in (None, found[0][1]), f"{name}: one summary, of all calls",
           done.returncode, done.stderr)

# ---- What a person sees ----

done = run(CALLS + "time.sleep(1); os._exit(0)", "1")
lines = done.stderr.splitlines()
tap.ok(len(lines) > 6 and lines[0].startswith(f"accel: summary of {DEBIAN_PYTHON}: ") and lines[3].split()[1:6] == ["dgemm", "64", "2", "gpu0", "forced"]
       and lines[4].startswith("accel: outside these calls ") and max(map(len, lines)) <= 100, "the table", *lines)
tap.ok(lines[-1].startswith("accel: hint: ") and lines[-1].endswith(" % of the time is outside these calls: no setting will help there"), "a hint", *lines)
LARGE = "import numpy\na = numpy.ones((3000, 3000))\na @ a"  # on one core, so that it takes long enough for a hint on any machine
for name, env, form in ("the table", {}, "1"), ("JSON", {}, "json"), ("not where calls wait", {"ACCEL_START": "wait"}, "json"):
    done = run(LARGE, form, {"ACCEL_POLICY": "auto", "OPENBLAS_NUM_THREADS": "1", "TESTGPU_START_MS": "5000" if not env else "0", **env})
    expected = ("1 call ran on the CPU while the GPU was starting, in ", "ACCEL_START=wait makes calls wait for it")
    text = " ".join(done.stderr.replace("\naccel:", "").split()) if form == "1" else "\n".join(summaries(done.stderr)[0]["hints"])
    tap.ok(all((words in text) != bool(env) for words in expected) and max(map(len, done.stderr.splitlines())) <= (100 if form == "1" else 2000), f"a hint to ACCEL_START: {name}", done.stderr)
# A process that a program starts with another form tells what the summary has, in the summary's
# form.
for form, other in ("json", "1"), ("1", "json"):
    done = run(f"import os, sys; os.environ['ACCEL_SUMMARY'] = {other!r}; os.execv(sys.executable, [sys.executable, '-c', {CALLS!r}])", form)
    if form == "json":
        found = summaries(done.stderr)
        tap.ok(len(found) == 1 and {"start", "gpu"} <= {part["event"] for part in found[0]["about"]}, "JSON, of a process that has text", done.stderr)
    else:
        tap.ok("\naccel: libaccel " in done.stderr and "\naccel: GPU " in done.stderr and "{" not in done.stderr, "text, of a process that has JSON", done.stderr)
done = run("pass", "1")
tap.ok(done.returncode == 0 and "no call of BLAS, LAPACK or machine learning was seen; accel doctor -- PROGRAM, with its arguments, says why\n" in done.stderr and done.stderr.count("\n") == 1, "nothing was called: one line", done.stderr)
with tempfile.TemporaryDirectory() as folder:
    log = Path(folder, "log")
    done = run(CALLS, "1", {"ACCEL_LOG_FILE": str(log)})
    tap.ok(not done.stderr and log.read_text().startswith("accel: summary of "), "the table goes where the log goes", done.stderr)
done = run(CALLS, "1", {"ACCEL_LOG_FILE": "/dev/full"})
tap.ok(done.returncode == 0 and done.stderr == "accel: ACCEL_LOG_FILE: /dev/full cannot be written (No space left on device); the summary is lost\n", "a full disk: the summary is lost", done.stderr)
done = run(CALLS, "0")
tap.ok(done.stderr.startswith("accel: summary of "), "--summary goes before ACCEL_SUMMARY=0", done.stderr)
done = start(TOOL, "run", "--summary", "no-such-program")
tap.ok((done.returncode, done.stderr) == (127, "accel run: no-such-program: No such file or directory\n"), "a program that is not there: its message alone", done.stderr)
# A process that cannot reach the tool's table prints its own.
done = start(DEBIAN_PYTHON, "-c", CALLS, env={**SHIM, **GPU, "ACCEL_SUMMARY": "json", "ACCEL_SUMMARY_TABLE": "/proc/1/fd/9999"})
tap.ok(counts(done.stderr) == [(2, 1)], "a table that cannot be opened: the process prints its own", done.stderr)
with tempfile.NamedTemporaryFile() as other:
    other.write(b"\1" * 500000)
    other.flush()
    done = start(DEBIAN_PYTHON, "-c", CALLS, env={**SHIM, **GPU, "ACCEL_SUMMARY": "json", "ACCEL_SUMMARY_TABLE": other.name})
    tap.ok(counts(done.stderr) == [(2, 1)] and Path(other.name).read_bytes() == b"\1" * 500000, "a file that is no table stays as it is", done.stderr)

# LAPACK's calls of BLAS are in the time of LAPACK's: the rows add up to the time of the run.
SESSION = "set.seed(1); a <- matrix(rnorm(40000), 200); s <- svd(a); e <- eigen(a)"
for form in "1", "json":
    begun = time.monotonic()
    done = start(TOOL, "run", "--summary", "--policy", "cpu", "Rscript", "--vanilla", "-e", SESSION, env={"ACCEL_SUMMARY": form})
    took = time.monotonic() - begun
    if form == "1":
        lines = table_of(done.stderr)
        tap.ok(len(done.stderr.partition("accel: hint:")[0].splitlines()) <= 20 and {line.split()[1] for line in lines[3:-2]} == {"dgesdd", "dgeev"} and lines[-2].startswith("accel: outside these calls "),
               "a session of R: a row for each of its calls", *lines)
        continue
    found = summaries(done.stderr)[0]
    outer = [row for row in found["rows"] if not row["inner"]]
    tap.ok(abs(sum(row["s"] for row in outer) + found["outside_s"] - found["s"]) < 1e-4 and found["calls_s"] < found["s"] < took, "the rows add up to its time", found, took)
    tap.ok(sum(row["calls"] for row in found["rows"] if row["inner"]) > 20 > found["calls"], "calls inside others are in JSON alone, and in no sum", found)

# ---- Signals, the terminal, what outlives the program ----

HANDLER = "import signal, sys, time\nseen = []\nfor s in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1): signal.signal(s, lambda n, f: seen.append(n))\nprint('ready', flush=True)\n"
WAITS = "while not seen: time.sleep(0.01)\ntime.sleep(0.3)\nprint(*map(int, seen), flush=True); sys.exit(6)"


def tool(program, **options):
    return subprocess.Popen([TOOL, "run", "--summary", DEBIAN_PYTHON, "-c", program], env=ENV, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)


for sent in signal.SIGTERM, signal.SIGUSR1:
    with tool(HANDLER + WAITS) as process:
        process.stdout.readline()
        process.send_signal(sent)
        said = process.communicate(timeout=300)
    tap.ok((said[0], process.returncode) == (f"{int(sent)}\n", 6) and "accel: summary of" in said[1], f"{sent.name} that is sent to the tool comes to the program, once", said, process.returncode)
with tool("import time\nprint('ready', flush=True)\ntime.sleep(600)") as process:
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=300)
tap.ok(process.returncode == -signal.SIGTERM and "accel: summary of" in said[1], "a program that SIGTERM ends: the tool ends by it, after the table", said, process.returncode)
with tool("import time\nprint('ready', flush=True)\ntime.sleep(600)") as process:
    process.stdout.readline()
    process.kill()
    said = process.communicate(timeout=300)  # until the program has ended, too
tap.ok(process.returncode == -signal.SIGKILL and not said[1], "SIGKILL of the tool ends the program", said)
with tool("import subprocess\np = subprocess.Popen(['sleep', '600'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\nprint(p.pid, flush=True)") as process:
    said = process.communicate(timeout=300)
    os.kill(int(said[0]), signal.SIGKILL)
tap.ok(process.returncode == 0 and "accel: summary of" in said[1], "a child that outlives the program does not hold the tool up", said)
done = subprocess.run(["env", "--ignore-signal=CHLD", TOOL, "run", "--summary", "sh", "-c", "exit 7"], env=ENV, stderr=subprocess.PIPE, timeout=300)
tap.ok(done.returncode == 7 and done.stderr.startswith(b"accel: summary of sh"), "SIGCHLD that is ignored", done.returncode, done.stderr)


def on_terminal(program, keys):
    """Runs the program under the tool as a shell's job; types `keys`, each when the program has printed a line or been stopped. Returns what the terminal shows."""
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


text = on_terminal(HANDLER + WAITS, [("ready", b"\3")])
tap.ok("^C2\n" in text and "accel: summary of" in text and "ended 6" in text, "^C: the program has one SIGINT, the tool prints the table", text)
text = on_terminal("print('ready', flush=True)\nprint('read', input(), flush=True)", [("ready", b"\x1a"), ("stopped", b"word\n")])
tap.ok("stopped\n" in text and "read word" in text and text.index("stopped") < text.index("read word") < text.index("accel: summary of") and "ended 0" in text,
       "^Z stops both, and both go on", text)
done = start("/bin/bash", "-c", 'ulimit -f 0; exec "$@"', "sh", TOOL, "run", "--summary", "--", "/bin/true")
tap.ok(done.returncode == 126 and "no place for the summary" in done.stderr, "a limit on the size of files: the tool says so", done.returncode, done.stderr)
tap.done()
