#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Operands' tiles that devices which share a call lend each other: each byte of an operand crosses the host's link
once, the others copy it from the device that has it. What the log says of it, that results are right whatever the
routine, and what becomes of it where devices cannot reach each other, lack memory or threads, or have several calls at
once."""

import re
from collections import Counter, defaultdict

import pytest

from lib.log import events, lines_for, parse_json, said
from lib.programs import LONG, SHIM, TESTS, UNDER_TSAN, right, start
from lib.split import behind_slow_links, several

plants = pytest.mark.skipif(UNDER_TSAN,
                            reason="libplant stands before ThreadSanitizer's runtime, "
                                   "which has not started when it is called")


@pytest.fixture
def apart(tmp_path):
    """The environment of devices that cannot reach each other, behind slow links."""
    return lambda devices, **extra: behind_slow_links(devices, str(tmp_path), **extra)


@pytest.fixture
def peers(apart):
    """The same of devices from one of which to another a copy takes no time."""
    return lambda devices, **extra: apart(devices, TESTGPU_PEER_GBPS="0", **extra)


def run(*steps, env, program="steps", **options):
    done = start(program, *steps, env=env, **options)
    assert right(done), done.stderr[-1000:]
    return done


def moved(done):
    """{(way, operand): bytes}, to the accuracy of the log."""
    sums = Counter()
    for way in ("h2d", "peer", "d2h"):
        for move in events(done.stderr, way):
            sums[way, move["operand"]] += int(move["rows"]) * int(move["cols"]) * 8
    return sums


def shared_tiles(done):
    """The tiles that came up for calls that devices share: where one is busy, a call of several threads may have the
    other one alone. A call's events come before its line, with the number of its thread."""
    tiles, of_thread = Counter(), defaultdict(Counter)
    for line in done.stderr.splitlines():
        fields = dict(re.findall(r"(\w+)=(\S+)", line))
        if fields.get("event") == "h2d":
            of_thread[fields["tid"]][fields["operand"], fields["rows"], fields["cols"]] += 1
        elif "ran" in fields:
            moved_up = of_thread.pop(fields["tid"], Counter())
            tiles += moved_up if "+" in fields["ran"] else Counter()
    return tiles


@pytest.mark.parametrize("devices, n", [(2, 512), (4, 1024)])
def test_in_emulated_double_precision_as_much_is_lent(devices, n, peers):
    """It needs no smaller blocks here."""
    lent = []
    for precision in "native", "emulated":
        env = {**peers(devices, ACCEL_LOG="1", ACCEL_PRECISION=precision, TESTGPU_MEMORY="4G"),
               "TESTGPU_ATTRIBUTES": "75=9,76=0"}
        lent.append([line.get("peer_mb") for line in lines_for(run(f"dgemm:{n}:1", env=env))])
    assert lent[0][0]
    assert lent[0] == lent[1]


# ---- Once over the host's link, and what the log says ----


@pytest.mark.parametrize("devices", [2, 3, 4])
def test_each_byte_of_a_factor_comes_up_once_for_all_of_them(devices, peers, apart):
    """Those of the result come down once."""
    n = 512 if devices == 2 else 1024
    whole = n * n * 8
    done = run(f"dgemm:{n}:1", env=peers(devices, ACCEL_LOG="2"))
    seen, line = moved(done), lines_for(done)[0]
    assert line["ran"] == "+".join(f"gpu{i}" for i in range(devices))
    assert not said(done)[1:]
    assert (seen["h2d", "a"], seen["h2d", "b"], seen["d2h", "c"]) == (whole, whole, whole)
    # The others copy it from each other.
    lent = sum(count for (way, _), count in seen.items() if way == "peer")
    assert lent >= whole
    assert line["up_mb"] == f"{2 * whole * 1e-6:.4g}"
    assert line["peer_mb"] == f"{lent * 1e-6:.4g}"
    # Those that cannot reach each other: once for each that needs it; which the estimates tell.
    other = lines_for(run(f"dgemm:{n}:1", env=apart(devices)))[0]
    assert float(other["up_mb"]) * 1e6 > 2.9 * whole
    assert "peer_mb" not in other
    assert float(line["est_gpu_ms"]) < 0.9 * float(other["est_gpu_ms"])


def test_the_same_each_time_as_json(peers):
    lines = [line for line in parse_json(run("dgemm:512:3", env=peers(2, ACCEL_LOG="json")).stderr) if "sym" in line]
    assert len(lines) == 3
    assert len({(line["up_mb"], line["peer_mb"]) for line in lines}) == 1
    assert lines[0]["peer_mb"] > 0


