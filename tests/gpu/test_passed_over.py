#!/usr/bin/python3 -B
"""A device that cannot be had is passed over for the next one of the list: exclusive and taken, prohibited, failing, without memory."""

from lib.log import lines_for, said
from lib.programs import LOG, TEST_GPU, start
from lib.tap import Tap

tap = Tap()
QUICK = {**TEST_GPU, "TESTGPU_DELAY_US": "0"}


def attempt(name, modes, expected, words=(), env={}):
    """expected: gpuN, or cpu. words: of the message in the log. Without a log nothing is said where a device is left."""
    env = {**QUICK, "TESTGPU_DEVICES": str(modes.count(",") + 1), "TESTGPU_MODES": modes, **env}
    done = start("steps", "dgemm:100:2", env={**env, **LOG})
    ran = {(f["ran"], f["why"]) for f in lines_for(done)}
    tap.ok(done.returncode == 0 and " 0 wrong" in done.stdout and ran == {(expected, "no_gpu" if expected == "cpu" else "forced")}
           and len(said(done)) == bool(words) and all(word in line for line in said(done) for word in words), name, done.stdout, done.stderr)
    done = start("steps", "dgemm:100:2", env=env)
    silent = expected != "cpu" and not env.get("ACCEL_DEVICES")
    tap.ok(done.returncode == 0 and len(said(done)) == (not silent), f"{name}, no log", done.stderr)


attempt("none", "default,default", "gpu0")
attempt("exclusive and taken", "taken,default", "gpu1", ["gpu1 is used", "gpu0: ", "CUDA_ERROR_DEVICE_UNAVAILABLE", "compute mode is exclusive"])
attempt("exclusive and free", "exclusive,default", "gpu0")
attempt("prohibited", "prohibited,default", "gpu1", ["gpu1 is used", "gpu0: its compute mode is prohibited"])
attempt("failing", "failing,default", "gpu1", ["gpu1 is used", "gpu0: ", "CUDA_ERROR_ECC_UNCORRECTABLE"])
attempt("no memory for a context", "full,default", "gpu1", ["gpu1 is used", "gpu0: ", "out of memory"])
attempt("nearly all memory taken", "default,default", "gpu1", ["gpu1 is used", "gpu0: ", "others have all but"], {"TESTGPU_TAKEN": "1000M"})
for function in ("cuDeviceTotalMem", "cuMemGetInfo", "cuCtxPushCurrent"):
    attempt(f"{function} fails", "default,default", "gpu1", ["gpu1 is used", f"gpu0: {function}: CUDA_ERROR_UNKNOWN"], {"TESTGPU_FAIL": f"{function}:1=CUDA_ERROR_UNKNOWN"})
    attempt(f"{function} fails, of one device", "default", "cpu", ["no GPU is used", f"gpu0: {function}: CUDA_ERROR_UNKNOWN"],
            {"TESTGPU_FAIL": f"{function}:1+=CUDA_ERROR_UNKNOWN"})
attempt("several", "taken,prohibited,failing,default", "gpu3", ["gpu3 is used", "gpu0", "gpu1", "gpu2"])
attempt("nearly all memory of both taken", "default,default", "gpu0", ["gpu0 is used", "gpu0: ", "gpu1: "], {"TESTGPU_TAKEN": "1000M,1000M"})
attempt("all", "taken,prohibited,failing", "cpu", ["no GPU is used", "gpu0: ", "gpu1: ", "gpu2: ", "CUDA_ERROR_DEVICE_UNAVAILABLE", "prohibited", "ECC"])
attempt("the only one", "taken", "cpu", ["no GPU is used", "CUDA_ERROR_DEVICE_UNAVAILABLE"])
attempt("no memory for a context of both", "full,full", "cpu", ["no GPU is used", "gpu0: ", "gpu1: ", "out of memory"])
attempt("in the order of the list", "default,default,taken", "gpu1", ["gpu1 is used", "gpu2: "], {"ACCEL_DEVICES": "2,1,0"})
attempt("one of the list alone", "default,taken", "cpu", ["no GPU is used", "gpu1: "], {"ACCEL_DEVICES": "1"})
attempt("one that is not there", "default,default", "gpu1", ["gpu1 is used", "gpu7: there is no device 7"], {"ACCEL_DEVICES": "7,1"})

# ACCEL_REQUIRE=gpu is about a GPU, not about the first.
env = {**QUICK, "ACCEL_REQUIRE": "gpu", "TESTGPU_DEVICES": "2"}
done = start("steps", "dgemm:100:1", env={**env, "TESTGPU_MODES": "taken,default"})
tap.ok(done.returncode == 0 and not said(done), "ACCEL_REQUIRE=gpu: the next one will do", done.stderr)
done = start("steps", "dgemm:100:1", env={**env, "TESTGPU_MODES": "taken,prohibited"})
tap.ok(done.returncode == 1 and "ACCEL_REQUIRE=gpu" in said(done)[-1] and "CUDA_ERROR_DEVICE_UNAVAILABLE" in said(done)[-1],
       "ACCEL_REQUIRE=gpu: where none is left, the message says why", done.stderr)


# Ranks begin at one device after the other, of those that each finds usable.
def devices_of_ranks(size, modes):
    found = []
    for rank in range(size):
        done = start("steps", "dgemm:100:1", env={
            **QUICK, **LOG, "TESTGPU_DEVICES": str(modes.count(",") + 1), "TESTGPU_MODES": modes, "OMPI_COMM_WORLD_RANK": str(rank),
            "OMPI_COMM_WORLD_SIZE": str(size), "OMPI_COMM_WORLD_LOCAL_RANK": str(rank), "OMPI_COMM_WORLD_LOCAL_SIZE": str(size)})
        found += [(f["ran"], f["est_gpu_ms"]) for f in lines_for(done)]
    return [ran for ran, _ in found], {ms for _, ms in found}


where, estimates = devices_of_ranks(4, "default,prohibited,default")
tap.ok(where == ["gpu0", "gpu2", "gpu0", "gpu2"] and len(estimates) == 1, "four ranks, one of three devices prohibited", where, estimates)
where, _ = devices_of_ranks(3, "default,failing,default")
tap.ok(where == ["gpu0", "gpu2", "gpu2"], "three ranks, one of three devices failing", where)
tap.done()
