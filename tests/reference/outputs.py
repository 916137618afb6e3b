"""What the reference LAPACK test programs print."""

import re
from collections import Counter


def verdicts(output):
    """What is tested -> how many of its tests failed, and were run."""
    found = Counter()
    passed = r"All tests for (?:the )?(.*?) +passed(?: the threshold)?(?: \( *(\d+) tests run)?"
    for what, number in re.findall(passed, output):
        found[what.removesuffix(" routines"), "run"] += int(number or 1)
    for what, failed, number in re.findall(r"(?m)^ *(.*?): +(\d+) +out of +(\d+)", output):
        found[what, "failed"] += int(failed)
        found[what, "run"] += int(number)
    found["error exits", "run"] = output.count("passed the tests of the error exits")
    return +found


def value_less(line):
    return re.sub(r"(=|\bis) *[-+.\dDE*NaInfity]+$", r"\1", line.strip())


def reports(output):
    """The lines about single tests, less the values, and about error exits."""
    marks = r"\*{3}|test ?\( *\d|result +\d|failed test|Failure in|returned|INFO|error exits"
    return Counter(value_less(line) for line in output.splitlines() if re.search(marks, line))


def complete(output):
    return "End of tests" in output
