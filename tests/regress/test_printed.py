#!/usr/bin/python3 -B
"""Programs of Debian whose printed numbers are compared: MOPAC (semi-empirical quantum chemistry), xtb (tight binding), Elk (crystals,
augmented plane waves), CVXOPT (convex optimisation), Octave's control theory (SLICOT), R's mgcv (additive models), statsmodels
(regressions). Without libaccel with one thread and with two, which is the noise floor; with it and no GPU; with the test GPU."""

import re
from pathlib import Path

from compare import compare
from lib.log import FAILURES, parse_moves
from lib.programs import DEBIAN_PYTHON, NO_GPU, TEST_GPU, run
from lib.regress import record
from lib.tap import Tap


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


# name, argv, what of its output is compared, routines of which some call must be on the GPU, at
# least so many numbers
PROGRAMS = (
    ("MOPAC", [*shell("mopac m.mop", "PM7 1SCF GRADIENTS VECTORS THREADS=1\nethanol\n\n" + FREE), "m.mop"], mopac, {"dgemm_", "dsyevd_"}, 200),
    ("xtb", [*shell("xtb m.xyz --gfn 2", "9\nethanol\n" + ATOMS), "m.xyz"], xtb, {"dgemm_", "dsygvd_", "dsysv_"}, 40),
    ("Elk", [*shell("elk-lapw", SILICON), "elk.in"], elk, {"dgemm_", "dsygvx_", "zgemm_"}, 80),
    ("CVXOPT", [DEBIAN_PYTHON, str(HERE / "cvxopt_problems.py")], printed, {"dgemm_", "dpotrf_", "dsyrk_"}, 100),
    ("Octave control", ["octave-cli", "--no-gui", "-q", str(HERE / "control.m")], printed, {"dgemm_"}, 400),
    ("R mgcv", ["Rscript", str(HERE / "additive_models.R")], printed, {"dgemm_"}, 150),
    ("statsmodels", [DEBIAN_PYTHON, str(HERE / "regressions.py")], printed, {"cblas_dgemm", "cblas_dsyrk", "dgesdd_", "dgeqrf_"}, 600),
)


def check(tap, name, argv, text_of, routines, least):
    failed = tap.failed
    plain, again, other = run(argv, ONE), run(argv, ONE), run(argv, TWO)
    text = text_of(plain)
    if not tap.ok(plain.rc == 0 and compare(text, text).numbers >= least, f"{name}: runs", plain.rc, plain.stderr[-500:], text[-1000:]):
        return
    tap.ok(text_of(again) == text, f"{name}: prints the same again")
    floor = compare(text, text_of(other), bound=1.0).worst

    without = run(argv, {**ONE, **NO_GPU, **LOG})
    tap.ok(without.rc == 0 and text_of(without) == text, f"{name}, no GPU: the same in every digit")
    lines = parse_moves(without.log)
    tap.ok(lines and {f["ran"] for f in lines} == {"cpu"}, f"{name}, no GPU: all on the CPU")
    record(tap, name, "no GPU", failed, lines, compare(text, text).numbers, 0.0, floor, 0)

    failed = tap.failed
    gpu = run(argv, {**ONE, **TEST_GPU, **LOG})
    lines = parse_moves(gpu.log)
    found = compare(text, text_of(gpu), bound=16 * floor)
    tap.ok(gpu.rc == 0 and found.good, f"{name}, test GPU: {found.numbers} numbers alike: {found.worst:.2g}, by threads alone {floor:.2g}",
           gpu.rc, found.where, gpu.stderr[-500:])
    on_gpu = {f["sym"] for f in lines if f["ran"] == "gpu0"}
    tap.ok(routines <= on_gpu, f"{name}, test GPU: {', '.join(sorted(routines))} on the GPU", sorted(on_gpu))
    bad = [f for f in lines if f["why"] in FAILURES]
    tap.ok(not bad, f"{name}, test GPU: no failures", *bad[:5])
    record(tap, name, "test GPU", failed, lines, found.numbers, found.worst, floor, 16 * floor)


tap = Tap()
for program in PROGRAMS:
    check(tap, *program)
# The comparison itself is checked: kernels with one wrong element each must be seen.
name, argv, text_of = PROGRAMS[0][:3]
spoilt = run(argv, {**ONE, **TEST_GPU, "TESTGPU_WRONG": "1+"})
tap.ok(not compare(text_of(run(argv, ONE)), text_of(spoilt), bound=1e-6).good, f"{name}: wrong results are noticed")
tap.done()
