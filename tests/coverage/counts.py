"""What gcov counted: of each branch how often it was taken, and of each line by which tests it was run.

Each test writes its counts to a folder of its own (GCOV_PREFIX), in the build's layout; the build has the notes (*.gcno)."""

import json
import os
import subprocess
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def of_folder(folder, build):
    """What gcov says of each source that has counts in the folder: its "files" entries."""
    data = sorted(path.relative_to(folder) for path in folder.rglob("*.gcda"))
    for name in data:
        notes = (folder / name).with_suffix(".gcno")
        if not notes.exists():
            notes.symlink_to(build.resolve() / name.with_suffix(".gcno"))
    if not data:
        return []
    done = subprocess.run(["gcov", "-t", "-j", "-b", *map(str, data)], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return [entry for line in done.stdout.splitlines() for entry in json.loads(line)["files"]]


class Counts:
    def __init__(self):
        self.branches = defaultdict(Counter)  # (file, line) -> edge -> times; edges in the compiler's order
        self.tests = defaultdict(lambda: defaultdict(set))  # file -> line -> tests that ran it

    def add(self, test, entries):
        for entry in entries:
            of_file = self.tests[entry["file"]]
            edges = Counter()
            for line in entry["lines"]:
                number = line["line_number"]
                of_file[number] |= {test} if line["count"] else set()
                for branch in line["branches"]:
                    self.branches[entry["file"], number][edges[number]] += branch["count"]
                    edges[number] += 1


def read(folders, build):
    """The counts of {test: folder}."""
    counts = Counts()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for test, entries in zip(folders, pool.map(lambda folder: of_folder(folder, build), folders.values())):
            counts.add(test, entries)
    return counts
