#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Names that the dynamic linker would bind to libaccel by name alone: a library's variables, of all kinds, however
they are reached; weak references that nothing defines; references to a version of a name. All is as it is without
libaccel."""

import os
import re
import struct
import subprocess

import pytest

from lib.log import lines_for, said
from lib.programs import LOG, NO_GPU, ROOT, SHIM, TEST_GPU, TESTS, start

SOURCES = ROOT / "tests/fixtures/bindings"
LIBRARY, PROGRAM = SOURCES / "library.c", SOURCES / "program.c"
MODES = {"ACCEL=0": {**SHIM, "ACCEL": "0"}, "no GPU": NO_GPU, "test GPU": {**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0"}}


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """build(source: a file or a text, name, flags, ...): in a folder of its own for each library, which is found
    beside the program."""
    folder = tmp_path_factory.mktemp("bindings")

    def build(source, name, flags=(), shared=False, links=()):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        if isinstance(source, str):
            text, source = source, path.with_suffix(".c")
            source.write_text(text)
        command = [
            "gcc", "-std=gnu11", "-O1", "-DTEST_THREAD=", "-DNAME_POINTER=library_pointer",
            *(["-shared", "-fPIC"] if shared else []), *flags, source, "-o", path, *links, "-ldl", "-Wl,-rpath,$ORIGIN"
        ]
        done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
        assert done.returncode == 0, done.stdout[-500:]
        return path

    build.folder = folder
    return build


def check(expected, program, *words):
    """The program prints this without libaccel and, in each mode, with it, which says nothing."""
    ended = {mode: start(str(program), *words, env=env) for mode, env in {"without libaccel": {}, **MODES}.items()}
    outcomes = {mode: (done.returncode, done.stdout) for mode, done in ended.items()}
    assert outcomes == dict.fromkeys(ended, (0, expected)), {mode: done.stderr[-300:] for mode, done in ended.items()}
    assert not [(mode, *said(done)) for mode, done in ended.items() if said(done) or "re-linking" in done.stderr]


@pytest.fixture(scope="module")
def opens(build):
    """A program that opens a library."""
    return build(PROGRAM, "opens", ["-DTEST_OPENS"])


@pytest.fixture(scope="module")
def late(build):
    """The same with calls that are bound late."""
    return build(PROGRAM, "late", ["-DTEST_OPENS", "-DTEST_LATE"])


# ---- Variables ----

SHOWN = "2 12 3 4 5"
READ = f"{SHOWN} 3\n2 12 3 40\n3 12 3 40 5 3\n"  # by the program, too
THREADS_READ = f"{SHOWN}\n2 12 3 40\n3 12 3 40 5\n"


@pytest.fixture(scope="module",
                params=(("train", "lazy"), ("svm_train", "now"), ("cblas_dgemm", "lazy"), ("cher", "now")),
                ids=", ".join)
def variable(request, build):
    """A library with a variable of a name: its folder, the compiler's flags, the library."""
    name, bound = request.param
    flags = [f"-DNAME={name}", f"-Wl,-z,{bound}"]
    return name + "/", flags, build(LIBRARY, name + "/libvariable.so", flags, shared=True)


@pytest.mark.parametrize("form", (["-no-pie", "-fno-pie"], ["-pie", "-fPIE"]), ids=" ".join)
def test_a_librarys_variable(variable, form, build):
    here, flags, library = variable
    check(f"{SHOWN} 3\n", build(PROGRAM, here + form[0], [*flags, *form], links=[library]))


@pytest.mark.parametrize("form", (["-no-pie", "-fno-pie"], ["-pie", "-fPIE"], ["-fPIC", "-pie"]),
                         ids=("no-pie", "pie", "by its address, not copied"))
def test_variable_read_by_the_program(variable, form, build):
    here, flags, library = variable
    check(READ, build(PROGRAM, here + "".join(form), [*flags, "-DTEST_READS", *form], links=[library]))


# Variables of each thread's: those of some models are at fixed places from the thread pointer,
# which are not there yet when libaccel is relocated: such a place is right from libaccel's
# constructor on. Other machines than x86 have descriptors anyway.
GNU2 = ["-mtls-dialect=gnu2"] if os.uname().machine == "x86_64" else []
OF_THREADS = ["-DNAME=svm_train", "-UTEST_THREAD", "-DTEST_THREADS", "-DTEST_THREAD=_Thread_local"]
ALONE = "-DTEST_NO_CONSTRUCTOR"
MODELS = {"initial-exec": ["-ftls-model=initial-exec"], "descriptors": GNU2}


@pytest.mark.parametrize("kind, flags, reads",
                         (("usual", [], []), *((kind, [ALONE, *model], ["-fPIC"]) for kind, model in MODELS.items())),
                         ids=("usual", *MODELS))
