#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Programs of Debian whose printed numbers are compared: MOPAC (semi-empirical quantum chemistry), xtb (tight
binding), Elk (crystals, augmented plane waves), CVXOPT (convex optimisation), Octave's control theory (SLICOT), R's
mgcv (additive models), statsmodels (regressions). Without libaccel with one thread and with two, which is the noise
floor; with it and no GPU; with the test GPU."""

import re
from collections import namedtuple
from pathlib import Path

import pytest

from lib.log import FAILURES, parse_moves
from lib.programs import DEBIAN_PYTHON, NO_GPU, TEST_GPU, run
from lib.regress import Row
from regress.compare import compare

ONE, TWO = ({"OPENBLAS_NUM_THREADS": n, "OMP_NUM_THREADS": n} for n in "12")
LOG = {"ACCEL_LOG": "2", "ACCEL_LOG_FILE": "@HOME@/log.%p"}
HERE = Path(__file__).resolve().parent

# Ethanol: x, y and z in Ångström.
ATOMS = """C  0.00  0.00  0.00
C  1.51  0.00  0.00
O  2.05  1.30  0.05
H -0.38  1.02  0.02
H -0.36 -0.52  0.89
H -0.37 -0.51 -0.90
H  1.90 -0.52  0.88
H  1.89 -0.53 -0.89
H  3.01  1.25  0.01
"""
FREE = re.sub(r"(?m)(-?\d+\.\d+)", r"\1 1", ATOMS)  # MOPAC: each coordinate is one that may change

# Silicon; lengths in Bohr. A block ends with an empty line.
SILICON = """tasks
  0

avec
  5.13 5.13 0
  5.13 0 5.13
  0 5.13 5.13

sppath
  '/usr/share/elk-lapw/species/'

atoms
  1
  'Si.in'
  2
  0.0 0.0 0.0
  0.25 0.25 0.25

ngridk
  2 2 2

"""


def shell(script, text):
    """A program that wants a file, `text`, in its folder."""
    return ["sh", "-c", f'printf %s "$0" > "$1"; {script}', text]


def mopac(done):
    """Energies, charges, orbitals; not the time, the version's licence or the date."""
    text = done.files.get("m.out", b"").decode()
    return re.sub(r"(?m)^.*(SECONDS|TIME|DATE|20\d\d|THREADS).*$", "", text)


def xtb(done):
    """The energies and the orbitals after the iteration, whose own steps are noise towards its end."""
    found = re.search(r"(?s)Orbital Energies and Occupations(.*?)\| *HOMO-LUMO GAP.*?$", done.stdout)
    summary = re.findall(r"(?m)^ *\| (?:TOTAL ENERGY|HOMO-LUMO GAP|GRADIENT NORM).*$", done.stdout)
    charges = done.files.get("charges", b"").decode()
    body = re.split(r"-{10,}\s*total:|finished run", found[1])[0] if found else ""
    return "\n".join([body, *summary, charges])


def elk(done):
    """The energy of each iteration, the states at the end."""
    return "\n".join(done.files.get(name, b"").decode() for name in ("TOTENERGY.OUT", "EIGVAL.OUT"))


def printed(done):
    return done.stdout


# argv, what of its output is compared, routines of which some call must be on the GPU, at
# least so many numbers
PROGRAMS = {
    "MOPAC": ([*shell("mopac m.mop", "PM7 1SCF GRADIENTS VECTORS THREADS=1\nethanol\n\n" + FREE),
               "m.mop"], mopac, {"dgemm_", "dsyevd_"}, 200),
    "xtb": ([*shell("xtb m.xyz --gfn 2", "9\nethanol\n" + ATOMS),
             "m.xyz"], xtb, {"dgemm_", "dsygvd_",
                             "dsysv_"}, 40), "Elk": ([*shell("elk-lapw", SILICON),
                                                      "elk.in"], elk, {"dgemm_", "dsygvx_", "zgemm_"}, 80),
    "CVXOPT": ([DEBIAN_PYTHON, str(HERE / "cvxopt_problems.py")], printed, {"dgemm_", "dpotrf_", "dsyrk_"}, 100),
    "Octave control": (["octave-cli", "--no-gui", "-q", str(HERE / "control.m")], printed, {"dgemm_"},
                       400), "R mgcv": (["Rscript", str(HERE / "additive_models.R")], printed, {"dgemm_"}, 150),
    "statsmodels": ([DEBIAN_PYTHON,
                     str(HERE / "regressions.py")], printed, {"cblas_dgemm", "cblas_dsyrk", "dgesdd_", "dgeqrf_"}, 600),
}


Plain = namedtuple("Plain", "row name argv text_of routines text numbers floor")
Run = namedtuple("Run", "row done lines")


@pytest.fixture(scope="module", params=PROGRAMS)
def plain(request):
    """The run without libaccel; floor: what another number of threads changes."""
    argv, text_of, routines, least = PROGRAMS[request.param]
    row = Row(request)
    done, other = run(argv, ONE), run(argv, TWO)
    text = text_of(done)
    numbers = compare(text, text).numbers
    assert done.rc == 0, done.stderr[-500:]
    assert numbers >= least, text[-1000:]
    return Plain(row, request.param, argv, text_of, routines, text, numbers,
                 compare(text, text_of(other), bound=1.0).worst)


def test_prints_the_same_again(plain):
    assert plain.text_of(run(plain.argv, ONE)) == plain.text


@pytest.fixture(scope="module")
def without(plain):
    """The run without a GPU."""
    done = run(plain.argv, {**ONE, **NO_GPU, **LOG})
    return Run(plain.row, done, parse_moves(done.log))


def test_without_a_gpu_the_same_in_every_digit(plain, without):
    assert without.done.rc == 0
    assert plain.text_of(without.done) == plain.text


def test_without_a_gpu_all_on_the_cpu(without):
    assert {f["ran"] for f in without.lines} == {"cpu"}


def test_row_of_no_gpu(plain, without):
    without.row.write(plain.name, "no GPU", without.lines, plain.numbers, 0.0, plain.floor, 0)


@pytest.fixture(scope="module")
def on_gpu(plain, request):
    row = Row(request)
    done = run(plain.argv, {**ONE, **TEST_GPU, **LOG})
    return Run(row, done, parse_moves(done.log))


def test_numbers_are_alike(plain, on_gpu):
    assert on_gpu.done.rc == 0, on_gpu.done.stderr[-500:]
    found = compare(plain.text, plain.text_of(on_gpu.done), bound=16 * plain.floor)
    assert found.good, found


def test_routines_run_on_the_gpu(plain, on_gpu):
    assert plain.routines <= {f["sym"] for f in on_gpu.lines if f["ran"] == "gpu0"}


def test_no_call_fails(on_gpu):
    assert not [f for f in on_gpu.lines if f["why"] in FAILURES]


def test_row_of_the_gpu(plain, on_gpu):
    found = compare(plain.text, plain.text_of(on_gpu.done), bound=16 * plain.floor)
    on_gpu.row.write(plain.name, "test GPU", on_gpu.lines, found.numbers, found.worst, plain.floor, 16 * plain.floor)


def test_wrong_results_are_noticed():
    """The comparison itself is checked: kernels with one wrong element each must be seen."""
    argv, text_of, _, _ = PROGRAMS["MOPAC"]
    spoilt = run(argv, {**ONE, **TEST_GPU, "TESTGPU_WRONG": "1+"})
    assert not compare(text_of(run(argv, ONE)), text_of(spoilt), bound=1e-6).good
