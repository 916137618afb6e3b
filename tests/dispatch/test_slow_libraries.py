#!/usr/bin/python3 -B
"""CPU libraries that are slower than a tuned one: by what a library says of itself, at once, and by a program's first calls. No time of a clock decides."""

import tempfile

from lib.calibrated import AUTO, calibrate, gpu_lines, keys, lines, put
from lib.log import events, lines_for, outcomes
from lib.programs import LOG, REFERENCE, SHIM, TESTS, start
from lib.tap import Tap

tap = Tap()
SYSTEM = "/usr/lib/x86_64-linux-gnu"
ONE, WAIT = {"OPENBLAS_NUM_THREADS": "1"}, {"ACCEL_START": "wait"}
CORE2 = {**ONE, "OPENBLAS_CORETYPE": "Core2"}
# It takes 30 times as much of a CPU's time as nominal rates say, and says nothing of itself.
SLOW = {"LD_PRELOAD": f"{SHIM['LD_PRELOAD']}:{TESTS}/libslow_blas.so"}
SILENT = {**SLOW, "SLOW_TIMES": "1"}
CPU, GPU = ("cpu", "slower"), ("gpu0", "faster")


def estimates(done, sym="dgemm_"):
    return [float(f["est_cpu_ms"]) for f in lines_for(done, sym=sym)]


