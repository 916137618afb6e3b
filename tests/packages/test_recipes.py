#!/usr/bin/python3 -B
"""The recipes of packaging/ other than those for Debian and pip: make rpm builds a package that rpm installs; Lmod loads the module file; the recipes
for EasyBuild, conda, Spack and containers are read, and name this version and the files that there are. Nobody builds those four here."""

import ast
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from lib.programs import BUILD, ROOT
from lib.tap import Tap

VERSION = (ROOT / "VERSION").read_text().strip()
PACKAGING = ROOT / "packaging"
TOOLS = BUILD / "packages-venv/bin"
tap = Tap()


def run(*words, **options):
    return subprocess.run([*map(str, words)], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)


folder = Path(tempfile.mkdtemp(dir=BUILD, prefix="recipes-"))
try:
    # ---- RPM ----

    # Without the kernels of gpu/own/, which take minutes. Debian's rpm knows of no installed packages.
    done = run("make", f"DISTDIR={folder}", "rpm", cwd=ROOT, env={**os.environ, "NVCC": "", "RPM_OPTIONS": "--nodeps"})
    built = list(folder.glob(f"libaccel-{VERSION}-1*.x86_64.rpm"))
    if tap.ok(done.returncode == 0 and len(built) == 1, "make rpm", done.stdout[-1500:]):
        root = folder / "root"
        run("rpm", "--root", root, "--initdb")
        done = run("rpm", "--root", root, "--nodeps", "--install", built[0])
        files = {str(path.relative_to(root)) for path in (root / "usr").rglob("*") if path.is_file()}
        wanted = {"usr/bin/accel", "usr/share/zsh/site-functions/_accel", "usr/share/bash-completion/completions/accel", "usr/share/fish/vendor_completions.d/accel.fish"}
        pages = {name.rsplit("/", 1)[1].removesuffix(".gz") for name in files if "/man/" in name}
        library = [name for name in files if re.fullmatch(r"usr/lib(64)?(/x86_64-linux-gnu)?/libaccel/libaccel\.so", name)]
        tap.ok(done.returncode == 0 and wanted <= files and len(library) == 1 and pages == {"accel.1", "accel.conf.5", "libaccel.7"}, "rpm installs it: library, tool, manual, completion",
               done.stdout[-500:], *sorted(files))
        done = run(root / "usr/bin/accel", "run", "printenv", "LD_PRELOAD")
        tap.ok(library and os.path.realpath(done.stdout.strip()) == str(root / library[0]), "its tool finds its library", done.stdout)
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
    done = run("bash", "-c", script, env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "ACCEL_ROOT": str(root)})
    lines = done.stdout.splitlines()
    tap.ok(lines[:1] == [f"{root}/bin/accel"] and lines[1].startswith(f"{root}/share/man") and f"accel {VERSION}" in lines[2] and lines.count(f"{root}/bin/accel") == 1 and "preload=" in lines
           and f"libaccel/{VERSION}" in lines, "Lmod: the module puts the tool and its manual on the paths, preloads nothing, and goes again", done.stdout)

    # ---- Recipes that are read alone ----

    eb = PACKAGING / f"easybuild/libaccel-{VERSION}.eb"
    done = run(TOOLS / "python", "-c", """
import sys
from easybuild.framework.easyconfig.default import DEFAULT_CONFIG
from easybuild.framework.easyconfig.parser import EasyConfigParser
from easybuild.tools.options import set_up_configuration
set_up_configuration(args=["--allow-use-as-root-and-accept-consequences"], silent=True)
config = EasyConfigParser(sys.argv[1]).get_config_dict()
print("unknown:", [key for key in config if key not in DEFAULT_CONFIG and not key.startswith("local_")])
print("lacking:", [key for key in ("name", "version", "homepage", "description", "toolchain", "easyblock") if key not in config])
print(config["name"], config["version"])
""", eb, cwd=folder, env={"PATH": "/usr/bin:/bin", "HOME": str(folder)})
    tap.ok(done.returncode == 0 and done.stdout.endswith(f"unknown: []\nlacking: []\nlibaccel {VERSION}\n"), "EasyBuild's framework reads its recipe, and knows all that it sets", done.stdout[-800:])

    done = run(TOOLS / "python", "-c", """
import sys, jinja2, yaml
text = open(sys.argv[1]).read()
recipe = yaml.safe_load(jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(text).render(compiler=lambda language: language + "-compiler"))
print(sorted(recipe), recipe["package"], recipe["source"]["path"])
""", PACKAGING / "conda/meta.yaml")
    tap.ok(done.returncode == 0 and f"'version': '{VERSION}'" in done.stdout and f"libaccel-{VERSION}.tar.gz" in done.stdout, "conda's recipe is what Jinja and YAML read", done.stdout[-500:])

    tree = ast.parse((PACKAGING / "spack/package.py").read_text())
    package = next(node for node in tree.body if isinstance(node, ast.ClassDef))
    calls = [ast.unparse(node.value) for node in package.body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
    tap.ok(package.name == "Libaccel" and f"version('{VERSION}')" in calls and {node.name for node in package.body if isinstance(node, ast.FunctionDef)} >= {"build", "install"},
           "Spack's recipe is Python, of this version", *calls)

    steps = re.findall(r"(?m)^([A-Z]+) (.*)", (PACKAGING / "container/Containerfile").read_text())
    known = {"FROM", "RUN", "COPY", "ENV", "ENTRYPOINT"}
    tap.ok({word for word, _ in steps} == known and steps[0][0] == "FROM", "the Containerfile has instructions that there are", *steps)
    used = {name for path in (eb, *PACKAGING.glob("*/*.y*ml"), PACKAGING / "spack/package.py", PACKAGING / "container/Containerfile", PACKAGING / "debian/rules", PACKAGING / "rpm/libaccel.spec")
            for name in re.findall(r"\b(prefix|libdir|PREFIX|LIBDIR|NVCC|JSON_C_LIBS|BUILD)=", path.read_text())}
    text = "".join((ROOT / name).read_text() for name in ("Makefile", "tool/tool.mk"))
    tap.ok(len(used) > 4 and not [name for name in used if not re.search(rf"(?m)^{name}\s*\?=", text)], "the settings that recipes give are make's", *used)
finally:
    shutil.rmtree(folder, ignore_errors=True)
tap.done()
