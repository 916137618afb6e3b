#!/usr/bin/python3 -B
"""What the fuzzers start from, and what they have found: every file goes through its target, without a fuzzer."""

from pathlib import Path

from lib.programs import start
from lib.tap import Tap

HERE = Path(__file__).resolve().parent
tap = Tap()
targets = sorted(path.name for path in (HERE / "corpus").iterdir())
tap.ok(targets and all((HERE / f"{name}.c").exists() for name in targets), "each target has a corpus", *targets)
for name in targets:
    files = sorted(str(path) for kind in ("corpus", "findings") for path in (HERE / kind / name).glob("*"))
    done = start(f"replay_{name}", *files)
    through = done.stdout.splitlines()
    missing = [path for path in files if path not in through]
    tap.ok(done.returncode == 0 and len(files) > 3 and through == files, f"{name}: {len(files)} inputs", *missing[:1], done.returncode,
           done.stderr)
tap.done()
