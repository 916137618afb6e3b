#!/usr/bin/python3 -B
"""What documents refer to is there: the headings that links lead to, the sources and folders that they name, and of `file.c:function()` the function.
Pages about internals are short enough to be read at once."""

import re

from lib.programs import ROOT
from lib.tap import Tap

MOST_WORDS = 1500
SOURCES = "base|cpu_ref|dispatch|gpu|ops|report|scripts|shim|tests|tool"
tap = Tap()


def anchor(heading):
    """As GitHub makes one of a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def faults_of(page, text):
    """page: the path that links in the text start from."""
    for target, to in re.findall(r"\]\(([^)#: ]*)#([^)\s]+)\)", text):
        path = page.parent / target if target else page
        there = text if path == page else path.read_text() if path.is_file() else ""
        if to not in map(anchor, re.findall(r"(?m)^#+ (.*)$", there)):
            yield f"{target}#{to}: there is no such heading"
    for file, function in re.findall(r"`([\w/.-]+\.[chS]):(\w+)(?:\(\))?`", text):
        path = ROOT / file
        if not path.is_file() or not re.search(rf"\b{function}\b", path.read_text()):
            yield f"{file}:{function}: it is not there"
    for name in re.findall(rf"`((?:{SOURCES})/[\w/.-]+)`", text):
        if not re.search("NAME|FOLDER", name) and not (ROOT / name).exists():
            yield f"{name} is not there"


PAGE = ROOT / "docs/architecture.md"
for what, text, fault in (
    ("all that is there", "# A `b`: c\n[x](#a-b-c) `base/text/text.c:text_start()` `gpu/` `tests/NAME/x.c`", None),
    ("a heading of another page", "[x](limits.md#the-device)", None),
    ("a heading that is not there", "# A\n[x](#b)", "#b: there is no such heading"),
    ("a heading that another page does not have", "[x](limits.md#the-devil)", "limits.md#the-devil: there is no such heading"),
    ("a function that is not there", "`base/text/text.c:text_begin()`", "base/text/text.c:text_begin: it is not there"),
    ("a source of a function that is not there", "`base/test.c:text_start()`", "base/test.c:text_start: it is not there"),
    ("a folder that is not there", "`gpu/hip/`", "gpu/hip/ is not there"),
):
    faults = list(faults_of(PAGE, text))
    tap.ok(faults == ([fault] if fault else []), f"{what}: {'seen' if fault else 'nothing to say'}", *faults)

pages = [*sorted(ROOT.glob("docs/*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
for page in pages:
    faults = list(faults_of(page, page.read_text()))
    tap.ok(not faults, f"{page.relative_to(ROOT)}", *faults)
internals = {page: len(page.read_text().split()) for page in pages if page.name.startswith("internals")}
for page, words in internals.items():
    tap.ok(words <= MOST_WORDS, f"{page.relative_to(ROOT)}: at most {MOST_WORDS} words", words)
tap.ok(len(internals) > 10, "there are pages about internals", len(internals))
tap.done()
