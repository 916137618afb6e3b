"""Calibrations for the tests: what they say of this machine's libraries and of the test GPU is made up."""

import re
from pathlib import Path

from lib.log import said
from lib.programs import LOG, TEST_GPU, start

AUTO = {**TEST_GPU, "ACCEL_POLICY": "auto"}
ROUTINES = {"dgemm": "{0}x{0}x{0}", "dgesv": "{0}x1"}


def put(path, sections):
    """Writes a calibration of these sections alone: key -> text."""
    Path(path).unlink(missing_ok=True)
    done = start("put_model", path, *[text for section in sections.items() for text in section])
    assert done.returncode == 0, done.stderr


def key_that_is_missed(folder, sections, step, env):
    """What a run says that the calibration has nothing for; the GPU is started for it, whatever it would gain."""
    path = f"{folder}/key"
    put(path, sections)
    done = start("steps", step, env={**AUTO, **LOG, "ACCEL_POLICY": "gpu", "ACCEL_MODEL": path, **env})
    return re.search(r" has nothing for (.*): built-in", said(done)[0]).group(1)


known = {}


def keys(folder, env={}):
    """The keys of the libraries that the programs call, with the threads of env, and of the test GPU. A test asks its programs once."""
    asked = tuple(sorted(env.items()))
    if asked not in known:
        known[asked] = ask_for_keys(folder, env)
    return known[asked]


def ask_for_keys(folder, env):
    cpu = key_that_is_missed(folder, {'[gpu "none"]': ""}, "dgemm:400:1", env)
    nothing = {f'[{cpu} threads=0 library="none"]': ""}
    blas = key_that_is_missed(folder, nothing, "dgemm:400:1", env)
    lapack = key_that_is_missed(folder, nothing, "solve:400:1", env)
    gpu = key_that_is_missed(folder, {blas: ""}, "dgemm:400:1", env)
    return {"blas": blas, "lapack": lapack, "gpu": gpu}


def lines(ms):
    """Lines of a section in which a call of order n takes ms * n / 500 milliseconds."""
    orders = (50, 100, 200, 300, 400, 500, 600, 700, 1000, 2000)
    return "".join(
        f"{name} {' '.join(f'{size.format(n)}:{ms * n / 500:.6f}' for n in orders)}\n" for name, size in ROUTINES.items())


def gpu_lines(ms, kernels_ms=0.001, solver_ms=0.001):
    """A GPU's section: fast copies, and first calls that load next to nothing, unless asked for."""
    return f"up_gbps=100\ndown_gbps=100\nkernels_ms={kernels_ms}\nsolver_ms={solver_ms}\n{lines(ms)}"


def calibrate(path, keys, cpu_ms, gpu_ms, **first):
    """Calls of order 500 take so long on the CPU and on the GPU."""
    put(path, {keys["blas"]: lines(cpu_ms), keys["lapack"]: lines(cpu_ms),
               keys["gpu"]: gpu_lines(gpu_ms, **first)})


def calibrate_slow_copies(path, folder, env, gpu_ms=0.001, cpu_ms=10000, vector_ms=1000):
    """Copies to the GPU are slow, so that with ACCEL_RESIDENT=auto all is kept that comes again, unless kernels are slower. dgemm pays on the GPU, unless
    the CPU is faster; dgemv, which takes vector_ms, would, too, if its matrix were there."""
    found = keys(folder, env)
    cpu = lines(cpu_ms) + f"dgemv 100x100:{vector_ms} 1000x1000:{vector_ms}\n"
    put(path, {found["blas"]: cpu, found["lapack"]: cpu,
               found["gpu"]: "up_gbps=0.5\ndown_gbps=100\nkernels_ms=0.001\nsolver_ms=0.001\n" + lines(gpu_ms)})


def calibrate_copies(path, folder):
    """Copies have one rate, so that calls are divided into the same blocks whatever the machine's threads could pack."""
    found = keys(folder)
    put(path, {found["blas"]: "", found["lapack"]: "", found["gpu"]: "up_gbps=11\ndown_gbps=11\n"})


def calibrate_in_core(path, folder, env):
    """Copies to the GPU are so slow that the panels of a small matrix of LAPACK come up while those before them are factored."""
    found = keys(folder, env)
    put(path, {found["blas"]: "", found["lapack"]: "",
               found["gpu"]: "up_gbps=0.1\ndown_gbps=0.1\nkernels_ms=0.001\nsolver_ms=0.001\n" + lines(2)})
