#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""accel doctor -- PROGRAM: whether a preload can reach the program and its children, which BLAS they call and how, CUDA
of their own. What cannot be preloaded, is said to be so, and why."""

import ctypes
import json
import os
import re
import shutil
import struct
import subprocess

import pytest

from lib.programs import BUILD, DEBIAN_PYTHON, ROOT, RUNTIME, TESTS, VENV_PYTHON, start

TOOL = str(BUILD / "accel")
GPU = {"ACCEL_CUDA_DIR": str(BUILD / "testgpu"), "TESTGPU_DELAY_US": "0"}
# A program that calls no BLAS, and one that has its own.
PLAIN = "int main(void) { return 0; }\n"
OWN_BLAS = "".join(f"void {name}_(void) {{ }}\n"
                   for name in "dgemm sgemm dsymm ssymm dtrsm strsm dsyrk ssyrk".split()) + PLAIN
OWN_OPTIONS = PLAIN + 'const char *__asan_default_options(void) { return ""; }\n'
PRODUCT = f"{DEBIAN_PYTHON} -c 'import numpy as n; n.eye(4) @ n.eye(4)'"
POOL = """import multiprocessing as m, numpy as n
def f(i): return (n.eye(9) @ n.eye(9)).sum()
with m.Pool(2) as p: p.map(f, range(4))"""
# As CasADi's plug-ins: the program calls BLAS, and so does what it opens.
PLUG_IN = f"""import ctypes, os, numpy as n; n.eye(4) @ n.eye(4)
l = ctypes.CDLL('{TESTS}/libcaller_lp64.so', os.RTLD_LAZY | os.RTLD_%s)
print(l.caller_product(3))"""
DEEP = f"import ctypes, os; print(ctypes.CDLL('{TESTS}/libcaller_lp64.so', os.RTLD_NOW | " \
       "os.RTLD_DEEPBIND).caller_product(3))"
PAST = r"/libcaller_lp64\.so calls it past libaccel -> .*RTLD_DEEPBIND"

own_kind = pytest.mark.skipif(bool(RUNTIME), reason="a sanitizer's runtime is for programs of its own kind")


@pytest.fixture(scope="module", autouse=True)
def may_trace():
    """Skips all where this machine does not let a process watch another of its user's."""
    child = subprocess.Popen(["sleep", "60"])
    traced = ctypes.CDLL(None).ptrace(0x4206, child.pid, None, None) == 0  # PTRACE_SEIZE
    child.kill()
    child.wait()
    if not traced:
        pytest.skip("ptrace(2) is not permitted here")


@pytest.fixture
def compiled(tmp_path):
    """What compiles a program of this name and text; returns its path."""
    def compile(name, text, *flags):
        path = tmp_path / name
        subprocess.run(["gcc", "-x", "c", "-", "-o", path, *flags], input=text, text=True, check=True)
        return str(path)

    return compile


def doctor(*arguments, env=None, **options):
    """The process, and the rows of it that are about the program: [(state, what, says, fix)]."""
    done = start(TOOL, "doctor", *arguments, env={**GPU, **(env or {})}, **options)
    rows = re.findall(r"(?m)^(OK|WARN|FAIL) +(\S.*?)  +(.*)\n(?: +-> (.*)\n)?", done.stdout)
    return done, [row for row in rows if row[1] in ("program", "preload", "BLAS", "calls", "CUDA")]


def check(asked, status, *wanted):
    """asked: what doctor() returns; wanted: a state, a row's name, and a pattern of what it says and of the fix. status
    None: any."""
    done, rows = asked
    for state, what, pattern in wanted:
        assert [row for row in rows if row[:2] == (state, what)
                and re.search(pattern, f"{row[2]} -> {row[3]}")], done.stdout
    assert status in (None, done.returncode)
    return asked


def forbid_ptrace():
    """In the child: a filter of system calls by which ptrace(2) fails with EPERM, as in containers."""
    code = [(0x20, 0, 0, 0), (0x15, 0, 1, 101), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
    filters = b"".join(struct.pack("HBBI", *line) for line in code)
    buffer = ctypes.create_string_buffer(filters)
    program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None)
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.c_char_p(program), 0, 0) == 0


# ---- Which BLAS, and how ----


def test_a_linked_blas(tmp_path):
    done, rows = check(doctor("--", TESTS / "steps", "dgemm:100:2", env={"TMPDIR": str(tmp_path)}), 0,
                       ("OK", "program", rf"^{TESTS}/steps"), ("OK", "preload", "^reached 1 process: steps"),
                       ("OK", "BLAS",
                        r"/libblas\.so\.3, linked by steps, 32-bit integers; called with \d threads?, first dgemm_"))
    assert "2 calls, 0 wrong" in done.stderr, "the program's stdout goes to stderr"
    assert "wrong" not in done.stdout
    assert os.listdir(tmp_path) == [], "nothing is left in TMPDIR"
    told = json.loads(doctor("--json", TESTS / "steps", "dgemm:100:2")[0].stdout)
    assert [(row["state"].upper(), row["what"], row["says"], row.get("fix", ""))
            for row in told["rows"]][-len(rows):] == rows
    assert told["gpu"]


