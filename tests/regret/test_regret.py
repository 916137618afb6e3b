#!/usr/bin/python3 -B
"""What the decisions cost, replayed from recorded times: of the test GPU as a fast, a slow and a busy device, and of each real
GPU whose recording is kept. The goals are in replay.c. Nothing is timed here: the same files give the same result."""

import pathlib
import re
import subprocess
import tempfile

from lib.programs import BUILD, ROOT
from lib.tap import Tap

REPLAY = BUILD / "regret/replay"
FOLDERS = (ROOT / "tests/regret/recorded", ROOT / "docs/measurements/regret")

tap = Tap()


def replay(times, model):
    return subprocess.run([REPLAY, times, model], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


recordings = sorted(path for folder in FOLDERS for path in folder.glob("*.times"))
names = {path.stem for path in recordings}
tap.ok({"fast", "slow", "busy"} <= names, "the recordings of the test GPU are there", *sorted(names))
for path in recordings:
    done = replay(path, path.with_suffix(".model"))
    lines = done.stdout.splitlines()
    tap.ok(done.returncode == 0, f"{path.stem}: {lines[-1] if lines else 'nothing'}", *lines)

# A model of another device does not pass: the replay can fail.
fast, slow = (FOLDERS[0] / name for name in ("fast", "slow"))
done = replay(slow.with_suffix(".times"), fast.with_suffix(".model"))
tap.ok(done.returncode == 1, "the slow device with the fast one's figures misses the goals", done.stdout[-500:])

# The same times, said to be of schedules: large calls are estimated by them, and by their rates.
with tempfile.TemporaryDirectory() as folder:
    times = pathlib.Path(folder) / "fast.times"
    times.write_text(fast.with_suffix(".times").read_text().replace("# fast ", "# fast schedules ", 1))
    done = replay(times, fast.with_suffix(".model"))
counts = [int(re.search(r"^calls with a schedule (\d+)$", text, re.M)[1]) for text in (done.stdout, replay(fast.with_suffix(".times"), fast.with_suffix(".model")).stdout)]
tap.ok(done.returncode == 0 and counts[0] > 100 and counts[1] == 0, f"{counts[0]} calls are estimated by their schedules, where the recording has those", done.stdout[-500:])

tap.done()
