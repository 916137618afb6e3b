#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""The banner: what a log and a summary say once of a process and its machine, when it is known, and of nothing else."""

import os
import re

import pytest

from lib.calibrated import calibrate, keys
from lib.log import LINE, about, events, parse_json, parse_log, said, summaries, table_of
from lib.programs import BUILD, DEBIAN_PYTHON, LOG, NO_GPU, ROOT, SHIM, TEST_GPU, start
from lib.terminal import on_terminal

TOOL = str(BUILD / "accel")
VERSION = (ROOT / "VERSION").read_text().strip()
FAST = {**TEST_GPU, "TESTGPU_DELAY_US": "0"}
BEGIN = "import numpy, os, sys\na = numpy.ones((64, 64))\ndef call(): a @ a\n"
SOLVE = "numpy.linalg.eigvalsh(a)\n"
CHILDREN = """import subprocess
call()
for i in range(2): subprocess.run([sys.executable, '-c', 'import numpy; a = numpy.ones((64, 64)); a @ a'])
if os.fork() == 0: call(); os._exit(0)
os.wait()"""
TESTGPU = os.path.realpath(BUILD / "testgpu")
ONE_CALL = ["start", "gpu", "cblas_dgemm"]


def python(program, env, **options):
    return start(DEBIAN_PYTHON, "-c", BEGIN + program, env=env, **options)


def kinds(text):
    """The lines of a log in text in their order: events by their names, decisions by their symbols."""
    return [(re.search(r" event=(\w+)", line) or re.search(r" sym=(\w+)", line))[1]
            for line in text.splitlines() if line.startswith("accel ")]


def check_form(text):
    assert not [line for line in text.splitlines() if not LINE.fullmatch(line)]


# ---- In text ----


@pytest.fixture(scope="module")
def log():
    """Of two products and eigenvalues."""
    return python("call(), call()\n" + SOLVE, {**FAST, **LOG}).stderr


def test_each_part_once_before_the_first_decision_after_it_is_known(log):
    assert kinds(log) == ["start", "gpu", "cblas_dgemm", "cblas_dgemm", "dsyevd_", "solver", "dsyevd_"]


def test_as_lines_of_the_log_that_are_no_decisions(log):
    check_form(log)
    assert len(parse_log(log)) == 4


def test_libaccel_its_commit_the_program(log):
    begin = events(log, "start")[0]
    built = start(TOOL, "--version").stdout.splitlines()
    assert begin["version"] == VERSION
    assert begin.get("commit") == next((line.split()[1] for line in built if line.startswith("commit ")), None)
    assert begin["program"] == "python3"
    assert begin["precision"] == "native"
    assert begin["note"] == "results of a GPU differ from the CPU's in rounding"


def test_the_cpu_s_library_without_symbolic_links_its_threads_and_figures(log):
    begin = events(log, "start")[0]
    assert os.path.realpath(begin["cpu_library"]) == begin["cpu_library"]
    assert "blas" in begin["cpu_library"]
    assert begin["cpu_threads"] == "2"
    assert begin["figures"] == "nominal"


def test_the_gpu_its_driver_and_cublas(log):
    gpu = events(log, "gpu")[0]
    assert gpu["gpu"] == "Test GPU"
    assert gpu["driver_library"] == f"{TESTGPU}/libcuda.so.1"
    assert gpu["cublas_library"].startswith(f"{TESTGPU}/libcublas.so.")
    assert gpu["cublas"].isdigit()
    assert gpu["cuda"].isdigit()
    assert gpu["figures"] == "nominal"


def test_cusolver(log):
    solver = events(log, "solver")[0]
    assert solver["cusolver"].isdigit()
    assert solver["cusolver_library"].startswith(f"{TESTGPU}/libcusolver.so.")


def test_a_precision_that_is_not_native_is_told():
    begin = events(python("call()", {**FAST, **LOG, "ACCEL_PRECISION": "emulated,tf32"}).stderr, "start")[0]
    assert begin["precision"] == "emulated,tf32"
    assert begin["note"].endswith("; results are not native: ACCEL_PRECISION")