def test_64_bit_integers():
    check(doctor(TESTS / "tall", 100), None,
          ("OK", "BLAS", r"libblas64\.so\.3, linked by tall, 64-bit integers; called"))


def test_numpy_s_and_scipy_s():
    check(doctor("--", VENV_PYTHON, "-c", "import numpy as n, scipy.linalg as l; a = n.eye(4); a @ a; l.lu(a)"), 0,
          ("OK", "BLAS",
           r"numpy\.libs/\S+, opened with dlopen by python\S+, 64-bit integers; called with \d threads?, first "
           r"\S*gemm64_"),
          ("OK", "BLAS", r"scipy\.libs/\S+, opened with dlopen by python\S+, 32-bit integers; called"))


deep_bind = pytest.mark.skipif(bool(RUNTIME), reason="AddressSanitizer ends such a program")


@deep_bind
def test_a_library_of_deepbind():
    check(doctor("--", DEBIAN_PYTHON, "-c", DEEP), 1,
          ("WARN", "BLAS",
           r"/libblas\.so\.3, opened with dlopen by python\S+, 32-bit integers; no call of it came to libaccel; \S+"
           + PAST),
          ("FAIL", "calls", "^no call of BLAS or LAPACK came to libaccel"))


@deep_bind
def test_a_plug_in_that_is_opened_as_others_are_earns_no_word():
    _, rows = doctor("--", DEBIAN_PYTHON, "-c", PLUG_IN % "LOCAL")
    assert {row[0] for row in rows} == {"OK"}


@deep_bind
def test_one_of_deepbind_beside_a_blas_that_is_called():
    _, rows = check(doctor("--", DEBIAN_PYTHON, "-c", PLUG_IN % "DEEPBIND"), 0,
                    ("WARN", "BLAS", r"/libblas\.so\.3, .* first cblas_dgemm; \S+" + PAST))
    assert len([row for row in rows if row[0] == "WARN"]) == 1, "no other is meant"


@pytest.mark.parametrize("call, state, says", [
    pytest.param("", "WARN", "no call of it came to libaccel", id="not called"),
    pytest.param("; l.dgemm_(b'N', b'N', n, n, n, x, x, n, x, n, x, x, n)", "OK",
                 r"called with \d threads?, first dgemm_", id="called")])
@pytest.mark.parametrize("bits", [32, 64])
def test_a_library_beside_libraries_of_its_own(compiled, tmp_path, bits, call, state, says):
    """It needs others which its program alone finds, as those of wheels do; its code tells, whether it is called or
    not."""
    private = compiled("libprivate.so", "int private_one(void) { return 1; }", "-shared", "-fPIC",
                       "-Wl,-soname,libprivate.so")
    needing = compiled("libneeding.so", (ROOT / "tests/fixtures/providers/strict.c").read_text(), "-w",
                       f"-DINTEGER=int{bits}_t", "-shared",
                       "-fPIC", "-Wl,--no-as-needed", f"-L{tmp_path}", "-lprivate")
    opens = f"import ctypes as c; c.CDLL('{private}'); l = c.CDLL('{needing}'); n = c.byref(c.c_int64(1)); x = " \
            "c.byref(c.c_double(1))"
    check(doctor("--", DEBIAN_PYTHON, "-c", opens + call), None,
          (state, "BLAS", rf"/libneeding\.so, opened with dlopen by python\S+, {bits}-bit integers; {says}"))


def test_a_program_without():
    check(doctor("--", "true"), 1, ("OK", "preload", "^reached 1 process"),
          ("FAIL", "calls", "^no call of BLAS or LAPACK came to libaccel -> give it work"))


def test_cuda_of_its_own():
    check(doctor("--", TESTS / "cuda_program", "nothing"), None,
          ("OK", "CUDA", rf"^cuda_program has its own: {BUILD}/testgpu/libcuda\.so\.1"))


def test_a_program_of_accel_exclude():
    says = r"^ACCEL_EXCLUDE=default,st\* names steps: its calls are left alone -> set ACCEL_EXCLUDE to a list that " \
           r"does not name it"
    check(doctor("--", TESTS / "steps", "dgemm:100:2", env={"ACCEL_EXCLUDE": "default,st*"}), 1,
          ("FAIL", "preload", says), ("WARN", "BLAS", "no call of it came to libaccel -> see ACCEL_EXCLUDE above"))


