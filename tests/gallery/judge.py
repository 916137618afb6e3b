"""What the runs of an example say together: a verdict, and its reason."""

import re
import subprocess
import tempfile
from pathlib import Path

from gallery.runs import Output, run
from lib.programs import BUILD, clean_env
from regress.compare import NUMBER, last_digit, skeleton, value

NETWORK = re.compile(r"URLError|Connection refused|ConnectionRefused|ProxyError|Max retries exceeded|cannot open URL|name resolution")
MISSING = re.compile(r"(?:ModuleNotFoundError: No module named|there is no package called|ImportError:).*")
ERROR = re.compile(r"(?i)[\w.]*error\b")
# joblib's words where the kernel ends a worker at the limit of the processor's time.
WORKER_ENDED = re.compile(r"exit codes of the workers are \{SIG(?:KILL|XCPU)\(")
NO_REASON = re.compile(r"ignoring const execution_exception|^Execution halted|^Calls: ")
# Same text and numbers; then why there is nothing to say; then what is wrong.
FINE = ("same", "rounding", "sensitive", "not repeatable")
ALONE = ("fails alone", "too long alone", "needs the network", "needs a package")
# Runs without libaccel that may be needed; all of them only where two differ, as those do that time
# something: a time that is rounded may be the same in three runs and another one in the fourth.
AGAIN = ("second", "third", "fourth", "fifth", "sixth", "seventh")
WRONG = ("DIFFERS without a GPU", "DIFFERS on the GPU", "FAILS without a GPU", "FAILS on the GPU", "NOT ACTIVE", "GPU FAULT")


class Masked:
    """What of an output says nothing: lines of a text, whole texts, arrays."""

    def __init__(self):
        self.lines, self.texts, self.arrays = {}, set(), set()

    def add(self, one, other, alike=lambda a, b: a == b, alike_arrays=lambda a, b: a == b):
        """All that two runs without libaccel have different."""
        for name in one.texts.keys() | other.texts.keys():
            first, second = one.texts.get(name, []), other.texts.get(name, [])
            if len(first) != len(second):
                self.texts.add(name)
            else:
                self.lines.setdefault(name, set()).update(i for i, pair in enumerate(zip(first, second)) if not alike(*pair))
        for name in one.arrays.keys() | other.arrays.keys():
            if not (name in one.arrays and name in other.arrays and alike_arrays(one.arrays[name], other.arrays[name])):
                self.arrays.add(name)

    def text(self, output, name):
        return [line for i, line in enumerate(output.texts.get(name, [])) if i not in self.lines.get(name, ())]

    def rest(self, output):
        """(texts, arrays) that remain."""
        return ({name: self.text(output, name) for name in output.texts if name not in self.texts},
                {name: data for name, data in output.arrays.items() if name not in self.arrays})

    def __str__(self):
        parts = [f"{sum(map(len, self.lines.values()))} lines"] * any(self.lines.values())
        parts += [f"all of {name}" for name in sorted(self.texts)] + [f"{len(self.arrays)} arrays"] * bool(self.arrays)
        return ", ".join(parts)


