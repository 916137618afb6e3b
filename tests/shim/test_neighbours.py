#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Other libraries that stand between a program and its BLAS, or beside it: preloads before and after libaccel, an
auditor of the dynamic linker, RTLD_DEEPBIND, functions chosen when they are bound; providers that come and go, and
two at once, under load."""

from pathlib import Path

import pytest

from lib.log import lines_for, said
from lib.programs import LOG, LONG, NO_GPU, SHIM, TEST_GPU, TESTS, UNDER_TSAN, start

MODES = {"ACCEL=0": {**SHIM, "ACCEL": "0"}, "no GPU": NO_GPU, "test GPU": {**TEST_GPU, "TESTGPU_DELAY_US": "0"},
         "test GPU, logged": {**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0"}}
COUNT = 5000 if LONG else 100
LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")
LOCAL = ["open:libcaller_lp64.so", "open:libcaller_ilp64.so"]
LOADED = ["linked", *LOCAL, f"load:{COUNT}"]
AUDIT = {"LD_AUDIT": str(TESTS / "libauditor.so")}
FAKETIME = LIBRARIES / "faketime/libfaketimeMT.so.1"
PRELOADS = {
    "a wrapper of dgemm_": TESTS / "libwrapper.so", "another dlsym": TESTS / "libother_dlsym.so",
    "jemalloc": LIBRARIES / "libjemalloc.so.2", "tcmalloc": LIBRARIES / "libtcmalloc_minimal.so.4",
    "libfaketime": FAKETIME,
}


def case(*steps, before=(), after=(), **extra):
    """Steps of `neighbours`, preloads before and after libaccel, and settings."""
    return steps, before, after, extra


CASES = {
    # How objects are bound.
    "RTLD_DEEPBIND": case("linked", "deep:libcaller_lp64.so", "deep:libcaller_ilp64.so"),
    "RTLD_DEEPBIND, a library that is linked to no BLAS": case("deep:libcaller_none.so", "linked"),
    "functions chosen when they are bound (IFUNC)": case("open:libcaller_ifunc.so", "linked"),
    "IFUNC, preloaded": case("linked", *LOCAL, after=[TESTS / "libifunc.so"]),
    "an auditor": case("linked", *LOCAL, **AUDIT),
    "an auditor that sees what dgemm_ returns": case("linked", *LOCAL, **AUDIT, TEST_PLTEXIT="1"),
    # Other preloads.
    **{f"{name} before libaccel": case(*LOADED, before=[path]) for name, path in PRELOADS.items()},
    **{f"{name} after libaccel": case(*LOADED, after=[path]) for name, path in PRELOADS.items()},
    **{f"libfaketime, {fake}": case(*LOADED, before=[FAKETIME], FAKETIME=fake)
       for fake in ("2020-01-01 00:00:00", "+0 x1000", "-3000d")},
    # Providers that come and go, and two at once, while threads call. With BLIS's OpenMP build,
    # which libblis.so.4 may name, this crashes without libaccel: OpenMP's threads stay behind when
    # it goes.
    "two providers at once": case(f"load:{5 * COUNT}"),
    "a provider is closed and opened again": case(
        f"reopen:{COUNT}:{LIBRARIES}/blas/libblas.so.3:{LIBRARIES}/blis-pthread/libblis.so.4"),
}
# A line that such a wrapper prints of the CPU's calls alone.
OF_CPU = {"a wrapper of dgemm_ after libaccel": "the wrapper was called"}


def preload(before, shim, after):
    return {"LD_PRELOAD": ":".join(filter(None, [*map(str, before), shim, *map(str, after)]))}


@pytest.fixture(scope="module", params=CASES)
def native(request):
    """A case, and its run without libaccel."""
    if UNDER_TSAN and "malloc" in request.param:
        pytest.skip("ThreadSanitizer has an allocator of its own")
    steps, before, after, extra = CASES[request.param]
    for path in (*before, *after):
        assert path.exists(), "scripts/install-deps test"
    done = start("neighbours", TESTS, *steps, env={**extra, **preload(before, "", after)})
    assert done.returncode == 0, done.stdout + done.stderr[-500:]
    assert "WRONG" not in done.stdout
    return request.param, done


@pytest.mark.parametrize("mode", MODES)
def test_output_and_status_are_the_same(native, mode):
    name, plain = native
    steps, before, after, extra = CASES[name]
    done = start("neighbours", TESTS, *steps,
                 env={**MODES[mode], **extra, **preload(before, MODES[mode]["LD_PRELOAD"], after)})
    own = [line for line in done.stderr.splitlines() if not line.startswith("accel ")]
    printed, wanted = ([
        line for line in run.stdout.splitlines() if not mode.startswith("test GPU") or line != OF_CPU.get(name)
    ] for run in (done, plain))
    assert (done.returncode, printed, own) == (0, wanted, plain.stderr.splitlines())
    if mode == "test GPU, logged":
        assert lines_for(done, ran="gpu0"), "seen by libaccel"


# The auditor and its libraries are objects of another namespace, and none of those that the program
# has started with.
@pytest.fixture(scope="module", params=("not-called", "called", "unneeded"))
def audited(request):
    """A dlclose of a provider beside an auditor: the program's words, and what it prints without libaccel."""
    steps = request.param, TESTS, LIBRARIES / "blas/libblas.so.3"
    done = start("plug_ins", *steps, env=AUDIT)
    assert done.returncode == 0
    assert "WRONG" not in done.stdout
    return steps, done.stdout


