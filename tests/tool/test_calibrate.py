#!/usr/bin/python3 -B
"""accel calibrate: the file has a line for each routine that a library has or the GPU can run, with possible numbers; without a
GPU, with a GPU that fails, with libraries of other names and integers; wrong options are refused. With TEST_LONG=1 each algorithm for singular
values is inaccurate in turn."""

import ctypes
import os
import re
import tempfile
import time
from pathlib import Path

from lib.programs import BUILD, LONG, NO_GPU, SHIM, start
from lib.table import routine_table
from lib.tap import Tap

SYSTEM = Path("/usr/lib/x86_64-linux-gnu")
SITE = next((BUILD / "venv/lib").glob("python3*/site-packages"))
ACCEL = str(BUILD / "accel")
HIDDEN = {"CUDA_VISIBLE_DEVICES": NO_GPU["CUDA_VISIBLE_DEVICES"]}
GPU = {"ACCEL_CUDA_DIR": str(BUILD / "testgpu"), "LD_LIBRARY_PATH": str(BUILD / "testgpu"), "TESTGPU_DELAY_US": "0"}

# The routines that are measured: see workload_is_for().
BLAS = routine_table("ROUTINE")
LAPACK = routine_table("LAPACK")
LEVEL2 = set("gemv symv hemv trmv trsv ger gerc syr her syr2 her2".split())
ROUTINES = {r for r, op in BLAS.items() if op not in LEVEL2}
ROUTINES |= {r for r in LAPACK if not re.fullmatch(r".(gelsy|laswp|lacpy|gecon|pocon)", r)}

tap = Tap()


def read(path):
    """The sections of a file: header -> {name: rest of the line}; None if it is no calibration."""
    text = Path(path).read_text()
    head, *lines = text.splitlines()
    if head != "accel-model 1" or not lines[-1].startswith("checksum="):
        return None
    sections = {}
    for line in lines[:-1]:
        if line.startswith("["):
            here = sections[line] = {}
        else:
            name, rest = re.split("[= ]", line, maxsplit=1)
            here[name] = rest
    return sections


def svd(section):
    """The algorithms for singular values: "d_vectors" -> {order: algorithm}."""
    return {name[4:]: dict(entry.split(":") for entry in section[name].split(" ")) for name in section if name.startswith("svd_")}


def routines(section):
    return {name for name in section if name != "calibrated" and not name.endswith(("_gbps", "_ms", "_ratio")) and not name.startswith(("svd_", "gain_", "piece_", "short_", "solve_", "pace_"))}


def wrong_lines(section):
    """Lines with anything but sizes and positive numbers, or with the same sizes twice."""
    wrong = []
    for name in routines(section):
        calls = [call.split(":") for call in section[name].split(" ")]
        sizes = [size for size, *_ in calls]
        fits = all(re.fullmatch(r"\d+(x\d+)*", size) and len(ms) == 1 and re.fullmatch(r"\d+(\.\d+)?", ms[0]) and
                   float(ms[0]) > 0 for size, *ms in calls)
        if not fits or len(set(sizes)) != len(sizes):
            wrong.append(f"{name} {section[name]}")
    return wrong


def calibrate(folder, *arguments, env, seconds=3):
    began = time.monotonic()
    done = start(ACCEL, "calibrate", f"--seconds={seconds}", *arguments, env={"HOME": folder, **env})
    # Other tests may run beside this one.
    done.stderr = re.sub(r"(?m)^accel: the machine is busy: .*\n", "", done.stderr)
    return done, time.monotonic() - began


def lacking(paths):
    """The routines that libraries lack under the plain Fortran names."""
    libraries = [ctypes.CDLL(str(path)) for path in paths]
    return {r for r in ROUTINES if not any(hasattr(library, r + "_") for library in libraries)}