# ---- No GPU ----

NOTHING = {"no device": {**NO_GPU, "ACCEL_POLICY": "gpu"}, "none was asked for": {**TEST_GPU, "ACCEL_DEVICES": "none"},
           "the policy": {**TEST_GPU, "ACCEL_POLICY": "cpu"}}
REASONS = {"none was asked for": "ACCEL_DEVICES=none", "the policy": "ACCEL_POLICY=cpu"}


@pytest.mark.parametrize("name", NOTHING)
def test_no_gpu_the_reason_once(name, tmp_path):
    """On stderr, where a message has it if it is no setting's; in a file of its own; in JSON; and in the summary."""
    env, reason = NOTHING[name], REASONS.get(name)
    done = python("call(), call()", {**env, **LOG})
    messages = [line.removeprefix("accel: no GPU is used: ") for line in said(done)]
    assert len(messages) == (reason is None)
    assert [e["reason"] for e in events(done.stderr, "no_gpu")] == ([reason] if reason else [])
    reason = reason or messages[0]
    python("call(), call()", {**env, **LOG, "ACCEL_LOG_FILE": f"{tmp_path}/log"})
    text = (tmp_path / "log").read_text()
    assert [e["reason"] for e in events(text, "no_gpu")] == [reason]
    assert kinds(text)[:2] == ["start", "no_gpu"]
    done = python("call()", {**env, "ACCEL_LOG": "json"})
    assert [o["reason"] for o in parse_json(done.stderr) if o.get("event") == "no_gpu"] == [reason]
    done = python("call()", {**env, "ACCEL_SUMMARY": "1"})
    assert [line for line in about(done.stderr) if line.startswith("accel: no GPU ")] == [f"accel: no GPU    {reason}"]


# ---- Once a process, where there is a decision ----


@pytest.mark.parametrize("program", ["pass", "import json"])
def test_a_program_without_a_call_has_none(program):
    assert python(program, {**FAST, **LOG, "ACCEL_SUMMARY": "1"}).stderr == ""


def test_nor_has_the_shell_that_starts_it():
    done = start("/bin/sh", "-c", f"{DEBIAN_PYTHON} -c '{BEGIN}call()'; exit 0", env={**FAST, **LOG})
    assert kinds(done.stderr).count("start") == 1


def test_the_child_of_a_fork_has_its_own_with_its_reason():
    done = python("call()\nif os.fork() == 0: call(); call(); os._exit(0)\nos.wait(); call()", {**FAST, **LOG})
    by_pid = {}
    for line in done.stderr.splitlines():
        by_pid.setdefault(re.search(r"pid=(\d+)", line)[1], []).append(line)
    assert {tuple(kinds("\n".join(lines))) for lines in by_pid.values()} == {
        ("start", "gpu", *["cblas_dgemm"] * 2), ("start", "no_gpu", *["cblas_dgemm"] * 2)}
    assert "does not survive a fork" in events(done.stderr, "no_gpu")[0]["reason"]


def test_before_the_gpu_was_used_the_child_has_a_gpu():
    done = python("if os.fork() == 0: call(); os._exit(0)\nos.wait(); call()", {**FAST, **LOG})
    assert kinds(done.stderr) == ONE_CALL * 2


def test_none_without_a_line():
    assert python("call(), call()", {**FAST, **LOG, "ACCEL_LOG_MIN_MS": "100000"}).stderr == ""


def test_before_what_moves():
    found = kinds(python("call()", {**FAST, "ACCEL_LOG": "2"}).stderr)
    assert found[:2] == ["start", "gpu"]
    assert "h2d" in found


def test_a_terminal_gets_what_a_pipe_gets():
    seen = on_terminal(DEBIAN_PYTHON, "-c", BEGIN + "call()", env={**FAST, **LOG}, stdout=False, stderr=True)
    assert kinds(seen.decode()) == ONE_CALL


