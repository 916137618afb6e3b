#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Inputs that a server (`accel serve`) keeps for its clients: each client watches its own. What nobody has written to since it was
digested is not read any more, and its key goes with the call; whoever writes, by whatever way, is noticed. Who writes, and how, is
also the matter of tests/gpu/test_storms*.py, which `make test-served` runs with a server."""

import re
import subprocess
import tempfile
from pathlib import Path

import pytest

from lib.calibrated import calibrate_slow_copies
from lib.log import events, lines_for, outcomes, parse_log, said
from lib.programs import BUILD, DEBIAN_PYTHON, LOG, LONG, TEST_GPU, clean_env, start
from lib.served import Server, wait_for

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}


def number(line, key):
    return float(line.get(key, 0))


def signs(values):
    return "".join("-+"[bool(value)] for value in values)


@pytest.fixture(scope="module")
def folder():
    with tempfile.TemporaryDirectory(prefix="accel-serve-") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def auto(folder):
    """Copies to the GPU are slow, so that all is kept that comes again."""
    calibrate_slow_copies(folder / "model", folder, ONE_THREAD)
    return {**LOG, "ACCEL_RESIDENT": "auto", "ACCEL_MODEL": str(folder / "model"), "ACCEL_POLICY": "gpu"}


@pytest.fixture(scope="module")
def server(folder):
    (folder / "shared").mkdir()
    server = Server(folder / "shared")
    yield server
    assert server.end() == ""


@pytest.fixture(scope="module", autouse=True)
def tracked(auto):
    """The kernel's record of writes."""
    for event in events(start("again", "unread", 4, env={**TEST_GPU, **auto, **ONE_THREAD}).stderr, "untracked"):
        pytest.skip(event["reason"])


@pytest.fixture
def own_server(folder):
    place = Path(tempfile.mkdtemp(dir=folder))
    servers = []

    def begin(*options, **env):
        servers.append(Server(place, *options, **env))
        return servers[-1]

    yield begin
    for server in servers:
        server.kill()


def again(*arguments, env):
    """A run of tests/fixtures/again.c whose results are right, and that says nothing."""
    done = start("again", *arguments, env=env)
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.endswith("0 calls wrong\n"), done.stdout[-300:]
    assert not said(done), said(done)
    return done


# ---- What is not read any more ----

@pytest.mark.parametrize("what, count", (("unread", 12), ("sealed", 9)))
def test_what_nobody_has_written_to_is_not_read(what, count, server, auto):
    again(what, count, env=server.client(**auto))
    hashes = start("again", what, count, env=server.client(**{**auto, "ACCEL_RESIDENT": "hash"}))
    assert "of the matrix have been read\n" in hashes.stdout # for a digest


def test_nor_is_it_on_another_device(own_server, auto):
    """Where the process has its calls on the server's second GPU."""
    server = own_server(TESTGPU_DEVICES="2")
    end = Path(f"{server.path}.end")
    first = subprocess.Popen([BUILD / "tests/steps", "dgemm:64:1", f"await:{end}"], env={**clean_env("/tmp"), **server.client(**auto)},
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: server.metric("calls_total") == 1)
    for what, count in (("unread", 12), ("sealed", 9)):
        assert {f["ran"] for f in lines_for(again(what, count, env=server.client(**auto)))} == {"gpu1"}
        wait_for(lambda: server.lanes() == 1)
    assert brings(product(server, "same same same same", **auto), "cblas_dgemm") == "ukkk"
    end.touch()
    assert first.wait(60) == 0


# ---- As in a process that has the device itself ----

def brings(done, sym):
    """Of each call: c: by the CPU; u: the matrix goes up; k: it is found."""
    return "".join("c" if f["ran"] == "cpu" else "u" if number(f, "up_mb") > 1.5 else "k" if number(f, "kept_mb") > 1.5 else "?"
                   for f in lines_for(done, sym=sym))


@pytest.mark.parametrize("what, count, sym, want, env", (
    ("vectors", 8, "dgemv_", "uuk{6}", {}), ("thin", 8, "dgemm_", "u{2,3}k+", {}), ("lu", 6, "dgetrs_", "k{6}", {}),
    ("solves", 12, "dgetrs_", "[uk]{2}k{4}uk{5}", {}), ("solves", 12, "dormqr_", "[?k]{2}k{4}[?]k{5}", {}),
    # A product that no longer pays has the CPU, until its matrix is worth its way up.
    ("vector", 12, "dgemv_", "k{6}ccuk{3}", {"ACCEL_POLICY": "auto"})))
def test_inputs_are_found_as_in_a_process(what, count, sym, want, env, own_server, auto):
    env = {**auto, **env}
    assert re.fullmatch(want, brings(again(what, count, env=own_server().client(**env)), sym))


