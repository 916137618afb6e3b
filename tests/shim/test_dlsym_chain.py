#!/usr/bin/python3 -B
"""Other preloads with a dlsym of their own, behind libaccel and before it: each of the program's look-ups asks them once, as without libaccel."""

import subprocess
import tempfile
from pathlib import Path

from lib.log import said
from lib.programs import LOG, NO_GPU, SHIM, TEST_GPU, start
from lib.tap import Tap

tap = Tap()
folder = tempfile.TemporaryDirectory(prefix="accel-chain-")
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


def build(source, name, *flags):
    path = Path(folder.name, name)
    done = subprocess.run(["gcc", "-O1", "-xc", "-", "-o", path, *flags, "-ldl"], input=source, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    tap.ok(done.returncode == 0, f"{name} is built", done.stdout[-500:])
    return str(path)


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

one, two = (build(COUNTS, name, "-DNAME=counted", "-shared", "-fPIC") for name in ("libone.so", "libtwo.so"))
program = build(PROGRAM, "program", "-Wl,-z,dynamic-undefined-weak", "-fPIC", "-pie")
for name, before, after in (("behind libaccel", [], [one]), ("before libaccel", [one], []), ("both", [one], [two]), ("two behind libaccel", [], [one, two])):
    native = start(program, env={"LD_PRELOAD": ":".join(before + after)})
    tap.ok(native.returncode == 0 and "counted 1018" in native.stdout, f"{name}: counted without libaccel", native.stdout, native.stderr)
    for mode, env in MODES.items():
        done = start(program, env={**env, "LD_PRELOAD": ":".join([*before, env["LD_PRELOAD"], *after])})
        # One that comes first asks the C library itself: in the global scope that finds libaccel's
        # functions, also where there is no BLAS.
        found, wanted = ([line for line in d.stdout.splitlines() if not before or line[:2] not in ("0 ", "1 ")] for d in (done, native))
        tap.ok(done.returncode == 0 and found == wanted and not said(done), f"{name}, {mode}: each look-up is counted once", done.returncode,
               *set(found) ^ set(wanted), done.stderr[-300:])
asks = build(ASKS, "libasks.so", "-shared", "-fPIC")
native = start(program, env={"LD_PRELOAD": asks})
tap.ok(native.returncode == 0 and "2 dgemm_ 1" in native.stdout,
       "a dlvsym that asks dlsym, without libaccel", native.returncode, native.stdout,
       native.stderr)
for mode, env in MODES.items():
    ours = env["LD_PRELOAD"]
    for name, preloads in ("behind libaccel", [ours, asks]), ("before libaccel", [asks, ours]):
        done = start(program, env={**env, "LD_PRELOAD": ":".join(preloads)})
        tap.ok((done.returncode, done.stdout) == (0, native.stdout),
               f"a dlvsym that asks dlsym, {name}, {mode}", done.returncode, done.stdout,
               done.stderr[-300:])
tap.done()
