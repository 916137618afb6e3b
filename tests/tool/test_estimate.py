#!/usr/bin/python3 -B
"""accel estimate: counts the calls that a missing GPU would have run. The program runs on the CPU, as without it."""

import os
import re
import tempfile
from pathlib import Path

from lib.calibrated import put
from lib.programs import BUILD, TESTS, start
from lib.tap import Tap

TOOL = str(BUILD / "accel")
PYTHON = "/usr/bin/python3"
PROGRAM = """
import os, sys, numpy as np
a = np.random.default_rng(1).random((900, 900))
b = a @ a
x = np.linalg.solve(a, b)
small = a[:40, :40].copy()
for i in range(50):
    small @ small
print("sum %.6e" % b.sum())
"""
FORKS = "import os\nfor i in range(2):\n  if os.fork() == 0:\n    import numpy as n; n.ones((700, 700)) @ n.ones((700, 700)); raise SystemExit(0)\n" \
        "[os.wait() for i in range(2)]"

tap = Tap()


def estimate(*arguments, env=None, folder=None):
    extra = dict(env or {})
    if folder:
        extra["TMPDIR"] = folder
    return start(TOOL, "estimate", *arguments, env=extra)


def rows(done):
    """The table: routine -> (calls, on the CPU, GPU calls, were, would be, saved, not paid, lost by)."""
    found = {}
    for line in done.stderr.splitlines():
        match = re.fullmatch(r"(\w+)((?: +-?[\d.]+){8})", line)
        if match:
            found[match[1]] = [float(word) for word in match[2].split()]
    return found


