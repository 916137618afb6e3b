#!/usr/bin/python3 -B
"""Each caller reaches its own BLAS: dlopen(RTLD_LOCAL), two integer widths under the same names, pointers that
were handed out, tail calls, dlclose, ACCEL_ORIGINAL."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from lib.log import lines_for, said
from lib.programs import BUILD, LOG, NO_GPU, RUNTIME, SHIM, TEST_GPU, TESTS, start
from lib.tap import Tap

CASES = ["local", "two", "pointer", "pointer64", "pointer-two", "tail", "tail-two", "dlclose", "global", "later", "later-unload", "unloads", "brought", "twin", "closed", "variadic", "asked",
         "original"]
MODES = {
    "ACCEL=0": {**SHIM, "ACCEL": "0"},
    "ACCEL_ML=0": {**NO_GPU, "ACCEL_ML": "0"},
    "no GPU": NO_GPU,
    "no GPU, logged": {**NO_GPU, **LOG},
    "test GPU": {**TEST_GPU, **LOG},
}

tap = Tap()
twins = tempfile.TemporaryDirectory(prefix="accel-twins-")
for name, copied in ("libbringing_wide.so", "libbringing_wide.so"), ("libcaller_none64.so", "libcaller_none64.so"), ("twin/libcaller_none64.so", "libcaller_lp64.so"):
    Path(twins.name, name).parent.mkdir(exist_ok=True)
    shutil.copy(TESTS / copied, Path(twins.name, name))
for case in CASES:
    folder = twins.name if case == "twin" else TESTS
    extra = {"ACCEL_ORIGINAL": "libblas.so.3"} if case == "original" else {}
    if case != "original":  # there is nothing to find without libaccel
        native = start("scopes", case, folder)
        tap.ok(native.returncode == 0, f"{case}: right without libaccel", native.stdout)
    for mode, env in MODES.items():
        done = start("scopes", case, folder, env={**env, **extra})
        good = done.returncode == 0 and "right" in done.stdout and not said(done)
        tap.ok(good, f"{case}, {mode}", done.returncode, done.stdout, done.stderr[-500:])
        if mode == "test GPU":
            # A child of a process that has used the GPU has the CPU.
            elsewhere = [f for f in lines_for(done) if f["ran"] != "gpu0" and not (case == "closed" and f["why"] == "forked")]
            if case != "variadic":
                tap.ok(lines_for(done) and not elsewhere, f"{case}: all products ran on the test GPU", *elsewhere[:5])

# ---- A look-up in a constructor does not run those of others before their turn ----

for mode, env in {"without libaccel": {}, **MODES}.items():
    done = start("ordered", env=env)
    tap.ok((done.returncode, done.stdout) == (0, "found, second\n") and not said(done), f"the order of constructors, {mode}", done.stdout, done.stderr)

# ---- A provider is closed while objects need it (glibc keeps it for those that are bound to it),
# and goes when none does ----

REFERENCE = "/usr/lib/x86_64-linux-gnu/blas"
for case in "not-called", "called", "called-lazily", "two", "again", "unneeded", "looked-up", "inner", "brought", "brought-not-called", "pieces", "own", "linked-back", "each-other":
    places = {"LD_LIBRARY_PATH": REFERENCE} if case in ("inner", "brought", "brought-not-called") else {}
    native = start("plug_ins", case, TESTS, REFERENCE + "/libblas.so.3", env=places)
    tap.ok(native.returncode == 0 and "WRONG" not in native.stdout, f"dlclose of a provider, {case}: right without libaccel", native.stdout, native.stderr)
    for mode, env in MODES.items():
        done = start("plug_ins", case, TESTS, REFERENCE + "/libblas.so.3", env={**env, **places})
        tap.ok((done.returncode, done.stdout) == (0, native.stdout) and not said(done), f"dlclose of a provider, {case}, {mode}: the same",
               done.returncode, done.stdout, done.stderr[-500:], "---", native.stdout)

# One that is closed before libaccel's constructor has run: what comes later is kept as ever.
EARLY = TESTS / "libcloses_early.so"
for case in "not-called", "two":
    native = start("plug_ins", case, TESTS, REFERENCE + "/libblas.so.3", env={"LD_PRELOAD": str(EARLY), "CLOSES_EARLY": str(TESTS / "libcaller_none.so")})
    for mode, env in MODES.items():
        done = start("plug_ins", case, TESTS, REFERENCE + "/libblas.so.3",
                     env={**env, "LD_PRELOAD": f"{env['LD_PRELOAD']}:{EARLY}", "CLOSES_EARLY": str(TESTS / "libcaller_none.so")})
        tap.ok((done.returncode, done.stdout) == (native.returncode, native.stdout) == (0, native.stdout) and not said(done),
               f"dlclose of a provider, {case}, behind an early dlclose, {mode}: the same", done.returncode, done.stdout, done.stderr[-500:], "---", native.stdout)

# ---- A dlclose where nothing has come that could be kept does not look at what all objects are
# bound to ----

CLOSES = 10


def instructions_of(function, closes, before="", library=f"{TESTS}/libhandled.so"):
    """The instructions of a program that opens and closes a library so often, by default one without names of BLAS, within a function of libaccel's."""
    program = f"import _ctypes\n{before}\nfor i in range({closes}): _ctypes.dlclose(_ctypes.dlopen('{library}', 2))"
    done = start(shutil.which("valgrind"), "--tool=callgrind", "--callgrind-out-file=/dev/null", f"--toggle-collect={function}", "/usr/bin/python3", "-S",
                 "-c", program, env=NO_GPU)
    counted = re.search(r"refs: +([\d,]+)", done.stderr)
    tap.ok(done.returncode == 0 and counted, f"{function}, {closes} times: instructions are counted", done.stderr[-500:])
    return int(counted[1].replace(",", "")) if counted else 0


