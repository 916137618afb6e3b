"""The examples of the gallery: of what libraries, where they are, and how each is run."""

import collections
import fnmatch
import functools
import re
import shutil
import subprocess
from pathlib import Path

from lib.programs import BUILD

HERE = Path(__file__).resolve().parent
GALLERY = BUILD / "gallery"
SOURCES = GALLERY / "sources"
PYTHON = str(GALLERY / "venv/bin/python")
OCTAVE = Path("/usr/share/octave")
R_PACKAGES = ("Matrix", "MASS", "mgcv", "nlme", "survival", "cluster", "class", "boot")

# name: the collection's name, a slash, and where the example is. source, shown_by: its text and
# what runs it, from which a stored result is known to be of this example.
Example = collections.namedtuple("Example", "name argv source shown_by")
SHOW_PYTHON = [HERE / name for name in ("show.py", "cells.py", "figures.py")]
SHOW_R, SHOW_OCTAVE = HERE / "show.R", HERE / "show_demos.m"


def version(package):
    """The folder of a source distribution, whose version requirements.txt has."""
    return next(iter(sorted(SOURCES.glob(f"{package}-*"))), SOURCES / package)


def python(collection, root, paths):
    return [Example(f"{collection}/{path.relative_to(root)}", [PYTHON, "-B", SHOW_PYTHON[0], path], path, SHOW_PYTHON) for path in sorted(paths)]


def scikit_learn():
    root = version("scikit_learn") / "examples"
    return python("scikit-learn", root, root.rglob("*.py"))


def scipy():
    """What the tutorial plots, and its notebooks, which are Markdown."""
    root = version("scipy") / "doc/source/tutorial"
    notebooks = [path for path in root.rglob("*.md") if "{code-cell}" in path.read_text()]
    return python("scipy", root, [*root.glob("*examples/**/*.py"), *root.glob("*/plots/*.py"), *notebooks])


def statsmodels():
    root = version("statsmodels") / "examples"
    return python("statsmodels", root, (path for path in root.rglob("*.py") if path.parent != root))


def r():
    """A topic of a package's manual each: what tools::Rd2ex() makes of it, as R CMD check runs it."""
    folder = GALLERY / "R"
    subprocess.run(["Rscript", "--vanilla", HERE / "topics.R", folder, *R_PACKAGES], check=True, stdout=subprocess.DEVNULL)
    return [Example(f"R/{path.parent.name}/{path.stem}", ["R", "--vanilla", "--quiet", "--no-echo", "-f", SHOW_R, "--args", path], path, [SHOW_R])
            for path in sorted(folder.glob("*/*.R"))]


def demos(text):
    """The blocks %!demo of a function's file."""
    found, inside = [], False
    for line in text.splitlines():
        if re.match(r"%!\S", line) or not line.startswith("%!"):
            inside = line.startswith("%!demo")
            if inside:
                found.append([])
        elif inside:
            found[-1].append(line[2:])
    return ["\n".join(lines) + "\n" for lines in found]


def write_demos(folder, blocks):
    """A file for each block. Where these are there they stay: another run of the gallery may be reading them."""
    texts = {f"{number:02}.m": block for number, block in enumerate(blocks, 1)}
    if {path.name: path.read_text() for path in folder.glob("*.m")} != texts:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name, text in texts.items():
            (folder / name).write_text(text)


def of_demos(name, folder):
    return Example(f"Octave/{name}", ["octave-cli", "--no-gui", "--norc", "-q", SHOW_OCTAVE, folder], folder, [SHOW_OCTAVE])


def octave():
    """All demos of a function each, of Octave itself and its packages."""
    folder, found = GALLERY / "Octave", []
    for path in sorted(OCTAVE.rglob("*.m")):
        blocks = demos(path.read_text(errors="replace"))
        if blocks:
            name = str(path.relative_to(OCTAVE).with_suffix("")).replace("/m/", "/", 1)
            place = folder / name
            write_demos(place, blocks)
            found.append(of_demos(name, place))
    return found


COLLECTIONS = {"scikit-learn": scikit_learn, "statsmodels": statsmodels, "R": r, "Octave": octave, "scipy": scipy}


@functools.cache
def all_of(collection):
    return COLLECTIONS[collection]()


def examples(pattern="*"):
    """Those whose names match, a pattern of the shell's, or begin with it."""
    first = re.match(r"[^/*?[]*", pattern)[0]
    lists = [name for name in COLLECTIONS if name.startswith(first) or first.startswith(name)]
    found = [example for name in lists for example in all_of(name)]
    return [e for e in found if fnmatch.fnmatchcase(e.name, pattern) or e.name.startswith(pattern)]
