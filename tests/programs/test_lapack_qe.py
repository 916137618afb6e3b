#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Quantum ESPRESSO, a plane-wave density-functional code: silicon to self-consistency, its eigenproblems on the GPU.

ld1.x makes the pseudopotential, without libaccel. Every line of pw.x's answer that is the same with OpenBLAS and with
the reference libraries, the total energy among them, has to be the same on the GPU.
"""

import re
from collections import namedtuple

import pytest

from lib.log import FAILURES, parse_moves
from lib.programs import TEST_GPU, run
from lib.regress import Row
from programs.harness import SILENT, check_same_bytes
from programs.lapack import IDLE, ONE_THREAD, routine

ATOM = """ &input
   title='Si', zed=14.0, rel=1, config='[Ne] 3s2 3p2 3d-1', iswitch=3, dft='PZ'
 /
 &inputp
   lloc=2, pseudotype=1, tm=.true., file_pseudopw='Si.UPF'
 /
3
3S  1  0  2.00  0.00  2.10  2.10  0.0
3P  2  1  2.00  0.00  2.10  2.10  0.0
3D  3  2 -2.00 -0.10  2.10  2.10  0.0
"""

# The cubic cell of eight atoms, one of them off its place, so that forces are not zero by symmetry.
CRYSTAL = """ &control
   calculation='scf', prefix='si', pseudo_dir='@FOLDER@', outdir='.', disk_io='none', tprnfor=.true., tstress=.true.
 /
 &system
   ibrav=1, celldm(1)=10.26, nat=8, ntyp=1, ecutwfc=12.0, nbnd=24
 /
 &electrons
   conv_thr=1.0d-10
 /
ATOMIC_SPECIES
 Si 28.086 Si.UPF
ATOMIC_POSITIONS crystal
 Si 0.00 0.00 0.00
 Si 0.00 0.50 0.50
 Si 0.50 0.00 0.50
 Si 0.50 0.50 0.00
 Si 0.25 0.25 0.25
 Si 0.26 0.75 0.75
 Si 0.75 0.25 0.75
 Si 0.75 0.75 0.25
K_POINTS @POINTS@
"""

# k-points, and what pw.x has to have solved: with complex wave functions, and at the origin with
# real ones. The whole spectrum of the first subspace by ?hegv, the lowest states of the larger ones
# by ?hegvx.
RUNS = {
    "k-points": ("automatic\n 2 2 2 1 1 1", ("zhegv_", "zhegvx_", "dsytrf_", "dgetrf_", "dgetri_")),
    "gamma point": ("gamma", ("dsygv_", "dsygvx_", "dsytrf_", "dgetrf_", "dgetri_")),
}
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
REFERENCE = {"LD_LIBRARY_PATH": f"{LIBRARIES}/blas:{LIBRARIES}/lapack"}
MPI = {"TMPDIR": "@HOME@"}  # where it keeps its own files


def answer(stdout):
    """What pw.x found, without its clocks: energies, bands, forces, stress and how it got there."""
    text = stdout.partition("Self-consistent Calculation")[2].partition("init_run")[0]
    return re.sub(r"(?m)^ *total cpu time.*$", "", text)


def pw(folder, points, env):
    text = CRYSTAL.replace("@FOLDER@", folder).replace("@POINTS@", points)
    done = run(["sh", "-c", 'printf %s "$0" | pw.x', text], {**ONE_THREAD, **MPI, **env})
    return done._replace(stdout=answer(done.stdout), files={})


@pytest.fixture(scope="module")
def pseudopotential(tmp_path_factory):
    """The folder of it."""
    made = run(["sh", "-c", 'printf %s "$0" | ld1.x', ATOM], {**ONE_THREAD, **MPI})
    assert made.rc == 0, made.stdout + made.stderr
    folder = tmp_path_factory.mktemp("pseudopotential")
    (folder / "Si.UPF").write_bytes(made.files["Si.UPF"])
    return str(folder)


Plain = namedtuple("Plain", "name folder points solved row done firm")


@pytest.fixture(scope="module", params=RUNS)
def plain(request, pseudopotential):
    """The run without libaccel; firm: the numbers of its lines that are the same with the reference libraries."""
    points, solved = RUNS[request.param]
    row = Row(request)
    done, other = (pw(pseudopotential, points, env) for env in ({}, REFERENCE))
    energy = re.search(r"(?m)^! +total energy += +(\S+) Ry", done.stdout)
    assert done.rc == 0, done.stderr
    assert "convergence has been achieved" in done.stdout
    assert "Total force" in done.stdout
    lines, others = done.stdout.splitlines(), other.stdout.splitlines()
    firm = {i for i, (line, there) in enumerate(zip(lines, others)) if line == there}
    assert len(lines) == len(others), other.stderr
    assert len(firm) > 0.9 * len(lines)
    assert energy[0] in {lines[i] for i in firm}
    return Plain(request.param, pseudopotential, points, solved, row, done, firm)


@pytest.mark.parametrize("mode", SILENT)
def test_without_a_log(plain, mode):
    silent = pw(plain.folder, plain.points, {**SILENT[mode], "ACCEL_LOG": "0"})
    check_same_bytes(plain.done, silent)
    assert silent.stderr == plain.done.stderr


def test_row_of_no_gpu(plain):
    plain.row.write(f"Quantum ESPRESSO, {plain.name}", "no GPU", None, len(plain.done.stdout.splitlines()), 0.0, 0.0, 0)


OnGpu = namedtuple("OnGpu", "row done moves lapack differ")


@pytest.fixture(scope="module")
def on_gpu(plain, request):
    """The run on the test GPU; differ: the firm lines that are others there."""
    row = Row(request)
    done = pw(plain.folder, plain.points, {**TEST_GPU, "ACCEL_LOG": "2", "ACCEL_LOG_FILE": "@HOME@/log.%p"})
    moves, lines, found = parse_moves(done.log), plain.done.stdout.splitlines(), done.stdout.splitlines()
    differ = [(lines[i], found[i]) for i in sorted(plain.firm) if i < len(found) and lines[i] != found[i]]
    return OnGpu(row, done, moves, [f for f in moves if routine(f["sym"]) and f["why"] not in IDLE], differ)


def test_energies_forces_and_stress_are_the_same_in_every_digit(plain, on_gpu):
    assert on_gpu.done.rc == 0, on_gpu.done.stderr
    assert len(on_gpu.done.stdout.splitlines()) == len(plain.done.stdout.splitlines())
    assert not on_gpu.differ


def test_eigenproblems_are_solved_on_the_gpu(plain, on_gpu):
    for sym in plain.solved:
        assert {(f["ran"], f["why"]) for f in on_gpu.lapack if f["sym"] == sym} == {("gpu0", "forced")}, sym


def test_so_is_every_routine_of_the_table(on_gpu):
    assert not [f for f in on_gpu.lapack if f["ran"] != "gpu0"]


def test_no_call_fails(on_gpu):
    assert not [f for f in on_gpu.moves if f["why"] in FAILURES]


def test_row_of_the_gpu(plain, on_gpu):
    on_gpu.row.write(f"Quantum ESPRESSO, {plain.name}", "test GPU", on_gpu.lapack, len(plain.firm),
                     float("inf") if on_gpu.differ else 0.0, 0.0, 0)
