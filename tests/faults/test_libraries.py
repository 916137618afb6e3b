#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""CUDA libraries that lack a function, are damaged, or are not there: a program goes on, with the GPU where it is not
needed, without where it is, and one line names what is missing."""

import re
import subprocess
import tempfile
from pathlib import Path

import pytest

from faults.faults import GPU, Fault, Outcome, check, ended_well, record, run, sweep
from lib.log import parse_log, said
from lib.programs import BUILD, ROOT

LAPACK = ["-f", "tyesmv", "-k", "@(uniform|well)", "-c", 1, "-n", 20, "-s", 5, "-r", "d@(gesv|potrf|geqrf)"]
BLAS = ["-f", "y", "-c", 1, "-n", 30, "-s", 3, "-r", "d*"]
FILES = {"DRIVER": "libcuda.so.1", "CUBLAS": "libcublas.so.13", "CUSOLVER": "libcusolver.so.12"}
SONAME = {"DRIVER": "libcuda.so.1", "CUBLAS": "libcublas", "CUSOLVER": "libcusolver"}


def functions():
    """The kind, the name and REQUIRED or OPTIONAL of each that libaccel calls."""
    rows = subprocess.run(["gcc", "-E", "-P", "-x", "c", ROOT / "gpu/cuda/api/cuda_functions.def"], text=True,
                          check=True, stdout=subprocess.PIPE).stdout
    return re.findall(r"(DRIVER|CUBLAS|CUSOLVER)\((\w+), (REQUIRED|OPTIONAL),", rows)


def without(kind, function):
    """The library with that function under another name, in all its versions; whether it had it."""
    data = (BUILD / "testgpu" / FILES[kind]).read_bytes()
    found = False
    for suffix in ("", "_v2", "_v3", "_v4") if kind == "DRIVER" else ("",):
        name = f"\0{function}{suffix}\0".encode()
        if name in data:
            found = True
            data = data.replace(name, name[:-2] + b"~\0")
    return data, found


def run_with(changed, lapack):
    """A program with a folder of the libraries, of which some are changed: {file: bytes, or None for one that is not
    there}. The finished process, its decisions, what libaccel says, and the decisions on LAPACK."""
    with tempfile.TemporaryDirectory(prefix="accel-libraries-") as folder:
        for file in FILES.values():
            if file not in changed:
                Path(folder, file).symlink_to((BUILD / "testgpu" / file).resolve())
            elif changed[file] is not None:
                Path(folder, file).write_bytes(changed[file])
        program, arguments = ("random_lapack", LAPACK) if lapack else ("random_calls", BLAS)
        done, _ = run(program, arguments, {**GPU, "ACCEL_CUDA_DIR": folder, "CUDA_HOME": "/nowhere", "HOME": folder})
    lines = parse_log(done.stderr)
    own = [f for f in lines
           if f["sym"] in ("dgesv_", "dpotrf_", "dgeqrf_") and f["why"] not in ("workspace_query", "empty")]
    return done, lines, said(done), own


def lacking(row):
    """The outcome of a run whose library has not this function."""
    kind, function, need = row
    fault = Fault("libraries", function, function, True)
    data, found = without(kind, function)
    if not found:
        return Outcome(fault, "missed", f"{function} is not in {FILES[kind]}", 0)
    done, lines, spoken, own = run_with({FILES[kind]: data}, kind == "CUSOLVER")
    ran = {f["ran"] for f in lines}
    what = ""
    if not ended_well(done, ""):
        what = "not the right results"
    elif need == "REQUIRED" and kind != "CUSOLVER":
        names_it = rf"{SONAME[kind]}.* has no {function}(_v\d)?:?( |$)"
        if ran != {"cpu"} or len(spoken) != 1 or not re.search(names_it, spoken[0]):
            what = "not one line that names it"
    elif need == "REQUIRED":
        if {(f["ran"], f["why"]) for f in own} != {("cpu", "unsupported")}:
            what = "LAPACK is not left to the CPU"
    elif "gpu0" not in ran or spoken:
        what = "it is not needed, and the GPU is not used"
    detail = f"{function}: {what} {spoken} {ran} {done.stdout[-200:]}" if what else ""
    return Outcome(fault, "wrong" if what else "recovered", detail, 0)


def test_function_that_is_lacking():
    outcomes = sweep(functions(), lacking)
    lacks = [o.detail for o in outcomes if o.what == "missed"]  # by the test GPU itself
    check("libraries", outcomes, least=200)
    assert len(lacks) < 10, lacks


# (One that is cut short ends any program that opens it, by SIGBUS in the dynamic linker.)
TEXT = b"This is no library.\n"
BROKEN = {
    "no driver": ("DRIVER", None), "a text for a driver": ("DRIVER", TEXT), "an empty driver": ("DRIVER", b""),
    "a text for cuSOLVER": ("CUSOLVER", TEXT), "no cuSOLVER": ("CUSOLVER", None), "an empty cuSOLVER": ("CUSOLVER", b"")
}


@pytest.mark.parametrize("name", BROKEN)
def test_library_that_cannot_be_opened(name):
    kind, data = BROKEN[name]
    done, lines, spoken, own = run_with({FILES[kind]: data}, kind == "CUSOLVER")
    if kind == "CUSOLVER":  # what is not its goes on running on the GPU
        good = not spoken and {(f["ran"], f["why"]) for f in own} == {("cpu", "unsupported")}
    else:
        good = (len(spoken) == 1 and "libcuda.so.1 (the NVIDIA driver) was not found" in spoken[0]
                and {f["ran"] for f in lines} == {"cpu"})
    right = ended_well(done, "")
    record("libraries",
           [Outcome(Fault("libraries", name, "", True), "recovered" if good and right else "wrong", "", 0)])
    assert right, done.stdout
    assert good, (spoken, lines[:2])