def test_a_program_that_has_a_launcher_s_name(tmp_path):
    launcher = shutil.copy(TESTS / "steps", tmp_path / "flux-steps")
    check(doctor("--", launcher, "dgemm:100:2"), 1,
          ("FAIL", "preload", "^ACCEL_EXCLUDE=default names flux-steps: its calls are left alone"))


def test_blas_inside_the_program(compiled):
    check(doctor(compiled("own", OWN_BLAS)), 1,
          ("WARN", "BLAS", r"own has BLAS inside itself \(8 names\): a preload cannot reach"))


# ---- Children ----


def test_children():
    _, rows = check(doctor("--", "sh", "-c", f"{PRODUCT}; {PRODUCT}; exit 3"), 0,
                    ("OK", "preload", r"^reached 3 processes: python\S+ \(2\), \w+ "),
                    ("WARN", "program", "^ended with status 3"),
                    ("OK", "BLAS", r"/libblas\.so\.3, opened with dlopen by python"))
    assert not [row for row in rows if "EXCLUDE" in row[2]], "a shell that is left alone is worth no word"


def test_workers_of_multiprocessing():
    check(doctor("--", DEBIAN_PYTHON, "-c", POOL), 0, ("OK", "preload", r"^reached 3 processes: python\S+ \(3\)"))


def test_children_that_no_preload_reaches(compiled):
    static = compiled("static", PLAIN, "-static")
    check(doctor("--", "sh", "-c", f"{PRODUCT}; {static}; env -i /bin/true; :"), 0,
          ("OK", "preload", rf"^did not reach {static}: it is linked statically: .*; no BLAS is seen in it -> $"),
          ("WARN", "preload", r"^did not reach \S+true: it was started without LD_PRELOAD -> let it keep LD_PRELOAD"))


def test_a_static_child_with_blas_in_it(compiled):
    own = compiled("static_blas", OWN_BLAS, "-static-pie")
    check(doctor("--", "sh", "-c", f"{own}; :"), 1,
          ("WARN", "preload",
           rf"^did not reach {own}: it is linked statically: .* -> link it dynamically, to a shared BLAS$"))


# ---- Programs that libaccel could break ----


@pytest.fixture
def musl(tmp_path):
    """A program of musl, and why it is not for libaccel."""
    if not shutil.which("musl-gcc"):
        pytest.skip("there is no musl-gcc (musl-tools)")
    (tmp_path / "musl.c").write_text(PLAIN)
    subprocess.run(["musl-gcc", tmp_path / "musl.c", "-o", tmp_path / "musl"], check=True)
    return str(tmp_path / "musl"), f"{tmp_path}/musl: it is not for .* and glibc: it is linked to musl"


@own_kind
def test_a_child_of_musl_runs(musl):
    program, why = musl
    done, _ = check(doctor("--", "sh", "-c", f"{program}; exit $?"), 1,
                    ("WARN", "preload", f"did not reach {why}.* -> $"))
    assert "ended with" not in done.stdout
    assert "Error" not in done.stderr


@own_kind
def test_a_program_of_musl(musl):
    program, why = musl
    check(doctor(program), 1, ("FAIL", "program", f"^{why}.* -> build it with glibc, with a shared BLAS$"))


def wants_of(address):
    return rf"^{address} has AddressSanitizer \(libasan\.so\.\d+\), which wants to be the first library"


@own_kind
@pytest.mark.parametrize("text, who", [(PLAIN, "libaccel"), (OWN_OPTIONS, "accel run")],
                         ids=["libaccel tells it", "accel run tells it"])
def test_addresssanitizer_whose_runtime_is_told_not_to_look(compiled, text, who):
    address = compiled("asan", text, "-fsanitize=address")
    done, _ = check(doctor(address), 1, ("OK", "preload", f"{wants_of(address)}: {who} tells it not to look -> $"))
    assert "ended with" not in done.stdout, "the program ends as without"


@own_kind
@pytest.mark.parametrize("text, state, says", [
    pytest.param(PLAIN, "OK", ": libaccel tells it not to look -> $", id="which starts"),
    pytest.param(OWN_OPTIONS, "WARN", ", and options of its own: .* -> set ASAN_OPTIONS=verify_asan_link_order=0$",
                 id="which needs a hint")])
def test_addresssanitizer_as_a_child(compiled, text, state, says):
    address = compiled("asan", text, "-fsanitize=address")
    command = ("--", "sh", "-c", f"{address}; exit $?")
    check(doctor(*command), 1, (state, "preload", wants_of(address) + says))
    done, _ = doctor(*command, env={"ASAN_OPTIONS": "verify_asan_link_order=0"})
    assert "ended with" not in done.stdout, "with the option it starts"


JAVA = """
class Product {
    static native double sum();
    public static void main(String[] arguments) throws Exception {
        System.load("TESTS/libjni_product.so");
        Thread worker = new Thread(() -> System.out.println(sum()));
        worker.start();
        worker.join();
    }
}
"""


