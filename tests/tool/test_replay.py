#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""accel replay: the calls of logs of programs run again, on both sides, with every routine and letter of BLAS and
LAPACK; results are right or said to be wrong, and what cannot run again is named with its reason."""

import json
import re
import subprocess
import tempfile
from collections import namedtuple

import pytest

from lib.log import parse_log
from lib.programs import BUILD, DEBIAN_PYTHON, TEST_GPU, clean_env, start
from lib.table import routine_table

TOOL = BUILD / "accel"
GPU = {"ACCEL_CUDA_DIR": str(BUILD / "testgpu"), "TESTGPU_DELAY_US": "0", "OPENBLAS_NUM_THREADS": "1"}
LOGGED = {**TEST_GPU, **GPU, "ACCEL_START": "wait", "ACCEL_LOG": "1"}
SIDE = re.compile(r"  (cpu|gpu) +(?:([\d.e+-]+) ms   (?:error ([\d.e+-]+|inf) of the bound(: WRONG)?|its result cannot "
                  r"be judged)|(.+))")
PROGRAM = """import numpy as n
a = n.arange(40000.).reshape(200, 200) % 7 + 9 * n.eye(200)
for i in range(3): a @ a
n.linalg.solve(a, a); n.linalg.svd(a)"""
UNJUDGED = set("gecon pocon laswp sygv hegv sygvd hegvd sygvx hegvx syevr heevr syevx heevx".split())
PRODUCT = {"v": 1, "pid": 1, "tid": 1, "sym": "dgemm_", "args": "N,N", "m": 9, "n": 9, "k": 9, "ran": "cpu",
           "why": "slower"}
FULL = "accel replay: stdout: No space left on device\n"

# run: {line: (what, {side: (ms, error, fault)})}; left_out: {line: reason}; said: all of it.
Replayed = namedtuple("Replayed", "status run left_out said")


def accel_replay(*arguments, env={}, **options):
    return subprocess.run([TOOL, "replay", *map(str, arguments)], env={**clean_env(tempfile.gettempdir()), **env},
                          text=True, timeout=300,
                          **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options})


def replay(log, *arguments, env=GPU):
    done = accel_replay(log, *arguments, env=env)
    run, left_out, at = {}, {}, None
    for line in done.stdout.splitlines():
        head = re.match(re.escape(str(log)) + r":(\d+): (.*?)(?:: not run: (.*))?$", line)
        if head and head[3]:
            left_out[int(head[1])] = head[3]
        elif head:
            at = int(head[1])
            run[at] = (head[2], {})
        elif SIDE.fullmatch(line):
            side, ms, error, _, fault = SIDE.fullmatch(line).groups()
            run[at][1][side] = (float(ms or 0), float(error or -1), fault)
    return Replayed(done.returncode, run, left_out, done.stdout + done.stderr)


def line(**fields):
    fields = {"why": "slower", **fields, "ran": "cpu"}
    return "accel pid=1 tid=1 " + " ".join(f"{k}={v}" for k, v in fields.items()) + "\n"


def replay_text(folder, text):
    (folder / "log").write_text(text)
    return replay(folder / "log")


def routine_of(what):
    return re.fullmatch(r"(?:cblas_|LAPACKE_)?(\w+?)_?", what.split()[0])[1]


# ---- A program's log ----


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("program") / "log"
    start(DEBIAN_PYTHON, "-c", PROGRAM, env={**LOGGED, "ACCEL_LOG_FILE": str(path)})
    return path


@pytest.fixture(scope="module")
def lines(log):
    """The log's decisions by their numbers in the file."""
    return {n: fields for n, text in enumerate(log.read_text().splitlines(), 1) for fields in parse_log(text)}


@pytest.fixture(scope="module")
def replayed(log):
    return replay(log)


def test_of_equal_calls_the_first(replayed):
    assert replayed.status == 0, replayed.said
    assert {what.split()[0] for what, _ in replayed.run.values()} == {"cblas_dgemm", "dgesv_", "dgesdd_"}
    assert len(replayed.run) == 3


def test_both_sides_are_right(replayed):
    for _, sides in replayed.run.values():
        assert sides.keys() == {"cpu", "gpu"}
        for ms, error, _ in sides.values():
            assert ms > 0
            assert 0 <= error <= 1


