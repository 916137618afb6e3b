#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""accel run: the program has the library before all others, once; its output, exit status and signals are its own;
options override variables."""

import os
import pty
import re
import shutil
import signal
import struct
import subprocess
from pathlib import Path

import pytest

from lib.log import lines_for
from lib.programs import BUILD, DEBIAN_PYTHON, NO_GPU, RUNTIME, SHIM, clean_env, start
from tool.commands import COMMANDS

TOOL = str(BUILD / "accel")
LIBRARY = f"{BUILD}/accel-preload/$PLATFORM/libaccel.so"  # not found by what cannot load it
GPU = {"ACCEL_CUDA_DIR": str(BUILD / "testgpu")}
HIDDEN = {"CUDA_VISIBLE_DEVICES": NO_GPU["CUDA_VISIBLE_DEVICES"]}
PRODUCT = [DEBIAN_PYTHON, "-c", "import numpy as n; a = n.arange(90000.).reshape(300, 300) % 7; print((a @ a).sum())"]
ALARM = "exec python3 -c 'import os, signal, sys; signal.alarm(1); os.execv(sys.argv[1], sys.argv[1:])' \"$@\""
BLANK = r"accel %s.*a folder/libaccel.so has a blank or a colon in its path, which LD_PRELOAD does not take\n"


def run(*arguments, env=None):
    return start(TOOL, "run", *arguments, env=env or {})


def preloaded(done):
    return done.stdout.rstrip("\n").split(":")


# ---- The program, and what it is asked to say ----


@pytest.fixture(scope="module")
def plain():
    """The program without libaccel."""
    return start(*PRODUCT)


def test_without_options_the_program_s_own_output_and_silence(plain):
    done = run("--", *PRODUCT, env=HIDDEN)
    assert (done.returncode, done.stdout, done.stderr) == (0, plain.stdout, plain.stderr)


def test_verbose_and_policy_gpu_a_line_of_a_call_on_the_gpu(plain):
    done = run("-v", "--policy", "gpu", "--", *PRODUCT, env=GPU)
    assert done.stdout == plain.stdout
    assert lines_for(done, sym="cblas_dgemm", ran="gpu0")


def test_the_options_go_before_the_environment_and_the_dashes_may_be_left_out(plain):
    done = run("--verbose", "--policy=cpu", *PRODUCT, env={**GPU, "ACCEL_POLICY": "gpu", "ACCEL_LOG": "0"})
    assert done.stdout == plain.stdout
    assert lines_for(done, sym="cblas_dgemm", ran="cpu", why="user")


def test_summary(plain):
    done = run("--summary", *PRODUCT, env=GPU)
    assert done.stdout == plain.stdout
    assert "accel: summary" in done.stderr
    assert not lines_for(done)


def test_require_gpu_without_one_the_program_ends():
    done = run("--require-gpu", "--policy=gpu", *PRODUCT, env=HIDDEN)
    assert done.returncode == 1
    assert not done.stdout
    assert "ACCEL_REQUIRE=gpu" in done.stderr


def test_the_program_s_own_options_stay_its_own():
    assert run("echo", "-v", "--summary", "--", "-x").stdout == "-v --summary -- -x\n"


# ---- Exit status, signals, the process ----


@pytest.mark.parametrize("options", [[], ["--summary"]], ids=["alone", "--summary"])
def test_the_signal_that_ends_it(options):
    assert run(*options, "sh", "-c", "kill -TERM $$").returncode == -signal.SIGTERM


def test_the_exit_status():
    assert run("sh", "-c", "exit 7").returncode == 7


def test_an_alarm_that_was_set_before():
    done = start("/bin/sh", "-c", ALARM, "sh", TOOL, "run", "--summary", "sleep", "60")
    assert done.returncode == -signal.SIGALRM


def test_a_terminal_that_is_gone(tmp_path):
    """The program and the tool as the leader of a session whose terminal goes away."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(TOOL, [TOOL, "run", "--summary", "sh", "-c", "echo ready; exec sleep 60"], clean_env(str(tmp_path)))
    os.read(terminal, 100)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGHUP


def test_the_program_takes_the_tool_s_process(tmp_path):
    with subprocess.Popen([TOOL, "run", "sh", "-c", "echo $$"], env=clean_env(str(tmp_path)), stdout=subprocess.PIPE,
                          text=True) as process:
        said = process.stdout.read()
    assert int(said) == process.pid


# ---- LD_PRELOAD ----


def test_the_library_beside_the_tool_by_a_name_for_each_platform():
    assert preloaded(run("printenv", "LD_PRELOAD")) == [LIBRARY, *RUNTIME]


