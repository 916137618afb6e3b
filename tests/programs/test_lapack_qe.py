#!/usr/bin/python3 -B
"""Quantum ESPRESSO, a plane-wave density-functional code: silicon to self-consistency, its eigenproblems on the GPU.

ld1.x makes the pseudopotential, without libaccel. Every line of pw.x's answer that is the same with OpenBLAS and with
the reference libraries, the total energy among them, has to be the same on the GPU.
"""

import re
import tempfile
from pathlib import Path

from harness import same_bytes
from lapack import IDLE, ONE_THREAD, routine
from lib.log import FAILURES, parse_moves
from lib.programs import NO_GPU, SHIM, TEST_GPU, run
from lib.regress import record
from lib.tap import Tap

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
RUNS = (
    ("k-points", "automatic\n 2 2 2 1 1 1", ("zhegv_", "zhegvx_", "dsytrf_", "dgetrf_", "dgetri_")),
    ("gamma point", "gamma", ("dsygv_", "dsygvx_", "dsytrf_", "dgetrf_", "dgetri_")),
)
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


def check(tap, folder, name, points, solved):
    failed, program = tap.failed, f"Quantum ESPRESSO, {name}"
    plain = pw(folder, points, {})
    energy = re.search(r"(?m)^! +total energy += +(\S+) Ry", plain.stdout)
    converged = "convergence has been achieved" in plain.stdout and "Total force" in plain.stdout
    if not tap.ok(plain.rc == 0 and energy and converged, f"{name}: converges", plain.stdout[-1500:], plain.stderr):
        return
    tap.note(f"{name}: total energy {energy[1]} Ry")
    other = pw(folder, points, REFERENCE)
    lines, others = plain.stdout.splitlines(), other.stdout.splitlines()
    firm = {i for i, (line, there) in enumerate(zip(lines, others)) if line == there}
    enough = len(lines) == len(others) and len(firm) > 0.9 * len(lines) and energy[0] in {lines[i] for i in firm}
    tap.ok(enough, f"{name}, reference libraries: the same energy", other.stdout[-1500:], other.stderr)
    for label, env in (("no GPU", NO_GPU), ("ACCEL=0", {**SHIM, "ACCEL": "0"})):
        silent = pw(folder, points, {**env, "ACCEL_LOG": "0"})
        same_bytes(tap, f"{name}, {label}", plain, silent)
        tap.ok(silent.stderr == plain.stderr, f"{name}, {label}: same stderr", silent.stderr)

    record(tap, program, "no GPU", failed, None, len(lines), 0.0, 0.0, 0)

    failed, compared = tap.failed, len(firm)
    gpu = pw(folder, points, {**TEST_GPU, "ACCEL_LOG": "2", "ACCEL_LOG_FILE": "@HOME@/log.%p"})
    found = gpu.stdout.splitlines()
    tap.ok(gpu.rc == 0 and len(found) == len(lines), f"{name}, test GPU: runs", gpu.rc, gpu.stderr, gpu.stdout[-1500:])
    differ = [(lines[i], found[i]) for i in sorted(firm) if i < len(found) and lines[i] != found[i]]
    tap.ok(not differ, f"{name}, test GPU: the same energies, forces and stress in every digit", *differ)
    tap.note(f"{name}, test GPU: {len(firm)} lines compared, of {len(lines)}")
    lines = [f for f in parse_moves(gpu.log) if routine(f["sym"]) and f["why"] not in IDLE]
    for sym in solved:
        hits = [f for f in lines if f["sym"] == sym]
        elsewhere = [f for f in hits if (f["ran"], f["why"]) != ("gpu0", "forced")]
        tap.ok(hits and not elsewhere, f"{name}, test GPU: {sym} ran=gpu0", f"{len(hits)} such lines", *elsewhere)
    others = [f for f in lines if f["ran"] != "gpu0"]
    tap.ok(not others, f"{name}, test GPU: so did every routine of the table", *others)
    bad = [f for f in parse_moves(gpu.log) if f["why"] in FAILURES]
    tap.ok(not bad, f"{name}, test GPU: no failures", *bad)
    record(tap, program, "test GPU", failed, lines, compared, 0.0 if not differ else float("inf"), 0.0, 0)
    largest = max((int(f["n"]) for f in lines if routine(f["sym"]).startswith("sygv")), default=0)
    tap.note(f"{name}: {len(lines)} LAPACK calls on the GPU, eigenproblems of up to {largest}")


def main():
    tap = Tap()
    made = run(["sh", "-c", 'printf %s "$0" | ld1.x', ATOM], {**ONE_THREAD, **MPI})
    if tap.ok(made.rc == 0 and "Si.UPF" in made.files, "ld1.x: makes the pseudopotential", made.stdout, made.stderr):
        with tempfile.TemporaryDirectory(prefix="accel-pseudopotential-") as folder:
            Path(folder, "Si.UPF").write_bytes(made.files["Si.UPF"])
            for name, points, solved in RUNS:
                check(tap, folder, name, points, solved)
    tap.done()


main()