def test_a_line_says_what_is_not_run(replayed):
    assert list(replayed.left_out.values()) == ["it asked for a size of workspace"]


def test_beside_the_log_s_own_time(replayed, lines):
    for n in replayed.run:
        assert f"{float(lines[n]['ms']):.4g} ms   gpu0, forced" in replayed.said


def test_all_every_line(log, lines):
    every = replay(log, "--all")
    assert every.status == 0, every.said
    assert len(every.run) + len(every.left_out) == len(lines)


def test_line(log, lines):
    second = list(lines)[1]
    one = replay(log, "--line", second)
    assert one.status == 0, one.said
    assert list(one.run) == [second]


def test_a_line_of_the_banner_is_no_call(log, lines):
    assert min(lines) > 1
    assert replay(log, "--line=1").status == 1


def test_line_counts_the_lines_of_others(log, lines, tmp_path):
    first = min(lines)
    other = tmp_path / "log"
    other.write_text("a line of the program's\n" + log.read_text())
    assert replay(other, "--line=1").status == 1
    assert list(replay(other, "--line", first + 1).run) == [first + 1]


def test_the_same_numbers_each_time(log):
    again = [re.sub(r" +[\d.e+-]+ ms", " ms", replay(log).said) for _ in range(2)]
    assert again[0] == again[1]


def test_without_a_gpu_the_cpu_runs_alone(log):
    found = replay(log, env={"CUDA_VISIBLE_DEVICES": "-1"})
    assert found.status == 0
    assert "no GPU" in found.said
    assert found.run
    for _, sides in found.run.values():
        assert sides.keys() == {"cpu"}


def test_a_wrong_result_is_found(log):
    wrong = replay(log, env={**GPU, "TESTGPU_WRONG": "gemm:1+"})
    assert wrong.status == 1
    assert ": WRONG" in wrong.said


def test_json_as_well_which_leaves_nothing_to_be_assumed(tmp_path):
    found = replay_text(tmp_path, start(DEBIAN_PYTHON, "-c", PROGRAM, env={**LOGGED, "ACCEL_LOG": "json"}).stderr)
    assert found.status == 0, found.said
    assert len(found.run) == 3
    assert "assumed" not in found.said


# ---- Every routine, letters and sizes at random; the result of most routines is judged ----


@pytest.fixture(scope="module")
def random_calls(tmp_path_factory):
    folder = tmp_path_factory.mktemp("random")
    log = folder / "log"

    def decisions(program, *arguments):
        done = start(program, *arguments, env={**LOGGED, "ACCEL_LOG_FILE": str(log)})
        assert done.returncode == 0, done.stderr

    for interface in ("fortran", "cblas-column", "cblas-row"):
        decisions("random_calls", "-i", interface, "-c", 3, "-n", 60, "-r", "?*")
    decisions("random_lapack", "-f", "tyesmv", "-c", 3, "-n", 40, "-o", folder / "report", 1)
    # OpenBLAS's gesv does nothing without right-hand sides: replay says so. It lacks some routines,
    # and calls of a few come to nothing.
    text = "".join(text for text in log.read_text().splitlines(True) if " nrhs=0 " not in text)
    text += "".join(line(sym=f"{letter}gemmt{end}_", args="L,N,T", n=30, k=20) for letter in "sdcz"
                    for end in ("", "r"))
    text += line(sym="sbgemm_", args="N,T", m=40, n=30, k=20) + "".join(line(sym=f"{letter}pocon_", args="U", n=30)
                                                                        for letter in "sdcz")
    return replay_text(folder, text)


def test_random_calls_of_all_routines_no_wrong_result(random_calls):
    assert random_calls.status == 0, random_calls.said
    assert not [what for what, sides in random_calls.run.values() for _, error, _ in sides.values() if error > 1]


def test_the_cpu_succeeds_at_each_that_its_library_has(random_calls):
    assert not [what for what, sides in random_calls.run.values()
                if "library lacks" not in (sides["cpu"][2] or "library lacks")]


def test_each_routine_of_blas_and_lapack_has_run(random_calls):
    table = {name for row in ("ROUTINE", "LAPACK") for name, op in routine_table(row).items() if "batch" not in op}
    assert len(table) > 200
    assert table <= {routine_of(what) for what, _ in random_calls.run.values()}


