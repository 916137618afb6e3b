#!/usr/bin/python3 -B
"""Names that the dynamic linker would bind to libaccel by name alone: a library's variables, of all kinds, however they are reached; weak
references that nothing defines; references to a version of a name. All is as it is without libaccel."""

import os
import re
import struct
import subprocess
import tempfile
from pathlib import Path

from lib.log import lines_for, said
from lib.programs import LOG, NO_GPU, ROOT, SHIM, TEST_GPU, TESTS, start
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


def headers(data):
    """Where each of a file's program headers begins, and its kind."""
    first, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for at in range(first, first + size * count, size):
        yield at, struct.unpack_from("<I", data, at)[0]


def close_dynamic_section(path):
    """As lld does with -z rodynamic: then the dynamic linker leaves its addresses as they are."""
    data = bytearray(path.read_bytes())
    for at, kind in headers(data):
        if kind == 2:  # PT_DYNAMIC
            struct.pack_into("<I", data, at + 4, 4)
    path.write_bytes(data)


def leave_pages_open(path):
    """Behind the pages that the dynamic linker closes (PT_GNU_RELRO), none is left."""
    data = bytearray(path.read_bytes())
    for at, kind in headers(data):
        if kind == 0x6474e552:
            begin, _, _, size = struct.unpack_from("<QQQQ", data, at + 16)
            struct.pack_into("<QQQQ", data, at + 16, begin + size, begin + size, 0, 0)
    path.write_bytes(data)


def keep_no_list(path):
    """lld with -z rodynamic leaves out the entry by which debuggers find the objects (DT_DEBUG)."""
    data = bytearray(path.read_bytes())
    for at, kind in headers(data):
        if kind == 2:
            begin, _, _, size = struct.unpack_from("<QQQQ", data, at + 8)
            for entry in range(begin, begin + size, 16):
                if struct.unpack_from("<Q", data, entry)[0] == 21:
                    struct.pack_into("<Q", data, entry, 0x6ffffef0)
    path.write_bytes(data)


# Without versions, and with the older hash table alone.
OLD = ["-nostdlib", "-nostartfiles", "-Wl,--hash-style=sysv"]
for kind, flags, changes in (("closed", [], [close_dynamic_section]),
                             ("closed, old", OLD, [close_dynamic_section]), ("old", OLD, []),
                             ("open", ["-Wl,-z,now"], [leave_pages_open])):
    here = kind.replace(", ", "_") + "/"
    library = build(SOURCES / "library.c", here + "libvariable.so", ["-DNAME=dgemm_", *flags],
                    shared=True)
    reads = build(SOURCES / "program.c", here + "reads", ["-DNAME=dgemm_", "-DTEST_READS"],
                  links=[library])
    uses = build(SOURCES / "program.c", here + "uses", [], links=[library])
    for change in changes:
        change(library)
    same(f"a library of another form: {kind}, by itself", uses, expected=f"{SHOWN} 3\n")
    same(f"a library of another form: {kind}", reads,
         expected=f"{SHOWN} 3\n2 12 3 40\n3 12 3 40 5 3\n")

# Several segments that can be written to, with places in each.
Path(folder.name, "segments.c").write_text('''
#include <stdio.h>
int dgemm_[4] = {1, 2, 3, 4};
__attribute__((section(".far"))) int *far_pointer = &dgemm_[2];
void library_show(void) { printf("%d %d\\n", *far_pointer, dgemm_[1]); }
''')
library = build(Path(folder.name, "segments.c"), "segments/libvariable.so",
                ["-Wl,--section-start=.far=0x400000"], shared=True)
same("places in two segments", build(SOURCES / "program.c", "segments/uses", [], links=[library]),
     expected="3 2\n")

# A program from lld with -z rodynamic: debuggers, and libaccel, find the objects otherwise.
reads = build(SOURCES / "program.c", "no_list/reads", ["-DNAME=dgemm_", "-DTEST_READS"],
              links=[build(SOURCES / "library.c", "no_list/libvariable.so", ["-DNAME=dgemm_"],
                           shared=True)])
