#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Every command in README.md, CONTRIBUTING.md, docs/ and the manual pages runs, as it stands there, in a folder with
what a user has: the source tree's files, the build, and programs of the names that documents use (tests/docs/programs).
A command that is marked as run by another test is there, word by word. Commands that nobody runs have a reason.
Commands and options of the tool, targets of make and scripts exist in any case, also in the text. documents.py has the
marks."""

import functools
import re
import subprocess

import pytest

from docs.documents import blocks
from lib.programs import BUILD, DEBIAN_PYTHON, LONG, ROOT, clean_env

PROGRAMS = ROOT / "tests/docs/programs"
PAGES = [page for page in (*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md")),
                           *sorted(BUILD.glob("share/man/man*/*")))
         if page.name != "CHANGELOG.md"]
ASSIGNMENT = r"(?:\w+=(?:'[^']*'|\"[^\"]*\"|\S*) +)*"
# What dynamic linkers and libaccel say of a wrong path or setting; the command goes on, and ends
# with 0.
WARNED = re.compile(r"^(?:ERROR: ld\.so: |accel: .* is (?:no setting|not understood)).*", re.M)


# ---- What exists: without running anything ----


def said_by(*command):
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


def options_of(command):
    text = said_by(BUILD / "accel", command, "--help")
    return {*re.findall(r"(?m)^  (?:-\S, |    )(--[a-z-]+)", text), *re.findall(r"(?m)^  (-\S),", text)}


@functools.cache
def options():
    """Those of each command."""
    return {name: options_of(name) for name in re.findall(r"(?m)^  ([a-z]+)  +\S", said_by(BUILD / "accel", "--help"))}


@functools.cache
def settings():
    return set(re.findall(r"(?m)^(ACCEL\w*) ", said_by(BUILD / "accel", "config")))


@functools.cache
def targets():
    return set(re.findall(r"\bmake ([a-z][a-z0-9-]+)", said_by("make", "-s", "help"))) | {"all", "help",
                                                                                          "test-programs", "testgpu"}


def unknown_in(line):
    """What a line names that there is not: a command of the tool or an option of one, a target of make, a script."""
    line = line.split(" #")[0]
    tool = re.match(rf"(?:\$ )?{ASSIGNMENT}(?:\S*/)?accel +([a-z]+)(?![\w=])(.*)", line)
    if tool and tool[1] not in options():
        return f"accel {tool[1]}"
    if tool:
        own = re.split(r" -- | \| ", tool[2] + " ")[0]
        own = re.match(r"(?:\s+(?:-\S+|\S+))*?(?=\s+(?!-)\S+\s+-|\s*$)", own)[0] if tool[1] == "run" else own
        used = re.findall(r"(?<=\s)--[a-z-]+", own)
        return ", ".join(f"accel {tool[1]} {name}" for name in used
                         if name not in options()[tool[1]] | {"--help", "--usage", "--version"})
    made = re.match(rf"{ASSIGNMENT}make((?: +[\w./-]+(?:=\S*)?)*)", line)
    if made:
        return ", ".join(f"make {word}" for word in made[1].split() if word.islower() and "=" not in word
                         and not word.startswith("-") and word not in targets())
    script = re.match(r"(scripts/[\w./-]+)", line)
    return "" if not script or (ROOT / script[1]).exists() else script[1]


# ---- Marks ----


def words_of(text):
    """A command's words in a test, however that holds them: in a string, in a list, over several lines."""
    return " " + re.sub(r"""[\s"',()\[\]\\`]+""", " ", text).strip() + " "


def missing_in(file, command):
    """Why the file does not run the command; empty if it does."""
    path = ROOT / file
    if not path.is_file():
        return f"there is no {file}"
    text = path.read_text()
    if file == "tests/ci/parts":
        text = re.sub(r"(?m)^(.*?\|.*?\|) *(?!tests/)", r"\1 make ", text)
    return "" if words_of(re.sub(r"\s#\s.*", "", command)) in words_of(text) else f"{file} does not have it"