if RUNTIME or not shutil.which("valgrind"):
    tap.skip("instructions of a dlclose", "a sanitizer, or no valgrind")
else:
    each = instructions_of("accel_keep_bound", CLOSES) // CLOSES
    tap.ok(100 < each < 50000, f"a dlclose of a library without names of BLAS: {each} instructions")
    # Nor where one has come that could be: a plug-in's BLAS.
    BLAS = f"_ctypes.dlopen('{TESTS}/libcaller_lp64.so', 2)"
    once, often = (instructions_of("accel_keep_bound", closes, BLAS) for closes in (1, 1 + CLOSES))
    tap.ok(100 < (often - once) // CLOSES < 50000, f"each dlclose after the first one, beside a plug-in's BLAS: {(often - once) // CLOSES} instructions")
    # A BLAS has tens of thousands of relocations by names. Its names' hashes are there: few names
    # are read.
    LARGE = "libopenblas.so.0"
    path = re.search(r"(?m)^\s*%s .*=> (/.*)$" % re.escape(LARGE), subprocess.run(["/sbin/ldconfig", "-p"], stdout=subprocess.PIPE, text=True).stdout)
    named = len(re.findall(r"(?m)^[0-9a-f]{16} .* R_\w+ +[0-9a-f]{16} \w", subprocess.run(["readelf", "-rW", path[1] if path else "/nonexistent"], stdout=subprocess.PIPE, text=True).stdout))
    once, often = (instructions_of("accel_keep_bound", closes, library=LARGE) for closes in (1, 3))
    each = (often - once) // 2
    tap.ok(named > 1000 and 0 < each < 150 * named, f"a dlclose of a BLAS: {each} instructions for {named} relocations by names, {each / max(named, 1):.0f} for one")
    # Those of a BLAS that is there already are not read again.
    once, often = (instructions_of("accel_keep_bound", closes, f"_ctypes.dlopen('{LARGE}', 2)", f"{TESTS}/libcaller_none64.so") for closes in (1, 3))
    each = (often - once) // 2
    tap.ok(0 < each < 20 * named, f"a dlclose of a plug-in that calls BLAS, beside a BLAS: {each} instructions")
    # What a library that a plug-in has brought in is bound to is asked once.
    BRINGING = f"_ctypes.dlopen('{TESTS}/libbringing_mixed.so', 2)"
    once, often = (instructions_of("accel_objects_uses_of", closes, BRINGING) for closes in (1, CLOSES))
    tap.ok(0 < once == often, f"{CLOSES} dlcloses look as often as one at what plug-ins have brought in: {once} and {often} instructions")

# ---- dlmopen: a provider in a namespace of its own, beside one whose integers are of another width
# ----

LP64, ILP64 = "libopenblas.so.0", "libopenblas64.so.0"
for base, space, width in ((LP64, ILP64, 64), (ILP64, LP64, 32), (LP64, LP64, 32), (ILP64, ILP64, 64), ("-", LP64, 32), ("-", ILP64, 64)):
    name = f"dlmopen of {space} beside {base}"
    native = start("namespaces", base, space, width)
    tap.ok(native.returncode == 0, f"{name}: right without libaccel", native.stdout, native.stderr)
    for mode, env in MODES.items():
        done = start("namespaces", base, space, width, env=env)
        tap.ok((done.returncode, done.stdout) == (0, native.stdout) and not said(done), f"{name}, {mode}", done.returncode, done.stdout,
               done.stderr[-500:])
        if mode == "test GPU":
            tap.ok([f["ran"] for f in lines_for(done)] == ["gpu0", "gpu0"], f"{name}: on the test GPU", done.stderr[-500:])

# ---- A library's own functions of such names, with other arguments, get them as they are ----

GPU_AUTO = {**MODES["test GPU"], "ACCEL_POLICY": "auto"}
for library, others in (("libforeign.so", []), ("libforeign.so", ["libcaller_lp64.so"]), ("libforeign_linked.so", []),
                        ("libforeign_linked.so", ["libcaller_lp64.so", "libcaller_ilp64.so"]),
                        ("+libforeign.so", [])):
    paths = [name[: name.index("lib")] + str(TESTS / name.lstrip("+")) for name in [library, *others]]
    name = f"names of BLAS with other arguments, {' '.join([library, *others])}"
    native = start("foreigners", *paths)
    tap.ok(native.returncode == 0, f"{name}: right without libaccel", native.stdout, native.stderr)
    for mode, env in {**MODES, "test GPU, auto": GPU_AUTO, "test GPU, auto, silent": {**GPU_AUTO, "ACCEL_LOG": "0"}}.items():
        done = start("foreigners", *paths, env=env)
        tap.ok((done.returncode, done.stdout) == (0, native.stdout) and not said(done), f"{name}, {mode}", done.returncode, done.stdout,
               done.stderr[-500:])

# ---- The names by which NVPL's LAPACK calls its BLAS ----

INTERNAL = ["dgemm_", "dgemm_64_", "dgemm_internal_", "dgemm_internal_64_"]
for width in "lp64", "ilp64":
    for mode, env in {"without libaccel": {}, **MODES}.items():
        done = start(f"internal_calls_{width}", env=env)
        tap.ok(done.returncode == 0 and done.stdout == "".join(f"{name} right\n" for name in INTERNAL) and not [line for line in said(done) if "no GPU is used" not in line], f"NVPL's names, {width}, {mode}",
               done.stdout, done.stderr[-500:])
        if "LOG" in str(env):
            place = "gpu0" if mode == "test GPU" else "cpu"
            tap.ok([(f["sym"], f["ran"], f["m"]) for f in lines_for(done)] == [(name, place, "96") for name in INTERNAL],
                   f"NVPL's names, {width}, {mode}: each is a call of BLAS", done.stderr[-500:])

# ---- A library that has in itself the part of BLAS that it calls: the functions for double
# precision tell the width ----

for width in "lp64", "ilp64":
    for mode, env in {"without libaccel": {}, **MODES}.items():
        done = start(f"internal_calls_doubles_{width}", env=env)
        tap.ok(done.returncode == 0 and done.stdout == "dgemm_ right\n", f"double precision alone, {width}, {mode}", done.stdout, done.stderr[-500:])
        if "LOG" in str(env):
            place = "gpu0" if mode == "test GPU" else "cpu"
            tap.ok([(f["sym"], f["ran"], f.get("m")) for f in lines_for(done)] == [("dgemm_", place, "96")], f"double precision alone, {width}, {mode}: a call of BLAS", done.stderr[-500:])

# Their own, before that of a library that they are linked to; and the library can be measured as
# others.
with tempfile.TemporaryDirectory() as folder:
    for name, bits in ("lp64", 32), ("ilp64", 64), ("linked", 64):
        program, library, log = TESTS / f"internal_calls_doubles_{name}", TESTS / f"libinternal_doubles_{name}.so", Path(folder, name)
        done = start(str(BUILD / "accel"), "doctor", "--", program, env={"CUDA_VISIBLE_DEVICES": "-1", "HOME": folder})
        tap.ok(re.search(rf"(?m)^OK +BLAS +.*{library.name}, .* {bits}-bit integers", done.stdout), f"double precision alone, {name}: {bits} bits", done.stdout)
        start(program.name, env={**NO_GPU, "ACCEL_LOG": "1", "ACCEL_LOG_FILE": str(log)})
        done = start(str(BUILD / "accel"), "replay", "--library", library, log, env={"HOME": folder})
        tap.ok(done.returncode == 0 and re.search(r"(?m)^  cpu +[0-9.]+ ms   error 0\.", done.stdout), f"double precision alone, {name}: accel replay runs it", done.stdout, done.stderr)

# A symbol that nobody has: what the dynamic linker would have said.
done = start("scopes", "original", TESTS, env=NO_GPU)
tap.ok(done.returncode == 127 and "undefined symbol: dgemm_" in done.stderr, "no original at all", done.stderr)
done = start("scopes", "original", TESTS, env={**NO_GPU, "ACCEL": "0"})
tap.ok(done.returncode == 127 and "undefined symbol: dgemm_" in done.stderr, "no original at all, with ACCEL=0", done.stderr)
done = start("scopes", "original", TESTS, env={**NO_GPU, "ACCEL_ORIGINAL": "/no/such/library.so:libblas.so.3"})
named = "ACCEL_ORIGINAL: /no/such/library.so cannot be opened" in done.stderr
tap.ok(done.returncode == 0 and named, "ACCEL_ORIGINAL with a wrong path: named, the next is used", done.stderr)
done = start("scopes", "original", TESTS, env={**NO_GPU, "ACCEL_ORIGINAL": "/no/such/library.so:/nor/this.so"})
tap.ok(done.returncode == 127 and "undefined symbol: dgemm_" in done.stderr and done.stderr.count("cannot be opened") == 1,
       "ACCEL_ORIGINAL with wrong paths alone: one is named, and there is no original", done.stderr)
for what, before in ("a library without the function", "libm.so.6"), ("libaccel itself", str(BUILD / "libaccel.so")), ("no path, and one that is too long", "::" + "x" * 5000):
    done = start("scopes", "original", TESTS, env={**NO_GPU, "ACCEL_ORIGINAL": before + ":libblas.so.3"})
    tap.ok(done.returncode == 0 and "right" in done.stdout and not said(done), f"ACCEL_ORIGINAL with {what}: the next is used", done.returncode, done.stdout, done.stderr[-500:])
tap.done()