with tempfile.TemporaryDirectory() as folder:
    model = Path(folder, ".cache/accel/model")

    # Test GPU, the usual libraries, the usual place.
    began_at = int(time.time())
    done, took = calibrate(folder, env=GPU)
    tap.ok(done.returncode == 0 and not done.stderr, "test GPU: runs", done.returncode, done.stderr)
    # On a busy machine the smallest shapes alone may take much longer than the given time.
    tap.ok(took < 250, "test GPU: takes the given time, or not much longer", took)
    found = read(model) or {}
    cpu, gpu = ([h for h in found if h.startswith(f"[{side} ")] for side in ("cpu", "gpu"))
    tap.ok(len(gpu) == 1 and re.fullmatch(r'\[gpu "[^"]+" cuda=\d+\.\d+ cublas=\d{6}\]', gpu[0]), "test GPU: one section", *found)
    tap.ok(cpu and all(re.fullmatch(r'\[cpu "[^"]+" threads=(2 library="lib(blas|lapack)|\d library="lib(svm|linear))\.so\S* \d+"\]', h) for h in cpu),
           "libraries: sections", *found)
    for name, routine, first in ("libsvm", "svm_train", "200x20x2x4000:"), ("liblinear", "train", "500x10x5000x2:"):
        ml, = [h for h in cpu if name in h] or [None]
        cpu = [h for h in cpu if h != ml]
        tap.ok(ml and routines(found[ml]) == {routine} and found[ml][routine].startswith(first), f"{name}: a section with trainings", ml, found.get(ml))
    section = found[gpu[0]] if gpu else {}
    tap.ok(routines(section) == ROUTINES | {"svm_train", "train"}, "test GPU: a line for each routine and for trainings",
           *(routines(section) ^ ROUTINES))
    tap.ok(section.get("svm_train", "").startswith("200x20x2x4000:") and section.get("train", "").startswith("500x10x5000x2:"),
           "test GPU: trainings of the sizes that are measured on the CPU", section.get("svm_train"), section.get("train"))
    up, down = (float(section.get(rate, 0)) for rate in ("up_gbps", "down_gbps"))
    tap.ok(up > 0 and down > 0, "test GPU: rates of copies", (up, down), done.stdout)
    tap.ok(section.get("piece_kb") in ("256", "512", "1024", "2048") and f"in pieces of {section['piece_kb']} KiB" in done.stdout, "test GPU: the pieces of copies",
           section.get("piece_kb"), done.stdout)
    for way, said in ("up", "to the GPU"), ("down", "back"):
        length, ms = (float(section.get(f"short_{way}_{what}", 0)) for what in ("bytes", "ms"))
        line = re.search(rf"columns of a matrix of less than (\S+) KB take up to (\S+) ns more each {said}$", done.stdout, re.M)
        tap.ok(1 <= length <= 65536 and (abs(float(line[1]) * 1e3 / length - 1) < 0.01 and abs(float(line[2]) * 1e-6 / ms - 1) < 0.01 if ms > 0 else length == 1 and not line),
               f"test GPU: what short columns take {way}", length, ms, done.stdout)
    tap.ok("place_gbps" not in section and "in place" not in done.stdout, "test GPU: none of reads in place, which it cannot do")
    first = {name: float(section.get(name, 0)) for name in ("kernels_ms", "solver_ms")}
    tap.ok(all(ms > 0 for ms in first.values()) and "first calls: " in done.stdout, "test GPU: what first calls load", first, done.stdout)
    solves = {name: float(value) for name, value in section.items() if name.startswith("solve_")}
    tap.ok(all(solves.get(f"solve_{t}_blas_{what}", 0) > 0 for t in "sd" for what in ("gbps", "row_ms")), "test GPU: how fast its BLAS solves by triangles", solves)
    tap.ok(not [name for name in section if name.startswith("pace_")] and " rows are multiplied " not in done.stdout,
           "test GPU: how fast blocks of many rows are multiplied is not measured where they take long", done.stdout)
    tap.ok(len(solves) == 4, "test GPU: the kernel of our own, which it emulates, is far too slow to be used", solves)
    gains = {name: float(section.get(f"gain_{name}", 0)) for name in ("emulated", "tf32", "bf16x9")}
    said = re.search(r"products: emulated is (\S+) times as fast as native", done.stdout)
    tap.ok(gains["emulated"] > 0 and gains["tf32"] > 0 and not gains["bf16x9"] and said and abs(float(said[1]) / gains["emulated"] - 1) < 0.01,
           "test GPU: products in the precisions that it has", gains, done.stdout)
    there = [name for h in cpu for name in routines(found[h])]
    wanted = ROUTINES - lacking(["libblas.so.3", "liblapack.so.3"])
    tap.ok(sorted(there) == sorted(wanted), "libraries: one line for each routine", *(set(there) ^ wanted))
    for header, section in found.items():
        tap.ok(not wrong_lines(section), f"{header}: sizes and times", *wrong_lines(section))
        tap.ok(began_at <= int(section.get("calibrated", 0)) <= time.time(), f"{header}: when it was measured", section.get("calibrated"))
    tap.ok(str(model) in done.stdout and all(h in done.stdout for h in found) and "copies: " in done.stdout and
           re.search(r"dgemm of order \d+ on the CPU: [\d.]+ Gflop/s\ndgemm of order \d+ on the GPU: [\d.]+ Gflop/s\n"
                     r"dgemm is faster on the [CG]PU ", done.stdout), "test GPU: reports the file, its sections, rates", done.stdout)

    # No GPU: the former sections stay.
    before = read(model)
    done, _ = calibrate(folder, env=HIDDEN, seconds=1)
    tap.ok(done.returncode == 0 and not done.stderr and "no GPU was measured: " in done.stdout, "no GPU: runs, and says why", done.stdout,
           done.stderr)
    after = read(model)
    tap.ok(after and gpu and after.keys() == before.keys() and after[gpu[0]] == before[gpu[0]], "no GPU: the GPU's section stays")

    # First calls: the test GPU takes a given time for each function, and for a library.
    slow = str(Path(folder, "slow"))
    done, _ = calibrate(folder, "--output", slow, env={**GPU, "TESTGPU_FIRST_MS": "40", "TESTGPU_LOAD_MS": "300", "TESTGPU_ATTRIBUTES": "100=1"}, seconds=1)
    found = next((s for h, s in (read(slow) or {}).items() if h.startswith("[gpu ")), {})
    cold = {name: float(found.get(name, 0)) for name in first}
    tap.ok(float(found.get("place_gbps", 0)) > 0 and "operands in host memory: kernels read " in done.stdout, "a GPU with the host's page tables: reads in place",
           found.get("place_gbps"), done.stdout)
    tap.ok(cold["kernels_ms"] > 15 and cold["solver_ms"] > 200, "first calls that load much", first, cold)

    # Rates of precisions: the test GPU's integers are four times as fast as its double precision,
    # its TF32 eight times as its single.
    rated = str(Path(folder, "rated"))
    done, _ = calibrate(folder, "--output", rated, env={**GPU, "TESTGPU_GFLOPS": "1", "TESTGPU_DATA": "0", "TESTGPU_MEMORY": "2G"}, seconds=1)
    found = next((s for h, s in (read(rated) or {}).items() if h.startswith("[gpu ")), {})
    gains = {name: float(found.get(f"gain_{name}", 0)) for name in ("emulated", "tf32")}
    tap.ok(all(gain > 1 for gain in gains.values()), "precisions that are faster", gains, done.stderr)

    # The pace of blocks of some numbers of rows, of a test GPU whose kernels take the time of a
    # fast one's. Where the machine has other work, there may be no time for them: then once more,
    # with more time.
    for seconds in 1, 1, 1, 15, 30, 60:
        paced = str(Path(folder, "paced"))
        done, _ = calibrate(folder, "--output", paced, env={**GPU, "TESTGPU_GFLOPS": "60000", "TESTGPU_HALF": "128", "TESTGPU_DATA": "0", "TESTGPU_MEMORY": "2G"}, seconds=seconds)
        found = next((s for h, s in (read(paced) or {}).items() if h.startswith("[gpu ")), {})
        if {"pace_s", "pace_d"} <= found.keys():
            break
    for kind in "sd":
        paces = {int(rows): float(pace) for rows, pace in (entry.split(":") for entry in found.get(f"pace_{kind}", "").split(" ") if entry)}
        said = re.search(rf"^{kind}gemm: blocks of (\d+) rows are multiplied (\S+) times as fast as those of (\d+)$", done.stdout, re.M)
        tap.ok(list(paces) == list(range(640, 4097, 128)) and paces[3200] == 1 and all(0.5 <= pace <= 2 for pace in paces.values()) and
               (abs(paces[int(said[1])] / paces[int(said[3])] / float(said[2]) - 1) < 0.02 if said else len(set(paces.values())) == 1), f"{kind}: the pace of blocks of all sizes", paces, done.stdout, done.stderr)

    others = [r for r in ROUTINES if re.fullmatch("d(sy(ev.?|gvd?|sv|trf)|ge(svd|sdd|ls[sd]|ev))", r)]
    grown = [r for r in others if re.search(r"\b192(x192)*:", found.get(r, ""))]
    tap.ok(grown, "eigenvalues and the like: a square of order 192, however short the time", *others)

    # A GPU that fails while it is measured has no section.
    one = str(Path(folder, "one"))
    done, _ = calibrate(folder, "--output", one, env={**GPU, "TESTGPU_FAIL": "cuMemcpyHtoDAsync:800+=CUDA_ERROR_ILLEGAL_ADDRESS"},
                        seconds=1)
    tap.ok(done.returncode == 0 and "no GPU was measured: " in done.stdout and "CUDA_ERROR_ILLEGAL_ADDRESS" in done.stdout,
           "a GPU that fails: says so", done.returncode, done.stdout, done.stderr)
    tap.ok(all(h.startswith("[cpu ") for h in read(one) or {"none": 0}), "a GPU that fails: the libraries alone")

    # Other libraries, each with its own section in one file.
    other = Path(folder, "other")
    for name, (paths, width) in {
        "reference": ([SYSTEM / "blas/libblas.so.3", SYSTEM / "lapack/liblapack.so.3"], 32),
        "ILP64": ([SYSTEM / "libblas64.so.3", SYSTEM / "liblapack64.so.3"], 64),
        "NumPy's OpenBLAS, ILP64": ([next(SITE.glob("numpy.libs/libscipy_openblas64_-*"))], 64),
        "SciPy's OpenBLAS": ([next(SITE.glob("scipy.libs/libscipy_openblas-*"))], 32),
        "BLIS": ([SYSTEM / "libblis.so.4"], 32),
    }.items():
        before = read(other) if other.exists() else {}
        done, _ = calibrate(folder, "--library", ",".join(map(str, paths)), env={**HIDDEN, "ACCEL_MODEL": str(other), "BLIS_NUM_THREADS": "1"}, seconds=1)
        after = read(other) or {}
        new = {h: after[h] for h in after.keys() - before.keys()}
        tap.ok(done.returncode == 0 and not done.stderr and len(new) == len(paths), f"{name}: a section for each library", done.stderr,
               *after)
        tap.ok(all(any(f'"{path.resolve().name} {path.stat().st_size}"' in h for h in new) for path in paths), f"{name}: keys", *new)
        tap.ok(all(after.get(h) == before[h] for h in before), f"{name}: the others stay")
        lines = {r for section in new.values() for r in routines(section)}
        tap.ok("dgemm" in lines and (name == "BLIS" or "zgesdd" in lines), f"{name}: routines", *lines)
        tap.ok(not any(wrong_lines(section) for section in new.values()), f"{name}: sizes and times")

    # ---- The squares by which larger calls are estimated ----
    if LONG:
        guided = f"{folder}/guided"
        done, _ = calibrate(folder, "--output", guided, env={**GPU, "TESTGPU_DATA": "0", "TESTGPU_MEMORY": "4G"}, seconds=40)
        (on_gpu,) = [section for header, section in read(guided).items() if header.startswith("[gpu")]
        lack = [f"{name} {size}" for name, size in (("dgemm", "3200x3200x3200"), ("sgemm", "3200x3200x3200"), ("dsyrk", "1600x1600"), ("dtrsm", "1600x1600"),
                                                    ("dgetrf", "1600x1600"), ("dpotrf", "1600"), ("dgeqrf", "1600x1600")) if f"{size}:" not in on_gpu.get(name, "")]
        tap.ok(done.returncode == 0 and not lack, "products, triangles and factorisations have a large square each", *lack)

    # Where the file goes.
    done, _ = calibrate(folder, env={**HIDDEN, "XDG_CACHE_HOME": f"{folder}/cache"}, seconds=1)
    tap.ok(read(f"{folder}/cache/accel/model"), "XDG_CACHE_HOME", done.stdout, done.stderr)

    # Wrong options: one line says what is allowed; nothing is written.
    for arguments, words in {
        ("--seconds=0",): "1 to 3600",
        ("--seconds=1e2",): "1 to 3600",
        ("--seconds=soon",): "1 to 3600",
        ("--memory=1M",): "16M to 1024G",
        ("--memory=2X",): "16M to 1024G",
        ("--library=/no/such.so",): "/no/such.so",
        ("--library=",): "path",
        ("--output=",): "path",
        ("dgemm",): "--help",
    }.items():
        nothing = Path(folder, "nothing")
        done = start(ACCEL, "calibrate", *arguments, env={"HOME": folder, "ACCEL_MODEL": str(nothing)})
        tap.ok(done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1 and not done.stdout and
               not nothing.exists(), f"refused: {' '.join(arguments)}", done.returncode, done.stderr)
    for arguments in ((), ("measure",)):
        done = start(ACCEL, *arguments)
        tap.ok(done.returncode == 2 and "calibrate" in done.stderr and done.stderr.count("\n") == 1, f"refused: accel {' '.join(arguments)}",
               done.stderr)
    done = start(ACCEL, "calibrate", "--no-such")
    tap.ok(done.returncode == 2 and "--no-such" in done.stderr, "refused: an unknown option", done.stderr)
    for arguments in (("--help",), ("calibrate", "--help")):
        done = start(ACCEL, *arguments)
        tap.ok(done.returncode == 0 and "Usage: accel" in done.stdout and not done.stderr, f"accel {' '.join(arguments)}", done.stdout)

    # A file that cannot be written, even by root: refused before anything is measured.
    closed = Path(folder, "closed")
    closed.mkdir()
    for path in (closed, Path("/proc/no/model"), model / "below"):
        old = model.read_bytes()
        began = time.monotonic()
        done = start(ACCEL, "calibrate", "--output", path, env=HIDDEN)
        tap.ok(done.returncode == 1 and str(path) in done.stderr and done.stderr.count("\n") == 1 and not done.stdout and
               time.monotonic() - began < 60 and model.read_bytes() == old, f"not written: {path.name}", done.returncode, done.stderr)
    done = start(ACCEL, "calibrate", env={"HOME": ""})
    tap.ok(done.returncode == 1 and done.stderr.count("\n") == 1, "no place for the file", done.stderr)

    # Itself preloaded, libaccel would be measured.
    done = start(ACCEL, "calibrate", env={**SHIM, "HOME": folder})
    tap.ok(done.returncode == 1 and "preloaded" in done.stderr, "under libaccel", done.stderr)
    left = [name for name in os.listdir(model.parent) if name != "model"]
    tap.ok(not left, "nothing is left beside the file", *left)

