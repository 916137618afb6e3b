#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""accel report --html: the page has the log's numbers, is whole by itself, gives nothing that a log says to the browser
as HTML, and stays small. tests/browser/test_report.py looks at what its script draws."""

import base64
import hashlib
import json
import os
import pty
import random
import re
from collections import namedtuple
from pathlib import Path

import pytest

from lib.calibrated import put
from lib.logs import busy, decision, write
from lib.page import Page
from lib.programs import BUILD, TEST_GPU, start

TOOL = str(BUILD / "accel")
EVIL = "</title></script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;"


def report(folder, *arguments, **options):
    return start(TOOL, "report", "--html", *arguments, env={"HOME": str(folder), **options.pop("env", {})}, **options)


Made = namedtuple("Made", "done text page")


def page_of(folder, *arguments):
    """What ran, and the page, as text and read."""
    out = Path(folder, "page.html")
    done = report(folder, *arguments, "-o", out)
    text = out.read_bytes().decode()
    out.unlink()
    return Made(done, text, Page(text))


def table_of(page):
    """The rows of the table of routines: [[texts], [values]]."""
    rows = [[list(row.all("td")) for row in body.all("tr")] for table in page.root.all("table", **{"class": "sorts"})
            for body in table.all("tbody")][0]
    return [([cell.text() for cell in row], [cell.attributes.get("data-value") for cell in row]) for row in rows]


def data_of(page):
    """What the page's script draws."""
    return [json.loads(e.text()) for e in page.root.all("script", id="data")][0]


def sum_of(rows, column):
    """Of the values of a column of the table."""
    return sum(float(values[column]) for _, values in rows)


