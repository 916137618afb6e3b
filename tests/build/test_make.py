#!/usr/bin/python3 -B
"""make check tests what it has built: of every source and every header. Flags of packagers (CPPFLAGS, CFLAGS, LDFLAGS) reach what is compiled and
linked, and what was made with others is made anew; make install knows GNU's folders, make uninstall takes back what it has put there, and the
installed tool finds its library. What make dist packs builds by itself (with TEST_LONG=1). make help lists every target and every setting. The version is in one place."""

import ctypes
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from lib.log import parse_log
from lib.programs import BUILD, LOG, LONG, ROOT, TEST_GPU, start
from lib.tap import Tap

MARKS = {"CPPFLAGS": "-DMARK_CPP", "CFLAGS": "-O1 -DMARK_C", "LDFLAGS": "-Wl,--defsym=mark=0x77,-z,now"}
# Targets that others are made of.
PARTS = {"arm64-programs", "run-arm64", "bench-programs", "changed-flags", "cuda-headers", "fuzz-programs", "proof-programs", "reference-programs", "regret-programs", "test-programs",
         "shared", "test-testgpu", "testgpu"}
VERSION = (ROOT / "VERSION").read_text().strip()
# make check has none of them: measurements, and what make fuzz and make regret alone build.
NOT_CHECKED = r"tests/bench/|tests/regret/record\.c|tests/fuzz/fuzz\.h"
# Other machines' own files.
ELSEWHERE = rf"shim/arch/(?!{os.uname().machine}/|frame_{os.uname().machine}\.h)(\w+/|frame_\w+\.h)"
tap = Tap()