# Singular values: the fastest of the accurate algorithms at each order. Xgesvd has long chains of
# kernels, which are slow here: slower than the other algorithms also where other processes take
# most of the machine.
SLOW_CHAINS = {**GPU, "TESTGPU_LAUNCH_US": "400", "TESTGPU_GFLOPS": "2000"}
with tempfile.TemporaryDirectory() as folder:
    cases = [("an inaccurate gesvdp", "gesvdp:1+", {"gesvdj"}), ("an inaccurate gesvdj", "gesvdj:1+", {"gesvdp"}), ("all accurate", "", {"gesvdp", "gesvdj"})]
    for name, wrong, allowed in cases if LONG else cases[:1]:
        path = f"{folder}/{wrong or 'all'}"
        done, _ = calibrate(folder, f"--output={path}", env={**SLOW_CHAINS, "TESTGPU_WRONG": wrong})
        chosen = svd(next((section for key, section in (read(path) or {}).items() if key.startswith("[gpu")), {}))
        tap.ok(set(chosen) == {f"{t}_{w}" for t in "sdcz" for w in ("values", "vectors")} and
               all(orders and set(orders.values()) <= allowed for orders in chosen.values()),
               f"singular values, {name}: the fastest of those", done.returncode, done.stderr, chosen)

tap.done()