def rules(one, other, masked):
    """By the rules of `accel diff`, which is given what runs have printed and drawn: (whether all is the same, how many numbers, the
    largest relative difference, its report)."""
    (texts, arrays), (other_texts, other_arrays) = masked.rest(one), masked.rest(other)
    if texts.keys() != other_texts.keys() or arrays.keys() != other_arrays.keys():
        only = sorted((texts.keys() | arrays.keys()) ^ (other_texts.keys() | other_arrays.keys()))
        return False, 0, 0.0, f"one run alone has {', '.join(only)}"
    with tempfile.TemporaryDirectory(prefix="accel-gallery-") as folder:
        for side, lines, files in (("a", texts, arrays), ("b", other_texts, other_arrays)):
            Path(folder, side).mkdir()
            for name, text in lines.items():
                Path(folder, side, f"{name}.txt").write_text("".join(line + "\n" for line in text))
            for name, data in files.items():
                Path(folder, side, f"{name}.npy").write_bytes(data)
        same = [name for name in [f"{n}.txt" for n in texts] + [f"{n}.npy" for n in arrays]
                if Path(folder, "a", name).read_bytes() == Path(folder, "b", name).read_bytes()]
        differing = [f"text:{n}.txt" for n in texts if f"{n}.txt" not in same] + [f"npy:{n}.npy" for n in arrays if f"{n}.npy" not in same]
        numbers = sum(len(NUMBER.findall(line)) for text in texts.values() for line in text) + sum(len(data) // 8 for data in arrays.values())
        if not differing:
            return True, numbers, 0.0, ""
        replay = 'case "$LD_PRELOAD" in *libaccel*) cp b/* .;; *) cp a/* .;; esac'
        done = subprocess.run([BUILD / "accel", "diff", "--allow-no-numbers", "--stdout", "none", *(f"--output={name}" for name in differing), "--", "sh", "-c", replay],
                              cwd=folder, env=clean_env(folder), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    worst = max((float(word) for word in re.findall(r"(?m)^  relative +(\S+)", done.stdout)), default=0.0)
    report = "\n\n".join(part for part in done.stdout.split("\n\n")[1:] if ": ok;" not in part.partition("\n")[0])
    return done.returncode == 0, numbers, worst, report


def is_same(one, other, masked):
    return masked.rest(one) == masked.rest(other)


def alike_lines(a, b):
    """By the rules of `accel diff`, without a process for each line: half of the digits, or one in the last place of four or more."""
    return skeleton(a) == skeleton(b) and all(
        x == y or abs(value(x) - value(y)) <= max(1.5e-8 * abs(value(x)), 1.01 * last_digit(x) if len(re.sub(r"[eEdD].*|\D", "", x).lstrip("0")) >= 4 else 0)
        for x, y in zip(NUMBER.findall(a), NUMBER.findall(b)))


def alike_array(a, b):
    """By the rules of `accel diff`, of one array."""
    one, other = (Output("ok", 0, {}, {"a": data}, True, 0, 0, []) for data in (a, b))
    return a == b or rules(one, other, Masked())[0]


def why_alone(plain):
    """Why an example says nothing without libaccel, either."""
    errors = "\n".join(plain.texts["stderr"])
    said = [line for name in ("stdout", "stderr") for line in plain.texts[name] if line.strip() and not NO_REASON.search(line)]
    first = max((i for i, line in enumerate(said) if ERROR.match(line)), default=-2)
    last = " ".join(line.strip() for line in said[first:][:2])
    if plain.end == "too long":
        return "too long alone", ""
    if NETWORK.search(errors):
        return "needs the network", last
    if missing := MISSING.search(errors):
        return "needs a package", missing[0]
    return "fails alone", f"{plain.end}: {last}"


def judge(example, limit, run=run, extra={}):
    """(a row of the table as a dictionary, mode -> Output). limit: seconds; extra: settings of the run on the test GPU."""
    runs = {"plain": run(example, "plain", limit)}
    plain, masked = runs["plain"], Masked()
    row = {"name": example.name, "seconds": round(plain.seconds, 1), "calls": 0, "gpu": 0, "numbers": 0, "worst": 0.0}

    def end(verdict, note=""):
        return {**row, "verdict": verdict, "note": note}, runs

    def once_more(name, mode="plain", **how):
        runs[name] = run(example, mode, limit)
        if runs[name].end == "ok":
            masked.add(plain, runs[name], **how)

    if plain.end != "ok":
        return end(*why_alone(plain))
    without = runs["no GPU"] = run(example, "no GPU", limit)
    if without.end == "too long":
        return end("too long alone", "at the edge of the limit")
    if without.end != "ok":
        return end("FAILS without a GPU", without.end)
    for name in AGAIN:
        if not is_same(plain, without, masked) and (name in AGAIN[:2] or str(masked)):
            once_more(name)
    if not is_same(plain, without, masked):
        return end("DIFFERS without a GPU", rules(plain, without, masked)[3])
    gpu = runs["test GPU"] = run(example, "test GPU", limit, extra)
    row.update(calls=gpu.calls, gpu=gpu.gpu)
    if not (without.loaded and gpu.loaded):
        return end("NOT ACTIVE", "libaccel was not in the example's process")
    if gpu.end == "too long" or gpu.end != "ok" and any(map(WORKER_ENDED.search, gpu.texts["stderr"])):
        return end("too long alone", "on the test GPU, which is no fast one")
    if gpu.end != "ok":
        return end("FAILS on the GPU", f"{gpu.end}: {gpu.texts['stderr'][-1:]}")
    if gpu.bad:
        return end("GPU FAULT", "; ".join(gpu.bad))
    found = rules(plain, gpu, masked)
    for name in AGAIN:
        if not found[0] and name not in runs and (name in AGAIN[:2] or str(masked)):
            once_more(name)
            found = rules(plain, gpu, masked)
    noted = f"{masked} differ from run to run" if str(masked) else ""
    others, verdict = [], "rounding" if found[2] else "same"
    for name in ("Haswell", "Sandybridge", "Nehalem"):
        if not found[0]:
            others.append(name)
            once_more(name, name, alike=alike_lines, alike_arrays=alike_array)
            found = rules(plain, gpu, masked)
    if not found[0]:
        return end("DIFFERS on the GPU", found[3])
    row.update(numbers=found[1], worst=found[2])
    if others:
        return end("sensitive", f"OpenBLAS's kernels for {' and '.join(others)} change, too: {masked}")
    texts, arrays = masked.rest(plain)
    if noted and not arrays and not any(texts.values()):
        verdict = "not repeatable"
    return end(verdict, noted)
