"""tests/coverage/untaken: edges that no test takes, each with the reason.

A line FILE: TEXT names a line of a source, FILE#2 the second one of that text. Below it, indented, "1 3 of 4: reason" says which of
the line's edges, in the compiler's order: of each condition the one where it holds, then the other one. A reason that begins with
"by chance" is of an edge that two threads' order decides: some runs take it.

"macro FILES: TEXT: reason" has two regular expressions, for lines that are a call of a macro: all of their edges are listed."""

import re
import sys
from collections import defaultdict
from pathlib import Path

LIST = Path(__file__).resolve().with_name("untaken")


def read(path=LIST):
    """{(file, nth, text): {edge: reason}}, and the macros' [(files, text)]."""
    listed, macros, at = defaultdict(dict), [], None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("macro "):
            files, text, _ = line[len("macro "):].split(": ", 2)
            macros.append((re.compile(files), re.compile(text)))
            continue
        if not line.startswith(" "):
            name, text = line.split(": ", 1)
            name, _, nth = name.partition("#")
            at = name, int(nth or 1), text
            continue
        parts = re.fullmatch(r" +([\d ]+) of \d+: (.+)", line)
        if not at or not parts:
            sys.exit(f"{path}:{number}: not an edge and its reason: {line}")
        for edge in parts[1].split():
            listed[at][int(edge)] = parts[2]
    return listed, macros


def named(root, name, number):
    """How the list names a line of a source."""
    lines = [line.strip() for line in (root / name).read_text().splitlines()]
    return name, lines[:number].count(lines[number - 1]), lines[number - 1]


def entry(key, edges, of, reason):
    """What stands in the list for a line."""
    name, nth, text = key
    return f"{name}{f'#{nth}' if nth > 1 else ''}: {text}\n    {' '.join(map(str, edges))} of {of}: {reason}"


def edges_of(root, counts, judged):
    """{(file, nth, text): edge -> times} of the files that are judged."""
    return {named(root, name, number): edges for (name, number), edges in sorted(counts.branches.items()) if name.startswith(judged)}


def is_listed(key, edge, listed, macros):
    return edge in listed.get(key, ()) or any(files.fullmatch(key[0]) and text.match(key[2]) for files, text in macros)


def missing(branches, listed, macros):
    """(line, its edges that are neither taken nor listed) of each line that has some."""
    for key, edges in branches.items():
        found = [edge + 1 for edge, times in sorted(edges.items()) if not times and not is_listed(key, edge + 1, listed, macros)]
        if found:
            yield key, found


def needless(branches, listed):
    """The same of those that are listed and taken, or are no more."""
    for key, edges in listed.items():
        found = [edge for edge, reason in sorted(edges.items())
                 if branches.get(key, {}).get(edge - 1, 1) and not (reason.startswith("by chance") and key in branches)]
        if found:
            yield key, found
