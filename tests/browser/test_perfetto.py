#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Perfetto reads the trace of a program: its own page with its trace processor, in headless Chromium. It has no fault
to find, and as many calls and steps, in rows of the same names and as long, as the file. With KEEP, a folder, the
screenshot stays there, for people to look at."""

import functools
import http.server
import json
import os
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from browser.chromium import PROGRAM, Chromium
from lib.programs import BUILD, DEBIAN_PYTHON, TEST_GPU, start

PAGE = BUILD / "perfetto"
PROGRAM_OF_NUMPY = """import numpy as n, threading
a = n.ones((300, 300))
def work():
    for _ in range(3): a @ a
threads = [threading.Thread(target=work) for _ in range(3)]
for t in threads: t.start()
for t in threads: t.join()
n.linalg.svd(a[:100]); n.linalg.solve(a + 9 * n.eye(300), a)"""
# Rows of an SQL query as lists of texts.
ASK = """(async () => {
    const answer = await self.app.trace.engine.query(%s), rows = [];
    for (const row = answer.iter({}); row.valid(); row.next())
        rows.push(answer.columns().map(column => String(row.get(column))));
    return rows;
})()"""
OF_THREADS = "from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid)"
WITHIN = "select s.name, p.name from slice s join slice p on s.parent_id = p.id join thread_track tt on s.track_id = " \
         "tt.id " \
         "join thread t using (utid) where t.name like 'gpu0%' and s.dur > 0 and p.dur > 0"


class Server(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Perfetto's page, and a trace."""
    assert (PAGE / "index.html").exists(), "Perfetto is not there: scripts/install-deps browser installs it"
    folder = tmp_path_factory.mktemp("perfetto")
    for part in PAGE.iterdir():
        (folder / part.name).symlink_to(part.resolve())
    start(DEBIAN_PYTHON, "-c", PROGRAM_OF_NUMPY, env={**TEST_GPU, "ACCEL_START": "wait",
                                                      "ACCEL_TRACE": f"{folder}/t.json"})
    return folder


@pytest.fixture(scope="module")
def chromium(folder):
    """It shows the trace."""
    assert PROGRAM, "chromium-headless-shell is not there: scripts/install-deps browser installs it"
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Server, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    chromium = Chromium()
    chromium.show(f"{address}/index.html#!/?url={address}/t.json", 1600, 1000)
    for _ in range(600):  # a minute, on an idle machine it takes two seconds
        if chromium.evaluate("!!self.app?.trace?.engine"):
            break
        time.sleep(0.1)
    yield chromium
    chromium.close()
    server.shutdown()


@pytest.fixture(scope="module")
def ask(chromium):
    """What asks Perfetto in SQL."""
    return lambda query: chromium.evaluate(ASK % json.dumps(query))


def test_perfetto_finds_no_fault(ask):
    assert ask("select name, value from stats where severity in ('error', 'data_loss') and value > 0") == []


def test_every_call_and_step_as_long_as_the_file_says(folder, ask):
    events = json.loads((folder / "t.json").read_text())
    rows = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    wanted, lasted = Counter(), Counter()
    for e in events:
        if e["ph"] == "X":
            wanted[rows[e["tid"]], e["name"]] += 1
            lasted[rows[e["tid"]], e["name"]] += 1000 * e["dur"]
    found = {(row, name): (int(n), int(ns)) for row, name, n, ns in
             ask(f"select t.name, s.name, count(*), sum(s.dur) {OF_THREADS} group by 1, 2")}
    assert len(wanted) > 8
    assert {key: found.get(key) for key in wanted} == {key: (n, lasted[key]) for key, n in wanted.items()}


def test_the_device_s_steps_lie_side_by_side(ask):
    """A step of less than a microsecond has no length, and may lie at the edge of another."""
    assert ask(WITHIN) == []


def test_counters(ask):
    assert len({name for name,
                in ask("select distinct name from track where name like '%GPU%' or name like '%MB%'")}) >= 3


def test_the_process_has_its_name(ask):
    assert ["python3"] in ask("select name from process where name is not null")


def test_a_screenshot(chromium, tmp_path):
    Path(os.environ.get("KEEP", tmp_path), "trace.png").write_bytes(chromium.screenshot())
