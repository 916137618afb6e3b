#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""The settings through real processes: config files and their precedence, programs that are left alone, ranks."""

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from lib.log import lines_for, parse_log, said
from lib.programs import LOG, NO_GPU, ROOT, SHIM, TEST_GPU, TESTS, clean_env, start

PROGRAM = ["random_calls", "-c", 2, "-n", 30, "-r", "dgemm"]


@pytest.fixture(scope="module")
def native():
    """The program, without libaccel."""
    done = start(*PROGRAM)
    assert done.returncode == 0
    assert done.stdout
    assert not done.stderr
    return done


@pytest.fixture
def same(native):
    """A run of the program whose stdout and exit status are as without libaccel."""

    def same(program=PROGRAM, **env):
        done = start(*program, env=env)
        assert (done.returncode, done.stdout) == (0, native.stdout), done.stderr
        return done

    return same


@pytest.fixture
def user(tmp_path):
    """The user's config file, which is not there yet."""
    path = tmp_path / ".config/accel/accel.conf"
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture
def named(tmp_path):
    """Writes the config file that ACCEL_CONFIG names."""

    def write(text, mode=0o600):
        path = tmp_path / "named.conf"
        path.write_text(text)
        path.chmod(mode)
        return str(path)

    return write


@pytest.fixture
def env(tmp_path):
    return {**NO_GPU, "HOME": str(tmp_path)}


def check_ended(message, program=PROGRAM, **env):
    """The program ends with this message, before a result of BLAS gets out."""
    done = start(*program, env=env)
    assert done.returncode == 1
    assert done.stdout == ""
    assert said(done) == ["accel: " + message]


def check_shell_goes_on(**env):
    """What calls no BLAS."""
    done = start("/bin/bash", "-c", "ls / >/dev/null && exit 3", env=env)
    assert done.returncode == 3
    assert done.stderr == ""


# ---- Where a setting comes from ----


def test_no_config_file_silent(same, env):
    assert same(**env).stderr == ""


def test_the_users_file(same, env, user):
    user.write_text("# every decision\nACCEL_LOG = 1\n")
    done = same(**env)
    assert lines_for(done)
    assert not said(done)
    # The same in XDG_CONFIG_HOME.
    assert lines_for(same(**{**env, "HOME": "/nowhere", "XDG_CONFIG_HOME": str(user.parents[1])}))


def test_precedence(same, env, user, named):
    """The file of ACCEL_CONFIG goes before the user's, the environment before both, name by name."""
    user.write_text("ACCEL_LOG = 1\n")
    config = named("ACCEL_LOG=json\n")
    assert same(**env, ACCEL_CONFIG=config).stderr.startswith('{"')
    assert same(**env, ACCEL_CONFIG=config, ACCEL_LOG="0").stderr == ""
    done = same(**env, ACCEL_CONFIG=named("ACCEL_SUMMARY=1\n"))
    assert "accel: summary" in done.stderr
    assert lines_for(done)


def test_accel_0_in_a_file(same, env, user, named):
    user.write_text("ACCEL_LOG = 1\n")
    assert same(**env, ACCEL_CONFIG=named("ACCEL=0\n")).stderr == ""


# ---- What cannot be read is said once, and all else is used ----

BAD = "ACCEL_LOG=1\nACCEL_LOGG=1\nfast please\nACCEL_POLICY=fast\nACCEL_SUMMARY=1\n"


def test_each_bad_line_is_named_once_with_file_and_line_and_the_good_ones_are_used(same, env, user):
    user.write_text(BAD)
    done = same(**env)
    assert [line for line in said(done) if line.startswith(f"accel: {user}:")] == [
        f"accel: {user}:2: ACCEL_LOGG is no setting of this version; the nearest is ACCEL_LOG; the line is ignored",
        f"accel: {user}:3: fast please is not understood; allowed: NAME=value; the line is ignored",
        f"accel: {user}:4: ACCEL_POLICY=fast is not understood; allowed: auto,gpu,cpu; the default is used"]
    assert lines_for(done)
    assert "accel: summary" in done.stderr


