#!/usr/bin/python3 -B
"""Operands' cells that devices which share a call lend each other: each byte of an operand crosses the host's link once, the others copy it from the device that
has it. What the log says of it, that results are right whatever the routine, and what becomes of it where devices cannot reach each
other, lack memory or threads, or have several calls at once."""

import re
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

from lib.log import events, lines_for, parse_json, said
from lib.programs import LONG, SHIM, TESTS, UNDER_TSAN, right, start
from lib.split import behind_slow_links, several
from lib.tap import Tap

tap = Tap()
links = tempfile.TemporaryDirectory()


def peers(devices, **extra):
    """A copy from device to device takes no time, one from the host a long time."""
    return behind_slow_links(devices, links.name, TESTGPU_PEER_GBPS="0", **extra)


def moved(done):
    """{(way, operand): bytes}, to the accuracy of the log."""
    sums = Counter()
    for way in ("h2d", "peer", "d2h"):
        for move in events(done.stderr, way):
            sums[way, move["operand"]] += int(move["rows"]) * int(move["cols"]) * 8
    return dict(sums)


def shared_cells(done):
    """The cells that came up for calls that devices share: where one is busy, a call of several threads may have the other one alone. A call's events come before its
    line, with the number of its thread."""
    cells, of_thread = Counter(), defaultdict(Counter)
    for line in done.stderr.splitlines():
        fields = dict(re.findall(r"(\w+)=(\S+)", line))
        if fields.get("event") == "h2d":
            of_thread[fields["tid"]][fields["operand"], fields["rows"], fields["cols"]] += 1
        elif "ran" in fields:
            moved_up = of_thread.pop(fields["tid"], Counter())
            cells += moved_up if "+" in fields["ran"] else Counter()
    return cells


# ---- In emulated double precision, which needs no smaller blocks here, the same is lent ----

for devices, n in (2, 512), (4, 1024):
    lent = {}
    for precision in "native", "emulated":
        env = {**peers(devices, ACCEL_LOG="1", ACCEL_PRECISION=precision, TESTGPU_MEMORY="4G"), "TESTGPU_ATTRIBUTES": "75=9,76=0"}
        done = start("steps", f"dgemm:{n}:1", env=env)
        lent[precision] = [line.get("peer_mb") for line in lines_for(done)] if right(done) else done.stderr
    tap.ok(lent["native"] == lent["emulated"] and lent["native"][0], f"{devices} devices, emulated double precision: as much is lent", lent)

# ---- Once over the host's link, and what the log says ----

for devices in (2, 3, 4):
    n = 512 if devices == 2 else 1024
    whole = n * n * 8
    everyone = "+".join(f"gpu{i}" for i in range(devices))
    done = start("steps", f"dgemm:{n}:1", env=peers(devices, ACCEL_LOG="2"))
    seen, line = moved(done), lines_for(done)[0]
    lent = sum(bytes for (way, _), bytes in seen.items() if way == "peer")
    tap.ok(right(done) and line["ran"] == everyone and not said(done)[1:] and [seen.get(("h2d", x)) for x in "ab"] == [whole, whole] and seen["d2h", "c"] == whole,
           f"{devices} devices: each byte of a factor comes up once for all of them, those of the result come down once", line, seen, *said(done))
    tap.ok(lent >= whole and (line["up_mb"], line["peer_mb"]) == (f"{2 * whole * 1e-6:.4g}", f"{lent * 1e-6:.4g}"), "the others copy it from each other: peer_mb", line, seen)
    done = start("steps", f"dgemm:{n}:1", env=behind_slow_links(devices, links.name))
    apart = lines_for(done)[0]
    tap.ok(right(done) and float(apart["up_mb"]) * 1e6 > 2.9 * whole and "peer_mb" not in apart, "those that cannot reach each other: once for each that needs it", apart)
    tap.ok(float(line["est_gpu_ms"]) < 0.9 * float(apart["est_gpu_ms"]), "which the estimates tell", line, apart)
done = start("steps", "dgemm:512:3", env=peers(2, ACCEL_LOG="json"))
lines = [line for line in parse_json(done.stderr) if "sym" in line]
tap.ok(right(done) and len({(line["up_mb"], line["peer_mb"]) for line in lines}) == 1 and len(lines) == 3 and lines[0]["peer_mb"] > 0, "the same each time, as JSON", *lines)
for n, devices in ((384, 3), (1024, 6)):
    done = start("steps", f"dsyrk:{n}:1", env=peers(devices, ACCEL_LOG="2"))
    seen = moved(done)
    tap.ok(right(done) and seen.get(("h2d", "a")) == n * n * 8 and seen.get(("peer", "a"), 0) > 0, f"dsyrk on {devices}: each line of the factor comes up once", seen, lines_for(done))

