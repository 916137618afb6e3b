#!/usr/bin/python3 -B
"""accel doctor -- PROGRAM: whether a preload can reach the program and its children, which BLAS they call and how, CUDA of their own. What cannot be
preloaded, is said to be so, and why."""

import ctypes
import json
import os
import re
import resource
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

from lib.programs import BUILD, DEBIAN_PYTHON, ROOT, RUNTIME, TESTS, VENV_PYTHON, start
from lib.tap import Tap

TOOL = str(BUILD / "accel")
GPU = {"ACCEL_CUDA_DIR": str(BUILD / "testgpu"), "TESTGPU_DELAY_US": "0"}
# A program that calls no BLAS, and one that has its own.
PLAIN = "int main(void) { return 0; }\n"
OWN_BLAS = "".join(f"void {name}_(void) {{ }}\n" for name in "dgemm sgemm dsymm ssymm dtrsm strsm dsyrk ssyrk".split()) + PLAIN
tap = Tap()
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def doctor(*arguments, env=None, **options):
    """The process, and the rows of it that are about the program: [(state, what, says, fix)]."""
    done = start(TOOL, "doctor", *arguments, env={**GPU, **(env or {})}, **options)
    rows = re.findall(r"(?m)^(OK|WARN|FAIL) +(\S.*?)  +(.*)\n(?: +-> (.*)\n)?", done.stdout)
    return done, [row for row in rows if row[1] in ("program", "preload", "BLAS", "calls", "CUDA")]


def ok(name, done, rows, status, *wanted):
    """wanted: a state, a row's name, and a pattern of what it says and of the fix."""
    lacking = [w for w in wanted if not any(w[:2] == row[:2] and re.search(w[2], f"{row[2]} -> {row[3]}") for row in rows)]
    return tap.ok(done.returncode == status and not lacking, name, done.returncode, *lacking, done.stdout, done.stderr)


def may_trace():
    """Whether this machine lets a process watch another of its user's."""
    child = subprocess.Popen(["sleep", "60"])
    traced = ctypes.CDLL(None).ptrace(0x4206, child.pid, None, None) == 0  # PTRACE_SEIZE
    child.kill()
    child.wait()
    return traced


def forbid_ptrace():
    """In the child: a filter of system calls by which ptrace(2) fails with EPERM, as in containers."""
    code = [(0x20, 0, 0, 0), (0x15, 0, 1, 101), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
    filters = b"".join(struct.pack("HBBI", *line) for line in code)
    buffer = ctypes.create_string_buffer(filters)
    program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None)
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.c_char_p(program), 0, 0) == 0


if not may_trace():
    tap.skip("accel doctor -- PROGRAM", "ptrace(2) is not permitted here")
    tap.done()

