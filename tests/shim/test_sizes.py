#!/usr/bin/python3 -B
"""What libaccel knows of a program's BLAS: the size of its integers and of its elements, which no name tells. The library's code is read;
none of it is called, as it may print, fault, or end the program."""

import itertools
import platform
import re
import subprocess
import tempfile
from pathlib import Path

from lib.log import lines_for, said
from lib.programs import BUILD, LOG, LONG, NO_GPU, ROOT, SHIM, TEST_GPU, TESTS, start
from lib.tap import Tap

tap = Tap()
SOURCES = ROOT / "tests/fixtures/providers"
LIBRARIES = Path("/usr/lib", platform.machine() + "-linux-gnu")
MODES = {"no GPU": {**NO_GPU, **LOG}, "test GPU": {**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0"}}
WITHOUT = {"turned off": {**SHIM, "ACCEL": "0"}, "the CPU's": {**NO_GPU, **LOG, "ACCEL_POLICY": "cpu"}}
folder = Path(tempfile.mkdtemp(prefix="accel-sizes-"))


def build(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=folder)
    return done.returncode == 0 or tap.ok(False, f"built: {' '.join(map(str, command))}", done.stderr)


def is_silent(done):
    return not [line for line in said(done) if "no GPU is used" not in line]


def sizes(*libraries):
    """{(library, name): (bits of INTEGER, bytes of REAL, of DOUBLE PRECISION)}"""
    done = subprocess.run([TESTS / "sizes", *libraries], capture_output=True, text=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    return {(line[0], line[1]): tuple(map(int, line[2:])) for line in lines if len(line) == 5}


def fortran(name, *options):
    return build("gfortran", "-shared", "-fPIC", *options, SOURCES / "promoted.f90", "-o", f"lib{name}.so")


# ---- What compilers make of the same lines ----

# Bits of INTEGER, bytes of REAL and of DOUBLE PRECISION.
PROMOTED = {
    "": (32, 4, 8),
    "-fdefault-integer-8": (64, 4, 8),
    "-freal-8-real-16": (32, 4, 16),
    "-freal-8-real-10": (32, 4, 10),
    "-fdefault-real-16": (32, 16, 16),
    "-fdefault-real-8 -fdefault-double-8": (32, 8, 8),
    "-fdefault-integer-8 -freal-4-real-16": (64, 16, 8),
}
MORE = {
    "-fdefault-real-8": (32, 8, 16),
    "-fdefault-real-10": (32, 10, 16),
    "-freal-4-real-8": (32, 8, 8),
    "-freal-4-real-10": (32, 10, 8),
    "-freal-4-real-16": (32, 16, 8),
    "-freal-8-real-4": (32, 4, 4),
    "-fdefault-integer-8 -freal-8-real-16": (64, 4, 16),
}
X86 = platform.machine() == "x86_64"
LEVELS = ["-O0", "-O2"] + (["-O1", "-O3", "-Os", "-O2 -fno-omit-frame-pointer", "-O2 -fno-plt"] if LONG else [])
LEVELS += ["-O3 -march=skylake-avx512"] if X86 else []
expected = {**PROMOTED, **MORE} if LONG else PROMOTED
for number, (level, (options, wanted)) in enumerate(itertools.product(LEVELS, expected.items())):
    name = f"{level} {options}".strip()
    if not X86 and "10" in options:
        continue  # there is no such type
    if fortran(f"promoted{number}", *level.split(), *options.split()):
        found = sizes(folder / f"libpromoted{number}.so")
        # Of each name, what its own precision needs.
        told = {name: (bits, real if name[0] in "sc" else double) for (_, name), (bits, real, double) in found.items()}
        bits, real, double = wanted
        tap.ok(told == {"sgemm_": (bits, real), "cgemm_": (bits, real), "dgemm_": (bits, double), "zgemm_": (bits, double)}, f"sizes by code: {name}", told, wanted)

# ---- Libraries of this machine ----

for path, bits in (("libopenblas.so.0", 32), ("libopenblas64.so.0", 64), ("blas/libblas.so.3", 32), ("blas64/libblas64.so.3", 64),
                   ("lapack/liblapack.so.3", 32), ("openblas-pthread/libblas.so.3", 32), ("openblas64-pthread/liblapack64.so.3", 64),
                   ("libblis.so.4", 32), ("libgslcblas.so.0", 32)):
    found = sizes(LIBRARIES / path) if (LIBRARIES / path).exists() else None
    if found is None:
        tap.skip(f"sizes by code: {path}", "it is not installed")
        continue
    tap.ok(found and all(told[0] == bits and told[1 if name[-6] in "sc" and "gemm" in name else 2] in (0, 4, 8) for (_, name), told in found.items())
           and {told[1] for told in found.values()} == {0, 4} and {told[2] for told in found.values()} == {0, 8}, f"sizes by code: {path}", found)
found = sizes(TESTS / "libentry_provider.so")
tap.ok(all(told == (64 if "64" in name else 32, *told[1:]) for (_, name), told in found.items() if "potrf" not in name) and len(found) > 40, "sizes by code: every name's own", found)

# ---- The length of each instruction ----

for path in [LIBRARIES / "blas/libblas.so.3", LIBRARIES / "libm.so.6"] if X86 else []:
    code = subprocess.run(["objdump", "-dw", "--no-show-raw-insn", path], capture_output=True, text=True).stdout
    # A section's last one has nothing behind it.
    places = re.findall(r"(?m)^Disassembly|^ *([0-9a-f]+):\t(?!.*(?:\(bad\)|\.byte))", code)
    done = subprocess.run([TESTS / "sizes", "-l", path], input="\n".join(place or "0" for place in places), capture_output=True, text=True)
    counts = dict(re.findall(r"(\w+)=(\d+)", done.stdout))
    tap.ok(int(counts.get("read", 0)) > 10000 and counts["other"] == "0", f"lengths of instructions: {path.name}, {done.stdout.strip()}")

# ---- Programs with a promoted BLAS ----

for options, wanted in expected.items():
    if not X86 and "10" in options:
        continue
    name = f"BLAS built with {options or 'the usual sizes'}"
    flags = ["-O1", *options.split()]
    if not fortran("called", *flags) or not build("gfortran", *flags, SOURCES / "promoted_calls.f90", "-L.", "-lcalled", "-Wl,-rpath," + str(folder), "-o", "called"):
        continue
    native = start(str(folder / "called"))
    tap.ok(native.returncode == 0 and native.stdout.count(" T") == 2, f"{name}: right without libaccel", native.stdout, native.stderr)
    for mode, env in {**MODES, **WITHOUT}.items():
        done = start(str(folder / "called"), env=env)
        tap.ok((done.returncode, done.stdout) == (0, native.stdout) and is_silent(done), f"{name}, {mode}: the same", done.returncode, done.stdout, done.stderr)
        if mode in MODES:
            takes = {"dgemm_": wanted[2] == 8, "sgemm_": wanted[1] == 4}
            told = {f["sym"]: (f["ran"], f["why"] == "unsupported", f.get("m")) for f in lines_for(done)}
            place = "gpu0" if mode == "test GPU" else "cpu"
            tap.ok(told == {sym: (place, False, "96") if takes[sym] else ("cpu", True, None) for sym in takes}, f"{name}, {mode}: what has the usual sizes is taken", told)

# ---- Libraries whose other functions nobody may call ----

OPTIONS = ["", "-O0", "-DIN_C", "-DIN_C -O0", "-DLONG_TOO", "-DJUMPS", "-DONLY_DOT"] + (["-DLAYERS", "-DLAYERS -fcf-protection=full"] if X86 else [])
for options in OPTIONS:
    for bits in 32, 64:
        name = f"a library that ends programs, {bits} bits {options}".strip()
        flags = ["-w", "-O2", f"-DINTEGER=int{bits}_t", *options.split()]
        if not build("gcc", *flags, "-shared", "-fPIC", SOURCES / "strict.c", "-o", "libstrict.so") or \
           not build("gcc", *flags, SOURCES / "strict_calls.c", "-L.", "-lstrict", "-Wl,-rpath," + str(folder), "-o", "strict"):
            continue
        for mode, env in {"without libaccel": {}, **MODES, **WITHOUT}.items():
            done = start(str(folder / "strict"), env=env)
            tap.ok((done.returncode, done.stdout) == (0, "right\nright\n") and is_silent(done), f"{name}, {mode}: right", done.returncode, done.stdout, done.stderr)
            if mode in MODES:
                told = [(f["ran"], f.get("m")) for f in lines_for(done)]
                place = "gpu0" if mode == "test GPU" else "cpu"
                tap.ok(told == [(place, "96"), (place, "97")], f"{name}, {mode}: its calls are known", told, done.stderr)

        # Nobody has chosen a layer: the environment does.
        if "-DLAYERS" in options:
            done = start(str(folder / "strict"), env={**MODES["test GPU"], "MKL_INTERFACE_LAYER": "GNU,ILP64" if bits == 64 else "LP64"})
            told = [(f["ran"], f.get("m")) for f in lines_for(done)]
            tap.ok((done.returncode, done.stdout) == (0, "right\nright\n") and told == [("gpu0", "96"), ("gpu0", "97")], f"{name}, chosen by the environment", told, done.stdout, done.stderr)

def strict(name, bits, options, library="strict", wanted=("gpu0", "96", "97"), linked=()):
    """A library in which nothing else tells, and a program that calls it: right, and its calls are known or, without what tells, passed on."""
    flags = ["-w", "-O2", f"-DINTEGER=int{bits}_t", *options.split()]
    if not build("gcc", *flags, "-shared", "-fPIC", SOURCES / "strict.c", *linked, "-o", f"lib{library}.so") or \
       not build("gcc", *flags, SOURCES / "strict_calls.c", "-L.", f"-l{library}", "-Wl,-rpath," + str(folder), "-o", "strict"):
        return
    for mode, env in {"without libaccel": {}, "test GPU": MODES["test GPU"]}.items():
        done = start(str(folder / "strict"), env=env)
        tap.ok((done.returncode, done.stdout) == (0, "right\nright\n") and is_silent(done), f"{name}, {bits} bits, {mode}: right", done.returncode, done.stdout, done.stderr)
    told = [(f["ran"], f.get("m")) for f in lines_for(done)]
    place, *sizes_of_calls = wanted
    tap.ok(told == [(place, size) for size in sizes_of_calls], f"{name}, {bits} bits: its calls are {'known' if place == 'gpu0' else 'passed on'}", told, done.stderr)


for bits, name in (32, "flexiblas"), (64, "flexiblas64"):
    strict(f"FlexiBLAS, lib{name}.so", bits, "-DFLEXIBLAS", name)
for bits, name in (32, "scipy_isamax_"), (64, "scipy_isamax_64_"):
    strict(f"plain names beside {name}", bits, f"-DADDED={name}")
PASSED_ON = "cpu", None, None
strict("plain names beside another one", 32, "-DADDED=isamax_of_another", wanted=PASSED_ON)
if X86:
    strict("a library of layers, of which none is chosen", 32, "-DLAYERS -DNOT_CHOSEN")
    for options in "-DLAYERS -O0", "-DODD_LAYERS":
        strict(f"a library of layers that nobody can read, {options}", 32, options, wanted=PASSED_ON)

# One that tells nothing has the sizes of the one that it is linked to.
for bits in 32, 64:
    if build("gcc", "-w", "-O2", f"-DINTEGER=int{bits}_t", "-shared", "-fPIC", SOURCES / "strict.c", "-o", "libreal.so"):
        strict("a library that is linked to another one", bits, "-DADDED=isamax_of_another",
               linked=["-Wl,--no-as-needed", "-L.", "-lreal", "-Wl,-rpath," + str(folder)])

# A preload that has all of BLAS computes by itself, whatever it refers to: the library behind it is
# not what its calls cost.
if build("gcc", "-w", "-O2", "-DINTEGER=int32_t", "-DASKS", "-shared", "-fPIC", SOURCES / "strict.c", "-o", "libwhole.so") and \
   build("gcc", "-w", "-O2", "-DINTEGER=int32_t", SOURCES / "strict_calls.c", "-Wl,--no-as-needed", "-l:libblas.so.3", "-o", "strict"):
    for mode, env in MODES.items():
        preloads = f"{env['LD_PRELOAD']}:{folder}/libwhole.so"
        done = start(str(folder / "strict"), env={**env, "LD_PRELOAD": preloads, "ACCEL_LOG": "0", "ACCEL_SUMMARY": "1"})
        tap.ok((done.returncode, done.stdout) == (0, "right\nright\n"), f"a preload that is a BLAS, {mode}: right", done.returncode, done.stdout, done.stderr)
        libraries = [line for line in done.stderr.splitlines() if line.startswith("accel: CPU ")]
        tap.ok(all("libwhole.so" in line for line in libraries) and libraries, f"a preload that is a BLAS, {mode}: it is the CPU's", done.stderr)

# One that passes all on to another, which it opens at its first call: nobody can tell what it
# takes, but the other's call is seen.
flags = ["-w", "-O2", "-DINTEGER=int64_t"]
if build("gcc", *flags, "-shared", "-fPIC", SOURCES / "strict.c", "-o", "libreal.so") and \
   build("gcc", *flags, "-DLAZY", "-shared", "-fPIC", SOURCES / "strict.c", "-o", "libstrict.so") and \
   build("gcc", *flags, SOURCES / "strict_calls.c", "-L.", "-lstrict", "-Wl,-rpath," + str(folder), "-o", "strict"):
    for mode, env in {"without libaccel": {}, **MODES, **WITHOUT}.items():
        done = start(str(folder / "strict"), env={**env, "LAZY_BLAS": str(folder / "libreal.so")})
        tap.ok((done.returncode, done.stdout) == (0, "right\nright\n") and is_silent(done), f"a lazy library, {mode}: right", done.returncode, done.stdout, done.stderr)
        if mode == "test GPU":
            told = [(f["ran"], f["why"], f.get("m")) for f in lines_for(done)]
            tap.ok(sorted(told) == [("cpu", "unsupported", None)] * 2 + [("gpu0", "forced", "96"), ("gpu0", "forced", "97")], "a lazy library: the one behind it is known", told)
subprocess.run(["rm", "-r", folder])
tap.done()