with tempfile.TemporaryDirectory() as folder:
    model = f"{folder}/model"
    env = {**AUTO, **LOG, "TESTGPU_DELAY_US": "0", "ACCEL_MODEL": model}
    # A GPU on which products of order 500 take 25 ms: slower than a tuned CPU library with its 10
    # ms.
    put(model, {keys(folder)["gpu"]: gpu_lines(25)})

    # ---- What a library says ----

    def kernels(step, own):
        done = start("steps", step, env={**env, **WAIT, **own})
        found = events(done.stderr, "start")
        return found[0].get("cpu_kernels") if done.returncode == 0 and found else "no run", done

    for name, step, own, expected in (
        ("the reference library", "dgemm:300:1", REFERENCE, "reference"),
        ("OpenBLAS's kernels for Core2", "dgemm:300:1", CORE2, "Core2"),
        ("OpenBLAS's for Nehalem", "dgemm:300:1", {"OPENBLAS_CORETYPE": "Nehalem"}, "Nehalem"),
        ("LAPACK of the reference library", "solve:300:1", REFERENCE, "reference"),
        ("LAPACK of the reference library that calls OpenBLAS", "solve:300:1", {**CORE2, "LD_LIBRARY_PATH": f"{SYSTEM}/lapack"}, "Core2"),
        ("BLIS", "dgemm:300:1", {"LD_LIBRARY_PATH": f"{SYSTEM}/blis-pthread", "BLIS_NUM_THREADS": "1"}, None),
        ("a library that says nothing", "dgemm:300:1", SILENT, None),
    ):
        found, done = kernels(step, own)
        tap.ok(found == expected, f"{name}: its kernels are {expected or 'not known'}", found, done.stderr)

    # ---- Decided at once, the same way each time ----

    for name, own, ms, where in (
        ("the reference library", REFERENCE, 217, GPU),
        ("kernels for Core2", CORE2, 54.6, GPU),
        ("a library that says nothing", SILENT, 18.1, CPU),
    ):
        done = start("steps", "dgemm:600:4", env={**env, **WAIT, **own})
        seen = estimates(done)
        tap.ok(outcomes(lines_for(done)) == 4 * [where] and all(abs(x / ms - 1) < 0.02 for x in seen),
               f"ACCEL_START=wait: by nominal rates for it, {name}: {where[0]}", outcomes(lines_for(done)), seen)
    for name, own in ("the reference library", REFERENCE), ("kernels for Core2", CORE2):
        done = start("steps", "dgemm:600:2", "started", "dgemm:600:2", env={**env, **own})
        tap.ok(outcomes(lines_for(done))[-2:] == 2 * [GPU] and " 0 wrong" in done.stdout, f"{name}, by default: its calls run on the GPU", done.stderr)

    # ---- The first calls of a library that says nothing ----

    done = start("steps", "dgemm:480:1", "dgemm:560:1", "dgemm:640:1", "dsyrk:720:1", env={**env, **SLOW, "TESTGPU_START_MS": "100000"})
    seen, syrk = estimates(done), estimates(done, "dsyrk_")
    tap.ok(seen and seen[0] < 10 and syrk and syrk[0] > 15 * 14.9, "three slow calls of different sizes: another routine's call of another size is judged by them", seen, syrk, done.stderr)
    told = events(done.stderr, "slow_library")
    tap.ok(len(told) == 1 and told[0]["calls"] == "3" and float(told[0]["times"]) > 20 and told[0]["cpu_library"].endswith("/libslow_blas.so"),
           "a line says so, once", told)
    done = start("steps", "dgemm:500:4", "started", "dgemm:500:3", "dsyrk:900:1", env={**env, **SLOW})
    seen = outcomes(lines_for(done))
    tap.ok(seen[0][0] == "cpu" and seen[-4:] == 4 * [GPU] and " 0 wrong" in done.stdout, "first the CPU, some calls later the GPU", seen, done.stdout)
    # Calls of several threads, as an OpenMP program makes them: none of them is ever alone.
    done = start("steps", "team:3:500:3", env={**env, **SLOW, "TESTGPU_START_MS": "100000", "OMP_NUM_THREADS": "3"})
    seen = estimates(done)
    tap.ok(seen and max(seen) > 150, "calls that are made side by side teach, too, where the library has one thread", seen)
    done = start("steps", "dgemm:480:1", "dgemm:560:1", "dgemm:640:1", "dsyrk:720:1", env={**env, **SLOW, "TESTGPU_START_MS": "100000", "ACCEL_LOG": "json"})
    tap.ok(done.returncode == 0 and done.stderr.count('"event": "slow_library"') == 1, "the same in JSON", done.stderr)

    # ---- Where calls must not teach ----

    for name, own in ("ACCEL_START=wait", WAIT), ("an MPI rank", {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_LOCAL_RANK": "0"}):
        done = start("steps", "dgemm:480:5", env={**env, **SLOW, **own})
        tap.ok(done.returncode == 0 and len(set(estimates(done))) == 1 and not events(done.stderr, "slow_library"), f"{name}: all calls have the same estimate", estimates(done))

    # ---- A calibration comes first ----

    slow = keys(folder, SLOW)
    put(model, {slow["blas"]: lines(10), slow["gpu"]: gpu_lines(25)})
    done = start("steps", "dgemm:500:5", "dsyrk:720:1", env={**env, **SLOW})
    tap.ok(set(estimates(done)) == {10} and {ran for ran, _ in outcomes(lines_for(done))} == {"cpu"} and not events(done.stderr, "slow_library"), "the figures of a calibration stay, whatever calls take", estimates(done))
    reference = keys(folder, REFERENCE)
    calibrate(model, reference, 10, 25)
    done = start("steps", "dgemm:500:3", env={**env, **WAIT, **REFERENCE})
    tap.ok(set(estimates(done)) == {10}, "also those of a library that says that it is slow", estimates(done))

    # ---- What is learned is kept, where that is asked for ----

    learned = f"{folder}/learned"
    own = {**env, **SLOW, "ACCEL_MODEL": learned, "ACCEL_LEARN": "1", "TESTGPU_START_MS": "100000"}
    start("steps", "dgemm:480:2", "dgemm:640:2", env=own)
    done = start("steps", "dgemm:480:1", "dsyrk:720:1", env=own)
    tap.ok(estimates(done)[0] > 40 and estimates(done, "dsyrk_")[0] > 60, "ACCEL_LEARN=1: the next run of the program knows", estimates(done), estimates(done, "dsyrk_"))

    # ---- The summary ----

    done = start("steps", "dgemm:600:1", env={**AUTO, **REFERENCE, "ACCEL_SUMMARY": "1", "XDG_CACHE_HOME": folder + "/none"})
    tap.ok("libblas.so.3.11.0, 1 thread; nominal figures for reference kernels\n" in done.stderr, "the summary says for which kernels its figures are", done.stderr)
    done = start("steps", "dgemm:480:4", env={**AUTO, **SLOW, "ACCEL_SUMMARY": "1", "XDG_CACHE_HOME": folder + "/none", "TESTGPU_START_MS": "100000"})
    tap.ok(" times as long as the nominal figures say, which are corrected by that: " in done.stderr, "and that calls have corrected them", done.stderr)
tap.done()
