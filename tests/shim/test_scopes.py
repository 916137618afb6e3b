#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Each caller reaches its own BLAS: dlopen(RTLD_LOCAL), two integer widths under the same names, pointers that
were handed out, tail calls, dlclose, ACCEL_ORIGINAL."""

import re
import shutil
import subprocess

import pytest

from lib.log import lines_for, said
from lib.programs import BUILD, LOG, NO_GPU, RUNTIME, SHIM, TEST_GPU, TESTS, start

MODES = {
    "without libaccel": {},
    "ACCEL=0": {**SHIM, "ACCEL": "0"},
    "ACCEL_ML=0": {**NO_GPU, "ACCEL_ML": "0"},
    "no GPU": NO_GPU,
    "no GPU, logged": {**NO_GPU, **LOG},
    "test GPU": {**TEST_GPU, **LOG},
}
WITH_LIBACCEL = [*MODES][1:]


def check_same(done, stdout):
    """This is printed, and libaccel says nothing."""
    assert (done.returncode, done.stdout) == (0, stdout), done.stderr[-500:]
    assert not said(done)


# ---- Each caller's BLAS ----

CASES = [
    "local", "two", "pointer", "pointer64", "pointer-two", "tail", "tail-two", "dlclose", "global", "later",
    "later-unload", "unloads", "brought", "twin", "closed", "variadic", "asked", "original"
]


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    folder = tmp_path_factory.mktemp("twins")
    (folder / "twin").mkdir()
    for name, copied in (("libbringing_wide.so", "libbringing_wide.so"), ("libcaller_none64.so", "libcaller_none64.so"),
                         ("twin/libcaller_none64.so", "libcaller_lp64.so")):
        shutil.copy(TESTS / copied, folder / name)
    return folder


@pytest.mark.parametrize(
    "case, mode",
    [(case, mode) for case in CASES
     for mode in MODES if case != "original" or mode in WITH_LIBACCEL])  # there is nothing to find without libaccel
def test_each_caller_reaches_its_own_blas(case, mode, twins):
    extra = {"ACCEL_ORIGINAL": "libblas.so.3"} if case == "original" else {}
    done = start("scopes", case, twins if case == "twin" else TESTS, env={**MODES[mode], **extra})
    assert done.returncode == 0, done.stdout + done.stderr[-500:]
    if mode in WITH_LIBACCEL:
        assert "right" in done.stdout
        assert not said(done)
    if mode == "test GPU" and case != "variadic":
        # A child of a process that has used the GPU has the CPU.
        elsewhere = [
            f for f in lines_for(done) if f["ran"] != "gpu0" and not (case == "closed" and f["why"] == "forked")
        ]
        assert lines_for(done)
        assert not elsewhere


@pytest.mark.parametrize("mode", MODES)
def test_look_up_in_a_constructor_does_not_run_those_of_others_before_their_turn(mode):
    check_same(start("ordered", env=MODES[mode]), "found, second\n")


# ---- A provider is closed while objects need it (glibc keeps it for those that are bound to it),
# and goes when none does ----

REFERENCE = "/usr/lib/x86_64-linux-gnu/blas"
BROUGHT = ("inner", "brought", "brought-not-called")
PLUG_INS = ("not-called", "called", "called-lazily", "two", "again", "unneeded", "looked-up", *BROUGHT, "pieces", "own",
            "linked-back", "each-other")


def plug_ins(case, env):
    return start("plug_ins", case, TESTS, REFERENCE + "/libblas.so.3", env=env)


@pytest.fixture(scope="module", params=PLUG_INS)
def plug_in(request):
    """A case, its environment, and what it prints without libaccel."""
    env = {"LD_LIBRARY_PATH": REFERENCE} if request.param in BROUGHT else {}
    done = plug_ins(request.param, env)
    assert done.returncode == 0, done.stderr
    assert "WRONG" not in done.stdout
    return request.param, env, done.stdout


@pytest.mark.parametrize("mode", WITH_LIBACCEL)
def test_dlclose_of_a_provider(plug_in, mode):
    case, env, wanted = plug_in
    check_same(plug_ins(case, {**MODES[mode], **env}), wanted)


@pytest.mark.parametrize("mode", WITH_LIBACCEL)
@pytest.mark.parametrize("case", ("not-called", "two"))
def test_dlclose_of_a_provider_behind_an_early_dlclose(case, mode):
    """One that is closed before libaccel's constructor has run: what comes later is kept as ever."""
    early, closed = TESTS / "libcloses_early.so", {"CLOSES_EARLY": str(TESTS / "libcaller_none.so")}
    native = plug_ins(case, {"LD_PRELOAD": str(early), **closed})
    assert native.returncode == 0
    check_same(plug_ins(case, {**MODES[mode], "LD_PRELOAD": f"{MODES[mode]['LD_PRELOAD']}:{early}", **closed}),
               native.stdout)


