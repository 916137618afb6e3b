#!/usr/bin/python3 -B
"""The recipes of packaging/ other than those for Debian, pip and containers: make rpm builds a package that rpm installs; Lmod loads the module file;
EasyBuild builds and installs by its recipe; the commands of those for conda and Spack, which cannot be had here, build and install."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from lib.programs import BUILD, DEBIAN_PYTHON, ROOT
from lib.tap import Tap

VERSION = (ROOT / "VERSION").read_text().strip()
PACKAGING = ROOT / "packaging"
TOOLS = BUILD / "packages-venv/bin"
tap = Tap()


def run(*words, **options):
    return subprocess.run([*map(str, words)], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)


def by_platform(preload):
    """The path that the dynamic linker makes of LD_PRELOAD."""
    return preload.strip().replace("$PLATFORM", "x86_64")


folder = Path(tempfile.mkdtemp(dir=BUILD, prefix="recipes-"))
try:
    # ---- RPM ----

    # Without the kernels of gpu/own/, which take minutes. Debian's rpm knows of no installed
    # packages.
    done = run("make", f"DISTDIR={folder}", "rpm", cwd=ROOT, env={**os.environ, "NVCC": "", "RPM_OPTIONS": "--nodeps"})
    built = list(folder.glob(f"libaccel-{VERSION}-1*.x86_64.rpm"))
    if tap.ok(done.returncode == 0 and len(built) == 1, "make rpm", done.stdout[-1500:]):
        root = folder / "root"
        run("rpm", "--root", root, "--initdb")
        done = run("rpm", "--root", root, "--nodeps", "--install", built[0])
        files = {str(path.relative_to(root)) for path in (root / "usr").rglob("*") if path.is_file()}
        wanted = {"usr/bin/accel", "usr/share/zsh/site-functions/_accel", "usr/share/bash-completion/completions/accel", "usr/share/fish/vendor_completions.d/accel.fish"}
        pages = {name.rsplit("/", 1)[1].removesuffix(".gz") for name in files if "/man/" in name}
        library = [name for name in files if "accel-preload" not in name and re.fullmatch(r"usr/lib(64)?(/x86_64-linux-gnu)?/libaccel/libaccel\.so", name)]
        tap.ok(done.returncode == 0 and wanted <= files and len(library) == 1 and pages == {"accel.1", "accel.conf.5", "libaccel.7"}, "rpm installs it: library, tool, manual, completion",
               done.stdout[-500:], *sorted(files))
        done = run(root / "usr/bin/accel", "run", "printenv", "LD_PRELOAD")
        tap.ok(library and os.path.realpath(by_platform(done.stdout)) == str(root / library[0]), "its tool finds its library", done.stdout)
        provided = run("rpm", "-qp", "--provides", built[0]).stdout
        tap.ok("libaccel.so" not in provided, "no program can be linked with it", provided)
        done = run("rpmlint", "--config", PACKAGING / "rpm/rpmlint.toml", built[0], PACKAGING / "rpm/libaccel.spec")
        tap.ok(re.search(r"\b0 errors", done.stdout), "rpmlint finds no error", done.stdout[-1500:])

    # ---- Lmod ----

    modules = folder / "modules/libaccel"
    modules.mkdir(parents=True)
    shutil.copy(PACKAGING / "modules/libaccel.lua", modules / f"{VERSION}.lua")
    root = folder / "installed"
    run("make", f"BUILD={BUILD}", f"OWN_ARCHITECTURES={os.environ.get('OWN_ARCHITECTURES', '70 75 80 90 100 120')}", "-o", "all", f"PREFIX={root}", "install", cwd=ROOT)
    script = f'''. /usr/share/lmod/lmod/init/bash; module use {folder}/modules; module load libaccel/{VERSION} && command -v accel && echo "$MANPATH" && accel --version
        echo "preload=$LD_PRELOAD"; module unload libaccel; command -v accel; module --terse avail 2>&1; module whatis libaccel 2>&1'''
    done = run("bash", "-c", script, env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "LIBACCEL_ROOT": str(root)})
    lines = done.stdout.splitlines()
    tap.ok(lines[:1] == [f"{root}/bin/accel"] and lines[1].startswith(f"{root}/share/man") and f"accel {VERSION}" in lines[2] and lines.count(f"{root}/bin/accel") == 1 and "preload=" in lines
           and f"libaccel/{VERSION}" in lines, "Lmod: the module puts the tool and its manual on the paths, preloads nothing, and goes again", done.stdout)

    # ---- Recipes that build from the tarball: without optimisation, which takes half of the time
    # ----

    tarball = folder / f"libaccel-{VERSION}.tar.gz"
    done = run("make", f"DISTDIR={folder}", "dist", cwd=ROOT)
    tap.ok(done.returncode == 0 and tarball.exists(), "make dist", done.stdout[-500:])
    PLAIN = {"PATH": f"{TOOLS}:/usr/share/lmod/lmod/libexec:/usr/bin:/bin", "HOME": str(folder), "CFLAGS": "-O0"}

    def works(prefix, library, name):
        """The tool of this prefix says its version, finds its library, and runs NumPy's calls on the test GPU."""
        env = {"PATH": f"{prefix}/bin:/usr/bin:/bin"}
        said = run("accel", "--version", env=env)
        demo = run("accel", "run", "-v", "--", DEBIAN_PYTHON, ROOT / "tests/packages/demo.py", env={**env, "ACCEL_CUDA_DIR": str(BUILD / "testgpu"), "ACCEL_POLICY": "gpu"})
        found = run("accel", "run", "printenv", "LD_PRELOAD", env=env).stdout
        tap.ok(said.returncode == 0 and VERSION in said.stdout and demo.returncode == 0 and "ran=gpu0" in demo.stdout and os.path.realpath(by_platform(found)) == os.path.realpath(prefix / library)
               and (prefix / "share/man/man1/accel.1").exists(), f"{name}: it runs from where that has installed it", said.stdout, found, demo.stdout[-800:])

    eb = PACKAGING / f"easybuild/libaccel-{VERSION}.eb"
    done = run("eb", f"--prefix={folder}/eb", f"--sourcepath={folder}", "--modules-tool=Lmod", "--parallel=2", "--allow-use-as-root-and-accept-consequences", eb, cwd=folder, env=PLAIN)
    tap.ok(done.returncode == 0 and "Build succeeded for 1 out of 1" in done.stdout, "EasyBuild builds and installs by its recipe, and finds all that the recipe promises", done.stdout[-1500:])
    works(folder / f"eb/software/libaccel/{VERSION}", "lib/libaccel.so", "EasyBuild")
    done = run("bash", "-c", f". /usr/share/lmod/lmod/init/bash; module use {folder}/eb/modules/all; module load libaccel/{VERSION} && command -v accel", env={"PATH": "/usr/bin:/bin", "HOME": str(folder)})
    tap.ok(done.stdout == f"{folder}/eb/software/libaccel/{VERSION}/bin/accel\n", "and its module has the tool", done.stdout)

    source = folder / f"libaccel-{VERSION}"
    run("tar", "-xzf", tarball, "-C", folder)
    done = run(TOOLS / "python", "-c", """
import json, sys, jinja2, yaml
text = open(sys.argv[1]).read()
recipe = yaml.safe_load(jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(text).render(compiler=lambda language: language + "-compiler"))
print(json.dumps(recipe))
""", PACKAGING / "conda/meta.yaml")
    tap.ok(done.returncode == 0, "conda's recipe is what Jinja and YAML read", done.stdout[-500:])
    conda = json.loads(done.stdout)
    at = os.path.normpath(PACKAGING / "conda" / conda["source"].get("url", "none"))
    tap.ok(conda["package"] == {"name": "libaccel", "version": VERSION} and at == str(ROOT / tarball.name) and "path" not in conda["source"], "it takes, and unpacks, the tarball of make dist", conda)
    prefix = folder / "conda"
    done = run("bash", "-euc", "\n".join(conda["build"]["script"]), cwd=source, env={**PLAIN, "CC": "gcc", "CPU_COUNT": "2", "PREFIX": str(prefix)})
    tap.ok(done.returncode == 0, "its commands build and install", done.stdout[-1500:])
    done = run("bash", "-euc", "\n".join(conda["test"]["commands"]), env={"PATH": f"{prefix}/bin:/usr/bin:/bin", "PREFIX": str(prefix)})
    tap.ok(done.returncode == 0, "and its tests pass", done.stdout[-500:])
    works(prefix, "lib/libaccel/libaccel.so", "conda")

    prefix = folder / "spack"
    done = subprocess.run([DEBIAN_PYTHON, "-B", ROOT / "tests/packages/stand_in_for_spack.py", PACKAGING / "spack/package.py", source, prefix], cwd=folder, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=PLAIN)
    if tap.ok(done.returncode == 0, "Spack's recipe loads, builds and installs, in what stands in for Spack", done.stderr[-1500:]):
        said = json.loads(done.stdout)
        tap.ok(said["versions"] == [VERSION] and said["tarball"] == f"file://{tarball}", "it is of this version, and takes the tarball from the folder", said)
        tap.ok(all("link" in said["depends"].get(name, ()) for name in ("xxhash", "json-c")), "the compiler finds the headers that it needs: those of linked packages", said["depends"])
        tap.ok(said["requires"] and all(met for *_, met in said["requires"]), "this machine is one that it may be built for", said["requires"])
        works(prefix, "lib/libaccel.so", "Spack")

    used = {name for path in (eb, *PACKAGING.glob("*/*.y*ml"), PACKAGING / "spack/package.py", PACKAGING / "container/Containerfile", PACKAGING / "debian/rules", PACKAGING / "rpm/libaccel.spec")
            for name in re.findall(r"\b(prefix|libdir|PREFIX|LIBDIR|NVCC|JSON_C_LIBS|BUILD)=", path.read_text())}
    text = "".join((ROOT / name).read_text() for name in ("Makefile", "tool/tool.mk"))
    tap.ok(len(used) > 4 and not [name for name in used if not re.search(rf"(?m)^{name}\s*\?=", text)], "the settings that recipes give are make's", *used)
finally:
    shutil.rmtree(folder, ignore_errors=True)
tap.done()
