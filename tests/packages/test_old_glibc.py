#!/usr/bin/python3 -B
"""OLD_GLIBC=1: the library and the tool ask for nothing that glibc 2.28 lacks, need glibc's libraries alone, and run: here, and with the oldest glibc that
there is a bare system of, 2.31."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from lib.log import lines_for
from lib.programs import BUILD, DEBIAN_PYTHON, ROOT, TEST_GPU, start
from lib.tap import Tap
from lib.trees import TREES, in_tree

GLIBC = {"libc.so.6", "libdl.so.2", "libpthread.so.0", "libm.so.6", "ld-linux-x86-64.so.2"}
tap = Tap()

folder = Path(tempfile.mkdtemp(dir=BUILD, prefix="glibc-"))
try:
    done = subprocess.run(["make", "-j2", f"BUILD={folder}", "OLD_GLIBC=1", "NVCC=", "all"], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    tap.ok(done.returncode == 0, "make OLD_GLIBC=1", done.stdout[-1500:])
    for name in ("libaccel.so", "accel"):
        said = subprocess.run(["readelf", "-W", "--dyn-syms", "-d", folder / name], text=True, stdout=subprocess.PIPE).stdout
        wanted = re.findall(r"UND (\w+)@GLIBC_([\d.]+)", said)
        newer = {f"{symbol}@{version}" for symbol, version in wanted if tuple(map(int, version.split("."))) > (2, 28)}
        tap.ok(len(wanted) > 60 and not newer, f"{name}: nothing is newer than glibc 2.28 (packaging/glibc/ has what was)", len(wanted), *sorted(newer))
        needed = set(re.findall(r"Shared library: \[(.*)\]", said))
        tap.ok(needed <= GLIBC, f"{name} needs glibc alone", *needed)
    program = DEBIAN_PYTHON, ROOT / "tests/packages/demo.py"
    plain = start(*program)
    done = start(*program, env={**TEST_GPU, "LD_PRELOAD": str(folder / "libaccel.so"), "ACCEL_LOG": "1"})
    tap.ok(done.returncode == 0 and done.stdout == plain.stdout.replace("False", "True") and lines_for(done, sym="cblas_dgemm", ran="gpu0"), "it runs calls on the GPU here",
           plain.stdout, done.stdout, done.stderr[-500:])

    opt = TREES / "bullseye/opt"
    for path in opt.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in (folder / "libaccel.so", folder / "accel", ROOT / "tests/packages/demo.py"):
        shutil.copy(path, opt)
    plain = in_tree("bullseye", "python3 /opt/demo.py; getconf GNU_LIBC_VERSION")
    tap.ok(plain.returncode == 0 and "glibc 2.31" in plain.stdout, "a bare system with glibc 2.31", plain.stdout, plain.stderr[-500:])
    done = in_tree("bullseye", "/opt/accel run -v -- python3 /opt/demo.py; getconf GNU_LIBC_VERSION")
    tap.ok(done.returncode == 0 and done.stdout == plain.stdout.replace("False", "True") and lines_for(done, sym="cblas_dgemm", ran="cpu", why="no_gpu"),
           "there NumPy computes the same under accel run", plain.stdout, done.stdout, done.stderr[-800:])
    done = in_tree("bullseye", "/opt/accel --version && /opt/accel config && ! /opt/accel doctor")
    tap.ok(done.returncode == 0 and "libcuda.so.1" in done.stdout, "accel doctor and accel config work there", done.stdout[-500:], done.stderr[-500:])
    done = in_tree("bullseye", "ACCEL_LOG=1 ACCEL_LOG_FILE=/none/log LD_PRELOAD=/opt/libaccel.so python3 /opt/demo.py")
    tap.ok("No such file or directory" in done.stderr, "an error of the system is described there", done.stderr[-500:])
finally:
    shutil.rmtree(folder, ignore_errors=True)
tap.done()
