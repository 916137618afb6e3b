#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""accel explain: where the time went, where it was lost and why, and what to change, with a log's own numbers; logs
that are damaged, empty, or none."""

import json
import re

import pytest

from lib.logs import busy, decision, write
from lib.programs import BUILD, TEST_GPU, start
from lib.terminal import on_terminal

TOOL = str(BUILD / "accel")
# A run that waits for CUDA.
WAITS = [decision(0.5 * i, why="warming", ms=400, sym="dsyevd_", args="V,L", n=2000, est_cpu_ms=400, est_gpu_ms=130)
         for i in range(1, 13)]
WAITS += [decision(7 + 0.1 * i, "gpu0", "faster", 20, sym="dgemm_", m=1000, n=1000, k=500, est_cpu_ms=90, est_gpu_ms=21)
          for i in range(10)]
LOST = "12 calls ran on the CPU while the GPU was starting, in 4.80 s in place of about 1.56 s"
FULL = "accel explain: stdout: No space left on device\n"


def explain(*arguments, **options):
    return start(TOOL, "explain", *arguments, **options)


def told(*arguments):
    return json.loads(explain("--json", *arguments).stdout)


def part(text, heading):
    """The lines below a heading of the text."""
    return text.split(f"\n{heading}\n")[1].split("\n\n")[0].splitlines()


def words(lines):
    return [line.split() for line in lines]


@pytest.fixture
def waits(tmp_path):
    """The log of the run that waits."""
    return write(tmp_path / "waits", WAITS)


# ---- A run that waits for CUDA ----


def test_the_whole(waits):
    done = explain(waits)
    assert done.returncode == 0
    assert not done.stderr
    assert "22 calls of 1 process took 5.000 s; it ran 7.800 s from the first call to the last" in done.stdout


def test_by_routine(waits):
    assert words(part(explain(waits).stdout, "Time by routine")[1:]) == [
        ["dsyevd", "12", "4.800", "96.0", "%", "0", "%"], ["dgemm", "10", "0.200", "4.0", "%", "100", "%"]]


def test_by_routine_and_size(waits):
    assert words(part(explain(waits).stdout, "By routine and size")[1:]) == [
        ["dsyevd", "2000", "12", "cpu", "warming", "4.800", "1.560", "-3.240"],
        ["dgemm", "1000", "10", "gpu0", "faster", "0.200", "0.900", "0.700"]]


def test_what_was_lost(waits):
    assert part(explain(waits).stdout, "Where time was lost") == [f"  - dsyevd 2000: {LOST}"]


def test_what_to_change(tmp_path):
    """What waiting for CUDA's start would bring, where the log says how long that took."""
    ready = {**WAITS[11], "event": "gpu", "start_ms": 400}
    done = explain(write(tmp_path / "ready", [*WAITS[:12], {key: ready[key] for key in ("v", "time", "host", "rank", "pid", "tid", "event", "start_ms")},
                                              *WAITS[12:]]))
    assert len(part(done.stdout, "What to change")) == 1
    assert f"{LOST}: ACCEL_START=wait makes calls wait for it, which took 0.40 s, and would save about 2.84 s" in " ".join(done.stdout.split())


def test_what_to_change_of_a_log_that_does_not_say(waits):
    assert part(explain(waits).stdout, "What to change") == ["  Nothing that a setting would bring."]


# ---- The same from text, from several files, and beside other output ----


@pytest.fixture
def text(tmp_path):
    """The same log in text."""
    left_out = ("v", "time", "host", "rank", "depth")
    lines = ["accel " + " ".join(f"{key}={value}" for key, value in line.items() if key not in left_out)
             for line in WAITS]
    path = tmp_path / "text"
    path.write_text("\n".join(["a program's own", *lines, "accel: a message", ""]))
    return path