def make(*arguments, cwd=ROOT, **settings):
    # What a make that runs this test has been given is not for this one.
    lost = {"BUILD", "MAKEFLAGS", "MAKELEVEL", "MFLAGS", "CHECK", "WERROR", "NVCC", *MARKS}
    done = subprocess.run(["make", *map(str, arguments)], cwd=cwd, env={k: v for k, v in os.environ.items() if k not in lost} | settings, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout.replace("\\\n", " "), done.returncode


def commands(output):
    """The compiler's lines, in words, and the target of each."""
    lines = [shlex.split(line) for line in output.splitlines() if re.match(r"\s*gcc ", line) and " -E " not in line]
    return [(line[line.index("-o") + 1], line) for line in lines if "-o" in line]


def sources_of(*patterns):
    found = [str(p.relative_to(ROOT)) for pattern in patterns for p in sorted(ROOT.glob(pattern))]
    return [name for name in found if not re.match(f"{NOT_CHECKED}|{ELSEWHERE}", name)]


# ---- Help, the version, warnings ----

helped, _ = make("help")
database, _ = make("-pn", "-f", "Makefile", "help")
targets = set(" ".join(re.findall(r"(?m)^\.PHONY: (.*)", database)).split()) - PARTS - {"all", "help"}
lacking = {name for name in targets if not re.search(rf"make {re.escape(name)}\b(?!-)", helped)}
tap.ok(len(targets) > 20 and not lacking, "make help lists every target", len(targets), *sorted(lacking))
settings = {name for file in ["Makefile", *sources_of("tests/*.mk", "tests/*/*.mk", "tool/*.mk", "packaging/*.mk", "packaging/*/*.mk")] if "testgpu" not in file
            for name in re.findall(r"(?m)^(\w+)\s*\?=", (ROOT / file).read_text())} | {"CC", "DESTDIR"}
lacking = {name for name in settings if not re.search(rf"\b{name}\b", helped)}
tap.ok(len(settings) > 20 and not lacking, "and every setting", len(settings), *sorted(lacking))
said = subprocess.run([BUILD / "accel", "--version"], stdout=subprocess.PIPE, text=True)
library = ctypes.CDLL(str(BUILD / "libaccel.so"))
library.accel_version.restype = ctypes.c_char_p
tap.ok(re.fullmatch(r"\d+\.\d+\.\d+", VERSION) and said.stdout.startswith(f"accel {VERSION}\n") and said.returncode == 0 and library.accel_version().decode() == VERSION,
       "accel --version and the library's accel_version() are the file VERSION", VERSION, said.stdout, library.accel_version())
printed = said.stdout.splitlines()[1:]
commit = re.fullmatch(r"commit ([0-9a-f]{12})", printed[0])
known = commit and subprocess.run(["git", "cat-file", "-e", commit[1] + "^{commit}"], cwd=ROOT, stderr=subprocess.DEVNULL).returncode == 0
has_git = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
tap.ok((known if has_git else printed[0] == "built without git: no commit is known") and printed[1:] == ["for CUDA 12 and 13, without headers of CUDA", "with kernels of its own"],
       "accel --version: a commit of this repository, and CUDA's versions", said.stdout)
tap.ok(f"## {VERSION}" in (ROOT / "CHANGELOG.md").read_text(), "CHANGELOG.md has that version")
compiled = {given: commands(make("-n", f"BUILD={BUILD}/none", *given, "all", "test-programs", "testgpu")[0]) for given in ((), ("WERROR=-Werror",))}
tap.ok(len(compiled[()]) > 150 and not any("-Werror" in line for _, line in compiled[()]), "warnings do not stop a user's build")
ours = [line for target, line in compiled["WERROR=-Werror",] if any(word.endswith(".c") for word in line) and not re.search("/(lapack|reference)/", target)]
tap.ok("export WERROR=-Werror" in (ROOT / ".ci/run").read_text() and len(ours) > 150 and all("-Werror" in line for line in ours), "they stop CI's", len(ours),
       *[line[-1] for line in ours if "-Werror" not in line][:5])

# ---- What is edited is built before it is tested ----

sources = sources_of("gpu/own/*.cu", *(f"{layer}/**/*.[cS]" for layer in ("base", "call", "gpu", "ops", "report", "dispatch", "shim", "cpu_ref", "tool")), "tests/**/*.c")
output, status = make("-n", f"BUILD={BUILD.relative_to(ROOT)}", *(f"-W{name}" for name in sources), "check", "CHECK=THE-TESTS")
before, _, _ = output.partition("THE-TESTS")
words = {word.removeprefix(f"{ROOT}/") for line in before.splitlines() for word in line.split()}
# Tests compile these themselves, at each run: with options that are their cases. make coverage
# compiles its own.
at_each_run = (*(f"tests/fixtures/{of}/" for of in ("bindings", "providers", "wrappers")), "tests/coverage/")
stale = [name for name in sources if name not in words and not name.startswith(at_each_run)]
tap.ok(status == 0 and "THE-TESTS" in output and not stale, "make check compiles each source that is newer than what it tests", *stale, output[-600:] * (status != 0))

folder = tempfile.mkdtemp(prefix="make-", dir=BUILD)
scratch = Path(folder)
try:
    # Headers: each that a program's sources include is among what make knows of it.
    output, _ = make("-pn", "-f", "Makefile", "all", "test-programs", "testgpu", f"BUILD={BUILD.relative_to(ROOT)}")
    rules = re.findall(rf"(?m)^{BUILD.relative_to(ROOT)}/((?:obj|obj64|tests|testgpu|testgpu-cuda12|proof)/[^\s:]+): ([^|\n]+)", output)

    def headers_of(name, seen):
        text = (ROOT / name).read_text()
        for included in re.findall(r'(?m)^#\s*include "([^"]+)"', text):
            places = [Path(name).parent, Path()]
            path = next((os.path.normpath(p / included) for p in places if (ROOT / p / included).exists()), None)
            if path and path not in seen and not re.match(ELSEWHERE, path):
                seen.add(path)
                headers_of(path, seen)
        return seen

    lacking = set()
    for target, prerequisites in rules:
        known = {os.path.relpath(p, ROOT) if p.startswith("/") else p for p in prerequisites.split()}
        for name in [p for p in known if p.endswith(".c") and (ROOT / p).exists()]:
            lacking |= {f"{target}: {header}" for header in sorted(headers_of(name, set()) - known)}
    tap.ok(len(rules) > 60 and not lacking, "and whatever includes a header that is newer", len(rules), *sorted(lacking))

    failing = scratch / "failing"
    failing.write_text("#!/bin/sh\nprintf 'ok 1\\n# before\\nnot ok 2 - odd\\n#   why\\nok 3\\n# after\\n1..3\\n'\nexit 1\n")
    failing.chmod(0o755)
    built = [word for target in ("all", "test-programs", "testgpu") for word in ("-o", target)]
    output, status = make(*built, f"BUILD={scratch}", "check", f"CHECK={failing}")
    tap.ok(status != 0 and f"{failing}: not ok 2 - odd\n#   why\nmake: " in output, "make check says at its end what has failed", status, output)

    # ---- Flags ----

    given = [f"{name}={text}" for name, text in MARKS.items()]
    output, status = make("-n", f"BUILD={scratch}", *given, "all", "test-programs", "testgpu")
    lines = [(target, line) for target, line in commands(output) if "reference" not in target and "lapack/" not in target]
    linked = [(target, line) for target, line in lines if "-c" not in line]
    compiled = [(target, line) for target, line in lines if any(word.endswith(".c") for word in line)]
    tap.ok(len(linked) > 60 and all(MARKS["LDFLAGS"] in line for _, line in linked), "LDFLAGS is in whatever is linked", len(linked),
           *(target for target, line in linked if MARKS["LDFLAGS"] not in line))
    tap.ok(len(compiled) > 150 and all(MARKS["CPPFLAGS"] in line for _, line in compiled), "CPPFLAGS in whatever is compiled", len(compiled),
           *(target for target, line in compiled if MARKS["CPPFLAGS"] not in line))
    ours = [(target, line) for target, line in lines if not re.search("/(tests|testgpu.*|proof|regret)/", target)]
    tap.ok(len(ours) > 100 and all("-DMARK_C" in line or line[-1].endswith(".S") for _, line in ours), "CFLAGS in the library and the tool", len(ours),
           *(target for target, line in ours if "-DMARK_C" not in line))

    # A build folder whose objects, and their times, are ours.
    for part in ("base", "call", "gpu", "ops", "report", "dispatch", "shim", "cpu_ref", "tool"):
        shutil.copytree(BUILD / part, scratch / part)
    for name in ("symbols.map", "names_places.inc", "compiler.flags", "glibc.flags", "layers.flags", "link.flags", "install.flags", "version.flags",
                 "objects.flags", "tool.flags", "own.flags", "extra.flags", "functions.def", "other_ops.def"):
        shutil.copy2(BUILD / name, scratch / name)
    mark = f"LDFLAGS={MARKS['LDFLAGS']}"
    output, status = make(f"BUILD={scratch}", mark, "all")
    again = [target for target, _ in commands(output)]
    symbols = [subprocess.run(["readelf", "-Ws", scratch / name], stdout=subprocess.PIPE, text=True).stdout for name in ("libaccel.so", "accel")]
    tap.ok(status == 0 and all(re.search(r"0+77 .* mark$", text, re.M) for text in symbols), "a library and a tool with a packager's LDFLAGS", output[-600:])
    tap.ok({Path(target).name for target in again} == {"libaccel.so.new", "accel.new", "pages.new"}, "for which nothing was compiled", *again)
    tap.ok(commands(make("-n", f"BUILD={scratch}", mark, "all")[0]) == [], "the same flags once more: nothing to do", make("-n", f"BUILD={scratch}", mark, "all")[0])
    tap.ok(len(commands(make("-n", f"BUILD={scratch}", "all")[0])) == 3, "other LDFLAGS: it is linked again")
    for name, linked in (("objects", {"libaccel.so.new"}), ("tool", {"accel.new", "pages.new"})):
        flags = scratch / f"{name}.flags"
        kept, dates = flags.read_text(), flags.stat()
        flags.write_text(kept.replace(" ", " tool/gone.o ", 1))
        os.utime(flags, ns=(dates.st_atime_ns, dates.st_mtime_ns))
        again = {Path(target).name for target, _ in commands(make("-n", f"BUILD={scratch}", mark, "all")[0])}
        tap.ok(again == linked, f"a source that is gone: what it was in is linked again ({name})", *again)
        flags.write_text(kept)
        os.utime(flags, ns=(dates.st_atime_ns, dates.st_mtime_ns))
    for name in ("CFLAGS", "CPPFLAGS"):
        output, _ = make("-n", f"BUILD={scratch}", mark, f"{name}={MARKS[name]}", "all")
        tap.ok(len(commands(output)) > 100, f"other {name}: all is compiled again", len(commands(output)))
    output, status = make("-n", f"BUILD={scratch}/none", "CUDA_HOME=", "CUDA_INCLUDE=", "all")
    tap.ok(status == 0 and len(commands(output)) > 100, "the library and the tool are built where there is nothing of CUDA", output[-300:])
    output, status = make("-n", f"BUILD={scratch}/none", "CUDA_HOME=", "CUDA_INCLUDE=", "testgpu")
    tap.ok("scripts/install-deps headers" in output, "what the tests need of it is named, with what fetches it", output[-300:])

    # ---- The compiler of the kernels ----

    bare = {"PATH": "/usr/bin:/bin", "CUDA_HOME": "/nonexistent"}
    fetched = scratch / "fetched/cuda-compiler/bin/nvcc"
    for target in ("deb", "wheel", "rpm"):
        output, status = make("-n", f"BUILD={scratch}/fetched", target, **bare)
        tap.ok(status == 0 and 0 <= output.find(f"BUILD={scratch}/fetched scripts/install-deps compiler\n") < output.find(f"packaging/make-{target}"),
               f"make {target} fetches an nvcc where there is none", output[-300:])
        output, status = make("-n", f"BUILD={scratch}/fetched", "NVCC=", target, **bare)
        tap.ok(status == 0 and "install-deps" not in output, f"make {target} NVCC= does not", output[-300:])
    fetched.parent.mkdir(parents=True)
    fetched.write_text("#!/bin/sh\n")
    output, _ = make("-n", f"BUILD={scratch}/fetched", f"{scratch}/fetched/gpu/own/own.fatbin", **bare)
    tap.ok(f"scripts/compile-kernels '{fetched}'" in output, "make finds the one that has been fetched", output[-300:])

    # Kernels that are left out: one line of the build, and a reason in the log.
    left_out = "compile-kernels: no nvcc: kernels of our own (gpu/own/) are left out"
    output, status = make(f"BUILD={scratch}", mark, "NVCC=", "all")
    tap.ok(status == 0 and output.count("left out") == 1 and left_out in output, "no nvcc: a line says that the kernels are left out", output[-600:])
    done = start("svm_calls", "rand", env={**TEST_GPU, **LOG, "LD_PRELOAD": str(scratch / "libaccel.so")})
    plain = start("svm_calls", "rand")
    told = [(line["sym"], line["ran"], line["why"]) for line in parse_log(done.stderr) if "sym" in line]
    tap.ok(done.stdout == plain.stdout and ("svm_train", "cpu", "unsupported") in told and {line[1:] for line in told} == {("cpu", "unsupported")},
           "libsvm computes then, bit for bit, and the log says unsupported", *set(told), done.stderr[-600:])
    without = "NVCC=/bin/false"  # from here on: the kernels take half a minute to compile
    output, status = make(f"BUILD={scratch}", mark, without, "all")
    tap.ok(status == 0 and output.count("left out") == 1 and "compile-kernels: /bin/false does not work" in output, "nor does an nvcc that fails stop the build", output[-600:])
    # One that compiles an empty source, but not the kernels.
    poor = scratch / "nvcc"
    poor.write_text('#!/bin/sh\ncase "$*" in *all.cu) echo "error: too new"; exit 2;; *--list*) echo compute_80;; esac\n')
    poor.chmod(0o755)
    image = scratch / "poor/own.fatbin"
    for werror, status in (("", 0), ("-Werror", 1)):
        done = subprocess.run(["scripts/compile-kernels", poor, "80", image, "gpu/own/copy.cu"], cwd=ROOT, env={**os.environ, "WERROR": werror}, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        tap.ok(done.returncode == status and "error: too new" in done.stdout and (f"{poor} fails: kernels of our own" in done.stdout) == (status == 0) and (status or image.read_bytes() == b""),
               f"an nvcc that refuses the kernels, WERROR={werror}: {'an error' if status else 'they are left out'}", done.returncode, done.stdout)
    if LONG:
        output = subprocess.run(["scripts/install-deps", "compiler"], cwd=ROOT, env={**os.environ, **bare, "BUILD": f"{scratch}/real"}, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        made, status = make(f"BUILD={scratch}/real", "OWN_ARCHITECTURES=80", f"{scratch}/real/gpu/own/own.fatbin", **bare)
        image = scratch / "real/gpu/own/own.fatbin"
        tap.ok(output.returncode == status == 0 and image.stat().st_size > 10000, "NVIDIA's wheel of nvcc, from PyPI, compiles the kernels", output.stdout[-300:], made[-300:])

    # ---- Installation ----

    package = scratch / "package"
    output, status = make(f"BUILD={scratch}", mark, without, "prefix=/usr", "libdir=/usr/lib/x86_64-linux-gnu", f"DESTDIR={package}", "install")
    files = {str(p.relative_to(package)) for p in package.rglob("*") if p.is_file()}
    preloads = {name for name in files if "/accel-preload/" in name}
    built = {str(p.relative_to(BUILD)) for p in (BUILD / "accel-preload").rglob("libaccel.so")}
    tap.ok({name.split("x86_64-linux-gnu/")[1] for name in preloads} == built and len(built) > 10
           and all((package / name).resolve().exists() for name in preloads),
           "a library for each platform", *sorted(preloads))
    files -= preloads
    shared = {"bash-completion/completions/accel", "zsh/site-functions/_accel", "fish/vendor_completions.d/accel.fish", "man/man1/accel.1",
              "man/man5/accel.conf.5", "man/man7/libaccel.7"}
    tap.ok(status == 0 and files == {*(f"usr/share/{name}" for name in shared), "usr/bin/accel", "usr/lib/x86_64-linux-gnu/libaccel.so", "usr/share/doc/libaccel/README.md",
                                      "usr/share/doc/libaccel/CONTRIBUTING.md", "usr/share/doc/libaccel/CHANGELOG.md", "usr/share/doc/libaccel/LICENSE",
                                      *(f"usr/share/doc/libaccel/docs/{p.name}" for p in (ROOT / "docs").iterdir() if p.suffix in (".md", ".json"))},
           "prefix, libdir and DESTDIR", *sorted(files), output[-600:])
    moved = package.rename(scratch / "moved")
    done = subprocess.run([moved / "usr/bin/accel", "run", "printenv", "LD_PRELOAD"], stdout=subprocess.PIPE, text=True)
    tap.ok(done.stdout.startswith(f"{moved.resolve()}/usr/bin/../lib/x86_64-linux-gnu/accel-preload/$PLATFORM/libaccel.so"), "moved together, the tool finds the library beside it", done.stdout)
    moved.rename(package)
    others = [package / "usr/bin/other", package / "usr/lib/x86_64-linux-gnu/libother.so"]
    for other in others:
        other.write_text("")
    folders = {"prefix=/usr", "libdir=/usr/lib/x86_64-linux-gnu", f"DESTDIR={package}"}
    output, status = make(f"BUILD={scratch}", *folders, "uninstall")
    left = [p for p in package.rglob("*") if p.is_file()]
    folders_left = [name for name in ("share/doc/libaccel", "lib/x86_64-linux-gnu/accel-preload") if (package / "usr" / name).exists()]
    tap.ok(status == 0 and sorted(left) == others and not folders_left, "make uninstall removes these files and no other", *left, output[-600:])
    tap.ok(make(f"BUILD={scratch}", *folders, "uninstall")[1] == 0, "and nothing, where nothing is there")
    home = scratch / "home"
    output, status = make(f"BUILD={scratch}", mark, without, f"PREFIX={home}", f"LIBDIR={home}/lib64", f"BINDIR={home}/sbin", "install")
    tap.ok(status == 0 and (home / "lib64/libaccel.so").exists() and (home / "sbin/accel").exists(), "PREFIX, LIBDIR, BINDIR", output[-600:])

    def finds():
        done = subprocess.run([home / "sbin/accel", "run", "echo", "1.5"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        return done.stdout == "1.5\n", done.stdout

    found, said = finds()
    tap.ok(found, "the tool finds the library there", said)
    (home / "lib64/libaccel.so").rename(home / "libaccel.so")
    found, said = finds()
    tap.ok(not found, "and says so where it does not", said)

    # ---- An archive of the sources ----

    archive = f"libaccel-{VERSION}"
    output, status = make(f"DISTDIR={scratch}", "dist")
    subprocess.run(["tar", "-xzf", scratch / f"{archive}.tar.gz", "-C", scratch], check=True)
    unpacked = scratch / archive
    if tap.ok(status == 0 and unpacked.is_dir(), "make dist", output[-600:]):
        found = {str(p.relative_to(unpacked)) for p in unpacked.rglob("*") if not p.is_dir() or p.is_symlink()}
        lacking = set(sources_of("*/**/*.[chS]", "*/**/*.cu", "*/**/*.cuh", "*/**/*.def", "*/**/*.mk")) - found
        tap.ok(not [name for name in lacking if not name.startswith("build")] and not [name for name in found if name.startswith("build")], "all sources, and nothing built",
               *sorted(lacking)[:5])
        if LONG:
            output, status = make("-j2", "CUDA_INCLUDE=", "NVCC=", "all", "CFLAGS=-O0", cwd=unpacked)
            done = subprocess.run([unpacked / "build/accel", "--version"], stdout=subprocess.PIPE, text=True)
            tap.ok(status == 0 and done.stdout.startswith(f"accel {VERSION}\nbuilt without git: no commit is known\n") and (unpacked / "build/libaccel.so").exists(), "which builds by itself", output[-600:])
        else:
            print("# whether it builds by itself: with TEST_LONG=1")
        output, status = make("dist", cwd=unpacked)
        listed = [set(subprocess.run(["tar", "-tzf", path], stdout=subprocess.PIPE, text=True).stdout.splitlines())
                  for path in (unpacked / f"{archive}.tar.gz", scratch / f"{archive}.tar.gz")]
        tap.ok(status == 0 and {name.removeprefix(f"{archive}/") for name in listed[0]} == found, "and packs the same again, without git", *sorted(listed[0])[:5], output[-600:])
finally:
    shutil.rmtree(scratch, ignore_errors=True)
tap.done()