@pytest.mark.parametrize("n, devices", [(384, 3), (1024, 6)])
def test_each_line_of_dsyrks_factor_comes_up_once(n, devices, peers):
    seen = moved(run(f"dsyrk:{n}:1", env=peers(devices, ACCEL_LOG="2")))
    assert seen["h2d", "a"] == n * n * 8
    assert seen["peer", "a"] > 0


# ---- All kinds of operands ----

KINDS = ("dsymm-L", "dtrmm-L", "dtrsm-L", "dtrmm-R", "dtrsm-R", "dtrsm-T")


@pytest.mark.parametrize("case, devices", [(case, devices) for i,
                                           case in enumerate(KINDS)
                                           for devices in ((2, 3, 4) if LONG else (2 + i % 3,))])
def test_one_brings_each_tile_of_a_up_and_the_others_copy_it(case, devices, peers):
    seen = moved(run(case, program="columns", env=peers(devices, ACCEL_LOG="2")))
    assert seen["h2d", "a"] > 0
    assert seen["peer", "a"] == (devices - 1) * seen["h2d", "a"]


@pytest.mark.skipif(UNDER_TSAN, reason="the sanitizer makes the comparison take minutes")
@pytest.mark.parametrize("devices, routines", [(devices, "*") for devices in (2, 3, 4, 7)] if LONG
                         else [(3, "dgemmt"), (3, "zher2k"), (3, "dsyrk")])
def test_random_calls_of_which_some_lend(devices, routines, peers):
    done = start("random_calls", "-l", TESTS / "liblacking.so", "-n", 600, "-s", 2 + devices, "-r", routines, "-c",
                 3 if LONG else 1, 1, env=peers(devices), timeout=1500)
    assert done.returncode == 0, done.stdout[-600:]
    assert [line for line in lines_for(done) if "peer_mb" in line]


# ---- Where it cannot be ----


def test_a_driver_without_such_memory(peers, apart):
    without = lines_for(start("steps", "dgemm:512:1", env=apart(2)))[0]["up_mb"]
    assert {line["up_mb"] for line in lines_for(run("dgemm:512:2",
                                                    env={**peers(2), "TESTGPU_ATTRIBUTES": "115=0"}))} == {without}


# 5 GB/s are less than devices with fast links bring up; with slow ones, any rate is more.
@pytest.mark.parametrize("pairs", [1, 6])
def test_of_six_pairs_of_devices_so_many_are_measured_once(pairs, peers, tmp_path):
    report = tmp_path / "report"
    done = run("dgemm:512:2", env={**(several(3, TESTGPU_PEER_GBPS="5") if pairs == 1 else peers(3)),
                                   "TESTGPU_REPORT": str(report)})
    lines = lines_for(done)
    assert len(lines) == 2
    between = int(re.search(r"^testgpu between_devices bytes=(\d+)$", report.read_text(), re.M)[1])
    between -= sum(round(float(line.get("peer_mb", 0)) * 1e6) for line in lines)
    assert abs(between / (pairs * 4 * (32 << 20)) - 1) < 0.05


def test_little_memory_on_one(peers):
    assert len(lines_for(run("dgemm:512:2", env=peers(2, TESTGPU_MEMORY="1G,3M")))) == 2


def test_four_threads_one_call_at_a_time_lends_and_the_others_wait_for_nobody(peers, apart):
    without = lines_for(start("steps", "dgemm:512:1", env=apart(2)))[0]["up_mb"]
    done = run("threads:4:512:6", env=peers(2, ACCEL_LOG="2"))
    sent = Counter(line.get("up_mb") for line in lines_for(done) if line["ran"] == "gpu0+gpu1")
    assert sent.total() > 10
    assert set(sent) == {"4.194", without}
    # All of them have the same tiles, so that results do not depend on which calls lend: of each
    # factor those of one size, and the last ones, which are shorter.
    assert len(shared_tiles(done)) == 4


@plants
@pytest.mark.parametrize("fault", ["pthread_create:1+", "pthread_create:2"])
def test_parts_without_a_thread_of_their_own_lend_nothing_and_nobody_waits_for_them(fault, peers):
    done = run("dgemm:512:3", env=peers(3, LD_PRELOAD=f"{TESTS / 'libplant.so'}:{SHIM['LD_PRELOAD']}", PLANT=fault),
               timeout=60)
    assert {line["ran"] for line in lines_for(done)} == {"gpu0+gpu1+gpu2"}