def check_soundness(page, text):
    """The page's own promises: closed elements, nothing from elsewhere, one script, which the policy knows by its hash,
    its data, and texts for the charts."""
    elements = list(page.root.all())
    assert not page.wrong
    assert not [e.name for e in elements if {"src", "href", "xlink:href", "srcset", "action"} & set(e.attributes)]
    assert not re.findall(r"url\(|@import|https?://", text)
    assert not [key for e in elements for key in e.attributes if key.startswith("on") or key == "style"]
    assert not re.findall(r"@[A-Z]+@", text), "places of the template"
    (script,) = [e.text() for e in elements if e.name == "script" and e.attributes.get("type") != "application/json"]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policies = [e.attributes["content"] for e in elements
                if e.name == "meta" and e.attributes.get("http-equiv") == "Content-Security-Policy"]
    assert policies == [f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"]
    for chart in page.root.all("svg"):
        assert [t for t in chart.all("title") if t.attributes.get("id") == chart.attributes["aria-labelledby"]
                and t.text()]
        assert chart.attributes["role"] == "img"
    for figure in page.root.all("figure"):
        assert "The table of routines has the numbers" in figure.text()
    assert data_of(page)["sides"]


# ---- A program's own log ----


@pytest.mark.parametrize("form", ["json", "1"])
def test_a_program_s_own_log(tmp_path, form):
    done = start("steps", "dgemm:300:6", "solve:200:3",
                 env={**TEST_GPU, "ACCEL_LOG": form, "ACCEL_START": "wait", "TESTGPU_DELAY_US": "0"})
    (tmp_path / "log").write_text("hello\n" + done.stderr + "the end\n")
    shown, text, page = page_of(tmp_path, tmp_path / "log")
    check_soundness(page, text)
    assert shown.returncode == 0
    assert not shown.stderr
    rows = table_of(page)
    products = [(r[0][0], r[0][2], r[0][4]) for r in rows if "dgemm" in r[0][0] and r[0][2] == "gpu0"]
    assert products[-1] == ("dgemm", "gpu0", "6")
    assert sum_of([r for r in rows if r[0][0] == "dgesv"], 4) == 3
    assert len(list(page.root.all("svg"))) >= 2
    assert "dgemm on the GPU" in text
    assert "no calibration is there" in text


# ---- Numbers ----

Busy = namedtuple("Busy", "lines log made rows")


@pytest.fixture(scope="module")
def busy_page(tmp_path_factory):
    """A busy log, its page, and the table's rows."""
    folder, lines = tmp_path_factory.mktemp("busy"), busy()
    log = write(folder / "busy.json", lines)
    made = page_of(folder, log)
    return Busy(lines, log, made, table_of(made.page))


def biggest_product(lines):
    return max((line for line in lines if line["sym"] == "cblas_dgemm" and line["ran"] == "gpu0"),
               key=lambda line: line["n"])


def test_the_page_of_a_busy_log_is_sound(busy_page):
    check_soundness(busy_page.made.page, busy_page.made.text)


def test_time_and_calls_add_up_to_the_log_s(busy_page):
    total = sum(line["ms"] for line in busy_page.lines) * 1e-3
    foot = [[cell.text() for cell in row.all("td")] for table in busy_page.made.page.root.all("tfoot")
            for row in table.all("tr")][-1]
    assert sum_of(busy_page.rows, 5) == pytest.approx(total, rel=1e-6)
    assert sum_of(busy_page.rows, 4) == len(busy_page.lines)
    assert foot[5] == "100.0 %"


def test_the_longest_time_is_first(busy_page):
    times = [float(r[1][5]) for r in busy_page.rows]
    assert times == sorted(times, reverse=True)


@pytest.mark.parametrize("ran, other_side", [("gpu0", "est_cpu_ms"), ("cpu", "est_gpu_ms")], ids=["gpu0", "cpu"])
@pytest.mark.parametrize("symbol, routine", [("cblas_dgemm", "dgemm"), ("dsyevd_", "dsyevd")], ids=["dgemm", "dsyevd"])
def test_the_other_side_s_time_and_what_was_saved(busy_page, symbol, routine, ran, other_side):
    mine = [line for line in busy_page.lines if line["sym"] == symbol and line["ran"] == ran]
    theirs = [r for r in busy_page.rows if r[0][0] == routine and r[0][2] == ran]
    other, took = (sum(line[name] for line in mine) * 1e-3 for name in (other_side, "ms"))
    assert sum_of(theirs, 8) == pytest.approx(other, rel=1e-5)
    assert sum_of(theirs, 9) == pytest.approx(other - took, abs=1e-4 * (other + took))


def test_a_product_s_rate_and_its_size(busy_page, tmp_path):
    biggest = biggest_product(busy_page.lines)
    texts, values = table_of(page_of(tmp_path, write(tmp_path / "one.json", [biggest])).page)[0]
    assert 2e-6 * biggest["n"] ** 3 / biggest["ms"] == pytest.approx(float(values[10]), rel=1e-3)
    assert texts[1] == str(biggest["n"])


def test_calls_that_compute_nothing_have_no_rate(tmp_path):
    idle = [decision(1.0, ms=0.1, why=why, sym="dgesdd_", args="S", m=400, n=400)
            for why in ("workspace_query", "empty", "bad_argument")]
    _, text, page = page_of(tmp_path, write(tmp_path / "idle", idle))
    assert [row[0][10] for row in table_of(page)] == ["", "", ""]
    assert "No call has both a time and a known count of operations" in text


def threads_of(lines):
    return list(dict.fromkeys(f"node17 pid {line['pid']} thread {line['tid']}" for line in lines))


def test_a_lane_for_each_thread_and_one_for_the_device(busy_page):
    lanes = [lane["name"] for lane in data_of(busy_page.made.page)["timeline"]["lanes"]]
    assert lanes == threads_of(busy_page.lines) + ["node17 gpu0"]


def test_the_lanes_of_threads_have_the_time_of_their_calls(busy_page):
    timeline = data_of(busy_page.made.page)["timeline"]
    spent = [sum(line["ms"] * 1e-3 for line in busy_page.lines
                 if thread.endswith(f"pid {line['pid']} thread {line['tid']}"))
             for thread in threads_of(busy_page.lines)]
    drawn = [sum(n * share for side in lane["busy"] for n, share in zip(side[::2], side[1::2])) * timeline["bin"] / 100
             for lane in timeline["lanes"]]
    assert drawn[:len(spent)] == pytest.approx(spent, rel=0, abs=0.01 * timeline["span"])
    assert {sum(side[::2]) for lane in timeline["lanes"] for side in lane["busy"]} == {1024}


def test_a_call_that_devices_share_is_on_the_lane_of_each_of_them(busy_page, tmp_path):
    shared = [{**biggest_product(busy_page.lines), "ran": ran} for ran in ("gpu0+gpu11", "gpu11", "gpu0+gpu11+gpu2+cpu",
                                                                           "cpu")]
    lanes = data_of(page_of(tmp_path, write(tmp_path / "shared", shared)).page)["timeline"]["lanes"]
    seen = {lane["name"]: lane["says"].split(": ")[1].split(",")[0] for lane in lanes if "gpu" in lane["name"]}
    assert seen == {"node17 gpu0": "2 calls", "node17 gpu11": "3 calls", "node17 gpu2": "1 calls"}


# ---- Several logs; calls inside others ----


def test_two_logs_make_the_table_that_one_makes(busy_page, tmp_path):
    half = len(busy_page.lines) // 2
    first, second = write(tmp_path / "rank0", busy_page.lines[:half]), write(tmp_path / "rank1", busy_page.lines[half:])
    assert [r[0] for r in table_of(page_of(tmp_path, second, first).page)] == [r[0] for r in busy_page.rows]


def test_the_time_of_calls_inside_others_counts_once(tmp_path):
    inner = [decision(1.0, ms=30, depth=1), decision(1.1, ms=20, depth=1, ran="gpu0", why="faster"),
             decision(1.2, ms=100, sym="dpotrf_", n=1000, args="L"), decision(1.3, ms=5)]
    _, text, page = page_of(tmp_path, write(tmp_path / "inner", inner))
    assert {(r[0][0], r[0][2]): float(r[1][5]) for r in table_of(page)} == {
        ("dgemm", "cpu"): 0.005, ("dpotrf", "cpu"): 0.1, ("dgemm inside others", "cpu"): 0.03,
        ("dgemm inside others", "gpu0"): 0.02}
    assert "2 calls were made inside others" in text
    assert [cell.text() for table in page.root.all("tfoot") for cell in table.all("td")][3:5] == ["2", "105 ms"]


# ---- Ceilings ----


def test_the_ceilings_are_the_calibration_s_and_the_page_says_so(busy_page, tmp_path):
    model = str(tmp_path / "model")
    cpu = re.search(r"(?m)^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text()).group(1)
    put(model, {f'[cpu "{cpu}" threads=2 library="libopenblas.so 1"]': "dgemm 100x100x100:0.1 1000x1000x1000:40\n",
                '[gpu "Other GPU" cuda=13.0 cublas=130100]': "up_gbps=99\ndgemm 100x100x100:0.01\n",
                '[gpu "NVIDIA H100 80GB HBM3" cuda=13.0 cublas=130100]': "up_gbps=21.5\ndgemm 100x100x100:0.05 "
                                                                         "2000x2000x2000:1.6\n"})
    _, text, page = page_of(tmp_path, "--model", model, busy_page.log)
    roofs = [re.fullmatch(r"(.*): (\S+) (\S+)", says).groups() for _, _, _, says in data_of(page)["roofline"]["roofs"]]
    assert {name: unit for name, _, unit in roofs} == {"CPU, double precision": "Gflop/s",
                                                       "GPU, double precision": "Tflop/s",
                                                       "operands copied to the GPU": "GB/s"}
    rates = {name: float(number) for name, number, _ in roofs}
    assert rates == pytest.approx({"CPU, double precision": 50, "GPU, double precision": 10,
                                   "operands copied to the GPU": 21.5}, rel=0.02)
    assert model in text
    assert text.count("NVIDIA H100 80GB HBM3") == 2


def test_without_a_calibration_there_are_none(busy_page):
    assert "There are no ceilings: no calibration is there" in busy_page.made.text
    assert not data_of(busy_page.made.page)["roofline"]["roofs"]


# ---- A log that is not to be trusted ----


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory):
    """The page of a log that says HTML, impossible numbers, and bytes that are no text."""
    folder = tmp_path_factory.mktemp("poisoned")
    nobody = {key: value for key, value in decision(7, ms=2).items() if key not in ("pid", "tid")}
    lines = [decision(1, sym=EVIL, ms=3), decision(2, "gpu0" + EVIL, EVIL, 4, host=EVIL, pid=EVIL, tid=EVIL),
             decision(3, ms=1, m="NaN", n=1e400, k=-5), decision(4, ms=1e300, m=2**60),
             {"v": 1, "pid": 1, "event": EVIL, EVIL: EVIL, "gpu": EVIL}, decision(5, why="\u0000\u0007\ud800x"),
             decision(6, sym="@ROUTINES@@TITLE@", ms=-1, depth=1e9), {"inner": {"pid": 1}, **nobody}]
    log = folder / EVIL.replace("/", "_")
    write(log, lines)
    with open(log, "ab") as to:
        to.write(b'{"pid": 1, "sym": "\xff\xfe<b>\xc0\xaf", "ran": "cpu", "why": "small", "ms": 1, "m": 7}\n')
    return page_of(folder, log)


def test_the_page_of_a_poisoned_log_is_sound(poisoned):
    check_soundness(poisoned.page, re.sub(r"@(ROUTINES|TITLE)@", "", poisoned.text))


def test_what_it_says_is_text(poisoned):
    assert poisoned.done.returncode == 0
    assert "alert(1)" in poisoned.page.root.text()
    assert not list(poisoned.page.root.all("img"))
    assert not list(poisoned.page.root.all("b", **{"src": "x"}))
    assert poisoned.text.count("alert(1)") > 3


def test_a_line_without_its_process_and_thread(poisoned):
    assert "(null)" not in poisoned.text
    assert "pid ? thread ?" in poisoned.page.root.text()


def test_a_name_like_a_place_of_the_template_is_a_name(poisoned):
    assert "@ROUTINES@@TITLE@ inside others" in [r[0][0] for r in table_of(poisoned.page)]


# ---- Bounds ----


def test_many_calls_of_many_kinds_the_page_stays_small_and_says_what_is_not_on_it(tmp_path):
    rng = random.Random(5)
    with open(tmp_path / "many", "w") as to:
        for i in range(60000):
            m, k, ran = rng.randint(1, 5000), rng.randint(1, 5000), rng.choice(("cpu", "gpu0"))
            to.write(f"accel pid={i % 300} tid={i % 7000} sym={rng.choice('sdcz')}gemm_ args=N,T m={m} n={m} k={k} "
                     f"ran={ran} why=forced "
                     f"ms={rng.lognormvariate(0, 3):.6f}\n")
        to.writelines(json.dumps(decision(rng.uniform(0, 1e6), sym=f"f{i}", pid=i, ms=rng.uniform(0, 1e4))) + "\n"
                      for i in range(6000))
    shown, text, page = page_of(tmp_path, tmp_path / "many")
    assert shown.returncode == 0
    assert len(text) < 2_000_000
    assert 1000 < len(data_of(page)["scatter"]["marks"] + data_of(page)["roofline"]["marks"]) <= 8000
    assert len(table_of(page)) == 250
    assert "All other rows" in text
    assert "Further threads have no lane" in text
    assert "66 k calls of" in text


def says(event, host, rank, **fields):
    return {"v": 1, "time": 1.5, "host": host, "rank": rank, "pid": 7, "tid": 7, "event": event, **fields}


def test_what_the_processes_of_a_cluster_say_is_there_once(tmp_path):
    lines = [says("start", f"node{i}", i, program="p") for i in range(64)]
    lines += [says("gpu", f"node{i // 4}", i, gpu="H100", gpu_id=f"id{i:032}", index=i % 4) for i in range(400)]
    _, text, page = page_of(tmp_path, write(tmp_path / "cluster", [decision(2), *lines]))
    told = {next(table.all("caption")).text(): {next(row.all("th")).text(): next(row.all("td")).text()
                                                for row in table.all("tr")}
            for section in page.root.all("section", **{"aria-labelledby": "h-settings"})
            for table in section.all("table")}
    assert list(told) == ["start, 64 lines", "gpu, 400 lines"]
    assert told["start, 64 lines"]["host"] == ", ".join(f"node{i}" for i in range(64))
    assert told["gpu, 400 lines"]["index"] == "0, 1, 2, 3"
    assert told["gpu, 400 lines"]["gpu_id"].endswith(", ...")
    assert "have no table" not in text


def test_of_many_lines_about_processes_the_page_says_how_many_it_leaves_out(tmp_path):
    messages = [says("message", "node1", 0, text=f"message {i}") for i in range(100)]
    made = page_of(tmp_path, write(tmp_path / "messages", [decision(2), *messages]))
    assert "Further lines about processes have no table: 36." in made.text


# ---- What goes wrong ----

NO_LOG = "a log is what ACCEL_LOG=1 or json writes"
ABSENT = "there is no such file; allowed: a file of `accel calibrate`"


@pytest.mark.parametrize("arguments, status, says", [
    pytest.param("FOLDER/absent", 1, ["FOLDER/absent: No such file or directory",
                                      "no call in the log, and no page is made"], id="no such log"),
    pytest.param("FOLDER", 1, ["FOLDER: Is a directory", "no call in the log, and no page is made"], id="a folder"),
    pytest.param("FOLDER/empty FOLDER/none", 1, [f"FOLDER/empty: empty; {NO_LOG}",
                                                 f"FOLDER/none: no line of libaccel's log; {NO_LOG}",
                                                 "no call in any of the logs, and no page is made"], id="empty logs"),
    pytest.param("", 2, ["no log is given: accel report --html LOG -o FILE"], id="no log"),
    pytest.param("-m FOLDER/absent LOG", 2, [f"--model FOLDER/absent: {ABSENT}"], id="no such calibration"),
    pytest.param("-m FOLDER LOG", 2, ["--model FOLDER: it is no regular file; allowed: a file of `accel calibrate`"],
                 id="no calibration")])
def test_no_page_is_made(busy_page, tmp_path, arguments, status, says):
    (tmp_path / "empty").touch()
    (tmp_path / "none").write_text("no log\nat all\n")
    words = [word.replace("FOLDER", str(tmp_path)).replace("LOG", busy_page.log) for word in arguments.split()]
    done = report(tmp_path, *words, "-o", tmp_path / "none.html")
    assert done.returncode == status
    assert done.stderr.splitlines() == [f"accel report: {text}".replace("FOLDER", str(tmp_path)) for text in says]
    assert not (tmp_path / "none.html").exists()


def test_a_cut_line_is_named_once_and_on_the_page(busy_page, tmp_path):
    cut = tmp_path / "cut"
    cut.write_text(Path(busy_page.log).read_text()[:-20] + "\n")
    done, text, _ = page_of(tmp_path, cut)
    assert done.returncode == 0
    assert done.stderr == f"accel report: {cut}: 1 damaged or cut line left out, the first is line " \
                          f"{len(busy_page.lines)}\n"
    assert "1 damaged or cut line is left out" in text


def test_a_line_of_a_later_version_is_named_once_and_on_the_page(tmp_path):
    log = write(tmp_path / "later", [decision(1) | {"v": 2}, decision(2)])
    done, text, _ = page_of(tmp_path, log)
    assert done.returncode == 0
    assert done.stderr == f"accel report: {log}: 1 line of a later version of the log left out, the first is line 1; " \
                          "a later accel reads them\n"
    assert "1 line of a later version of the log is left out" in text


def test_an_empty_log_beside_a_good_one(busy_page, tmp_path):
    (tmp_path / "empty").touch()
    made = page_of(tmp_path, busy_page.log, tmp_path / "empty")
    assert made.done.returncode == 1
    assert [r[0] for r in table_of(made.page)] == [r[0] for r in busy_page.rows]


def test_a_full_disk(busy_page, tmp_path):
    done = report(tmp_path, busy_page.log, "-o", "/dev/full")
    assert done.returncode == 2
    assert done.stderr == "accel report: /dev/full: No space left on device\n"


def test_no_format(busy_page, tmp_path):
    done = start(TOOL, "report", busy_page.log, env={"HOME": str(tmp_path)})
    assert done.returncode == 2
    assert done.stderr == "accel report: no format is given; allowed: --html\n"


def test_the_page_s_file_by_html_too(busy_page, tmp_path):
    page = tmp_path / "page.html"
    done = start(TOOL, "report", f"--html={page}", busy_page.log, env={"HOME": str(tmp_path)})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert page.read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("name", ["page.html", "page.HTM"])
@pytest.mark.parametrize("there", [False, True])
def test_a_page_s_name_as_a_log_s(busy_page, tmp_path, name, there):
    page = tmp_path / name
    if there:
        page.write_text("a page")
    done = report(tmp_path, page, busy_page.log)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"accel report: {page} is a page's name, not a log's: accel report --html=FILE LOG; " \
                          "nothing is read or written\n"
    assert page.exists() == there
    assert not there or page.read_text() == "a page"


def test_a_log_of_such_a_name(busy_page, tmp_path):
    log = tmp_path / "log.html"
    log.write_bytes(Path(busy_page.log).read_bytes())
    assert page_of(tmp_path, log).done.returncode == 0


@pytest.mark.parametrize("output", ["-o{}", "--output={}", "--html={}"])
def test_a_page_in_the_place_of_its_log(busy_page, tmp_path, output):
    log, link = tmp_path / "run.log", tmp_path / "link"
    log.write_bytes(Path(busy_page.log).read_bytes())
    link.symlink_to(log)
    done = report(tmp_path, busy_page.log, log, output.format(link))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"accel report: {log} is a log; allowed: another FILE for the page; " \
                          "nothing is read or written\n"
    assert log.read_bytes() == Path(busy_page.log).read_bytes()


def test_a_page_is_not_for_a_terminal(busy_page, tmp_path):
    terminal, end = pty.openpty()
    done = report(tmp_path, busy_page.log, stdout=end)
    os.close(terminal), os.close(end)
    assert done.returncode == 2
    assert done.stderr == "accel report: a page is not for a terminal; name a file: -o FILE\n"


def test_to_stdout(busy_page, tmp_path):
    done = report(tmp_path, busy_page.log)
    assert done.returncode == 0
    assert done.stdout.startswith("<!DOCTYPE html>")
    assert done.stdout.endswith("</html>\n")