def faults_of_marks(block, commands):
    """What is wrong with a block's marks; and the commands that no mark exempts."""
    faults, to_run = [], []
    for mark in block.marks:
        for beginning in mark.beginnings:
            if not any(re.match(re.escape(beginning) + r"(?!\S)", command) for command in commands):
                faults.append(f"the mark `{mark.kind} ({beginning})' is about no command of the block")
        if mark.kind != "no command" and not commands:
            faults.append(f"the mark `{mark.kind}' is in front of a block without commands")
    for command in commands:
        mark = next((mark for mark in block.marks if mark.concerns(command)), None)
        if mark and mark.kind == "run by" and missing_in(mark.what, command):
            faults.append(f"{command}: marked as run by {mark.what}, but {missing_in(mark.what, command)}")
        if not mark or mark.kind == "run with" and LONG:
            to_run.append(command)
    return faults, to_run


# ---- Running ----


def make_folder(folder):
    """What a user has: links to the source tree's files and to the build, and programs. accel and python3 are on the
    PATH. There is no Makefile: each command of make has a mark."""
    for name in ("README.md", "scripts", "docs", "tests"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "build").symlink_to(BUILD)
    for program in PROGRAMS.iterdir():
        (folder / program.name).symlink_to(program)
    (folder / "bin").mkdir()
    (folder / "home").mkdir()
    (folder / "bin/accel").symlink_to(BUILD / "accel")
    (folder / "bin/python3").symlink_to(DEBIAN_PYTHON)


