#!/usr/bin/python3 -B
"""make wheel: what pip installs beside PyPI's NumPy into a fresh environment runs that NumPy under libaccel, does nothing unasked, and leaves nothing when it is
uninstalled; auditwheel finds that its tag is true."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from lib.log import lines_for
from lib.programs import BUILD, DEBIAN_PYTHON, ROOT
from lib.tap import Tap

VERSION = (ROOT / "VERSION").read_text().strip()
TOOLS = BUILD / "packages-venv/bin"
DEMO = ROOT / "tests/packages/demo.py"
tap = Tap()


def run(*words, env={}):
    """As a user's shell does, without what this test was given."""
    return subprocess.run([*map(str, words)], env={"PATH": "/usr/bin:/bin", "HOME": str(folder), **env}, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)


folder = Path(tempfile.mkdtemp(dir=BUILD, prefix="wheel-"))
try:
    # For all architectures, the kernels of gpu/own/ take minutes.
    done = subprocess.run(["make", f"DISTDIR={folder}", "wheel"], cwd=ROOT, env={**os.environ, "OWN_ARCHITECTURES": "80"}, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wheel = folder / f"libaccel-{VERSION}-py3-none-manylinux_2_28_x86_64.whl"
    if not tap.ok(done.returncode == 0 and wheel.exists(), "make wheel", done.stdout[-2000:]):
        raise SystemExit(tap.done())
    done = run(TOOLS / "auditwheel", "show", wheel)
    said = " ".join(done.stdout.split())
    tap.ok(done.returncode == 0 and re.search(r'consistent with the following platform tag: "manylinux_2_28_x86_64"', said), "auditwheel: the tag is true, and no older one would be",
           said[-1500:], done.stderr[-500:])
    # W007: there is no Python code.
    done = run(TOOLS / "check-wheel-contents", "--ignore", "W007", wheel)
    tap.ok(done.returncode == 0, "check-wheel-contents finds nothing", done.stdout[-800:], done.stderr[-300:])

    run(DEBIAN_PYTHON, "-m", "venv", folder / "venv")
    python, pip = folder / "venv/bin/python", folder / "venv/bin/pip"
    run(pip, "install", "--no-index", "--find-links", TOOLS.parent / "wheels", "numpy")
    before = {p for p in (folder / "venv").rglob("*") if "__pycache__" not in p.parts}
    plain = run(python, DEMO)
    done = run(pip, "install", "--no-index", wheel)
    tap.ok(done.returncode == 0 and "False" in plain.stdout, "pip installs it beside PyPI's NumPy", done.stderr[-500:], plain.stderr[-500:])
    tap.ok("\nwith kernels of its own\n" in run(folder / "venv/bin/accel", "--version").stdout, "it has the kernels of gpu/own/")
    done = run(python, DEMO)
    tap.ok(done.stdout == plain.stdout and not done.stderr, "it is not active until a program asks for it", done.stdout, done.stderr[-500:])
    accel, asked = folder / "venv/bin/accel", plain.stdout.replace("False", "True")
    done = run(accel, "run", "-v", "--", python, DEMO, env={"CUDA_VISIBLE_DEVICES": "-1"})
    tap.ok(done.returncode == 0 and done.stdout == asked and lines_for(done, sym="scipy_cblas_dgemm64_", ran="cpu", why="no_gpu"), "accel run finds the library, without a GPU: the same numbers",
           asked, done.stdout, done.stderr[-500:])
    done = run(accel, "run", "-v", "--", python, DEMO, env={"ACCEL_CUDA_DIR": str(BUILD / "testgpu"), "ACCEL_POLICY": "gpu"})
    tap.ok(done.returncode == 0 and done.stdout == asked and lines_for(done, sym="scipy_cblas_dgemm64_", ran="gpu0"), "with a GPU, the calls go there", asked, done.stdout, done.stderr[-500:])
    done = run(accel, "run", "printenv", "LD_PRELOAD")
    tap.ok(re.search(r"/libaccel/accel-preload/\$PLATFORM/\.\./\.\./libaccel\.so\n$", done.stdout),
           "by a path that musl's linker does not follow", done.stdout, done.stderr[-500:])
    link = folder / "accel"
    link.symlink_to(accel)
    done = run(link, "run", "--", python, DEMO, env={"CUDA_VISIBLE_DEVICES": "-1"})
    tap.ok(done.stdout == asked, "also through a link, as pipx and others make", done.stdout, done.stderr[-500:])
    done = run(pip, "uninstall", "-y", "libaccel")
    left = {p for p in (folder / "venv").rglob("*") if "__pycache__" not in p.parts} - before
    tap.ok(done.returncode == 0 and not [p for p in left if p.is_file()], "uninstalled, it leaves no file", *sorted(left)[:5], done.stderr[-500:])
finally:
    shutil.rmtree(folder, ignore_errors=True)
tap.done()
