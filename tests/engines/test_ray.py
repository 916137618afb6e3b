#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Ray of PyPI (docs/spark-dask-ray.md): workers get libaccel by runtime_env, or from the program that starts Ray; tasks and
actors compute on the GPUs, and are known by their programs' names."""

import json

import pytest

from lib.engines import ACCEL, GPU, LIBRARY, PYTHON, Logs, needs, run

pytestmark = needs("ray")
JOBS = """
import json, os, sys
import ray

def product():
    import numpy as n
    a = n.arange(90000.).reshape(300, 300) % 7
    return {"pid": os.getpid(), "sum": float((a @ a).sum()), "visible": os.environ.get("CUDA_VISIBLE_DEVICES", "all"),
            "title": open("/proc/self/cmdline").read(), "preload": os.environ.get("LD_PRELOAD", "")}

def preloads(name):
    # Of the session's processes of this program: whether libaccel is in them, and Ray's allocator.
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.path.basename(os.readlink(f"/proc/{pid}/exe")) == name and session in open(f"/proc/{pid}/cmdline").read():
                maps = open(f"/proc/{pid}/maps").read()
                found.add(("libaccel.so" in maps, "libjemalloc" in maps))
        except OSError:
            pass
    return sorted(found)

env = {k: v for k, v in os.environ.items() if k.startswith(("ACCEL_", "TESTGPU_"))}
env.update({"LD_PRELOAD": sys.argv[1]} if len(sys.argv) > 1 else {})
def begin():
    # Ray gives its processes 30 seconds, which a busy machine may not have.
    for _ in range(4):
        try:
            return ray.init(num_cpus=2, num_gpus=2, include_dashboard=False, runtime_env={"env_vars": env}, logging_level="ERROR",
                            log_to_driver=False, _temp_dir=os.environ["RAY_TEMP"])
        except Exception as error:
            if "timed out during startup" not in str(error):
                raise
            ray.shutdown()
    print("null")
    sys.exit()

started = begin()
session = os.path.basename(started["session_dir"])
task = ray.remote(product)

@ray.remote
class Actor:
    def product(self):
        return product()

actors = [Actor.remote() for _ in range(2)]
seen = {"tasks": ray.get([task.remote() for _ in range(2)]), "shares": ray.get([task.options(num_gpus=0.5).remote()]),
        "actors": ray.get([actor.product.remote() for actor in actors]), "raylet": preloads("raylet")}
print(json.dumps(seen))
ray.shutdown()
"""


@pytest.fixture
def jobs(tmp_path, tmp_path_factory):
    """What tasks and actors have seen, and the logs."""

    def jobs(start=(), *arguments):
        (tmp_path / "jobs.py").write_text(JOBS)
        # Names of its sockets have at most 107 bytes.
        temp = tmp_path_factory.mktemp("r")
        done = run(tmp_path, [*start, PYTHON, "jobs.py", *arguments], {
            **GPU, "TESTGPU_DEVICES": "2", "ACCEL_LOG_FILE": f"{tmp_path}/log.%p", "RAY_TEMP": str(temp),
            "RAY_USAGE_STATS_ENABLED": "0"})
        seen, logs = json.loads(done.stdout), Logs(tmp_path)
        if not seen:
            pytest.skip("Ray does not start within its 30 seconds")
        for call in seen["tasks"] + seen["shares"] + seen["actors"]:
            assert call["sum"] == 242994290.0
            assert call["pid"] in logs.gpus
            # Its workers write titles over their arguments.
            assert call["title"].startswith("ray::")
            assert logs.programs[call["pid"]].startswith("python")
        return seen, logs

    return jobs


def test_by_runtime_env(jobs):
    seen, logs = jobs((), LIBRARY)
    # Tasks that ask for no GPU see all.
    assert {call["visible"] for call in seen["tasks"] + seen["actors"]} == {"all"}
    assert {call["visible"] for call in seen["shares"]} <= {"0", "1"}
    assert {logs.gpus[call["pid"]][1] for call in seen["shares"]} == {"only"}
    free = [logs.gpus[call["pid"]] for call in seen["tasks"] + seen["actors"]]
    assert {why for _, why in free} == {"fewest"}
    assert {index for index, _ in free} == {"0", "1"}
    # Its own processes have its allocator, and the workers libaccel alone.
    assert seen["raylet"] == [[False, True]]
    assert {call["preload"] for call in seen["tasks"]} == {LIBRARY}


def test_by_accel_run_all_have_libaccel_and_none_rays_allocator(jobs):
    seen, _ = jobs((ACCEL, "run", "--"))
    assert seen["raylet"] == [[True, False]]
    assert all("libaccel.so" in call["preload"] and "jemalloc" not in call["preload"] for call in seen["tasks"])