keep_no_list(reads)
same("a program without a list for debuggers", reads,
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

library = build(SOURCES / "library.c", "threads_opened/libopened.so",
                ["-DNAME=svm_train", "-UTEST_THREAD", "-DTEST_THREADS", "-DTEST_NO_CONSTRUCTOR",
                 "-DTEST_THREAD=_Thread_local"], shared=True)
same("a thread's variable, opened", opens, library, expected=f"{SHOWN}\n")
same("names without a type, opened", opens, Path(folder.name, "plain/libvariable.so"),
     expected="2 4 1234\n")

# A function that an indirect one chooses, in another library: no variable, so that calls of this
# name in others are libaccel's as before.
Path(folder.name, "chosen.c").write_text("int chosen(void) { return 6; }\n")
Path(folder.name, "chooses.c").write_text('''
int chosen(void);
static void *choose(void) { return (void *)chosen; }
int dgemm_(void) __attribute__((ifunc("choose")));
''')
Path(folder.name, "indirect.c").write_text('''
#include <stdio.h>
int dgemm_(void) __attribute__((weak));
int (*pointer)(void) = dgemm_;
void library_show(void) { printf("%d %d\\n", dgemm_ ? dgemm_() : 0, pointer()); fflush(stdout); }
''')
NEEDED = ["-Wl,--no-as-needed"]
library = build(Path(folder.name, "indirect.c"), "indirect/libindirect.so", [], shared=True, links=[
    *NEEDED, build(Path(folder.name, "chooses.c"), "indirect/libchooses.so", [], shared=True, links=[
        *NEEDED, build(Path(folder.name, "chosen.c"), "indirect/libchosen.so", [], shared=True)])])
same("an indirect function that chooses another library's", opens, library, expected="6 6\n")
INDIRECT = f"""
import ctypes
ctypes.CDLL("{library}").library_show()
ctypes.CDLL("{TESTS}/libcaller_lp64.so").caller_product(6)
"""
done = start("/usr/bin/python3", "-c", INDIRECT, env={**TEST_GPU, **LOG})
tap.ok(done.returncode == 0 and done.stdout == "6 6\n" and [line["ran"] for line in lines_for(done, sym="dgemm_", m="6")] == ["gpu0"],
       "and a product of another library is still seen", done.returncode, done.stdout, done.stderr[-500:])

# Places of an object are put right some at a time: more of them, and as many as there are at a
# time.
Path(folder.name, "many.c").write_text('''
int printf(const char *, ...);
int dgemm_[4] = {1, 2, 3, 4};
#define FOUR &dgemm_[0], &dgemm_[1], &dgemm_[2], &dgemm_[3]
#define SIXTEEN FOUR, FOUR, FOUR, FOUR
int *place[] = {SIXTEEN, SIXTEEN MORE};
void library_show(void)
{
    int sum = 0;
    for (unsigned i = 0; i < sizeof place / sizeof *place; i++)
        sum += *place[i];
    printf("%d\\n", sum);
}
''')
for count, more in (32, ""), (80, ", SIXTEEN, SIXTEEN, SIXTEEN"):
    library = build(Path(folder.name, "many.c"), f"many_{count}/libmany.so",
                    [f"-DMORE={more}", "-fvisibility=default", "-nostdlib", "-nostartfiles"],
                    shared=True)
    same(f"{count} places, opened", opens, library, expected=f"{count // 4 * 10}\n")

# ---- Functions whose names are words ----

# A library that has one and the name with it is taken for the library of that name. Calls are bound
# late; pointers may be set to other functions before libaccel looks at them.
Path(folder.name, "words.c").write_text('''
#ifdef TEST_OTHER
int train(void) { return 8; }
#else
int train(void) { return 7; }
int after(void) { return 9; }
void free_and_destroy_model(void) {}
#endif
''')
Path(folder.name, "user.c").write_text('''
#include <stdio.h>
#ifndef TEST_CHOICE
#    define TEST_CHOICE train
#endif
int train(void), after(void);
int own(void) { return 5; }
int (*pointer)(void) = train;
__attribute__((constructor)) static void choose(void) { pointer = TEST_CHOICE; }
void library_show(void) { printf("%d %d\\n", train(), pointer()); }
#ifndef TEST_LIBRARY
int main(void) { library_show(); return 0; }
#endif
''')
words = build(Path(folder.name, "words.c"), "words/libwords.so", [], shared=True)
other = build(Path(folder.name, "words.c"), "words/libother.so", ["-DTEST_OTHER"], shared=True)
LATE = ["-Wl,-z,lazy"]
late = build(SOURCES / "program.c", "late", ["-DTEST_OPENS", "-DTEST_LATE"])
for choice, shown in ("train", "7 7\n"), ("own", "7 5\n"), ("after", "7 9\n"):
    library = build(Path(folder.name, "user.c"), f"words/libuser_{choice}.so",
                    [*LATE, f"-DTEST_CHOICE={choice}", "-DTEST_LIBRARY"], shared=True,
                    links=[words])
    same(f"a word, {choice}, opened", opens, library, expected=shown)
    same(f"a word, {choice}, opened, bound late", late, library, expected=shown)
    for form in "no-pie", "pie":
        same(f"a word, {choice}, {form}",
             build(Path(folder.name, "user.c"), f"words/{form}_{choice}",
                   [*LATE, f"-DTEST_CHOICE={choice}", f"-{form}",
                    "-fno-pie" if form == "no-pie" else "-fPIE"], links=[words]), expected=shown)
    linked = build(SOURCES / "program.c", f"words/linked_{choice}", [], links=[library])
    same(f"a word, {choice}, of a library that the program is linked to", linked, expected=shown)
same("a word that another library has, too",
     build(Path(folder.name, "user.c"), "words/both", LATE,
           links=["-Wl,--no-as-needed", other, words]), expected="8 8\n")

library = build(Path(folder.name, "user.c"), "words/libalone.so",
                ["-DTEST_LIBRARY", "-DTEST_CHOICE=own", Path(folder.name, "words.c")], shared=True)
same("a word that the library itself has", opens, library, expected="7 5\n")

# Calls of a word's library are seen, those by a pointer, too, whenever the word was bound.
Path(folder.name, "trains.c").write_text('''
#include <linear.h>
#include <stdio.h>
struct model *(*pointer)(const struct problem *, const struct parameter *) = train;
static void silent(const char *text) { (void)text; }
void library_show(void)
{
    struct feature_node one[] = {{1, 1}, {-1, 0}}, other[] = {{1, -1}, {-1, 0}}, *rows[] = {one, other};
    double labels[] = {1, -1};
    const struct problem problem = {.l = 2, .n = 1, .y = labels, .x = rows, .bias = -1};
    const struct parameter parameter = {.solver_type = L2R_LR, .eps = 0.01, .C = 1};
    set_print_string_function(silent);
    printf("%d %d\\n", train(&problem, &parameter)->nr_class, pointer(&problem, &parameter)->nr_class);
}
''')
for bound in "lazy", "now":
    library = build(Path(folder.name, "trains.c"), f"trains_{bound}/libtrains.so", [f"-Wl,-z,{bound}"],
                    shared=True, links=["-l:liblinear.so.4"])
    linked = build(SOURCES / "program.c", f"trains_{bound}/linked", [], links=[library])
    for way, words in {"linked": [linked], "opened": [opens, library],
                       "opened, bound late": [late, library]}.items():
        done = start(*map(str, words), env=MODES["test GPU"])
        seen = [line["ran"] for line in lines_for(done, sym="train")]
        tap.ok((done.returncode, done.stdout, seen) == (0, "2 2\n", ["gpu0", "gpu0"]),
               f"calls of a word's library, {bound}, {way}: both are seen", done.returncode,
               done.stdout, seen, done.stderr[-500:])

# References of a library that is opened: weak ones that nothing defines, a call that is never made,
# a number, a variable of each thread's, another version.
Path(folder.name, "around.c").write_text('''
#include <stdio.h>
#if TEST_KIND == 0
int train(void) __attribute__((weak));
void library_show(void) { puts(train ? "there" : "not there"); }
#elif TEST_KIND == 1
int train(void);
void library_show(void) { puts(stdout ? "not called" : "called"); if (!stdout) train(); }
#elif TEST_KIND == 2
extern char train[];
void library_show(void) { printf("%lx\\n", (unsigned long)train); }
#elif TEST_KIND == 3
_Thread_local int train = 3;
void library_show(void) { printf("%d\\n", train++); }
#else
int train(void);
void library_show(void) { printf("%d\\n", train()); }
#endif
''')
Path(folder.name, "number.s").write_text('''
.globl train
train = 0x1234
.section .note.GNU-stack
''')
Path(folder.name, "words.map").write_text("FOO_1 { global: *; };\n")
versioned = build(Path(folder.name, "words.c"), "words_versions/libwords.so",
                  [f"-Wl,--version-script={folder.name}/words.map"], shared=True)
for number, (kind, also, shown) in enumerate((("a weak reference", [], "not there\n"),
                                              ("a call that is not made", [], "not called\n"),
                                              ("a number", [Path(folder.name, "number.s")], "1234\n"),
                                              ("a thread's variable", [], "3\n"),
                                              ("a version", [versioned], "7\n"))):
    around = build(Path(folder.name, "around.c"), f"words/libaround_{number}.so",
                   [*LATE, f"-DTEST_KIND={number}", f"-Wl,-rpath,{versioned.parent}"], shared=True,
                   links=also)
    # The library of that name is there, and not for it.
    same(f"a word, {kind}", late, around, words, expected=shown)

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

# Nothing can use such a variable: there is no word to be put right.
Path(folder.name, "weak.c").write_text('''
#include <stdio.h>
extern _Thread_local int svm_train __attribute__((weak));
int *address(void);
int *address(void) { return &svm_train; }
void library_show(void) { puts("shown"); }
''')
library = build(Path(folder.name, "weak.c"), "weak_thread/libweak.so", [], shared=True)
same("a weak reference to a thread's variable that nothing defines",
     build(SOURCES / "program.c", "weak_thread/uses", [], links=[library]), expected="shown\n")
same("the same in a library that is opened", opens, library, expected="shown\n")

# At a fixed place from the thread pointer, in a library that is opened: nothing is put there, as
# there is no such place. It does no harm as long as the variable is not used.
Path(folder.name, "unused.c").write_text('''
#include <stdio.h>
_Thread_local int svm_train = 3;
int *address(void) { return &svm_train; }
void library_show(void) { puts("shown"); }
''')
for kind, model in ("initial-exec", ["-ftls-model=initial-exec"]), ("descriptors", GNU2):
    library = build(Path(folder.name, "unused.c"), f"unused_{kind}/libunused.so", model,
                    shared=True)
    same(f"a thread's variable, {kind}, opened and not used", opens, library, expected="shown\n")

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
