#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""What libaccel asks of the C library fails: memory at its n-th use and from then on, pages, the thread that starts
CUDA. Every result is right, and no more is left behind than otherwise."""

import re

import pytest

from faults.faults import GPU, QUICK, Fault, Outcome, check, ended_well, record, run, sweep, uses
from lib.log import parse_log, said
from lib.programs import BUILD, TEST_GPU, TESTS
from lib.split import several

PRELOAD = {"LD_PRELOAD": f"{TESTS / 'libplant.so'}:{BUILD / 'libaccel.so'}"}
LACKING = ["-l", TESTS / "liblacking.so", "-f", "y"]
LAPACK = ["-f", "tyesmv", "-k", "@(uniform|well)"]
WORKLOADS = {
    "Level 3 and 2": ("random_calls", [*LACKING, "-c", 1, "-n", 40, "-s", 3, "-r", "d*"], {}, "malloc"),
    "the same in parts": ("random_calls", [*LACKING, "-c", 1, "-n", 150, "-s", 4, "-r",
                                           "z*"], {"ACCEL_MEMORY": "100K"}, "malloc"),
    "on several devices": ("random_calls",
                           [*LACKING, "-c", 2, "-n", 60, "-s", 21, "-r",
                            "d@(gemm|syrk|symm|trsm|gemm_batch_strided)"], {**several(2), **PRELOAD}, "malloc"),
    "without a GPU": ("random_calls", [*LACKING, "-c", 1, "-n", 40, "-s", 3, "-r",
                                       "d*"], {"CUDA_VISIBLE_DEVICES": "-1"}, "malloc"),
    "operands in device memory": ("cuda_program",
                                  [*LACKING, "-c", 1, "-n", 20, "-r",
                                   "d@(gemm|trsm|syrk|symv|ger|gemm_batch)"], {}, "malloc"),
    "LAPACK": ("random_lapack", [*LAPACK, "-c", 1, "-n", 20, "-s", 5, "-r", "d*"], {}, "malloc"),
    "LAPACK in panels": ("random_lapack",
                         [*LAPACK, "-c", 1, "-m", 105, "-n", 125, "-s", 5, "-r",
                          "d@(potrf|posv|gesv|getrs)"], {"ACCEL_MEMORY": "76K", "ACCEL_CPU": "blas2:*,blas3:*"},
                         "malloc"), "LAPACK in device memory": ("device_lapack", [], {}, "malloc"),
    "figures": ("steps", ["dgemm:300:4", "solve:300:2"], {"ACCEL_POLICY": "auto", "ACCEL_START": "wait"},
                "mmap"), "figures, memory": ("steps", ["dgemm:300:4",
                                                       "solve:300:2"], {"ACCEL_POLICY": "auto",
                                                                        "ACCEL_START": "wait"}, "malloc"),
}

# What could not be remembered is looked up again, and both stay.
TWICE = 8

def home_of(folder):
    return {"XDG_CACHE_HOME": str(folder), "XDG_RUNTIME_DIR": str(folder)}


def planted(folder, program, arguments, env, plant=""):
    """The finished process, the test GPU's report, and what the C library was asked: {name: (calls, failed)}, blocks
    left."""
    path = folder / re.sub(r"\W", "_", f"plant {plant}")
    done, report = run(program, arguments,
                       {**GPU, **PRELOAD, **home_of(folder), **env, "PLANT": plant, "PLANT_REPORT": str(path)})
    text = path.read_text() if path.exists() else ""
    calls = {name: (int(n), int(failed)) for name, n, failed in re.findall(r"(\w+) calls=(\d+) failed=(\d+)", text)}
    left = re.search(r"left=(\d+)", text)
    return done, report, calls, int(left[1]) if left else -1


def is_right(done):
    return ended_well(done,
                      "") or done.returncode == 0 and "\n0 wrong" in done.stdout and "\n1 wrong" not in done.stdout


@pytest.mark.parametrize("name", WORKLOADS)
def test_memory_or_pages_fail(name, tmp_path):
    program, arguments, env, function = WORKLOADS[name]
    done, _, calls, usual = planted(tmp_path, program, arguments, env)
    assert is_right(done), done.stdout + done.stderr[-300:]
    assert calls[function][0] > 1
    faults = [
        Fault("host memory", f"{function}:{n}{more}", function, bool(more)) for n in uses(calls[function][0], 40)
        for more in ("", "+")
    ]

    def attempt(fault):
        done, report, calls, left = planted(tmp_path, program, arguments, env, fault.plant)
        stopped = done.returncode == -6 and "cannot be made right" in done.stderr
        if stopped and program in ("cuda_program", "device_lapack"):  # the CPU needs memory to see the device's
            return Outcome(fault, "stopped",
                           [line for line in done.stderr.splitlines() if "cannot be made right" in line][0], 0)
        if not is_right(done) or report.misuse:
            return Outcome(
                fault, "wrong",
                f"{fault.plant}: {done.returncode} {done.stdout[-200:]} {done.stderr[-300:]} {report.misuse[:2]}", 0)
        if left > usual + TWICE:
            return Outcome(fault, "wrong", f"{fault.plant}: {left} blocks are left, not {usual}", 0)
        elsewhere = [f for f in parse_log(done.stderr) if f["why"] in ("no_memory", "unsupported", "error")]
        return Outcome(fault,
                       "missed" if calls[function][1] == 0 else "recovered" if elsewhere or said(done) else "absorbed",
                       "", 0)

    check("host memory", sweep(faults, attempt), least=2 if function == "mmap" else 10)


# ---- A process that may have no more threads: what would have waited for CUDA goes on with the
# CPU, and the log says why ----

AUTO = {**TEST_GPU, **QUICK, **PRELOAD, "ACCEL_POLICY": "auto", "ACCEL_LOG": "1"}


def test_with_a_thread_cuda_starts_beside_the_program(tmp_path):
    done, _ = run("steps", ["dgemm:400:100", "started", "dgemm:400:2"], {**AUTO, **home_of(tmp_path), "ACCEL_GPU": ""})
    assert "gpu0" in {f["ran"] for f in parse_log(done.stderr)}, said(done)


def test_without_a_thread_the_cpu_computes_and_one_line_says_so(tmp_path):
    fault = Fault("threads", "pthread_create:1", "pthread_create", True)
    done, _ = run("steps", ["during:1500:400"], {**AUTO, **home_of(tmp_path), "PLANT": fault.plant})
    right = done.returncode == 0 and " 0 wrong" in done.stdout and {f["ran"] for f in parse_log(done.stderr)} == {"cpu"}
    spoken = said(done)
    record("host memory", [Outcome(fault, "recovered" if right and len(spoken) == 1 else "wrong", "", 0)])
    assert right, done.stdout
    assert len(spoken) == 1
    assert "thread" in spoken[0]
