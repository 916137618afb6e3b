#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""make check tests what it has built: of every source and every header. Flags of packagers (CPPFLAGS, CFLAGS, LDFLAGS)
reach what is compiled and linked, and what was made with others is made anew; make install knows GNU's folders, make
uninstall takes back what it has put there, and the installed tool finds its library. What make dist packs builds by
itself (with TEST_LONG=1). make help lists every target and every setting. The version is in one place."""

import ctypes
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections import namedtuple
from pathlib import Path

import pytest

from lib.log import parse_log
from lib.programs import BUILD, LOG, LONG, ROOT, TEST_GPU, start

MARKS = {"CPPFLAGS": "-DMARK_CPP", "CFLAGS": "-O1 -DMARK_C", "LDFLAGS": "-Wl,--defsym=mark=0x77,-z,now"}
# Targets that others are made of.
PARTS = {"arm64-programs", "run-arm64", "bench-programs", "changed-flags", "cuda-headers", "fuzz-programs",
         "proof-programs", "reference-programs", "regret-programs", "test-programs",
         "shared", "test-testgpu", "testgpu"}
VERSION = (ROOT / "VERSION").read_text().strip()
# make check has none of them: measurements, and what make fuzz and make regret alone build.
NOT_CHECKED = r"tests/bench/|tests/regret/record\.c|tests/fuzz/fuzz\.h"
# Other machines' own files.
ELSEWHERE = rf"shim/arch/(?!{os.uname().machine}/|frame_{os.uname().machine}\.h)(\w+/|frame_\w+\.h)"
MARK = f"LDFLAGS={MARKS['LDFLAGS']}"
WITHOUT = "NVCC=/bin/false"  # the kernels take half a minute to compile
BARE = {"PATH": "/usr/bin:/bin", "CUDA_HOME": "/nonexistent"}
LAYERS = ("base", "call", "gpu", "ops", "report", "dispatch", "shim", "cpu_ref", "tool")
FLAGS = ("symbols.map", "names_places.inc", "compiler.flags", "glibc.flags", "layers.flags", "link.flags",
         "install.flags", "version.flags",
         "objects.flags", "tool.flags", "own.flags", "extra.flags", "functions.def", "other_ops.def")
SHARED = ("bash-completion/completions/accel", "zsh/site-functions/_accel", "fish/vendor_completions.d/accel.fish",
          "man/man1/accel.1",
          "man/man5/accel.conf.5", "man/man7/libaccel.7")
FOLDERS = ("prefix=/usr", "libdir=/usr/lib/x86_64-linux-gnu")
ARCHIVE = f"libaccel-{VERSION}"
TESTED = ("all", "test-programs", "testgpu")
own_build = os.environ.get("BUILD", "build")  # it may be absolute


def make(*arguments, cwd=ROOT, **settings):
    """What it prints, and its exit status."""
    # What a make that runs this test has been given is not for this one.
    lost = {"BUILD", "MAKEFLAGS", "MAKELEVEL", "MFLAGS", "CHECK", "WERROR", "NVCC", *MARKS}
    done = subprocess.run(["make", *map(str, arguments)], cwd=cwd,
                          env={k: v for k, v in os.environ.items() if k not in lost} | settings, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout.replace("\\\n", " "), done.returncode


def commands(output):
    """The compiler's lines, in words, and the target of each."""
    lines = [shlex.split(line) for line in output.splitlines() if re.match(r"\s*gcc ", line) and " -E " not in line]
    return [(line[line.index("-o") + 1], line) for line in lines if "-o" in line]


def sources_of(*patterns):
    found = [str(p.relative_to(ROOT)) for pattern in patterns for p in sorted(ROOT.glob(pattern))]
    return [name for name in found if not re.match(f"{NOT_CHECKED}|{ELSEWHERE}", name)]