def test_others_stay_behind_it():
    done = run("printenv", "LD_PRELOAD", env={"LD_PRELOAD": ":".join(["libm.so.6", *RUNTIME, "libdl.so.2"])})
    assert preloaded(done) == [LIBRARY, "libm.so.6", *RUNTIME, "libdl.so.2"]


def test_never_twice():
    done = run(TOOL, "run", "printenv", "LD_PRELOAD", env={"LD_PRELOAD": f"{SHIM['LD_PRELOAD']} libm.so.6:{LIBRARY}"})
    assert preloaded(done) == [LIBRARY, *RUNTIME, "libm.so.6"]


def test_shim(tmp_path):
    copy = shutil.copy(BUILD / "libaccel.so", tmp_path)
    assert preloaded(run("--shim", copy, "printenv", "LD_PRELOAD"))[0] == str(copy)


@pytest.fixture
def blank(tmp_path):
    """A library in a folder whose name LD_PRELOAD cannot have."""
    folder = tmp_path / "a folder"
    folder.mkdir()
    shutil.copy(BUILD / "libaccel.so", folder)
    return folder


def test_a_path_that_ld_preload_cannot_have(blank):
    done = run("--shim", blank / "libaccel.so", "echo")
    assert done.returncode == 126
    assert re.fullmatch(BLANK % "run: ", done.stderr)


@pytest.mark.parametrize("command, status", [("diff", 2), ("estimate --gpu H200", 2), ("calibrate", 1), ("doctor", 1)])
def test_such_a_path_with_another_command(blank, command, status):
    shutil.copy(TOOL, blank)
    done = start(str(blank / "accel"), *command.split(), "--", "true", env=HIDDEN)
    assert done.returncode == status
    assert re.search(BLANK.replace("accel %s", ""), done.stdout + done.stderr)


def shim_in(folder, name):
    """accel run with a library in a folder of this name, and the library's path."""
    (folder / name).mkdir()
    copy = str(shutil.copy(BUILD / "libaccel.so", folder / name))
    return run("--shim", copy, "printenv", "LD_PRELOAD"), copy


@pytest.mark.parametrize("name", ["$ORIGIN", "a${PLATFORM}b", "$LIB"])
def test_a_variable_of_the_dynamic_linker_in_the_path(tmp_path, name):
    """It has three, which it replaces in LD_PRELOAD."""
    done, _ = shim_in(tmp_path, name)
    assert done.returncode == 126
    assert re.fullmatch(r"accel run: .*/libaccel\.so has a variable of the dynamic linker \(\$LIB\) in its path, which "
                        r"LD_PRELOAD replaces\n",
                        done.stderr)


@pytest.mark.parametrize("name", ["$HOME", "$PLATFORMS", "a$"])
def test_another_dollar_is_one(tmp_path, name):
    done, copy = shim_in(tmp_path, name)
    assert (done.returncode, preloaded(done)[0], done.stderr) == (0, copy, "")


# ---- What cannot be run: one line, and the shell's status ----


@pytest.mark.parametrize("arguments, status, line", [
    (["--", "no-such-program"], 127, "accel run: no-such-program: No such file or directory"),
    (["--", "FOLDER/none"], 127, "accel run: FOLDER/none: No such file or directory"),
    (["--", "/dev/null"], 126, "accel run: /dev/null: Permission denied"),
    (["--", "FOLDER/plain"], 126, "accel run: FOLDER/plain: it is not executable"),
    (["--", "FOLDER"], 126, "accel run: FOLDER: it is a folder; allowed: a program"),
    ([], 2, "accel run: no program is given: accel run -- PROGRAM"),
    (["--policy=fast", "echo"], 2, "accel run: --policy=fast: allowed is auto,gpu,cpu"),
    (["--policy=", "echo"], 2, "accel run: --policy=: allowed is auto,gpu,cpu"),
    (["--shim=/none.so", "echo"], 126, "accel run: /none.so is not there; name libaccel.so with --shim")],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None)
def test_what_cannot_be_run(tmp_path, arguments, status, line):
    (tmp_path / "plain").write_text("")
    done = run(*(argument.replace("FOLDER", str(tmp_path)) for argument in arguments))
    assert (done.returncode, done.stdout, done.stderr) == (status, "", line.replace("FOLDER", str(tmp_path)) + "\n")


HERE = "it is in this folder, which is not on PATH"
NO_X = "it is not executable"
NO_LINE = "its first line does not say what runs it (#!)"
SCRIPT = "print(1)\n"
TRUE = Path(shutil.which("true")).read_bytes()


def changed(change):
    """A program that the kernel, or nothing on this machine, can start."""
    return bytes(change(bytearray(TRUE)))


def for_another_machine(program):
    program[18:20] = struct.pack("<H", 247)
    return program


def for_32_bits(program):
    program[4] = 1
    return for_another_machine(program)