def test_a_name_with_blanks_quotes_and_a_new_line_is_quoted(tmp_path):
    name = 'my "program"\n'
    os.symlink(DEBIAN_PYTHON, tmp_path / name)
    done = start(f"{tmp_path}/{name}", "-c", BEGIN + "call()", env={**FAST, **LOG})
    check_form(done.stderr)
    assert events(done.stderr, "start")[0]["program"] == name


@pytest.mark.parametrize("title", ["ray::task", ""])
def test_the_name_is_that_of_the_start_whatever_title_the_program_gives_itself(title):
    done = start("titles", title, env={**FAST, **LOG})
    assert done.returncode == 0
    assert [event["program"] for event in events(done.stderr, "start")] == ["titles"]


# ---- Calibrated figures ----


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("model"))
    calibrate(f"{folder}/model", keys(folder), 1000, 1)
    os.utime(f"{folder}/model", (951825600, 951825600))
    return f"{folder}/model"


def products(model, **env):
    return start("steps", "dgemm:400:2", env={**FAST, "ACCEL_MODEL": model, **env}).stderr


def figures(event):
    return event["figures"], event["calibration"], event["calibrated"]


def test_a_calibration_with_its_day(model):
    text = products(model, **LOG)
    for name in ("start", "gpu"):
        assert figures(events(text, name)[0]) == ("measured", model, "2000-02-29")


def test_a_calibration_in_json(model):
    told = [o for o in parse_json(products(model, ACCEL_LOG="json")) if o.get("event") in ("start", "gpu")]
    assert [figures(o) for o in told] == [("measured", model, "2000-02-29")] * 2


def test_a_calibration_in_the_summary(model):
    lines = about(products(model, ACCEL_SUMMARY="1"))
    assert sum(line.endswith(f"; figures of 2000-02-29, {model}") for line in lines) == 2


# ---- In a summary ----


@pytest.fixture(scope="module")
def summary():
    return python("call()\n" + SOLVE, {**FAST, "ACCEL_SUMMARY": "1"}).stderr


def test_a_line_for_each_part(summary):
    assert [line.split()[1] for line in about(summary)] == ["libaccel", "CPU", "GPU", "driver", "cuBLAS", "cuSOLVER"]
    assert f" {VERSION}" in about(summary)[0]
    assert "differ from the CPU's in rounding" in about(summary)[0]


def test_with_paths_threads_and_figures(summary):
    for path in (f"{TESTGPU}/libcuda.so.1", f"{TESTGPU}/libcublas.so.", f"{TESTGPU}/libcusolver.so."):
        assert path in summary
    assert "2 threads; nominal figures" in summary


def test_behind_the_table(summary):
    assert table_of(summary)[0].startswith("accel: summary of ")


def test_a_precision_that_is_not_native_in_a_summary():
    done = python("call()", {**FAST, "ACCEL_SUMMARY": "1", "ACCEL_PRECISION": "emulated"})
    assert "accel: precision emulated: results are not native" in about(done.stderr)


def test_a_gpu_that_was_not_needed():
    done = python("call()", {**TEST_GPU, "ACCEL_POLICY": "auto", "ACCEL_SUMMARY": "1"})
    assert about(done.stderr)[-1].startswith("accel: no GPU    none was started")


def test_as_json():
    found = summaries(python("call()\n" + SOLVE, {**FAST, "ACCEL_SUMMARY": "json"}).stderr)[0]["about"]
    assert [part["event"] for part in found] == ["start", "gpu", "solver"]
    assert found[0]["cpu_threads"] == 2
    assert found[1]["gpu"] == "Test GPU"


def test_a_log_has_told_it_already():
    done = python("call()", {**FAST, **LOG, "ACCEL_SUMMARY": "1"})
    assert not about(done.stderr)
    assert kinds(done.stderr).count("start") == 1


def test_one_for_all_processes_of_a_run():
    done = start(TOOL, "run", "--summary", "--", DEBIAN_PYTHON, "-c", BEGIN + CHILDREN,
                 env={k: v for k, v in FAST.items() if k not in SHIM})
    assert [line.split()[1] for line in about(done.stderr)] == ["libaccel", "CPU", "GPU", "driver", "cuBLAS"]
    assert "4 processes made calls" in done.stderr
