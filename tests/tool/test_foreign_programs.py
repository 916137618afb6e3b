#!/usr/bin/python3 -B
"""Programs that a preload could break: those of musl's C library and with 32 bits do what they do
without libaccel, as children, too; those with a sanitizer start, compute on the GPU, and still find
errors; a program's own options for a sanitizer stay."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from lib.log import lines_for
from lib.programs import BUILD, RUNTIME, SHIM, TESTS, start
from lib.tap import Tap

TOOL = str(BUILD / "accel")
TREE = BUILD / "accel-preload"
NAME = f"{TREE}/$PLATFORM/libaccel.so"
BLAS = "/usr/lib/x86_64-linux-gnu/openblas-pthread/libblas.so.3"
GPU = {"ACCEL_CUDA_DIR": str(BUILD / "testgpu"), "ACCEL_POLICY": "gpu", "ACCEL_LOG": "1",
       "TESTGPU_DELAY_US": "0"}
HELLO = 'int puts(const char *);\nint main(void) { return puts("hello") < 0; }\n'
HELLO_32 = 'int puts(const char *);\nvoid exit(int);\n' \
           'void _start(void) { puts("hello of 32"); exit(0); }\n'
PRODUCT = """
#include <stdio.h>
#include <stdlib.h>
void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *,
            const double *, const int *, const double *, const int *, const double *, double *,
            const int *);
