#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""ACCEL_C2C, on a test GPU that uses the host's page tables: what each policy copies, reads in place and moves; right
results also where the device fails; decisions by the calibration's rate; ranks decide alike; other devices copy, and
say so."""

import re

import pytest

from lib.calibrated import AUTO, gpu_lines, keys, lines, put
from lib.log import lines_for, said
from lib.programs import LOG, LONG, TEST_GPU, TESTS, start

TABLES = {"TESTGPU_ATTRIBUTES": "100=1"}  # cuda.h: PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES
GRACE = {**TEST_GPU, **TABLES, "TESTGPU_DELAY_US": "0", "ACCEL_LOG": "2"}
LACKING = ["-l", TESTS / "liblacking.so", "-f", "y"]
POLICIES = ("auto", "place", "copy", "migrate")
each_policy = pytest.mark.parametrize("c2c", POLICIES)


@pytest.fixture
def run(tmp_path):
    """A run that ends well; and the test GPU's report, which has no misuse of CUDA."""

    def run(program, *arguments, env):
        report = tmp_path / "report"
        done = start(program, *arguments, env={**env, "TESTGPU_REPORT": str(report)}, timeout=600)
        assert done.returncode == 0, done.stderr[-500:]
        assert "faults n=0" in report.read_text()
        return done, report.read_text()

    return run


def moved(report):
    """The report's bytes up, down and migrated."""
    return [int(found[1]) if (found := re.search(what, report)) else 0
            for what in (r"h2d_bytes=(\d+)", r"d2h_bytes=(\d+)", r"migrated bytes=(\d+)")]


def events(done, kind):
    """The operands of such events."""
    return re.findall(rf"event={kind} operand=(\w)", done.stderr)


# ---- A product: bytes, events ----

N = 320  # whole lines of 64 bytes: copies have no gaps
WHOLE = 8 * N * N


@each_policy
def test_a_product(c2c, run):
    done, report = run("steps", f"dgemm:{N}:2", env={**GRACE, "ACCEL_C2C": c2c})
    assert "2 calls, 0 wrong" in done.stdout
    assert not said(done)
    (up, down, pages), copies = moved(report), c2c == "copy"
    assert up == (4 * WHOLE if copies else 0)
    assert down == 2 * WHOLE
    assert [f["up_mb"] for f in lines_for(done)] == ([f"{2e-6 * WHOLE:.4g}"] * 2 if copies else ["0"] * 2)
    assert events(done, "in_place") == ([] if copies else ["a", "b"] * 2)
    assert events(done, "h2d") == (["a", "b"] * 2 if copies else [])
    assert events(done, "migrate") == (["a", "b"] * 2 if c2c == "migrate" else [])
    # Whole pages alone are moved: at both ends of each operand, less than a page stays.
    assert 4 * (WHOLE - 8192) <= pages <= 4 * WHOLE if c2c == "migrate" else pages == 0


# ---- Results ----


@each_policy
@pytest.mark.parametrize("arguments, extra", [
    pytest.param(["-c", 5 if LONG else 1], {}, id="every routine"),
    pytest.param(["-c", 3 if LONG else 1, "-n", 150], {"ACCEL_MEMORY": "60K"}, id="in blocks, strips and loads")])
def test_right(arguments, extra, c2c, run):
    seed = 100 * POLICIES.index(c2c) + bool(extra)
    done, _ = run("random_calls", *LACKING, *arguments, "-s", seed,
                  env={**GRACE, **extra, "ACCEL_C2C": c2c, "ACCEL_LOG": "0"})
    assert ", 0 wrong" in done.stdout
    assert not said(done)


# ---- A device that fails: results are those of the CPU, never half written ----

FAULTY = ["-c", 4, "-n", 120, "-s", 7, "-r", "d@(gemm|syrk|trsm|gemv|ger)"]


@pytest.mark.parametrize("c2c", ["place", "migrate"])
def test_every_result_is_right_after_a_fault(c2c, run):
    env = {**GRACE, "ACCEL_C2C": c2c, "ACCEL_MEMORY": "60K", "ACCEL_LOG": "0"}
    functions = {name: int(n) for name, n in re.findall(r"call name=(\S+) n=(\d+)",
                                                        run("random_calls", *FAULTY, env=env)[1])}
    operations = sum(n for name, n in functions.items() if name.startswith(("cublasD", "cuMemcpy")))
    assert operations > 20
    faults = [f"async:{n}=CUDA_ERROR_ILLEGAL_ADDRESS" for n in range(1, operations + 1, 1 if LONG else 4)]
    faults += [f"{name}:{n}" for name in functions if name.startswith(("cuMemPrefetch", "cublasD", "cuMemcpyDtoH",
                                                                       "cuMemAlloc"))
               for n in range(1, functions[name] + 1, 1 if LONG else 4)]
    assert len(faults) > 8
    for fault in faults:
        done = start("random_calls", *FAULTY, env={**env, "TESTGPU_FAIL": fault})
        assert done.returncode == 0, fault
        assert ", 0 wrong" in done.stdout, fault
        assert len(said(done)) <= 1, fault


