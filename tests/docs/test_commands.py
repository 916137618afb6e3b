#!/usr/bin/python3 -B
"""Every command in README.md, CONTRIBUTING.md, docs/ and the manual pages runs, as it stands there, in a folder with what a user has: the source tree's files,
the build, and programs of the names that documents use (tests/docs/programs). A command that is marked as run by another test is there, word by
word. Commands that nobody runs have a reason. Commands and options of the tool, targets of make and scripts exist in any case, also in the text. documents.py has the marks."""

import re
import subprocess
import tempfile
from pathlib import Path

from documents import blocks
from lib.programs import BUILD, DEBIAN_PYTHON, LONG, ROOT, clean_env
from lib.tap import Tap

PROGRAMS = ROOT / "tests/docs/programs"
ASSIGNMENT = r"(?:\w+=(?:'[^']*'|\"[^\"]*\"|\S*) +)*"
# What dynamic linkers and libaccel say of a wrong path or setting; the command goes on, and ends
# with 0.
WARNED = re.compile(r"^(?:ERROR: ld\.so: |accel: .* is (?:no setting|not understood)).*", re.M)
tap = Tap()


# ---- What exists: without running anything ----


def options_of(command):
    text = subprocess.run([BUILD / "accel", command, "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    return {*re.findall(r"(?m)^  (?:-\S, |    )(--[a-z-]+)", text), *re.findall(r"(?m)^  (-\S),", text)}


listed = subprocess.run([BUILD / "accel", "--help"], stdout=subprocess.PIPE, text=True).stdout
options = {name: options_of(name) for name in re.findall(r"(?m)^  ([a-z]+)  +\S", listed)}
settings = set(re.findall(r"(?m)^(ACCEL\w*) ", subprocess.run([BUILD / "accel", "config"], stdout=subprocess.PIPE, text=True).stdout))
help_text = subprocess.run(["make", "-s", "help"], cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout
targets = set(re.findall(r"\bmake ([a-z][a-z0-9-]+)", help_text)) | {"all", "help", "test-programs", "testgpu"}


def unknown_in(line):
    """What a line names that there is not: a command of the tool or an option of one, a target of make, a script."""
    line = line.split(" #")[0]
    tool = re.match(rf"(?:\$ )?{ASSIGNMENT}(?:\S*/)?accel +([a-z]+)(?![\w=])(.*)", line)
    if tool and tool[1] not in options:
        return f"accel {tool[1]}"
    if tool:
        own = re.split(r" -- | \| ", tool[2] + " ")[0]
        own = re.match(r"(?:\s+(?:-\S+|\S+))*?(?=\s+(?!-)\S+\s+-|\s*$)", own)[0] if tool[1] == "run" else own
        used = re.findall(r"(?<=\s)--[a-z-]+", own)
        return ", ".join(f"accel {tool[1]} {name}" for name in used if name not in options[tool[1]] | {"--help", "--usage", "--version"})
    made = re.match(rf"{ASSIGNMENT}make((?: +[\w./-]+(?:=\S*)?)*)", line)
    if made:
        return ", ".join(f"make {word}" for word in made[1].split() if word.islower() and "=" not in word and not word.startswith("-") and word not in targets)
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
    """What a user has: links to the source tree's files and to the build, and programs. accel and python3 are on the PATH. There is no Makefile:
    each command of make has a mark."""
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
    """Runs a block's commands in one shell, which ends at the first that fails. Returns what went wrong, or an empty string."""
    script = 'set -eo pipefail\ntrap \'echo "failed with $?: $BASH_COMMAND" >&2\' ERR\n' + "\n".join(commands) + "\n"
    env = clean_env(str(folder / "home")) | {"ACCEL_CUDA_DIR": str(BUILD / "testgpu")}
    env["PATH"] = f"{folder / 'bin'}:{env['PATH']}"
    try:
        done = subprocess.run(["bash", "--norc", "-c", script], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", timeout=120)
    except subprocess.TimeoutExpired:
        return "it took more than 120 s"
    warned = WARNED.search(done.stdout)
    return "" if done.returncode == 0 and not warned else f"exit status {done.returncode}\n{warned[0] if warned else done.stdout[-1500:]}"


def faults_of(text, folder):
    """What is wrong with a document's commands, as (line, fault). Its blocks run in their order in one folder."""
    found, wrong = blocks(text)
    faults = [(line, f"{mark}: no mark that there is (tests/docs/documents.py)") for line, mark in wrong]
    inline = [(number, code) for number, line in enumerate(text.splitlines(), 1) for code in re.findall(r"`([^`]+)`", line)]
    faults += [(number, f"there is no {unknown_in(code)}") for number, code in inline if unknown_in(code)]
    faults += [(number, f"there is no {name}") for number, line in enumerate(text.splitlines(), 1) for name in re.findall(r"\bACCEL_[A-Z0-9_]*[A-Z0-9]\b", line) if name not in settings]
    for block in found:
        commands = block.commands()
        faults += [(block.line, f"there is no {unknown_in(line.strip())}") for line in "\n".join(block.lines).replace("\\\n", " ").splitlines() if unknown_in(line.strip())]
        of_marks, to_run = faults_of_marks(block, commands)
        failed = run(to_run, folder) if to_run else ""
        faults += [(block.line, fault) for fault in of_marks]
        faults += [(block.line, f"{failed}\n(mend it, or put a mark in front: tests/docs/documents.py)")] if failed else []
        counts[0] += len(to_run)
        counts[1] += len(commands)
    return faults


def in_new_folder(text):
    with tempfile.TemporaryDirectory(prefix="accel-docs-") as folder:
        make_folder(Path(folder))
        return faults_of(text, Path(folder))


# ---- The test sees what is wrong ----

counts = [0, 0]
for what, text, fault in (
    ("a command that runs", "Text.\n\n    accel --version\n\n- a list\n\n      touch made\n      ls made   # it is there\n", None),
    ("blocks that go on in one folder", "\n    touch made\n\nText.\n\n```sh\ncat made <<END\n$ no\nEND\n```\n", None),
    ("a command that fails", "\n    true\n    false   # no\n", "failed with 1: false"),
    ("a program that is not there", "\n    $ accel run -- no_such_program\n    output\n", "exit status 127"),
    ("a library that is not there", "\n    LD_PRELOAD=build/libaccle.so /bin/true\n", "cannot be preloaded"),
    ("a setting that is not there", "\n    ACCEL_LGO=1 accel run -- python3 my_program.py\n", "there is no ACCEL_LGO"),
    ("a setting's value that is not there", "\n    ACCEL_LOG=4 accel run -- python3 my_program.py\n", "ACCEL_LOG=4 is not understood"),
    ("a command of a manual page", ".TH A 1\n.SH EXAMPLES\n.nf\naccel \\-\\-version\naccel cofnig \\-\\-help\n.fi\n", "there is no accel cofnig"),
    ("an option in the text", "Say `accel diff --ignroe x`.\n", "there is no accel diff --ignroe"),
    ("an option of a command that is not run", "<!-- not run: it is wrong -->\n\n    accel calibrate --secnods=1 -- x --y\n", "there is no accel calibrate --secnods"),
    ("a target of make", "<!-- not run: it is wrong -->\n\n    X=1 make chekc CHECK=x\n", "there is no make chekc"),
    ("a script", "<!-- not run: it is wrong -->\n\n    scripts/no-such\n", "there is no scripts/no-such"),
    ("a block that is marked", "<!-- not run: it fails -->\n\n    false\n", None),
    ("a part of a block that is marked", "<!-- not run (false): it fails -->\n\n    true\n    false\n", None),
    ("a drawing", "<!-- no command: a drawing -->\n\n    | --\n", None),
    ("a mark without its reason", "<!-- not run -->\n\n    false\n", "no mark that there is"),
    ("a mark in front of no block", "<!-- not run: it fails -->\n\nText.\n", "not in front of a block"),
    ("a mark about no command", "<!-- not run (false, fals): it fails -->\n\n    false\n", "`not run (fals)' is about no command"),
    ("what another file runs", "<!-- run by .ci/run -->\n\n    make test\n", None),
    ("what a list of CI runs", "<!-- run by tests/ci/parts (make fuzz) -->\n\n    make fuzz FUZZ_SECONDS=60  # a minute\n", None),
    ("what another file does not run", "<!-- run by .ci/run -->\n\n    make test-al\n", ".ci/run does not have it"),
    ("what a file that is not there runs", "<!-- run by .ci/nur -->\n\n    make test\n", "there is no .ci/nur"),
    ("what the long form alone runs", "<!-- run with TEST_LONG=1 -->\n\n    false\n", "failed with 1" if LONG else None),
):
    faults = [text for _, text in in_new_folder(text)]
    tap.ok(any(fault in text for text in faults) if fault else not faults, f"{what}: {'seen' if fault else 'nothing to say'}", *faults)

# ---- The documents ----

counts = [0, 0]
pages = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md")), *sorted(BUILD.glob("share/man/man*/*"))]
for page in pages:
    faults = [] if page.name == "CHANGELOG.md" else in_new_folder(page.read_text())
    tap.ok(not faults, f"{page.relative_to(BUILD if BUILD in page.parents else ROOT)}", *(f"line {line}: {text}" for line, text in faults))
tap.ok(len(pages) > 15 and counts[0] > 5, f"{counts[1]} commands, {counts[0]} of them run here")
tap.done()
