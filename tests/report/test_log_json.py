#!/usr/bin/python3 -B
"""The log in JSON: every line is as docs/log.schema.json says, whatever was called and wherever it ran; and what its fields say."""

import json
import re
import shlex
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from lib.log import parse_json, said
from lib.programs import DEBIAN_PYTHON, NO_GPU, REFERENCE, ROOT, TESTS, TEST_GPU, start
from lib.tap import Tap

tap = Tap()
try:
    import jsonschema  # noqa: F401
except ImportError:
    tap.skip("the schema of the log", "python3-jsonschema is not installed (scripts/install-deps test)")
    tap.done()
    raise SystemExit(0)

JSON = {"ACCEL_LOG": "json", "TESTGPU_DELAY_US": "0"}


def log_of(name, *arguments, **env):
    """A program's log as objects, which are right by the schema; none, and why, if one is not."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log")
        done = start(name, *arguments, env={**JSON, **env, "ACCEL_LOG_FILE": str(path)})
        try:
            return parse_json(path.read_text()), done
        except (ValueError, OSError) as error:
            return [], error


# ---- Every line is right by the schema ----

SVM = "from sklearn import svm, datasets; X, y = datasets.make_classification(300, 8, random_state=1); svm.SVC().fit(X, y).predict(X)"
PROGRAMS = {
    "products in row-major order": ["random_calls", "-i", "cblas-row", "-c", 2, "-n", 30],
    "batches": ["random_calls", "-i", "cblas-column", "-c", 2, "-n", 20, "-l", TESTS / "liblacking.so", "-f", "y", "-r", "?gemm_batch*"],
    "LAPACK": ["random_lapack", "-c", 1, "-n", 20],
    "LAPACKE": ["lapacke", "liblapacke.so.3", "LAPACKE_", ""],
    "bad arguments": ["bad_arguments"],
    "scikit-learn": [DEBIAN_PYTHON, "-c", SVM],
    "GSL": ["gsl_calls"],
}
for name, program in PROGRAMS.items():
    for kind, env in {"no GPU": NO_GPU, "test GPU": TEST_GPU}.items():
        objects, done = log_of(*program, **env, ACCEL_SUMMARY="1")
        tap.ok(objects and any("event" not in o for o in objects), f"{name}, {kind}: each line is right by the schema", done)
        tap.ok(objects and [o for o in objects if o.get("event") == "summary"] == objects[-1:], f"{name}, {kind}: the last one is the summary")

# ---- The command of docs/log.md lists the program's own calls ----

command, = re.findall(r"`(jq .+) log` lists", (ROOT / "docs/log.md").read_text())
done = start("nested", "nothing", env={**JSON, **NO_GPU, **REFERENCE})
own = [o for o in parse_json(done.stderr) if "event" not in o and o["depth"] == 0]
listed = subprocess.run(shlex.split(command), input=done.stderr, stdout=subprocess.PIPE, text=True)
found = [line.split() for line in listed.stdout.splitlines()]
tap.ok(len(own) == 3 and [(sym, ran) for sym, ran, _ in found] == [(o["sym"], o["ran"]) for o in own], "jq reads the log", command, listed.stdout, done.stderr)

# ---- A wrong line is found ----

good, done = log_of("nested", "nothing", **NO_GPU, **REFERENCE)
call = next(o for o in good if o.get("sym") == "dgetrf_")
for name, wrong in {"an unknown field": {**call, "more": 1}, "another version": {**call, "v": 2}, "an unknown reason": {**call, "why": "lazy"},
                    "a missing field": {k: v for k, v in call.items() if k != "ran"}, "an unknown event": {**call, "event": "party"}}.items():
    try:
        parse_json(json.dumps(wrong))
        tap.ok(False, f"{name} is against the schema")
    except ValueError:
        tap.ok(True, f"{name} is against the schema")
# Whatever a test looks at: `start` checks what a program logs.
for where, line in ("on stderr", "echo '{}' >&2"), ("in the log's file", "echo '{}' >\"$ACCEL_LOG_FILE\""):
    for wrong, right in ({**call, "up_mb": -1}, call), ({**call, "operands": [{**call["operands"][0], "align": 3}]}, call), ({**call, "m": 2.5}, {**call, "m": 25}):
        with tempfile.TemporaryDirectory() as folder:
            found = []
            for o in wrong, right:
                try:
                    start("/bin/sh", "-c", line.format(json.dumps(o)), env={"ACCEL_LOG": "json", "ACCEL_LOG_FILE": f"{folder}/log"})
                    found.append(None)
                except ValueError as error:
                    found.append(error)
            tap.ok(found[0] and not found[1], f"each run is looked at: {where}", *found)

# ---- What the fields say ----

tap.ok(abs(call["time"] - time.time()) < 3600 and call["host"] == socket.gethostname() and call["rank"] == 0, "time, host, rank", call)
tap.ok(call["operands"][0] == {**call["operands"][0], "name": "a", "ld": 200, "place": "host"} and call["info"] == 0, "operands and INFO", call)
tap.ok({o["depth"] for o in good if "depth" in o} == {0, 1}, "calls of all depths", *good[:3])
times = [o["time"] for o in good]
tap.ok(times == sorted(times), "in the order of time", *times)
PRODUCTS = """
import numpy as np, scipy.linalg.blas as blas, scipy.linalg.lapack as lapack
a, c = np.asfortranarray(np.eye(64)), np.asfortranarray(np.ones((64, 64)))
for alpha, beta in (1, 0), (0, 1), (2, -1):
    blas.dgemm(alpha, a, a, beta, c)