def without_its_linker(program):
    return program.replace(LINKER, LINKER[:-1] + b"X")


LINKER = re.search(rb"/lib[\w./-]*/ld-linux[\w.-]*", TRUE)[0]


@pytest.mark.parametrize("name, content, executable, status, says", [
    pytest.param("one.py", SCRIPT, False, 127, f"{HERE}: COMMAND -- python3 one.py", id="a script, by its name alone"),
    pytest.param("one.py", SCRIPT, True, 127, f"{HERE}: COMMAND -- python3 one.py", id="by its name, executable"),
    pytest.param("./one.py", SCRIPT, False, 126, f"{NO_X}: COMMAND -- python3 ./one.py", id="by its path"),
    pytest.param("./one.py", SCRIPT, True, 126, f"{NO_LINE}: COMMAND -- python3 ./one.py", id="without #!"),
    pytest.param("one.sh", "true", False, 127, f"{HERE}: COMMAND -- sh one.sh", id="a shell's"),
    pytest.param("./one", "#!/usr/bin/env python3\n" + SCRIPT, False, 126, f"{NO_X}: COMMAND -- python3 ./one",
                 id="env's, not executable"),
    pytest.param("./one", "#! /none/python3.1 -u\n" + SCRIPT, True, 127,
                 "its interpreter is not there: /none/python3.1: COMMAND -- python3 ./one", id="no interpreter"),
    pytest.param("./one.py", "#!/usr/bin/python3\r\n" + SCRIPT, True, 127,
                 "its first line ends with a carriage return, as on Windows: COMMAND -- python3 ./one.py", id="CR"),
    pytest.param("./one", "#!/none/reader\n" + SCRIPT, True, 127,
                 "its interpreter is not there: /none/reader, and reader, which reads it, is not installed",
                 id="nothing reads it"),
    pytest.param("./one", TRUE, False, 126, f"{NO_X}: chmod +x ./one; COMMAND -- ./one", id="a program"),
    pytest.param("one", TRUE, True, 127, f"{HERE}: COMMAND -- ./one", id="a program, by its name"),
    pytest.param("one", TRUE, False, 127, f"{HERE}: chmod +x ./one; COMMAND -- ./one", id="by its name, not executable"),
    pytest.param("./one", changed(for_another_machine), True, 126, "it is for another machine", id="another machine"),
    pytest.param("./one", changed(for_32_bits), True, 126, "it has 32 bits", id="32 bits"),
    pytest.param("./one", changed(without_its_linker), True, 127,
                 f"its dynamic linker is not there: {LINKER.decode()[:-1]}X", id="no dynamic linker"),
    pytest.param("one", None, False, 127, "it is a folder; allowed: a program", id="a folder")])
def test_what_is_there_and_cannot_be_run(tmp_path, name, content, executable, status, says):
    path = tmp_path / name
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        path.chmod(0o755 if executable else 0o644)
    for command, prefix, ends in (("run", "accel run: ", status), ("run --summary", "accel run: ", status),
                                  ("estimate --gpu=H200", "accel estimate: ", status), ("diff", "accel diff: ", 2),
                                  ("calibrate", "accel: ", 1), ("doctor", "", 1)):
        done = subprocess.run([TOOL, *command.split(), "--", name], cwd=tmp_path, text=True, timeout=60,
                              env={**clean_env(str(tmp_path)), **HIDDEN, "ACCEL_MODEL": str(tmp_path / "model")},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert done.returncode == ends
        typed = f"accel {command}".removesuffix(" --summary")
        where = done.stdout if command == "doctor" else done.stderr
        if command == "run":
            assert (done.stdout, done.stderr) == ("", f"{prefix}{name}: {says}\n".replace("COMMAND", typed))
        elif command != "doctor" or content is None or content[:2] != "#!":  # doctor has a row for interpreters
            assert f": {says}\n".replace("COMMAND", typed) in where, (command, where)


def test_a_shell_s_script_without_a_first_line(tmp_path):
    """As of a shell."""
    for name in ("one", "one.sh"):
        script = tmp_path / name
        script.write_text("echo $0 $1\n")
        script.chmod(0o755)
        assert run(script, "word").stdout == f"{script} word\n"


def test_no_library(tmp_path):
    done = start(str(shutil.copy(TOOL, tmp_path)), "run", "echo")
    if done.returncode == 0 and not done.stderr:
        pytest.skip("one is installed on this machine")
    assert done.returncode == 126
    assert done.stderr == "accel run: libaccel.so is not there; name libaccel.so with --shim\n"


def test_an_unknown_option():
    done = run("--no-such")
    assert done.returncode == 2
    assert "--no-such" in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command):
    done = start(TOOL, command, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith(f"Usage: accel {command} ")
