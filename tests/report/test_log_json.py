#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""The log in JSON: every line is as docs/log.schema.json says, whatever was called and wherever it ran; and what its
fields say."""

import json
import re
import shlex
import socket
import subprocess
import time
from collections import namedtuple
from pathlib import Path

import pytest

from lib.log import parse_json, said
from lib.programs import DEBIAN_PYTHON, NO_GPU, REFERENCE, ROOT, TESTS, TEST_GPU, start

JSON = {"ACCEL_LOG": "json", "TESTGPU_DELAY_US": "0"}
ON_CPU = {**NO_GPU, **REFERENCE}
SVM = "from sklearn import svm, datasets; X, y = datasets.make_classification(300, 8, random_state=1); " \
      "svm.SVC().fit(X, y).predict(X)"
PROGRAMS = {
    "products in row-major order": ["random_calls", "-i", "cblas-row", "-c", 2, "-n", 30],
    "batches": ["random_calls", "-i", "cblas-column", "-c", 2, "-n", 20, "-l", TESTS / "liblacking.so", "-f", "y", "-r",
                "?gemm_batch*"],
    "LAPACK": ["random_lapack", "-c", 1, "-n", 20],
    "LAPACKE": ["lapacke", "liblapacke.so.3", "LAPACKE_", ""],
    "bad arguments": ["bad_arguments"],
    "scikit-learn": [DEBIAN_PYTHON, "-c", SVM],
    "GSL": ["gsl_calls"],
}
PRODUCTS = """
import numpy as np, scipy.linalg.blas as blas, scipy.linalg.lapack as lapack
a, c = np.asfortranarray(np.eye(64)), np.asfortranarray(np.ones((64, 64)))
for alpha, beta in (1, 0), (0, 1), (2, -1):
    blas.dgemm(alpha, a, a, beta, c)
lapack.dgetrf(np.zeros((5, 5))), lapack.dpotrf(-np.eye(7))
"""


@pytest.fixture(autouse=True, scope="module")
def schema():
    pytest.importorskip("jsonschema", reason="python3-jsonschema is not installed (scripts/install-deps test)")


def log_of(folder, name, *arguments, **env):
    """A program's log as objects, which are right by the schema, and the process."""
    path = folder / "log"
    done = start(name, *arguments, env={**JSON, **env, "ACCEL_LOG_FILE": str(path)})
    return parse_json(path.read_text()), done


def of_event(objects, name):
    return [o for o in objects if o.get("event") == name]


