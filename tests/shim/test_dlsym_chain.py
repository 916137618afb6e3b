#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Other preloads with a dlsym of their own, behind libaccel and before it: each of the program's look-ups asks them
once, as without libaccel."""

import subprocess

import pytest

from lib.log import said
from lib.programs import LOG, NO_GPU, SHIM, TEST_GPU, start

MODES = {"ACCEL=0": {**SHIM, "ACCEL": "0"}, "no GPU": NO_GPU, "test GPU": {**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0"}}
COUNTS = '''
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
static int looked_up, closed;
int NAME(void) { return 1000 * closed + looked_up; }
static void *real(const char *name)
{
    void *found = dlvsym(RTLD_NEXT, name, "GLIBC_2.34");
    return found ? found : dlvsym(RTLD_NEXT, name, "GLIBC_2.2.5");
}
void *dlsym(void *handle, const char *name)
{
    void *function = real("dlsym"), *(*next)(void *, const char *);
    memcpy(&next, &function, sizeof next);
    looked_up++;
    void *found = next(handle, name);
    __asm__ volatile("" : "+r"(found));
    return found;
}
int dlclose(void *handle)
{
    void *function = real("dlclose");
    int (*next)(void *);
    memcpy(&next, &function, sizeof next);
    closed++;
    return next(handle);
}
'''
PROGRAM = '''
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
int counted(void) __attribute__((weak));
int main(void)
{
    const char *names[] = {"dgemm_", "printf", "cblas_dgemm", "no_such_name", "train", "dgemm_64_"};
    void *library = dlopen("libblas.so.3", RTLD_NOW | RTLD_LOCAL);
    void *handles[] = {RTLD_DEFAULT, RTLD_NEXT, library};
    for (int h = 0; h < 3; h++)
        for (int n = 0; n < 6; n++) {
            void *found = dlsym(handles[h], names[n]);
            const char *message = dlerror();
            printf("%d %s %d %s\\n", h, names[n], found != NULL, !message ? "-" : h == 2 ? "no" : strstr(message, ": "));
        }
    dlclose(library);
    printf("counted %d\\n", counted ? counted() : -1);
    return 0;
}
'''
# It finds the next dlvsym by dlsym, at its first call.
ASKS = '''
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
void *dlvsym(void *handle, const char *name, const char *version)
{
    static void *next;
    void *(*function)(void *, const char *, const char *);
    if (!next)
        next = dlsym(RTLD_NEXT, "dlvsym");
    memcpy(&function, &next, sizeof next);
    void *found = function(handle, name, version);
    __asm__ volatile("" : "+r"(found));
    return found;
}
'''
LIBRARY = ("-shared", "-fPIC")


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """build(source, name, flag...): the path of what it has built."""
    folder = tmp_path_factory.mktemp("chain")

    def build(source, name, *flags):
        done = subprocess.run(["gcc", "-O1", "-xc", "-", "-o", folder / name, *flags, "-ldl"], input=source,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, done.stdout[-500:]
        return str(folder / name)

    return build


@pytest.fixture(scope="module")
def program(build):
    return build(PROGRAM, "program", "-Wl,-z,dynamic-undefined-weak", "-fPIC", "-pie")


@pytest.fixture(scope="module")
def libraries(build):
    return [build(COUNTS, name, "-DNAME=counted", *LIBRARY) for name in ("libone.so", "libtwo.so")]


# Which of the libraries come before libaccel, and which behind it.
PLACES = {
    "behind libaccel": ([], [0]), "before libaccel": ([0], []), "both": ([0], [1]), "two behind libaccel": ([], [0, 1])
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("place", PLACES)
def test_each_look_up_is_counted_once(place, mode, program, libraries):
    before, after = ([libraries[i] for i in numbers] for numbers in PLACES[place])
    native = start(program, env={"LD_PRELOAD": ":".join(before + after)})
    done = start(program, env={**MODES[mode], "LD_PRELOAD": ":".join([*before, MODES[mode]["LD_PRELOAD"], *after])})
    # One that comes first asks the C library itself: in the global scope that finds libaccel's
    # functions, also where there is no BLAS.
    found, wanted = ([line for line in d.stdout.splitlines() if not before or line[:2] not in ("0 ", "1 ")]
                     for d in (done, native))
    assert native.returncode == 0, native.stderr
    assert "counted 1018" in native.stdout
    assert done.returncode == 0, done.stderr[-300:]
    assert found == wanted
    assert not said(done)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("place", ("behind libaccel", "before libaccel"))
def test_a_dlvsym_that_asks_dlsym(place, mode, build, program):
    asks, ours = build(ASKS, "libasks.so", *LIBRARY), MODES[mode]["LD_PRELOAD"]
    native = start(program, env={"LD_PRELOAD": asks})
    preloads = [ours, asks] if place == "behind libaccel" else [asks, ours]
    done = start(program, env={**MODES[mode], "LD_PRELOAD": ":".join(preloads)})
    assert native.returncode == 0, native.stderr
    assert "2 dgemm_ 1" in native.stdout
    assert (done.returncode, done.stdout) == (0, native.stdout), done.stderr[-300:]