lapack.dgetrf(np.zeros((5, 5))), lapack.dpotrf(-np.eye(7))
"""
objects, done = log_of(DEBIAN_PYTHON, "-c", PRODUCTS, **TEST_GPU, OMPI_COMM_WORLD_RANK="3", OMPI_COMM_WORLD_SIZE="4", TESTGPU_ATTRIBUTES="133=0")
products = [o for o in objects if o.get("sym") == "dgemm_"]
tap.ok([(o["alpha"], o["beta"]) for o in products] == [("1", "0"), ("0", "1"), ("other", "other")], "alpha and beta", done, *products)
tap.ok({o["rank"] for o in objects} == {3}, "the rank")
tap.ok(products and {o["gpu"] for o in products if o["ran"] == "gpu0"} == {"Test GPU"} and all(("gpu" in o) == (o["ran"] != "cpu") for o in products),
       "the GPU that ran them", *products)
singular = [o for o in log_of(DEBIAN_PYTHON, "-c", PRODUCTS, **NO_GPU)[0] if o.get("sym") in ("dgetrf_", "dpotrf_")]
tap.ok([o.get("info") for o in singular] == [1, 1], "INFO of singular matrices", *singular)

# ---- The machine ----

starts, gpus = ([o for o in objects if o.get("event") == event] for event in ("start", "gpu"))
first = next(i for i, o in enumerate(objects) if "event" not in o)
tap.ok(len(starts) == 1 and objects.index(starts[0]) < first, "a line before the first decision", *objects[:3])
tap.ok(starts and starts[0]["version"] == Path(ROOT, "VERSION").read_text().strip() and starts[0]["cpu_threads"] == 2 and "blas" in starts[0]["cpu_library"]
       and "rounding" in starts[0]["note"], "which names the version, the CPU library and its threads", *starts)
tap.ok([o["gpu"] for o in gpus] == ["Test GPU"] and gpus[0]["cublas"] >= 110000 and gpus[0]["cuda"] >= 11000, "one for the GPU", *gpus)
tap.ok([(o["sharers"], o["mps"]) for o in gpus] == [(4, 0)], "with the ranks that share it", *gpus)
with tempfile.TemporaryDirectory(prefix="accel-mps-") as folder:
    Path(folder, "control").touch()
    served = log_of("steps", "dgemm:64:1", **TEST_GPU, CUDA_MPS_PIPE_DIRECTORY=folder)[0]
tap.ok([o["mps"] for o in served if o.get("event") == "gpu"] == [1], "and whether MPS serves it", *served[:3])
tap.ok(not [o for o in good if o.get("event") == "gpu"] and len([o for o in good if o.get("event") == "start"]) == 1, "none without one", *good[:2])

# ---- Messages ----

done = start("nested", "nothing", env={**NO_GPU, **REFERENCE, **JSON, "ACCEL_POLICY": "fast"})
objects = parse_json(done.stderr)
told = [o["text"] for o in objects if o.get("event") == "message"]
tap.ok(any("ACCEL_POLICY=fast is not understood" in text for text in told), "messages among the lines are JSON", *told)
objects, done = log_of("nested", "nothing", **NO_GPU, **REFERENCE, ACCEL_POLICY="fast")
tap.ok([o["text"] for o in objects if o.get("event") == "message"] == [line[len("accel: "):] for line in said(done)] and said(done),
       "with a file, they are in it and on stderr", done.stderr, *objects[:3])
done = start("nested", "nothing", env={**NO_GPU, **REFERENCE, **JSON, "ACCEL_LOG_FILE": "/nowhere/log"})
told = [o["text"] for o in parse_json(done.stderr) if o.get("event") == "message"]
tap.ok(sum("ACCEL_LOG_FILE: /nowhere/log cannot be opened" in text for text in told) == 1, "also if the file cannot be opened", done.stderr[:500])
done = start("nested", "nothing", env={**NO_GPU, **REFERENCE, **JSON, "ACCEL_LOG_FILE": "/dev/full"})
tap.ok(done.returncode == 0 and "ACCEL_LOG_FILE: /dev/full cannot be written" in done.stderr, "or written", done.stderr[:500])
tap.done()
