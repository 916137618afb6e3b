#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""The recipes of packaging/ other than those for Debian, pip and containers: make rpm builds a package that rpm
installs; Lmod loads the module file; EasyBuild builds and installs by its recipe; the commands of those for conda and
Spack, which cannot be had here, build and install."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections import namedtuple
from pathlib import Path

import pytest

from lib.programs import BUILD, DEBIAN_PYTHON, ROOT

VERSION = (ROOT / "VERSION").read_text().strip()
PACKAGING = ROOT / "packaging"
TOOLS = BUILD / "packages-venv/bin"
EASYBUILD = PACKAGING / f"easybuild/libaccel-{VERSION}.eb"
RPM_FILES = {"usr/bin/accel", "usr/share/zsh/site-functions/_accel", "usr/share/bash-completion/completions/accel",
             "usr/share/fish/vendor_completions.d/accel.fish",
             *(f"usr/lib/systemd/{kind}/accel-serve.{unit}" for kind in ("user", "system")
               for unit in ("socket", "service"))}
READ_CONDA = """
import json, sys, jinja2, yaml
text = open(sys.argv[1]).read()
template = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(text)
recipe = yaml.safe_load(template.render(compiler=lambda language: language + "-compiler"))
print(json.dumps(recipe))
"""


def run(*words, stderr=subprocess.STDOUT, **options):
    return subprocess.run([*map(str, words)], text=True, stdout=subprocess.PIPE, stderr=stderr, **options)


def by_platform(preload):
    """The path that the dynamic linker makes of LD_PRELOAD."""
    return os.path.realpath(preload.strip().replace("$PLATFORM", "x86_64"))


@pytest.fixture(scope="module")
def folder():
    with tempfile.TemporaryDirectory(dir=BUILD, prefix="recipes-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


# ---- RPM ----

Rpm = namedtuple("Rpm", "package root files library")


@pytest.fixture(scope="module")
def rpm(folder):
    """The package, installed. Without the kernels of gpu/own/, which take minutes. Debian's rpm knows of no installed
    packages."""
    done = run("make", f"DISTDIR={folder}", "rpm", cwd=ROOT, env={**os.environ, "NVCC": "", "RPM_OPTIONS": "--nodeps"})
    assert done.returncode == 0, done.stdout[-1500:]
    (package,) = folder.glob(f"libaccel-{VERSION}-1*.x86_64.rpm")
    root = folder / "root"
    run("rpm", "--root", root, "--initdb")
    done = run("rpm", "--root", root, "--nodeps", "--install", package)
    assert done.returncode == 0, done.stdout[-500:]
    files = {str(path.relative_to(root)) for path in (root / "usr").rglob("*") if path.is_file()}
    library = r"usr/lib(64)?(/x86_64-linux-gnu)?/libaccel/libaccel\.so"
    return Rpm(package, root, files, [name for name in files if "accel-preload" not in name
                                      and re.fullmatch(library, name)])


def test_rpm_installs_library_tool_manual_completion(rpm):
    assert RPM_FILES <= rpm.files
    assert len(rpm.library) == 1
    pages = {name.rsplit("/", 1)[1].removesuffix(".gz") for name in rpm.files if "/man/" in name}
    assert pages == {"accel.1", "accel.conf.5", "libaccel.7"}


def test_its_tool_finds_its_library(rpm):
    done = run(rpm.root / "usr/bin/accel", "run", "printenv", "LD_PRELOAD")
    assert by_platform(done.stdout) == str(rpm.root / rpm.library[0])


def test_no_program_can_be_linked_with_it(rpm):
    assert "libaccel.so" not in run("rpm", "-qp", "--provides", rpm.package).stdout


def test_rpmlint_finds_no_error(rpm):
    done = run("rpmlint", "--config", PACKAGING / "rpm/rpmlint.toml", rpm.package, PACKAGING / "rpm/libaccel.spec")
    assert re.search(r"\b0 errors", done.stdout)


# ---- Lmod ----


def test_lmod_the_module_puts_the_tool_and_its_manual_on_the_paths_preloads_nothing_and_goes_again(folder):
    modules = folder / "modules/libaccel"
    modules.mkdir(parents=True)
    shutil.copy(PACKAGING / "modules/libaccel.lua", modules / f"{VERSION}.lua")
    root = folder / "installed"
    architectures = os.environ.get("OWN_ARCHITECTURES", "70 75 80 90 100 120")
    run("make", f"BUILD={BUILD}", f"OWN_ARCHITECTURES={architectures}", "-o", "all", f"PREFIX={root}", "install",
        cwd=ROOT)
    script = f'''. /usr/share/lmod/lmod/init/bash; module use {folder}/modules
        module load libaccel/{VERSION} && command -v accel && echo "$MANPATH" && accel --version
        echo "preload=$LD_PRELOAD"; module unload libaccel; command -v accel
        module --terse avail 2>&1; module whatis libaccel 2>&1'''
    done = run("bash", "-c", script, env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "LIBACCEL_ROOT": str(root)})
    lines = done.stdout.splitlines()
    assert lines[0] == f"{root}/bin/accel"
    assert lines[1].startswith(f"{root}/share/man")
    assert f"accel {VERSION}" in lines[2]
    assert lines.count(f"{root}/bin/accel") == 1
    assert "preload=" in lines
    assert f"libaccel/{VERSION}" in lines


