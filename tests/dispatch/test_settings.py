#!/usr/bin/python3 -B
"""The settings through real processes: config files and their precedence, programs that are left alone, ranks."""

import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from lib.log import lines_for, parse_log, said
from lib.programs import LOG, NO_GPU, ROOT, SHIM, TEST_GPU, TESTS, clean_env, start
from lib.tap import Tap

tap = Tap()
PROGRAM = ["random_calls", "-c", 2, "-n", 30, "-r", "dgemm"]
native = start(*PROGRAM)
tap.ok(native.returncode == 0 and native.stdout and not native.stderr, "the program, without libaccel", native.stderr)


def same(done):
    return (done.returncode, done.stdout) == (native.returncode, native.stdout)


def is_json(done):
    return done.stderr.startswith('{"')


with tempfile.TemporaryDirectory() as home:
    user = Path(home, ".config/accel/accel.conf")
    user.parent.mkdir(parents=True)
    named = Path(home, "named.conf")
    env = {**NO_GPU, "HOME": home}

    # ---- Where a setting comes from ----

    done = start(*PROGRAM, env=env)
    tap.ok(same(done) and done.stderr == "", "no config file: silent", done.stderr)
    user.write_text("# every decision\nACCEL_LOG = 1\n")
    done = start(*PROGRAM, env=env)
    tap.ok(same(done) and lines_for(done) and not said(done), "ACCEL_LOG in ~/.config/accel/accel.conf", done.stderr)
    done = start(*PROGRAM, env={**env, "HOME": "/nowhere", "XDG_CONFIG_HOME": home + "/.config"})
    tap.ok(same(done) and lines_for(done), "the same in XDG_CONFIG_HOME", done.stderr)
    named.write_text("ACCEL_LOG=json\n")
    done = start(*PROGRAM, env={**env, "ACCEL_CONFIG": str(named)})
    tap.ok(same(done) and is_json(done), "the file of ACCEL_CONFIG goes before the user's", done.stderr)
    done = start(*PROGRAM, env={**env, "ACCEL_CONFIG": str(named), "ACCEL_LOG": "0"})
    tap.ok(same(done) and done.stderr == "", "the environment goes before both", done.stderr)
    named.write_text("ACCEL_SUMMARY=1\n")
    done = start(*PROGRAM, env={**env, "ACCEL_CONFIG": str(named)})
    tap.ok(same(done) and "accel: summary" in done.stderr and lines_for(done), "name by name", done.stderr)
    named.write_text("ACCEL=0\n")
    done = start(*PROGRAM, env={**env, "ACCEL_CONFIG": str(named)})
    tap.ok(same(done) and done.stderr == "", "ACCEL=0 in a file", done.stderr)

    # ---- What cannot be read is said once, and all else is used ----

    user.write_text("ACCEL_LOG=1\nACCEL_LOGG=1\nfast please\nACCEL_POLICY=fast\nACCEL_SUMMARY=1\n")
    done = start(*PROGRAM, env=env)
    bad = [line for line in said(done) if line.startswith(f"accel: {user}:")]
    tap.ok(same(done), "a bad config file: same stdout and exit status", done.stdout)
    tap.ok(len(bad) == 3 and bad == [
               f"accel: {user}:2: ACCEL_LOGG is no setting of this version; the nearest is ACCEL_LOG; the line is ignored",
               f"accel: {user}:3: fast please is not understood; allowed: NAME=value; the line is ignored",
               f"accel: {user}:4: ACCEL_POLICY=fast is not understood; allowed: auto,gpu,cpu; the default is used"],
           "each bad line is named once, with file and line", done.stderr)
    tap.ok(lines_for(done) and "accel: summary" in done.stderr, "the good lines are used", done.stderr)
    done = start("/bin/true", env=env)
    tap.ok(done.returncode == 0 and done.stderr == "", "nothing in programs that call nothing", done.stderr)
    user.unlink()

    # ---- A file that the user names, and that has no effect, may have held a promise ----

    fifo = home + "/fifo"
    os.mkfifo(fifo)
    for path, fault in (home + "/none", "cannot be opened (No such file or directory)"), (fifo, "is not a regular file"):
        lost = f"accel: ACCEL_CONFIG={path} {fault}, and may hold ACCEL_REQUIRE; the program ends at its first call of BLAS"
        done = start(*PROGRAM, env={**env, **LOG, "ACCEL_CONFIG": path}, timeout=300)
        tap.ok(done.returncode == 1 and done.stdout == "" and said(done) == [lost], f"ACCEL_CONFIG names what {fault}: the program ends with the message",
               done.returncode, done.stderr)
        done = start("/bin/bash", "-c", "ls / >/dev/null && exit 3", env={**env, "ACCEL_CONFIG": path})
        tap.ok(done.returncode == 3 and done.stderr == "", "what calls no BLAS goes on", done.returncode, done.stderr)
    done = start(*PROGRAM, env={**env, "ACCEL_CONFIG": fifo, "ACCEL": "0"}, timeout=300)
    tap.ok(same(done) and done.stderr == "", "so does a program with ACCEL=0", done.returncode, done.stderr)
    named.write_text("ACCEL_LOG=1\n")
    named.chmod(0o666)
    done = start(*PROGRAM, env={**env, "ACCEL_CONFIG": str(named)})
    tap.ok(same(done) and done.stderr == f"accel: ACCEL_CONFIG={named} may be written by all; it is ignored\n",
           "a file that all may write, without a promise: it is ignored", done.returncode, done.stderr)
    named.write_text("ACCEL_LOG=1\nACCEL_VERIFY=all\n")
    done = start(*PROGRAM, env={**env, "ACCEL_CONFIG": str(named)})
    tap.ok(done.returncode == 1 and said(done) == [
        f"accel: ACCEL_CONFIG={named} may be written by all, and names ACCEL_VERIFY; the program ends at its first call of BLAS"],
           "with one: the program ends with the message", done.returncode, done.stderr)
    named.write_text("ACCEL = 0\n")
    named.chmod(0o600)
    done = start(*PROGRAM, env={**env, "ACCEL_CONFIG": str(named), "ACCEL_REQUIRE": "gpu"})
    tap.ok(done.returncode == 1 and done.stdout == "" and said(done) == [
        f"accel: {named}:1: ACCEL switches libaccel off, and ACCEL_REQUIRE=gpu is set; the program ends at its first call of BLAS, unless ACCEL=1 is set, too"],
           "the GPU is wanted, and a file switches libaccel off: the program ends with the message", done.returncode, done.stderr)
    done = start(*PROGRAM, env={**env, "ACCEL_CONFIG": str(named), "ACCEL_REQUIRE": "gpu", "ACCEL": "0"})
    tap.ok(same(done) and done.stderr == "", "but not where who wants it does so, too", done.returncode, done.stderr)
    named.write_text("ACCEL_LOG=1\nACCEL_VERIFY=all\n")
    named.chmod(0o666)
    named.rename(user)
    done = start(*PROGRAM, env=env)
    tap.ok(same(done) and said(done) == [f"accel: {user} may be written by all; it is ignored"],
           "one that nobody has named ends no program: others could end it so", done.returncode, done.stderr)
    user.unlink()

    # ---- A promise that cannot be kept: the program ends before a result of BLAS gets out ----

    names = {"ACCEL_REQUIRE": ("1", "gpu,off"), "ACCEL_VERIFY": ("on", "off, all, or sample:N with N from 1 to 9999999999"),
             "ACCEL_VERIFY_ACTION": ("stop", "warn,cpu,abort")}
    message = "is not understood; allowed: {}; the program ends at its first call of BLAS"
    for name, (value, allowed) in names.items():
        for mode, gpu in (("no GPU", {}), ("test GPU", TEST_GPU)):
            done = start(*PROGRAM, env={**env, **gpu, name: value})
            tap.ok(done.returncode == 1 and done.stdout == "" and said(done) == [f"accel: {name}={value} {message.format(allowed)}"],
                   f"{name}={value}, {mode}: the program ends with the message", done.returncode, done.stdout, done.stderr)
    user.write_text("\nACCEL_REQUIRE = yes\n")
    done = start(*PROGRAM, env=env)
    tap.ok(done.returncode == 1 and said(done) == [f"accel: {user}:2: ACCEL_REQUIRE=yes {message.format('gpu,off')}"],
           "the same of a config file", done.returncode, done.stderr)
    user.unlink()
    promise = {**env, "ACCEL_REQUIRE": "1", "ACCEL_VERIFY": "on"}
    done = start("/bin/bash", "-c", "ls / >/dev/null && exit 3", env=promise)
    tap.ok(done.returncode == 3 and done.stderr == "", "shells, and what calls no BLAS, are not ended", done.returncode, done.stderr)
    by_lookup = """import ctypes
n, one, x = ctypes.byref(ctypes.c_int(1)), ctypes.byref(ctypes.c_double(1)), ctypes.byref(ctypes.c_double(1))
ctypes.CDLL("libblas.so.3").dgemm_(b"N", b"N", n, n, n, one, x, n, x, n, one, x, n)
print("went on")"""
    done = start("/usr/bin/python3", "-c", by_lookup, env=promise)
    tap.ok(done.returncode == 1 and done.stdout == "" and len(said(done)) == 2, "a small call that is bound by dlsym ends the program, too",
           done.returncode, done.stdout, done.stderr)
    # Two threads' first calls: one cannot write its message yet, and the other must not end the
    # program without it.
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    while True:
        try:
            os.write(writer, b"\n" * 4096)
        except BlockingIOError:
            break
    os.set_blocking(writer, True)
    program = subprocess.Popen([TESTS / "steps", "threads:2:64:1"], env={**clean_env(home), **promise, "OPENBLAS_NUM_THREADS": "1"},
                               stdout=subprocess.DEVNULL, stderr=writer)
    os.close(writer)
    asleep = 0
    while program.poll() is None and asleep < 5:
        tasks = [Path(task, "stat").read_text().rpartition(")")[2].split()[0] for task in Path(f"/proc/{program.pid}/task").iterdir()]
        asleep = asleep + 1 if len(tasks) == 3 and set(tasks) == {"S"} else 0
        time.sleep(0.02)
    with os.fdopen(reader) as pipe:
        lines = [line for line in pipe.read().splitlines() if line]
    tap.ok(program.wait() == 1 and len(lines) == 2 and all("the program ends at its first call of BLAS" in line for line in lines),
           "two threads' first calls: the program ends with the message", program.returncode, *lines)
    done = start(*PROGRAM, env={**promise, "ACCEL": "0"})
    tap.ok(same(done) and done.stderr == "", "nor is a program with ACCEL=0", done.returncode, done.stderr)
    done = start("surroundings", "fork", "multiply", env=promise)
    tap.ok(done.returncode == 1 and len(said(done)) == 2, "in a child: its exit status tells the parent", done.returncode, done.stderr)
    done = start("surroundings", "close:0", "multiply", env=promise)
    tap.ok(done.returncode == 1 and done.stderr == "", "without a stderr, the exit status alone tells", done.returncode, done.stderr)

    # ---- Names that are no settings, and what is not there ----

    done = start(*PROGRAM, env={**env, "ACCEL_VERFIY": "all", "ACCEL_HOME": "/opt/x", "ACCEL_TENSOR": "tf32"})
    ignored = [re.match(r"accel: (ACCEL_\w+) is no setting of this version; the nearest is ACCEL_\w+; it is ignored$", line)
               for line in said(done)]
    tap.ok(same(done) and all(ignored) and sorted(m[1] for m in ignored) == ["ACCEL_HOME", "ACCEL_TENSOR", "ACCEL_VERFIY"]
           and "ACCEL_VERFIY is no setting of this version; the nearest is ACCEL_VERIFY;" in done.stderr,
           "unknown names in the environment are named once, with the nearest one", done.stderr)
    for name, value, expected in (
            ("ACCEL_MODEL", "/none/model", "no calibration at /none/model (ACCEL_MODEL); built-in figures are used (run `accel calibrate`)"),
            ("ACCEL_CUDA_DIR", "/none", "ACCEL_CUDA_DIR=/none cannot be opened (No such file or directory); it is ignored"),
            ("ACCEL_ORIGINAL", "/none/libblas.so", "ACCEL_ORIGINAL=/none/libblas.so cannot be opened (No such file or directory); it is ignored"),
            ("ACCEL_MEMORY", "12", "ACCEL_MEMORY=12 is not understood; allowed: a share such as 80%, or a size such as 500M or 12G; of bytes without a unit, 1048576 at least; the default is used")):
        for mode, gpu in (("no GPU", {}), ("test GPU", {**TEST_GPU, "ACCEL_POLICY": "auto", "ACCEL_START": "wait"})):
            done = start("steps", "dgemm:600:3", env={**env, **gpu, name: value})
            own = [line for line in said(done) if not line.startswith("accel: no GPU is used: ")]
            tap.ok(done.returncode == 0 and own == ["accel: " + expected], f"{name}={value}, {mode}: named once", done.returncode, done.stderr)
    done = start(*PROGRAM, env={**env, "ACCEL_MODEL": home + "/new", "ACCEL_LEARN": "yes"})
    tap.ok(same(done) and done.stderr == "", "a calibration that is to be learned is not missed", done.stderr)

    # ---- Programs that are left alone ----

    for name in ("bash", "mpiexec.hydra", "job"):
        shutil.copy(TESTS / "random_calls", Path(home, name))
    as_bash, as_job = [[home + "/" + name, *PROGRAM[1:]] for name in ("bash", "job")]
    tap.ok(lines_for(start(*as_job, env={**env, **LOG})), "a program of any name is accelerated")
    for name in ("bash", "mpiexec.hydra"):
        done = start(home + "/" + name, *PROGRAM[1:], env={**env, **LOG, "ACCEL_POLICY": "wrong"})
        tap.ok(same(done) and done.stderr == "", f"one named {name} is left alone", done.stderr)
    done = start(*as_bash, env={**env, **LOG, "ACCEL_EXCLUDE": "job"})
    tap.ok(same(done) and lines_for(done), "ACCEL_EXCLUDE replaces the default", done.stderr)
    for program in as_bash, as_job:
        done = start(*program, env={**env, **LOG, "ACCEL_EXCLUDE": "default,j?b"})
        tap.ok(same(done) and done.stderr == "", "or adds to it", done.stderr)
    os.unlink(home + "/bash")
    for shell in ("/bin/bash", "/bin/sh"):
        script = f"{TESTS}/random_calls -c 2 -n 30 -r dgemm; exit $?"
        done = start(shell, "-c", script, env={**env, **LOG})
        tap.ok(same(done) and len({line["pid"] for line in lines_for(done)}) == 1,
               f"what {shell} starts is accelerated", done.stderr)

    # ---- Ranks ----

    if shutil.which("mpirun"):
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        done = start(shutil.which("mpirun"), "--oversubscribe", "--bind-to", "none", "-np", 2, TESTS / "random_calls", *PROGRAM[1:],
                     env={**env, **LOG, **root, "TMPDIR": home, "ACCEL_LOG_FILE": home + "/log.%r"})
        logs = sorted(path.name for path in Path(home).glob("log.*"))
        tap.ok(done.returncode == 0 and logs == ["log.0", "log.1"], "%r is the rank that mpirun gives", logs, done.stderr)
        tap.ok(all(parse_log(Path(home, log).read_text()) for log in logs), "each has its own log")
    else:
        tap.skip("ranks", "no mpirun")

# ---- The table of docs/settings.md and the program's ----

source = (ROOT / "dispatch/settings/setting_table.c").read_text()
rows = dict(re.findall(r'^    \{"(ACCEL\w*)",.*?\b(ANYWHERE|ENVIRONMENT|INTERNAL)\b', source, re.M | re.S))
table = re.search(r"^\| variable \|.*?\n\n", (ROOT / "docs/settings.md").read_text(), re.M | re.S)[0]
documented = [name for row in table.strip().splitlines() for name in re.findall(r"`(ACCEL\w*)`", row.split("|")[1])]
tap.ok(len(rows) > 15 and sorted(documented) == sorted(name for name, scope in rows.items() if scope != "INTERNAL"),
       "docs/settings.md has each setting, and no others", sorted(documented), rows)

done = start("/bin/bash", "-c", "exit 3", env={**SHIM, **LOG})
tap.ok(done.returncode == 3 and done.stderr == "", "a shell's exit status stays")
tap.done()
