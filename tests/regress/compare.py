"""Two outputs of one program, number by number. All comparisons of printed output go through compare(): whoever wants another
one changes it here."""

import re
from collections import namedtuple

NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eEdD][-+]?\d+)?(?![\w.])")

# numbers: how many there are. worst: the largest relative difference; digits: the largest one in
# units of the last digit printed, of those that are beyond `bound`. where: the line that has it, or
# that is another text.
Comparison = namedtuple("Comparison", "numbers worst good where")


def last_digit(text):
    """The value of one in its last place."""
    mantissa, _, exponent = re.sub("[dD]", "e", text).lower().partition("e")
    _, _, fraction = mantissa.partition(".")
    return 10.0 ** (int(exponent or 0) - len(fraction))


def value(text):
    return float(re.sub("[dD]", "e", text))


def skeleton(line):
    """What stands around the numbers."""
    return " ".join(NUMBER.sub("#", line).split())


def compare(first, second, bound=0.0):
    """first: without libaccel. Numbers are alike if they differ by one in the last digit at most, or relatively by `bound`."""
    count, worst, good, where = 0, 0.0, True, ""
    lines, others = first.splitlines(), second.splitlines()
    if len(lines) != len(others):
        return Comparison(0, float("inf"), False, f"{len(lines)} lines and {len(others)}")
    for line, other in zip(lines, others):
        if skeleton(line) != skeleton(other):
            return Comparison(count, float("inf"), False, f"{line} | {other}")
        for a, b in zip(NUMBER.findall(line), NUMBER.findall(other)):
            x, y = value(a), value(b)
            relative = abs(x - y) / max(abs(x), abs(y)) if x != y else 0.0
            count += 1
            if relative > worst:
                worst, where = relative, f"{line} | {other}"
            if relative > bound and abs(x - y) > 1.01 * max(last_digit(a), last_digit(b)):
                good = False
    return Comparison(count, worst, good, where)
