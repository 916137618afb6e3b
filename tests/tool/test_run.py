#!/usr/bin/python3 -B
"""accel run: the program has the library before all others, once; its output, exit status and signals are its own; options override variables."""

import os
import pty
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from lib.log import lines_for
from lib.programs import BUILD, DEBIAN_PYTHON, NO_GPU, RUNTIME, SHIM, clean_env, start
from lib.tap import Tap

TOOL = str(BUILD / "accel")
LIBRARY = f"{BUILD}/accel-preload/$PLATFORM/libaccel.so"  # not found by what cannot load it
GPU = {"ACCEL_CUDA_DIR": str(BUILD / "testgpu")}
HIDDEN = {"CUDA_VISIBLE_DEVICES": NO_GPU["CUDA_VISIBLE_DEVICES"]}
PRODUCT = [DEBIAN_PYTHON, "-c", "import numpy as n; a = n.arange(90000.).reshape(300, 300) % 7; print((a @ a).sum())"]
tap = Tap()


def run(*arguments, env=None):
    return start(TOOL, "run", *arguments, env=env or {})


def preloaded(done):
    return done.stdout.rstrip("\n").split(":")


# ---- The program, and what it is asked to say ----

plain = start(*PRODUCT)
done = run("--", *PRODUCT, env=HIDDEN)
tap.ok((done.returncode, done.stdout, done.stderr) == (0, plain.stdout, plain.stderr), "without options: the program's own output, and silence", done.stdout, done.stderr)
done = run("-v", "--policy", "gpu", "--", *PRODUCT, env=GPU)
tap.ok(done.stdout == plain.stdout and lines_for(done, sym="cblas_dgemm", ran="gpu0"), "-v --policy gpu: a line of a call on the GPU", done.stdout, done.stderr)
done = run("--verbose", "--policy=cpu", *PRODUCT, env={**GPU, "ACCEL_POLICY": "gpu", "ACCEL_LOG": "0"})
tap.ok(done.stdout == plain.stdout and lines_for(done, sym="cblas_dgemm", ran="cpu", why="user"), "the options go before the environment; `--' may be left out", done.stdout, done.stderr)
done = run("--summary", *PRODUCT, env=GPU)
tap.ok(done.stdout == plain.stdout and "accel: summary" in done.stderr and not lines_for(done), "--summary: the table", done.stderr)
done = run("--require-gpu", "--policy=gpu", *PRODUCT, env=HIDDEN)
tap.ok(done.returncode == 1 and not done.stdout and "ACCEL_REQUIRE=gpu" in done.stderr, "--require-gpu without one: the program ends", done.returncode, done.stderr)
done = run("echo", "-v", "--summary", "--", "-x")
tap.ok(done.stdout == "-v --summary -- -x\n", "the program's own options stay its own", done.stdout)

# ---- Exit status, signals, the process ----

done = run("sh", "-c", "exit 7")
tap.ok(done.returncode == 7, "the exit status", done.returncode)
done = run("sh", "-c", "kill -TERM $$")
tap.ok(done.returncode == -signal.SIGTERM, "the signal that ends it", done.returncode)
done = run("--summary", "sh", "-c", "kill -TERM $$")
tap.ok(done.returncode == -signal.SIGTERM, "the same with --summary", done.returncode)
done = start("/bin/sh", "-c", "exec python3 -c 'import os, signal, sys; signal.alarm(1); os.execv(sys.argv[1], sys.argv[1:])' \"$@\"", "sh", TOOL, "run", "--summary", "sleep", "60")
tap.ok(done.returncode == -signal.SIGALRM, "an alarm that was set before", done.returncode, done.stderr)