def test_nothing_is_said_in_programs_that_call_nothing(env, user):
    user.write_text(BAD)
    done = start("/bin/true", env=env)
    assert done.returncode == 0
    assert done.stderr == ""


# ---- A file that the user names, and that has no effect, may have held a promise ----


@pytest.mark.parametrize("fifo, fault", [(False, "cannot be opened (No such file or directory)"),
                                         (True, "is not a regular file")])
def test_a_named_file_that_cannot_be_read_ends_the_program(fifo, fault, same, env, tmp_path):
    path = tmp_path / "config"
    if fifo:
        os.mkfifo(path)
    env["ACCEL_CONFIG"] = str(path)
    check_ended(f"ACCEL_CONFIG={path} {fault}, and may hold ACCEL_REQUIRE; the program ends at its first call of BLAS",
                **env, **LOG)
    check_shell_goes_on(**env)
    assert same(**env, ACCEL="0").stderr == ""


def test_a_named_file_that_all_may_write_without_a_promise_is_ignored(same, env, named):
    config = named("ACCEL_LOG=1\n", 0o666)
    assert same(**env,
                ACCEL_CONFIG=config).stderr == f"accel: ACCEL_CONFIG={config} may be written by all; it is ignored\n"


def test_a_named_file_that_all_may_write_with_a_promise_ends_the_program(env, named):
    config = named("ACCEL_LOG=1\nACCEL_VERIFY=all\n", 0o666)
    done = start(*PROGRAM, env={**env, "ACCEL_CONFIG": config})
    assert done.returncode == 1
    assert said(done) == [f"accel: ACCEL_CONFIG={config} may be written by all, and names ACCEL_VERIFY; the program "
                          f"ends at its first call of BLAS"]


def test_the_gpu_is_wanted_and_a_file_switches_libaccel_off(same, env, named):
    """But not where who wants it does so, too."""
    env.update(ACCEL_CONFIG=named("ACCEL = 0\n"), ACCEL_REQUIRE="gpu")
    check_ended(f"{env['ACCEL_CONFIG']}:1: ACCEL switches libaccel off, and ACCEL_REQUIRE=gpu is set; "
                "the program ends at its first call of BLAS, unless ACCEL=1 is set, too", **env)
    assert same(**env, ACCEL="0").stderr == ""


def test_one_that_nobody_has_named_ends_no_program(same, env, user):
    """Others could end it so."""
    user.write_text("ACCEL_LOG=1\nACCEL_VERIFY=all\n")
    user.chmod(0o666)
    assert said(same(**env)) == [f"accel: {user} may be written by all; it is ignored"]


# ---- A promise that cannot be kept: the program ends before a result of BLAS gets out ----

NOT_UNDERSTOOD = "is not understood; allowed: {}; the program ends at its first call of BLAS"
PROMISE = {"ACCEL_REQUIRE": "1", "ACCEL_VERIFY": "on"}


@pytest.mark.parametrize("gpu", [pytest.param({}, id="no GPU"), pytest.param(TEST_GPU, id="test GPU")])
@pytest.mark.parametrize("name, value, allowed", [
    ("ACCEL_REQUIRE", "1", "gpu,off"), ("ACCEL_VERIFY", "on", "off, all, or sample:N with N from 1 to 9999999999"),
    ("ACCEL_VERIFY_ACTION", "stop", "warn,cpu,abort")])
def test_a_promise_that_is_not_understood(name, value, allowed, gpu, env):
    check_ended(f"{name}={value} {NOT_UNDERSTOOD.format(allowed)}", **{**env, **gpu, name: value})


def test_a_promise_of_a_config_file_that_is_not_understood(env, user):
    user.write_text("\nACCEL_REQUIRE = yes\n")
    done = start(*PROGRAM, env=env)
    assert done.returncode == 1
    assert said(done) == [f"accel: {user}:2: ACCEL_REQUIRE=yes {NOT_UNDERSTOOD.format('gpu,off')}"]


