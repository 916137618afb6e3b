"""The commands of documents: of Markdown's indented and fenced blocks, and of a manual page's examples (.nf to .fi, .EX to .EE).

A mark in front of a block says what is special about it: <!-- MARK -->, in a manual page .\\" MARK. A mark is one of
    no command: REASON              drawings, output, files
    not run: REASON                 nobody runs its commands
    run by FILE                     the file runs its commands, and has them word by word
    run with TEST_LONG=1            tests/docs/test_commands.py runs them, but only in its long form
Those but the first may name the commands that they are about by their beginnings: not run (make suites, make bench): REASON.
"""

import re
import subprocess
from dataclasses import dataclass, field

MARK = re.compile(r'^\s*(?:<!--|\.\\")\s*((?:no command|not run|run by|run with)\b.*?)\s*(?:-->)?\s*$')
FORM = re.compile(r"(no command|not run|run by|run with)([^(:]*)(?:\((.*?)\))?(?:: *(\S.*))?")


@dataclass
class Mark:
    kind: str
    what: str  # of "run by", the file; of "run with", TEST_LONG=1
    beginnings: list  # of commands; empty: all
    reason: str

    def concerns(self, command):
        return not self.beginnings or any(re.match(re.escape(text) + r"(?!\S)", command) for text in self.beginnings)


@dataclass
class Block:
    line: int
    language: str = ""
    lines: list = field(default_factory=list)
    marks: list = field(default_factory=list)

    def commands(self):
        """Each with its continuation lines and here documents. Where the first line begins with a prompt ($), lines that do are commands and others are output."""
        if any(mark.kind == "no command" for mark in self.marks) or self.language not in ("", "sh", "bash", "console"):
            return []
        prompted = [line[2:] for line in self.lines if line.startswith("$ ")] if "".join(self.lines).startswith("$ ") else self.lines
        return whole_commands(prompted)


def whole_commands(lines):
    commands, open_lines = [], ""
    for line in lines:
        open_lines += line + "\n"
        if complete(open_lines):
            commands.append(open_lines.rstrip("\n"))
            open_lines = ""
    commands += [open_lines] if open_lines.strip() else []
    return [command for command in commands if not re.fullmatch(r"\s*(#.*)?", command)]


def complete(text):
    if text.endswith("\\\n"):
        return False
    if not re.search(r"<<|['\"({`]|\b(for|while|if|case|do|then)\b", text):
        return True
    checked = subprocess.run(["bash", "-n"], input=text, text=True, stderr=subprocess.PIPE)
    return checked.returncode == 0 and not checked.stderr


def read_mark(text):
    """None if the text is no mark that there is."""
    form = FORM.fullmatch(text)
    if not form:
        return None
    kind, what, beginnings, reason = form.groups()
    what = what.strip()
    known = {"no command": not what and not beginnings and reason, "not run": not what and reason, "run by": bool(what), "run with": what == "TEST_LONG=1"}
    return Mark(kind, what, [text.strip() for text in beginnings.split(",")] if beginnings else [], reason) if known[kind] else None


def blocks(text):
    """The blocks of a document, and the marks that cannot be read, as (line, text)."""
    found, wrong, marks = [], [], []
    for block in manual_blocks(text) if re.match(r"(\.\\\".*\n)*\.TH ", text) else markdown_blocks(text):
        if isinstance(block, Block):
            block.marks, marks = marks, []
            found.append(block)
            continue
        line, content = block
        mark = read_mark(content) if content else None
        if mark:
            marks.append(mark)
        elif content:
            wrong.append((line, content))
        elif marks:
            wrong.append((line, "a mark that is not in front of a block"))
            marks = []
    if marks:
        wrong.append((len(text.splitlines()), "a mark that is not in front of a block"))
    return found, wrong


def manual_blocks(text):
    """Blocks, and between them (line, mark), or (line, "") for other text."""
    block = None
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\.(nf|EX)\b", line):
            block = Block(number)
        elif re.match(r"\.(fi|EE)\b", line) and block:
            yield block
            block = None
        elif block:
            block.lines.append(re.sub(r"\\f.", "", line.replace(r"\-", "-").replace(r"\e", "\\").replace(r"\(aq", "'").replace(r"\&", "")))
        else:
            yield number, (MARK.match(line) or ["", ""])[1]


def markdown_blocks(text):
    """Likewise. A block is fenced, or indented by four columns beyond a list's text, with an empty line in front."""
    block = fence = None
    indent, after_empty = 4, True
    for number, line in enumerate(text.splitlines(), 1):
        opened = re.match(r"\s*(```+|~~~+)\s*(\w*)", line)
        if fence:
            if line.strip() == fence:
                yield block
                block = fence = None
            else:
                block.lines.append(line[min(len(line) - len(line.lstrip()), column) :])
        elif block and (not line.strip() or line.startswith(" " * indent)):
            block.lines.append(line[indent:])
        else:
            if block:
                yield block
                block = None
            if opened:
                fence, column = opened[1], line.index(opened[1])
                block = Block(number, opened[2])
            elif after_empty and line.strip() and line.startswith(" " * indent):
                block = Block(number, lines=[line[indent:]])
            elif line.strip():
                item = re.match(r"\s*([-*+]|\d+[.)])\s+", line)
                indent = 4 + item.end() if item else indent if line.startswith(" ") else 4
                yield number, (MARK.match(line) or ["", ""])[1]
        after_empty = not line.strip() or bool(MARK.match(line))
    if block:
        yield block
