#!/usr/bin/python3 -B
"""packaging/container/Containerfile: buildah builds the image, and a container of it runs NumPy under libaccel, without a GPU and on the test GPU. The base images of the
registries cannot be had here: a bare Debian 12 stands in for each, also for NVIDIA's, which is an Ubuntu."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from lib.log import lines_for
from lib.programs import BUILD, ROOT
from lib.tap import Tap
from lib.trees import TREES

VERSION = (ROOT / "VERSION").read_text().strip()
RECIPE = ROOT / "packaging/container/Containerfile"
tap = Tap()
folder = Path(tempfile.mkdtemp(dir=BUILD, prefix="container-"))


def buildah(*words, timeout=1200):
    return subprocess.run(["buildah", "--root", folder / "images", "--runroot", folder / "run", "--storage-driver", "vfs", *map(str, words)], cwd=folder, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout)


try:
    bases = [name for name in re.findall(r"(?m)^FROM (\S+)", RECIPE.read_text())]
    base = buildah("from", "scratch").stdout.strip()
    done = buildah("copy", "--quiet", base, TREES / "bookworm", "/")
    committed = [buildah("commit", "--quiet", base, name).returncode for name in bases]
    buildah("rm", base)
    if not tap.ok(done.returncode == 0 and len(bases) == 2 and not any(committed), "images that stand in for the base images", done.stderr[-500:], bases):
        raise SystemExit(tap.done())

    subprocess.run(["make", f"DISTDIR={folder}", "dist"], cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    subprocess.run(["tar", "-xzf", f"libaccel-{VERSION}.tar.gz"], cwd=folder, check=True)
    done = buildah("bud", "--isolation", "chroot", "--pull-never", "--layers=false", "--file", RECIPE, "--tag", "libaccel", folder / f"libaccel-{VERSION}")
    if not tap.ok(done.returncode == 0, "the image is built", done.stdout[-1000:], done.stderr[-1500:]):
        raise SystemExit(tap.done())

    # A working tree has more than the sources.
    context = folder / f"libaccel-{VERSION}"
    (context / "build").mkdir()
    (context / "build/left").touch()
    scratch = buildah("from", "scratch").stdout.strip()
    done = buildah("copy", "--quiet", "--contextdir", context, "--ignorefile", context / ".dockerignore", scratch, context, "/source")
    sources = {path.name for path in Path(buildah("mount", scratch).stdout.strip(), "source").iterdir()}
    tap.ok(done.returncode == 0 and {"Makefile", "packaging", "tests"} <= sources and "build" not in sources, "folders of earlier builds are not copied", done.stderr[-500:], *sorted(sources))

    container = buildah("from", "--pull-never", "localhost/libaccel").stdout.strip()
    entry = buildah("inspect", "--type", "image", "--format", "{{.OCIv1.Config.Entrypoint}}", "localhost/libaccel").stdout.strip()
    tap.ok(entry == "[accel run --]", "a container runs its program under libaccel", entry)

    def in_container(*words, **env):
        """Runs it as the entry point would: buildah run leaves that out."""
        settings = [f"--env={key}={value}" for key, value in env.items()]
        return buildah("run", "--isolation", "chroot", *settings, "-v", f"{BUILD}/testgpu:/testgpu:ro", "-v", f"{ROOT}/tests/packages:/tests:ro", container, "--", *words)

    plain = in_container("python3", "/tests/demo.py")
    asked = plain.stdout.replace("False", "True")
    tap.ok(plain.returncode == 0 and "False" in plain.stdout, "NumPy is in the image, and libaccel is not active by itself", plain.stdout, plain.stderr[-500:])
    done = in_container("accel", "run", "--", "python3", "/tests/demo.py", ACCEL_LOG="1")
    tap.ok(done.returncode == 0 and done.stdout == asked and lines_for(done, sym="cblas_dgemm", ran="cpu", why="no_gpu"), "without a GPU it computes the same", done.stdout, done.stderr[-800:])
    done = in_container("accel", "run", "--", "python3", "/tests/demo.py", ACCEL_LOG="1", ACCEL_CUDA_DIR="/testgpu", ACCEL_POLICY="gpu")
    tap.ok(done.returncode == 0 and done.stdout == asked and lines_for(done, sym="cblas_dgemm", ran="gpu0"), "with a GPU, the calls go there", done.stdout, done.stderr[-800:])
finally:
    shutil.rmtree(folder, ignore_errors=True)
tap.done()
