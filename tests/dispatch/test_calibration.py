#!/usr/bin/python3 -B
"""The calibration's file: decisions follow it; what cannot be used is named once; ACCEL_LEARN=1 writes it, and nothing else does."""

import os
import re
import tempfile
from pathlib import Path

from lib.calibrated import AUTO, calibrate, gpu_lines, keys, lines, put
from lib.log import lines_for, outcomes, said
from lib.programs import BUILD, LOG, VENV_PYTHON, right, start
from lib.tap import Tap

tap = Tap()
WAIT = {**AUTO, "TESTGPU_DELAY_US": "0", "ACCEL_START": "wait"}
HEART = "/usr/share/doc/liblinear-tools/examples/heart_scale"
STEPS = ["dgemm:500:2", "solve:400:2", "other:500:1"]


with tempfile.TemporaryDirectory() as folder:
    model = folder + "/model"
    own = {"XDG_CACHE_HOME": folder + "/cache"}
    known = keys(folder)

    # ---- Decisions follow it ----

    for cpu_ms, gpu_ms, where in (1000, 1, ("gpu0", "faster")), (100, 1000, ("cpu", "slower")):
        calibrate(model, known, cpu_ms, gpu_ms)
        for mode, env in {"wait": WAIT, "background": {**WAIT, "ACCEL_START": "background"}}.items():
            steps = STEPS if mode == "wait" else ["dgemm:500:1", "started", *STEPS]
            done = start("steps", *steps, env={**env, **LOG, "ACCEL_MODEL": model})
            seen = outcomes(lines_for(done))
            tap.ok(right(done) and set(seen[-5:]) == {where} and not said(done),
                   f"CPU {cpu_ms} ms, GPU {gpu_ms} ms, {mode}: {where}", seen, done.stdout, said(done))
    estimates = {(f["est_cpu_ms"], f["est_gpu_ms"]) for f in lines_for(done, sym="dgemm_", m="500")[1:]}
    tap.ok(estimates == {("100", "1000")}, "its times are the estimates", estimates)
    Path(folder, "cache/accel").mkdir(parents=True)
    calibrate(folder + "/cache/accel/model", known, 1, 1000)
    done = start("steps", *STEPS, env={**WAIT, **LOG, **own})
    tap.ok({f["why"] for f in lines_for(done)} == {"slower"} and not said(done), "without ACCEL_MODEL, that of the cache folder", done.stderr)
    os.unlink(folder + "/cache/accel/model")

    # Times of libsvm are those of any library that has been measured: programs carry copies of it.
    cpu = re.match(r'\[cpu ".*?"', known["blas"]).group()
    for library, near in ("libsvm.so.9 1", 500), ("other", 5):
        put(model, {f'{cpu} threads=1 library="{library}"]': f"svm_train 270x13x2x3510:{near}\n", known["gpu"]: gpu_lines(1)})
        done = start("/usr/bin/svm-train", "-q", HEART, f"{folder}/svm", env={**WAIT, **LOG, "ACCEL_MODEL": model})
        line, = lines_for(done, sym="svm_train") or [{}]
        tap.ok(abs(float(line.get("est_cpu_ms", 0)) / near - 1) < 0.1, f"svm_train, measured in {library}: {near} ms", line, done.stderr)

    # The device's trainings likewise, by what is measured there.
    trainings = {"svm_train": (["svm-train"], "270x13x2x3378"), "train": (["liblinear-train", "-s", "0"], "270x13x3378x2")}
    for routine, (program, size) in trainings.items():
        for near in 300, 7000:
            put(model, {f'{cpu} threads=1 library="other"]': f"{routine} {size}:1000\n", known["gpu"]: gpu_lines(1) + f"{routine} {size}:{near}\n"})
            done = start(f"/usr/bin/{program[0]}", *program[1:], "-q", HEART, f"{folder}/model.of", env={**WAIT, **LOG, "ACCEL_MODEL": model})
            line, = lines_for(done, sym=routine) or [{}]
            ran = ("gpu0", "faster") if near < 1000 else ("cpu", "slower")
            tap.ok(abs(float(line.get("est_gpu_ms", 0)) / near - 1) < 0.1 and (line["ran"], line["why"]) == ran, f"{routine}, measured on the GPU: {near} ms", line, done.stderr)

    # A cross-validation takes as many trainings' time, by what is measured of these.
    PYPI = sorted(BUILD.glob("liblinear/*"))[-1]
    CROSS = f"from liblinear.liblinearutil import *; train(*svm_read_problem({HEART!r}), '-s 0 -v 3 -q')"
    for name, routine, call in (("svm_cross_validation", "svm_train 270x13x2x3378", ["/usr/bin/svm-train", "-q", "-v", "3", HEART]),
                                ("cross_validation", "train 270x13x3378x2", [VENV_PYTHON, "-B", "-c", CROSS])):
        times = []
        for ms in 1000, 20000:
            put(model, {f'{cpu} threads=1 library="other"]': f"{routine}:{ms}\n", known["gpu"]: gpu_lines(1) + f"{routine}:{10 * ms}\n"})
            done = start(*call, env={**WAIT, **LOG, "ACCEL_MODEL": model, "PYTHONPATH": PYPI})
            line, = lines_for(done, sym=name) or [{}]
            times.append([float(line.get(f"est_{side}_ms", 0)) for side in ("cpu", "gpu")])
        tap.ok(all(few > 500 and abs(many / few / 20 - 1) < 0.1 for few, many in zip(*times)) and times[0][1] > 5 * times[0][0], f"{name}: by trainings that are measured", times, done.stderr)

    # A training takes time for each element, and for each kernel value or row besides: what is
    # measured with many features tells both.
    few = Path(folder, "few")
    few.write_text("".join(f"{i % 2} 1:{i % 17 / 17} 2:{i * i % 23 / 23}\n" for i in range(1000)))
    shapes = {"svm_train": [(200, 20), (200, 200), (400, 50), (400, 400), (800, 20), (800, 100), (1600, 400), (3200, 100)],
              "train": [(500, 10), (500, 100), (2000, 200), (5000, 20), (20000, 50), (100000, 10), (50000, 100)]}
    times = {"svm_train": lambda rows, features, each, besides: 1e-6 * rows * rows * (each * features + besides),
             "train": lambda rows, features, each, besides: 2e-5 * rows * (each * features + besides)}
    for routine, program in ("svm_train", ["svm-train"]), ("train", ["liblinear-train", "-s", "0"]):
        for each, besides in (0.5, 3), (0.5, 30), (5, 3):
            measured = " ".join(f"{n}x{k}x" + (f"2x{n * k}" if routine == "svm_train" else f"{n * k}x2") + f":{times[routine](n, k, each, besides):.6f}"
                                for n, k in shapes[routine])
            put(model, {f'{cpu} threads=1 library="a library"]': f"{routine} {measured}\n", known["gpu"]: gpu_lines(1)})
            done = start(f"/usr/bin/{program[0]}", *program[1:], "-q", few, f"{folder}/few.model", env={**WAIT, **LOG, "ACCEL_MODEL": model, "ACCEL_POLICY": "cpu"})
            line, = lines_for(done, sym=routine) or [{}]
            ratio = float(line.get("est_cpu_ms", 0)) / times[routine](1000, 2, each, besides)
            tap.ok(0.75 < ratio < 1.33, f"{routine}: two features, {each} ns for each element and {besides} besides", ratio, line, done.stderr)

    # Without a calibration, what the table of docs/costs.md measured: a kernel value of two
    # features takes 10 to 20 ns, and a third of the rows are support vectors; a row in each of 20
    # directions takes 5 ns, and its one element 0.9 to 7 on one thread.
    one = Path(folder, "one")
    one.write_text("".join(f"{i % 2} 1:{i % 17 / 17 + 1}\n" for i in range(1000)))
    for program, data, least, most in (["svm-train"], few, 3.3, 6.7), (["liblinear-train", "-s", "0"], one, 20000 * 5.9e-6, 20000 * 12e-6):
        done = start(f"/usr/bin/{program[0]}", *program[1:], "-q", data, f"{folder}/few.model",
                     env={**WAIT, **LOG, **own, "ACCEL_POLICY": "cpu", "OPENBLAS_NUM_THREADS": "1"})
        line, = lines_for(done) or [{}]
        tap.ok(least <= float(line.get("est_cpu_ms", 0)) <= most, f"{program[0]} without a calibration: from {least:.3g} to {most:.3g} ms", line, done.stderr)

    # ---- What cannot be used ----

    calibrate(model, known, 1, 1000)
    good = Path(model).read_bytes()
    foreign = {
        "of another CPU": {known["blas"].replace(cpu, '[cpu "Other"'): lines(1), known["gpu"]: lines(1000)},
        "of another library": {known["blas"].replace("library=", "library=other"): lines(1), known["gpu"]: lines(1000)},
        "of another GPU": {known["blas"]: lines(1), known["lapack"]: lines(1), '[gpu "Other" cuda=13.0 cublas=130100]': lines(1000)},
        "of another driver": {known["blas"]: lines(1000), known["lapack"]: lines(1000), known["gpu"].replace("cuda=13", "cuda=12"): lines(1)},
        "of nothing that is here": {'[cpu "Other" threads=2 library="x 1"]': lines(1), '[gpu "Other" cuda=13.0 cublas=130100]': lines(1)},
    }

    def said_once(name, env, line="the calibration "):
        done = start("steps", *STEPS, "threads:4:300:2", env={**WAIT, **env})
        other = [line for line in done.stderr.splitlines() if not line.startswith("accel ")]
        tap.ok(right(done) and len(other) == 1 and other[0].startswith("accel: " + line), name, done.stdout, *other)

    for name, sections in foreign.items():
        put(model, sections)
        if name in ("of another GPU", "of another driver"):  # the GPU is reached
            said_once(f"{name}: named once", {"ACCEL_MODEL": model, "ACCEL_GPU": "dgemm"})
        else:  # a library that nobody has calibrated is named in a log alone
            said_once(f"{name}: named once", {"ACCEL_MODEL": model, **(LOG if name == "of another library" else {})})
    for name, text in {"version": good.replace(b"accel-model 1", b"accel-model 2"), "text": b"accel\n", "binary": bytes(range(256)),
                       "checksum": good.replace(b":1.", b":2."), "nothing": b""}.items():
        Path(model).write_bytes(text)
        said_once(f"another {name}: named once", {"ACCEL_MODEL": model})
    os.unlink(model)
    os.mkdir(model)
    said_once("a folder: named once", {"ACCEL_MODEL": model})
    os.rmdir(model)
    os.mkfifo(model)
    said_once("a FIFO is not waited for: named once", {"ACCEL_MODEL": model})
    os.unlink(model)
    said_once("missing: named once", {"ACCEL_MODEL": model}, "no calibration at ")
    done = start("steps", *STEPS, env={**WAIT, **own})
    tap.ok(right(done) and done.stderr == "", "no file, and none asked for: nothing is said", done.stderr)

    # Every byte changed, every length.
    put(model, {known["blas"]: "dgemm 100x100x100:2 1000x1000x1000:30\n", known["gpu"]: "up_gbps=9\ndown_gbps=8.5\ndgemm 64x64x64:0.1\n"})
    with open(folder + "/stderr", "w+") as stderr:
        done = start("damage", model, env={**WAIT, "ACCEL_START": "background", "ACCEL_MODEL": model}, stderr=stderr)
    tap.ok(done.returncode == 0 and re.search(r"^[2-9]\d\d files, 0 wrong$", done.stdout, re.M), "damaged in each byte: named, never a crash",
           done.stdout)

    # ---- Copies and kernels that overlap ----

    # 1.6 ms up, 1 ms for the kernel, 0.8 ms down: more than the CPU's 3 ms together, and less by a
    # schedule. A call of less than 4 MB has no schedule: 0.24 ms up, 0.2 for the kernel, 0.12 down
    # stay a sum beside the CPU's 0.5. One that gains much has the GPU started.
    orders = {2000: (1000, 8), 1000: (3, 1), 390: (0.5, 0.2)}
    cpu, gpu = ("dgemm " + " ".join(f"{n}x{n}x{n}:{ms[i]}" for n, ms in orders.items()) + "\n" for i in (0, 1))
    put(model, {known["blas"]: cpu, known["gpu"]: f"up_gbps=10\ndown_gbps=10\nkernels_ms=0.001\n{gpu}"})
    done = start("steps", "dgemm:2000:1", "dgemm:1000:3", "dgemm:390:3", env={**WAIT, **LOG, "ACCEL_MODEL": model})
    found = {n: [(f["why"], float(f["est_gpu_ms"])) for f in lines_for(done, n=str(n))] for n in orders}
    tap.ok(right(done) and len(found[1000]) == 3 and all(why == "faster" and 1.6 < ms < 2.85 for why, ms in found[1000]),
           "a call whose copies and kernels pay because they overlap", found[1000], said(done))
    tap.ok(len(found[390]) == 3 and all(why == "slower" and 0.5 < ms < 0.7 for why, ms in found[390]), "and one that is too small to", found[390])

    # Blocks of rows of a matrix are short columns: what these take as measured counts, 2 ms each
    # here, and none if none are short.
    cpu, gpu = ("dgemm " + " ".join(f"{n}x{n}x{n}:{ms}" for n, ms in sizes.items()) + "\n" for sizes in ({2000: 1000, 1000: 300}, {2000: 8, 1000: 1}))
    est = {}
    for name, values in ("known", ""), ("none", "short_up_bytes=1\nshort_down_bytes=1\n"), ("up", "short_up_bytes=65536\nshort_up_ms=2\n"), ("down", "short_down_bytes=65536\nshort_down_ms=2\n"):
        put(model, {known["blas"]: cpu, known["gpu"]: f"up_gbps=10\ndown_gbps=10\nkernels_ms=0.001\n{values}{gpu}"})
        done = start("steps", "dgemm:2000:1", env={**WAIT, **LOG, "ACCEL_MODEL": model})
        est[name] = float(lines_for(done, n="2000")[0]["est_gpu_ms"])
    tap.ok(est["none"] <= est["known"] <= 1.05 * est["none"] and all(1.02 * est["none"] < est[way] for way in ("up", "down")), "what short columns take is in estimates", est)

    # So does the pace of its blocks, beside that of the call whose time was measured: faster ones
    # are taken, and none that are slower. That of another type counts nothing.
    for name, kind, pace in ("slow", "d", 0.5), ("fast", "d", 2), ("other", "s", 0.5):
        paces = " ".join(f"{rows}:{1 if rows == 2048 else pace}" for rows in range(640, 4097, 128))
        put(model, {known["blas"]: cpu, known["gpu"]: f"up_gbps=1000\ndown_gbps=1000\nkernels_ms=0.001\npace_{kind} {paces}\n{gpu}"})
        done = start("steps", "dgemm:2000:1", env={**WAIT, **LOG, "ACCEL_MODEL": model})
        est[name] = float(lines_for(done, n="2000")[0]["est_gpu_ms"])
    tap.ok(0.99 * est["other"] < est["slow"] < 1.2 * est["other"] and est["fast"] < 0.8 * est["other"], "how fast blocks are multiplied is in estimates", est)

    # ---- ACCEL_LEARN ----

    before = {str(p) for p in Path(folder).rglob("*")}
    start("steps", *STEPS, "dgemm:500:20", "sleep:500", "dgemm:500:5", env={**WAIT, **own, "ACCEL_START": "background"})
    tap.ok({str(p) for p in Path(folder).rglob("*")} == before, "without it nothing is written",
           *({str(p) for p in Path(folder).rglob("*")} - before))

    learned = folder + "/new/folder/model"
    # Of calls whose operands are on the GPU already, nothing is learned.
    env = {**AUTO, "ACCEL_MODEL": learned, "TESTGPU_START_MS": "10", "ACCEL_RESIDENT": "off"}
    other = {'[cpu "Other" threads=2 library="x 1"]': "dgemm 10x10x10:1\n"}
    for times in ("once", "again"):
        done = start("steps", "solve:500:2", "dgemm:500:200", "sleep:700", "dgemm:500:8", "solve:400:8", "dgemm:20:1", env={**env, "ACCEL_LEARN": "1", **LOG})
        text = Path(learned).read_text()
        tap.ok(right(done) and re.search(r"^checksum=", text, re.M) and not said(done),
               f"written at exit, {times}", done.stdout, said(done))
        tap.ok(all(f"\n{known[k]}\n" in text for k in known) and text.count("\n[") == 3 and
               all(re.fullmatch(r"accel-model 1|\[.*\]|\w+=[\w.]+|[a-z]+( \d+(x\d+)*:\d+(\.\d+)?)+", line) for line in text.splitlines()),
               f"with what the calls took, {times}", text)
    # Copies and kernels of a product of order 500 overlap: by how much it takes longer than its
    # schedule says is learned, not its kernel.
    section = text.split(known["gpu"])[1].split("\n[")[0]
    ratio = re.search(r"^schedule_ratio=([\d.]+)$", section, re.M)
    tap.ok(ratio and float(ratio.group(1)) not in (0, 1) and not re.search(r"^dgemm .*\b500x500x500:", section, re.M),
           "with how much longer calls take on the GPU than their schedules say", section)
    tap.ok(not re.search("^(up_gbps|kernels_ms|solver_ms|calibrated)=", section, re.M), "and with no built-in figures, which would count as measured", section)
    tap.ok("event=gpu " in done.stderr and "figures=measured" not in done.stderr.split("event=gpu ")[1].splitlines()[0],
           "nor does the GPU's line say that they are of a calibration", done.stderr)
    done = start("steps", "dgemm:500:2", "solve:400:1", env={**env, **LOG, "ACCEL_START": "wait"})
    tap.ok(right(done) and not said(done), "a second process uses it", done.stdout, said(done))
    found = re.search(re.escape(known["blas"]) + r"\n(?:.*\n)*?dgemm .*\b500x500x500:([\d.]+)", Path(learned).read_text())
    est = float(lines_for(done, sym="dgemm_")[0]["est_cpu_ms"])
    tap.ok(found and abs(est / float(found.group(1)) - 1) < 0.01, "its figures are the estimates", est, Path(learned).read_text())
    tap.ok(Path(learned).read_text() == text, "and leaves it as it is")
    put(learned, {**{known[k]: lines(3) for k in known}, **other})
    start("steps", "dgemm:500:4", env={**env, "ACCEL_LEARN": "1"})
    text = Path(learned).read_text()
    tap.ok("\n".join(next(iter(other.items()))) in text and text.count("\n[") == 4 and "dgemm" in text.split(known["blas"])[1].splitlines()[1],
           "what it does not know better stays", text)
    tap.ok(not [p for p in Path(learned).parent.iterdir() if p.name != "model"], "no draft is left")
    values = "pace_d 640:0.9 768:1.1\nshort_up_bytes=6000\nshort_up_ms=0.00006525\nshort_down_bytes=1\ngain_emulated=5\nsolve_d_blas_gbps=70\nsolve_d_blas_row_ms=0.0004\nsolve_d_own_gbps=300\nsolve_d_own_row_ms=0.0002\nsolve_d_own_nrhs=1024\n"
    put(learned, {known["blas"]: lines(60), known["lapack"]: lines(60), known["gpu"]: f"up_gbps=11\ndown_gbps=11\n{values}{lines(0.5)}"})
    start("steps", "solve:500:2", "dgemm:500:20", "sleep:500", "dgemm:500:8", env={**env, "ACCEL_LEARN": "1"})
    section = Path(learned).read_text().split(known["gpu"])[1].split("\n[")[0]
    tap.ok("\nschedule_ratio=" in section and all(f"\n{value}\n" in section for value in values.splitlines()), "what calibrations alone measure stays when the GPU's section is written anew", section)

    # Nobody may make a folder in /sys: its system says so, not that the folder is not there.
    for name, env_of in (("a home that cannot be written", {"HOME": "/sys"}), ("no home", {"HOME": ""})):
        done = start("steps", "dgemm:500:12", "end:exit", env={**{k: v for k, v in env.items() if k != "ACCEL_MODEL"}, **env_of, "ACCEL_LEARN": "1"})
        told = [line for line in said(done) if "is not kept" in line]
        wanted = ("accel: what was learned is not kept: no file to write: ACCEL_MODEL, XDG_CACHE_HOME and HOME name none$" if not env_of["HOME"] else
                  r"accel: what was learned is not kept in /sys/\.cache/accel/model: its folder cannot be made \((Read-only file system|Operation not permitted|Permission denied)\)$")
        tap.ok(done.returncode == 7 and len(told) == 1 and re.match(wanted, told[0]), f"{name}: said once, with the reason", done.returncode, done.stderr)

    for name, path in {"a folder that is a file": model + "/model", "no folder": "/proc/none/model"}.items():
        Path(model).touch()
        done = start("steps", "dgemm:500:12", "end:exit", env={**env, "ACCEL_MODEL": path, "ACCEL_LEARN": "1"})
        tap.ok(done.returncode == 7 and done.stderr.count("\n") == len(said(done)) and
               sum("is not kept" in line for line in said(done)) == 1, f"{name}: said once, the exit status stays", done.returncode, done.stderr)
tap.done()
