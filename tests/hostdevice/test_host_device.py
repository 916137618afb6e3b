#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""A second kind of device: the host, in a libaccel without gpu/cuda/. Random calls of BLAS and LAPACK run on it, and
are right: so no operation, executor or decision knows CUDA. See host_device.h."""

import re
import subprocess

import pytest

from lib.log import parse_log, said
from lib.programs import LONG, ROOT, RUNTIME, TESTS, start
from lib.table import routine_table

LIBRARY = TESTS / "hostdevice/libaccel.so"
HOST = {"LD_PRELOAD": ":".join([*RUNTIME, str(LIBRARY)]), "ACCEL_POLICY": "gpu", "ACCEL_LOG": "1",
        "OPENBLAS_NUM_THREADS": "1"}
# The host has no bfloat16; cuSOLVER has no gelsy.
NOT_THERE = re.compile(r"sbgemm|.gelsy")
BLAS = ["random_calls", "-f", "y"]
RUNS = {
    "BLAS": ([*BLAS, "-n", 70, "-c", 40 if LONG else 4], {}),
    "BLAS, by rows": ([*BLAS, "-i", "cblas-row", "-n", 70, "-c", 10 if LONG else 2], {}),
    "BLAS, short of memory": ([*BLAS, "-n", 90, "-c", 10 if LONG else 2], {"ACCEL_MEMORY": "64K"}),
    "LAPACK": (["random_lapack", "-f", "tyesmv", "-n", 40, "-c", 12 if LONG else 3], {}),
}


def routine_of(line):
    return re.sub(r"^cblas_|_$", "", line["sym"])


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """name -> the finished process, and its decisions on routines of the table."""
    found = {}
    for name, ((program, *arguments), env) in RUNS.items():
        log = tmp_path_factory.mktemp("log") / "log"
        done = start(program, *arguments, env={**HOST, **env, "ACCEL_LOG_FILE": str(log)})
        table = set(routine_table("LAPACK" if name == "LAPACK" else "ROUTINE"))
        found[name] = done, [line for line in (parse_log(log.read_text()) if log.exists() else [])
                             if routine_of(line) in table and line["why"] not in ("workspace_query", "empty",
                                                                                  "bad_argument")]
    return found


@pytest.mark.parametrize("name", RUNS)
def test_every_call_is_right(name, runs):
    done, _ = runs[name]
    assert done.returncode == 0, [line for line in done.stderr.splitlines() if line.startswith("wrong")][:8]
    assert re.search(r"(?m)[1-9]\d* calls, 0 wrong", done.stdout)
    assert not said(done)


@pytest.mark.parametrize("name", RUNS)
def test_the_host_computes_all_that_it_can(name, runs):
    _, lines = runs[name]
    assert lines
    assert not [line for line in lines if line["ran"] != "gpu0" and line["why"] != "unsupported"
                and not NOT_THERE.fullmatch(routine_of(line))]


def test_the_library_has_nothing_of_cudas():
    symbols = subprocess.run(["nm", str(LIBRARY)], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert symbols
    assert not re.findall(r".*(?:\bcuda_|\bcublas|\bcusolver|own_image).*", symbols)


def routines_there(runs, of_lapack):
    return {routine_of(line) for name, (_, lines) in runs.items() if (name == "LAPACK") == of_lapack for line in lines
            if line["ran"] == "gpu0"}


def test_routines_of_blas_of_each_kind(runs):
    wanted = {f"{t}{r}" for t in "sdcz" for r in ("gemm", "trsm", "trmm")} | {"dsyrk", "zherk", "dsymm", "zhemm",
                                                                              "dgemv", "dger", "ztrsv"}
    assert not wanted - routines_there(runs, of_lapack=False)


def test_routines_of_lapack_of_each_kind(runs):
    wanted = {f"{t}{r}" for t in "sdcz" for r in ("getrf", "potrf", "geqrf", "gesvd")} | {"dsyevd", "zheevd", "dsytrf",
                                                                                          "dgels"}
    assert not wanted - routines_there(runs, of_lapack=True)


def test_a_kind_of_device_takes_at_most_600_lines():
    code = [line for path in (ROOT / "tests/hostdevice").glob("host_*.[ch]") for line in path.read_text().splitlines()
            if line.strip() and not line.strip().startswith(("/*", "*"))]
    assert 0 < len(code) <= 600
