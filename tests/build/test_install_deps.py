#!/usr/bin/python3 -B
"""scripts/install-deps with an apt-get and a dpkg that only write down how they are called: what an installation that was cut off has left is
finished before apt-get, which refuses everything until then."""

import os
import subprocess
import tempfile
from pathlib import Path

from lib.programs import ROOT
from lib.tap import Tap

tap = Tap()
WRITTEN = """#!/bin/sh
echo "${0##*/} $*" >>"$CALLS"
[ "${0##*/}" != "$FAILS" ] || exit 1
"""

with tempfile.TemporaryDirectory() as folder:
    folder = Path(folder)
    calls, updates = folder / "calls", folder / "admin/updates"
    updates.mkdir(parents=True)
    for name in ("apt-get", "dpkg", "dpkg-query", "sudo"):
        (folder / name).write_text(WRITTEN if name != "sudo" else '#!/bin/sh\nexec "$@"\n')
        (folder / name).chmod(0o755)

    def install(fails=""):
        calls.write_text("")
        done = subprocess.run(["scripts/install-deps", "fuzz"], cwd=ROOT, text=True, capture_output=True, stdin=subprocess.DEVNULL, env={
            **os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "CALLS": str(calls), "FAILS": fails, "DPKG_ADMINDIR": str(folder / "admin")})
        return done, [line for line in calls.read_text().splitlines() if not line.startswith("dpkg-query ")]

    done, made = install()
    tap.ok(done.returncode == 0 and [line.split()[:3] for line in made] == [["apt-get", "-q", "update"], ["apt-get", "-q", "install"]] and not done.stderr,
           "what is missing is installed", *made, done.stderr)
    (updates / "0000").touch()
    done, after = install()
    tap.ok(done.returncode == 0 and after == ["dpkg --configure -a", *made], "after what an interrupted installation has left", *after, done.stderr)
    tap.ok(done.stderr == "install-deps: an earlier installation was interrupted; finishing it first: dpkg --configure -a\n", "and a line says so", done.stderr)
    done, after = install(fails="dpkg")
    tap.ok(done.returncode == 0 and after == ["dpkg --configure -a", *made] and "could not be configured" in done.stderr,
           "apt-get has the last word of packages that dpkg cannot configure", *after, done.stderr)
    done, after = install(fails="apt-get")
    tap.ok(done.returncode != 0 and after == ["dpkg --configure -a", made[0]], "a failure of apt-get's is the script's", *after, done.stderr)

tap.done()
