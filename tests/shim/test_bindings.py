#!/usr/bin/python3 -B
"""Names that the dynamic linker would bind to libaccel by name alone: a library's variables, of all kinds, however they are reached; weak
references that nothing defines; references to a version of a name. All is as it is without libaccel."""

import os
import re
import struct
import subprocess
import tempfile
from pathlib import Path

from lib.log import said
from lib.programs import LOG, NO_GPU, ROOT, SHIM, TEST_GPU, start
from lib.tap import Tap

tap = Tap()
folder = tempfile.TemporaryDirectory(prefix="accel-bindings-")
SOURCES = ROOT / "tests/fixtures/bindings"
MODES = {"ACCEL=0": {**SHIM, "ACCEL": "0"}, "no GPU": NO_GPU, "test GPU": {**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0"}}
built = 0


def build(source, name, flags, shared=False, links=()):
    """In a folder of its own for each library, which is found beside the program."""
    path = Path(folder.name, name)
    path.parent.mkdir(exist_ok=True)
    command = ["gcc", "-std=gnu11", "-O1", "-DTEST_THREAD=", "-DNAME_POINTER=library_pointer", *(["-shared", "-fPIC"] if shared else []), *flags, source, "-o", path,
               *links, "-ldl", "-Wl,-rpath,$ORIGIN"]
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    tap.ok(done.returncode == 0, f"{name} is built", done.stdout[-500:])
    return path


def same(name, program, *words, expected=None, env=None):
    native = start(str(program), *words, env=env or {})
    good = native.returncode == 0 and (expected is None or native.stdout == expected)
    if not tap.ok(good, f"{name}: right without libaccel", native.returncode, native.stdout, native.stderr[-300:]):
        return
    for mode, settings in MODES.items():
        done = start(str(program), *words, env={**(env or {}), **settings})
        tap.ok((done.returncode, done.stdout) == (0, native.stdout) and not said(done) and "re-linking" not in done.stderr, f"{name}, {mode}: the same", done.returncode,
               done.stdout, done.stderr[-300:], "---", native.stdout)


# ---- Variables ----

SHOWN = "2 12 3 4 5"
for number, (name, bound) in enumerate((("train", "lazy"), ("svm_train", "now"), ("cblas_dgemm", "lazy"), ("cher", "now"))):
    here = f"{number}/"
    flags = [f"-DNAME={name}", f"-Wl,-z,{bound}"]
    library = build(SOURCES / "library.c", here + "libvariable.so", flags, shared=True)
    for form in "no-pie", "pie":
        uses = build(SOURCES / "program.c", here + form, [*flags, f"-{form}", "-fno-pie" if form == "no-pie" else "-fPIE"], links=[library])
        same(f"a library's variable {name}, {bound}, {form}", uses, expected=f"{SHOWN} 3\n")
        reads = build(SOURCES / "program.c", here + form + "_reads", [*flags, "-DTEST_READS", f"-{form}", "-fno-pie" if form == "no-pie" else "-fPIE"], links=[library])
        same(f"{name} read by the program, {bound}, {form}", reads, expected=f"{SHOWN} 3\n2 12 3 40\n3 12 3 40 5 3\n")
    # Not copied: the program has its address.
    far = build(SOURCES / "program.c", here + "far", [*flags, "-DTEST_READS", "-fPIC", "-pie"], links=[library])
    same(f"{name} read by its address, {bound}", far, expected=f"{SHOWN} 3\n2 12 3 40\n3 12 3 40 5 3\n")

for kind, flags, expected in (("a thread's variable", ["-DTEST_THREADS", "-DTEST_THREAD=_Thread_local"], SHOWN),):
    here = f"threads{len(flags)}/"
    flags = ["-DNAME=svm_train", "-UTEST_THREAD", *flags]
    library = build(SOURCES / "library.c", here + "libvariable.so", flags, shared=True)
    uses = build(SOURCES / "program.c", here + "uses", flags, links=[library])
    same(kind, uses, expected=expected + "\n")
    reads = build(SOURCES / "program.c", here + "reads", [*flags, "-DTEST_READS"], links=[library])
    same(f"{kind}, read by the program", reads, expected=f"{expected}\n2 12 3 40\n3 12 3 40 5\n")

# At fixed places from the thread pointer, which are not there yet when libaccel is relocated: such
# a place is right from libaccel's constructor on. Other machines than x86 have descriptors anyway.
GNU2 = ["-mtls-dialect=gnu2"] if os.uname().machine == "x86_64" else []
for kind, model in ("initial-exec", ["-ftls-model=initial-exec"]), ("descriptors", GNU2):
    here = f"threads_{kind}/"
    flags = ["-DNAME=svm_train", "-UTEST_THREAD", "-DTEST_THREADS", "-DTEST_NO_CONSTRUCTOR",
             "-DTEST_THREAD=_Thread_local", *model]
    library = build(SOURCES / "library.c", here + "libvariable.so", flags, shared=True)
    uses = build(SOURCES / "program.c", here + "uses", flags, links=[library])
    same(f"a thread's variable, {kind}", uses, expected=f"{SHOWN}\n")
    reads = build(SOURCES / "program.c", here + "reads", [*flags, "-fPIC", "-DTEST_READS"],
                  links=[library])
    same(f"a thread's variable, {kind}, read by the program", reads,
         expected=f"{SHOWN}\n2 12 3 40\n3 12 3 40 5\n")

# A variable that the assembler gives no type, and a number.
Path(folder.name, "data.s").write_text("""
.data
.balign 8
.globl svm_train, dgemm_
svm_train: .long 1, 2, 3, 4
dgemm_ = 0x1234
.section .note.GNU-stack
""")
Path(folder.name, "plain.c").write_text('''
#include <stdio.h>
extern int svm_train[4]; extern char dgemm_[];
void library_show(void) { svm_train[0]++; printf("%d %d %lx\\n", svm_train[0], svm_train[3], (unsigned long)dgemm_); }
''')
library = build(Path(folder.name, "plain.c"), "plain/libvariable.so", [Path(folder.name, "data.s")], shared=True)
same("names without a type", build(SOURCES / "program.c", "plain/uses", [], links=[library]), expected="2 4 1234\n")

# ---- Objects of another form ----


def close_dynamic_section(path):
    """As lld does with -z rodynamic: then the dynamic linker leaves its addresses as they are."""
    data = bytearray(path.read_bytes())
    headers, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for at in range(headers, headers + size * count, size):
        kind, = struct.unpack_from("<I", data, at)
        if kind == 2:  # PT_DYNAMIC
            struct.pack_into("<I", data, at + 4, 4)
    path.write_bytes(data)


library = build(SOURCES / "library.c", "closed/libvariable.so", ["-DNAME=dgemm_"], shared=True)
reads = build(SOURCES / "program.c", "closed/reads", ["-DNAME=dgemm_", "-DTEST_READS"],
              links=[library])
close_dynamic_section(library)
same("a dynamic section that cannot be written", reads,
     expected=f"{SHOWN} 3\n2 12 3 40\n3 12 3 40 5 3\n")

# ---- A library that is opened later ----

opens = build(SOURCES / "program.c", "opens", ["-DTEST_OPENS"])
looks = build(SOURCES / "library.c", "libdlsym.so", ["-DTEST_DLSYM"], shared=True)
same("functions that a library keeps in variables, opened", opens, looks, expected="1 1\n")
linked = build(SOURCES / "program.c", "linked", [], links=[looks])
same("functions that a library keeps in variables, linked", linked, expected="1 1\n")
train = build(SOURCES / "library.c", "libtrain.so", ["-DNAME=train"], shared=True)
same("a variable that is a word, opened, with a constructor that writes to it", opens, train, expected=f"{SHOWN} 3\n")
LINKER = re.search(r"interpreter: (.*)]", subprocess.run(["readelf", "-lW", linked], stdout=subprocess.PIPE, text=True).stdout)[1]
library = build(SOURCES / "library.c", "closed/libopened.so",
                ["-DNAME=dgemm_", "-DTEST_NO_CONSTRUCTOR"], shared=True)
close_dynamic_section(library)
same("a library whose dynamic section cannot be written, opened", opens, library,
     expected=f"{SHOWN} 3\n")
same("a program that the dynamic linker's file starts", LINKER, linked, expected="1 1\n")

# ---- Weak references ----

WEAK = "extern void {0}(void) __attribute__((weak)); void library_show(void) {{ puts({0} ? \"there\" : \"not there\"); }}"
for name in "dgemm_", "cblas_dgemm", "svm_train":
    Path(folder.name, "weak.c").write_text("#include <stdio.h>\n" + WEAK.format(name) + "\n")
    library = build(Path(folder.name, "weak.c"), f"weak_{name}/libweak.so", [], shared=True)
    uses = build(SOURCES / "program.c", f"weak_{name}/uses", [f"-DNAME={name}", "-DTEST_WEAK", "-fPIC", "-pie"], links=[library, "-Wl,-z,dynamic-undefined-weak"])
    same(f"a weak reference to {name} that nothing defines", uses, expected="not there\nnot there\n")
    same(f"a weak reference to {name} in a library that is opened", opens, library, expected="not there\n")
uses = build(SOURCES / "program.c", "weak_dgemm_/linked", ["-DNAME=dgemm_", "-DTEST_WEAK", "-fPIC", "-pie"],
             links=[Path(folder.name, "weak_dgemm_/libweak.so"), "-Wl,--no-as-needed,-z,dynamic-undefined-weak", "-l:libblas.so.3"])
same("a weak reference to a function that is there", uses, expected="there\nthere\n")

# In a preload that comes before libaccel, and is relocated behind it.
ahead = Path(folder.name, "weak_dgemm_/libweak.so")
plain = build(SOURCES / "program.c", "weak_dgemm_/plain", ["-DNAME=dgemm_", "-DTEST_WEAK"],
              links=[ahead])
for mode, settings in MODES.items():
    done = start(str(plain), env={**settings, "LD_PRELOAD": f"{ahead}:{settings['LD_PRELOAD']}"})
    tap.ok((done.returncode, done.stdout) == (0, "not there\nnot there\n"),
           f"a weak reference of a preload before libaccel, {mode}: empty", done.returncode,
           done.stdout, done.stderr[-300:])

# ---- Versions ----

Path(folder.name, "versions.c").write_text('''
__asm__(".symver old, dgemm_@FOO_1\\n.symver new, dgemm_@@FOO_2");
int old(void) { return 1; } int new(void) { return 2; }
#ifdef TEST_OBJECT
int train = 7;
#else
int train(void) { return 7; }
#endif
''')
Path(folder.name, "versions.map").write_text("FOO_1 { global: train; dgemm_; local: *; }; FOO_2 { global: dgemm_; } FOO_1;\n")
Path(folder.name, "user.c").write_text('''
#include <stdio.h>
__asm__(".symver first, dgemm_@FOO_1");
int first(void), dgemm_(void);
#ifdef TEST_OBJECT
extern int train;
#    define TRAIN train
#else
int train(void);
#    define TRAIN train()
#endif
int main(void) { printf("%d %d %d\\n", first(), dgemm_(), TRAIN); return 0; }
''')
for kind, flags in ("functions", []), ("a variable", ["-DTEST_OBJECT"]):
    here = f"versions{len(flags)}/"
    library = build(Path(folder.name, "versions.c"), here + "libversions.so", [*flags, f"-Wl,--version-script={folder.name}/versions.map"], shared=True)
    same(f"versions of a name, {kind}", build(Path(folder.name, "user.c"), here + "user", flags, links=[library]), expected="1 2 7\n")
tap.done()
