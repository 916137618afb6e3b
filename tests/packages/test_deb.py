#!/usr/bin/python3 -B
"""make deb: a package that lintian finds no error in, whose files are where Debian has them, which installs into a bare Debian beside Intel's accel-config,
does nothing until it is asked to, runs NumPy there without a GPU and on the test GPU, and leaves nothing behind."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from lib.log import lines_for
from lib.programs import BUILD, ROOT
from lib.tap import Tap
from lib.trees import TREES, files_of, in_tree

VERSION = (ROOT / "VERSION").read_text().strip()
FILES = {"usr/bin/accel", "usr/lib/x86_64-linux-gnu/libaccel/libaccel.so", "usr/share/bash-completion/completions/accel", "usr/share/zsh/vendor-completions/_accel",
         *(f"usr/lib/x86_64-linux-gnu/libaccel/{path.relative_to(BUILD)}"
           for path in (BUILD / "accel-preload").rglob("libaccel.so")),
         "usr/share/lintian/overrides/libaccel",
         "usr/share/fish/vendor_completions.d/accel.fish", "usr/share/man/man1/accel.1.gz", "usr/share/man/man5/accel.conf.5.gz", "usr/share/man/man7/libaccel.7.gz"}
DOCUMENTS = "usr/share/doc/libaccel/"
tap = Tap()

folder = Path(tempfile.mkdtemp(dir=BUILD, prefix="deb-"))
tree = TREES / "bookworm"
try:
    # Without the kernels of gpu/own/, which take minutes.
    done = subprocess.run(["make", f"DISTDIR={folder}", "deb"], cwd=ROOT, env={**os.environ, "NVCC": ""}, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    package = folder / f"libaccel_{VERSION}-1_amd64.deb"
    if not tap.ok(done.returncode == 0 and package.exists(), "make deb", done.stdout[-2000:]):
        raise SystemExit(tap.done())
    done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error", package], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    tap.ok(done.returncode == 0, "lintian finds no error", done.stdout)
    done = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE)
    listed = subprocess.run(["tar", "-t"], input=done.stdout, stdout=subprocess.PIPE).stdout.decode().split()
    files = {name.removeprefix("./") for name in listed if not name.endswith("/")}
    others = {name for name in files if not name.startswith(DOCUMENTS)}
    tap.ok(others == FILES and {f"{DOCUMENTS}{name}" for name in ("copyright", "changelog.gz", "README.md.gz")} <= files, "library, tool, manual, completion, documents",
           *sorted(others ^ FILES))

    in_tree("bookworm", "dpkg --purge libaccel; rm -rf /opt/*")
    before = files_of("bookworm")
    shutil.copy(package, tree / "opt/libaccel.deb")
    shutil.copy(ROOT / "tests/packages/demo.py", tree / "opt/demo.py")
    shutil.copytree(BUILD / "testgpu", tree / "opt/testgpu", ignore=shutil.ignore_patterns("obj"))
    plain = in_tree("bookworm", "python3 /opt/demo.py")
    done = in_tree("bookworm", "dpkg --install /opt/libaccel.deb && dpkg --verify accel-config libaccel-config-dev libaccel-config1 && test -x /usr/bin/accel-config")
    tap.ok(done.returncode == 0, "it installs into a bare Debian, beside accel-config and libaccel-config-dev", done.stdout[-300:], done.stderr[-800:])
    done = in_tree("bookworm", "python3 /opt/demo.py")
    tap.ok(done.returncode == 0 and done.stdout == plain.stdout and "False" in done.stdout and not done.stderr and not (tree / "etc/ld.so.preload").exists(),
           "and is not active until a program asks for it", plain.stdout, done.stdout, plain.stderr[-500:])
    asked = plain.stdout.replace("False", "True")
    done = in_tree("bookworm", "accel run -v -- python3 /opt/demo.py")
    tap.ok(done.returncode == 0 and done.stdout == asked and lines_for(done, sym="cblas_dgemm", ran="cpu", why="no_gpu"), "accel run without a GPU: the same numbers",
           asked, done.stdout, done.stderr[-800:])
    done = in_tree("bookworm", "accel run -v -- python3 /opt/demo.py", {"ACCEL_CUDA_DIR": "/opt/testgpu", "ACCEL_POLICY": "gpu"})
    tap.ok(done.returncode == 0 and done.stdout == asked and lines_for(done, sym="cblas_dgemm", ran="gpu0"), "with a GPU, the calls go there", asked, done.stdout, done.stderr[-800:])
    done = in_tree("bookworm", "accel --version && bash -c 'source /usr/share/bash-completion/completions/accel' && dpkg --verify libaccel")
    tap.ok(done.returncode == 0 and VERSION in done.stdout and "\nwithout kernels of its own: built without nvcc\n" in done.stdout, "the tool says its version, and what the build has left out", done.stdout, done.stderr[-500:])
    done = in_tree("bookworm", "dpkg --purge libaccel && rm -rf /opt/*")
    left = files_of("bookworm") ^ before
    tap.ok(done.returncode == 0 and not left, "purged, it leaves nothing", *sorted(left)[:5], done.stderr[-500:])
finally:
    shutil.rmtree(folder, ignore_errors=True)
tap.done()