def test_panels_are_found_within_the_matrix_that_is_there(own_server, auto):
    panels = lines_for(again("panels", 12, env=own_server().client(**auto)))[6:]
    # The fifth time, an element of the matrix changes in a page that the panel has no part of; the
    # ninth time, one of the panel's.
    assert signs(number(f, "kept_mb") > 1.3 and number(f, "up_mb") < 0.1 for f in panels[:9]) == "++++++++-"


def test_an_input_that_shares_a_page_with_the_result(own_server, auto):
    """Its edge is written to when the result comes down, behind its digest."""
    done = product(own_server(), "next next next next next", **auto)
    estimates = [number(f, "est_gpu_ms") for f in lines_for(done, sym="cblas_dgemm")]
    assert estimates[3] < 0.95 * estimates[1], estimates # to scan takes less than to digest


def test_decisions_know_what_is_there(own_server, auto):
    """By what the server has said; it has freed the matrix when nobody has asked for it for ten seconds."""
    server = own_server()
    done = product(server, "same same same sleep:12 same same", **auto)
    estimates = [number(f, "est_gpu_ms") for f in lines_for(done, sym="cblas_dgemm")]
    unknown, digested, watched, gone, back = estimates
    assert unknown > 10 * digested > 10 * watched # 2.56 MB at 0.5 GB/s, and what it takes to read it, and to scan its pages
    assert gone == pytest.approx(unknown, rel=0.01)
    assert back == pytest.approx(watched, rel=0.5)


# ---- Who writes ----

PRODUCTS = """
import ctypes, mmap, os, sys, threading, time
import numpy
n = 560
kind, steps = sys.argv[1], sys.argv[2].split()
def place(offset=24):
    # So that the matrix shares pages at both edges with the program's other data.
    memory = mmap.mmap(-1, 16 * n * n + 8192, mmap.MAP_ANONYMOUS | (mmap.MAP_SHARED if kind == "shared" else mmap.MAP_PRIVATE))
    return memory, numpy.frombuffer(memory, dtype=float, count=n * n, offset=offset).reshape(n, n, order="F")
memory, a = place()
a[:] = numpy.random.default_rng(0).integers(0, 100, (n, n))
b = numpy.asfortranarray(numpy.random.default_rng(1).integers(0, 9, (n, 2))).astype(float)
calls = wrong = 0
def check():
    global calls, wrong
    calls += 1
    wrong += not (a @ b == numpy.einsum("ij,jk->ik", a, b)).all()
def add(i, j):
    a[i, j] += 1
for step in steps:
    what, _, number = step.partition(":")
    if what == "same":
        check()
        continue
    if what == "vector":
        calls += 1
        wrong += not (a @ b[:, 0] == numpy.einsum("ij,j->i", a, b[:, 0])).all()
        continue
    if what == "team": # at the same time
        threads = [threading.Thread(target=check) for _ in range(int(number))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        continue
    if what == "first":
        add(0, 0)
    elif what == "last":
        add(-1, -1)
    elif what == "inside":
        add(n // 2, n // 2)
    elif what == "beside": # the page of an edge, and not the matrix
        memory[:8] = b"abcdefgh"
        memory[24 + 8 * n * n:32 + 8 * n * n] = b"abcdefgh"
    elif what == "thread":
        thread = threading.Thread(target=add, args=(5, 5))
        thread.start()
        thread.join()
    elif what == "read":
        ends = os.pipe()
        os.write(ends[1], numpy.full(100, 7.0).tobytes())
        os.readv(ends[0], [memoryview(memory)[24 + 8 * 50000:24 + 8 * 50100]])
    elif what == "child":
        if os.fork() == 0:
            add(7, 7)
            check()
            os._exit(wrong)
        wrong += os.wait()[1] != 0
    elif what == "next": # the result lies behind the matrix
        blas = ctypes.CDLL("libblas.so.3")
        calls += 1
        c = numpy.frombuffer(memory, dtype=float, count=n * n, offset=24 + 8 * n * n).reshape(n, n, order="F")
        pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in (a, a, c)]
        blas.cblas_dgemm(102, 111, 111, n, n, n, ctypes.c_double(1), pointers[0], n, pointers[1], n, ctypes.c_double(0), pointers[2], n)
        wrong += not (c == numpy.einsum("ij,jk->ik", a, a)).all()
        continue
    elif what == "sleep":
        time.sleep(float(number))
    elif what == "go":
        open(f"{number}.ready", "w").close()
        while not os.path.exists(f"{number}.go"):
            time.sleep(0.02)
        os.unlink(f"{number}.go")
        continue
    elif what == "others":
        for i in range(int(number)):
            c = numpy.asfortranarray(a + i + 1)
            wrong += not (c @ b == numpy.einsum("ij,jk->ik", c, b)).all()
            wrong += not (c @ b == numpy.einsum("ij,jk->ik", c, b)).all()
        continue
    if what != "sleep":
        check()
print(calls, "calls,", wrong, "wrong")
"""