def test_a_threads_variable(kind, flags, reads, build):
    flags = [*OF_THREADS, *flags]
    library = build(LIBRARY, f"threads_{kind}/libvariable.so", flags, shared=True)
    check(f"{SHOWN}\n", build(PROGRAM, f"threads_{kind}/uses", flags, links=[library]))
    check(THREADS_READ, build(PROGRAM, f"threads_{kind}/reads", [*flags, *reads, "-DTEST_READS"], links=[library]))


def test_a_threads_variable_opened(build, opens):
    check(f"{SHOWN}\n", opens, build(LIBRARY, "threads_opened/libopened.so", [*OF_THREADS, ALONE], shared=True))


# A variable that the assembler gives no type, and a number.
DATA = '''
.data
.balign 8
.globl svm_train, dgemm_
svm_train: .long 1, 2, 3, 4
dgemm_ = 0x1234
.section .note.GNU-stack
'''
WITHOUT_TYPE = '''
#include <stdio.h>
extern int svm_train[4]; extern char dgemm_[];
void library_show(void) { svm_train[0]++; printf("%d %d %lx\\n", svm_train[0], svm_train[3], (unsigned long)dgemm_); }
'''


def test_names_without_a_type(build, opens):
    data = build.folder / "data.s"
    data.write_text(DATA)
    library = build(WITHOUT_TYPE, "plain/libvariable.so", [data], shared=True)
    check("2 4 1234\n", build(PROGRAM, "plain/uses", links=[library]))
    check("2 4 1234\n", opens, library)


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


@pytest.mark.parametrize("kind, flags, change",
                         (("closed", [], close_dynamic_section), ("closed, old", OLD, close_dynamic_section),
                          ("old", OLD, None), ("open", ["-Wl,-z,now"], leave_pages_open)), ids=lambda value: value
                         if isinstance(value, str) else "")
def test_library_of_another_form(kind, flags, change, build):
    library = build(LIBRARY, f"{kind}/libvariable.so", ["-DNAME=dgemm_", *flags], shared=True)
    reads = build(PROGRAM, f"{kind}/reads", ["-DNAME=dgemm_", "-DTEST_READS"], links=[library])
    uses = build(PROGRAM, f"{kind}/uses", links=[library])
    if change:
        change(library)
    check(f"{SHOWN} 3\n", uses)
    check(READ, reads)


SEGMENTS = '''
#include <stdio.h>
int dgemm_[4] = {1, 2, 3, 4};
__attribute__((section(".far"))) int *far_pointer = &dgemm_[2];
void library_show(void) { printf("%d %d\\n", *far_pointer, dgemm_[1]); }
'''


def test_places_in_two_segments_that_can_be_written_to(build):
    library = build(SEGMENTS, "segments/libvariable.so", ["-Wl,--section-start=.far=0x400000"], shared=True)
    check("3 2\n", build(PROGRAM, "segments/uses", links=[library]))


def test_program_without_a_list_for_debuggers(build):
    """From lld with -z rodynamic: debuggers, and libaccel, find the objects otherwise."""
    library = build(LIBRARY, "no_list/libvariable.so", ["-DNAME=dgemm_"], shared=True)
    reads = build(PROGRAM, "no_list/reads", ["-DNAME=dgemm_", "-DTEST_READS"], links=[library])
    keep_no_list(reads)
    check(READ, reads)


# ---- A library that is opened later ----


def test_functions_that_a_library_keeps_in_variables(build, opens):
    looks = build(LIBRARY, "libdlsym.so", ["-DTEST_DLSYM"], shared=True)
    linked = build(PROGRAM, "linked", links=[looks])
    headers_of = subprocess.run(["readelf", "-lW", linked], stdout=subprocess.PIPE, text=True).stdout
    check("1 1\n", opens, looks)
    check("1 1\n", linked)
    check("1 1\n", re.search(r"interpreter: (.*)]", headers_of)[1], linked)  # the dynamic linker's file starts it


def test_variable_that_is_a_word_opened_with_a_constructor_that_writes_to_it(build, opens):
    check(f"{SHOWN} 3\n", opens, build(LIBRARY, "libtrain.so", ["-DNAME=train"], shared=True))


def test_library_whose_dynamic_section_cannot_be_written_opened(build, opens):
    library = build(LIBRARY, "closed/libopened.so", ["-DNAME=dgemm_", ALONE], shared=True)
    close_dynamic_section(library)
    check(f"{SHOWN} 3\n", opens, library)


CHOOSES = '''
int chosen(void);
static void *choose(void) { return (void *)chosen; }
int dgemm_(void) __attribute__((ifunc("choose")));
'''
INDIRECT = '''
#include <stdio.h>
int dgemm_(void) __attribute__((weak));
int (*pointer)(void) = dgemm_;
void library_show(void) { printf("%d %d\\n", dgemm_ ? dgemm_() : 0, pointer()); fflush(stdout); }
'''
CALLS = """
import ctypes, sys
ctypes.CDLL(sys.argv[1]).library_show()
ctypes.CDLL(sys.argv[2]).caller_product(6)
"""