@pytest.mark.parametrize("env", [NO_GPU, TEST_GPU], ids=["no GPU", "test GPU"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_line_is_right_by_the_schema(tmp_path, name, env):
    objects, _ = log_of(tmp_path, *PROGRAMS[name], **env, ACCEL_SUMMARY="1")
    assert [o for o in objects if "event" not in o]
    assert of_event(objects, "summary") == objects[-1:], "the last one is the summary"


def test_the_command_of_docs_log_md_lists_the_program_s_own_calls():
    command, = re.findall(r"`(jq .+) log` lists", (ROOT / "docs/log.md").read_text())
    done = start("nested", "nothing", env={**JSON, **ON_CPU})
    own = [o for o in parse_json(done.stderr) if "event" not in o and o["depth"] == 0]
    listed = subprocess.run(shlex.split(command), input=done.stderr, stdout=subprocess.PIPE, text=True)
    assert len(own) == 3
    assert [tuple(line.split()[:2]) for line in listed.stdout.splitlines()] == [(o["sym"], o["ran"]) for o in own]


# ---- A wrong line is found ----


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """The log of calls inside calls, on the CPU."""
    return log_of(tmp_path_factory.mktemp("good"), "nested", "nothing", **ON_CPU)[0]


@pytest.fixture(scope="module")
def call(good):
    """One of its lines."""
    return next(o for o in good if o.get("sym") == "dgetrf_")


@pytest.mark.parametrize("change", [{"more": 1}, {"v": 2}, {"why": "lazy"}, {"event": "party"}],
                         ids=["an unknown field", "another version", "an unknown reason", "an unknown event"])
def test_a_wrong_line_is_against_the_schema(call, change):
    with pytest.raises(ValueError):
        parse_json(json.dumps({**call, **change}))


def test_a_missing_field_is_against_the_schema(call):
    with pytest.raises(ValueError):
        parse_json(json.dumps({k: v for k, v in call.items() if k != "ran"}))


@pytest.mark.parametrize("line", [pytest.param("echo '{}' >&2", id="on stderr"),
                                  pytest.param("echo '{}' >\"$ACCEL_LOG_FILE\"", id="in the log's file")])
@pytest.mark.parametrize("what", ["a number", "an operand's", "a size"])
def test_start_looks_at_what_each_run_logs(call, tmp_path, line, what):
    """Whatever a test looks at."""
    def run(o):
        start("/bin/sh", "-c", line.format(json.dumps(o)), env={"ACCEL_LOG": "json",
                                                                "ACCEL_LOG_FILE": f"{tmp_path}/log"})

    wrong, right = {"a number": ({"up_mb": -1}, {}),
                    "an operand's": ({"operands": [{**call["operands"][0], "align": 3}]}, {}),
                    "a size": ({"m": 2.5}, {"m": 25})}[what]
    with pytest.raises(ValueError):
        run({**call, **wrong})
    run({**call, **right})


# ---- What the fields say ----


def test_time_host_rank(call):
    assert abs(call["time"] - time.time()) < 3600
    assert call["host"] == socket.gethostname()
    assert call["rank"] == 0


def test_operands_and_info(call):
    assert call["operands"][0] == {**call["operands"][0], "name": "a", "ld": 200, "place": "host"}
    assert call["info"] == 0


def test_calls_of_all_depths(good):
    assert {o["depth"] for o in good if "depth" in o} == {0, 1}


def test_in_the_order_of_time(good):
    times = [o["time"] for o in good]
    assert times == sorted(times)


Products = namedtuple("Products", "objects calls")


@pytest.fixture(scope="module")
def products(tmp_path_factory):
    """The log of products on the test GPU of a rank, and the lines of these."""
    objects, _ = log_of(tmp_path_factory.mktemp("products"), DEBIAN_PYTHON, "-c", PRODUCTS, **TEST_GPU,
                        OMPI_COMM_WORLD_RANK="3",
                        OMPI_COMM_WORLD_SIZE="4", TESTGPU_ATTRIBUTES="133=0")
    return Products(objects, [o for o in objects if o.get("sym") == "dgemm_"])


def test_alpha_and_beta(products):
    assert [(o["alpha"], o["beta"]) for o in products.calls] == [("1", "0"), ("0", "1"), ("other", "other")]


def test_the_rank(products):
    assert {o["rank"] for o in products.objects} == {3}


def test_the_gpu_that_ran_them(products):
    assert {o["gpu"] for o in products.calls if o["ran"] == "gpu0"} == {"Test GPU"}
    assert not [o for o in products.calls if ("gpu" in o) != (o["ran"] != "cpu")]


def test_info_of_singular_matrices(tmp_path):
    objects, _ = log_of(tmp_path, DEBIAN_PYTHON, "-c", PRODUCTS, **NO_GPU)
    assert [o.get("info") for o in objects if o.get("sym") in ("dgetrf_", "dpotrf_")] == [1, 1]


# ---- The machine ----


def test_a_line_before_the_first_decision_names_the_version_the_cpu_library_and_its_threads(products):
    first = next(i for i, o in enumerate(products.objects) if "event" not in o)
    (begin,) = of_event(products.objects, "start")
    assert products.objects.index(begin) < first
    assert begin["version"] == Path(ROOT, "VERSION").read_text().strip()
    assert begin["cpu_threads"] == 2
    assert "blas" in begin["cpu_library"]
    assert "rounding" in begin["note"]


def test_one_for_the_gpu_with_the_ranks_that_share_it(products):
    (gpu,) = of_event(products.objects, "gpu")
    assert gpu["gpu"] == "Test GPU"
    assert gpu["cublas"] >= 110000
    assert gpu["cuda"] >= 11000
    assert (gpu["sharers"], gpu["mps"]) == (4, 0)


def test_and_whether_mps_serves_it(tmp_path):
    (tmp_path / "control").touch()
    served, _ = log_of(tmp_path, "steps", "dgemm:64:1", **TEST_GPU, CUDA_MPS_PIPE_DIRECTORY=str(tmp_path))
    assert [o["mps"] for o in of_event(served, "gpu")] == [1]


def test_none_without_one(good):
    assert not of_event(good, "gpu")
    assert len(of_event(good, "start")) == 1


# ---- Messages ----


def texts(objects):
    return [o["text"] for o in of_event(objects, "message")]


def test_messages_among_the_lines_are_json():
    done = start("nested", "nothing", env={**ON_CPU, **JSON, "ACCEL_POLICY": "fast"})
    assert [text for text in texts(parse_json(done.stderr)) if "ACCEL_POLICY=fast is not understood" in text]


def test_with_a_file_they_are_in_it_and_on_stderr(tmp_path):
    objects, done = log_of(tmp_path, "nested", "nothing", **ON_CPU, ACCEL_POLICY="fast")
    assert said(done)
    assert texts(objects) == [line.removeprefix("accel: ") for line in said(done)]


def test_a_file_that_cannot_be_opened():
    done = start("nested", "nothing", env={**ON_CPU, **JSON, "ACCEL_LOG_FILE": "/nowhere/log"})
    told = texts(parse_json(done.stderr))
    assert sum("ACCEL_LOG_FILE: /nowhere/log cannot be opened" in text for text in told) == 1


def test_a_file_that_cannot_be_written():
    done = start("nested", "nothing", env={**ON_CPU, **JSON, "ACCEL_LOG_FILE": "/dev/full"})
    assert done.returncode == 0
    assert "ACCEL_LOG_FILE: /dev/full cannot be written" in done.stderr