@pytest.fixture(scope="module")
def scratch():
    """A build folder of this test's own."""
    with tempfile.TemporaryDirectory(prefix="make-", dir=BUILD, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


# ---- Help, the version, warnings ----


@pytest.fixture(scope="module")
def helped():
    return make("help")[0]


def test_make_help_lists_every_target(helped):
    database, _ = make("-pn", "-f", "Makefile", "help")
    targets = set(" ".join(re.findall(r"(?m)^\.PHONY: (.*)", database)).split()) - PARTS - {"all", "help"}
    assert len(targets) > 20
    assert not {name for name in targets if not re.search(rf"make {re.escape(name)}\b(?!-)", helped)}


def test_and_every_setting(helped):
    files = ["Makefile", *sources_of("tests/*.mk", "tests/*/*.mk", "tool/*.mk", "packaging/*.mk", "packaging/*/*.mk")]
    settings = {"CC", "DESTDIR"} | {name for file in files if "testgpu" not in file
                                    for name in re.findall(r"(?m)^(\w+)\s*\?=", (ROOT / file).read_text())}
    assert len(settings) > 20
    assert not {name for name in settings if not re.search(rf"\b{name}\b", helped)}


def accel_version(accel=BUILD / "accel"):
    done = subprocess.run([accel, "--version"], stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0
    return done.stdout


def git_knows(name):
    return subprocess.run(["git", "rev-parse", "--verify", name], cwd=ROOT, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


def test_the_version_of_the_tool_and_of_the_library_is_the_file_version():
    library = ctypes.CDLL(str(BUILD / "libaccel.so"))
    library.accel_version.restype = ctypes.c_char_p
    assert re.fullmatch(r"\d+\.\d+\.\d+", VERSION)
    assert accel_version().startswith(f"accel {VERSION}\n")
    assert library.accel_version().decode() == VERSION


def test_the_tool_knows_a_commit_of_this_repository_and_cuda_s_versions():
    _, commit, *others = accel_version().splitlines()
    if git_knows("HEAD"):
        assert git_knows(re.fullmatch(r"commit ([0-9a-f]{12})", commit)[1] + "^{commit}")
    else:
        assert commit == "built without git: no commit is known"
    assert others == ["for CUDA 12 and 13, without headers of CUDA", "with kernels of its own"]


def test_the_changelog_has_that_version():
    assert f"## {VERSION}" in (ROOT / "CHANGELOG.md").read_text()


def test_warnings_do_not_stop_a_user_s_build():
    compiled = commands(make("-n", f"BUILD={BUILD}/none", *TESTED)[0])
    assert len(compiled) > 150
    assert not [target for target, line in compiled if "-Werror" in line]


def test_they_stop_ci_s():
    compiled = commands(make("-n", f"BUILD={BUILD}/none", "WERROR=-Werror", *TESTED)[0])
    ours = [line for target, line in compiled if any(word.endswith(".c") for word in line)
            and not re.search("/(lapack|reference)/", target)]
    assert "export WERROR=-Werror" in (ROOT / ".ci/run").read_text()
    assert len(ours) > 150
    assert not [line[-1] for line in ours if "-Werror" not in line]


# ---- What is edited is built before it is tested ----


def test_make_check_compiles_each_source_that_is_newer_than_what_it_tests():
    sources = sources_of("gpu/own/*.cu", *(f"{layer}/**/*.[cS]" for layer in LAYERS), "tests/**/*.c")
    output, status = make("-n", f"BUILD={own_build}", *(f"-W{name}" for name in sources), "check", "CHECK=THE-TESTS")
    assert status == 0, output[-600:]
    assert "THE-TESTS" in output
    before, _, _ = output.partition("THE-TESTS")
    words = {word.removeprefix(f"{ROOT}/") for line in before.splitlines() for word in line.split()}
    # Tests compile these themselves, at each run: with options that are their cases. make coverage
    # compiles its own, and make gpu-bundle HPL.
    at_each_run = (*(f"tests/fixtures/{of}/" for of in ("bindings", "providers", "wrappers")), "tests/coverage/", "tests/proof/hpl/")
    assert not [name for name in sources if name not in words and not name.startswith(at_each_run)]


def headers_of(name, seen):
    """The headers that a source includes, itself or by others, besides those in seen."""
    for included in re.findall(r'(?m)^#\s*include "([^"]+)"', (ROOT / name).read_text()):
        places = [Path(name).parent, Path()]
        path = next((os.path.normpath(place / included) for place in places if (ROOT / place / included).exists()),
                    None)
        if path and path not in seen and not re.match(ELSEWHERE, path):
            seen.add(path)
            headers_of(path, seen)
    return seen


def test_and_whatever_includes_a_header_that_is_newer():
    """Each that a program's sources include is among what make knows of it."""
    output, _ = make("-pn", "-f", "Makefile", *TESTED, f"BUILD={own_build}")
    rules = re.findall(rf"(?m)^{re.escape(own_build)}/((?:obj|obj64|tests|testgpu|testgpu-cuda12|proof)/[^\s:]+): ([^|\n]+)",
                       output)
    assert len(rules) > 60
    lacking = set()
    for target, prerequisites in rules:
        known = {os.path.relpath(p, ROOT) if p.startswith("/") else p for p in prerequisites.split()}
        for name in [p for p in known if p.endswith(".c") and (ROOT / p).exists()]:
            lacking |= {f"{target}: {header}" for header in headers_of(name, set()) - known}
    assert not lacking


def test_a_build_folder_that_is_named_from_the_root(tmp_path):
    output, status = make("-n", f"BUILD={tmp_path}", *TESTED)
    assert status == 0, output[-600:]
    assert f"-I{tmp_path}/lapack/CBLAS/include" in output
    assert f"{ROOT}/{tmp_path}" not in output


def test_make_check_says_at_its_end_what_has_failed(tmp_path):
    failing = tmp_path / "failing"
    said = "ok 1\\n# before\\nnot ok 2 - odd\\n#   why\\nok 3\\n# after\\n1..3\\n"
    failing.write_text(f"#!/bin/sh\nprintf '{said}'\nexit 1\n")
    failing.chmod(0o755)
    built = [word for target in TESTED for word in ("-o", target)]
    output, status = make(*built, f"BUILD={tmp_path}", "check", f"CHECK={failing}")
    assert status != 0
    assert f"{failing}: not ok 2 - odd\n#   why\nmake: " in output


# ---- Flags ----


@pytest.fixture(scope="module")
def marked():
    """The compiler's lines where all flags are given: [(target, words)]."""
    output, _ = make("-n", f"BUILD={BUILD}/none", *(f"{name}={text}" for name, text in MARKS.items()), *TESTED)
    return [(target, line) for target, line in commands(output) if "reference" not in target
            and "lapack/" not in target]


def test_ldflags_is_in_whatever_is_linked(marked):
    linked = [(target, line) for target, line in marked if "-c" not in line]
    assert len(linked) > 60
    assert not [target for target, line in linked if MARKS["LDFLAGS"] not in line]


def test_cppflags_in_whatever_is_compiled(marked):
    compiled = [(target, line) for target, line in marked if any(word.endswith(".c") for word in line)]
    assert len(compiled) > 150
    assert not [target for target, line in compiled if MARKS["CPPFLAGS"] not in line]


def test_cflags_in_the_library_and_the_tool(marked):
    ours = [(target, line) for target, line in marked if not re.search("/(tests|testgpu.*|proof|regret)/", target)]
    assert len(ours) > 100
    assert not [target for target, line in ours if "-DMARK_C" not in line and not line[-1].endswith(".S")]


def own_nvcc():
    """The one of our build, which another build folder may not find: NVIDIA's wheel is in ours."""
    first = (BUILD / "own.flags").read_text().split()[0]
    return {"NVCC": first if "/" in first else ""}


@pytest.fixture(scope="module")
def linked(scratch):
    """A build with a packager's LDFLAGS in a folder whose objects, and their times, are ours: the programs that were
    made."""
    for part in LAYERS:
        shutil.copytree(BUILD / part, scratch / part)
    for name in FLAGS:
        shutil.copy2(BUILD / name, scratch / name)
    output, status = make(f"BUILD={scratch}", MARK, "all", **own_nvcc())
    assert status == 0, output[-600:]
    return {Path(target).name for target, _ in commands(output)}


def next_commands(scratch, *settings):
    """What would be made next."""
    return commands(make("-n", f"BUILD={scratch}", *settings, "all", **own_nvcc())[0])


@pytest.mark.parametrize("name", ["libaccel.so", "accel"])
def test_what_is_linked_with_a_packager_s_ldflags(scratch, linked, name):
    symbols = subprocess.run(["readelf", "-Ws", scratch / name], stdout=subprocess.PIPE, text=True).stdout
    assert re.search(r"0+77 .* mark$", symbols, re.M)


def test_for_which_nothing_was_compiled(linked):
    assert linked == {"libaccel.so.new", "accel.new", "pages.new"}


def test_the_same_flags_once_more_nothing_to_do(scratch, linked):
    assert next_commands(scratch, MARK) == []


def test_other_ldflags_it_is_linked_again(scratch, linked):
    assert len(next_commands(scratch)) == 3


@pytest.mark.parametrize("name, made", [("objects", {"libaccel.so.new"}), ("tool", {"accel.new", "pages.new"})],
                         ids=["objects", "tool"])
def test_a_source_that_is_gone_what_it_was_in_is_linked_again(scratch, linked, name, made):
    flags = scratch / f"{name}.flags"
    kept, dates = flags.read_text(), flags.stat()
    try:
        flags.write_text(kept.replace(" ", " tool/gone.o ", 1))
        os.utime(flags, ns=(dates.st_atime_ns, dates.st_mtime_ns))
        assert {Path(target).name for target, _ in next_commands(scratch, MARK)} == made
    finally:
        flags.write_text(kept)
        os.utime(flags, ns=(dates.st_atime_ns, dates.st_mtime_ns))


@pytest.mark.parametrize("name", ["CFLAGS", "CPPFLAGS"])
def test_others_all_is_compiled_again(scratch, linked, name):
    assert len(next_commands(scratch, MARK, f"{name}={MARKS[name]}")) > 100


def test_the_library_and_the_tool_are_built_where_there_is_nothing_of_cuda():
    output, status = make("-n", f"BUILD={BUILD}/none", "CUDA_HOME=", "CUDA_INCLUDE=", "all")
    assert status == 0
    assert len(commands(output)) > 100


def test_what_the_tests_need_of_it_is_named_with_what_fetches_it():
    output, _ = make("-n", f"BUILD={BUILD}/none", "CUDA_HOME=", "CUDA_INCLUDE=", "testgpu")
    assert "scripts/install-deps headers" in output


# ---- The compiler of the kernels ----


@pytest.mark.parametrize("target", ["deb", "wheel", "rpm"])
def test_a_package_fetches_an_nvcc_where_there_is_none(tmp_path, target):
    output, status = make("-n", f"BUILD={tmp_path}", target, **BARE)
    assert status == 0, output[-300:]
    fetches = output.index(f"BUILD={tmp_path} scripts/install-deps compiler\n")
    assert fetches < output.index(f"packaging/make-{target}")
    output, status = make("-n", f"BUILD={tmp_path}", "NVCC=", target, **BARE)
    assert status == 0, output[-300:]
    assert "install-deps compiler" not in output, "NVCC= does not"


def test_make_finds_the_one_that_has_been_fetched(tmp_path):
    fetched = tmp_path / "cuda-compiler/bin/nvcc"
    fetched.parent.mkdir(parents=True)
    fetched.write_text("#!/bin/sh\n")
    output, _ = make("-n", f"BUILD={tmp_path}", f"{tmp_path}/gpu/own/own.fatbin", **BARE)
    assert f"scripts/compile-kernels '{fetched}'" in output


def test_no_nvcc_kernels_are_left_out_which_one_line_and_the_log_say(scratch, linked):
    output, status = make(f"BUILD={scratch}", MARK, "NVCC=", "all")
    assert status == 0, output[-600:]
    assert output.count("left out") == 1
    assert "compile-kernels: no nvcc: kernels of our own (gpu/own/) are left out" in output
    done = start("svm_calls", "rand", env={**TEST_GPU, **LOG, "LD_PRELOAD": str(scratch / "libaccel.so")})
    told = {(line["sym"], line["ran"], line["why"]) for line in parse_log(done.stderr) if "sym" in line}
    assert done.stdout == start("svm_calls", "rand").stdout, "libsvm computes then, bit for bit"
    assert ("svm_train", "cpu", "unsupported") in told
    assert {line[1:] for line in told} == {("cpu", "unsupported")}


@pytest.fixture(scope="module")
def without_kernels(scratch, linked):
    """The build by an nvcc that fails: what it said."""
    output, status = make(f"BUILD={scratch}", MARK, WITHOUT, "all")
    assert status == 0, output[-600:]
    return output


def test_nor_does_an_nvcc_that_fails_stop_the_build(without_kernels):
    assert without_kernels.count("left out") == 1
    assert "compile-kernels: /bin/false does not work" in without_kernels


@pytest.mark.parametrize("werror, status", [pytest.param("", 0, id="left out"),
                                            pytest.param("-Werror", 1, id="an error with -Werror")])
def test_an_nvcc_that_refuses_the_kernels(tmp_path, werror, status):
    """One that compiles an empty source, but not the kernels."""
    poor, image = tmp_path / "nvcc", tmp_path / "poor/own.fatbin"
    poor.write_text('#!/bin/sh\ncase "$*" in *all.cu) echo "error: too new"; exit 2;; *--list*) echo compute_80;; '
                    'esac\n')
    poor.chmod(0o755)
    done = subprocess.run(["scripts/compile-kernels", poor, "80", image, "gpu/own/copy.cu"], cwd=ROOT,
                          env={**os.environ, "WERROR": werror},
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == status
    assert "error: too new" in done.stdout
    assert (f"{poor} fails: kernels of our own" in done.stdout) == (status == 0)
    assert status or image.read_bytes() == b""


@pytest.mark.skipif(not LONG, reason="the long form has it")
def test_nvidia_s_wheel_of_nvcc_compiles_the_kernels(tmp_path):
    output = subprocess.run(["scripts/install-deps", "compiler"], cwd=ROOT,
                            env={**os.environ, **BARE, "BUILD": str(tmp_path)}, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert output.returncode == 0, output.stdout[-300:]
    made, status = make(f"BUILD={tmp_path}", "OWN_ARCHITECTURES=80", f"{tmp_path}/gpu/own/own.fatbin", **BARE)
    assert status == 0, made[-300:]
    assert (tmp_path / "gpu/own/own.fatbin").stat().st_size > 10000


# ---- Installation ----


@pytest.fixture(scope="module")
def package(scratch, without_kernels):
    """What is installed for a package."""
    folder = scratch / "package"
    output, status = make(f"BUILD={scratch}", MARK, WITHOUT, *FOLDERS, f"DESTDIR={folder}", "install")
    assert status == 0, output[-600:]
    return folder


def test_a_library_for_each_platform(package):
    preloads = {str(p.relative_to(package)) for p in package.glob("**/accel-preload/**/*") if p.is_file()}
    built = {str(p.relative_to(BUILD)) for p in (BUILD / "accel-preload").rglob("libaccel.so")}
    assert len(built) > 10
    assert {name.split("x86_64-linux-gnu/")[1] for name in preloads} == built
    for name in preloads:
        assert (package / name).resolve().exists()


def test_prefix_libdir_and_destdir(package):
    files = {str(p.relative_to(package)) for p in package.rglob("*") if p.is_file()}
    documents = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE",
                 *(f"docs/{p.name}" for p in (ROOT / "docs").iterdir() if p.suffix in (".md", ".json")))
    assert {name for name in files if "/accel-preload/" not in name} == {
        "usr/bin/accel", "usr/lib/x86_64-linux-gnu/libaccel.so", *(f"usr/share/{name}" for name in SHARED),
        *(f"usr/share/doc/libaccel/{name}" for name in documents),
        *(f"usr/lib/systemd/{p.parent.name}/{p.name}" for p in (ROOT / "packaging/systemd").glob("*/*"))}


def test_the_units_name_the_tool_where_it_is_installed(package):
    for kind in ("user", "system"):
        unit = (package / f"usr/lib/systemd/{kind}/accel-serve.service").read_text()
        assert "\nExecStart=/usr/bin/accel serve\n" in unit
        assert "@" not in unit


def test_moved_together_the_tool_finds_the_library_beside_it(package, scratch):
    moved = package.rename(scratch / "moved")
    try:
        done = subprocess.run([moved / "usr/bin/accel", "run", "printenv", "LD_PRELOAD"], stdout=subprocess.PIPE,
                              text=True)
        library = "usr/bin/../lib/x86_64-linux-gnu/accel-preload/$PLATFORM/libaccel.so"
        assert done.stdout.startswith(f"{moved.resolve()}/{library}")
    finally:
        moved.rename(package)


def test_make_uninstall_removes_these_files_and_no_other(package, scratch):
    others = [package / "usr/bin/other", package / "usr/lib/x86_64-linux-gnu/libother.so"]
    for other in others:
        other.write_text("")
    output, status = make(f"BUILD={scratch}", *FOLDERS, f"DESTDIR={package}", "uninstall")
    assert status == 0, output[-600:]
    assert sorted(p for p in package.rglob("*") if p.is_file()) == others
    assert not (package / "usr/share/doc/libaccel").exists()
    assert not (package / "usr/lib/x86_64-linux-gnu/accel-preload").exists()
    output, status = make(f"BUILD={scratch}", *FOLDERS, f"DESTDIR={package}", "uninstall")
    assert status == 0, "nothing, where nothing is there"


def test_other_folders_in_which_the_tool_finds_the_library_or_says_so(scratch, without_kernels):
    home = scratch / "home"
    output, status = make(f"BUILD={scratch}", MARK, WITHOUT, f"PREFIX={home}", f"LIBDIR={home}/lib64",
                          f"BINDIR={home}/sbin", "install")
    assert status == 0, output[-600:]
    assert (home / "lib64/libaccel.so").exists()

    def said():
        return subprocess.run([home / "sbin/accel", "run", "echo", "1.5"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=120).stdout

    assert said() == "1.5\n"
    (home / "lib64/libaccel.so").rename(home / "libaccel.so")
    assert said() != "1.5\n"


# ---- An archive of the sources ----

# files: those that are unpacked.
Archive = namedtuple("Archive", "path unpacked files")


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archive")
    output, status = make(f"DISTDIR={folder}", "dist")
    assert status == 0, output[-600:]
    path, unpacked = folder / f"{ARCHIVE}.tar.gz", folder / ARCHIVE
    subprocess.run(["tar", "-xzf", path, "-C", folder], check=True)
    return Archive(path, unpacked, {str(p.relative_to(unpacked)) for p in unpacked.rglob("*") if not p.is_dir()
                                    or p.is_symlink()})


def test_make_dist_all_sources_and_nothing_built(archive):
    lacking = set(sources_of("*/**/*.[chS]", "*/**/*.cu", "*/**/*.cuh", "*/**/*.def", "*/**/*.mk")) - archive.files
    assert not [name for name in lacking if not name.startswith("build")]
    assert not [name for name in archive.files if name.startswith("build")]


def test_and_the_commit(archive):
    """For the packages, which are made from it."""
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE,
                            text=True).stdout if git_knows("HEAD") else "\n"
    assert (archive.unpacked / "COMMIT").read_text() == commit
    show = "--eval=show: ; @echo '$(COMMIT)'"
    assert make("-s", show, "show", cwd=archive.unpacked) == (commit, 0)
    (archive.unpacked / "COMMIT").rename(archive.unpacked.parent / "COMMIT")
    assert make("-s", show, "show", cwd=archive.unpacked) == ("\n", 0)
    (archive.unpacked.parent / "COMMIT").rename(archive.unpacked / "COMMIT")


@pytest.mark.skipif(not LONG, reason="the long form has it")
def test_which_builds_by_itself(archive):
    output, status = make("-j2", "CUDA_INCLUDE=", "NVCC=", "all", "CFLAGS=-O0", cwd=archive.unpacked)
    assert status == 0, output[-600:]
    said = accel_version(archive.unpacked / "build/accel")
    commit = (archive.unpacked / "COMMIT").read_text().strip()
    known = f"commit {commit}" if commit else "built without git: no commit is known"
    assert said.startswith(f"accel {VERSION}\n{known}\n")
    assert (archive.unpacked / "build/libaccel.so").exists()


def test_and_packs_the_same_again_without_git(archive):
    output, status = make("dist", cwd=archive.unpacked)
    assert status == 0, output[-600:]
    listed = subprocess.run(["tar", "-tzf", archive.unpacked / f"{ARCHIVE}.tar.gz"], stdout=subprocess.PIPE,
                            text=True).stdout.splitlines()
    assert {name.removeprefix(f"{ARCHIVE}/") for name in listed} == archive.files
