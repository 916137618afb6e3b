"""The routine table, as the library is built from it."""

import re

from lib.programs import ROOT

LETTERS = {"ALL": "sdcz", "REAL": "sd", "COMPLEX": "cz", "": [""]}


def routine_table(row):
    """routine -> its operation, of the rows ROUTINE (BLAS) or LAPACK."""
    text = "".join((ROOT / "ops" / file).read_text() for file in ("blas/blas.def", "lapack/lapack.def"))
    rows = re.findall(rf"(?m)^(?:(\w+)_TYPES\()?{row}[(,] ?(\w+), \w+, (\w+),", text)
    return {letter + name: op for types, name, op in rows for letter in LETTERS[types]}
