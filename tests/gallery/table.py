"""The gallery's table, and what is wrong in it."""

import collections

from gallery.judge import ALONE, FINE
from gallery.examples import HERE
from suites.verdict import read_exceptions

EXCEPTIONS = HERE / "exceptions"
TIMES = "times:"  # the reason of an example whose numbers come from times that it measures: each run may have others
COLUMNS = ("name", "verdict", "seconds", "calls", "gpu", "numbers", "worst", "note")


def write_table(path, rows):
    with open(path, "w") as file:
        print(*COLUMNS, sep="\t", file=file)
        for row in sorted(rows, key=lambda row: row["name"]):
            print(*(str(row[column]).replace("\n", " | ").replace("\t", " ") for column in COLUMNS), sep="\t", file=file)


def is_exception(row, exceptions):
    """What libaccel breaks is to be mended; only results may be others for a reason, without a GPU only times."""
    reason = exceptions.get(row["name"], "")
    return bool(reason) and row["verdict"] in ("DIFFERS on the GPU", *["DIFFERS without a GPU"] * reason.startswith(TIMES))


def faults(rows, exceptions):
    """What makes the whole fail."""
    found = [f"{row['verdict']}: {row['name']}: {row['note'][:1500]}" for row in rows if row["verdict"] not in (*FINE, *ALONE) and not is_exception(row, exceptions)]
    found += [f"{row['name']}: an exception that is not needed" for row in rows
              if row["verdict"] in FINE and not exceptions.get(row["name"], TIMES).startswith(TIMES)]
    of = collections.defaultdict(list)
    for row in rows:
        if row["verdict"] not in ALONE:
            of[row["name"].partition("/")[0]].append(row)
    return found + [f"{name}: no call ran on the GPU" for name, part in of.items() if len(part) > 5 and not any(row["gpu"] for row in part)]


def summary(rows):
    """Prints the counts of each collection, what ran not and why, and what is wrong. 1 if anything is."""
    exceptions = read_exceptions(EXCEPTIONS)
    counts = collections.defaultdict(collections.Counter)
    for row in rows:
        counts[row["name"].partition("/")[0]]["exception" if is_exception(row, exceptions) else row["verdict"]] += 1
    for row in sorted(rows, key=lambda row: (row["verdict"], row["name"])):
        if row["verdict"] not in ("same", "rounding"):
            print(f"{row['verdict']}: {row['name']}: {exceptions.get(row['name'], row['note'].splitlines()[0] if row['note'] else '')}")
    for name, verdicts in sorted(counts.items()):
        part = [row for row in rows if row["name"].startswith(name + "/")]
        print(f"{name}: {sum(verdicts.values())} examples: " + ", ".join(f"{n} {verdict}" for verdict, n in sorted(verdicts.items())) +
              f"; {sum(r['calls'] for r in part)} calls, {sum(r['gpu'] for r in part)} on the GPU, {sum(r['numbers'] for r in part)} numbers")
    wrong = faults(rows, exceptions)
    print(*wrong, sep="\n")
    return bool(wrong)