@pytest.mark.skipif(not shutil.which("javac") or bool(RUNTIME), reason="there is no javac, or a sanitizer's runtime must come first")
@pytest.mark.parametrize("threads, env", [(1, {}), (2, {}), (2, {"ACCEL_POLICY": "gpu"})])
def test_a_jvm_whose_threads_have_small_stacks(tmp_path, threads, env):
    """OpenBLAS with threads: where the CPU computes, Debian's ends a JVM with stacks of 1 MB."""
    (tmp_path / "Product.java").write_text(JAVA.replace("TESTS", str(TESTS)))
    subprocess.run(["javac", "-J-XX:TieredStopAtLevel=1", "Product.java"], cwd=tmp_path, check=True, env={**os.environ, "LD_PRELOAD": ""})
    done, rows = doctor("--", "java", "-Xss1m", "-XX:-CreateCoredumpOnCrash", f"-XX:ErrorFile={tmp_path}/error.%p", "-cp", tmp_path, "Product",
                        env={**env, "OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)})
    told = [fix for _, _, says, fix in rows if "than a thread of the JVM has" in says]
    assert told == [] if threads == 1 else len(told) == 1 and "OPENBLAS_NUM_THREADS=1" in told[0] and "-Xss" in told[0], done.stdout


def test_a_program_that_ends_by_a_signal():
    check(doctor("--", "sh", "-c", "kill -TERM $$"), 1, ("WARN", "program", r"^was ended by signal 15 \(Terminated\)"))


# ---- What cannot be preloaded: it is not run ----


@pytest.fixture
def touching(compiled, tmp_path):
    """What compiles a program of this name that leaves a file; no such file is there in the end."""
    touched = tmp_path / "touched"
    yield lambda name, *flags: compiled(name,
                                        f'#include <stdio.h>\nint main(void) {{ return !fopen("{touched}", "w"); }}\n',
                                        *flags)
    assert not touched.exists(), "it was run"


def changed(program, old, new, count=-1):
    """The program with other bytes."""
    with open(program, "rb+") as file:
        data = file.read()
        assert old in data
        file.seek(0)
        file.write(data.replace(old, new, count))
    return program


def test_a_static_program(touching):
    check(doctor(touching("static", "-static")), 1,
          ("FAIL", "program", "static: it is linked statically.*-> link it dynamically"))


def test_a_program_with_32_bits(touching):
    narrow = changed(touching("narrow"), b"\x7fELF\2", b"\x7fELF\1", 1)  # EI_CLASS
    check(doctor(narrow), 1, ("FAIL", "program", "narrow: it is not for 64-bit x86 and glibc: it has 32 bits"))


def test_a_program_of_another_c_library(touching):
    other = changed(touching("other"), b"/ld-linux-x86-64.so.2", b"/ld-other-x86-64.so.2")
    check(doctor(other), 1, ("FAIL", "program", "other: it is not for .* and glibc: it is linked to another C library"))


def test_a_set_uid_program(touching):
    secure = touching("secure")
    try:
        os.chown(secure, 65534, 65534)
        os.chmod(secure, 0o4755)
    except OSError as error:  # not root, or root of a container alone
        pytest.skip(str(error))
    check(doctor(secure), 1, ("FAIL", "program", "secure: it is set-uid.*-> run a copy without these rights"))


def test_a_program_that_is_not_there():
    check(doctor("--", "no-such-program"), 1, ("FAIL", "program", "^no-such-program is not found, or cannot be run"))


@pytest.mark.parametrize("line, body, status, state, says", [
    pytest.param(f"#!{DEBIAN_PYTHON}", "import numpy as n; n.eye(4) @ n.eye(4)", 0, "OK", DEBIAN_PYTHON, id="python"),
    pytest.param("#!/usr/bin/env sh", PRODUCT, 0, "OK", "/sh", id="env sh"),
    pytest.param("#!STATIC", "", 1, "FAIL", "STATIC: it is linked statically", id="a static program")])
def test_a_script(compiled, tmp_path, line, body, status, state, says):
    static = compiled("static", PLAIN, "-static")
    script = tmp_path / "script"
    script.write_text(f"{line.replace('STATIC', static)}\n{body}\n")
    script.chmod(0o755)
    check(doctor(script), status, (state, "program", f"^{script}, a script for .*{says.replace('STATIC', static)}"))


# ---- Without ptrace ----


def test_no_ptrace():
    check(doctor("--", TESTS / "steps", "dgemm:100:2", preexec_fn=forbid_ptrace), 0,
          ("WARN", "preload", "cannot be watched: ptrace is not permitted"),
          ("OK", "calls", r"/libblas\.so\.3, called with \d threads?, first dgemm_"))
