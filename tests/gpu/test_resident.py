#!/usr/bin/python3 -B
"""Operands that stay on the GPU between calls. The third call on the same operand sends hardly any of it, with the same results, bit for
bit; from the fourth on it is not even read, where the kernel knows that nobody has written to it; a call that would gain if its matrix were there brings
that, once calls like it have missed as much as that costs. Who writes to it between calls is the matter of test_storms.py."""

import re
import tempfile
from pathlib import Path

from lib.calibrated import calibrate_slow_copies
from lib.log import events, lines_for, outcomes, said
from lib.programs import LOG, LONG, TEST_GPU, TESTS, start
from lib.tap import Tap

ENV = {**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0", "OPENBLAS_NUM_THREADS": "1"}
HASH = {**ENV, "ACCEL_RESIDENT": "hash"}
OFF = {**ENV, "ACCEL_RESIDENT": "off"}

folder = tempfile.TemporaryDirectory(prefix="accel-resident-")
MODEL = f"{folder.name}/model"
calibrate_slow_copies(MODEL, folder.name, {"OPENBLAS_NUM_THREADS": "1"})
AUTO = {**ENV, "ACCEL_RESIDENT": "auto", "ACCEL_MODEL": MODEL}

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
for how, env in (("hash", HASH), ("auto", AUTO), ("hash, log level 2", {**HASH, "ACCEL_LOG": "2"})):
    done = start("again", "calls", CALLS, env=env)
    without = start("again", "calls", CALLS, env={**env, "ACCEL_RESIDENT": "off"}) if env is AUTO else off  # rates choose blocks
    tap.ok(done.stdout == without.stdout and done.returncode == 0, f"{how}: results are the same, bit for bit", done.stdout[-300:], done.stderr[-300:])
    bad = []
    for i, (with_it, plainly) in enumerate(zip(lines_for(done), lines_for(without))):
        saved = number(plainly, "up_mb") - number(with_it, "up_mb")
        operand = 1.5488  # 440² doubles, or as many bytes
        if with_it["sym"] in ("dsymm_", "dtrmm_", "dtrsm_"):  # little more than the triangle goes up: A is what is not B
            sent = number(with_it, "up_mb") - int(with_it["m"]) * int(with_it["n"]) * 8e-6
            saved = operand - sent
            if i % CALLS < 2 and sent > 0.63 * operand:
                bad.append(f"call {i % CALLS + 1}: {with_it}")
        if i % CALLS >= 2 and (saved < 0.99 * operand or abs(saved - number(with_it, "kept_mb")) > 0.01 * operand):
            bad.append(f"call {i % CALLS + 1}: {with_it}")
    tap.ok(not bad and len(lines_for(done)) == len(plain), f"{how}: from the third call on, less than a hundredth of an operand goes up, and of a triangle never all of its square", *bad)
    if how.endswith("2"):
        kept_lines = [line for line in done.stderr.splitlines() if "event=kept" in line]
        tap.ok(len(kept_lines) >= 11 * (CALLS - 2), "the log's second level says which operand was kept", len(kept_lines))

# ---- Results ----

for how, env in (("hash", HASH), ("auto", AUTO)):
    done = start("again", "chain", 16, env=env)
    fine(done, f"{how}: products of products")
    seconds = lines_for(done)[1::2]
    result, slim = 1.5488, 0.0704
    sent = [i for i, f in enumerate(seconds) if number(f, "up_mb") > 2 * slim]
    tap.ok(sent == [3, 7, 11, 15] and len(seconds) == 16, f"{how}: a result goes up only where the program has changed it", *sent)
    tap.ok(all(number(f, "kept_mb") >= result for i, f in enumerate(seconds) if i % 4 != 3), f"{how}: else the next call finds it on the GPU, from the first on")
    off = start("again", "chain", 16, env={**env, "ACCEL_RESIDENT": "off"})
    fine(off, "the same without")
    tap.ok(not kept(lines_for(off)), "nothing is kept")
    # Results that nobody reads soon take the memory of those before, not more and more.
    done = start("again", "results", 40, env={**env, "TESTGPU_REPORT": f"{folder.name}/report"})
    fine(done, f"{how}: products that no call reads")
    allocations = int(re.search(r"name=cuMemAlloc\w* n=(\d+)", Path(f"{folder.name}/report").read_text())[1])
    tap.ok(len(lines_for(done)) == 40 and allocations < 28, f"{how}: they are no longer kept after some", allocations)

done = start("again", "large", 3, env=HASH)
fine(done, "a result whose blocks several threads unpack")
tap.ok([number(f, "kept_mb") > 80 for f in lines_for(done)] == 3 * [False, True], "the next call finds it", *lines_for(done))

# ---- Results that come down in blocks, and triangles ----

result, slim = 3.92, 0.224
finds = lambda f: number(f, "kept_mb") >= result and number(f, "up_mb") <= slim
for how, env, room in (("hash", HASH, True), ("auto", AUTO, True), ("little memory", {**HASH, "ACCEL_MEMORY": "16M"}, False),
                       ("tiles", {**HASH, "ACCEL_MEMORY": "5M"}, False)):
    rounds = 8
    for what, calls, readers, changed in (("blocks", 9, (1, 2, 4, 6, 8), (1, 8)), ("triangles", 7, (1, 2, 3, 5, 6), (1, 2, 3))):
        done, without = (start("again", what, rounds, env={**env, **more}) for more in ({}, {"ACCEL_RESIDENT": "off"}))
        fine(done, f"{what}, {how}: results that others read")
        if how == "tiles" and what == "triangles":
            continue  # little memory may change how potrf is divided, and so its rounding
        lines = lines_for(done)[:rounds * calls]
        tap.ok(done.stdout == without.stdout and [f["ran"] for f in lines_for(done)] == [f["ran"] for f in lines_for(without)] and not kept(lines_for(without)),
               "they are the same, bit for bit, as those without", done.stdout[-300:], without.stderr[-300:])
        if not room:
            continue
        # Every fourth time, the program changes what is read.
        missing = [i for i, f in enumerate(lines) if i % calls in readers and not (i // calls % 4 == 3 and i % calls in changed) and not finds(f)]
        tap.ok(not missing and len(lines) == rounds * calls, "the next calls find them on the GPU, and send no more than their own operands", *[lines[i] for i in missing])
        stale = [f for i, f in enumerate(lines) if i // calls % 4 == 3 and i % calls in changed[:1] and finds(f)]
        tap.ok(not stale, "unless the program has changed them", *stale)

for how, env in (("hash", HASH), ("auto", AUTO)):
    done, without = (start("again", "symmetric", 8, env={**env, **more}) for more in ({}, {"ACCEL_RESIDENT": "off"}))
    fine(done, f"{how}: a triangle times the matrix that it is of")
    products = lines_for(done, sym="dsymm_")
    tap.ok(done.stdout == without.stdout and not kept(lines_for(without)), "the same results, bit for bit: the triangle that has stayed is not the whole matrix", done.stdout[-300:])
    tap.ok(how == "auto" or len(products) == 8 and all(abs(number(f, "kept_mb") - result) < 0.01 * result for f in products), "the triangle is found, and nothing else", *products)

# ---- Batches ----

for how, env in (("hash", HASH), ("auto", AUTO)):
    rounds = 8
    done, without = (start("again", "batches", rounds, env={**env, **more}) for more in ({}, {"ACCEL_RESIDENT": "off"}))
    # (The calibration is not of the library that has these batches.)
    tap.ok(done.returncode == 0 and done.stdout.endswith("0 calls wrong\n"), f"{how}: batches", done.stdout[-300:], done.stderr[-500:])
    lines, plainly = lines_for(done), lines_for(without)
    tap.ok(done.stdout == without.stdout and not kept(plainly) and [f["ran"] for f in lines + plainly] == ["gpu0"] * 10 * rounds, "the same results, bit for bit, as those without", done.stdout[-300:])
    # Matrices of the first operand side by side; of the second one, that of the call before, as the
    # first one's have gaps; both; one matrix for all; of the first one, transposed. The first
    # operand changes in the fourth and eighth round, the second one in each, before the first call.
    for i, found in enumerate((3.6864, 3.6864, 1.8432 + 3.6864, 1.5488, 3.19488)):
        expected = [k for k in range(2, rounds) if i == 1 or k % 4 != 3]
        bad = [lines[5 * k + i] for k in expected if abs(number(lines[5 * k + i], "kept_mb") - found) > 0.01 or
               abs(number(plainly[5 * k + i], "up_mb") - number(lines[5 * k + i], "up_mb") - found) > 0.01]
        tap.ok(not bad, f"call {i + 1} of a round: matrices that are side by side, or one for all, stay", *bad)

# ---- Random calls on few matrices ----

for seed in range(1, 7) if LONG else (3, 5):
    for how, env in (("hash", HASH), ("auto", AUTO)):
        seeded = {**env, "AGAIN_SEED": str(seed)}
        done, without = (start("again", "mixed", 400 if LONG else 120, env={**seeded, **more}) for more in ({}, {"ACCEL_RESIDENT": "off"}))
        found = len(kept(lines_for(done)))
        tap.ok(done.returncode == 0 and done.stdout == without.stdout and not kept(lines_for(without)) and "gpu0" in {f["ran"] for f in lines_for(done)} and
               found > (30 if LONG else 10), f"{how}: random calls {seed} have the same results, bit for bit, as without; {found} found an operand on the GPU",
               done.returncode, *[f"{a} | {b}" for a, b in zip(done.stdout.splitlines(), without.stdout.splitlines()) if a != b][:1], done.stderr[-300:])

# ---- LAPACK ----

for how, env in (("hash", HASH), ("auto", AUTO)):
    done, without = (start("again", "factors", 6, env={**env, **more}) for more in ({}, {"ACCEL_RESIDENT": "off"}))
    fine(done, f"{how}: factorisations, and what uses the factors")
    tap.ok(done.stdout == without.stdout and not kept(lines_for(without)), f"{how}: results are the same, bit for bit, as those without", without.stderr[-300:])
    calls = lines_for(done)
    found = ["".join("-+"[number(f, "kept_mb") > 1.5] for f in calls[i::6]) for i in range(6)]
    names = [f["sym"] for f in calls[:6]]
    # The matrix is the same three times, then changes; the factors of LU are a result that stays,
    # those of Cholesky and QR come up as a triangle.
    tap.ok(len(calls) == 36 and [call[2] for call in found] == ["+"] * 6, f"{how}: inputs that come a third time are found", *zip(names, found))
    tap.ok(found[3] == "++++++", f"{how}: getrs finds the factors that getrf has left", found[3])
    tap.ok(all(number(f, "up_mb") < 0.1 for f in calls[12:18]), f"{how}: nothing but right-hand sides goes up", *calls[12:18])

for how, env in (("hash", HASH), ("auto", AUTO)):
    done, without = (start("again", "cholesky", 6, env={**env, **more}) for more in ({}, {"ACCEL_RESIDENT": "off"}))
    fine(done, f"{how}: Cholesky's factors, and those of results")
    lines = lines_for(done)
    tap.ok(done.stdout == without.stdout and len(lines) == 30 and not kept(lines_for(without)), "results are the same, bit for bit, as those without", done.stdout[-300:])
    found = ["".join("-+"[number(f, "kept_mb") > 1.4 and number(f, "up_mb") < 0.5] for f in lines[i::5]) for i in range(5)]
    # The fourth time, the factor changes behind its factorisation, and the imaginary part of a
    # number on the diagonal of the Hermitian result.
    tap.ok([found[i][:4] for i in (1, 4)] == ["+++-"] * 2 and found[2][:3] == "+++", "the factors of a triangle are found from the first time on, and a Hermitian result", *found)

done = start("again", "nan", 4, env=HASH)
fine(done, "a matrix with a NaN that products have left on the GPU")
tap.ok(outcomes(lines_for(done)) == [("gpu0", "forced")] * 4 + [("cpu", "unsupported")] and len(kept(lines_for(done, sym="dgemm_"))) == 2,
       "LAPACK sees the NaN there, too, and the CPU gets it", *lines_for(done))

# ---- A schedule that hides uploads behind kernels ----

calibrate_slow_copies(f"{folder.name}/slow", folder.name, {"OPENBLAS_NUM_THREADS": "1"}, gpu_ms=10)
for how, env, found in (("auto", {**AUTO, "ACCEL_MODEL": f"{folder.name}/slow"}, False), ("auto, fast kernels", AUTO, True),
                        ("hash", {**AUTO, "ACCEL_MODEL": f"{folder.name}/slow", "ACCEL_RESIDENT": "hash"}, True)):
    done = start("again", "vector", 1, env=env)
    fine(done, f"{how}: large products")
    large = lines_for(done, sym="dgemm_", ran="gpu0")
    tap.ok(len(large) == 40 and bool(kept(large)) == found, f"{how}: matrices are {'' if found else 'not '}kept for them", len(kept(large)))

NOW = {**AUTO, "ACCEL_POLICY": "auto", "ACCEL_REQUIRE": "gpu"}  # calls that would gain wait for the GPU's start
untracked = events(start("again", "unread", 4, env=AUTO).stderr, "untracked")

# ---- The kernel's record of writes ----

done = start("again", "unread", 12, env=AUTO)
if untracked:
    tap.skip("what the kernel knows", untracked[0]["reason"])
else:
    fine(done, "from the fourth call on, a matrix that nobody has written to is not read")
    tap.ok("of the matrix have been read\n" in start("again", "unread", 12, env=HASH).stdout, "a digest would read it")
    done = start("again", "vector", 12, env={**AUTO, "ACCEL_POLICY": "auto", "ACCEL_START": "background"})
    fine(done, "products of a watched matrix with a vector")
    vectors = outcomes(lines_for(done, sym="dgemv_"))
    tap.ok(vectors == [("gpu0", "faster")] * 6 + [("cpu", "slower")] * 2 + [("gpu0", "faster")] * 4,
           "they run on the GPU until it changes, which sends nothing up; then the third one, which has not changed for two, is worth an upload", vectors,
           [f["ran"] for f in lines_for(done, sym="dgemm_")], *events(done.stderr, "untracked"))
    sent = ["-+"[number(f, "up_mb") > 1.5] + "-+"[number(f, "kept_mb") > 1.5] for f in lines_for(done, sym="dgemv_", ran="gpu0")]
    tap.ok(sent == ["-+"] * 6 + ["+-"] + ["-+"] * 3, "with the copy that is there", *sent)
    # The same without a log, whose lines need every call: the entry lets calls with a vector
    # through as long as there is such a matrix.
    done = start("again", "vector", 12, env={**AUTO, "ACCEL_POLICY": "auto", "ACCEL_LOG": "0", "TESTGPU_REPORT": f"{folder.name}/report"})
    fine(done, "the same without a log")
    tap.ok(re.search(r"kernels .*gemv=11\b", Path(f"{folder.name}/report").read_text()), "ten run on the GPU, and one in vain: the kernel runs beside the scan that finds the change", Path(f"{folder.name}/report").read_text()[-600:])
    fine(start("again", "vector", 12, env={**AUTO, "ACCEL_POLICY": "auto", "ACCEL_REQUIRE": "gpu"}), "a product that no longer pays is no fallback")
    done = start("again", "vector", 12, env={**AUTO, "ACCEL_REQUIRE": "gpu"})
    fine(done, "products that are for the GPU whatever they cost")
    vectors = lines_for(done, sym="dgemv_")
    tap.ok([f["ran"] for f in vectors] == ["gpu0"] * 12 and [number(f, "kept_mb") > 1.5 for f in vectors[5:8]] == [True, False, True],
           "one that has run in vain runs again there, with the matrix as it is now", *vectors)
    done = start("again", "trusted", 12, env={**AUTO, "TESTGPU_REPORT": f"{folder.name}/trusted"})
    fine(done, "products by few columns, of a matrix that changes")
    products, kernels = lines_for(done, sym="dgemm_"), int(re.search(r"kernels .*gemm=(\d+)", Path(f"{folder.name}/trusted").read_text())[1])
    unchanged = start("again", "trusted", 12, env={**AUTO, "ACCEL_RESIDENT": "off", "TESTGPU_REPORT": f"{folder.name}/trusted-off"})
    each = int(re.search(r"kernels .*gemm=(\d+)", Path(f"{folder.name}/trusted-off").read_text())[1]) // 12
    tap.ok([f["ran"] for f in products] == ["gpu0"] * 24 and [number(f, "kept_mb") > 1.5 for f in products[5:8] + products[17:20]] == [True, False, True] * 2
           and kernels == 13 * each > 13 * 2 and done.stdout == unchanged.stdout,
           "both where one kernel and where several multiply, one runs in vain, beside the scan that finds the change, and then again", kernels, each, *products)
    off = start("again", "vector", 12, env={**AUTO, "ACCEL_POLICY": "auto", "ACCEL_RESIDENT": "hash"})
    tap.ok({f["ran"] for f in lines_for(off, sym="dgemv_")} == {"cpu"}, "by digests alone, they stay on the CPU")

    # ---- Factors of LAPACK that are only read ----
    done, without = (start("again", "solves", 12, env={**AUTO, **more}) for more in ({}, {"ACCEL_RESIDENT": "off"}))
    fine(done, "what uses factors again and again")
    tap.ok(done.stdout == without.stdout, "results are the same, bit for bit, as those without", done.stdout[-300:])
    for name in ("dgetrs_", "dpotrs_", "dormqr_"):
        calls = lines_for(done, sym=name)
        found = "".join("-+"[number(f, "kept_mb") > 1.5 and number(f, "up_mb") < 0.1] for f in calls)
        tap.ok(re.fullmatch("[-+]{2}[+]{4}-[-+][+]{4}", found), f"{name}: the factors are found, except by the call behind a change", found)
        if name != "dormqr_":  # whose estimate has no copies here
            tap.ok(number(calls[5], "est_gpu_ms") < number(calls[7], "est_gpu_ms") - 0.5, f"{name}: the estimate knows that they are there, and when it does not",
                   *[f["est_gpu_ms"] for f in calls])
    # A call that finds no room for a copy of what it reads, goes on in panels: what was to stay has
    # gone.
    done = start("again", "crowded", 3, env={**HASH, "ACCEL_MEMORY": "10M"})
    fine(done, "solutions in panels, and then with few right-hand sides")
    calls = lines_for(done, sym="dpotrs_")
    tap.ok([number(f, "kept_mb") > 1.5 for f in calls] == [False] * 4 + [True] * 2 and number(calls[1], "up_mb") > number(calls[0], "up_mb") + 3,
           "the factor stays when there is room", *calls)
    # The watch of a matrix that products have proved unchanged says nothing of NaNs.
    done, without = (start("again", "lu", 6, env={**AUTO, **more}) for more in ({}, {"ACCEL_RESIDENT": "off"}))
    fine(done, "a matrix that products and solutions read")
    tap.ok(done.stdout == without.stdout and {f["why"] for f in lines_for(done)} == {"forced"}, "results are the same, bit for bit, as those without", done.stdout[-300:])
    found = "".join("-+"[number(f, "kept_mb") > 1.5] for f in lines_for(done))
    tap.ok(found == "--" + "+" * 16, "all of them find it", found)
    fine(start("again", "sealed", 9, env=AUTO), "factors that nobody has written to are not read")
    tap.ok("of the matrix have been read\n" in start("again", "sealed", 9, env=HASH).stdout, "a digest would read them")

    # ---- Calls that bring their matrix ----
    brings = lambda lines: "".join("c" if f["ran"] == "cpu" else "u" if number(f, "up_mb") > 1.5 else "k" if number(f, "kept_mb") > 1.5 else "?" for f in lines)
    for what, count in (("vectors", 8), ("thin", 8)):
        done, without = (start("again", what, count, env={**AUTO, "ACCEL_RESIDENT": resident}) for resident in ("auto", "off"))
        fine(done, f"{what}, all on the GPU")
        tap.ok(brings(lines_for(done)[1:]) == "uukkkkkk" and done.stdout == without.stdout, "the third call sends less than a hundredth of the matrix", *lines_for(done))
    # One upload takes 3.1 ms. So much a call of these gains, if its matrix is there, or half of it.
    for what, cpu_ms, vector_ms, want in (("vectors", 60, 40, r"ccuk{9}"), ("vectors", 60, 8, r"c{3}uk{8}"), ("thin", 60, 10, r"c{3}uk{8}"), ("vectors", 60, 0.2, r"c{12}")):
        model = f"{folder.name}/{what}-{vector_ms}"
        calibrate_slow_copies(model, folder.name, {"OPENBLAS_NUM_THREADS": "1"}, cpu_ms=cpu_ms, vector_ms=vector_ms)
        done = start("again", what, 12, env={**NOW, "ACCEL_MODEL": model})
        fine(done, f"{what} that bring their matrix, {cpu_ms} and {vector_ms} ms")
        tap.ok(re.fullmatch(want, brings(lines_for(done)[1:])), "it goes up once as much has been missed", brings(lines_for(done)), *lines_for(done)[:5])
    quiet = start("again", "vectors", 12, env={**NOW, "ACCEL_LOG": "0", "TESTGPU_REPORT": f"{folder.name}/report"})
    fine(quiet, "the same without a log")
    tap.ok(re.search(r"kernels .*gemv=10\b", Path(f"{folder.name}/report").read_text()), "the third of twelve brings it, so that ten run on the GPU")
    done = start("again", "paced", 300, env={**NOW, "ACCEL_REQUIRE": "", "TESTGPU_START_MS": "100"})
    fine(done, "the GPU is started for them")
    order = brings(lines_for(done, sym="dgemv_"))
    tap.ok(re.fullmatch("c+uk+", order), "and brings the matrix when it is there", order)
    for name, more in (("ACCEL_RESIDENT=hash", {"ACCEL_RESIDENT": "hash"}), ("ACCEL_RESIDENT=off", {"ACCEL_RESIDENT": "off"}), ("ACCEL_START=wait", {"ACCEL_START": "wait"}),
                       ("MPI", {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}),
                       ("seccomp", None)):
        program = ["again"] if more is not None else [str(TESTS / "no_userfaultfd"), str(TESTS / "again")]
        done = start(*program, "vectors", 12, env={**NOW, **(more or {})})
        fine(done, f"vectors with {name}")
        tap.ok(brings(lines_for(done, sym="dgemv_")) == "c" * 12, "no call brings its matrix", brings(lines_for(done)))

    done, without = (start("again", "panels", 12, env={**AUTO, **more}) for more in ({}, {"ACCEL_RESIDENT": "off"}))
    fine(done, "panels of a watched matrix")
    tap.ok(done.stdout == without.stdout, "results are the same, bit for bit, as those without", done.stdout)
    panels = ["-+"[number(f, "kept_mb") > 1.3 and number(f, "up_mb") < 0.1] for f in lines_for(done)[6:]]
    # The fifth time, an element of the matrix changes in a page that the panel has no part of; the
    # ninth time, one of the panel's.
    tap.ok("".join(panels[:9]) == "++++++++-", "they are found within the matrix that is there, as long as they have not changed", *panels)

# ---- Kernels and sandboxes without it ----

FAILS = str(TESTS / "libtracking_fails.so")
for name, program, env, reason in (
    ("seccomp", [str(TESTS / "no_userfaultfd"), str(TESTS / "again")], {}, "userfaultfd: Operation not permitted"),
    ("an older kernel", ["again"], {"TRACKING_FAILS": "api:1"}, "UFFDIO_API with UFFD_FEATURE_WP_ASYNC (Linux 6.7): Invalid argument"),
    ("no userfaultfd", ["again"], {"TRACKING_FAILS": "open:1"}, "userfaultfd: Function not implemented"),
    ("no PAGEMAP_SCAN", ["again"], {"TRACKING_FAILS": "scan:1+"}, "PAGEMAP_SCAN: Inappropriate ioctl for device"),
):
    preload = {"LD_PRELOAD": f"{FAILS}:{AUTO['LD_PRELOAD']}"} if env else {}
    done = start(*program, "many", 60, env={**AUTO, **env, **preload})
    fine(done, f"{name}: six matrices, of which one changes now and then")
    lines_there = events(done.stderr, "untracked")
    if not untracked:
        tap.ok([line["reason"] for line in lines_there] == [reason], "one line of the log says why the kernel's record is not used", *lines_there)
    tap.ok(len(kept(lines_for(done))) > 20, "digests find the matrices", len(kept(lines_for(done))))

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
# The fourth call finds its matrix, and then no memory for its result; what it has found goes back,
# too, before it tries again.
with tempfile.TemporaryDirectory() as folder:
    trace = Path(folder, "trace")
    said_there = start("again", "skinny", 3, env={**HASH, "ACCEL_LOG": "2", "TESTGPU_TRACE": str(trace)}).stderr
    of_lanes = trace.read_text().count("cuMemAlloc_v2(") - said_there.count("event=allocate")  # workspaces, which no call's record has
before = of_lanes + said_there.split("kept_mb=")[0].count("event=allocate")
done = start("again", "skinny", 3, env={**HASH, "TESTGPU_FAIL": ",".join(f"cuMemAlloc:{before + i}" for i in (1, 2, 3))})
fine(done, "memory that runs out behind a matrix that was found")
tap.ok([f["ran"] for f in lines_for(done)] == ["gpu0"] * 6 and [number(f, "kept_mb") > 0 for f in lines_for(done)][2:4] == [True, False],
       "the call goes on with a new copy", done.stderr[-600:])
done = start("again", "threads", 300 if LONG else 30, env=HASH)
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
tap.ok(len(said(done)) == 1 and "ACCEL_RESIDENT" in said(done)[0] and "auto,hash,off" in said(done)[0], "a wrong value is named, with the right ones", *said(done))
tap.done()