def test_pages_that_the_driver_does_not_move_are_read_in_place(run):
    done, report = run("steps", f"dgemm:{N}:2", env={**GRACE, "ACCEL_C2C": "migrate",
                                                     "TESTGPU_FAIL": "cuMemPrefetchAsync:1+=CUDA_ERROR_NOT_SUPPORTED"})
    assert not said(done)
    assert events(done, "in_place") == ["a", "b"] * 2
    assert not events(done, "migrate")
    assert moved(report)[0] == 0


# ---- Which is faster ----


@pytest.fixture(params=[1000, 150], ids="{} GB/s in place".format)
def gbps(request):
    return request.param


@pytest.fixture
def calibrated(gbps, tmp_path):
    """Copies at 100 GB/s; a product of order 320 reads its factors 320 / 128 times."""
    known = keys(tmp_path)
    put(tmp_path / "model", {known["blas"]: lines(100), known["lapack"]: lines(100),
                             known["gpu"]: f"place_gbps={gbps}\n" + gpu_lines(1)})
    return {**AUTO, "ACCEL_LOG": "2", "ACCEL_MODEL": str(tmp_path / "model")}


def test_auto_goes_by_the_calibration(gbps, calibrated):
    done = start("steps", f"dgemm:{N}:1", env={**calibrated, **TABLES, "ACCEL_START": "wait"})
    assert [f["why"] for f in lines_for(done)] == ["faster"]
    assert events(done, "in_place") == (["a", "b"] if gbps == 1000 else [])


def test_two_ranks_that_must_agree_do_the_same(calibrated):
    """Decisions and results."""
    told = []
    for rank in "01":
        done = start("random_calls", "-c", 1, "-s", 3, "-r", "d*", env={
            **calibrated, **TABLES, "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
            "OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_LOCAL_RANK": rank})
        told.append([re.sub(r" (pid|tid|ms|est_cpu_ms|est_gpu_ms)=\S+", "", line) for line in done.stderr.splitlines()
                     if " sym=" in line and "allocate" not in line])
    assert told[0]
    assert told[0] == told[1]


def test_a_figure_of_a_device_that_cannot_do_it_counts_for_nothing(calibrated):
    done = start("steps", f"dgemm:{N}:1", env={**calibrated, "ACCEL_START": "wait"})
    assert [f["ran"] for f in lines_for(done)] == ["gpu0"]
    assert events(done, "h2d") == ["a", "b"]


def test_an_integrated_gpu_reads_its_own_memory_however_often():
    """One memory for both: nothing is copied that kernels can read."""
    done = start("steps", "dgemm:2500:1", env={**GRACE, "TESTGPU_DATA": "0", "TESTGPU_ATTRIBUTES": "100=1,18=1"})
    assert events(done, "in_place") == ["a", "b"]
    assert not events(done, "h2d")


def test_by_nvlink_c2c_what_a_large_product_reads_64_times_is_copied():
    done = start("steps", "dgemm:8200:1", env={**GRACE, "TESTGPU_DATA": "0", "TESTGPU_MEMORY": "4G"})
    assert not events(done, "in_place")
    assert events(done, "h2d")


@pytest.mark.parametrize("c2c, expected", [("auto", []), ("place", ["a", "b"] * 3)])
def test_operands_that_stay_on_the_device_are_worth_their_copy(c2c, expected):
    """Unless they are to be read in place."""
    done = start("steps", "dgemm:500:3", env={**GRACE, "ACCEL_RESIDENT": "hash", "ACCEL_C2C": c2c})
    assert events(done, "in_place") == expected
    assert ("event=kept" in done.stderr) == (not expected)


def test_lapacks_operands_are_copied(run):
    done, report = run("steps", "solve:200:1", env={**GRACE, **LOG, "ACCEL_C2C": "place"})
    assert [f["ran"] for f in lines_for(done)] == ["gpu0"]
    assert moved(report)[0] > 8 * 200 * 200


# ---- Devices and settings that cannot ----


@each_policy
def test_without_the_attribute_it_copies_and_says_so_where_it_was_asked(c2c, run):
    done, report = run("steps", f"dgemm:{N}:1", env={**TEST_GPU, "ACCEL_C2C": c2c})
    assert said(done) == ([] if c2c in ("auto", "copy") else [
        f"accel: ACCEL_C2C={c2c}: gpu0 does not use the host's page tables: operands are copied"])
    assert moved(report)[0] == 2 * WHOLE


def test_access_to_pageable_memory_by_page_tables_of_the_devices_own_does_not_count():
    """HMM."""
    assert len(said(start("steps", f"dgemm:{N}:1", env={**TEST_GPU, "ACCEL_C2C": "place",
                                                        "TESTGPU_ATTRIBUTES": "88=1"}))) == 1


def test_a_value_that_is_not_understood_is_named_with_those_allowed():
    (line,) = said(start("steps", f"dgemm:{N}:1", env={**GRACE, "ACCEL_LOG": "0", "ACCEL_C2C": "here"}))
    assert "ACCEL_C2C=here" in line
    assert "auto,place,copy,migrate" in line
