#!/usr/bin/python3 -B
"""What the decisions cost, replayed from recorded times: of the test GPU as a fast, a slow and a busy device, and of each real
GPU whose recording is kept. The goals are in replay.c. Nothing is timed here: the same files give the same result."""

import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "programs"))
from harness import BUILD, ROOT, Tap  # noqa: E402

REPLAY = BUILD / "regret/replay"
FOLDERS = (ROOT / "tests/regret/recorded", ROOT / "docs/measurements/regret")

# What misses the goals as it stands (README, What it costs), and no more than that may: calls beyond 1.5 times their better
# side, the worst of them, and the sum with the extrapolated times over that of the better sides.
MISSES = {"slow": (1, 1.69, 1.05), "busy": (5, 2.76, 1.089)}

tap = Tap()


def replay(times, model):
    return subprocess.run([REPLAY, times, model], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


recordings = sorted(path for folder in FOLDERS for path in folder.glob("*.times"))
names = {path.stem for path in recordings}
tap.ok({"fast", "slow", "busy"} <= names, "the recordings of the test GPU are there", *sorted(names))
for path in recordings:
    done = replay(path, path.with_suffix(".model"))
    lines = done.stdout.splitlines()
    met = done.returncode == 0
    if path.stem in MISSES:
        most, worst, most_sum = MISSES[path.stem]
        sums = [float(ratio) for ratio in re.findall(r": ([\d.]+) times \(<=", done.stdout)]
        calls = re.search(r"better side (\d+), worst ([\d.]+) ", done.stdout)
        tap.ok(not met, f"{path.stem}: still misses a goal, or the list of misses is out of date", *lines)
        met = len(sums) == 2 and sums[0] <= most_sum and sums[1] <= 1.05 and int(calls[1]) <= most and float(calls[2]) <= worst
    tap.ok(met, f"{path.stem}: {lines[-1] if lines else 'nothing'}", *lines)

# A model of another device does not pass: the replay can fail.
fast, slow = (FOLDERS[0] / name for name in ("fast", "slow"))
done = replay(slow.with_suffix(".times"), fast.with_suffix(".model"))
tap.ok(done.returncode == 1, "the slow device with the fast one's figures misses the goals", done.stdout[-500:])

tap.done()
