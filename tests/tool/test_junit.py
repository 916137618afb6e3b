#!/usr/bin/python3 -B
"""accel diff --junit: each report keeps to the schema and has a case for each run, output and expectation. And action.yml, GitHub's action of this repository: its
steps run, and write the report."""

import os
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import yaml

from lib.programs import BUILD, DEBIAN_PYTHON, ROOT, clean_env
from lib.tap import Tap

SCHEMA = ROOT / "tests/tool/junit.xsd"
RUNS = ["the run without libaccel", "the run with another number of threads", "the run with libaccel"]
GPU = {"ACCEL_CUDA_DIR": str(BUILD / "testgpu"), "ACCEL_POLICY": "gpu", "TESTGPU_DELAY_US": "0"}
tap = Tap()


def report_of(path):
    """The cases: name -> (outcome, message, details); and why the report does not keep to the schema."""
    checked = subprocess.run(["xmllint", "--noout", "--schema", SCHEMA, path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    suite = ElementTree.parse(path).getroot() if checked.returncode == 0 else ElementTree.Element("testsuite")
    cases = {}
    for case in suite.iter("testcase"):
        fault = next(iter(case), None)
        cases[case.get("name")] = ("passed", "", "") if fault is None else (fault.tag, fault.get("message"), fault.text or "")
    for kind in ("failure", "error"):
        if checked.returncode == 0 and int(suite.get(kind + "s")) != sum(outcome == kind for outcome, _, _ in cases.values()):
            return cases, f"{kind}s are counted wrong"
    return cases, "" if checked.returncode == 0 and int(suite.get("tests")) == len(cases) else checked.stdout


def check(name, script, options, status, faults, passed=(), env={}):
    """faults: name of a case -> (outcome, what its message has, what its details have)."""
    with tempfile.TemporaryDirectory(prefix="accel-junit-") as folder:
        done = subprocess.run([BUILD / "accel", "diff", "--junit", "report.xml", *options, "--", "bash", "-c", script], cwd=folder, env=clean_env(folder) | env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        cases, wrong = report_of(Path(folder, "report.xml"))
    good = {case for case, (outcome, _, _) in cases.items() if outcome == "passed"}
    found = {case: fault for case, fault in cases.items() if fault[0] != "passed"}
    as_wanted = found.keys() == faults.keys() and all(found[case][0] == want[0] and want[1] in found[case][1] and want[2] in found[case][2] for case, want in faults.items())
    tap.ok(done.returncode == status and not wrong and as_wanted and good >= {*passed}, name, f"status {done.returncode}", wrong, cases, done.stdout.decode(errors="replace"),
           done.stderr.decode(errors="replace"))


WITH = 'case "$LD_PRELOAD" in *libaccel.so*) r=3 ;; *) r=$((3 - OPENBLAS_NUM_THREADS)) ;; esac; '
check("all is the same", "echo 1.5; echo 2 >a.csv", ["--output", "a.csv", "--expect", "* on gpu == 0"], 0, {}, [*RUNS, "stdout", "a.csv", "* on gpu == 0"])
check("a number differs: a failure, with the largest difference and the report", WITH + "[ $r = 3 ] && echo x 1.5 2 || echo x 1.6 2", [], 1,
      {"stdout": ("failure", "1 of 2 numbers differ by more than allowed, 0 places in text or structure; largest difference: absolute 0.1, relative 0.0625", "1.6, with libaccel 1.5")}, RUNS)
check("text differs: what XML does not allow is replaced, the rest is as it was",
      WITH + r"[ $r = 1 ] && x=a || x=b; printf '1 %s<é&\342\202\254|\355\240\200|\377\033\001|\357\277\277|\371\200\200\200|\042%s>\n' $x $x", [], 2,
      {"stdout": ("error", "not repeatable", r'"1 a<é&€|???|?\x1b\x01|???|????|\"a>\n", with other')})
check("text differs between libaccel and none", WITH + r"[ $r = 3 ] && printf '1 <b\377\001>\n' || printf '1 <a>\n'", [], 1, {"stdout": ("failure", "1 places in text", '"1 <a>')})
check("a file is not written with libaccel", WITH + "echo 1; [ $r = 3 ] || echo 1 >a.txt", ["--output", "a.txt"], 1, {"a.txt": ("failure", "not written", "")}, ["stdout"])
check("a file is not written without it", "echo 1", ["--output", "a.txt"], 2, {"a.txt": ("error", "not written", RUNS[0])})
check("a damaged file", "echo 1; echo { >a.json", ["--output", "a.json"], 2, {"a.json": ("error", "cannot be read", "")}, ["stdout"])
check("the program fails with libaccel", WITH + "echo 1; [ $r != 3 ]", [], 1, {RUNS[2]: ("failure", "exit status 1", "")}, RUNS[:2])
check("the program fails without it", "exit 3", [], 2, {RUNS[0]: ("error", "exit status 3", "")})
check("no number", "echo a", [], 2, {"the comparison": ("error", "nothing can be said", "stderr")}, [*RUNS, "stdout"])
check("an expectation is not met", "echo 1", ["--expect", "*gemm* on gpu >= 1"], 1, {"*gemm* on gpu >= 1": ("failure", "there were 0", "")}, ["stdout"])
with tempfile.TemporaryDirectory() as folder:
    done = subprocess.run([BUILD / "accel", "diff", "--junit", f"{folder}/no/report.xml", "--", "touch", f"{folder}/ran"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    tap.ok(done.returncode == 2 and "report.xml: No such file" in done.stderr and not os.path.exists(f"{folder}/ran"), "a report that cannot be written: nothing runs", done.stderr)
done = subprocess.run([BUILD / "accel", "diff", "--junit", "/dev/full", "--", "echo", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
tap.ok(done.returncode == 2 and "--junit /dev/full: No space left" in done.stderr, "a full disk", done.returncode, done.stderr)

# ---- action.yml, as GitHub runs it: a step's inputs come in its env ----

action = yaml.safe_load((ROOT / "action.yml").read_text())
steps = action["runs"]["steps"]
tap.ok(action["runs"]["using"] == "composite" and all(step["shell"] == "bash" and step["run"] for step in steps) and action["inputs"]["program"]["required"], "action.yml: composite", action)
given = {"program": f"{DEBIAN_PYTHON} {ROOT}/tests/docs/programs/my_program.py", "options": "--output result.npy --expect 'cblas_d* on gpu >= 1'"}
with tempfile.TemporaryDirectory(prefix="accel-action-") as folder:
    runner = clean_env(folder) | GPU | {"GITHUB_ACTION_PATH": str(ROOT), "GITHUB_PATH": f"{folder}/path", "BUILD": str(BUILD), "MAKEFLAGS": "-n"}
    for name in ("MAKELEVEL", "MFLAGS"):
        runner.pop(name, None)
    for step in steps:
        values = {name: "" if value is None else str(value) for name, value in ((key, row.get("default")) for key, row in action["inputs"].items())} | given
        env = {name: text.replace("${{ inputs.", "").replace(" }}", "") for name, text in step.get("env", {}).items()}
        env = {name: values[text] for name, text in env.items()}
        # A later step has what an earlier one has put on the PATH. MAKEFLAGS: make says what it
        # would do.
        path = Path(folder, "path")
        runner["PATH"] = ":".join([*(path.read_text().split("\n")[:-1] if path.exists() else []), os.environ["PATH"]])
        done = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]], cwd=folder, env=runner | env, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        tap.ok(done.returncode == 0, f"action.yml: {step['name']}", done.stdout[-2000:])
    cases, wrong = report_of(Path(folder, values["junit"]))
    tap.ok(not wrong and {"stdout", "result.npy", "cblas_d* on gpu >= 1"} <= cases.keys() and all(case[0] == "passed" for case in cases.values()), "and its report", wrong, cases)
tap.done()