# ---- All kinds of operands ----

for first, case in enumerate(("dsymm-L", "dtrmm-L", "dtrsm-L", "dtrmm-R", "dtrsm-R", "dtrsm-T")):
    for devices in (2, 3, 4) if LONG else (2 + first % 3,):
        done = start("columns", case, env=peers(devices, ACCEL_LOG="2"))
        seen = moved(done)
        tap.ok(right(done) and seen.get(("h2d", "a"), 0) > 0 and seen.get(("peer", "a")) == (devices - 1) * seen["h2d", "a"],
               f"{case} on {devices}: one brings each cell of A up, the others copy it", done.stdout, seen, *lines_for(done))
RANDOM = [(devices, "*") for devices in (2, 3, 4, 7)] if LONG else [(3, "dgemmt"), (3, "zher2k"), (3, "dsyrk")]
if UNDER_TSAN:
    RANDOM = []
    tap.skip("random calls", "the sanitizer makes the comparison take minutes")
for devices, routines in RANDOM:
    done = start("random_calls", "-l", TESTS / "liblacking.so", "-n", 600, "-s", 2 + devices, "-r", routines, "-c", 3 if LONG else 1, 1, env=peers(devices), timeout=1500)
    lines = lines_for(done)
    lent = Counter(line["sym"] for line in lines if "peer_mb" in line)
    tap.ok(done.returncode == 0 and lent, f"random calls of {routines} on {devices}, {lent.total()} of which lend", done.stdout[-600:], lent, *said(done)[:3])

# ---- Where it cannot be ----

without = lines_for(start("steps", "dgemm:512:1", env=behind_slow_links(2, links.name)))[0]["up_mb"]
done = start("steps", "dgemm:512:2", env={**peers(2), "TESTGPU_ATTRIBUTES": "115=0"})
tap.ok(right(done) and {line["up_mb"] for line in lines_for(done)} == {without}, "a driver without such memory", *lines_for(done), *said(done))
with tempfile.TemporaryDirectory() as folder:
    # 5 GB/s are less than devices with fast links bring up; with slow ones, any rate is more.
    for pairs, env in ((1, several(3, TESTGPU_PEER_GBPS="5")), (6, peers(3))):
        done = start("steps", "dgemm:512:2", env={**env, "TESTGPU_REPORT": f"{folder}/{pairs}"})
        between = int(re.search(r"^testgpu between_devices bytes=(\d+)$", Path(folder, str(pairs)).read_text(), re.M)[1]) - sum(round(float(line.get("peer_mb", 0)) * 1e6) for line in lines_for(done))
        tap.ok(right(done) and len(lines_for(done)) == 2 and abs(between / (pairs * 4 * (32 << 20)) - 1) < 0.05, f"of six pairs of devices, {pairs} measured, once", between, *lines_for(done))
done = start("steps", "dgemm:512:2", env=peers(2, TESTGPU_MEMORY="1G,3M"))
tap.ok(right(done) and len(lines_for(done)) == 2, "little memory on one", *lines_for(done), *said(done))
done = start("steps", "threads:4:512:6", env=peers(2, ACCEL_LOG="2"))
sent = Counter(line.get("up_mb") for line in lines_for(done) if line["ran"] == "gpu0+gpu1")
tap.ok(right(done) and sent.total() > 10 and set(sent) == {"4.194", without}, "four threads: one call at a time lends, the others wait for nobody", sent, *said(done))
cells = shared_cells(done)
# Of each factor those of one size, and the last ones, which are shorter.
tap.ok(len(cells) == 4, "all of them have the same cells, so that results do not depend on which calls lend", cells)
if UNDER_TSAN:
    tap.skip("no threads", "libplant stands before ThreadSanitizer's runtime, which has not started when it is called")
else:
    for fault in ("pthread_create:1+", "pthread_create:2"):
        done = start("steps", "dgemm:512:3", env=peers(3, LD_PRELOAD=f"{TESTS / 'libplant.so'}:{SHIM['LD_PRELOAD']}", PLANT=fault), timeout=60)
        tap.ok(right(done) and {line["ran"] for line in lines_for(done)} == {"gpu0+gpu1+gpu2"}, f"{fault}: parts without a thread of their own lend nothing, and nobody waits for them",
               done.returncode, done.stdout, *lines_for(done), *said(done))
tap.done()
