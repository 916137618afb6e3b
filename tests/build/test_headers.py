#!/usr/bin/python3 -B
"""gpu/cuda/, and whatever else of the tests sees CUDA's headers, compiles with the oldest and with the newest ones that are supported, as NVIDIA's
wheels have them. What the oldest ones do not declare is used all the same where the library has it. They are fetched once."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from lib.log import lines_for
from lib.programs import BUILD, ROOT, TEST_GPU, start
from lib.tap import Tap

SETS = {"oldest": (BUILD / "cuda-oldest/include", "12000"), "newest": (BUILD / "cuda/include", "13050")}
tap = Tap()


def make(build, include, *targets):
    """Of another build folder whose other objects, and their times, are those of ours."""
    # What a make that runs this test has been given is not for this one.
    env = {k: v for k, v in os.environ.items() if k not in ("BUILD", "MAKEFLAGS", "MAKELEVEL", "MFLAGS", "CHECK")}
    return subprocess.run(["make", "-j2", "WERROR=-Werror", f"BUILD={build}", f"CUDA_INCLUDE={include}", "OWN_ARCHITECTURES=80", *map(str, targets)], cwd=ROOT, env=env, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


for name, (include, version) in SETS.items():
    header = include / "cuda.h"
    found = re.search(r"#define CUDA_VERSION (\d+)", header.read_text())[1] if header.exists() else None
    if not tap.ok(found == version, f"{name} headers: CUDA {version} (scripts/install-deps headers fetches them)", found):
        continue
    with tempfile.TemporaryDirectory(dir=BUILD, prefix=f"headers-{name}-") as folder:
        build = Path(folder)
        for part in ("base", "gpu", "ops", "shim", "report", "dispatch", "cpu_ref", "testgpu"):
            shutil.copytree(BUILD / part, build / part, ignore=shutil.ignore_patterns("cuda"))
        for file in ("symbols.map", "names_sorted.inc"):
            shutil.copy2(BUILD / file, build / file)
        programs = [build / "proof/measure", *(build / "tests" / p for p in ("test_gpu", "test_cuda_api", "device_lapack"))]
        done = make(build, include, build / "libaccel.so", *programs)
        compiled = set(re.findall(r"-isystem .* -c -o \S+ ((?:gpu|ops)/[\w/]+\.c)", done.stdout))
        sources = {str(path.relative_to(ROOT)) for path in ROOT.glob("gpu/cuda/*.c")}
        tap.ok(done.returncode == 0 and compiled == sources, f"{name} headers: gpu/cuda/, which alone sees them, unit tests, tests/proof and a program with its own CUDA compile",
               *sorted(sources - compiled), done.stdout[-1500:])
        done = start("random_lapack", "-f", "tyesmv", "-c", 3, "-n", 20, "-r", "dgeev",
                     env={**TEST_GPU, "ACCEL_LOG": "1", "LD_PRELOAD": TEST_GPU["LD_PRELOAD"].replace(str(BUILD / "libaccel.so"), str(build / "libaccel.so"))})
        tap.ok(done.returncode == 0 and lines_for(done, sym="dgeev_", ran="gpu0"), f"{name} headers: dgeev runs by cusolverDnXgeev of a newer library",
               done.stdout, done.stderr[-800:])

done = subprocess.run(["scripts/install-deps", "headers"], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                      env={**os.environ, "BUILD": str(BUILD), "PIP_NO_INDEX": "1"})
tap.ok(done.returncode == 0 and not done.stdout, "headers that are there are not fetched again", done.stdout)
tap.done()