# ---- Recipes that build from the tarball ----


@pytest.fixture(scope="module")
def tarball(folder):
    done = run("make", f"DISTDIR={folder}", "dist", cwd=ROOT)
    assert done.returncode == 0, done.stdout[-500:]
    path = folder / f"libaccel-{VERSION}.tar.gz"
    assert path.exists()
    return path


@pytest.fixture(scope="module")
def source(folder, tarball):
    """The sources that are unpacked."""
    run("tar", "-xzf", tarball, "-C", folder)
    return folder / f"libaccel-{VERSION}"


@pytest.fixture(scope="module")
def plain(folder):
    """An environment of a build without optimisation, which takes half of the time."""
    return {"PATH": f"{TOOLS}:/usr/share/lmod/lmod/libexec:/usr/bin:/bin", "HOME": str(folder), "CFLAGS": "-O0"}


def check_works(prefix, library):
    """The tool of this prefix says its version, finds its library, and runs NumPy's calls on the test GPU."""
    env = {"PATH": f"{prefix}/bin:/usr/bin:/bin"}
    said = run("accel", "--version", env=env)
    assert said.returncode == 0, said.stdout
    assert VERSION in said.stdout
    demo = run("accel", "run", "-v", "--", DEBIAN_PYTHON, ROOT / "tests/packages/demo.py",
               env={**env, "ACCEL_CUDA_DIR": str(BUILD / "testgpu"), "ACCEL_POLICY": "gpu"})
    assert demo.returncode == 0, demo.stdout[-800:]
    assert "ran=gpu0" in demo.stdout
    assert by_platform(run("accel", "run", "printenv", "LD_PRELOAD",
                           env=env).stdout) == os.path.realpath(prefix / library)
    assert (prefix / "share/man/man1/accel.1").exists()


# ---- EasyBuild ----


@pytest.fixture(scope="module")
def easybuild(folder, tarball, plain):
    """Where EasyBuild installs by its recipe, and finds all that the recipe promises."""
    done = run("eb", f"--prefix={folder}/eb", f"--sourcepath={folder}", "--modules-tool=Lmod", "--parallel=2",
               "--allow-use-as-root-and-accept-consequences", EASYBUILD, cwd=folder, env=plain)
    assert done.returncode == 0, done.stdout[-1500:]
    assert "Build succeeded for 1 out of 1" in done.stdout
    return folder / "eb"


def test_easybuild_it_runs_from_where_that_has_installed_it(easybuild):
    check_works(easybuild / f"software/libaccel/{VERSION}", "lib/libaccel.so")