int main(int argc, char **argv)
{
    const int n = 200;
    double *a = calloc(8, n * n), *b = calloc(8, n * n), *c = calloc(8, n * n), one = 1, zero = 0;
    for (int i = 0; i < n * n; i++)
        a[i] = i % 7, b[i] = i % 5;
    dgemm_("N", "N", &n, &n, &n, &one, a, &n, b, &n, &zero, c, &n);
    double sum = 0;
    for (int i = 0; i < n * n; i++)
        sum += c[i];
    printf("%.0f\\n", sum);
    if (argc > 1) /* behind the end of the memory */
        printf("%.0f\\n", c[n * n + atoi(argv[1])]);
    free(a), free(b), free(c);
    return 0;
}
"""
OPTIONS = 'const char *__asan_default_options(void);\n' \
          'const char *__asan_default_options(void) { return "exitcode=42"; }\n'
tap = Tap()
if RUNTIME:
    tap.skip("programs of other kinds", "a sanitizer's runtime is for programs of its own kind")
    tap.done()


def machine_of(path):
    """What the header of an ELF file says."""
    said = subprocess.run(["readelf", "-h", path], stdout=subprocess.PIPE, text=True).stdout
    return " ".join(re.findall(r"(?m)^ *(?:Class|Machine): *(.*)$", said))


# ---- The names that a dynamic linker may put for $PLATFORM ----

OWN = {"x86_64", "haswell", "xeon_phi"}
EMPTY = {**dict.fromkeys(("i386", "i486", "i586", "i686"), "ELF32 Intel 80386"),
         **dict.fromkeys(("v6l", "v7l", "v8l"), "ELF32 ARM"), "aarch64": "ELF64 AArch64"}
links = {path.parent.name for path in TREE.glob("*/libaccel.so")
         if path.resolve() == (BUILD / "libaccel.so").resolve()}
found = {path.parent.name: machine_of(path) for path in TREE.glob("*/libaccel.so")}
tap.ok(links == OWN and {name: found[name] for name in found if name not in OWN} == EMPTY,
       "accel-preload/: libaccel for this machine's platforms, an empty library for others", found)
for name in sorted({"i686", "v7l", "aarch64"}):
    said = subprocess.run(["readelf", "-Wld", TREE / name / "libaccel.so"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
    tap.ok(re.search(r"GNU_STACK .* RW +0x10\n", said) and "(SYMTAB)" in said
           and "(HASH)" in said and "readelf:" not in said and "NEEDED" not in said,
           f"{name}: tables, no executable stack, and nothing else", said)


with tempfile.TemporaryDirectory() as folder:

    def compiled(name, text, *command):
        """Returns the program's path; None with a skip if the compiler lacks something."""
        path = Path(folder, name)
        path.with_suffix(".c").write_text(text)
        done = subprocess.run([*command[:1], path.with_suffix(".c"), "-o", path, *command[1:]],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) \
            if shutil.which(command[0]) else None
        if done and done.returncode == 0:
            return str(path)
        tap.skip(name, f"{' '.join(command[:2])}: {done.stdout[:200] if done else 'not there'}")
        return None

    def same(name, command, env={}, by=(TOOL, "run")):
        """The same output and status under accel run, without a GPU and with the test GPU."""
        plain = start("/usr/bin/env", *command)
        done = start(*by, *command, env=env)
        return tap.ok((done.returncode, done.stdout, done.stderr)
                      == (plain.returncode, plain.stdout, plain.stderr) and plain.stdout,
                      name, plain, done)

    # ---- Another C library, fewer bits ----

    musl = compiled("musl", HELLO, "musl-gcc")
    narrow = None
    if not Path("/lib32/libc.so.6").exists():
        tap.skip("narrow", "there is no C library for 32 bits (libc6-i386)")
    elif compiled("narrow.o", HELLO_32, "gcc", "-m32", "-nostdlib", "-fno-pie", "-c",
                  "-fno-stack-protector"):
        narrow = f"{folder}/narrow"
        subprocess.run(["ld", "-m", "elf_i386", f"{folder}/narrow.o", "-o", narrow,
                        "-dynamic-linker", "/lib/ld-linux.so.2", "/lib32/libc.so.6"], check=True)
    static = compiled("static", HELLO, "gcc", "-static")
    position = compiled("static_pie", HELLO, "gcc", "-static-pie")
    others = [*filter(None, (musl, narrow, static, position))]
    for program in others:
        name = Path(program).name
        same(f"accel run: {name}", [program])
        same(f"accel run: {name}, a shell's child", ["sh", "-c", f"{program}; echo $?"])
        same(f"LD_PRELOAD with accel-preload: {name}", [program], {"LD_PRELOAD": NAME},
             ["/usr/bin/env"])
    if others:
        script = "; ".join([*others, f"{TESTS}/steps dgemm:100:1"])
        done = start(TOOL, "run", "sh", "-c", script, env=GPU)
        tap.ok(done.returncode == 0 and lines_for(done, sym="dgemm_", ran="gpu0")
               and "ERROR" not in done.stderr,
               "among them, a program of this machine is on the GPU", done.stdout, done.stderr)
    if narrow:
        done = start(narrow, env={"LD_PRELOAD": NAME, "LD_DEBUG": "files"})
        tap.ok(f"{TREE}/i" in done.stderr and "86/libaccel.so" in done.stderr,
               "its own dynamic linker has loaded the empty library", done.stderr)

    # ---- A name that somebody has changed, or that leads nowhere ----

    shell = 'eval "export LD_PRELOAD=\\"$LD_PRELOAD\\""; echo $LD_PRELOAD; exec "$@"'
    done = start(TOOL, "run", "sh", "-c", shell, "sh", str(TESTS / "steps"), "dgemm:100:1",
                 env={**GPU, "PLATFORM": ""})
    tap.ok(f"{TREE}//libaccel.so" in done.stdout and lines_for(done, sym="dgemm_", ran="gpu0"),
           "a shell that takes $PLATFORM for its own variable", done.stdout, done.stderr)
    alone = Path(folder, "alone")
    alone.mkdir()
    shutil.copy(BUILD / "libaccel.so", alone)
    shim = f"{alone}/libaccel.so"

    def name_with(*folders):
        for name in folders:
            Path(alone, "accel-preload", name).mkdir(parents=True)
        return start(TOOL, "run", "--shim", shim, "printenv", "LD_PRELOAD").stdout.rstrip("\n")

    tap.ok(name_with() == shim, "without accel-preload: the library's own path", name_with())
    tap.ok(name_with("i686") == shim, "the same where there is none for this platform")
    wheel = name_with(*OWN)
    tap.ok(wheel == f"{alone}/accel-preload/$PLATFORM/../../libaccel.so",
           "folders without a library in them, as of a wheel", wheel)
    done = start(TOOL, "run", "--shim", shim, str(TESTS / "steps"), "dgemm:100:1", env=GPU)
    tap.ok(lines_for(done, sym="dgemm_", ran="gpu0"), "lead to the library", done.stderr)
    if musl:
        same("and musl's linker nowhere", [musl], by=(TOOL, "run", "--shim", shim))
    other = TREE / "i686/libaccel.so"
    for name in OWN:
        shutil.copy(other, alone / "accel-preload" / name)
    wrong = start(TOOL, "run", "--shim", shim, "printenv", "LD_PRELOAD").stdout.rstrip("\n")
    tap.ok(wrong == wheel, "a library that this machine cannot load is not taken", wrong)

    # ---- Sanitizers ----

    SHARED = compiled("shared", "int shared;\n", "clang", "-shared", "-fPIC")
    kinds = {"address": ("gcc", "-fsanitize=address"), "leak": ("gcc", "-fsanitize=leak"),
             "undefined": ("gcc", "-fsanitize=undefined"), "thread": ("gcc", "-fsanitize=thread"),
             "address_static": ("gcc", "-fsanitize=address", "-static-libasan"),
             "address_clang": ("clang", "-fsanitize=address"),
             "memory_clang": ("clang", "-fsanitize=memory")}
    runtime = subprocess.run(["clang", "-print-file-name=libclang_rt.asan-x86_64.so"], text=True,
                             stdout=subprocess.PIPE).stdout.strip() if SHARED else ""
    if "/" in runtime:
        kinds["address_clang_shared"] = ("clang", "-fsanitize=address", "-shared-libasan",
                                         f"-Wl,-rpath,{Path(runtime).parent}")
    for name, flags in kinds.items():
        program = compiled(name, PRODUCT, flags[0], "-g", "-O1", *flags[1:], BLAS)
        plain = start(program) if program else None
        if not program or plain.returncode != 0:
            if program:
                tap.skip(name, f"it does not run here without libaccel: {plain.stderr[:200]}")
            continue
        child = [TOOL, "run", "sh", "-c", f"{program}; exit $?"]
        for way, command, env in (("LD_PRELOAD", [program], SHIM),
                                  ("accel run", [TOOL, "run", program], {}),
                                  ("accel run, as a shell's child", child, {})):
            done = start(*command, env=env)
            tap.ok((done.returncode, done.stdout, done.stderr) == (0, plain.stdout, plain.stderr),
                   f"{name}, by {way}", done)
            done = start(*command, env={**env, **GPU})
            tap.ok(done.returncode == 0 and done.stdout == plain.stdout
                   and lines_for(done, sym="dgemm_", ran="gpu0") and "Sanitizer" not in done.stderr,
                   f"{name}, by {way}, on the GPU", done)
        if name.startswith("address"):
            done = start(TOOL, "run", program, "3", env=GPU)
            tap.ok(done.returncode == 1 and "AddressSanitizer: heap-buffer-overflow" in done.stderr
                   and "#0" in done.stderr, f"{name} finds what it is for", done)

    # For a plug-in with AddressSanitizer, people preload the runtime: libaccel is in front of it.
    runtime = subprocess.run(["gcc", "-print-file-name=libasan.so"], text=True,
                             stdout=subprocess.PIPE).stdout.strip()
    done = start(TOOL, "run", str(TESTS / "steps"), "dgemm:100:1",
                 env={**GPU, "LD_PRELOAD": runtime})
    tap.ok(done.returncode == 0 and lines_for(done, sym="dgemm_", ran="gpu0")
           and "Sanitizer" not in done.stderr, "a runtime that is preloaded", done)

    # ---- The program's own options ----

    address = ("-g", "-O1", "-fsanitize=address")
    library = compiled("options.so", OPTIONS, "gcc", "-shared", "-fPIC")
    own = compiled("own", PRODUCT + OPTIONS, "gcc", *address, BLAS)
    for name, program, env in (("another preload's", f"{folder}/address", {"LD_PRELOAD": library}),
                               ("the program's own", own, {})):
        done = start(TOOL, "run", program, env=env)
        tap.ok(done.returncode == 0 and not done.stderr, f"with {name} options it starts", done)
        done = start(TOOL, "run", program, "3", env=env)
        tap.ok(done.returncode == 42 and "heap-buffer-overflow" in done.stderr,
               f"{name} options hold", done)
    done = start(TOOL, "run", own, "3", env={"ASAN_OPTIONS": "exitcode=43"})
    tap.ok(done.returncode == 43 and "heap-buffer-overflow" in done.stderr,
           "those of the environment go first, and stay", done)
    done = start(TOOL, "run", "printenv", "ASAN_OPTIONS")
    tap.ok(done.returncode == 1 and not done.stdout, "other programs get none", done)
    for command in ("diff", "doctor"):
        done = start(TOOL, command, "--", own, env=GPU)
        tap.ok("does not come first" not in done.stdout + done.stderr
               and (command == "doctor" or done.returncode == 0),
               f"accel {command} starts it, too", done.stdout[-1500:], done.stderr[-1500:])
tap.done()