def test_shells_and_what_calls_no_blas_are_not_ended(env):
    check_shell_goes_on(**env, **PROMISE)


def test_nor_is_a_program_with_accel_0(same, env):
    assert same(**env, **PROMISE, ACCEL="0").stderr == ""


BY_LOOKUP = """import ctypes
n, one, x = ctypes.byref(ctypes.c_int(1)), ctypes.byref(ctypes.c_double(1)), ctypes.byref(ctypes.c_double(1))
ctypes.CDLL("libblas.so.3").dgemm_(b"N", b"N", n, n, n, one, x, n, x, n, one, x, n)
print("went on")"""


def test_a_small_call_that_is_bound_by_dlsym_ends_the_program_too(env):
    done = start("/usr/bin/python3", "-c", BY_LOOKUP, env={**env, **PROMISE})
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(said(done)) == 2


def test_two_threads_first_calls_end_the_program_with_the_message(env, tmp_path):
    """One cannot write its message yet, and the other must not end the program without it."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    while True:
        try:
            os.write(writer, b"\n" * 4096)
        except BlockingIOError:
            break
    os.set_blocking(writer, True)
    program = subprocess.Popen([TESTS / "steps", "threads:2:64:1"],
                               env={**clean_env(str(tmp_path)), **env, **PROMISE, "OPENBLAS_NUM_THREADS": "1"},
                               stdout=subprocess.DEVNULL, stderr=writer)
    os.close(writer)
    asleep = 0
    while program.poll() is None and asleep < 5:
        tasks = [Path(task, "stat").read_text().rpartition(")")[2].split()[0]
                 for task in Path(f"/proc/{program.pid}/task").iterdir()]
        asleep = asleep + 1 if len(tasks) == 3 and set(tasks) == {"S"} else 0
        time.sleep(0.02)
    with os.fdopen(reader) as pipe:
        lines = [line for line in pipe.read().splitlines() if line]
    assert program.wait() == 1
    assert len(lines) == 2
    assert all("the program ends at its first call of BLAS" in line for line in lines)


def test_in_a_child_its_exit_status_tells_the_parent(env):
    done = start("surroundings", "fork", "multiply", env={**env, **PROMISE})
    assert done.returncode == 1
    assert len(said(done)) == 2


def test_without_a_stderr_the_exit_status_alone_tells(env):
    done = start("surroundings", "close:0", "multiply", env={**env, **PROMISE})
    assert done.returncode == 1
    assert done.stderr == ""


# ---- Names that are no settings, and what is not there ----


def test_unknown_names_in_the_environment_are_named_once_with_the_nearest_one(same, env):
    done = same(**env, ACCEL_VERFIY="all", ACCEL_HOME="/opt/x", ACCEL_TENSOR="tf32")
    pattern = r"accel: (ACCEL_\w+) is no setting of this version; the nearest is ACCEL_\w+; it is ignored"
    assert sorted(re.sub(pattern, r"\1", line) for line in said(done)) == ["ACCEL_HOME", "ACCEL_TENSOR", "ACCEL_VERFIY"]
    assert "ACCEL_VERFIY is no setting of this version; the nearest is ACCEL_VERIFY;" in done.stderr


@pytest.mark.parametrize("gpu", [pytest.param({}, id="no GPU"),
                                 pytest.param({**TEST_GPU, "ACCEL_POLICY": "auto", "ACCEL_START": "wait"},
                                              id="test GPU")])
@pytest.mark.parametrize("name, value, expected", [
    ("ACCEL_MODEL", "/none/model",
     "no calibration at /none/model (ACCEL_MODEL); built-in figures are used (run `accel calibrate`)"),
    ("ACCEL_CUDA_DIR", "/none", "ACCEL_CUDA_DIR=/none cannot be opened (No such file or directory); it is ignored"),
    ("ACCEL_ORIGINAL", "/none/libblas.so",
     "ACCEL_ORIGINAL=/none/libblas.so cannot be opened (No such file or directory); it is ignored"),
    ("ACCEL_MEMORY", "12",
     "ACCEL_MEMORY=12 is not understood; allowed: a share such as 80%, or a size such as 500M or 12G; of bytes "
     "without a unit, "
                           "1048576 at least; the default is used")],
                         ids=["ACCEL_MODEL", "ACCEL_CUDA_DIR", "ACCEL_ORIGINAL", "ACCEL_MEMORY"])
def test_what_is_not_there_is_named_once(name, value, expected, gpu, env):
    done = start("steps", "dgemm:600:3", env={**env, **gpu, name: value})
    assert done.returncode == 0
    assert [line for line in said(done) if not line.startswith("accel: no GPU is used: ")] == ["accel: " + expected]


def test_a_calibration_that_is_to_be_learned_is_not_missed(same, env, tmp_path):
    assert same(**env, ACCEL_MODEL=str(tmp_path / "new"), ACCEL_LEARN="yes").stderr == ""


# ---- Programs that are left alone ----


@pytest.fixture
def copy(tmp_path):
    """The program by another name."""

    def copy(name):
        shutil.copy(TESTS / "random_calls", tmp_path / name)
        return [str(tmp_path / name), *PROGRAM[1:]]

    return copy


def test_a_program_of_any_name_is_accelerated(copy, same, env):
    assert lines_for(same(copy("job"), **env, **LOG))


@pytest.mark.parametrize("name", ["bash", "mpiexec.hydra"])
def test_one_of_this_name_is_left_alone(name, copy, same, env):
    assert same(copy(name), **env, **LOG, ACCEL_POLICY="wrong").stderr == ""


def test_accel_exclude_replaces_the_default(copy, same, env):
    assert lines_for(same(copy("bash"), **env, **LOG, ACCEL_EXCLUDE="job"))


@pytest.mark.parametrize("name", ["bash", "job"])
def test_or_adds_to_it(name, copy, same, env):
    assert same(copy(name), **env, **LOG, ACCEL_EXCLUDE="default,j?b").stderr == ""


@pytest.mark.parametrize("shell", ["/bin/bash", "/bin/sh"])
def test_what_a_shell_starts_is_accelerated(shell, same, env):
    done = same([shell, "-c", f"{TESTS}/random_calls -c 2 -n 30 -r dgemm; exit $?"], **env, **LOG)
    assert len({line["pid"] for line in lines_for(done)}) == 1


def test_a_shells_exit_status_stays():
    done = start("/bin/bash", "-c", "exit 3", env={**SHIM, **LOG})
    assert done.returncode == 3
    assert done.stderr == ""


# ---- Ranks ----

MPIRUN = shutil.which("mpirun")


@pytest.mark.skipif(not MPIRUN, reason="no mpirun")
def test_each_rank_that_mpirun_gives_has_its_own_log(env, tmp_path):
    done = start(MPIRUN, "--oversubscribe", "--bind-to", "none", "-np", 2, TESTS / "random_calls", *PROGRAM[1:], env={
        **env, **LOG, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "TMPDIR": str(tmp_path),
        "ACCEL_LOG_FILE": f"{tmp_path}/log.%r"})
    assert done.returncode == 0, done.stderr
    logs = sorted(tmp_path.glob("log.*"))
    assert [log.name for log in logs] == ["log.0", "log.1"]
    assert all(parse_log(log.read_text()) for log in logs)


# ---- The table of docs/settings.md and the program's ----


def test_the_document_has_each_setting_and_no_others():
    source = (ROOT / "dispatch/settings/setting_table.c").read_text()
    rows = dict(re.findall(r'^    \{"(ACCEL\w*)",.*?\b(ANYWHERE|ENVIRONMENT|INTERNAL)\b', source, re.M | re.S))
    table = re.search(r"^\| variable \|.*?\n\n", (ROOT / "docs/settings.md").read_text(), re.M | re.S)[0]
    documented = [name for row in table.strip().splitlines() for name in re.findall(r"`(ACCEL\w*)`", row.split("|")[1])]
    assert len(rows) > 15
    assert sorted(documented) == sorted(name for name, scope in rows.items() if scope != "INTERNAL")
