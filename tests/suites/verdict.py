"""Compares a suite's two runs, and what may differ."""

from pathlib import Path

EXCEPTIONS = Path(__file__).resolve().parent / "exceptions"
END = "the end of pytest"
OUTCOMES = {"passed", "failed", "skipped", "xfailed", "xpassed", "error", None}


def read_exceptions(path):
    """id -> reason"""
    found = {}
    for line in Path(path).read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        name, separator, reason = line.partition("  # ")
        if not separator or not reason.strip() or name in found:
            raise ValueError(f"{path}: not an id and a reason, or twice: {line}")
        found[name] = reason.strip()
    return found


def covers(paths, name):
    """Whether pytest collects the test, if there is one, from these files, folders and classes."""
    return any(name == path or name.startswith((path + "/", path + "::")) for path in paths)


def is_same(one, other):
    """A test that its own suite expects to fail, and lets pass, says nothing by either. scikit-learn's test_lml_gradient
    (difference quotients with a step of 1e-9) passes 21 or 23 times of 65 without libaccel, by OpenBLAS's kernels alone
    (OPENBLAS_CORETYPE Sandybridge, Haswell): no list of such tests holds on every machine."""
    return one == other or {one, other} == {"xfailed", "xpassed"}


def different(native, libaccel):
    """The ids whose outcomes differ, a missing one being an outcome too."""
    names = native.outcomes.keys() | libaccel.outcomes.keys()
    return sorted(name for name in names if not is_same(native.outcomes.get(name), libaccel.outcomes.get(name)))


def settle(native, libaccel, differing, run_again):
    """Tells a test that libaccel changes from one that is not stable: (id -> outcomes, notes).

    run_again(ids, whole) gives both outcomes of each for one more run, alone or with the rest of their files. Some
    tests depend on time, or draw numbers without a seed. A difference is dropped, with a note, only where the test
    changes its mind without libaccel, too, or where none of the further runs shows a difference. A crash is never
    dropped."""
    seen = {name: [(native.outcomes.get(name), libaccel.outcomes.get(name))] for name in differing}
    again = [name for name in differing if OUTCOMES.issuperset(seen[name][0])]
    for whole in (True, False, False) if again else ():
        for name, pair in run_again(again, whole).items():
            seen[name].append(pair)
    real, notes = {}, []
    for name, pairs in seen.items():
        shown = "; ".join(f"{a} without, {b} with libaccel" for a, b in pairs)
        if OUTCOMES.issuperset(b for _, b in pairs) and len({a for a, _ in pairs}) > 1:
            notes.append(f"not stable without libaccel: {name}: {shown}")
        elif len(pairs) > 1 and all(a == b for a, b in pairs[1:]):
            notes.append(f"differed once, not again: {name}: {shown}")
        else:
            real[name] = shown
    return real, notes


def stale(exceptions, paths, native, libaccel, real):
    """Entries of files that this run covers whose test is not there, or does not differ."""
    listed = native.listed | libaccel.listed
    found = []
    for name in exceptions:
        if not covers(paths, name) or name in real:
            continue
        if name not in listed:
            found.append(f"{name}: there is no such test")
        elif name in native.outcomes:
            found.append(f"{name}: {native.outcomes[name]} with and without libaccel")
    return found