def test_and_its_module_has_the_tool(easybuild, folder):
    script = f". /usr/share/lmod/lmod/init/bash; module use {easybuild}/modules/all; module load libaccel/{VERSION} " \
             "&& command -v accel"
    done = run("bash", "-c", script, env={"PATH": "/usr/bin:/bin", "HOME": str(folder)})
    assert done.stdout == f"{easybuild}/software/libaccel/{VERSION}/bin/accel\n"


# ---- conda ----


@pytest.fixture(scope="module")
def recipe():
    """What Jinja and YAML read."""
    done = run(TOOLS / "python", "-c", READ_CONDA, PACKAGING / "conda/meta.yaml")
    assert done.returncode == 0, done.stdout[-500:]
    return json.loads(done.stdout)


def test_conda_s_takes_and_unpacks_the_tarball_of_make_dist(recipe, tarball):
    assert recipe["package"] == {"name": "libaccel", "version": VERSION}
    assert os.path.normpath(PACKAGING / "conda" / recipe["source"]["url"]) == str(ROOT / tarball.name)
    assert "path" not in recipe["source"]


@pytest.fixture(scope="module")
def conda(folder, recipe, source, plain):
    """Where its commands install."""
    prefix = folder / "conda"
    done = run("bash", "-euc", "\n".join(recipe["build"]["script"]), cwd=source,
               env={**plain, "CC": "gcc", "CPU_COUNT": "2", "PREFIX": str(prefix)})
    assert done.returncode == 0, done.stdout[-1500:]
    return prefix


def test_conda_s_tests_pass(conda, recipe):
    done = run("bash", "-euc", "\n".join(recipe["test"]["commands"]),
               env={"PATH": f"{conda}/bin:/usr/bin:/bin", "PREFIX": str(conda)})
    assert done.returncode == 0, done.stdout[-500:]


def test_conda_it_runs_from_where_that_has_installed_it(conda):
    check_works(conda, "lib/libaccel/libaccel.so")


# ---- Spack ----

Spack = namedtuple("Spack", "prefix said")


@pytest.fixture(scope="module")
def spack(folder, source, plain):
    """Its recipe loads, builds and installs, in what stands in for Spack; said: what it asks for."""
    prefix = folder / "spack"
    done = run(DEBIAN_PYTHON, "-B", ROOT / "tests/packages/stand_in_for_spack.py", PACKAGING / "spack/package.py",
               source, prefix, cwd=folder,
               stderr=subprocess.PIPE, env=plain)
    assert done.returncode == 0, done.stderr[-1500:]
    return Spack(prefix, json.loads(done.stdout))


def test_spack_s_is_of_this_version_and_takes_the_tarball_from_the_folder(spack, tarball):
    assert spack.said["versions"] == [VERSION]
    assert spack.said["tarball"] == f"file://{tarball}"


@pytest.mark.parametrize("name", ["xxhash", "json-c"])
def test_the_compiler_finds_the_headers_that_it_needs(spack, name):
    """Those of linked packages."""
    assert "link" in spack.said["depends"][name]


def test_this_machine_is_one_that_it_may_be_built_for(spack):
    assert spack.said["requires"]
    assert not [requirement for *requirement, met in spack.said["requires"] if not met]


def test_spack_it_runs_from_where_that_has_installed_it(spack):
    check_works(spack.prefix, "lib/libaccel.so")


def test_the_settings_that_recipes_give_are_make_s():
    recipes = (EASYBUILD, *PACKAGING.glob("*/*.y*ml"), PACKAGING / "spack/package.py",
               PACKAGING / "container/Containerfile",
               PACKAGING / "debian/rules", PACKAGING / "rpm/libaccel.spec")
    settings = r"\b(prefix|libdir|PREFIX|LIBDIR|NVCC|JSON_C_LIBS|BUILD)="
    used = {name for path in recipes for name in re.findall(settings, path.read_text())}
    text = "".join((ROOT / name).read_text() for name in ("Makefile", "tool/tool.mk"))
    assert len(used) > 4
    assert not [name for name in used if not re.search(rf"(?m)^{name}\s*\?=", text)]
