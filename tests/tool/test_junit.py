#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""accel diff --junit: each report keeps to the schema and has a case for each run, output and expectation. And
action.yml, GitHub's action of this repository: its steps run, and write the report."""

import os
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest
import yaml

from lib.programs import BUILD, DEBIAN_PYTHON, ROOT, clean_env

SCHEMA = ROOT / "tests/tool/junit.xsd"
RUNS = ["the run without libaccel", "the run with another number of threads", "the run with libaccel"]
GPU = {"ACCEL_CUDA_DIR": str(BUILD / "testgpu"), "ACCEL_POLICY": "gpu", "TESTGPU_DELAY_US": "0"}
# Sets r to the number of the run.
WITH = 'case "$LD_PRELOAD" in *libaccel.so*) r=3 ;; *) r=$((3 - OPENBLAS_NUM_THREADS)) ;; esac; '
# What XML does not allow, beside what it does.
ODD = r"[ $r = 1 ] && x=a || x=b; " \
      r"printf '1 %s<é&\342\202\254|\355\240\200|\377\033\001|\357\277\277|\371\200\200\200|\042%s>\n' $x $x"


def report_of(path):
    """The cases of a report that keeps to the schema and counts right: name -> (outcome, message, details)."""
    checked = subprocess.run(["xmllint", "--noout", "--schema", SCHEMA, path], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True)
    assert checked.returncode == 0, checked.stdout
    suite = ElementTree.parse(path).getroot()
    cases = {}
    for case in suite.iter("testcase"):
        fault = next(iter(case), None)
        cases[case.get("name")] = ("passed", "", "") if fault is None else (fault.tag, fault.get("message"), fault.text
                                                                            or "")
    assert int(suite.get("tests")) == len(cases)
    for kind in ("failure", "error"):
        assert int(suite.get(kind + "s")) == sum(outcome == kind for outcome, _, _ in cases.values())
    return cases


def diff(*words, **options):
    return subprocess.run([BUILD / "accel", "diff", "--junit", *words], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, errors="replace", **options)


def case(name, script, options, status, faults, passed=()):
    """faults: name of a case -> (outcome, what its message has, what its details have); passed: some of the others."""
    return pytest.param(script, options, status, faults, passed, id=name)


@pytest.mark.parametrize("script, options, status, faults, passed", [
    case("all is the same", "echo 1.5; echo 2 >a.csv", ["--output", "a.csv", "--expect", "* on gpu == 0"], 0, {},
         [*RUNS, "stdout", "a.csv", "* on gpu == 0"]),
    case("a number differs: a failure, with the largest difference and the report",
         WITH + "[ $r = 3 ] && echo x 1.5 2 || echo x 1.6 2", [], 1,
         {"stdout": ("failure", "1 of 2 numbers differ by more than allowed, 0 places in text or structure; "
                     "largest difference: absolute 0.1, relative 0.0625", "1.6, with libaccel 1.5")}, RUNS),
    case("text differs: what XML does not allow is replaced, the rest is as it was", WITH + ODD, [], 2,
         {"stdout": ("error", "not repeatable", r'"1 a<é&€|???|?\x1b\x01|???|????|\"a>\n", with other')}),
    case("text differs between libaccel and none", WITH + r"[ $r = 3 ] && printf '1 <b\377\001>\n' || printf '1 <a>\n'",
         [], 1,
         {"stdout": ("failure", "1 places in text", '"1 <a>')}),
    case("a file is not written with libaccel", WITH + "echo 1; [ $r = 3 ] || echo 1 >a.txt", ["--output", "a.txt"], 1,
         {"a.txt": ("failure", "not written", "")}, ["stdout"]),
    case("a file is not written without it", "echo 1", ["--output", "a.txt"], 2,
         {"a.txt": ("error", "not written", RUNS[0])}),
    case("a damaged file", "echo 1; echo { >a.json", ["--output", "a.json"], 2,
         {"a.json": ("error", "cannot be read", "")}, ["stdout"]),
    case("the program fails with libaccel", WITH + "echo 1; [ $r != 3 ]", [], 1,
         {RUNS[2]: ("failure", "exit status 1", "")}, RUNS[:2]),
    case("the program fails without it", "exit 3", [], 2, {RUNS[0]: ("error", "exit status 3", "")}),
    case("no number", "echo a", [], 2, {"the comparison": ("error", "nothing can be said", "stderr")},
         [*RUNS, "stdout"]),
    case("an expectation is not met", "echo 1", ["--expect", "*gemm* on gpu >= 1"], 1,
         {"*gemm* on gpu >= 1": ("failure", "there were 0", "")}, ["stdout"])])