def run(commands, folder):
    """Runs a block's commands in one shell, which ends at the first that fails. Returns what went wrong, or an empty
    string."""
    script = 'set -eo pipefail\ntrap \'echo "failed with $?: $BASH_COMMAND" >&2\' ERR\n' + "\n".join(commands) + "\n"
    env = clean_env(str(folder / "home")) | {"ACCEL_CUDA_DIR": str(BUILD / "testgpu")}
    env["PATH"] = f"{folder / 'bin'}:{env['PATH']}"
    try:
        done = subprocess.run(["bash", "--norc", "-c", script], cwd=folder, env=env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", timeout=120)
    except subprocess.TimeoutExpired:
        return "it took more than 120 s"
    warned = WARNED.search(done.stdout)
    if done.returncode == 0 and not warned:
        return ""
    return f"exit status {done.returncode}\n{warned[0] if warned else done.stdout[-1500:]}"


def faults_of(text, folder):
    """What is wrong with a document's commands, as (line, fault). Its blocks run in their order in one folder."""
    make_folder(folder)
    found, wrong = blocks(text)
    faults = [(line, f"{mark}: no mark that there is (tests/docs/documents.py)") for line, mark in wrong]
    for number, line in enumerate(text.splitlines(), 1):
        faults += [(number, f"there is no {unknown_in(code)}") for code in re.findall(r"`([^`]+)`", line)
                   if unknown_in(code)]
        names = re.findall(r"\bACCEL_[A-Z0-9_]*[A-Z0-9]\b", line)
        faults += [(number, f"there is no {name}") for name in names if name not in settings()]
    for block in found:
        commands = block.commands()
        for line in "\n".join(block.lines).replace("\\\n", " ").splitlines():
            faults += [(block.line, f"there is no {unknown_in(line.strip())}")] if unknown_in(line.strip()) else []
        of_marks, to_run = faults_of_marks(block, commands)
        failed = run(to_run, folder) if to_run else ""
        faults += [(block.line, fault) for fault in of_marks]
        faults += [(block.line,
                    f"{failed}\n(mend it, or put a mark in front: tests/docs/documents.py)")] if failed else []
    return faults


# ---- The test sees what is wrong ----


@pytest.mark.parametrize("text, fault", [
    pytest.param("Text.\n\n    accel --version\n\n- a list\n\n      touch made\n      ls made   # it is there\n", None,
                 id="a command that runs"),
    pytest.param("\n    touch made\n\nText.\n\n```sh\ncat made <<END\n$ no\nEND\n```\n", None,
                 id="blocks that go on in one folder"),
    pytest.param("\n    true\n    false   # no\n", "failed with 1: false", id="a command that fails"),
    pytest.param("\n    $ accel run -- no_such_program\n    output\n", "exit status 127",
                 id="a program that is not there"),
    pytest.param("\n    LD_PRELOAD=build/libaccle.so /bin/true\n", "cannot be preloaded",
                 id="a library that is not there"),
    pytest.param("\n    ACCEL_LGO=1 accel run -- python3 my_program.py\n", "there is no ACCEL_LGO",
                 id="a setting that is not there"),
    pytest.param("\n    ACCEL_LOG=4 accel run -- python3 my_program.py\n", "ACCEL_LOG=4 is not understood",
                 id="a setting's value that is not there"),
    pytest.param(".TH A 1\n.SH EXAMPLES\n.nf\naccel \\-\\-version\naccel cofnig \\-\\-help\n.fi\n",
                 "there is no accel cofnig", id="a command of a manual page"),
    pytest.param("Say `accel diff --ignroe x`.\n", "there is no accel diff --ignroe", id="an option in the text"),
    pytest.param("<!-- not run: it is wrong -->\n\n    accel calibrate --secnods=1 -- x --y\n",
                 "there is no accel calibrate --secnods", id="an option of a command that is not run"),
    pytest.param("<!-- not run: it is wrong -->\n\n    X=1 make chekc CHECK=x\n", "there is no make chekc",
                 id="a target of make"),
    pytest.param("<!-- not run: it is wrong -->\n\n    scripts/no-such\n", "there is no scripts/no-such",
                 id="a script"),
    pytest.param("<!-- not run: it fails -->\n\n    false\n", None, id="a block that is marked"),
    pytest.param("<!-- not run (false): it fails -->\n\n    true\n    false\n", None,
                 id="a part of a block that is marked"),
    pytest.param("<!-- no command: a drawing -->\n\n    | --\n", None, id="a drawing"),
    pytest.param("<!-- not run -->\n\n    false\n", "no mark that there is", id="a mark without its reason"),
    pytest.param("<!-- not run: it fails -->\n\nText.\n", "not in front of a block", id="a mark in front of no block"),
    pytest.param("<!-- not run (false, fals): it fails -->\n\n    false\n", "`not run (fals)' is about no command",
                 id="a mark about no command"),
    pytest.param("<!-- run by .ci/run -->\n\n    make test\n", None, id="what another file runs"),
    pytest.param("<!-- run by tests/ci/parts (make fuzz) -->\n\n    make fuzz FUZZ_SECONDS=60  # a minute\n", None,
                 id="what a list of CI runs"),
    pytest.param("<!-- run by .ci/run -->\n\n    make test-al\n", ".ci/run does not have it",
                 id="what another file does not run"),
    pytest.param("<!-- run by .ci/nur -->\n\n    make test\n", "there is no .ci/nur",
                 id="what a file that is not there runs"),
    pytest.param("<!-- run with TEST_LONG=1 -->\n\n    false\n", "failed with 1" if LONG else None,
                 id="what the long form alone runs")])
def test_what_is_seen(tmp_path, text, fault):
    faults = [told for _, told in faults_of(text, tmp_path)]
    if fault:
        assert [told for told in faults if fault in told]
    else:
        assert not faults


# ---- The documents ----


@pytest.mark.parametrize("page", PAGES,
                         ids=lambda page: str(page.relative_to(BUILD if BUILD in page.parents else ROOT)))
def test_document(tmp_path, page):
    assert faults_of(page.read_text(), tmp_path) == []


def test_there_are_documents_with_commands_that_run_here():
    assert len(PAGES) > 14
    blocks_of_all = [block for page in PAGES for block in blocks(page.read_text())[0]]
    assert sum(len(faults_of_marks(block, block.commands())[1]) for block in blocks_of_all) > 5