def test_indirect_function_that_chooses_another_librarys(build, opens):
    """No variable, so that calls of this name in others are libaccel's as before."""
    needed = ["-Wl,--no-as-needed"]
    chosen = build("int chosen(void) { return 6; }\n", "indirect/libchosen.so", shared=True)
    chooses = build(CHOOSES, "indirect/libchooses.so", shared=True, links=[*needed, chosen])
    library = build(INDIRECT, "indirect/libindirect.so", shared=True, links=[*needed, chooses])
    check("6 6\n", opens, library)
    done = start("/usr/bin/python3", "-c", CALLS, library, TESTS / "libcaller_lp64.so", env={**TEST_GPU, **LOG})
    assert (done.returncode, done.stdout) == (0, "6 6\n"), done.stderr[-500:]
    assert [line["ran"]
            for line in lines_for(done, sym="dgemm_", m="6")] == ["gpu0"], "a product of another library is still seen"


MANY = '''
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
'''


@pytest.mark.parametrize("count, more", ((32, ""), (80, ", SIXTEEN, SIXTEEN, SIXTEEN")),
                         ids=("as many as there are at a time", "more"))
def test_places_are_put_right_some_at_a_time(count, more, build, opens):
    flags = [f"-DMORE={more}", "-fvisibility=default", "-nostdlib", "-nostartfiles"]
    check(f"{count // 4 * 10}\n", opens, build(MANY, f"many_{count}/libmany.so", flags, shared=True))


# ---- Functions whose names are words ----

# A library that has one and the name with it is taken for the library of that name. Calls are bound
# late; pointers may be set to other functions before libaccel looks at them.
WORDS = '''
#ifdef TEST_OTHER
int train(void) { return 8; }
#else
int train(void) { return 7; }
int after(void) { return 9; }
void free_and_destroy_model(void) {}
#endif
'''
USER = '''
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
'''
LATE = ["-Wl,-z,lazy"]


@pytest.fixture(scope="module")
def words(build):
    return build(WORDS, "words/libwords.so", shared=True)


@pytest.mark.parametrize("choice, shown", (("train", "7 7\n"), ("own", "7 5\n"), ("after", "7 9\n")))
def test_word(choice, shown, build, words, opens, late):
    flags = [*LATE, f"-DTEST_CHOICE={choice}"]
    library = build(USER, f"words/libuser_{choice}.so", [*flags, "-DTEST_LIBRARY"], shared=True, links=[words])
    check(shown, opens, library)
    check(shown, late, library)
    check(shown, build(USER, f"words/no_pie_{choice}", [*flags, "-no-pie", "-fno-pie"], links=[words]))
    check(shown, build(USER, f"words/pie_{choice}", [*flags, "-pie", "-fPIE"], links=[words]))
    check(shown, build(PROGRAM, f"words/linked_{choice}", links=[library]))


def test_word_that_another_library_has_too(build, words):
    other = build(WORDS, "words/libother.so", ["-DTEST_OTHER"], shared=True)
    check("8 8\n", build(USER, "words/both", LATE, links=["-Wl,--no-as-needed", other, words]))


def test_word_that_the_library_itself_has(build, words, opens):
    flags = ["-DTEST_LIBRARY", "-DTEST_CHOICE=own", words.with_suffix(".c")]
    check("7 5\n", opens, build(USER, "words/libalone.so", flags, shared=True))


TRAINS = '''
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
'''


@pytest.mark.parametrize("way", ("linked", "opened", "opened, bound late"))
@pytest.mark.parametrize("bound", ("lazy", "now"))
def test_calls_of_a_words_library_are_seen_those_by_a_pointer_too(bound, way, build, opens, late):
    library = build(TRAINS, f"trains_{bound}/libtrains.so", [f"-Wl,-z,{bound}"], shared=True,
                    links=["-l:liblinear.so.4"])
    if way == "linked":
        command = [build(PROGRAM, f"trains_{bound}/linked", links=[library])]
    else:
        command = [opens if way == "opened" else late, library]
    done = start(*map(str, command), env=MODES["test GPU"])
    assert (done.returncode, done.stdout) == (0, "2 2\n"), done.stderr[-500:]
    assert [line["ran"] for line in lines_for(done, sym="train")] == ["gpu0", "gpu0"]


AROUND = '''
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
'''
NUMBER = '''
.globl train
train = 0x1234
.section .note.GNU-stack
'''
KINDS = ("a weak reference", "a call that is not made", "a number", "a thread's variable", "a version")