def product(server, steps, kind="private", **env):
    done = start(DEBIAN_PYTHON, "-c", PRODUCTS, kind, steps, env=server.client(**env))
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.endswith(" 0 wrong\n"), done.stdout
    return done


@pytest.mark.parametrize("way", ("first", "last", "inside", "thread", "read", "child"))
def test_who_writes_is_noticed(way, own_server, auto):
    """Also at the edges, whose pages nobody watches, and by a child, which has a copy of the pages. The watch goes on where somebody has
    written beside the matrix."""
    done = product(own_server(), f"same same same beside same {way} same same same {way} same same same", **auto)
    found = brings(done, "cblas_dgemm")
    assert found.startswith("ukkkk")
    assert found.count("k") >= 10 or way != "child" and found.count("u") <= 3, found


def test_memory_that_another_process_has_too(own_server, auto):
    """It is not watched: each call digests it."""
    done = product(own_server(), "same same same same child same child same same", kind="shared", **auto)
    assert brings(done, "cblas_dgemm").startswith("ukkk")


STORMS = ("store", "thread", "fork", "during", "mremap", "munmap", "madvise", "realloc", "malloc", "shared", "mix")


@pytest.mark.parametrize("arguments", ((), ("vector", )), ids=("matrix", "vector"))
@pytest.mark.parametrize("way", STORMS)
def test_storms_of_writers(way, arguments, server, auto):
    """Those of tests/gpu/test_storms.py, some of each."""
    done = start("storm", way, 400 if LONG else 15, 7, "fresh", *arguments, env=server.client(**auto))
    assert done.returncode == 0, done.stderr[-300:]
    assert done.stdout.endswith(" 0 wrong\n"), done.stdout
    assert sum(number(f, "kept_mb") > 0 for f in lines_for(done)) > (100 if LONG else 7) or arguments


# ---- Who ends, and who else is there ----

def test_what_the_server_has_evicted_is_brought_again(own_server, auto):
    """Its watch is as good as before: nobody looks for it by a digest."""
    server = own_server(ACCEL_MEMORY="12M")
    done = product(server, "same same same others:8 same same same", **auto)
    found = brings(done, "cblas_dgemm")
    assert (found[:3], found[-3:]) == ("ukk", "ukk"), found


def test_a_server_that_starts_again(own_server, auto):
    server = own_server()
    place = str(server.path)
    process = subprocess.Popen([DEBIAN_PYTHON, "-c", PRODUCTS, "private", f"same same same go:{place} same same same"],
                               env={**clean_env("/tmp"), **server.client(**auto)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(Path(f"{place}.ready").exists)
    server.kill()
    server.begin()
    Path(f"{place}.go").touch()
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (0, "6 calls, 0 wrong\n"), stderr[-500:]
    lines = parse_log(stderr)
    assert outcomes(lines) == 6 * [("gpu0", "forced")]
    assert signs(number(f, "kept_mb") > 2 for f in lines) == "-++-++"


def test_what_a_server_has_said_ends_with_it(own_server, auto):
    """Also on lanes that no thread uses by then: a product with a vector goes to the next server once its matrix is there."""
    server = own_server(TESTGPU_DELAY_US="20000")
    place = str(server.path)
    steps = f"same sleep:0.5 same team:3 same same vector go:{place} {' '.join(8 * ['vector'])}"
    process = subprocess.Popen([DEBIAN_PYTHON, "-c", PRODUCTS, "private", steps],
                               env={**clean_env("/tmp"), **server.client(**{**auto, "ACCEL_POLICY": "auto"})}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(Path(f"{place}.ready").exists)
    assert server.lanes() > 1
    server.kill()
    server.begin()
    Path(f"{place}.go").touch()
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (0, "16 calls, 0 wrong\n"), stderr[-500:]
    lines = [f for f in parse_log(stderr) if f.get("sym") == "cblas_dgemv"]
    assert all(f["ran"] == "gpu0" for f in lines[-3:]), lines


def test_two_processes_of_a_user(own_server, auto):
    """Each watches its own memory; the second one finds what the first has brought."""
    server = own_server()
    for first in "uk":
        assert brings(product(server, "same same same same", **auto), "cblas_dgemm") == first + "kkk"
    product(server, "same same inside same same", **auto)
    assert brings(product(server, "same same same", **auto), "cblas_dgemm") == "kkk"