def test_text_says_what_json_says_except_for_times_of_day(waits, text):
    shown = explain(text)
    assert shown.returncode == 0
    assert shown.stdout.split("\n", 1)[1] == explain(waits).stdout.split("\n", 1)[1]
    assert "22 calls of 1 process took 5.000 s\n" in shown.stdout


def test_logs_of_three_ranks_are_one(waits, tmp_path):
    both = told(*(write(tmp_path / f"rank{i}", [{**line, "rank": i, "pid": 100 + i} for line in WAITS[i::3]])
                  for i in range(3)))
    assert {key: both[key] for key in ("processes", "calls", "calls_s", "damaged", "dropped")} == {
        "processes": 3, "calls": 22, "calls_s": 5.0, "damaged": 0, "dropped": 0}
    assert both["rows"] == told(waits)["rows"]
    assert both["lost"] == told(waits)["lost"]


def test_from_stdin(text):
    shown = start("/bin/sh", "-c", '"$1" explain - <"$2"', "sh", TOOL, text)
    assert shown.returncode == 0
    assert "22 calls" in shown.stdout


# ---- Every sum is the log's ----


def test_the_rows_add_up(tmp_path):
    lines = busy()
    found = told(write(tmp_path / "busy", lines))
    total = sum(line["ms"] for line in lines) * 1e-3
    assert found["v"] == 1
    assert sum(row["s"] for row in found["rows"]) == pytest.approx(total, rel=1e-9)
    assert found["calls_s"] == pytest.approx(total, rel=1e-9)
    assert found["processes"] == 2
    assert "outside_s" not in found


def test_each_row_is_its_calls(tmp_path):
    lines = busy()
    for row in told(write(tmp_path / "busy", lines))["rows"]:
        mine = [x for x in lines if x["ran"] == row["ran"] and x["why"] == row["why"]
                and row["size_min"] <= x["n"] <= row["size_max"]
                and row["routine"] in x["sym"]]
        other = sum(x["est_gpu_ms" if row["ran"] == "cpu" else "est_cpu_ms"] for x in mine) * 1e-3
        assert len(mine) == row["calls"], row
        assert abs(sum(x["ms"] for x in mine) * 1e-3 - row["s"]) < 1e-9, row
        assert abs(other - row["elsewhere_s"]) < 1e-9, row
        assert row["size_max"] < 4 * row["size_min"], row


def test_what_was_lost_on_the_gpu(tmp_path):
    found = told(write(tmp_path / "forced", [decision(1, "gpu0", "forced", 50, m=100, n=100, k=100, est_cpu_ms=1,
                                                      est_gpu_ms=2)]))
    assert found["lost"] == ["dgemm 100: 1 call took 50 ms on the GPU, sent there by a setting, and about 1 ms on the "
                             "CPU, as estimated"]


def test_calls_inside_others_have_rows_and_are_in_no_sum(tmp_path):
    found = told(write(tmp_path / "inner", [decision(1.0, why="warming", ms=30, depth=1, est_cpu_ms=30, est_gpu_ms=1),
                                            decision(1.2, why="warming", ms=100, sym="dpotrf_", n=1000, est_cpu_ms=100,
                                                     est_gpu_ms=5)]))
    assert found["calls"] == 1
    assert found["calls_s"] == 0.1
    assert [(row["routine"], row["inner"]) for row in found["rows"]] == [("dpotrf", False), ("dgemm", True)]
    assert [line.split(":")[0] for line in found["lost"]] == ["dpotrf 1000"]


def test_what_is_outside(tmp_path):
    summary = {"v": 1, "event": "summary", "pid": 4711, "program": "x", "processes": 1, "s": 12, "calls": 2, "rows": []}
    found = told(write(tmp_path / "outside", [decision(1, ms=100), decision(11, ms=100), summary]))
    assert found["processes"] == 1
    assert abs(found["outside_s"] - 9.9) < 1e-5
    assert [hint for hint in found["hints"] if "98 % of the time is outside" in hint]