# ---- A dlclose where nothing has come that could be kept does not look at what all objects are
# bound to ----

CLOSES = 10
# A BLAS has tens of thousands of relocations by names. Its names' hashes are there: few names are
# read.
LARGE = "libopenblas.so.0"
counts_instructions = pytest.mark.skipif(
    bool(RUNTIME) or not shutil.which("valgrind"), reason="a sanitizer, or no valgrind")


def instructions_of(function, closes, before="", library=f"{TESTS}/libhandled.so"):
    """The instructions of a program that opens and closes a library so often, by default one without names of BLAS,
    within a function of libaccel's."""
    program = f"import _ctypes\n{before}\nfor i in range({closes}): _ctypes.dlclose(_ctypes.dlopen('{library}', 2))"
    done = start(shutil.which("valgrind"), "--tool=callgrind", "--callgrind-out-file=/dev/null",
                 f"--toggle-collect={function}", "/usr/bin/python3", "-S", "-c", program, env=NO_GPU)
    assert done.returncode == 0, done.stderr[-500:]
    return int(re.search(r"refs: +([\d,]+)", done.stderr)[1].replace(",", ""))


def instructions_of_each(more, before="", **library):
    """Those of a dlclose that is not the first one."""
    once, often = (instructions_of("accel_keep_bound", closes, before, **library) for closes in (1, 1 + more))
    return (often - once) // more


@pytest.fixture(scope="module")
def relocations():
    """Those of a BLAS by names."""
    libraries = subprocess.run(["/sbin/ldconfig", "-p"], stdout=subprocess.PIPE, text=True).stdout
    path = re.search(r"(?m)^\s*%s .*=> (/.*)$" % re.escape(LARGE), libraries)[1]
    listing = subprocess.run(["readelf", "-rW", path], stdout=subprocess.PIPE, text=True).stdout
    found = len(re.findall(r"(?m)^[0-9a-f]{16} .* R_\w+ +[0-9a-f]{16} \w", listing))
    assert found > 1000
    return found


@counts_instructions
def test_instructions_of_a_dlclose_of_a_library_without_names_of_blas():
    assert 100 < instructions_of("accel_keep_bound", CLOSES) // CLOSES < 50000


@counts_instructions
def test_instructions_of_each_dlclose_after_the_first_one_beside_a_plug_ins_blas():
    """Nor where one has come that could be kept: a plug-in's BLAS."""
    assert 100 < instructions_of_each(CLOSES, f"_ctypes.dlopen('{TESTS}/libcaller_lp64.so', 2)") < 50000


@counts_instructions
def test_instructions_of_a_dlclose_of_a_blas(relocations):
    assert 0 < instructions_of_each(2, library=LARGE) < 150 * relocations


@counts_instructions
def test_instructions_of_a_dlclose_of_a_plug_in_that_calls_blas_beside_a_blas(relocations):
    """Those of a BLAS that is there already are not read again."""
    each = instructions_of_each(2, f"_ctypes.dlopen('{LARGE}', 2)", library=f"{TESTS}/libcaller_none64.so")
    assert 0 < each < 20 * relocations


@counts_instructions
def test_what_a_library_that_a_plug_in_has_brought_in_is_bound_to_is_asked_once():
    bringing = f"_ctypes.dlopen('{TESTS}/libbringing_mixed.so', 2)"
    once, often = (instructions_of("accel_objects_uses_of", closes, bringing) for closes in (1, CLOSES))
    assert 0 < once
    assert once == often


# ---- dlmopen: a provider in a namespace of its own, beside one whose integers are of another width
# ----

LP64, ILP64 = "libopenblas.so.0", "libopenblas64.so.0"


@pytest.fixture(
    scope="module", ids="{0[1]} beside {0[0]}".format, params=((LP64, ILP64, 64), (ILP64, LP64, 32), (LP64, LP64, 32),
                                                               (ILP64, ILP64, 64), ("-", LP64, 32), ("-", ILP64, 64)))
def namespaces(request):
    """The program's words, and what it prints without libaccel."""
    done = start("namespaces", *request.param)
    assert done.returncode == 0, done.stdout + done.stderr
    return request.param, done.stdout


@pytest.mark.parametrize("mode", WITH_LIBACCEL)
def test_dlmopen(namespaces, mode):
    words, wanted = namespaces
    done = start("namespaces", *words, env=MODES[mode])
    check_same(done, wanted)
    if mode == "test GPU":
        assert [f["ran"] for f in lines_for(done)] == ["gpu0", "gpu0"]


# ---- A library's own functions of such names, with other arguments, get them as they are ----

GPU_AUTO = {**MODES["test GPU"], "ACCEL_POLICY": "auto"}
FOREIGN_MODES = {**MODES, "test GPU, auto": GPU_AUTO, "test GPU, auto, silent": {**GPU_AUTO, "ACCEL_LOG": "0"}}
FOREIGN = (["libforeign.so"], ["libforeign.so", "libcaller_lp64.so"], ["libforeign_linked.so"],
           ["libforeign_linked.so", "libcaller_lp64.so", "libcaller_ilp64.so"], ["+libforeign.so"])


