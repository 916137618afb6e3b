#!/usr/bin/python3 -B
"""accel report --html: the page has the log's numbers, is whole by itself, gives nothing that a log says to the browser as HTML, and stays small.
tests/browser/test_report.py looks at what its script draws."""

import base64
import hashlib
import json
import os
import pty
import random
import re
import tempfile
from pathlib import Path

from lib.calibrated import put
from lib.logs import busy, decision, write
from lib.page import Page
from lib.programs import BUILD, TEST_GPU, start
from lib.tap import Tap

TOOL = str(BUILD / "accel")
tap = Tap()


def report(folder, *arguments, **options):
    return start(TOOL, "report", "--html", *arguments, env={"HOME": folder, **options.pop("env", {})}, **options)


def page_of(folder, *arguments):
    """The page, as text and read, and what went to stderr."""
    out = f"{folder}/page.html"
    done = report(folder, *arguments, "-o", out)
    text = Path(out).read_bytes().decode() if Path(out).exists() else ""
    Path(out).unlink(missing_ok=True)
    return done, text, Page(text)


def table_of(page):
    """The rows of the table of routines: [[texts], [values]]."""
    rows = [[list(row.all("td")) for row in body.all("tr")] for table in page.root.all("table", **{"class": "sorts"}) for body in table.all("tbody")][0]
    return [([cell.text() for cell in row], [cell.attributes.get("data-value") for cell in row]) for row in rows]


def data_of(page):
    """What the page's script draws."""
    return [json.loads(e.text()) for e in page.root.all("script", id="data")][0]