with tempfile.TemporaryDirectory() as folder:
    plain = start(PYTHON, "-c", PROGRAM)
    report = Path(folder, "report")
    with_gpu = {"ACCEL_CUDA_DIR": str(BUILD / "testgpu"), "LD_LIBRARY_PATH": str(BUILD / "testgpu"), "TESTGPU_REPORT": str(report)}
    done = estimate("--gpu", "H200", "--", PYTHON, "-c", PROGRAM, env=with_gpu, folder=folder)
    table = rows(done)
    tap.ok(done.returncode == 0 and done.stdout == plain.stdout, "the program's output is bit for bit its own", done.stdout, done.stderr)
    tap.ok({"dgemm", "dgesv", "all"} <= table.keys(), "its routines are in the table", done.stderr)
    tap.ok(table.get("dgemm", [0])[0] == 51 and table["dgemm"][2] == 1, "51 products, of which one would have paid", done.stderr)
    tap.ok(table.get("dgesv", [0, 0, 0])[2] == 1, "one solution, which would have paid", done.stderr)
    sums = [sum(table[name][i] for name in table if name != "all") for i in range(8)] if table else []
    tap.ok(table and all(abs(a - b) < 0.005 * len(table) for a, b in zip(sums, table["all"])), "the last row is the sum", done.stderr)
    tap.ok(table and abs(table["all"][3] - table["all"][4] - table["all"][5]) < 0.003, "saved is the CPU's time less the GPU's",
           done.stderr)
    tap.ok("built-in figures" in done.stderr and "1 process," in done.stderr, "it says whose figures, and how many processes", done.stderr)
    tap.ok(not report.exists(), "no CUDA was started, though it was there")
    tap.ok(os.listdir(folder) == [], "nothing is left in TMPDIR", *os.listdir(folder))

    # Without a calibration, the program says nothing of the place where one would be; of one that
    # the setting names, it does.
    LOGS = {"HOME": folder, "ACCEL_LOG": "1"}
    done = estimate("--gpu", "H200", "--", str(BUILD / "tests/steps"), "dgemm:600:1", env=LOGS)
    tap.ok(done.returncode == 0 and "sym=dgemm_" in done.stderr and "no calibration" not in done.stderr, "no calibration, and none is named", done.stderr)
    done = estimate("--gpu", "H200", "--", str(BUILD / "tests/steps"), "dgemm:600:1", env={**LOGS, "ACCEL_MODEL": f"{folder}/none"})
    tap.ok(done.returncode == 0 and f"accel: no calibration at {folder}/none (ACCEL_MODEL)" in done.stderr, "a calibration that the setting names, and that is not there", done.stderr)

    # What another precision would bring, where that is as accurate and faster.
    def hints(*arguments, **env):
        done = estimate(*arguments, "--", str(BUILD / "tests/steps"), "dgemm:1500:2", env=env, folder=folder)
        return [line for line in done.stderr.splitlines() if line.startswith("accel: hint:")], rows(done).get("dgemm", [0] * 5)[4]

    rtx, native = hints("--gpu", "rtx4090")
    tap.ok(len(rtx) == 1 and re.fullmatch(r"accel: hint: dgemm on this card: native 0\.903 TF/s, emulated 12\.9; ACCEL_PRECISION=emulated", rtx[0]),
           "a card with slow double precision: what emulation would bring", *rtx)
    rtx, emulated = hints("--gpu", "rtx4090", ACCEL_PRECISION="emulated", ACCEL_GPU="dgemm")
    tap.ok(not rtx, "no hint where it is asked for already", *rtx)
    _, native = hints("--gpu", "rtx4090", ACCEL_GPU="dgemm")
    tap.ok(0 < emulated < native, "and the estimate knows its rate", emulated, native)
    for card in ("H100", "A100", "V100"):
        none, _ = hints("--gpu", card)
        tap.ok(not none, f"{card}, whose own is as fast, has no hint", *none)
    measured = Path(folder, "measured")
    put(measured, {'[gpu "NVIDIA GeForce RTX 4090" cuda=13.0 cublas=130100]': "up_gbps=10\ndown_gbps=10\ngain_emulated=3\ndgemm 64x64x64:1\n"})
    rtx, _ = hints("--gpu", "rtx4090", ACCEL_MODEL=str(measured))
    measured.unlink()
    tap.ok(len(rtx) == 1 and "native 0.903 TF/s, emulated 2.71;" in rtx[0], "a calibration's rate comes before the data sheet's", *rtx)
    slice_of, _ = hints("--gpu", "B200 MIG 3g.90gb")
    tap.ok(len(slice_of) == 1 and "native 9.71 TF/s, emulated 32.8" in slice_of[0], "a slice's rates are its share", *slice_of)

    done = estimate("--gpu", "V100", "--", PYTHON, "-c", FORKS, folder=folder)
    tap.ok(done.returncode == 0 and rows(done).get("dgemm", [0])[0] == 2 and "2 processes," in done.stderr,
           "the calls of children are added up", done.stderr)

    # R's package class leaves its function by longjmp where too many points tie.
    LEFT = "try(class::knn(matrix(0, 8000, 50), matrix(0, 2000, 50), rep(1:2, 4000), 5), TRUE); a <- matrix(rnorm(1e6), 1000); for (i in 1:3) b <- a %*% a"
    done = estimate("--gpu", "H100", "--", "/usr/bin/Rscript", "--vanilla", "-e", LEFT, folder=folder)
    tap.ok(done.returncode == 0 and rows(done).get("dgemm", [0])[0] == 3, "calls after one that was left by longjmp", done.stdout, done.stderr)

    # Figures that make every call lose: the table says so.
    model = Path(folder, "model")
    done = start(TOOL, "calibrate", "--seconds", "1", "--output", model,
                 env={**with_gpu, "TESTGPU_DELAY_US": "0", "TESTGPU_GFLOPS": "0.5", "TESTGPU_DATA": "0"})
    name = re.search(r'\[gpu "([^"]+)"', model.read_text())[1] if model.exists() else "?"
    done = estimate("--gpu", name, "--model", model, "--", PYTHON, "-c", PROGRAM, folder=folder)
    tap.ok(done.returncode == 0 and "measured figures" in done.stderr and rows(done).get("dgemm", [0, 0, 1])[2] == 0,
           "a slow GPU of the calibration would have got no product", done.stderr)

    # The names of GPUs: the list needs no program; case, spaces and hyphens do not matter.
    for word in ("list", "?"):
        done = estimate("--gpu", word, "--model", model, folder=folder)
        listed = {line.rsplit(None, 1)[0]: line.rsplit(None, 1)[1] for line in done.stdout.splitlines()}
        tap.ok(done.returncode == 0 and listed.get("RTX 4090") == "built-in" and listed.get(name) == "measured" and len(listed) > 20 and not done.stderr,
               f"--gpu {word} lists them, without a program", done.returncode, done.stdout, done.stderr)
    done = estimate("--gpu", "list", env={"ACCEL_POLICY": "fast"}, folder=folder)
    tap.ok(done.returncode == 0 and done.stderr == "accel: ACCEL_POLICY=fast is not understood; allowed: auto,gpu,cpu; the default is used\n",
           "a setting that is not understood", done.stderr)
    done = start(TOOL, "estimate", "--gpu", "list", stdout=open("/dev/full", "w"))
    tap.ok(done.returncode == 2 and done.stderr.count("\n") == 1, "a list that cannot be written", done.stderr)
    for given, meant in {"RTX4090": "RTX 4090", "rtx-4090": "RTX 4090", "4090": "RTX 4090", "NVIDIA GeForce RTX 4090": "RTX 4090",
                         "nvidiah100": "H100", "h100pcie": "H100 PCIe", "H100 PCIe": "H100 PCIe", "A100-SXM4-40GB": "A100-SXM4-40GB", "l4": "L4",
                         "a10080gb": "A100 80GB", name.replace(" ", "").upper(): name}.items():
        done = estimate("--gpu", given, "--model", model, "--", "true", folder=folder)
        tap.ok(done.returncode == 0 and f" ({meant}, {'measured' if meant == name else 'built-in'} figures)" in done.stderr, f"--gpu {given}: {meant}",
               done.returncode, done.stderr)
    many = Path(folder, "many")
    put(many, {'[gpu "NVIDIA L40X" cuda=13.0 cublas=1]': "up_gbps=1\ndown_gbps=1\ndgemm 64x64x64:1\n",
               '[gpu "NVIDIA RTX 4000 Ada" cuda=13.0 cublas=1]': "up_gbps=1\ndown_gbps=1\ndgemm 64x64x64:1\n"})
    for given, text in {"L4": "(L4, built-in", "rtx4000ada": "(NVIDIA RTX 4000 Ada, measured"}.items():
        done = estimate("--gpu", given, "--model", many, "--", "true", folder=folder)
        tap.ok(done.returncode == 0 and text in done.stderr, f"a calibration of an L40X: --gpu {given}", done.stderr)

    for arguments, status, text in (
            (("--gpu", "Foo", "--", "true"), 2, "--gpu Foo is not known; allowed: a name that `accel estimate --gpu list` prints\n"),
            (("--gpu", "RTX4080", "--", "true"), 2, "--gpu RTX4080 is not known; near: RTX "),
            (("--gpu", "RTX", "--", "true"), 2, "--gpu RTX may be several; near: RTX "),
            (("--gpu", "H100 MIG 1g", "--", "true"), 2, "--gpu H100 MIG 1g is no whole name of a MIG instance, such as H200 MIG 1g.18gb; near: H100; allowed: "),
            (("--gpu", "H100 MIG", "--", "true"), 2, "--gpu H100 MIG is no whole name of a MIG instance"),
            (("--gpu", "h100 foo bar", "--", "true"), 2, "--gpu h100 foo bar has words that belong to no known GPU; near: H100; allowed: "),
            (("--gpu", "-", "--", "true"), 2, "--gpu - is no name"), (("--gpu", "", "--", "true"), 2, "--gpu  is no name"),
            (("--gpu", "H200", "--model", "/none", "--", "true"), 2, "--model /none: there is no such file; allowed"),
            (("--gpu", "list", "--model", "/dev/null"), 2, "--model /dev/null: it is no regular file"),
            (("--", "true"), 2, "no GPU is given: --gpu NAME; --gpu list"),
            ((), 2, "no GPU is given"),
            (("--gpu", "H200"), 2, "no program"),
            (("--gpu", "H200", "--shim", "/none", "--", "true"), 2, "/none is not there"),
            (("--gpu", "H200", "--", "/no/such/program"), 127, "/no/such/program"),
            (("--gpu", "H200", "--", "/dev/null"), 126, "/dev/null: Permission denied"),
            (("--gpu", "H200", "--", "sh", "-c", "exit 7"), 7, "no call of BLAS"),
            (("--gpu", "H200", "--", "sh", "-c", "exit 127"), 127, "no call of BLAS"),
            (("--gpu", "H200", "--", "sh", "-c", "kill -9 $$"), 137, "no call of BLAS")):
        done = estimate(*arguments, folder=folder)
        tap.ok(done.returncode == status and text in done.stderr and (status != 2 or done.stderr.count("\n") == 1),
               f"{' '.join(arguments)}: {status}, {text.strip()}", done.returncode, done.stderr)
    done = estimate("--gpu", "H200", "--", "true", env={"TMPDIR": "/no/such/folder"})
    tap.ok(done.returncode == 126 and "in TMPDIR, or /tmp: No such file or directory; nothing is run\n" in done.stderr, "without a folder for the counts: one line, 126", done.stderr)
# ---- Where GPU and CPU share one memory, nothing needs to be copied ----

gb10 = {c2c: re.findall(r"sym=dgemm_ .*est_gpu_ms=([\d.]+)", estimate("--gpu", "GB10", "--", str(TESTS / "steps"), "dgemm:400:1", env={"ACCEL_LOG": "1", "ACCEL_C2C": c2c}).stderr)
        for c2c in ("auto", "copy")}
tap.ok(gb10["auto"] and gb10["copy"] and float(gb10["auto"][0]) < 0.9 * float(gb10["copy"][0]), "GB10: operands are read where they are", gb10)
tap.done()