def test_report(tmp_path, script, options, status, faults, passed):
    done = diff("report.xml", *options, "--", "bash", "-c", script, cwd=tmp_path, env=clean_env(str(tmp_path)))
    cases = report_of(tmp_path / "report.xml")
    assert done.returncode == status, done.stderr
    found = {name: fault for name, fault in cases.items() if fault[0] != "passed"}
    assert found.keys() == faults.keys()
    for name, (outcome, message, details) in faults.items():
        assert found[name][0] == outcome
        assert message in found[name][1]
        assert details in found[name][2]
    assert cases.keys() - found.keys() >= {*passed}


def test_a_report_that_cannot_be_written_nothing_runs(tmp_path):
    done = diff(f"{tmp_path}/no/report.xml", "--", "touch", f"{tmp_path}/ran")
    assert done.returncode == 2
    assert "report.xml: No such file" in done.stderr
    assert not (tmp_path / "ran").exists()


def test_a_full_disk():
    done = diff("/dev/full", "--", "echo", "1")
    assert done.returncode == 2
    assert "--junit /dev/full: No space left" in done.stderr


# ---- action.yml, as GitHub runs it: a step's inputs come in its env ----


@pytest.fixture
def action():
    return yaml.safe_load((ROOT / "action.yml").read_text())


def test_action_is_composite(action):
    assert action["runs"]["using"] == "composite"
    for step in action["runs"]["steps"]:
        assert step["shell"] == "bash"
        assert step["run"]
    assert action["inputs"]["program"]["required"]


def test_action_writes_its_report(action, tmp_path):
    """A later step has what an earlier one has put on the PATH. MAKEFLAGS: make says what it would do."""
    path = tmp_path / "path"
    runner = clean_env(str(tmp_path)) | GPU | {"GITHUB_ACTION_PATH": str(ROOT), "GITHUB_PATH": str(path),
                                               "BUILD": str(BUILD), "MAKEFLAGS": "-n"}
    for name in ("MAKELEVEL", "MFLAGS"):
        runner.pop(name, None)
    defaults = {name: row.get("default") for name, row in action["inputs"].items()}
    values = {name: "" if value is None else str(value) for name, value in defaults.items()}
    values |= {"program": f"{DEBIAN_PYTHON} {ROOT}/tests/docs/programs/my_program.py",
               "options": "--output result.npy --expect 'cblas_d* on gpu >= 1'"}
    for step in action["runs"]["steps"]:
        given = {name: values[text.replace("${{ inputs.", "").replace(" }}", "")] for name,
                 text in step.get("env", {}).items()}
        runner["PATH"] = ":".join([*(path.read_text().split("\n")[:-1] if path.exists() else []), os.environ["PATH"]])
        done = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]], cwd=tmp_path,
                              env=runner | given,
                              stdin=subprocess.DEVNULL, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, f"{step['name']}: {done.stdout[-2000:]}"
    cases = report_of(tmp_path / values["junit"])
    assert {"stdout", "result.npy", "cblas_d* on gpu >= 1"} <= cases.keys()
    assert {outcome for outcome, _, _ in cases.values()} == {"passed"}
