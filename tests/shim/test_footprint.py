#!/usr/bin/python3 -B
"""A preload costs a program that calls no BLAS at most 512 KiB of resident memory, as one sees it from outside: pages of the file that its
start touches, with those that the kernel maps around them, and what is written. Most processes that inherit it are such programs. The limit is for
kernels that map 64 KiB around a page (fault_around_bytes, of debugfs), as they do unless they are told otherwise. Linux 6.18 maps more of a file that was written in
large pieces, which its page cache keeps in large pieces: what is measured is a copy that was written page by page."""

import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

from lib.programs import BUILD, clean_env
from lib.tap import Tap

LIMIT = 512  # KiB
folder = tempfile.TemporaryDirectory(prefix="accel-footprint-")
LIBRARY = Path(folder.name, "libaccel.so")
with open(BUILD / "libaccel.so", "rb") as built, open(LIBRARY, "wb", buffering=0) as copy:
    while page := built.read(os.sysconf("SC_PAGE_SIZE")):
        copy.write(page)
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
own = sum(size for name, size, _ in preloaded if name == str(LIBRARY))
tap.ok(seen and own <= LIMIT * 3 // 4, f"of which the library's own file has most: {own}")

# The functions of shim/start.ld, in pieces of 64 KiB: no others are touched, whatever the settings.
section = re.search(r" accel_start +PROGBITS +([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+)", subprocess.run(["readelf", "-SW", LIBRARY], stdout=subprocess.PIPE, text=True).stdout)
if section:
    begin, length = (int(number, 16) for number in section.groups())
    together = 64 * ((begin + length - 1 >> 16) - (begin >> 16) + 1)
    for what, settings in ("no setting", {}), ("settings", {"ACCEL_CUDA_DIR": "/usr", "ACCEL_POLICY": "auto"}), ("ACCEL=0", {"ACCEL": "0"}):
        code = [(size, header) for name, size, header in resident(True, **settings) if name == str(LIBRARY) and " r-xp " in header]
        tap.ok(len(code) == 1 and 0 < code[0][0] <= together, f"{what}: the functions that a start runs lie together, in {together} KiB", *code)
else:
    tap.skip("the functions that a start runs lie together", "the linker does not take shim/start.ld")

# What the child of a fork writes to, and runs, lies together, too: configure scripts, servers and
# pools of processes fork often.
FORKS, MOST_FAULTS = 50, 8
FORK = f"""
import os, resource
def fork():
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
fork()
before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
for _ in range({FORKS}):
    fork()
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt - before)"""
# Where pages lie together, depends on addresses: the same each time.
alone, beside = (subprocess.run(["setarch", "-R", "/usr/bin/python3", "-S", "-E", "-c", FORK], stdout=subprocess.PIPE, text=True,
                                env={**clean_env("/nonexistent"), **preload}).stdout for preload in ({}, {"LD_PRELOAD": str(LIBRARY)}))
if section:
    each = (int(beside) - int(alone)) / FORKS
    tap.ok(int(alone) > FORKS and each <= MOST_FAULTS, f"the child of a fork has at most {MOST_FAULTS} page faults more: {each:.1f}", alone, beside)
    # A large variable among the others drives them apart: see accel_large in shim/start.ld.
    small = re.search(r" \.bss +NOBITS +[0-9a-f]+ [0-9a-f]+ ([0-9a-f]+)", subprocess.run(["readelf", "-SW", LIBRARY], stdout=subprocess.PIPE, text=True).stdout)
    tap.ok(small and int(small[1], 16) <= 2 * 4096, "variables that are not large have no more bytes than two pages", small)
else:
    tap.skip("what a fork's child writes to lies together", "the linker does not take shim/start.ld")

relocations = subprocess.run(["readelf", "-rW", LIBRARY], stdout=subprocess.PIPE, text=True).stdout.count("R_X86_64_RELATIVE")
names = len(re.findall(r"\w+;", (BUILD / "symbols.map").read_text()))
tap.ok(names > 2000 and relocations < names // 2, "the dynamic linker does not write to a place for each exported name, nor for each routine", relocations, names)
tap.done()
