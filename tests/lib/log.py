"""What libaccel writes to stderr: decision lines, and what it says without being asked."""

import functools
import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WHY = set(
    "faster forced device_data required small slower unsupported workspace_query bad_argument empty off user "
    "no_gpu warming no_memory busy error forked verify_failed".split()
)
FAILURES = {"no_memory", "busy", "error", "forked", "verify_failed"}


LINE = re.compile(r'accel( [a-z_]+=("([^"\\]|\\.)*"|[^\s"]\S*))+')  # of a log in text; values with blanks are in quotes
ABOUT = re.compile(r"accel: (libaccel  |precision |CPU       |no GPU    |GPU       |driver    |cuBLAS    |cuSOLVER  )\S")  # a line of the banner in a summary


def parse_log(text):
    """The decision lines among text, as dictionaries; ValueError for a line that breaks the format."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("accel ") or " event=" in line:
            continue
        fields = dict(word.split("=", 1) for word in line.split()[1:])
        if not re.fullmatch(r"cpu|gpu\d+(\+gpu\d+)*(\+cpu)?", fields.get("ran", "")):
            raise ValueError("ran: " + line)
        if fields.get("why") not in WHY or not fields.get("sym"):
            raise ValueError("sym or why: " + line)
        lines.append(fields)
    return lines


def parse_moves(text):
    """The decisions of ACCEL_LOG=2 that had a choice: not what the CPU ran inside a call that was left to it."""
    return [line for line in parse_log(text) if "depth" not in line or line["ran"] != "cpu" or line["why"] in FAILURES]


@functools.cache
def schema():
    """What checks an object of a log in JSON; ImportError without Debian's python3-jsonschema."""
    import jsonschema

    return jsonschema.Draft7Validator(json.loads((ROOT / "docs/log.schema.json").read_text()))


def fault_of(line):
    """What is wrong with a line of a log in JSON by docs/log.schema.json; None: nothing."""
    return next((error.message for error in schema().iter_errors(json.loads(line))), None)


def parse_json(text):
    """All objects of a log in JSON; ValueError for a line that is none, or not as docs/log.schema.json says."""
    for line in text.splitlines():
        if fault := fault_of(line):
            raise ValueError(f"{fault}: {line}")
    return [json.loads(line) for line in text.splitlines()]


@functools.cache
def fault_of_form(line):
    return fault_of(line)


def check_json(text):
    """Raises ValueError if a line of a log in JSON among text is not as docs/log.schema.json says. For all that tests run: lines that differ in
    numbers alone are checked once, because the schema has bounds of 0 and 1, and sets of numbers for three fields only."""
    for line in text.splitlines():
        if not line.startswith('{"v": 1, '):
            continue
        form = re.sub(r'("(?!(?:v|align|mps)")\w+": )(?:\d+(\.\d+)|[1-9]\d*)(?=[,}])', lambda number: number[1] + ("0.5" if number[2] else "1"), line)
        try:
            fault = fault_of_form(form)
        except ImportError:  # test_log_json.py says so
            return
        if fault:
            raise ValueError(f"{fault}: {line}")


def lines_for(done, **fields):
    """The decision lines of a run that have these fields."""
    return [f for f in parse_log(done.stderr) if fields.items() <= f.items()]


def outcomes(lines):
    """Where the calls of these decision lines ran, and why."""
    return [(f["ran"], f["why"]) for f in lines]


def summaries(text):
    """The summaries among text, of ACCEL_SUMMARY=json."""
    return [json.loads(line) for line in text.splitlines() if line.startswith('{"v": 1, "event": "summary"')]


def table_of(text):
    """The lines of a summary in text, without those of the banner and the hints."""
    return [line for line in text.partition("accel: hint:")[0].splitlines() if not ABOUT.match(line)]


def about(text):
    """The lines of the banner in a summary."""
    return [line for line in text.splitlines() if ABOUT.match(line)]


def fields_of(line):
    """The fields of a line of a log in text."""
    return {name: json.loads(value) if value.startswith('"') else value for name, value, _ in re.findall(r' ([a-z_]+)=("([^"\\]|\\.)*"|\S+)', line)}


def events(text, name):
    """The lines of this event of a log in text, as dictionaries."""
    return [fields_of(line) for line in text.splitlines() if line.startswith("accel ") and f" event={name}" in line]


def said(done):
    """What libaccel said on stderr without being asked: all but the log."""
    return [line for line in done.stderr.splitlines() if line.startswith("accel: ")]


def complaints(done):
    """What libaccel said, except that a calibration of the test's own has nothing for a CPU library."""
    return [line for line in said(done) if not re.search(r" has nothing for \[?cpu ", line)]
