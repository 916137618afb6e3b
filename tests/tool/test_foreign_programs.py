#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Programs that a preload could break: those of musl's C library and with 32 bits do what they do
without libaccel, as children, too; those with a sanitizer start, compute on the GPU, and still find
errors; a program's own options for a sanitizer stay."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lib.log import lines_for
from lib.programs import BUILD, RUNTIME, SHIM, TESTS, start

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
STEPS = [str(TESTS / "steps"), "dgemm:100:1"]
# The names that a dynamic linker may put for $PLATFORM: this machine's, and others.
OWN = {"x86_64", "haswell", "xeon_phi"}
EMPTY = {**dict.fromkeys(("i386", "i486", "i586", "i686"), "ELF32 Intel 80386"),
         **dict.fromkeys(("v6l", "v7l", "v8l"), "ELF32 ARM"), "aarch64": "ELF64 AArch64"}
ADDRESS = ("-g", "-O1", "-fsanitize=address")

pytestmark = pytest.mark.skipif(bool(RUNTIME), reason="a sanitizer's runtime is for programs of its own kind")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("programs")


@pytest.fixture(scope="module")
def compiled(folder):
    """What compiles a program of this name, once, and returns its path; skips the test if the compiler lacks
    something."""
    def compiled(name, text, *command):
        path = folder / name
        if path.exists():
            return str(path)
        path.with_suffix(".c").write_text(text)
        if not shutil.which(command[0]):
            pytest.skip(f"there is no {command[0]}")
        done = subprocess.run([command[0], path.with_suffix(".c"), "-o", path, *command[1:]], text=True,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        if done.returncode:
            pytest.skip(f"{' '.join(command[:2])}: {done.stdout[:200]}")
        return str(path)

    return compiled


def check_same(command, env={}, by=(TOOL, "run")):
    """The same output and status under accel run, without a GPU and with the test GPU."""
    plain = start("/usr/bin/env", *command)
    done = start(*by, *command, env=env)
    assert plain.stdout
    assert (done.returncode, done.stdout, done.stderr) == (plain.returncode, plain.stdout, plain.stderr)


def on_gpu(done):
    return lines_for(done, sym="dgemm_", ran="gpu0")


# ---- accel-preload/ ----


def machine_of(path):
    """What the header of an ELF file says."""
    said = subprocess.run(["readelf", "-h", path], stdout=subprocess.PIPE, text=True).stdout
    return " ".join(re.findall(r"(?m)^ *(?:Class|Machine): *(.*)$", said))


def test_libaccel_for_this_machine_s_platforms_an_empty_library_for_others():
    there = list(TREE.glob("*/libaccel.so"))
    assert {path.parent.name for path in there if path.resolve() == (BUILD / "libaccel.so").resolve()} == OWN
    assert {path.parent.name: machine_of(path) for path in there if path.parent.name not in OWN} == EMPTY


@pytest.mark.parametrize("name", ["aarch64", "i686", "v7l"])
def test_tables_no_executable_stack_and_nothing_else(name):
    said = subprocess.run(["readelf", "-Wld", TREE / name / "libaccel.so"], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT).stdout
    assert re.search(r"GNU_STACK .* RW +0x10\n", said)
    assert "(SYMTAB)" in said
    assert "(HASH)" in said
    assert "readelf:" not in said
    assert "NEEDED" not in said


# ---- Another C library, fewer bits ----


@pytest.fixture(scope="module")
def other(folder, compiled):
    """What makes a program of a kind."""
    def other(kind):
        if kind == "musl":
            return compiled("musl", HELLO, "musl-gcc")
        if kind != "narrow":
            return compiled(kind, HELLO, "gcc", "-static" if kind == "static" else "-static-pie")
        if not Path("/lib32/libc.so.6").exists():
            pytest.skip("there is no C library for 32 bits (libc6-i386)")
        part = compiled("narrow.o", HELLO_32, "gcc", "-m32", "-nostdlib", "-fno-pie", "-c", "-fno-stack-protector")
        subprocess.run(["ld", "-m", "elf_i386", part, "-o", folder / "narrow", "-dynamic-linker", "/lib/ld-linux.so.2",
                        "/lib32/libc.so.6"], check=True)
        return f"{folder}/narrow"

    return other


each_kind = pytest.mark.parametrize("kind", ["musl", "narrow", "static", "static_pie"])


@each_kind
def test_accel_run(other, kind):
    check_same([other(kind)])


@each_kind
def test_accel_run_a_shell_s_child(other, kind):
    check_same(["sh", "-c", f"{other(kind)}; echo $?"])


@each_kind
def test_ld_preload_with_accel_preload(other, kind):
    check_same([other(kind)], {"LD_PRELOAD": NAME}, ["/usr/bin/env"])


@each_kind
def test_behind_it_a_program_of_this_machine_is_on_the_gpu(other, kind):
    done = start(TOOL, "run", "sh", "-c", f"{other(kind)}; {' '.join(STEPS)}", env=GPU)
    assert done.returncode == 0
    assert on_gpu(done)
    assert "ERROR" not in done.stderr


def test_its_own_dynamic_linker_has_loaded_the_empty_library(other):
    done = start(other("narrow"), env={"LD_PRELOAD": NAME, "LD_DEBUG": "files"})
    assert f"{TREE}/i" in done.stderr
    assert "86/libaccel.so" in done.stderr


# ---- A name that somebody has changed, or that leads nowhere ----


def test_a_shell_that_takes_platform_for_its_own_variable():
    shell = 'eval "export LD_PRELOAD=\\"$LD_PRELOAD\\""; echo $LD_PRELOAD; exec "$@"'
    done = start(TOOL, "run", "sh", "-c", shell, "sh", *STEPS, env={**GPU, "PLATFORM": ""})
    assert f"{TREE}//libaccel.so" in done.stdout
    assert on_gpu(done)


@pytest.fixture
def alone(tmp_path):
    """A copy of the library without accel-preload."""
    return Path(shutil.copy(BUILD / "libaccel.so", tmp_path))


def name_with(shim, *folders):
    """What LD_PRELOAD is where accel-preload has these folders."""
    for name in folders:
        (shim.parent / "accel-preload" / name).mkdir(parents=True)
    return start(TOOL, "run", "--shim", shim, "printenv", "LD_PRELOAD").stdout.rstrip("\n")


def test_without_accel_preload_for_this_platform_the_library_s_own_path(alone):
    assert name_with(alone) == str(alone)
    assert name_with(alone, "i686") == str(alone)


def test_folders_without_a_library_in_them_as_of_a_wheel_lead_to_the_library(alone):
    assert name_with(alone, *OWN) == f"{alone.parent}/accel-preload/$PLATFORM/../../libaccel.so"
    assert on_gpu(start(TOOL, "run", "--shim", alone, *STEPS, env=GPU))


def test_and_musl_s_linker_nowhere(alone, other):
    name_with(alone, *OWN)
    check_same([other("musl")], by=(TOOL, "run", "--shim", alone))


def test_a_library_that_this_machine_cannot_load_is_not_taken(alone):
    wheel = name_with(alone, *OWN)
    for name in OWN:
        shutil.copy(TREE / "i686/libaccel.so", alone.parent / "accel-preload" / name)
    assert name_with(alone) == wheel


# ---- Sanitizers ----

KINDS = {"address": ("gcc", "-fsanitize=address"), "leak": ("gcc", "-fsanitize=leak"),
         "undefined": ("gcc", "-fsanitize=undefined"),
         "thread": ("gcc", "-fsanitize=thread"), "address_static": ("gcc", "-fsanitize=address", "-static-libasan"),
         "address_clang": ("clang", "-fsanitize=address"), "memory_clang": ("clang", "-fsanitize=memory"),
         "address_clang_shared": ("clang", "-fsanitize=address", "-shared-libasan")}


@pytest.fixture(scope="module")
def sanitized(compiled):
    """What compiles a product with a sanitizer; returns the program and its run without libaccel."""
    def sanitized(kind):
        compiler, *flags = KINDS[kind]
        if kind == "address_clang_shared":
            if not shutil.which("clang"):
                pytest.skip("there is no clang")
            runtime = subprocess.run(["clang", "-print-file-name=libclang_rt.asan-x86_64.so"], text=True,
                                     stdout=subprocess.PIPE).stdout.strip()
            if "/" not in runtime:
                pytest.skip("clang has no such runtime")
            flags.append(f"-Wl,-rpath,{Path(runtime).parent}")
        program = compiled(kind, PRODUCT, compiler, "-g", "-O1", *flags, BLAS)
        plain = start(program)
        if plain.returncode != 0:
            pytest.skip(f"it does not run here without libaccel: {plain.stderr[:200]}")
        return program, plain

    return sanitized


WAYS = {"LD_PRELOAD": (["PROGRAM"], SHIM), "accel run": ([TOOL, "run", "PROGRAM"], {}),
        "accel run, as a shell's child": ([TOOL, "run", "sh", "-c", "PROGRAM; exit $?"], {})}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_sanitizer(sanitized, kind, way):
    program, plain = sanitized(kind)
    command, env = WAYS[way]
    command = [word.replace("PROGRAM", program) for word in command]
    done = start(*command, env=env)
    assert (done.returncode, done.stdout, done.stderr) == (0, plain.stdout, plain.stderr)
    done = start(*command, env={**env, **GPU})
    assert done.returncode == 0, done.stderr
    assert done.stdout == plain.stdout
    assert on_gpu(done)
    assert "Sanitizer" not in done.stderr


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.startswith("address")])
def test_it_finds_what_it_is_for(sanitized, kind):
    done = start(TOOL, "run", sanitized(kind)[0], "3", env=GPU)
    assert done.returncode == 1
    assert "AddressSanitizer: heap-buffer-overflow" in done.stderr
    assert "#0" in done.stderr


