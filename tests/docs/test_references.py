#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""What documents refer to is there: the headings that links lead to, the sources and folders that they name, and of
`file.c:function()` the function. Pages about internals are short enough to be read at once, those of folders to be read
beside the sources, whose files and functions they name."""

import re
from functools import cache

import pytest

from lib.programs import ROOT

MOST_WORDS = 1500
MOST_LINES = 100
SOURCES = "base|call|cpu_ref|dispatch|gpu|ops|report|scripts|shim|tests|tool"
PAGES = [*sorted(ROOT.glob("docs/*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
INTERNALS = [page for page in PAGES if page.name.startswith("internals")]
FOLDERS = sorted(page for top in SOURCES.split("|") for page in ROOT.glob(f"{top}/**/README.md"))


@cache
def sources():
    return "\n".join(path.read_text(errors="replace") for top in SOURCES.split("|")
                     for path in ROOT.glob(f"{top}/**/*") if path.suffix in (".c", ".h", ".S", ".def", ".cu", ".cuh"))


def lost_types(text):
    for code in re.findall(r"`([^`]+)`", text):
        for kind, tag in re.findall(r"\b(struct|enum) (\w+)", code):
            if f"{kind} {tag} {{" not in sources():
                yield f"{kind} {tag} is not there"


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
    yield from lost_types(text)


@pytest.mark.parametrize("text, faults", [
    pytest.param("# A `b`: c\n[x](#a-b-c) `base/text/text.c:text_start()` `gpu/` `tests/NAME/x.c`", [],
                 id="all that is there"),
    pytest.param("[x](limits.md#the-device)", [], id="a heading of another page"),
    pytest.param("# A\n[x](#b)", ["#b: there is no such heading"], id="a heading that is not there"),
    pytest.param("[x](limits.md#the-devil)", ["limits.md#the-devil: there is no such heading"],
                 id="a heading that another page does not have"),
    pytest.param("`base/text/text.c:text_begin()`", ["base/text/text.c:text_begin: it is not there"],
                 id="a function that is not there"),
    pytest.param("`base/test.c:text_start()`", ["base/test.c:text_start: it is not there"],
                 id="a source that is not there"),
    pytest.param("`gpu/hip/`", ["gpu/hip/ is not there"], id="a folder that is not there"),
    pytest.param("`struct accel_text` `struct gpu_hip`", ["struct gpu_hip is not there"], id="a type that is not there")])
def test_what_is_seen(text, faults):
    assert list(faults_of(ROOT / "docs/architecture.md", text)) == faults


def faults_of_folder(page, text):
    """Names of files start from the tree or the page's folder, or are those of a file below that."""
    for name in re.findall(r"`([\w/.-]+\.(?:[chS]|cuh?|def|inc|ld))`", text):
        if not (ROOT / name).exists() and not any(page.parent.rglob(name)):
            yield f"{name} is not there"
    for code in re.findall(r"`([^`]+)`", text):
        for function in re.findall(r"(\w+)\(", code):
            if not re.search(rf"\b{function}\b", sources()):
                yield f"{function}() is not there"
    yield from lost_types(text)


@pytest.mark.parametrize("text, faults", [
    pytest.param("`device/gpu.h` `gpu.h` `gpu/cuda/run.c` `gpu_run()` `smo*.cu`", [], id="all that is there"),
    pytest.param("`device/end.h` `end.h`", ["device/end.h is not there", "end.h is not there"], id="no such file"),
    pytest.param("`gpu_walk(work)`", ["gpu_walk() is not there"], id="no such function")])
def test_what_is_seen_in_a_folder(text, faults):
    assert list(faults_of_folder(ROOT / "gpu/README.md", text)) == faults


def name_of(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_page(page):
    assert list(faults_of(page, page.read_text())) == []


@pytest.mark.parametrize("page", INTERNALS, ids=name_of)
def test_a_page_about_internals_is_short(page):
    assert len(page.read_text().split()) <= MOST_WORDS


def test_there_are_pages_about_internals():
    assert len(INTERNALS) > 10


@pytest.mark.parametrize("page", FOLDERS, ids=name_of)
def test_page_of_a_folder(page):
    text = page.read_text()
    assert list(faults_of_folder(page, text)) == []
    assert len(text.splitlines()) <= MOST_LINES


def test_there_are_pages_of_folders():
    assert len(FOLDERS) > 15