@pytest.mark.parametrize("kind, shown", enumerate(("not there", "not called", "1234", "3", "7")), ids=KINDS)
def test_word_in_a_library_that_is_opened(kind, shown, build, words, late, tmp_path):
    """References that nothing defines, or that are no calls. The library of that name is there, and not for it."""
    (tmp_path / "number.s").write_text(NUMBER)
    (tmp_path / "words.map").write_text("FOO_1 { global: *; };\n")
    versioned = build(WORDS, f"words_versions_{kind}/libwords.so", [f"-Wl,--version-script={tmp_path}/words.map"],
                      shared=True)
    links = {2: [tmp_path / "number.s"], 4: [versioned]}
    around = build(AROUND, f"words/libaround_{kind}.so",
                   [*LATE, f"-DTEST_KIND={kind}", f"-Wl,-rpath,{versioned.parent}"], shared=True,
                   links=links.get(kind, []))
    check(shown + "\n", late, around, words)


# ---- Weak references ----

WEAK = """#include <stdio.h>
extern void NAME(void) __attribute__((weak));
void library_show(void) { puts(NAME ? "there" : "not there"); }
"""


def weak_library(build, name):
    return build(WEAK, f"weak_{name}/libweak.so", [f"-DNAME={name}"], shared=True)


@pytest.mark.parametrize("name", ("dgemm_", "cblas_dgemm", "svm_train"))
def test_weak_reference_that_nothing_defines(name, build, opens):
    library = weak_library(build, name)
    check(
        "not there\nnot there\n",
        build(PROGRAM, f"weak_{name}/uses", [f"-DNAME={name}", "-DTEST_WEAK", "-fPIC", "-pie"],
              links=[library, "-Wl,-z,dynamic-undefined-weak"]))
    check("not there\n", opens, library)


def test_weak_reference_to_a_function_that_is_there(build):
    links = [weak_library(build, "dgemm_"), "-Wl,--no-as-needed,-z,dynamic-undefined-weak", "-l:libblas.so.3"]
    check("there\nthere\n",
          build(PROGRAM, "weak_dgemm_/linked", ["-DNAME=dgemm_", "-DTEST_WEAK", "-fPIC", "-pie"], links=links))


OF_A_THREAD = '''
#include <stdio.h>
extern _Thread_local int svm_train __attribute__((weak));
int *address(void);
int *address(void) { return &svm_train; }
void library_show(void) { puts("shown"); }
'''


def test_weak_reference_to_a_threads_variable_that_nothing_defines(build, opens):
    """Nothing can use such a variable: there is no word to be put right."""
    library = build(OF_A_THREAD, "weak_thread/libweak.so", shared=True)
    check("shown\n", build(PROGRAM, "weak_thread/uses", links=[library]))
    check("shown\n", opens, library)


UNUSED = '''
#include <stdio.h>
_Thread_local int svm_train = 3;
int *address(void) { return &svm_train; }
void library_show(void) { puts("shown"); }
'''


@pytest.mark.parametrize("kind", MODELS)
def test_a_threads_variable_opened_and_not_used(kind, build, opens):
    """At a fixed place from the thread pointer: nothing is put there, as there is no such place."""
    check("shown\n", opens, build(UNUSED, f"unused_{kind}/libunused.so", MODELS[kind], shared=True))


@pytest.mark.parametrize("mode", MODES)
def test_weak_reference_of_a_preload_before_libaccel_which_is_relocated_behind_it(mode, build):
    ahead = weak_library(build, "dgemm_")
    plain = build(PROGRAM, "weak_dgemm_/plain", ["-DNAME=dgemm_", "-DTEST_WEAK"], links=[ahead])
    done = start(str(plain), env={**MODES[mode], "LD_PRELOAD": f"{ahead}:{MODES[mode]['LD_PRELOAD']}"})
    assert (done.returncode, done.stdout) == (0, "not there\nnot there\n"), done.stderr[-300:]


# ---- Versions ----

VERSIONS = '''
__asm__(".symver old, dgemm_@FOO_1\\n.symver new, dgemm_@@FOO_2");
int old(void) { return 1; } int new(void) { return 2; }
#ifdef TEST_OBJECT
int train = 7;
#else
int train(void) { return 7; }
#endif
'''
MAP = "FOO_1 { global: train; dgemm_; local: *; }; FOO_2 { global: dgemm_; } FOO_1;\n"
OF_VERSIONS = '''
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
'''


@pytest.mark.parametrize("flags", ([], ["-DTEST_OBJECT"]), ids=("functions", "a variable"))
def test_versions_of_a_name(flags, build, tmp_path):
    (tmp_path / "versions.map").write_text(MAP)
    library = build(VERSIONS, f"versions{len(flags)}/libversions.so",
                    [*flags, f"-Wl,--version-script={tmp_path}/versions.map"], shared=True)
    check("1 2 7\n", build(OF_VERSIONS, f"versions{len(flags)}/user", flags, links=[library]))
