#!/usr/bin/python3 -B
"""accel explain: where the time went, where it was lost and why, and what to change, with a log's own numbers; logs that are damaged, empty, or none."""

import json
import re
import tempfile
from pathlib import Path

from lib.logs import busy, decision, write
from lib.programs import BUILD, TEST_GPU, start
from lib.tap import Tap
from lib.terminal import on_terminal

TOOL = str(BUILD / "accel")
tap = Tap()


def explain(*arguments, **options):
    return start(TOOL, "explain", *arguments, **options)


def told(*arguments):
    return json.loads(explain("--json", *arguments).stdout)


def part(text, heading):
    """The lines below a heading of the text."""
    return text.split(f"\n{heading}\n")[1].split("\n\n")[0].splitlines()


with tempfile.TemporaryDirectory() as folder:
    # ---- A run that waits for CUDA ----

    lines = [decision(0.5 * i, why="warming", ms=400, sym="dsyevd_", args="V,L", n=2000, est_cpu_ms=400, est_gpu_ms=130) for i in range(1, 13)]
    lines += [decision(7 + 0.1 * i, "gpu0", "faster", 20, sym="dgemm_", m=1000, n=1000, k=500, est_cpu_ms=90, est_gpu_ms=21) for i in range(10)]
    log = write(f"{folder}/log", lines)
    done = explain(log)
    tap.ok(done.returncode == 0 and not done.stderr and "22 calls of 1 process took 5.000 s; it ran 7.800 s from the first call to the last" in done.stdout, "the whole", done)
    tap.ok([line.split() for line in part(done.stdout, "Time by routine")[1:]] == [["dsyevd", "12", "4.800", "96.0", "%", "0", "%"], ["dgemm", "10", "0.200", "4.0", "%", "100", "%"]], "by routine",
           done.stdout)
    tap.ok([line.split() for line in part(done.stdout, "By routine and size")[1:]] == [["dsyevd", "2000", "12", "cpu", "warming", "4.800", "1.560", "-3.240"],
                                                                                       ["dgemm", "1000", "10", "gpu0", "faster", "0.200", "0.900", "0.700"]], "by routine and size", done.stdout)
    tap.ok(part(done.stdout, "Where time was lost") == ["  - dsyevd 2000: 12 calls ran on the CPU while the GPU was starting, in 4.80 s in place of about 1.56 s"], "what was lost", done.stdout)
    tap.ok(len(part(done.stdout, "What to change")) == 1 and "12 calls ran on the CPU while the GPU was starting, in 4.80 s in place of about 1.56 s: ACCEL_START=wait" in done.stdout, "what to change",
           done.stdout)

    # ---- The same from text, from several files, and beside other output ----

    def as_text(line):
        return "accel " + " ".join(f"{key}={value}" for key, value in line.items() if key not in ("v", "time", "host", "rank", "depth")) + "\n"

    text = f"{folder}/text"
    Path(text).write_text("a program's own\n" + "".join(map(as_text, lines)) + "accel: a message\n")
    shown = explain(text)
    tap.ok(shown.returncode == 0 and shown.stdout.split("\n", 1)[1] == done.stdout.split("\n", 1)[1] and "22 calls of 1 process took 5.000 s\n" in shown.stdout, "text says what JSON says, except for times of day",
           shown.stdout)
    ranks = [write(f"{folder}/rank{i}", [{**line, "rank": i, "pid": 100 + i} for line in lines[i::3]]) for i in range(3)]
    both = told(*ranks)
    tap.ok({key: both[key] for key in ("processes", "calls", "calls_s", "damaged", "dropped")} == {"processes": 3, "calls": 22, "calls_s": 5.0, "damaged": 0, "dropped": 0} and
           both["rows"] == told(log)["rows"] and both["lost"] == told(log)["lost"], "logs of three ranks are one", both)
    shown = start("/bin/sh", "-c", '"$1" explain - <"$2"', "sh", TOOL, text)
    tap.ok(shown.returncode == 0 and "22 calls" in shown.stdout, "from stdin", shown)

    # ---- Every sum is the log's ----

    lines = busy()
    log = write(f"{folder}/busy", lines)
    found = told(log)
    total = sum(line["ms"] for line in lines) * 1e-3
    tap.ok(found["v"] == 1 and abs(sum(row["s"] for row in found["rows"]) - total) < 1e-9 * total and abs(found["calls_s"] - total) < 1e-9 * total and found["processes"] == 2 and
           "outside_s" not in found, "JSON: the rows add up", total, found["calls_s"])
    for row in found["rows"]:
        mine = [x for x in lines if x["ran"] == row["ran"] and x["why"] == row["why"] and row["size_min"] <= x["n"] <= row["size_max"] and row["routine"] in x["sym"]]
        other = sum(x["est_gpu_ms" if row["ran"] == "cpu" else "est_cpu_ms"] for x in mine) * 1e-3
        tap.ok(len(mine) == row["calls"] and abs(sum(x["ms"] for x in mine) * 1e-3 - row["s"]) < 1e-9 and abs(other - row["elsewhere_s"]) < 1e-9 and row["size_max"] < 4 * row["size_min"],
               f"JSON: {row['routine']} {row['size_min']}-{row['size_max']} on {row['ran']}, {row['why']}", row, len(mine))
    found = told(write(f"{folder}/forced", [decision(1, "gpu0", "forced", 50, m=100, n=100, k=100, est_cpu_ms=1, est_gpu_ms=2)]))
    tap.ok(found["lost"] == ["dgemm 100: 1 call took 50 ms on the GPU, sent there by a setting, and about 1 ms on the CPU, as estimated"], "what was lost on the GPU", found["lost"])
    inner = [decision(1.0, why="warming", ms=30, depth=1, est_cpu_ms=30, est_gpu_ms=1), decision(1.2, why="warming", ms=100, sym="dpotrf_", n=1000, est_cpu_ms=100, est_gpu_ms=5)]
    found = told(write(f"{folder}/inner", inner))
    tap.ok(found["calls"] == 1 and found["calls_s"] == 0.1 and [(row["routine"], row["inner"]) for row in found["rows"]] == [("dpotrf", False), ("dgemm", True)] and
           [line.split(":")[0] for line in found["lost"]] == ["dpotrf 1000"], "calls inside others have rows, and are in no sum", found)
    summary = {"v": 1, "event": "summary", "pid": 4711, "program": "x", "processes": 1, "s": 12, "calls": 2, "rows": []}
    found = told(write(f"{folder}/outside", [decision(1, ms=100), decision(11, ms=100), summary]))
    tap.ok(found["processes"] == 1 and abs(found["outside_s"] - 9.9) < 1e-5 and any("98 % of the time is outside" in hint for hint in found["hints"]), "what is outside", found)

    # ---- A library that has written one ----

    run = start("steps", "dgemm:300:6", "solve:200:3", env={**TEST_GPU, "ACCEL_LOG": "json", "ACCEL_START": "wait", "TESTGPU_DELAY_US": "0"})
    Path(log).write_text(run.stderr)
    found = told(log)
    tap.ok(sum(row["calls"] for row in found["rows"] if row["routine"] == "dgemm" and row["ran"] == "gpu0" and not row["inner"]) == 6 and
           sum(row["calls"] for row in found["rows"] if row["routine"] == "dgesv") == 3, "a program's own log", found)

    # ---- What goes wrong ----

    empty, none, cut = (f"{folder}/{name}" for name in ("empty", "none", "cut"))
    Path(empty).write_text("")
    Path(none).write_text("no log\n")
    Path(cut).write_text(Path(log).read_text()[:-30])
    for arguments, status, says in (
        ([f"{folder}/absent"], 1, [f"accel explain: {folder}/absent: No such file or directory", "accel explain: no call in the log"]),
        ([empty, none], 1, [f"accel explain: {empty}: empty; a log is what ACCEL_LOG=1 or json writes", f"accel explain: {none}: no line of libaccel's log; a log is what ACCEL_LOG=1 or json writes",
                            "accel explain: no call in any of the logs"]),
        ([cut, folder], 1, [f"accel explain: {cut}: 1 damaged or cut line left out, the first is line {len(run.stderr.splitlines())}", f"accel explain: {folder}: Is a directory"]),
        ([], 2, ["accel explain: no log is given: accel explain LOG"]),
    ):
        done = explain(*arguments)
        tap.ok(done.returncode == status and done.stderr.splitlines() == says, says[0].replace(folder, ""), done)
    with open("/dev/full", "w") as full:
        done = explain(log, stdout=full)
    tap.ok(done.returncode == 2 and done.stderr == "accel explain: stdout: No space left on device\n", "a full disk", done)
    # Longer than a stream's buffer: nothing is left to write at the end.
    with open("/dev/full", "w") as full:
        done = explain("--json", write(f"{folder}/kinds", [decision(i, sym=f"f{i}") for i in range(40)]), stdout=full)
    tap.ok(done.returncode == 2 and done.stderr == "accel explain: stdout: No space left on device\n", "a full disk, and much to write", done)

    # ---- Bytes that are no UTF-8 ----

    Path(log).write_bytes(b"accel pid=1 tid=1 sym=\xff\xfeq\xc3\xa9 n=9 ran=cpu\xff why=warming\xff ms=500 est_cpu_ms=500 est_gpu_ms=1\n")
    with open(f"{folder}/json", "w") as out:
        explain("--json", log, stdout=out)
    found = Path(f"{folder}/json").read_bytes().decode(errors="backslashreplace")
    tap.ok("\\xff" not in found and [(row["routine"], row["ran"], row["why"]) for row in json.loads(found)["rows"]] == [("??q\u00e9", "cpu?", "warming?")], "JSON is UTF-8", found)

    # ---- A terminal ----

    evil = write(f"{folder}/evil", [decision(1, sym="\x1b[31mred\x07", why="\x1b]0;title\x07")])
    coloured, plain, dumb = (on_terminal(TOOL, "explain", evil, env=env) for env in ({"TERM": "xterm"}, {"TERM": "xterm", "NO_COLOR": "1"}, {"TERM": "dumb"}))
    tap.ok(b"\x1b[1mTime by routine\x1b[0m" in coloured and b"\x1b" not in plain and b"\x1b" not in dumb and re.search(rb"\?\[31mred\?", plain) and
           b"\x1b[31m" not in coloured and b"\x07" not in coloured, "colour on a terminal alone, not with NO_COLOR, and none of a log's own", coloured, plain)
tap.done()
