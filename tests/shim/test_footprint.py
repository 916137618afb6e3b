#!/usr/bin/python3 -B
"""A preload costs a program that calls no BLAS at most 512 KiB of resident memory, as one sees it from outside: pages of the file that its
start touches, with those that the kernel maps around them, and what is written. Most processes that inherit it are such programs. The limit is for
kernels that map 64 KiB around a page (fault_around_bytes, of debugfs), as they do unless they are told otherwise."""

import re
import subprocess
import time
from pathlib import Path

from lib.programs import BUILD, clean_env
from lib.tap import Tap

LIMIT = 512  # KiB
LIBRARY = BUILD / "libaccel.so"
tap = Tap()


def resident(preload, **settings):
    """KiB by mapping, of a process that sleeps. At addresses that are the same each time: what the kernel maps around a page depends on them."""
    process = subprocess.Popen(["setarch", "-R", "/bin/sleep", "600"], env={**clean_env("/nonexistent"), **({"LD_PRELOAD": str(LIBRARY)} if preload else {}), **settings})
    try:
        while process.poll() is None and "(sleep) S " not in Path(f"/proc/{process.pid}/stat").read_text():  # its start is over: it does sleep
            time.sleep(0.02)
        text = Path(f"/proc/{process.pid}/smaps").read_text()
    finally:
        process.kill()
        process.wait()
    found = []
    for header, body in re.findall(r"(?m)^([0-9a-f]+-[0-9a-f]+ .*)\n((?:[A-Z]\w+:.*\n)+)", text):
        fields = header.split(None, 5)
        found.append((fields[5] if len(fields) > 5 else "", int(re.search(r"^Rss:\s+(\d+)", body, re.M)[1]), header))
    return found


resident(True)  # the file is in the page cache from now on
without, preloaded = resident(False), resident(True)
added = sum(size for _, size, _ in preloaded) - sum(size for _, size, _ in without)
seen = any(name == str(LIBRARY) for name, _, _ in preloaded)
tap.ok(seen and 0 < added <= LIMIT, f"a preload adds at most {LIMIT} KiB to a program that calls nothing: {added}", *(f"{size:5} {header}" for _, size, header in preloaded))
for what, settings in ("", {}), (", also where settings are read", {"ACCEL_CUDA_DIR": "/usr", "ACCEL_POLICY": "auto"}), (", also with ACCEL=0", {"ACCEL": "0"}):
    mapped = resident(True, **settings)
    own = sum(size for name, size, _ in mapped if name == str(LIBRARY))
    tap.ok(0 < own <= LIMIT * 3 // 4, f"of which the library's own file has most{what}: {own}", *(f"{size:5} {header}" for name, size, header in mapped if name == str(LIBRARY)))
    started = [size for name, size, header in mapped if name == str(LIBRARY) and " r-xp " in header]
    tap.ok(started and max(started) <= 64, f"the functions that its start runs lie together{what}: {started}")

relocations = subprocess.run(["readelf", "-rW", LIBRARY], stdout=subprocess.PIPE, text=True).stdout.count("R_X86_64_RELATIVE")
names = len(re.findall(r"\w+;", (BUILD / "symbols.map").read_text()))
tap.ok(names > 2000 and relocations < names * 3 // 4, "the dynamic linker does not write to a place for each exported name", relocations, names)
tap.done()