def is_sound(page, text, name):
    """The page's own promises: closed elements, nothing from elsewhere, one script, which the policy knows by its hash, its data, and texts for the charts."""
    elements = list(page.root.all())
    scripts = [e.text() for e in elements if e.name == "script" and e.attributes.get("type") != "application/json"]
    policy = [e.attributes["content"] for e in elements if e.name == "meta" and e.attributes.get("http-equiv") == "Content-Security-Policy"]
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode() if scripts else ""
    outside = [e.name for e in elements if {"src", "href", "xlink:href", "srcset", "action"} & set(e.attributes)] + re.findall(r"url\(|@import|https?://", text)
    handlers = [key for e in elements for key in e.attributes if key.startswith("on") or key == "style"]
    places = re.findall(r"@[A-Z]+@", text)
    charts = [e for e in elements if e.name == "svg"]
    told = all(any(t.attributes.get("id") == c.attributes["aria-labelledby"] and t.text() for t in c.all("title")) and c.attributes["role"] == "img" for c in charts)
    told = told and all("The table of routines has the numbers" in e.text() for e in elements if e.name == "figure") and data_of(page)["sides"]
    tap.ok(not page.wrong and not outside and not handlers and not places and told and len(scripts) == 1 and len(policy) == 1 and
           policy[0] == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'", f"{name}: the page is sound", page.wrong, outside, handlers, places, policy, digest)
    return charts


with tempfile.TemporaryDirectory() as folder:
    # ---- A program's own log ----

    for form in ("json", "1"):
        done = start("steps", "dgemm:300:6", "solve:200:3", env={**TEST_GPU, "ACCEL_LOG": form, "ACCEL_START": "wait", "TESTGPU_DELAY_US": "0"})
        log = Path(folder, f"log.{form}")
        log.write_text("hello\n" + done.stderr + "the end\n")
        shown, text, page = page_of(folder, log)
        rows = table_of(page)
        charts = is_sound(page, text, f"ACCEL_LOG={form}")
        tap.ok(shown.returncode == 0 and not shown.stderr and [(r[0][0], r[0][2], r[0][4]) for r in rows if "dgemm" in r[0][0] and r[0][2] == "gpu0"][-1] == ("dgemm", "gpu0", "6") and
               sum(int(r[1][4]) for r in rows if r[0][0] == "dgesv") == 3, f"ACCEL_LOG={form}: the routines, their places and counts", shown, [r[0] for r in rows])
        tap.ok(len(charts) >= 2 and "dgemm on the GPU" in text and "no calibration is there" in text, f"ACCEL_LOG={form}: the charts", len(charts))

    # ---- Numbers ----

    lines = busy()
    log = write(f"{folder}/busy.json", lines)
    shown, text, page = page_of(folder, log)
    rows = table_of(page)
    charts = is_sound(page, text, "a busy log")
    total = sum(line["ms"] for line in lines) * 1e-3
    foot = [[cell.text() for cell in row.all("td")] for table in page.root.all("tfoot") for row in table.all("tr")][-1]
    tap.ok(abs(sum(float(r[1][5]) for r in rows) - total) < 1e-6 * total and sum(int(r[1][4]) for r in rows) == len(lines) and foot[5] == "100.0 %", "time and calls add up to the log's",
           total, foot)
    times = [float(r[1][5]) for r in rows]
    tap.ok(times == sorted(times, reverse=True), "the longest time is first")
    for symbol, routine in (("cblas_dgemm", "dgemm"), ("dsyevd_", "dsyevd")):
        for ran in ("gpu0", "cpu"):
            mine = [line for line in lines if line["sym"] == symbol and line["ran"] == ran]
            theirs = [r[1] for r in rows if r[0][0] == routine and r[0][2] == ran]
            other = sum(line["est_cpu_ms" if ran == "gpu0" else "est_gpu_ms"] for line in mine) * 1e-3
            ms = sum(line["ms"] for line in mine) * 1e-3
            tap.ok(abs(sum(float(v[8]) for v in theirs) - other) < 1e-5 * other and abs(sum(float(v[9]) for v in theirs) - (other - ms)) < 1e-4 * (other + ms),
                   f"{routine} on {ran}: the other side's time, and what was saved", other, other - ms, theirs)
    biggest = max((line for line in lines if line["sym"] == "cblas_dgemm" and line["ran"] == "gpu0"), key=lambda line: line["n"])
    alone = write(f"{folder}/one.json", [biggest])
    one = table_of(page_of(folder, alone)[2])[0]
    tap.ok(abs(float(one[1][10]) - 2e-6 * biggest["n"] ** 3 / biggest["ms"]) < 1e-3 * float(one[1][10]) and one[0][1] == str(biggest["n"]), "a product's rate, and its size", one)
    idle = [decision(1.0, ms=0.1, why=why, sym="dgesdd_", args="S", m=400, n=400) for why in ("workspace_query", "empty", "bad_argument")]
    none = page_of(folder, write(f"{folder}/idle", idle))
    tap.ok(len(table_of(none[2])) == 3 and all(not row[0][10] for row in table_of(none[2])) and "No call has both a time and a known count of operations" in none[1],
           "calls that compute nothing have no rate", *(row[0] for row in table_of(none[2])))
    timeline = data_of(page)["timeline"]
    lanes = [lane["name"] for lane in timeline["lanes"]]
    threads = list(dict.fromkeys(f"node17 pid {line['pid']} thread {line['tid']}" for line in lines))
    tap.ok(lanes == threads + ["node17 gpu0"], "a lane for each thread, and one for the device", lanes)
    spent = [sum(line["ms"] * 1e-3 for line in lines if thread.endswith(f"pid {line['pid']} thread {line['tid']}")) for thread in threads]
    drawn = [sum(n * share for side in lane["busy"] for n, share in zip(side[::2], side[1::2])) * timeline["bin"] / 100 for lane in timeline["lanes"]]
    tap.ok(all(abs(a - b) < 0.01 * timeline["span"] for a, b in zip(spent, drawn)) and all(sum(side[::2]) == 1024 for lane in timeline["lanes"] for side in lane["busy"]),
           "the lanes of threads have the time of their calls", spent, drawn)
    shared = [{**biggest, "ran": ran} for ran in ("gpu0+gpu11", "gpu11", "gpu0+gpu11+gpu2+cpu", "cpu")]
    seen = {lane["name"]: lane["says"].split(": ")[1].split(",")[0] for lane in data_of(page_of(folder, write(f"{folder}/shared", shared))[2])["timeline"]["lanes"]}
    tap.ok({k: v for k, v in seen.items() if "gpu" in k} == {"node17 gpu0": "2 calls", "node17 gpu11": "3 calls", "node17 gpu2": "1 calls"},
           "a call that devices share is on the lane of each of them", seen)

    # ---- Several logs; calls inside others ----

    half = len(lines) // 2
    first, second = write(f"{folder}/rank0", lines[:half]), write(f"{folder}/rank1", lines[half:])
    both = table_of(page_of(folder, second, first)[2])
    tap.ok([r[0] for r in both] == [r[0] for r in rows], "two logs make the table that one makes", both, rows)
    inner = [decision(1.0, ms=30, depth=1), decision(1.1, ms=20, depth=1, ran="gpu0", why="faster"), decision(1.2, ms=100, sym="dpotrf_", n=1000, args="L"), decision(1.3, ms=5)]
    shown, text, page = page_of(folder, write(f"{folder}/inner", inner))
    own = {(r[0][0], r[0][2]): float(r[1][5]) for r in table_of(page)}
    foot = [cell.text() for table in page.root.all("tfoot") for cell in table.all("td")]
    tap.ok(own == {("dgemm", "cpu"): 0.005, ("dpotrf", "cpu"): 0.1, ("dgemm inside others", "cpu"): 0.03, ("dgemm inside others", "gpu0"): 0.02} and "2 calls were made inside others" in text and
           foot[3:5] == ["2", "105 ms"], "the time of calls inside others counts once", own, foot)

    # ---- Ceilings ----

    model = f"{folder}/model"
    cpu = re.search(r"(?m)^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text()).group(1)
    put(model, {f'[cpu "{cpu}" threads=2 library="libopenblas.so 1"]': "dgemm 100x100x100:0.1 1000x1000x1000:40\n",
                '[gpu "Other GPU" cuda=13.0 cublas=130100]': "up_gbps=99\ndgemm 100x100x100:0.01\n",
                '[gpu "NVIDIA H100 80GB HBM3" cuda=13.0 cublas=130100]': "up_gbps=21.5\ndgemm 100x100x100:0.05 2000x2000x2000:1.6\n"})
    shown, text, page = page_of(folder, "--model", model, log)
    roofs = [says for _, _, _, says in data_of(page)["roofline"]["roofs"]]
    rates = {name: (float(number), unit) for name, number, unit in (re.fullmatch(r"(.*): (\S+) (\S+)", roof).groups() for roof in roofs)}
    near = [(name, unit) for name, number, unit in (("CPU, double precision", 50, "Gflop/s"), ("GPU, double precision", 10, "Tflop/s"), ("operands copied to the GPU", 21.5, "GB/s"))
            if rates.get(name, (0, ""))[1] == unit and abs(rates[name][0] / number - 1) < 0.02]
    tap.ok(len(near) == len(roofs) == 3 and model in text and text.count("NVIDIA H100 80GB HBM3") == 2, "the ceilings are the calibration's, and the page says so", roofs)
    shown, text, page = page_of(folder, log)
    tap.ok("There are no ceilings: no calibration is there" in text and not data_of(page)["roofline"]["roofs"], "without a calibration there are none")

    # ---- A log that is not to be trusted ----

    evil = "</title></script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;"
    poison = [decision(1, sym=evil, ms=3), decision(2, "gpu0" + evil, evil, 4, host=evil, pid=evil, tid=evil), decision(3, ms=1, m="NaN", n=1e400, k=-5), decision(4, ms=1e300, m=2**60),
              {"v": 1, "pid": 1, "event": evil, evil: evil, "gpu": evil}, decision(5, why="\u0000\u0007\ud800x"), decision(6, sym="@ROUTINES@@TITLE@", ms=-1, depth=1e9),
              {"inner": {"pid": 1}, **{key: value for key, value in decision(7, ms=2).items() if key not in ("pid", "tid")}}]
    name = f"{folder}/" + evil.replace("/", "_")
    write(name, poison)
    with open(name, "ab") as to:
        to.write(b'{"pid": 1, "sym": "\xff\xfe<b>\xc0\xaf", "ran": "cpu", "why": "small", "ms": 1, "m": 7}\n')
    shown, text, page = page_of(folder, name)
    is_sound(page, re.sub(r"@(ROUTINES|TITLE)@", "", text), "a poisoned log")
    tap.ok(shown.returncode == 0 and "alert(1)" in page.root.text() and not list(page.root.all("img")) and not list(page.root.all("b", **{"src": "x"})) and text.count("alert(1)") > 3, "what it says is text", shown)
    tap.ok("(null)" not in text and "pid ? thread ?" in page.root.text(), "a line without its process and thread", [m[0] for m in re.finditer(".{20}pid .{20}", text)])
    tap.ok("@ROUTINES@@TITLE@ inside others" in [r[0][0] for r in table_of(page)], "a name like a place of the template is a name", table_of(page))

    # ---- Bounds ----

    rng = random.Random(5)
    many = f"{folder}/many"
    with open(many, "w") as to:
        for i in range(60000):
            m, k, ran = rng.randint(1, 5000), rng.randint(1, 5000), rng.choice(("cpu", "gpu0"))
            to.write(f"accel pid={i % 300} tid={i % 7000} sym={rng.choice('sdcz')}gemm_ args=N,T m={m} n={m} k={k} ran={ran} why=forced ms={rng.lognormvariate(0, 3):.6f}\n")
        to.writelines(json.dumps(decision(rng.uniform(0, 1e6), sym=f"f{i}", pid=i, ms=rng.uniform(0, 1e4))) + "\n" for i in range(6000))
    shown, text, page = page_of(folder, many)
    marks = data_of(page)["scatter"]["marks"] + data_of(page)["roofline"]["marks"]
    tap.ok(shown.returncode == 0 and len(text) < 2_000_000 and 1000 < len(marks) <= 8000 and len(table_of(page)) == 250 and "All other rows" in text and "Further threads have no lane" in text and
           "66 k calls of" in text, "many calls, of many kinds: the page stays small, and says what is not on it", shown, len(text), len(marks))

    # Of a cluster, what its processes say is there once; of many lines that differ, the page says
    # how many it leaves out.
    def says(event, host, rank, **fields):
        return {"v": 1, "time": 1.5, "host": host, "rank": rank, "pid": 7, "tid": 7, "event": event, **fields}

    lines_of = [says("start", f"node{i}", i, program="p") for i in range(64)] + [says("gpu", f"node{i // 4}", i, gpu="H100", gpu_id=f"id{i:032}", index=i % 4) for i in range(400)]
    shown, text, page = page_of(folder, write(f"{folder}/cluster", [decision(2), *lines_of]))
    told = {next(table.all("caption")).text(): {next(row.all("th")).text(): next(row.all("td")).text() for row in table.all("tr")}
            for section in page.root.all("section", **{"aria-labelledby": "h-settings"}) for table in section.all("table")}
    tap.ok(list(told) == ["start, 64 lines", "gpu, 400 lines"] and told["start, 64 lines"]["host"] == ", ".join(f"node{i}" for i in range(64)) and
           told["gpu, 400 lines"]["index"] == "0, 1, 2, 3" and told["gpu, 400 lines"]["gpu_id"].endswith(", ...") and "have no table" not in text, "a cluster's processes and GPUs", told)
    shown, text, page = page_of(folder, write(f"{folder}/messages", [decision(2), *(says("message", "node1", 0, text=f"message {i}") for i in range(100))]))
    tap.ok("Further lines about processes have no table: 36." in text, "lines about processes that the page leaves out")

    # ---- What goes wrong ----

    empty, none, cut = (f"{folder}/{name}" for name in ("empty", "none", "cut"))
    Path(empty).write_text("")
    Path(none).write_text("no log\nat all\n")
    Path(cut).write_text(Path(log).read_text()[:-20] + "\n")
    for arguments, status, says in (
        ([f"{folder}/absent"], 1, [f"accel report: {folder}/absent: No such file or directory", "accel report: no call in the log, and no page is made"]),
        ([folder], 1, [f"accel report: {folder}: Is a directory", "accel report: no call in the log, and no page is made"]),
        ([empty, none], 1, [f"accel report: {empty}: empty; a log is what ACCEL_LOG=1 or json writes", f"accel report: {none}: no line of libaccel's log; a log is what ACCEL_LOG=1 or json writes",
                            "accel report: no call in any of the logs, and no page is made"]),
        ([], 2, ["accel report: no log is given: accel report --html LOG -o FILE"]),
        (["-m", f"{folder}/absent", log], 2, [f"accel report: --model {folder}/absent: there is no such file; allowed: a file of `accel calibrate`"]),
        (["-m", folder, log], 2, [f"accel report: --model {folder}: it is no regular file; allowed: a file of `accel calibrate`"]),
    ):
        done = report(folder, *arguments, "-o", f"{folder}/none.html")
        tap.ok(done.returncode == status and done.stderr.splitlines() == says and not Path(folder, "none.html").exists(), f"{says[0].replace(folder, '')}", done)
    done, text, page = page_of(folder, cut)
    tap.ok(done.returncode == 0 and done.stderr == f"accel report: {cut}: 1 damaged or cut line left out, the first is line {len(lines)}\n" and "1 damaged or cut line is left out" in text,
           "a cut line is named once, and on the page", done.stderr)
    Path(cut).write_text(json.dumps(decision(1) | {"v": 2}) + "\n" + json.dumps(decision(2)) + "\n")
    done, text, page = page_of(folder, cut)
    tap.ok(done.returncode == 0 and done.stderr == f"accel report: {cut}: 1 line of a later version of the log left out, the first is line 1; a later accel reads them\n" and
           "1 line of a later version of the log is left out" in text, "a line of a later version is named once, and on the page", done.stderr)
    done, text, page = page_of(folder, log, empty)
    tap.ok(done.returncode == 1 and [r[0] for r in table_of(page)] == [r[0] for r in rows], "an empty log beside a good one", done)
    done = report(folder, log, "-o", "/dev/full")
    tap.ok(done.returncode == 2 and done.stderr == "accel report: /dev/full: No space left on device\n", "a full disk", done)
    done = start(TOOL, "report", log, env={"HOME": folder})
    tap.ok(done.returncode == 2 and done.stderr == "accel report: no format is given; allowed: --html\n", "no format", done)
    terminal, end = pty.openpty()
    done = report(folder, log, stdout=end)
    tap.ok(done.returncode == 2 and done.stderr == "accel report: a page is not for a terminal; name a file: -o FILE\n", "a page is not for a terminal", done.stderr)
    os.close(terminal), os.close(end)
    done = report(folder, log)
    tap.ok(done.returncode == 0 and done.stdout.startswith("<!DOCTYPE html>") and done.stdout.endswith("</html>\n"), "to stdout")
tap.done()
