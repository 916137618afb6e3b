#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""A preload costs a program that calls no BLAS at most 512 KiB of resident memory, as one sees it from outside: pages
of the file that its start touches, with those that the kernel maps around them, and what is written. Most processes
that inherit it are such programs. The limit is for kernels that map 64 KiB around a page (fault_around_bytes, of
debugfs), as they do unless they are told otherwise. Linux 6.18 maps more of a file that was written in large pieces,
which its page cache keeps in large pieces: what is measured is a copy that was written page by page."""

import os
import re
import subprocess
import time
from collections import namedtuple
from pathlib import Path

import pytest

from lib.programs import BUILD, clean_env

LIMIT = 512  # KiB


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("footprint") / "libaccel.so"
    with open(BUILD / "libaccel.so", "rb") as built, open(path, "wb", buffering=0) as copy:
        while page := built.read(os.sysconf("SC_PAGE_SIZE")):
            copy.write(page)
    resident(path)  # it is in the page cache from now on
    return str(path)


def readelf(option, path):
    return subprocess.run(["readelf", option, path], stdout=subprocess.PIPE, text=True).stdout


@pytest.fixture(scope="module")
def section(library):
    """Where the functions of shim/start.ld lie: begin and length."""
    found = re.search(r" accel_start +PROGBITS +([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+)", readelf("-SW", library))
    if not found:
        pytest.skip("the linker does not take shim/start.ld")
    return [int(number, 16) for number in found.groups()]


# kib: by the names of smaps.
Mapping = namedtuple("Mapping", "file header kib")


def mappings(smaps):
    found = []
    for header, body in re.findall(r"(?m)^([0-9a-f]+-[0-9a-f]+ .*)\n((?:[A-Z]\w+:.*\n)+)", smaps):
        fields = header.split(None, 5)
        kib = {name: int(size) for name, size in re.findall(r"(?m)^(\w+):\s+(\d+) kB", body)}
        found.append(Mapping(fields[5] if len(fields) > 5 else "", header, kib))
    return found


def resident(preload=None, **settings):
    """KiB by mapping, of a process that sleeps: (file, size, header). At addresses that are the same each time: what
    the kernel maps around a page depends on them. Of other files, only what the process has written: how many of their
    pages the kernel maps around one depends on what is in the page cache, which all processes share."""
    preloads = {"LD_PRELOAD": str(preload)} if preload else {}
    process = subprocess.Popen(["setarch", "-R", "/bin/sleep", "600"],
                               env={**clean_env("/nonexistent"), **preloads, **settings})
    try:
        while process.poll() is None and "(sleep) S " not in Path(f"/proc/{process.pid}/stat").read_text():
            time.sleep(0.02)  # its start is over when it does sleep
        text = Path(f"/proc/{process.pid}/smaps").read_text()
    finally:
        process.kill()
        process.wait()
    return [(mapping.file, mapping.kib["Rss" if mapping.file == preload else "Anonymous"], mapping.header) for mapping in mappings(text)]


def test_preload_adds_little_to_a_program_that_calls_nothing(library):
    without, preloaded = resident(), resident(library)
    added = sum(size for _, size, _ in preloaded) - sum(size for _, size, _ in without)
    own = [size for name, size, _ in preloaded if name == library]
    assert own
    assert 0 < added <= LIMIT, "\n".join(f"{size:5} {header}" for _, size, header in preloaded)
    assert sum(own) <= LIMIT * 3 // 4, "the library's own file has most of it"


@pytest.mark.parametrize("settings", ({}, {"ACCEL_CUDA_DIR": "/usr", "ACCEL_POLICY": "auto"}, {"ACCEL": "0"}),
                         ids=("no setting", "settings", "ACCEL=0"))
def test_functions_that_a_start_runs_lie_together(settings, library, section):
    """Those of shim/start.ld, in pieces of 64 KiB: no others are touched, whatever the settings."""
    begin, length = section
    together = 64 * ((begin + length - 1 >> 16) - (begin >> 16) + 1)
    code = [size for name, size, header in resident(library, **settings) if name == library and " r-xp " in header]
    assert len(code) == 1
    assert 0 < code[0] <= together


# ---- What the child of a fork writes to, and runs, lies together, too: configure scripts, servers
# and pools of processes fork often ----

MOST_FAULTS = 4
FORK = """
import os
child = os.fork()
if child == 0:
    print(open("/proc/self/smaps").read(), flush=True)
    os._exit(0)
os.waitpid(child, 0)"""


def test_child_of_a_fork_has_few_page_faults_for_it(library, section):
    """One for each page that the child writes to, and for each 64 KiB of the file of which it has not its parent's
    copies. To count all of the child's faults would not do: where other libraries lie depends on this one's length, and
    so does which of their pages are mapped together."""
    done = subprocess.run(["setarch", "-R", "/usr/bin/python3", "-S", "-E", "-c", FORK], stdout=subprocess.PIPE,
                          text=True, env={**clean_env("/nonexistent"), "LD_PRELOAD": library}, check=True)
    child = mappings(done.stdout)
    # The variables behind the file's own have no name.
    own = [mapping for before, mapping in zip(child, child[1:])
           if mapping.file == library or (not mapping.file and before.file == library)]
    written = sum(mapping.kib["Private_Dirty"] for mapping in own if mapping.kib["Anonymous"])
    written = written * 1024 // os.sysconf("SC_PAGE_SIZE")
    read = sum(-(-mapping.kib["Rss"] // 64) for mapping in own if not mapping.kib["Anonymous"])
    assert written > 0 and read > 0
    assert written + read <= MOST_FAULTS, "\n".join(f"{mapping.header} {mapping.kib}" for mapping in own)


def test_variables_that_are_not_large_have_no_more_bytes_than_two_pages(library, section):
    """A large one among the others drives them apart: see accel_large in shim/start.ld."""
    small = re.search(r" \.bss +NOBITS +[0-9a-f]+ [0-9a-f]+ ([0-9a-f]+)", readelf("-SW", library))
    assert int(small[1], 16) <= 2 * 4096


def test_dynamic_linker_does_not_write_to_a_place_for_each_exported_name_nor_for_each_routine(library):
    names = len(re.findall(r"\w+;", (BUILD / "symbols.map").read_text()))
    assert names > 2000
    assert readelf("-rW", library).count("R_X86_64_RELATIVE") < names // 2
