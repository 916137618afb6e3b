"""Runs a suite without libaccel and with it, and compares."""

import collections
import shutil
from concurrent.futures import ThreadPoolExecutor

from suites.session import MODES, run_session
from suites.verdict import END, EXCEPTIONS, different, read_exceptions, settle, stale

# whole: whether it runs without libaccel. native: that run. counts: outcome -> its number of tests.
# new: tests whose outcomes differ, and how; notes: such as need not be mended; stale: exceptions
# that are not needed. gpu: routine -> calls that ran there. bad: how the GPU failed or was misused.
Compared = collections.namedtuple("Compared", "whole native counts new notes stale gpu bad")


def both(paths, folder, **options):
    """Both runs at once: a product has one thread."""
    with ThreadPoolExecutor(len(MODES)) as pool:
        runs = [pool.submit(run_session, mode, paths, folder / mode, **options) for mode in MODES]
        return [run.result() for run in runs]


def compare(paths, folder, exceptions=EXCEPTIONS, **options):
    """paths: files, folders or classes that pytest is given. folder: kept, for what pytest printed."""
    shutil.rmtree(folder, ignore_errors=True)
    native, libaccel = both(paths, folder, **options)

    def run_again(ids, whole):
        part = folder / f"again{len(list(folder.glob('again*')))}"
        files = sorted({i.partition("::")[0] for i in ids})
        one, two = both(files, part, only=None if whole else ids, **options)
        return {i: (one.outcomes.get(i), two.outcomes.get(i)) for i in ids}

    counts = collections.Counter(v for k, v in native.outcomes.items() if k != END)
    real, notes = settle(native, libaccel, different(native, libaccel), run_again)
    known = read_exceptions(exceptions)
    return Compared(whole=native.outcomes[END] == "clean" and counts["passed"] > 0, native=native, counts=counts,
                    new=[f"{test}: {outcomes}" for test, outcomes in real.items() if test not in known],
                    notes=notes + [f"exception: {test}: {known[test]}" for test in real if test in known],
                    stale=stale(known, paths, native, libaccel, real), gpu=libaccel.gpu, bad=libaccel.bad)