@pytest.fixture(scope="module", params=FOREIGN, ids=" ".join)
def foreign(request):
    """The paths of libraries, and what is printed without libaccel."""
    paths = [name[:name.index("lib")] + str(TESTS / name.lstrip("+")) for name in request.param]
    done = start("foreigners", *paths)
    assert done.returncode == 0, done.stdout + done.stderr
    return paths, done.stdout


@pytest.mark.parametrize("mode", [*FOREIGN_MODES][1:])
def test_names_of_blas_with_other_arguments(foreign, mode):
    paths, wanted = foreign
    check_same(start("foreigners", *paths, env=FOREIGN_MODES[mode]), wanted)


# ---- The names by which NVPL's LAPACK calls its BLAS ----

INTERNAL = ["dgemm_", "dgemm_64_", "dgemm_internal_", "dgemm_internal_64_"]


def check_calls(done, mode, names):
    """Each is a call of BLAS."""
    if "ACCEL_LOG" in MODES[mode]:
        place = "gpu0" if mode == "test GPU" else "cpu"
        assert [(f["sym"], f["ran"], f.get("m")) for f in lines_for(done)] == [(name, place, "96") for name in names]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("width", ("lp64", "ilp64"))
def test_nvpls_names(width, mode):
    done = start(f"internal_calls_{width}", env=MODES[mode])
    assert (done.returncode, done.stdout) == (0, "".join(f"{name} right\n" for name in INTERNAL)), done.stderr[-500:]
    assert not [line for line in said(done) if "no GPU is used" not in line]
    check_calls(done, mode, INTERNAL)


# ---- A library that has in itself the part of BLAS that it calls: the functions for double
# precision tell the width ----


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("width", ("lp64", "ilp64"))
def test_double_precision_alone(width, mode):
    done = start(f"internal_calls_doubles_{width}", env=MODES[mode])
    assert (done.returncode, done.stdout) == (0, "dgemm_ right\n"), done.stderr[-500:]
    check_calls(done, mode, ["dgemm_"])


@pytest.mark.parametrize("name, bits", (("lp64", 32), ("ilp64", 64), ("linked", 64)))
def test_double_precision_alone_is_described_and_can_be_measured(name, bits, tmp_path):
    """Their own, before that of a library that they are linked to; and the library can be measured as others."""
    program, library = TESTS / f"internal_calls_doubles_{name}", TESTS / f"libinternal_doubles_{name}.so"
    log = tmp_path / name
    done = start(str(BUILD / "accel"), "doctor", "--", program,
                 env={"CUDA_VISIBLE_DEVICES": "-1", "HOME": str(tmp_path)})
    assert re.search(rf"(?m)^OK +BLAS +.*{library.name}, .* {bits}-bit integers", done.stdout)
    start(program.name, env={**NO_GPU, "ACCEL_LOG": "1", "ACCEL_LOG_FILE": str(log)})
    done = start(str(BUILD / "accel"), "replay", "--library", library, log, env={"HOME": str(tmp_path)})
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"(?m)^  cpu +[0-9.]+ ms   error 0\.", done.stdout)


# ---- A symbol that nobody has ----

NO_ORIGINAL = "undefined symbol: dgemm_"  # what the dynamic linker would have said


def original(**env):
    return start("scopes", "original", TESTS, env={**NO_GPU, **env})


@pytest.mark.parametrize("env", ({}, {"ACCEL": "0"}), ids=("by default", "ACCEL=0"))
def test_no_original_at_all(env):
    done = original(**env)
    assert done.returncode == 127
    assert NO_ORIGINAL in done.stderr


def test_accel_original_with_a_wrong_path_is_named_and_the_next_is_used():
    done = original(ACCEL_ORIGINAL="/no/such/library.so:libblas.so.3")
    assert done.returncode == 0
    assert "ACCEL_ORIGINAL: /no/such/library.so cannot be opened" in done.stderr


def test_accel_original_with_wrong_paths_alone():
    """One is named, and there is no original."""
    done = original(ACCEL_ORIGINAL="/no/such/library.so:/nor/this.so")
    assert done.returncode == 127
    assert NO_ORIGINAL in done.stderr
    assert done.stderr.count("cannot be opened") == 1


@pytest.mark.parametrize("before", ("libm.so.6", str(BUILD / "libaccel.so"), "::" + "x" * 5000),
                         ids=("a library without the function", "libaccel itself", "no path, and one that is too long"))
def test_accel_original_goes_on_to_the_next_behind(before):
    done = original(ACCEL_ORIGINAL=before + ":libblas.so.3")
    assert done.returncode == 0, done.stdout + done.stderr[-500:]
    assert "right" in done.stdout
    assert not said(done)
