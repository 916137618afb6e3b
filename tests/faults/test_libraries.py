#!/usr/bin/python3 -B
"""CUDA libraries that lack a function, are damaged, or are not there: a program goes on, with the GPU where it is not needed, without
where it is, and one line names what is missing."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from faults import GPU, Fault, Outcome, ended_well, report_on, run, sweep
from lib.log import parse_log, said
from lib.programs import BUILD, ROOT
from lib.tap import Tap

tap = Tap()
LAPACK = ["-f", "tyesmv", "-k", "@(uniform|well)", "-c", 1, "-n", 20, "-s", 5, "-r", "d@(gesv|potrf|geqrf)"]
FILES = {"DRIVER": "libcuda.so.1", "CUBLAS": "libcublas.so.13", "CUSOLVER": "libcusolver.so.12"}
SONAME = {"DRIVER": "libcuda.so.1", "CUBLAS": "libcublas", "CUSOLVER": "libcusolver"}
rows = subprocess.run(["gcc", "-E", "-P", "-x", "c", ROOT / "gpu/cuda/api/cuda_functions.def"], text=True, check=True, stdout=subprocess.PIPE).stdout
TABLE = re.findall(r"(DRIVER|CUBLAS|CUSOLVER)\((\w+), (REQUIRED|OPTIONAL),", rows)
bytes_of = {kind: (BUILD / "testgpu" / file).read_bytes() for kind, file in FILES.items()}


def without(kind, function):
    """The library with that function under another name, in all its versions; whether it had it."""
    data = bytes_of[kind]
    found = False
    for suffix in ("", "_v2", "_v3", "_v4") if kind == "DRIVER" else ("",):
        name = f"\0{function}{suffix}\0".encode()
        if name in data:
            found = True
            data = data.replace(name, name[:-2] + b"~\0")
    return data, found


def folder_with(root, number, changed):
    """A folder of the libraries, of which some are changed: {file: bytes, or None for one that is not there}."""
    folder = Path(root, str(number))
    folder.mkdir()
    for file in FILES.values():
        if file not in changed:
            (folder / file).symlink_to((BUILD / "testgpu" / file).resolve())
        elif changed[file] is not None:
            (folder / file).write_bytes(changed[file])
    return folder


def with_folder(folder, lapack):
    program, arguments = ("random_lapack", LAPACK) if lapack else ("random_calls", ["-f", "y", "-c", 1, "-n", 30, "-s", 3, "-r", "d*"])
    return run(program, arguments, {**GPU, "ACCEL_CUDA_DIR": str(folder), "CUDA_HOME": "/nowhere", "HOME": str(folder)})


with tempfile.TemporaryDirectory(prefix="accel-libraries-") as root:
    numbers = iter(range(1 << 20))

    def lacking(row):
        kind, function, need = row
        fault = Fault("libraries", function, function, True)
        data, found = without(kind, function)
        if not found:
            return Outcome(fault, "missed", f"{function} is not in {FILES[kind]}", 0)
        folder = folder_with(root, next(numbers), {FILES[kind]: data})
        done, _ = with_folder(folder, kind == "CUSOLVER")
        shutil.rmtree(folder)
        lines, spoken = parse_log(done.stderr), said(done)
        ran = {f["ran"] for f in lines}
        what = ""
        if not ended_well(done, ""):
            what = "not the right results"
        elif need == "REQUIRED" and kind != "CUSOLVER":
            if ran != {"cpu"} or len(spoken) != 1 or not re.search(rf"{SONAME[kind]}.* has no {function}(_v\d)?:?( |$)", spoken[0]):
                what = "not one line that names it"
        elif need == "REQUIRED":
            own = [f for f in lines if f["sym"] in ("dgesv_", "dpotrf_", "dgeqrf_") and f["why"] not in ("workspace_query", "empty")]
            if {(f["ran"], f["why"]) for f in own} != {("cpu", "unsupported")}:
                what = "LAPACK is not left to the CPU"
        elif "gpu0" not in ran or spoken:
            what = "it is not needed, and the GPU is not used"
        detail = f"{function}: {what} {spoken} {ran} {done.stdout[-200:]}" if what else ""
        return Outcome(fault, "wrong" if what else "recovered", detail, 0)

    outcomes = sweep(TABLE, lacking)
    lacks = [o.detail for o in outcomes if o.what == "missed"]
    tap.ok(len(lacks) < 10, f"the test GPU has the table's functions except for {len(lacks)}", *lacks)
    report_on(tap, "a function that is lacking", "libraries", outcomes, least=200)

    # (One that is cut short ends any program that opens it, by SIGBUS in the dynamic linker.)
    text = b"This is no library.\n"
    outcomes = []
    for name, changed, why, lapack in (
        ("no driver", {FILES["DRIVER"]: None}, "libcuda.so.1 (the NVIDIA driver) was not found", False),
        ("a text for a driver", {FILES["DRIVER"]: text}, "libcuda.so.1 (the NVIDIA driver) was not found", False),
        ("an empty driver", {FILES["DRIVER"]: b""}, "libcuda.so.1 (the NVIDIA driver) was not found", False),
        ("a text for cuSOLVER", {FILES["CUSOLVER"]: text}, "", True),
        ("no cuSOLVER", {FILES["CUSOLVER"]: None}, "", True),
        ("an empty cuSOLVER", {FILES["CUSOLVER"]: b""}, "", True),
    ):
        folder = folder_with(root, name, changed)
        done, _ = with_folder(folder, lapack)
        lines, spoken = parse_log(done.stderr), said(done)
        good = ended_well(done, "")
        if lapack:  # what is not cuSOLVER's goes on running on the GPU
            own = [f for f in lines if f["sym"] in ("dgesv_", "dpotrf_", "dgeqrf_") and f["why"] not in ("workspace_query", "empty")]
            good = good and not spoken and own and {(f["ran"], f["why"]) for f in own} == {("cpu", "unsupported")}
        else:
            good = good and len(spoken) == 1 and why in spoken[0] and {f["ran"] for f in lines} == {"cpu"}
        tap.ok(good, f"{name}: right, and said", done.stdout, *spoken, *lines[:2])
        outcomes.append(Outcome(Fault("libraries", name, "", True), "recovered" if good else "wrong", "", 0))
    report_on(tap, "libraries that cannot be opened", "libraries", outcomes, least=6)
tap.done()