@pytest.mark.parametrize("mode", MODES)
def test_an_auditor_and_dlclose_of_a_provider(audited, mode):
    steps, wanted = audited
    done = start("plug_ins", *steps, env={**MODES[mode], **AUDIT})
    assert (done.returncode, done.stdout) == (0, wanted), done.stderr[-500:]
    assert not said(done)


# ---- NVBLAS with its file: its own messages are about GPUs, which it has none of ----


@pytest.fixture(scope="module")
def nvblas(tmp_path_factory):
    """The library, its settings, and what the program prints with it alone."""
    found = sorted(Path("/usr/local").glob("cuda*/lib*/libnvblas.so.1?"))
    if not found:
        pytest.skip("no libnvblas in a CUDA toolkit under /usr/local")
    folder = tmp_path_factory.mktemp("nvblas")
    config = folder / "nvblas.conf"
    config.write_text(
        f"NVBLAS_LOGFILE {folder}/log\nNVBLAS_CPU_BLAS_LIB {LIBRARIES}/libblas.so.3\nNVBLAS_GPU_LIST ALL\n")
    calm = {"NVBLAS_CONFIG_FILE": str(config), "CUDA_VISIBLE_DEVICES": "-1"}
    done = start("neighbours", TESTS, "linked", *LOCAL, env={**calm, "LD_PRELOAD": str(found[0])})
    assert done.returncode == 0, done.stderr[-500:]
    assert "WRONG" not in done.stdout
    return str(found[0]), calm, printed(done)


def printed(done):
    return [line for line in done.stdout.splitlines() if not line.startswith("[NVBLAS]")]


@pytest.mark.parametrize("mode", ("ACCEL=0", "no GPU"))
@pytest.mark.parametrize("place", ("before libaccel", "after libaccel"))
def test_nvblas(nvblas, place, mode):
    library, calm, wanted = nvblas
    preloads = [library, MODES[mode]["LD_PRELOAD"]
                ] if place == "before libaccel" else [MODES[mode]["LD_PRELOAD"], library]
    done = start("neighbours", TESTS, "linked", *LOCAL, env={**MODES[mode], **calm, "LD_PRELOAD": ":".join(preloads)})
    assert (done.returncode, printed(done)) == (0, wanted), done.stderr[-500:]
    assert not said(done)
