#!/usr/bin/python3 -B
"""Operands that stay on the GPU between calls. The third call on the same operand sends hardly any of it, with the same results, bit for
bit; and whoever writes to it between calls, by whatever way, no call gets the old contents."""

from lib.log import lines_for, said
from lib.programs import LOG, LONG, TEST_GPU, UNDER_TSAN, start
from lib.tap import Tap

ENV = {**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0", "OPENBLAS_NUM_THREADS": "1"}
HASH = {**ENV, "ACCEL_RESIDENT": "hash"}
OFF = ENV  # the default

tap = Tap()
number = lambda line, key: float(line.get(key, 0))
kept = lambda lines: [line for line in lines if number(line, "kept_mb") > 0]


def fine(done, what):
    return tap.ok(done.returncode == 0 and done.stdout.endswith("0 calls wrong\n") and not said(done), what, done.stdout[-300:], done.stderr[-500:])


# ---- The same operands again ----

CALLS = 5
off = start("again", "calls", CALLS, env=OFF)
plain = lines_for(off)
tap.ok(off.returncode == 0 and len(plain) == 11 * CALLS and not kept(plain) and {f["ran"] for f in plain} == {"gpu0"}, "off: nothing is kept", off.stderr[-500:])
for how, env in (("hash", HASH), ("auto", {**ENV, "ACCEL_RESIDENT": "auto"}), ("hash, log level 2", {**HASH, "ACCEL_LOG": "2"})):
    done = start("again", "calls", CALLS, env=env)
    tap.ok(done.stdout == off.stdout and done.returncode == 0, f"{how}: results are the same, bit for bit", done.stdout[-300:], done.stderr[-300:])
    if how == "auto":  # it depends on how fast this machine is
        continue
    bad = []
    for i, (with_it, without) in enumerate(zip(lines_for(done), plain)):
        saved = number(without, "up_mb") - number(with_it, "up_mb")
        operand = 1.5488  # 440² doubles, or as many bytes
        if i % CALLS >= 2 and (saved < 0.99 * operand or abs(saved - number(with_it, "kept_mb")) > 0.01 * operand):
            bad.append(f"call {i % CALLS + 1}: {with_it}")
    tap.ok(not bad and len(lines_for(done)) == len(plain), f"{how}: from the third call on, less than a hundredth of an operand goes up", *bad)
    if how != "hash":
        events = [line for line in done.stderr.splitlines() if "event=kept" in line]
        tap.ok(len(events) >= 11 * (CALLS - 2), "the log's second level says which operand was kept", len(events))

# ---- Writers ----

ROUNDS = 3000 if LONG else 150
WAYS = "store read thread process_vm_writev fork during mremap munmap madvise O_DIRECT realloc malloc shared mix".split()
for number_of, way in enumerate(WAYS):
    if UNDER_TSAN and way == "during":
        tap.skip("during", "it is a race")
        continue
    done = start("storm", way, ROUNDS, 100 + number_of, env=HASH)
    if done.stdout.startswith("skipped: "):
        tap.skip(way, done.stdout[9:].strip())
        continue
    found = kept(lines_for(done))
    tap.ok(done.returncode == 0 and done.stdout.endswith(" 0 wrong\n") and len(found) > ROUNDS // 2 and not said(done),
           f"{way}: {done.stdout.strip()}, an operand was found {len(found)} times", done.stdout, done.stderr[-300:])

# ---- Several operands, threads, forks, little memory ----

done = start("again", "many", 400, env=HASH)
fine(done, "six matrices, of which one changes now and then")
tap.ok(len(kept(lines_for(done))) > 200, "most calls find theirs", len(kept(lines_for(done))))
done = start("again", "many", 400, env={**HASH, "ACCEL_MEMORY": "4M"})
fine(done, "the same with memory for three")
tap.ok({f["ran"] for f in lines_for(done)} == {"gpu0"} and 20 < len(kept(lines_for(done))) < 300, "no call lacks memory for what is kept; some find theirs",
       len(kept(lines_for(done))), *{f["ran"] + " " + f["why"] for f in lines_for(done)})
done = start("again", "calls", CALLS, env={**HASH, "ACCEL_MEMORY": "1M"})
small = start("again", "calls", CALLS, env={**OFF, "ACCEL_MEMORY": "1M"})
tap.ok(done.returncode == 0 and done.stdout == small.stdout and not kept(lines_for(done)), "operands that do not fit go through in tiles as ever, bit for bit",
       done.stderr[-300:])
# The fourth call finds its matrix, and then no memory for its result; what it has found goes back, too, before it tries again.
done = start("again", "skinny", 3, env={**HASH, "TESTGPU_FAIL": "cuMemAlloc:4,cuMemAlloc:5,cuMemAlloc:6"})
fine(done, "memory that runs out behind a matrix that was found")
tap.ok([f["ran"] for f in lines_for(done)] == ["gpu0"] * 6 and [number(f, "kept_mb") > 0 for f in lines_for(done)][2:4] == [True, False],
       "the call goes on with a new copy", done.stderr[-600:])
done = start("again", "threads", 300 if LONG else 60, env=HASH)
fine(done, "two threads, with one matrix that both read")
tap.ok(len(kept(lines_for(done))) > 60, "they find it", len(kept(lines_for(done))))
done = start("again", "fork", 30 if LONG else 6, env=HASH)
fine(done, "forks: the child and the parent compute with what each has")
tap.ok({f["ran"] for f in lines_for(done)} == {"gpu0", "cpu"} and kept(lines_for(done)), "the child on the CPU", done.stderr[-500:])
for extra in ({"ACCEL_VERIFY": "all"}, {"ACCEL_REQUIRE": "gpu"}):
    done = start("again", "many", 60, env={**HASH, **extra})
    fine(done, f"with {' '.join('='.join(item) for item in extra.items())}")
    tap.ok(kept(lines_for(done)) and all(number(f, "verify") <= 1 for f in lines_for(done)), "operands are found")

# ---- The setting ----

done = start("again", "skinny", 1, env={**ENV, "ACCEL_RESIDENT": "disk"})
tap.ok(len(said(done)) == 1 and "ACCEL_RESIDENT" in said(done)[0] and "off,auto,hash" in said(done)[0], "a wrong value is named, with the right ones", *said(done))
tap.done()