# ---- A library that has written one ----


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A program's own log."""
    run = start("steps", "dgemm:300:6", "solve:200:3",
                env={**TEST_GPU, "ACCEL_LOG": "json", "ACCEL_START": "wait", "TESTGPU_DELAY_US": "0"})
    path = tmp_path_factory.mktemp("own") / "log"
    path.write_text(run.stderr)
    return path


def test_a_program_s_own_log(own):
    rows = told(own)["rows"]
    assert sum(row["calls"] for row in rows if row["routine"] == "dgemm" and row["ran"] == "gpu0"
               and not row["inner"]) == 6
    assert sum(row["calls"] for row in rows if row["routine"] == "dgesv") == 3


# ---- What goes wrong ----


def test_a_log_that_is_not_there(tmp_path):
    done = explain(f"{tmp_path}/absent")
    assert done.returncode == 1
    assert done.stderr == f"accel explain: {tmp_path}/absent: No such file or directory\naccel explain: no call in " \
                          "the log\n"


def test_empty_logs(tmp_path):
    empty, none = tmp_path / "empty", tmp_path / "none"
    empty.touch()
    none.write_text("no log\n")
    done = explain(empty, none)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"accel explain: {empty}: empty; a log is what ACCEL_LOG=1 or json writes",
        f"accel explain: {none}: no line of libaccel's log; a log is what ACCEL_LOG=1 or json writes",
        "accel explain: no call in any of the logs"]


def test_a_cut_log_and_a_folder(own, tmp_path):
    cut, whole = tmp_path / "cut", own.read_text()
    cut.write_text(whole[:-30])
    done = explain(cut, tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"accel explain: {cut}: 1 damaged or cut line left out, the first is line {len(whole.splitlines())}",
        f"accel explain: {tmp_path}: Is a directory"]


def test_no_log_is_given():
    done = explain()
    assert done.returncode == 2
    assert done.stderr == "accel explain: no log is given: accel explain LOG\n"


def test_a_full_disk(own):
    with open("/dev/full", "w") as full:
        done = explain(own, stdout=full)
    assert done.returncode == 2
    assert done.stderr == FULL


def test_a_full_disk_and_much_to_write(tmp_path):
    """Longer than a stream's buffer: nothing is left to write at the end."""
    kinds = write(tmp_path / "kinds", [decision(i, sym=f"f{i}") for i in range(40)])
    with open("/dev/full", "w") as full:
        done = explain("--json", kinds, stdout=full)
    assert done.returncode == 2
    assert done.stderr == FULL


def test_json_is_utf_8_whatever_bytes_the_log_has(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"accel pid=1 tid=1 sym=\xff\xfeq\xc3\xa9 n=9 ran=cpu\xff why=warming\xff ms=500 est_cpu_ms=500 "
                    b"est_gpu_ms=1\n")
    with open(tmp_path / "json", "w") as out:
        explain("--json", log, stdout=out)
    found = json.loads((tmp_path / "json").read_bytes().decode())
    assert [(row["routine"], row["ran"], row["why"]) for row in found["rows"]] == [("??q\u00e9", "cpu?", "warming?")]


def test_colour_on_a_terminal_alone_and_none_of_a_log_s_own(tmp_path):
    evil = write(tmp_path / "evil", [decision(1, sym="\x1b[31mred\x07", why="\x1b]0;title\x07")])
    coloured, plain, dumb = (on_terminal(TOOL, "explain", evil, env=env)
                             for env in ({"TERM": "xterm"}, {"TERM": "xterm", "NO_COLOR": "1"}, {"TERM": "dumb"}))
    assert b"\x1b[1mTime by routine\x1b[0m" in coloured
    assert b"\x1b[31m" not in coloured
    assert b"\x07" not in coloured
    assert b"\x1b" not in plain
    assert re.search(rb"\?\[31mred\?", plain)
    assert b"\x1b" not in dumb