with tempfile.TemporaryDirectory() as folder:

    def compiled(name, text, *flags):
        path = Path(folder, name)
        subprocess.run(["gcc", "-x", "c", "-", "-o", path, *flags], input=text, text=True, check=True)
        return str(path)

    # ---- Which BLAS, and how ----

    done, rows = doctor("--", TESTS / "steps", "dgemm:100:2", env={"TMPDIR": folder})
    ok("a linked BLAS", done, rows, 0, ("OK", "program", rf"^{TESTS}/steps"), ("OK", "preload", "^reached 1 process: steps"),
       ("OK", "BLAS", r"/libblas\.so\.3, linked by steps, 32-bit integers; called with \d threads?, first dgemm_"))
    tap.ok("2 calls, 0 wrong" in done.stderr and "wrong" not in done.stdout, "the program's stdout goes to stderr", done.stdout, done.stderr)
    tap.ok(os.listdir(folder) == [], "nothing is left in TMPDIR", os.listdir(folder))
    made, _ = doctor("--json", TESTS / "steps", "dgemm:100:2")
    told = json.loads(made.stdout)
    tap.ok([(row["state"].upper(), row["what"], row["says"], row.get("fix", "")) for row in told["rows"]][-len(rows):] == rows and told["gpu"], "--json: the same rows", made.stdout)
    done, rows = doctor(TESTS / "tall", 100)
    ok("64-bit integers", done, rows, done.returncode, ("OK", "BLAS", r"libblas64\.so\.3, linked by tall, 64-bit integers; called"))
    done, rows = doctor("--", VENV_PYTHON, "-c", "import numpy as n, scipy.linalg as l; a = n.eye(4); a @ a; l.lu(a)")
    ok("NumPy's and SciPy's", done, rows, 0, ("OK", "BLAS", r"numpy\.libs/\S+, opened with dlopen by python\S+, 64-bit integers; called with \d threads?, first \S*gemm64_"),
       ("OK", "BLAS", r"scipy\.libs/\S+, opened with dlopen by python\S+, 32-bit integers; called"))
    if RUNTIME:
        tap.skip("a library of RTLD_DEEPBIND", "AddressSanitizer ends such a program")
    else:
        done, rows = doctor("--", DEBIAN_PYTHON, "-c", f"import ctypes, os; l = ctypes.CDLL('{TESTS}/libcaller_lp64.so', os.RTLD_NOW | os.RTLD_DEEPBIND); print(l.caller_product(3))")
        past = r"/libcaller_lp64\.so calls it past libaccel -> .*RTLD_DEEPBIND"
        ok("a library of RTLD_DEEPBIND", done, rows, 1,
           ("WARN", "BLAS", r"/libblas\.so\.3, opened with dlopen by python\S+, 32-bit integers; "
                            rf"no call of it came to libaccel; \S+{past}"),
           ("FAIL", "calls", "^no call of BLAS or LAPACK came to libaccel"))
        # As CasADi's plug-ins: the program calls BLAS, and so does what it opens.
        plug_in = "import ctypes, os, numpy as n; n.eye(4) @ n.eye(4); " \
            f"l = ctypes.CDLL('{TESTS}/libcaller_lp64.so', os.RTLD_LAZY | os.RTLD_%s); " \
            "print(l.caller_product(3))"
        done, rows = doctor("--", DEBIAN_PYTHON, "-c", plug_in % "LOCAL")
        tap.ok(rows and all(row[0] == "OK" for row in rows),
               "a plug-in that is opened as others are earns no word", *rows)
        done, rows = doctor("--", DEBIAN_PYTHON, "-c", plug_in % "DEEPBIND")
        ok("one of RTLD_DEEPBIND, beside a BLAS that is called", done, rows, 0,
           ("WARN", "BLAS", rf"/libblas\.so\.3, .* first cblas_dgemm; \S+{past}"))
        tap.ok(len([row for row in rows if row[0] == "WARN"]) == 1, "no other is meant", *rows)
    # A library that needs others which its program alone finds, as those of wheels do; its code
    # tells, whether it is called or not.
    private = compiled("libprivate.so", "int private_one(void) { return 1; }", "-shared", "-fPIC", "-Wl,-soname,libprivate.so")
    for bits in 32, 64:
        needing = compiled(f"libneeding{bits}.so", (ROOT / "tests/fixtures/providers/strict.c").read_text(), "-w", f"-DINTEGER=int{bits}_t", "-shared", "-fPIC",
                           "-Wl,--no-as-needed", f"-L{folder}", "-lprivate")
        opens = f"import ctypes as c; c.CDLL('{private}'); l = c.CDLL('{needing}'); n = c.byref(c.c_int64(1)); x = c.byref(c.c_double(1))"
        for name, calls, says in ((f"{bits} bits, beside libraries of its own", "", "no call of it came to libaccel"),
                                  (f"{bits} bits, called", "; l.dgemm_(b'N', b'N', n, n, n, x, x, n, x, n, x, x, n)", r"called with \d threads?, first dgemm_")):
            done, rows = doctor("--", DEBIAN_PYTHON, "-c", opens + calls)
            ok(name, done, rows, done.returncode, ("OK" if calls else "WARN", "BLAS", rf"/libneeding{bits}\.so, opened with dlopen by python\S+, {bits}-bit integers; {says}"))
    done, rows = doctor("--", "true")
    ok("a program without", done, rows, 1, ("OK", "preload", "^reached 1 process"), ("FAIL", "calls", "^no call of BLAS or LAPACK came to libaccel -> give it work"))
    done, rows = doctor("--", TESTS / "cuda_program", "nothing")
    ok("CUDA of its own", done, rows, done.returncode, ("OK", "CUDA", rf"^cuda_program has its own: {BUILD}/testgpu/libcuda\.so\.1"))
    done, rows = doctor("--", TESTS / "steps", "dgemm:100:2", env={"ACCEL_EXCLUDE": "default,st*"})
    ok("a program of ACCEL_EXCLUDE", done, rows, 1, ("FAIL", "preload", r"^ACCEL_EXCLUDE=default,st\* names steps: its calls are left alone -> set ACCEL_EXCLUDE to a list that does not name it"),
       ("WARN", "BLAS", "no call of it came to libaccel -> see ACCEL_EXCLUDE above"))
    shutil.copy(TESTS / "steps", launcher := Path(folder, "flux-steps"))
    done, rows = doctor("--", launcher, "dgemm:100:2")
    ok("a program that has a launcher's name", done, rows, 1, ("FAIL", "preload", "^ACCEL_EXCLUDE=default names flux-steps: its calls are left alone"))
    done, rows = doctor(compiled("own", OWN_BLAS))
    ok("BLAS inside the program", done, rows, 1, ("WARN", "BLAS", r"own has BLAS inside itself \(8 names\): a preload cannot reach"))

    # ---- Children ----

    product = f"{DEBIAN_PYTHON} -c 'import numpy as n; n.eye(4) @ n.eye(4)'"
    done, rows = doctor("--", "sh", "-c", f"{product}; {product}; exit 3")
    tap.ok(not [row for row in rows if "EXCLUDE" in row[2]], "a shell that is left alone is worth no word", *rows)
    ok("children", done, rows, 0, ("OK", "preload", r"^reached 3 processes: python\S+ \(2\), \w+ "), ("WARN", "program", "^ended with status 3"),
       ("OK", "BLAS", r"/libblas\.so\.3, opened with dlopen by python"))
    done, rows = doctor("--", DEBIAN_PYTHON, "-c", "import multiprocessing as m, numpy as n\ndef f(i): return (n.eye(9) @ n.eye(9)).sum()\nwith m.Pool(2) as p: p.map(f, range(4))")
    ok("workers of multiprocessing", done, rows, 0, ("OK", "preload", r"^reached 3 processes: python\S+ \(3\)"))
    static = compiled("static", PLAIN, "-static")
    done, rows = doctor("--", "sh", "-c", f"{product}; {static}; env -i /bin/true; :")
    ok("children that no preload reaches", done, rows, 0,
       ("OK", "preload", rf"^did not reach {static}: it is linked statically: .*; no BLAS is seen "
                         "in it -> $"),
       ("WARN", "preload", r"^did not reach \S+true: it was started without LD_PRELOAD -> let it "
                           "keep LD_PRELOAD"))
    own = compiled("static_blas", OWN_BLAS, "-static-pie")
    done, rows = doctor("--", "sh", "-c", f"{own}; :")
    ok("a static child with BLAS in it", done, rows, 1,
       ("WARN", "preload", rf"^did not reach {own}: it is linked statically: .* -> link it "
                           "dynamically, to a shared BLAS$"))

    # ---- Programs that libaccel could break ----

    if RUNTIME:
        tap.skip("musl, AddressSanitizer", "a sanitizer's runtime is for programs of its own kind")
    elif not shutil.which("musl-gcc"):
        tap.skip("a program of musl", "there is no musl-gcc (musl-tools)")
    else:
        musl = str(Path(folder, "musl"))
        Path(folder, "musl.c").write_text(PLAIN)
        subprocess.run(["musl-gcc", f"{musl}.c", "-o", musl], check=True)
        why = f"{musl}: it is not for .* and glibc: it is linked to musl"
        done, rows = doctor("--", "sh", "-c", f"{musl}; exit $?")
        ok("a child of musl", done, rows, 1, ("WARN", "preload", f"did not reach {why}.* -> $"))
        tap.ok("ended with" not in done.stdout and "Error" not in done.stderr, "which runs",
               done.stdout, done.stderr)
        done, rows = doctor(musl)
        ok("a program of musl", done, rows, 1,
           ("FAIL", "program", f"^{why}.* -> build it with glibc, with a shared BLAS$"))
    plain, own = PLAIN, PLAIN + 'const char *__asan_default_options(void) { return ""; }\n'
    kinds = () if RUNTIME else (("asan", plain, "libaccel"), ("asan_own", own, "accel run"))
    for name, text, who in kinds:
        address = compiled(name, text, "-fsanitize=address")
        wants = rf"{address} has AddressSanitizer \(libasan\.so\.\d+\), which wants to be the first"
        done, rows = doctor(address)
        ok(f"AddressSanitizer, whose runtime {who} tells not to look", done, rows, 1,
           ("OK", "preload", rf"^{wants} library: {who} tells it not to look -> $"))
        tap.ok("ended with" not in done.stdout, "the program ends as without", done.stdout)
        done, rows = doctor("--", "sh", "-c", f"{address}; exit $?")
        ok(f"the same as a child, {'which starts' if who == 'libaccel' else 'which needs a hint'}",
           done, rows, 1,
           ("OK", "preload", f"^{wants} library: libaccel tells it not to look -> $")
           if who == "libaccel" else
           ("WARN", "preload", rf"^{wants} library, and options of its own: .* -> set ASAN_OPTIONS="
                               "verify_asan_link_order=0$"))
        env = {"ASAN_OPTIONS": "verify_asan_link_order=0"}
        done, rows = doctor("--", "sh", "-c", f"{address}; exit $?", env=env)
        tap.ok("ended with" not in done.stdout, "with the option it starts", done.stdout)
    done, rows = doctor("--", "sh", "-c", "kill -TERM $$")
    ok("a program that ends by a signal", done, rows, 1, ("WARN", "program", r"^was ended by signal 15 \(Terminated\)"))

    # ---- What cannot be preloaded: it is not run ----

    touched = Path(folder, "touched")
    touching = f'#include <stdio.h>\nint main(void) {{ return !fopen("{touched}", "w"); }}\n'
    done, rows = doctor(compiled("static", touching, "-static"))
    ok("a static program", done, rows, 1, ("FAIL", "program", "static: it is linked statically.*-> link it dynamically"))
    narrow = Path(compiled("narrow", touching))
    data = bytearray(narrow.read_bytes())
    data[4] = 1  # EI_CLASS: 32 bits
    narrow.write_bytes(data)
    done, rows = doctor(narrow)
    ok("a program with 32 bits", done, rows, 1,
       ("FAIL", "program", "narrow: it is not for 64-bit x86 and glibc: it has 32 bits"))
    narrow.write_bytes(Path(compiled("wide", touching)).read_bytes().replace(b"/ld-linux-x86-64.so.2", b"/ld-other-x86-64.so.2"))
    done, rows = doctor(narrow)
    ok("a program of another C library", done, rows, 1,
       ("FAIL", "program", "narrow: it is not for .* and glibc: it is linked to another C library"))
    secure = compiled("secure", touching)
    try:
        os.chown(secure, 65534, 65534)
        os.chmod(secure, 0o4755)
    except OSError as error:  # not root, or root of a container alone
        tap.skip("a set-uid program", error)
    else:
        done, rows = doctor(secure)
        ok("a set-uid program", done, rows, 1, ("FAIL", "program", "secure: it is set-uid.*-> run a copy without these rights"))
    done, rows = doctor("--", "no-such-program")
    ok("a program that is not there", done, rows, 1, ("FAIL", "program", "^no-such-program is not found, or cannot be run"))
    tap.ok(not touched.exists(), "none of them was run")
    script = Path(folder, "script")
    for line, body, what in ((f"#!{DEBIAN_PYTHON}", "import numpy as n; n.eye(4) @ n.eye(4)", DEBIAN_PYTHON), ("#!/usr/bin/env sh", product, "/sh"),
                             (f"#!{static}", "", f"{static}: it is linked statically")):
        script.write_text(f"{line}\n{body}\n")
        script.chmod(0o755)
        done, rows = doctor(script)
        ok(f"a script: {line}".replace(folder, "FOLDER"), done, rows, int("static" in line), ("FAIL" if "static" in line else "OK", "program", f"^{script}, a script for .*{what}"))

    # ---- Without ptrace ----

    done, rows = doctor("--", TESTS / "steps", "dgemm:100:2", preexec_fn=forbid_ptrace)
    ok("no ptrace", done, rows, 0, ("WARN", "preload", "cannot be watched: ptrace is not permitted"), ("OK", "calls", r"/libblas\.so\.3, called with \d threads?, first dgemm_"))
tap.done()