def test_a_runtime_that_is_preloaded():
    """For a plug-in with AddressSanitizer, people preload the runtime: libaccel is in front of it."""
    runtime = subprocess.run(["gcc", "-print-file-name=libasan.so"], text=True, stdout=subprocess.PIPE).stdout.strip()
    done = start(TOOL, "run", *STEPS, env={**GPU, "LD_PRELOAD": runtime})
    assert done.returncode == 0
    assert on_gpu(done)
    assert "Sanitizer" not in done.stderr


# ---- The program's own options ----


@pytest.fixture(scope="module")
def own(compiled):
    return compiled("own", PRODUCT + OPTIONS, "gcc", *ADDRESS, BLAS)


@pytest.mark.parametrize("whose", ["another preload's", "the program's own"])
def test_options_hold(compiled, own, whose):
    program, env = own, {}
    if whose == "another preload's":
        program = compiled("address", PRODUCT, "gcc", *ADDRESS, BLAS)
        env = {"LD_PRELOAD": compiled("options.so", OPTIONS, "gcc", "-shared", "-fPIC")}
    done = start(TOOL, "run", program, env=env)
    assert done.returncode == 0
    assert not done.stderr
    done = start(TOOL, "run", program, "3", env=env)
    assert done.returncode == 42
    assert "heap-buffer-overflow" in done.stderr


def test_those_of_the_environment_go_first_and_stay(own):
    done = start(TOOL, "run", own, "3", env={"ASAN_OPTIONS": "exitcode=43"})
    assert done.returncode == 43
    assert "heap-buffer-overflow" in done.stderr


def test_other_programs_get_none():
    done = start(TOOL, "run", "printenv", "ASAN_OPTIONS")
    assert done.returncode == 1
    assert not done.stdout


@pytest.mark.parametrize("command", ["diff", "doctor"])
def test_another_command_starts_it_too(own, command):
    done = start(TOOL, command, "--", own, env=GPU)
    assert "does not come first" not in done.stdout + done.stderr
    assert command == "doctor" or done.returncode == 0
