#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""What libaccel knows of a program's BLAS: the size of its integers and of its elements, which no name tells. The
library's code is read; none of it is called, as it may print, fault, or end the program."""

import platform
import re
import subprocess
from pathlib import Path

import pytest

from lib.log import lines_for, said
from lib.programs import LOG, LONG, NO_GPU, ROOT, SHIM, TEST_GPU, TESTS, start

SOURCES = ROOT / "tests/fixtures/providers"
LIBRARIES = Path("/usr/lib", platform.machine() + "-linux-gnu")
X86 = platform.machine() == "x86_64"
MODES = {"no GPU": {**NO_GPU, **LOG}, "test GPU": {**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0"}}
ALL_MODES = {
    "without libaccel": {}, **MODES, "turned off": {**SHIM, "ACCEL": "0"},
    "the CPU's": {**NO_GPU, **LOG, "ACCEL_POLICY": "cpu"}
}
WITH_LIBACCEL = [*ALL_MODES][1:]


def build(folder, *command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr


def linked(folder, name):
    """The compiler's words for a program with a library of this folder."""
    return ["-L.", f"-l{name}", f"-Wl,-rpath,{folder}"]


def check_output(done, stdout):
    """This is printed, and libaccel says nothing but that there is no GPU."""
    assert (done.returncode, done.stdout) == (0, stdout), done.stderr
    assert not [line for line in said(done) if "no GPU is used" not in line]


def sizes(*libraries):
    """{(library, name): (bits of INTEGER, bytes of REAL, of DOUBLE PRECISION)}"""
    done = subprocess.run([TESTS / "sizes", *libraries], capture_output=True, text=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    return {(line[0], line[1]): tuple(map(int, line[2:])) for line in lines if len(line) == 5}


def fortran(folder, name, options):
    build(folder, "gfortran", "-shared", "-fPIC", *options.split(), SOURCES / "promoted.f90", "-o", f"lib{name}.so")


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
EXPECTED = {options: wanted for options, wanted in {**PROMOTED, **(MORE if LONG else {})}.items()
            if X86 or "10" not in options}  # other machines have no such type
LEVELS = ["-O0", "-O2"] + (["-O1", "-O3", "-Os", "-O2 -fno-omit-frame-pointer", "-O2 -fno-plt"] if LONG else [])
LEVELS += ["-O3 -march=skylake-avx512"] if X86 else []


@pytest.mark.parametrize("options", EXPECTED)
@pytest.mark.parametrize("level", LEVELS)
def test_sizes_by_code(level, options, tmp_path):
    fortran(tmp_path, "promoted", f"{level} {options}")
    bits, real, double = EXPECTED[options]
    # Of each name, what its own precision needs.
    told = {name: (found[0], found[1] if name[0] in "sc" else found[2])
            for (_, name), found in sizes(tmp_path / "libpromoted.so").items()}
    assert told == {"sgemm_": (bits, real), "cgemm_": (bits, real), "dgemm_": (bits, double), "zgemm_": (bits, double)}


# ---- Libraries of this machine ----

INSTALLED = {
    "libopenblas.so.0": 32, "libopenblas64.so.0": 64, "blas/libblas.so.3": 32, "blas64/libblas64.so.3": 64,
    "lapack/liblapack.so.3": 32, "openblas-pthread/libblas.so.3": 32, "openblas64-pthread/liblapack64.so.3": 64,
    "libblis.so.4": 32, "libgslcblas.so.0": 32
}


@pytest.mark.parametrize("path", INSTALLED)
def test_sizes_by_code_of_an_installed_library(path):
    if not (LIBRARIES / path).exists():
        pytest.skip("it is not installed")
    found = sizes(LIBRARIES / path)
    assert {told[0] for told in found.values()} == {INSTALLED[path]}
    assert all(told[1 if name[-6] in "sc" and "gemm" in name else 2] in (0, 4, 8) for (_, name), told in found.items())
    assert {told[1] for told in found.values()} == {0, 4}
    assert {told[2] for told in found.values()} == {0, 8}


def test_sizes_by_code_are_every_names_own():
    found = sizes(TESTS / "libentry_provider.so")
    assert len(found) > 40
    assert not {
        name: told
        for (_, name), told in found.items() if "potrf" not in name and told[0] != (64 if "64" in name else 32)
    }


@pytest.mark.skipif(not X86, reason="the lengths of other machines' instructions are all alike")
@pytest.mark.parametrize("path", (LIBRARIES / "blas/libblas.so.3", LIBRARIES / "libm.so.6"), ids=lambda path: path.name)
def test_lengths_of_instructions(path):
    code = subprocess.run(["objdump", "-dw", "--no-show-raw-insn", path], capture_output=True, text=True).stdout
    # A section's last one has nothing behind it.
    places = re.findall(r"(?m)^Disassembly|^ *([0-9a-f]+):\t(?!.*(?:\(bad\)|\.byte))", code)
    done = subprocess.run([TESTS / "sizes", "-l", path], input="\n".join(place or "0" for place in places),
                          capture_output=True, text=True)
    counts = dict(re.findall(r"(\w+)=(\d+)", done.stdout))
    assert int(counts["read"]) > 10000
    assert counts["other"] == "0"


# ---- Programs with a promoted BLAS ----


@pytest.fixture(scope="module", params=EXPECTED, ids=lambda options: options or "the usual sizes")
def promoted(request, tmp_path_factory):
    """The sizes that a BLAS was built with, a program that calls it, and what that prints without libaccel."""
    folder = tmp_path_factory.mktemp("promoted")
    fortran(folder, "called", f"-O1 {request.param}")
    build(folder, "gfortran", "-O1", *request.param.split(), SOURCES / "promoted_calls.f90", *linked(folder, "called"),
          "-o", "called")
    done = start(str(folder / "called"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(" T") == 2
    return EXPECTED[request.param], str(folder / "called"), done.stdout


@pytest.mark.parametrize("mode", WITH_LIBACCEL)
def test_program_with_a_promoted_blas(promoted, mode):
    (_, real, double), program, wanted = promoted
    done = start(program, env=ALL_MODES[mode])
    check_output(done, wanted)
    if mode in MODES:  # what has the usual sizes is taken
        place = "gpu0" if mode == "test GPU" else "cpu"
        told = {f["sym"]: (f["ran"], f["why"] == "unsupported", f.get("m")) for f in lines_for(done)}
        assert told == {sym: (place, False, "96") if usual else ("cpu", True, None)
                        for sym, usual in (("dgemm_", double == 8), ("sgemm_", real == 4))}


# ---- Libraries whose other functions nobody may call ----

RIGHT = "right\nright\n"
OPTIONS = ["", "-O0", "-DIN_C", "-DIN_C -O0", "-DLONG_TOO", "-DJUMPS", "-DONLY_DOT"]
LAYERS = ["-DLAYERS", "-DLAYERS -fcf-protection=full"] if X86 else []


def strict(folder, bits, options="", library="strict", linked_to=()):
    """A program that calls a library in which nothing else tells."""
    flags = ["-w", "-O2", f"-DINTEGER=int{bits}_t", *options.split()]
    build(folder, "gcc", *flags, "-shared", "-fPIC", SOURCES / "strict.c", *linked_to, "-o", f"lib{library}.so")
    build(folder, "gcc", *flags, SOURCES / "strict_calls.c", *linked(folder, library), "-o", "strict")
    return str(folder / "strict")


def calls(done):
    return [(f["ran"], f.get("m")) for f in lines_for(done)]


@pytest.fixture(scope="module", params=[(options, bits) for options in OPTIONS + LAYERS for bits in (32, 64)],
                ids="{0[1]} bits {0[0]}".format)
def ending(request, tmp_path_factory):
    """A program with a library that ends programs."""
    options, bits = request.param
    return options, bits, strict(tmp_path_factory.mktemp("strict"), bits, options)


@pytest.mark.parametrize("mode", ALL_MODES)
def test_library_that_ends_programs(ending, mode):
    done = start(ending[2], env=ALL_MODES[mode])
    check_output(done, RIGHT)
    if mode in MODES:
        place = "gpu0" if mode == "test GPU" else "cpu"
        assert calls(done) == [(place, "96"), (place, "97")]


@pytest.mark.skipif(not X86, reason="such libraries are of x86-64")
@pytest.mark.parametrize("bits", (32, 64))
@pytest.mark.parametrize("options", LAYERS)
def test_library_of_layers_chosen_by_the_environment(options, bits, tmp_path):
    program = strict(tmp_path, bits, options)
    done = start(program, env={**MODES["test GPU"], "MKL_INTERFACE_LAYER": "GNU,ILP64" if bits == 64 else "LP64"})
    assert (done.returncode, done.stdout) == (0, RIGHT), done.stderr
    assert calls(done) == [("gpu0", "96"), ("gpu0", "97")]


def check_calls(program, wanted=(("gpu0", "96"), ("gpu0", "97"))):
    """Right with libaccel and without it; its calls are known or, without what tells, passed on."""
    check_output(start(program), RIGHT)
    done = start(program, env=MODES["test GPU"])
    check_output(done, RIGHT)
    assert calls(done) == list(wanted)


@pytest.mark.parametrize("bits, name", ((32, "flexiblas"), (64, "flexiblas64")))
def test_flexiblas(bits, name, tmp_path):
    check_calls(strict(tmp_path, bits, "-DFLEXIBLAS", name))


@pytest.mark.parametrize("bits, name", ((32, "scipy_isamax_"), (64, "scipy_isamax_64_")))
def test_plain_names_beside_scipys(bits, name, tmp_path):
    check_calls(strict(tmp_path, bits, f"-DADDED={name}"))


PASSED_ON = [("cpu", None)] * 2


def test_plain_names_beside_another_one(tmp_path):
    check_calls(strict(tmp_path, 32, "-DADDED=isamax_of_another"), PASSED_ON)


@pytest.mark.skipif(not X86, reason="such libraries are of x86-64")
def test_library_of_layers_of_which_none_is_chosen(tmp_path):
    check_calls(strict(tmp_path, 32, "-DLAYERS -DNOT_CHOSEN"))


@pytest.mark.skipif(not X86, reason="such libraries are of x86-64")
@pytest.mark.parametrize("options", ("-DLAYERS -O0", "-DODD_LAYERS"))
def test_library_of_layers_that_nobody_can_read(options, tmp_path):
    check_calls(strict(tmp_path, 32, options), PASSED_ON)


@pytest.mark.parametrize("bits", (32, 64))
def test_library_that_tells_nothing_has_the_sizes_of_the_one_that_it_is_linked_to(bits, tmp_path):
    build(tmp_path, "gcc", "-w", "-O2", f"-DINTEGER=int{bits}_t", "-shared", "-fPIC", SOURCES / "strict.c", "-o",
          "libreal.so")
    check_calls(
        strict(tmp_path, bits, "-DADDED=isamax_of_another", linked_to=["-Wl,--no-as-needed",
                                                                       *linked(tmp_path, "real")]))


@pytest.mark.parametrize("mode", MODES)
def test_preload_that_is_a_blas(mode, tmp_path):
    """A preload that has all of BLAS computes by itself, whatever it refers to: the library behind it is not what its
    calls cost."""
    flags = ["-w", "-O2", "-DINTEGER=int32_t"]
    build(tmp_path, "gcc", *flags, "-DASKS", "-shared", "-fPIC", SOURCES / "strict.c", "-o", "libwhole.so")
    build(tmp_path, "gcc", *flags, SOURCES / "strict_calls.c", "-Wl,--no-as-needed", "-l:libblas.so.3", "-o", "strict")
    done = start(
        str(tmp_path / "strict"), env={
            **MODES[mode], "LD_PRELOAD": f"{MODES[mode]['LD_PRELOAD']}:{tmp_path}/libwhole.so", "ACCEL_LOG": "0",
            "ACCEL_SUMMARY": "1"
        })
    libraries = [line for line in done.stderr.splitlines() if line.startswith("accel: CPU ")]
    assert (done.returncode, done.stdout) == (0, RIGHT), done.stderr
    assert libraries
    assert all("libwhole.so" in line for line in libraries)


@pytest.mark.parametrize("mode", ALL_MODES)
def test_lazy_library(mode, tmp_path):
    """One that passes all on to another, which it opens at its first call: nobody can tell what it takes, but the
    other's call is seen."""
    build(tmp_path, "gcc", "-w", "-O2", "-DINTEGER=int64_t", "-shared", "-fPIC", SOURCES / "strict.c", "-o",
          "libreal.so")
    build(tmp_path, "gcc", "-w", "-O2", "-DINTEGER=int64_t", "-DLAZY", "-shared", "-fPIC", SOURCES / "strict.c", "-o",
          "libstrict.so")
    build(tmp_path, "gcc", "-w", "-O2", "-DINTEGER=int64_t", SOURCES / "strict_calls.c", *linked(tmp_path, "strict"),
          "-o", "strict")
    done = start(str(tmp_path / "strict"), env={**ALL_MODES[mode], "LAZY_BLAS": str(tmp_path / "libreal.so")})
    check_output(done, RIGHT)
    if mode == "test GPU":
        told = sorted((f["ran"], f["why"], f.get("m")) for f in lines_for(done))
        assert told == [("cpu", "unsupported", None)] * 2 + [("gpu0", "forced", "96"), ("gpu0", "forced", "97")]
