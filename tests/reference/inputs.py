"""What the reference LAPACK test programs read: the stock inputs, or fewer sizes and paths of them."""

from pathlib import Path

# Stock inputs; a ? stands for the type. The first ones are for routines of the table.
INPUTS = ["?test", "?test_rfp", "sep", "svd", "?ed", "?sg"]
OTHERS = ["se2", "nep", "?ec", "?gg", "?gd", "?sb", "?bal", "?bak", "?gbal", "?gbak", "?bb", "glm", "gqr", "gsv", "csd",
          "lse"]
KINDS = {"GE": "4 5 8", "PO": "2 4 6"}
PROGRAMS = {"?test": "LIN/xlintst", "?test_rfp": "LIN/xlintstrf"}


def shrink(lines, at, *values):
    """Other values for the parameters whose number is in line `at`."""
    lines[at:at + 1 + len(values)] = [str(len(values[0].split())), *values]


def data(testing, name, letter, stock=False, few=False):
    """What a program reads: the stock input in the folder `testing`, or less; few: even less, of complex numbers the linear equations that real ones do not have."""
    lines = (Path(testing) / f"{name.replace('?', letter)}.in").read_text().splitlines()
    if stock:
        pass
    elif name == "?test":
        # The paths that call routines of the table.
        lines = lines[:16] + [p for p in lines[16:] if p[1:3] in ("SY HE" if few and letter in "cz" else "GE PO PP SY HE TR QR LS").split()]
        sizes = "0 1 5 33" if few else "0 1 2 5 33"
        shrink(lines, 1, sizes)
        shrink(lines, 3, sizes)
        shrink(lines, 5, "1 7")
        shrink(lines, 7, "3", "0")
        shrink(lines, 10, "50")
    elif name == "?test_rfp":
        # Larger ones are ill-conditioned enough to fail with some of OpenBLAS's kernels.
        shrink(lines, 1, "0 1 2 5 6 11")
    elif name == "sep":
        shrink(lines, 1, "0 1 2 5 20")
        shrink(lines, 3, "3", "2", "0")
    elif name == "svd":
        shrink(lines, 1, *(("0 1 10 16", "3 2 16 10") if few else ("0 1 3 1 10 16 20", "3 1 1 2 16 10 20")))
        shrink(lines, 4, "3", "2", "0", "2")
    elif name == "?sg":
        shrink(lines, 1, "0 1 2 5 16")
        shrink(lines, 3, "3", "2", "1")
    elif name == "?ed":
        first = next(i for i, line in enumerate(lines) if line[1:3] == "EV")
        lines = lines[first:first + 9]
        shrink(lines, 1, "0 1 2 5 20")
    return "\n".join(lines) + "\n"


def panels_data(testing, letter, paths, many=True):
    """What a program of linear equations reads so that matrices are as large as it allows, of these paths alone; few of them: square ones of
    one order, and of general and of definite ones a well-conditioned, a singular and an ill-conditioned kind."""
    lines = (Path(testing) / f"{letter}test.in").read_text().splitlines()
    lines = lines[:16] + [p for p in lines[16:] if p[1:3] in paths]
    if not many:
        lines = [part for line in lines for part in ([f"{line[:3]}    3", KINDS[line[1:3]]] if line[1:3] in KINDS else [line])]
    shrink(lines, 1, "0 1 2 125 132" if many else "1 125")
    shrink(lines, 3, "0 1 2 125 132" if many else "1 125")
    shrink(lines, 5, "15")
    shrink(lines, 7, "20", "0")
    shrink(lines, 10, "50")
    return "\n".join(lines) + "\n"
