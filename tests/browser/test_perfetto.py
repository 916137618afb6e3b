#!/usr/bin/python3 -B
"""Perfetto reads the trace of a program: its own page with its trace processor, in headless Chromium. It has no fault to find, and as many calls and steps, in
rows of the same names and as long, as the file. With KEEP, a folder, the screenshot stays there, for people to look at."""

import functools
import http.server
import json
import os
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from chromium import PROGRAM, Chromium
from lib.programs import BUILD, DEBIAN_PYTHON, TEST_GPU, start
from lib.tap import Tap

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
    for (const row = answer.iter({}); row.valid(); row.next()) rows.push(answer.columns().map(column => String(row.get(column))));
    return rows;
})()"""
tap = Tap()
if not PROGRAM or not (PAGE / "index.html").exists():
    tap.ok(False, "chromium-headless-shell and Perfetto are there: scripts/install-deps browser installs them")
    tap.done()


class Server(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


with tempfile.TemporaryDirectory() as folder:
    for part in PAGE.iterdir():
        Path(folder, part.name).symlink_to(part.resolve())
    trace = Path(folder, "t.json")
    start(DEBIAN_PYTHON, "-c", PROGRAM_OF_NUMPY, env={**TEST_GPU, "ACCEL_START": "wait", "ACCEL_TRACE": str(trace)})
    events = json.loads(trace.read_text())
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Server, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    chromium = Chromium()
    chromium.show(f"{address}/index.html#!/?url={address}/t.json", 1600, 1000)
    for _ in range(600):  # a minute, on an idle machine it takes two seconds
        if chromium.evaluate("!!self.app?.trace?.engine"):
            break
        time.sleep(0.1)

    def ask(query):
        return chromium.evaluate(ASK % json.dumps(query))

    faults = ask("select name, value from stats where severity in ('error', 'data_loss') and value > 0")
    tap.ok(faults == [], "Perfetto finds no fault", *faults)
    rows = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    wanted, lasted = Counter(), Counter()
    for e in events:
        if e["ph"] == "X":
            wanted[rows[e["tid"]], e["name"]] += 1
            lasted[rows[e["tid"]], e["name"]] += 1000 * e["dur"]
    seen = ask("select t.name, s.name, count(*), sum(s.dur) from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid) group by 1, 2")
    found = {(row, name): (int(n), int(ns)) for row, name, n, ns in seen}
    calls = {key: (n, lasted[key]) for key, n in wanted.items()}
    tap.ok(calls.items() <= found.items() and len(calls) > 8, "every call and step, as long as the file says", calls, found)
    # A step of less than a microsecond has no length, and may lie at the edge of another.
    within = ask("select s.name, p.name from slice s join slice p on s.parent_id = p.id join thread_track tt on s.track_id = tt.id join thread t using (utid) "
                 "where t.name like 'gpu0%' and s.dur > 0 and p.dur > 0")
    tap.ok(within == [], "the device's steps lie side by side", within)
    counters = {name for name, in ask("select distinct name from track where name like '%GPU%' or name like '%MB%'")}
    tap.ok(len(counters) >= 3, "counters", counters)
    named = ask("select name from process where name is not null")
    tap.ok(["python3"] in named, "the process has its name", named)
    picture = chromium.screenshot()
    Path(os.environ.get("KEEP", folder), "trace.png").write_bytes(picture)
    chromium.close()
    server.shutdown()
tap.done()
