#!/usr/bin/python3 -B
"""What libsvm itself must answer gets there as it was: wrong input, namesakes, a device that fails or has no memory, with rand() where it was. Threads train
at once. No memory is lost or misused."""

import re
import signal
import tempfile
from pathlib import Path

from lib.log import lines_for
from lib.programs import LOG, LONG, NO_GPU, PLAIN, ROOT, TEST_GPU, TESTS, start
from lib.tap import Tap

tap = Tap()
ON_GPU = {**TEST_GPU, **LOG}


def numbers(text):
    return [float(word) for word in re.findall(r"-?\d+\.\d+", text)]


plain, device = start("svm_calls", "bad"), start("svm_calls", "bad", env=ON_GPU)
count = plain.stdout.count("\n")
tap.ok(plain.returncode == 0 and count > 10, "libsvm survives it", plain.stderr)
tap.ok(device.stdout == plain.stdout and len(lines_for(device, sym="svm_train", ran="cpu", why="unsupported")) == count,
       "input that it is not made for: its own answer to the last bit, and a line each", device.stdout, device.stderr)

# Where a NULL stands for data: libsvm crashes by it at the same address, or answers as without
# libaccel.
names = start("null_calls").stdout.split()
CRASH = re.compile(r"crash in libsvm\.so\.3 at \S+\n")
crashes = 0
for name in names:
    plain = start("null_calls", name)
    crashed = plain.returncode == -signal.SIGSEGV
    crashes += crashed
    tap.ok((crashed and CRASH.fullmatch(plain.stdout)) or (plain.returncode == 0 and plain.stdout.count("\n") == 1), f"{name}: libsvm {'crashes' if crashed else 'survives'}",
           plain.returncode, plain.stdout, plain.stderr)
    # What libsvm does not look at may be NULL, and is as good as any other call.
    there = {"regress_null_weights": 1, "regress_null_classes": 3}.get(name, 0)
    for mode, env in {"no GPU": {**NO_GPU, **LOG}, "test GPU": ON_GPU}.items():
        done = start("null_calls", name, env=env)
        on_gpu = there if mode == "test GPU" else 0
        same = done.stdout == plain.stdout if not on_gpu else all(abs(a - b) < 1e-2 * max(1, abs(a)) for a, b in zip(numbers(plain.stdout), numbers(done.stdout), strict=True))
        # libsvm validates by trainings and predictions, each of which is decided for itself, until
        # it comes to the NULL.
        ran = [line for line in lines_for(done, ran="gpu0") if not name.startswith("validate") or line["sym"] == "svm_cross_validation"]
        tap.ok((done.returncode, same, len(ran)) == (plain.returncode, True, on_gpu), f"{name}, {mode}: libsvm sees it as it is",
               done.returncode, plain.stdout, done.stdout, done.stderr)
tap.ok(len(names) == 29 and 15 < crashes < len(names), f"{len(names)} such calls, of which {crashes} crash")

plain, device = start("svm_calls", "threads"), start("svm_calls", "threads", env=ON_GPU)
near = all(abs(a - b) < 1e-2 * max(1, abs(a)) for a, b in zip(numbers(plain.stdout), numbers(device.stdout)))
tap.ok(near and len(numbers(plain.stdout)) == len(numbers(device.stdout)) and len(lines_for(device, sym="svm_train", ran="gpu0")) == 20,
       "four threads train all types at once", plain.stdout, device.stdout, device.stderr)

plain, device = start("svm_calls", "rand"), start("svm_calls", "rand", env=ON_GPU)
tail = lambda text: re.findall(r"rand \d+", text)
tap.ok(tail(plain.stdout) == tail(device.stdout) and len(lines_for(device, ran="gpu0")) == 2 and not lines_for(device, ran="cpu"),
       "probabilities and folds draw the same numbers", plain.stdout, device.stdout, device.stderr)
bits = start("svm_calls", "rand", env=NO_GPU)
tap.ok(bits.stdout == plain.stdout, "no GPU: the same to the last bit", bits.stdout)

FAULTS = [{"TESTGPU_FAIL": f"{name}:{when}"} for name in ("cuLaunchKernel", "cuMemAllocAsync", "async") for when in ("1", "3", "9", "30")]
FAULTS += [{"TESTGPU_MEMORY": "18M"}, {"TESTGPU_FAIL": "cuMemcpyDtoHAsync_v2:1+"}, {"TESTGPU_FAIL": "*:120+"}]
for fault in FAULTS if LONG else FAULTS[:1] + FAULTS[-2:]:
    device = start("svm_calls", "rand", env={**ON_GPU, **fault})
    failed = [line for line in lines_for(device, ran="cpu") if line["sym"] in ("svm_train", "svm_cross_validation")]
    lines = plain.stdout.splitlines()
    same = device.stdout == plain.stdout if not lines_for(device, ran="gpu0") else tail(device.stdout) == tail(plain.stdout)
    tap.ok(same, f"{fault}: libsvm's own answer, and rand() where it was ({len(failed)} calls)", device.stdout, device.stderr)

with tempfile.TemporaryDirectory(prefix="accel-namesake-") as folder:
    for name in ("none", "999", "324", "324_plain"):
        link = Path(folder, "libsvm.so.3")
        link.unlink(missing_ok=True)
        link.symlink_to(TESTS / f"libnamesake_{name}.so")
        for env in (ON_GPU, NO_GPU, PLAIN):
            done = start("svm_calls", "namesake", env={**env, "LD_LIBRARY_PATH": folder})
            good = done.stdout == "80 1 3 4 5 6 7 8.5\n42\n"
            if env is ON_GPU:
                # Lines of the question go nowhere, those of another thread where they should; the
                # print function that was set meanwhile has stayed.
                asked = ["tried beside", "tried, prints"] if name.startswith("324") else []
                good = good and re.findall("tried.*", done.stderr) == asked and len(lines_for(done, sym="svm_train", ran="cpu", why="unsupported")) == 1
            tap.ok(good, f"a namesake, libsvm_version {name}: registers and stack as they were", done.stdout, done.stderr)

# valgrind does not understand the test GPU's threads, which take turns on stacks of their own: of
# calls that it runs, only what is lost counts. glibc's own memory of a thread (allocate_dtv) may
# look lost while that thread ends beside the process.
SOURCES = "|".join(path.name for path in (ROOT / "ops/svm").glob("*.c"))
LOSS = re.compile(r"[\d,]+ (?:\([^)]*\) )?bytes in [\d,]+ blocks are definitely lost.*\n(?:==\d+==    .*\n)+")
for what in ("bad", "rand") if LONG else ():
    done = start("/usr/bin/valgrind", "--leak-check=full", "--errors-for-leak-kinds=definite", TESTS / "svm_calls", what, env=ON_GPU, timeout=1000)
    losses = LOSS.findall(done.stderr)
    lost = [loss for loss in losses if "allocate_dtv" not in loss]
    told = re.search(r"definitely lost: ([\d,]+) bytes", done.stderr)
    # What the summary of losses tells must be in the records that were read.
    read = told is None or told[1] == "0" or losses
    clean = not re.search(rf"\((?:{SOURCES}):\d+\)", LOSS.sub("", done.stderr)) and not lost and read
    tap.ok(done.returncode == 0 and clean and (what != "bad" or "ERROR SUMMARY: 0 errors" in done.stderr),
           f"valgrind has nothing to say of libaccel in svm_calls {what}", *lost, done.stderr[-3000:])

tap.done()