def test_all_but_few_are_judged(random_calls):
    unjudged = {routine_of(what)[1:] for what, sides in random_calls.run.values() if sides["cpu"][1] < 0
                and not sides["cpu"][2]}
    assert unjudged <= UNJUDGED


def test_on_the_gpu_too(random_calls):
    judged = {side: sum(sides[side][1] >= 0 for _, sides in random_calls.run.values()) for side in ("cpu", "gpu")}
    assert judged["gpu"] > 0.9 * judged["cpu"]


# ---- What a line does not say, and what cannot be run ----


def test_gaps_and_scalars(tmp_path):
    found = replay_text(tmp_path, line(sym="dgemm_", args="N,T", m=70, n=50, k=30, lda=80, ldb=60, ldc=90, alpha=-1,
                                       beta=0) +
                        line(sym="dgemv_", args="T", m=70, n=50, incx=-2, incy=3, lda=100))
    assert found.status == 0, found.said
    assert len(found.run) == 2
    assert not [error for _, sides in found.run.values() for _, error, _ in sides.values() if not 0 <= error <= 1]
    assert found.said.count("assumed") == 1, "what a line does not tell is named"
    assert "alpha = 1, beta = 1" in found.said


def test_a_line_with_the_reason_for_each_that_cannot_be_run(tmp_path):
    found = replay_text(tmp_path, line(sym="svm_train", l=100, features=3) + line(sym="dgemm_batch_strided_",
                                                                                  args="N,N", m=1, n=1, k=1) +
                        line(sym="dgemm_", args="N,N", m=9, n=9, k=9, why="device_data") + line(sym="dnothing_", m=1) +
                        line(sym="dgemm_", args="N,Q", m=9, n=9, k=9) + line(sym="dgemm_", args="N,N", m=9, n=9) +
                        "accel pid=1 tid=1 event=pinned sym=dgemm_ ms=1 est_cpu_ms=2\n")
    assert found.status == 1, "nothing is run"
    assert not found.run
    assert sorted(found.left_out) == [1, 2, 3, 4, 5, 6]


def test_operands_beyond_the_machine_s_memory(tmp_path):
    found = replay_text(tmp_path, line(sym="dgemm_", args="N,N", m=2000000, n=2000000, k=2000000))
    assert found.status == 1
    assert "memory" in found.left_out[1]


@pytest.mark.parametrize("arguments", ["", "LOG LOG", "LOG --line=0", "LOG --line=x", "LOG --line=1 --all"])
def test_wrong_options(log, arguments):
    done = accel_replay(*arguments.replace("LOG", str(log)).split())
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def test_an_empty_log():
    assert accel_replay("/dev/null", env=GPU).returncode == 1


@pytest.mark.parametrize("options", [[], ["--line=1"]], ids=["all", "--line"])
def test_a_log_without_a_call(tmp_path, options):
    (tmp_path / "log").write_text("accel pid=1 tid=1 event=start version=1\n")
    done = accel_replay(tmp_path / "log", *options, env=GPU)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "accel replay: no call in the log\n")


def test_a_log_s_words_do_not_act_on_a_terminal(tmp_path):
    evil = {**PRODUCT, "x": "\x1b[31m", "ran": "\x1b[32m", "why": "\x1b[33m"}
    found = replay_text(tmp_path, json.dumps(evil) + "\n" + json.dumps(evil | {"sym": "\x1b[31mevil"}) + "\n")
    assert found.status == 0
    assert "\x1b" not in found.said
    for shown in ("?[31m", "?[32m", "?[33m", "?[31mevil"):
        assert shown in found.said


def test_a_full_disk(log):
    with open("/dev/full", "w") as full:
        done = accel_replay(log, env=GPU, stdout=full)
    assert done.returncode == 2
    assert done.stderr == FULL


def test_a_full_disk_and_nothing_more_to_write_at_the_end(tmp_path):
    (tmp_path / "few").write_text(2 * (json.dumps(PRODUCT) + "\n"))  # of which the first runs
    with open("/dev/full", "w") as full:
        done = accel_replay(tmp_path / "few", env=GPU, stdout=full)
    assert done.returncode == 2
    assert done.stderr == FULL