def hung_up():
    """The program and the tool as the leader of a session whose terminal goes away; how the tool ends."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(TOOL, [TOOL, "run", "--summary", "sh", "-c", "echo ready; exec sleep 60"], clean_env(tempfile.gettempdir()))
    os.read(terminal, 100)
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


tap.ok(hung_up() == -signal.SIGHUP, "a terminal that is gone")
with subprocess.Popen([TOOL, "run", "sh", "-c", "echo $$"], env=clean_env(tempfile.gettempdir()), stdout=subprocess.PIPE, text=True) as process:
    said = process.stdout.read()
tap.ok(int(said) == process.pid, "the program takes the tool's process", said, process.pid)

# ---- LD_PRELOAD ----

tap.ok(preloaded(run("printenv", "LD_PRELOAD")) == [LIBRARY, *RUNTIME], "the library beside the tool, by a name for each platform")
other = ":".join(["libm.so.6", *RUNTIME, "libdl.so.2"])
tap.ok(preloaded(run("printenv", "LD_PRELOAD", env={"LD_PRELOAD": other})) == [LIBRARY, "libm.so.6", *RUNTIME, "libdl.so.2"], "others stay, behind it")
done = run(TOOL, "run", "printenv", "LD_PRELOAD", env={"LD_PRELOAD": f"{SHIM['LD_PRELOAD']} libm.so.6:{LIBRARY}"})
tap.ok(preloaded(done) == [LIBRARY, *RUNTIME, "libm.so.6"], "never twice", done.stdout)
with tempfile.TemporaryDirectory() as folder:
    copy = shutil.copy(BUILD / "libaccel.so", folder)
    tap.ok(preloaded(run("--shim", copy, "printenv", "LD_PRELOAD"))[0] == copy, "--shim")
    blank = Path(folder, "a folder")
    blank.mkdir()
    shutil.copy(BUILD / "libaccel.so", blank)
    done = run("--shim", blank / "libaccel.so", "echo")
    refused = r"accel %s.*a folder/libaccel.so has a blank or a colon in its path, which LD_PRELOAD does not take\n"
    tap.ok(done.returncode == 126 and re.fullmatch(refused % "run: ", done.stderr), "a path that LD_PRELOAD cannot have", done.stderr)
    shutil.copy(TOOL, blank)
    for command, status in ("diff", 2), ("estimate --gpu H200", 2), ("calibrate", 1), ("doctor", 1):
        done = start(str(blank / "accel"), *command.split(), "--", "true", env=HIDDEN)
        said = done.stdout + done.stderr
        tap.ok(done.returncode == status and re.search(refused.replace("accel %s", ""), said),
               f"the same, {command}", done.returncode, said)

    # The dynamic linker has three variables, which it replaces in LD_PRELOAD; another `$' is one.
    refused = r"accel run: .*/libaccel\.so has a variable of the dynamic linker \(\$LIB\) in its " \
              r"path, which LD_PRELOAD replaces\n"
    for name in "$ORIGIN", "a${PLATFORM}b", "$LIB", "$HOME", "$PLATFORMS", "a$":
        there = Path(folder, name)
        there.mkdir()
        copy = shutil.copy(BUILD / "libaccel.so", there)
        done = run("--shim", copy, "printenv", "LD_PRELOAD")
        taken = name in ("$HOME", "$PLATFORMS", "a$")
        tap.ok((done.returncode, preloaded(done)[0], done.stderr) == (0, copy, "") if taken
               else done.returncode == 126 and re.fullmatch(refused, done.stderr),
               f"{name} in its path", done.returncode, done.stdout, done.stderr)

    # ---- What cannot be run: one line, and the shell's status ----

    plain_file = Path(folder, "plain")
    plain_file.write_text("")
    for arguments, status, line in (
        (["--", "no-such-program"], 127, "accel run: no-such-program: No such file or directory"),
        (["--", f"{folder}/none"], 127, f"accel run: {folder}/none: No such file or directory"),
        (["--", str(plain_file)], 126, f"accel run: {plain_file}: Permission denied"),
        (["--", folder], 126, f"accel run: {folder}: Permission denied"),
        ([], 2, "accel run: no program is given: accel run -- PROGRAM"),
        (["--policy=fast", "echo"], 2, "accel run: --policy=fast: allowed is auto,gpu,cpu"),
        (["--policy=", "echo"], 2, "accel run: --policy=: allowed is auto,gpu,cpu"),
        (["--shim=/none.so", "echo"], 126, "accel run: /none.so is not there; name libaccel.so with --shim"),
    ):
        done = run(*arguments)
        tap.ok((done.returncode, done.stdout, done.stderr) == (status, "", line + "\n"), f"accel run {' '.join(arguments)}".replace(folder, "FOLDER"), done.returncode, done.stderr)
    alone = shutil.copy(TOOL, folder)
    os.remove(copy)
    done = start(alone, "run", "echo")
    if done.returncode == 0 and not done.stderr:
        tap.skip("no library", "one is installed on this machine")
    else:
        tap.ok(done.returncode == 126 and done.stderr == "accel run: libaccel.so is not there; name libaccel.so with --shim\n", "no library", done.returncode, done.stderr)
done = run("--no-such")
tap.ok(done.returncode == 2 and "--no-such" in done.stderr, "an unknown option", done.stderr)
listed = start(TOOL, "--help").stdout
commands = re.findall(r"(?m)^  ([a-z]+)  +\S", listed)
tap.ok({"calibrate", "diff", "estimate", "run"} <= set(commands), "accel --help lists the commands", listed)
for command in commands:
    done = start(TOOL, command, "--help")
    tap.ok(done.returncode == 0 and done.stdout.startswith(f"Usage: accel {command} "), f"accel {command} --help", done.stdout, done.stderr)
tap.done()
