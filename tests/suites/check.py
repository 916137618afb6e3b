"""Runs a suite without libaccel and with it, and says as TAP whether all is the same."""

import collections
import shutil
from concurrent.futures import ThreadPoolExecutor

from session import MODES, run_session
from verdict import END, EXCEPTIONS, different, read_exceptions, settle, stale


def both(paths, folder, **options):
    """Both runs at once: a product has one thread."""
    with ThreadPoolExecutor(len(MODES)) as pool:
        runs = [pool.submit(run_session, mode, paths, folder / mode, **options) for mode in MODES]
        return [run.result() for run in runs]


def check_suite(tap, name, paths, folder, exceptions=EXCEPTIONS, **options):
    """paths: files, folders or classes that pytest is given. folder: kept, for what pytest printed."""
    shutil.rmtree(folder, ignore_errors=True)
    native, libaccel = both(paths, folder, **options)

    def run_again(ids, whole):
        part = folder / f"again{len(list(folder.glob('again*')))}"
        files = sorted({i.partition("::")[0] for i in ids})
        one, two = both(files, part, only=None if whole else ids, **options)
        return {i: (one.outcomes.get(i), two.outcomes.get(i)) for i in ids}

    counts = collections.Counter(v for k, v in native.outcomes.items() if k != END)
    whole = native.outcomes[END] == "clean" and counts["passed"] > 0
    tap.ok(whole, f"{name}: runs without libaccel", native.outcomes[END], native.output)
    tap.note(f"{name}: " + ", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items())))

    real, notes = settle(native, libaccel, different(native, libaccel), run_again)
    known = read_exceptions(exceptions)
    new = [f"{test}: {outcomes}" for test, outcomes in real.items() if test not in known]
    tap.ok(not new, f"{name}: every test has the same outcome under libaccel", f"{len(new)} differ; see {folder}", *new)
    for note in notes + [f"exception: {test}: {known[test]}" for test in real if test in known]:
        tap.note(f"{name}: {note}")
    old = stale(known, paths, native, libaccel, real)
    tap.ok(not old, f"{name}: every exception is needed", *old)

    tap.ok(libaccel.gpu, f"{name}: calls ran on the GPU")
    for symbol, calls in sorted(libaccel.gpu.items()):
        tap.note(f"{name}: {symbol}: {calls} calls on the GPU")
    tap.ok(not libaccel.bad, f"{name}: the GPU never failed, and was never misused", *libaccel.bad)
