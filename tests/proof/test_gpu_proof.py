#!/usr/bin/python3 -B
"""scripts/gpu-bundle and scripts/gpu-proof, on the test GPU and in an empty environment: the bundle has what a bare machine needs; the
report has all parts, and its ratios are those of its measurements; what fails is in it, makes the exit status 1, and
stops nothing else; what is refused is refused in one line. With TEST_LONG=1 all steps; else those from which the report is made, and one
that proves, on a bundle that is hardly compressed."""

import contextlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from lib.programs import BUILD, LONG, ROOT, TESTS
from lib.tap import Tap

STEPS = ("build device unit measure random precision shared blas lapack sanitizer calibrate ml repeats traces panels timings" if LONG
         else "build measure blas traces panels timings").split()
CALLS = {c: x for x, c in enumerate("dgemm sgemm zgemm dsyrk dtrsm dgetrf dpotrf dgeqrf dsyevd dgesdd".split())}
# Of an order n: operations over n cubed, elements read and written over n squared, bytes of an
# element.
WORK = {"dgemm": (2, 2, 1, 8), "sgemm": (2, 2, 1, 4), "zgemm": (8, 2, 1, 16), "dsyrk": (1, 1, 0.5, 8), "dgetrf": (2 / 3, 1, 1, 8)}
MEASURES = ["start_driver", "start_context", "start_cublas_load", "start_cublas_handle", "pinned_up", "pinned_down", "pinned_both",
            "pageable_up", "pageable_down", "device_memory", "pin_small_pages", "pin_huge_pages", "fill_and_wait", "sgemm_peak", "dgemm_peak",
            "zgemm_peak", *(f"staged_{way}_{threads}_threads" for way in ("up", "down") for threads in (1, 2, 4, 8, 16)),
            *(f"pieces_{way}_{what}" for way in ("up", "down") for what in ("1024_kib", "4096_kib_2_streams", "call", "beside_8_threads")),
            *(f"{does}_by_8_threads{beside}" for does in ("packed", "unpacked") for beside in ("", "_beside")),
            *(f"pitched_{way}_{512 << i}" for way in ("up", "down") for i in range(5)),
            *(f"libaccel_{way}{shape}" for way in ("up", "down") for shape in ("", "_columns", "_1_mib")),
            "block_64x52x96_ld_80_1_stream", "block_64x52x96_ld_80_2_streams", *(f"solve_70x40_{what}" for what in ("blas", "own", "difference")), "thin_128x96_1_stream", *(f"triangle_64x128_{way}" for way in ("solved", "multiplied", "in_turn", "beside")),
            *(f"trace_{call}{what}" for call in ("dgemm_800", "dtrsm_900", "thin_512") for what in
              ("", *(f"_{kind}_{what}" for kind in ("up", "compute", "down") for what in ("from", "until", "busy"))))]

# Of a run of gpu-proof: ten times what the slowest takes.
SECONDS = 3000 if LONG else 900

tap = Tap()


def proof(folder, *arguments, env={}):
    """gpu-proof in an environment of its own; its results go to folder/out."""
    full = {"PATH": "/usr/bin:/bin", "HOME": str(folder), **{k: os.environ[k] for k in ("CUDA_HOME", "OWN_ARCHITECTURES") if k in os.environ}, **env}
    done = subprocess.run([str(ROOT / "scripts/gpu-proof"), "--quick", "--seed", "1", "--seconds", str(SECONDS), "--build", str(BUILD), "--bundle", str(folder / "bundle.tar"),
                           "--out", str(folder / "out"), *map(str, arguments)], env=full, cwd=folder, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS + 60)
    found = sorted((folder / "out").glob("*.json"))
    return done, json.loads(found[-1].read_text()) if found else {}


@contextlib.contextmanager
def traced():
    """A process that its debugger, this one, has stopped."""
    code = "import ctypes, os; ctypes.CDLL(None).ptrace(0, 0, None, None); os.kill(os.getpid(), 19)"
    process = subprocess.Popen([sys.executable, "-c", code])
    status = Path(f"/proc/{process.pid}/status")
    while process.poll() is None and not re.search(r"(?m)^State:\s+[tT]", status.read_text()):
        time.sleep(0.01)
    tap.ok(re.search(r"(?m)^State:\s+t", status.read_text()), "a process is stopped by its debugger", status.read_text())
    try:
        yield
    finally:
        process.kill()
        process.wait()


def near(a, b):
    return a is not None and b is not None and abs(a - b) <= 1e-6 * abs(b)


def check_bundle(path):
    if LONG:
        tap.ok(path.stat().st_size < 60e6, "the bundle has less than 60 MB", path.stat().st_size)
    with tarfile.open(path) as archive:
        manifest = archive.extractfile("manifest").read().decode()
        with tarfile.open(fileobj=archive.extractfile("payload.tar.xz")) as payload:
            names = {m.name.removeprefix("./") for m in [*archive, *payload]}
    wanted = ["bin/make", "lib/libopenblas.so.0", "lib/libopenblas64.so.0", "lib/libblas.so.3", "lib/liblapack.so.3", "lib/liblapacke.so.3",
              "lib/libgfortran.so.5", "lib/libsvm.so.3", "lib/liblinear.so.4", "lib/FNN/libs/FNN.so", "lib/FNN/DESCRIPTION", "data/train-images-idx3-ubyte.gz", "data/letter.xz", "data/shuttle.xz", "data/spam.xz",
               "lib/libcmocka.so", "include/cmocka.h", "include/xxhash.h", "blas/xdblat3", "blas/cblas_xzblat2",
              "blas/cblas_xzblat2.in", "lapack/list", "lapack/xlintstd", "lapack/xeigtstz", "licenses/libopenblas0-pthread"]
    tap.ok(not set(wanted) - names, "it has libraries, headers, make and the reference programs", *sorted(set(wanted) - names))
    tap.ok(re.search(r"(?m)^glibc 2\.\d+\n", manifest) and re.search(r"(?m)^sources [0-9a-f]{16}$", manifest), "its manifest says what it asks for", manifest)
    return re.search(r"(?m)^commit (.+)$", manifest)[1]


def check_report(folder, done, report):
    tap.ok(done.returncode == 0, "all steps on the test GPU: exit status 0", done.returncode, done.stdout[-3000:])
    tap.ok(report.get("format") == "accel-gpu-proof 1" and report["machine"].get("gpu") == "Test GPU", "the report names format and GPU")
    missing = {"date", "commit", "sources", "cpu", "cores", "kernel", "glibc", "compiler", "openblas"} - {k for k, v in report["machine"].items() if v}
    tap.ok(not missing, "and the machine", *missing)
    steps = {s["step"]: s["status"] for s in report["steps"]}
    tap.ok(list(steps) == STEPS, "every step is in it", *steps)
    # There is no compute-sanitizer for the test GPU.
    tap.ok(all(status == ("not here" if step == "sanitizer" and status != "ok" else "ok") for step, status in steps.items()), "and went well", steps)
    lacking = [m for m in MEASURES if not (report["measures"].get(m) or {}).get("value", 0) > 0]
    tap.ok(not lacking, "every measure that the test GPU allows is a number", *lacking)
    tap.ok(report["measures"]["launch"]["value"] is None and "cuModuleLoadData" in report["measures"]["launch"]["why"],
           "what it does not allow is named, with the reason", report["measures"].get("launch"))
    tap.ok("write_tracking" in report["measures"], "write tracking is judged", *report["measures"])
    tap.ok({(t["routine"], t["n"]) for t in report["timings"]} == {(c, n) for c in CALLS for n in (64, 128)}, "every call is timed",
           *[(t["routine"], t["n"]) for t in report["timings"]])
    blas = {c["check"]: c["status"] for c in report["checks"] if c["step"] == "blas"}
    tap.ok(blas == {"xdblat3": "ok", "cblas_xdblat3": "ok"}, "the reference programs pass", blas)
    tap.ok("NVBLAS" in {c["check"] for c in report["checks"] if c["status"] == "not here"}, "NVBLAS, which needs a real GPU, is said to be missing")
    if LONG:
        check_proofs(report)
    solved = [f"cusolver_{routine}_{n}" for routine in ("dgetrf", "dpotrf", "dgeqrf") for n in (64, 128)]
    tap.ok(all(report["measures"][name]["value"] > 0 for name in solved), "cuSOLVER is timed on matrices that are on the device")
    panels = {name: report["measures"].get(name, {}).get("value") for name in ("dpotrf_256_whole", "dpotrf_256_in_panels", "dpotrf_in_panels_rate")}
    tap.ok(all(panels.values()) and abs(panels["dpotrf_in_panels_rate"] / (100 * panels["dpotrf_256_whole"] / panels["dpotrf_256_in_panels"]) - 1) < 0.01,
           "dpotrf in half the memory of its matrix, beside one that fits", panels)
    check_numbers(report)
    names = sorted(p.name for p in (folder / "out").iterdir())
    tap.ok(len(names) <= 9 and ("accel.model" in names) == LONG and "gpu-proof.log" in names, "few files, the calibration among them where one is made", *names)
    text = next((folder / "out").glob("Test-GPU-*.md")).read_text()
    rows = re.findall(r"(?m)^\| `(\w+)` \| (\d+) \|", text)
    tap.ok(len(rows) == len(report["timings"]), "a row for each call in the Markdown table", *rows)
    tap.ok(all(re.search(rf"(?m)^{c} +128 ", done.stdout) for c in CALLS), "and on the terminal")


def check_proofs(report):
    """Of the steps that the long form alone has."""
    device = {c["check"]: c["status"] for c in report["checks"] if c["step"] == "device"}
    tap.ok(len(device) == 8 and set(device.values()) == {"ok"}, "first calls, exits, k = 0, n = 1, storage, info and capture", device)
    stays = next((c for c in report["checks"] if c["step"] == "random" and c["check"] == "operands that stay"), {})
    tap.ok(stays.get("status") == "ok" and re.match(r"[1-9]\d* calls on the GPU, 0 wrong, [1-9]\d* found an operand there", stays["note"]),
           "random calls on few matrices, whose results do not depend on what stays", stays)
    precise = {c["check"]: (c["status"], c["note"]) for c in report["checks"] if c["step"] == "precision"}
    tap.ok(all(precise[name][0] == "ok" and re.match(rf"[1-9]\d* calls in {name}, .* 0?\.\d+ of its bound", precise[name][1]) for name in ("emulated", "tf32"))
           and precise["bf16x9"][0] == "not here" and "needs compute capability 10.0" in precise["bf16x9"][1], "precisions that cuBLAS has, and what the machine lacks", precise)
    shared = {c["check"]: (c["status"], c["note"]) for c in report["checks"] if c["step"] == "shared"}
    tap.ok({name: status for name, (status, _) in shared.items()} == {"two ranks that take turns": "ok", "two ranks by MPS": "ok", "several GPUs": "not here", "triangles over several GPUs": "not here", "LAPACK over several GPUs": "not here", "host memory in place": "not here"}
           and re.search(r"calls, 0 wrong; \d+ calls, 0 wrong", shared["two ranks by MPS"][1]) and "one GPU" in shared["several GPUs"][1] and "one GPU" in shared["LAPACK over several GPUs"][1] and "does not use the host's page tables" in shared["host memory in place"][1],
           "two ranks on one GPU, also by MPS, and what the machine lacks", shared)
    trained = {c["check"]: (c["status"], c["note"]) for c in report["checks"] if c["step"] == "ml"}
    sets = {name: re.match(rf"train_ms [\d.]+ classes {classes} vectors \d+ .*; with libaccel train_ms ", trained.get(name, ("", ""))[1]) is not None
            for name, classes in (("letter", 26), ("shuttle", 5), ("spam", 2))}
    tap.ok(all(sets.values()) and {status for status, _ in trained.values()} == {"ok"}, "libsvm and liblinear train, also on rows of letter, Shuttle and spam", trained)
    many = re.match(r"train_ms [\d.]+ classes 10 vectors (\d+) .* right (\d+) ", trained.get("svm_270", ("", ""))[1])
    tap.ok(many and int(many[1]) >= 256 and int(many[2]) >= 12, "as of all of Fashion-MNIST, of samples the predictions are counted, which the GPU makes", trained.get("svm_270"))
    nearest = re.match(r"predict_ms .* distances (\S+) hash (\d+); with libaccel predict_ms .* distances (\S+) hash (\d+)", trained.get("knn_270", ("", ""))[1])
    tap.ok(nearest and nearest[1] == nearest[3] and nearest[2] == nearest[4], "FNN finds the same neighbours on the GPU, to the last bit", trained.get("knn_270"))
    tap.ok(all(report["measures"][f"{name}_{side}"]["value"] > 0 for name in [*(f"{name}_train" for name in sets), "svm_300_predict", "knn_270_predict"] for side in ("cpu", "libaccel")),
           "and their times are measures")
    repeats = {c["check"]: (c["status"], int(re.search(r"(\d+) calls of 12", c["note"])[1])) for c in report["checks"] if c["step"] == "repeats"}
    tap.ok({name: status for name, (status, _) in repeats.items()} == {f"{routine} 512 {setting}": "ok" for routine in ("dgemv", "dgemm") for setting in ("off", "hash", "auto")}
           and all(kept == 0 if name.endswith("off") else kept >= 9 for name, (_, kept) in repeats.items() if not name.endswith("auto")),
           "calls by the same matrix, with and without residency", repeats)


def check_numbers(report):
    wrong = []
    measures = {name: m["value"] for name, m in report["measures"].items()}
    for t in report["timings"]:
        name, n = t["routine"], t["n"]
        medians = {p: statistics.median(t[p]["runs"]) if t[p] else None for p in ("cpu", "libaccel", "libaccel_gpu", "nvblas")}
        floor = {"up_ms": t["bytes_in"] / measures["pinned_up"] * 1e-6, "down_ms": t["bytes_out"] / measures["pinned_down"] * 1e-6,
                 "operations_ms": t["operations"] / measures[name[0] + "gemm_peak"] * 1e-6}
        floor["ms"] = max(floor.values())
        good = all(near(t[p]["ms"], medians[p]) for p in ("cpu", "libaccel", "libaccel_gpu")) and t["nvblas"] is None
        good = good and all(near(t["floor"][part], value) for part, value in floor.items())
        good = good and near(t["ratio"]["cpu_over_libaccel"], medians["cpu"] / medians["libaccel"])
        good = good and near(t["ratio"]["libaccel_over_floor"], medians["libaccel"] / floor["ms"]) and t["ratio"]["nvblas_over_libaccel"] is None
        good = good and near(t["ratio"]["forced_over_floor"], medians["libaccel_gpu"] / floor["ms"])
        solver = measures.get(f"cusolver_{name}_{n}")
        good = good and (solver is not None) == (name in ("dgetrf", "dpotrf", "dgeqrf"))
        if solver is None:
            good = good and t["resident"] == {"cusolver_ms": None, "ms": None} and t["ratio"]["forced_over_resident"] is None
        else:
            resident = solver + floor["up_ms"] + floor["down_ms"]
            good = good and near(t["resident"]["ms"], resident) and near(t["ratio"]["forced_over_resident"], medians["libaccel_gpu"] / resident)
        if name in WORK:
            flops, into, out, size = WORK[name]
            good = good and all(abs(a - b) <= 1e-4 * b for a, b in ((t["operations"], flops * n**3), (t["bytes_in"], into * n * n * size),
                                                                     (t["bytes_out"], out * n * n * size)))
        if not good or t["libaccel_gpu"]["ran"] != "gpu0" or t["libaccel_gpu"]["why"] != "forced":
            wrong.append(json.dumps(t))
    tap.ok(report["timings"] and not wrong, "medians, floors and ratios follow from the measurements", *wrong[:3])


def check_host_memory(folder, test_gpu):
    """A GPU that uses the host's page tables."""
    done, report = proof(folder, "--test-gpu", test_gpu, "--only", "shared", env={"TESTGPU_ATTRIBUTES": "100=1"})
    status, note = {c["check"]: (c["status"], c["note"]) for c in report["checks"]}.get("host memory in place", ("", ""))
    tap.ok(status == "ok" and all(re.search(rf"{c2c}: \d+ calls, 0 wrong, [1-9]\d* operands in place, {moved} moved", note)
                                  for c2c, moved in (("place", "0"), ("migrate", r"[1-9]\d*"), ("auto", "0"))),
           "host memory in place: random calls under each policy", status, note, done.stdout[-500:])


def check_failures(folder, test_gpu):
    # From the ninth on, one element of each result is wrong.
    step, check, rest = ("random", "fortran", "blas") if LONG else ("blas", "xdblat3", "panels")
    done, report = proof(folder, "--test-gpu", test_gpu, "--only", f"{step},{rest}", env={"TESTGPU_WRONG": "9+"})
    failed = [(c["step"], c["check"]) for c in report["checks"] if c["status"] == "failed"]
    steps = {s["step"]: s["status"] for s in report["steps"]}
    tap.ok(done.returncode == 1 and (step, check) in failed and steps.get(step) == "failed", "wrong results: exit status 1, and which", done.returncode, failed)
    tap.ok(list(steps) == ["build", step, rest], "and the rest goes on", steps)
    tap.ok(f"failed: {step}: {check}" in done.stdout and (folder / "out/failures.log").exists(), "what failed is said at the end", done.stdout[-800:])

    done, report = proof(folder, "--test-gpu", test_gpu, "--only", "blas", env={"TESTGPU_FAIL": "cuStreamCreate:1+"})
    failed = [c["note"] for c in report["checks"] if c["step"] == "blas" and c["status"] == "failed"]
    tap.ok(done.returncode == 1 and failed and all("on the GPU" in note for note in failed), "programs that went to the CPU have proved nothing", done.returncode, *failed)

    # One element of each result is wrong: each program judges its own.
    done, report = proof(folder, "--test-gpu", test_gpu, "--only", "traces,timings", "--calls", "dgemm,sgemm,zgemm,dsyrk,dtrsm,dgetrf,dpotrf,dgeqrf", env={"TESTGPU_WRONG": "1+"})
    checks = [(c["step"], c["check"], c["status"], c["note"]) for c in report["checks"] if c["step"] in ("traces", "timings")]
    wrong = {note.split(" ")[0] for step, check, status, note in checks if check == "libaccel_gpu" and status == "failed" and "error the result is off by" in note}
    tap.ok(wrong == set(CALLS) - {"dsyevd", "dgesdd"} and not any(t["libaccel_gpu"] for t in report["timings"]), "a call whose result is wrong is not timed", *checks)
    tap.ok([status for step, *_, status, _ in checks if step == "traces"] == ["failed"] * 3, "and its trace is a failure", *checks)

    with traced():
        done, report = proof(folder, "--test-gpu", test_gpu, env={"TESTGPU_FAIL": "cuInit:1+"})
    tap.ok(done.returncode == 1 and "no GPU: cuInit" in done.stdout and report["checks"][-1]["status"] == "failed", "no GPU: exit status 1, and why, also beside a process that a debugger has stopped", done.stdout[-500:])


def check_agreement():
    """Of what a call or a model computes without libaccel and with it."""
    native = "train_ms 1 rho 1 right 7"
    cases = {f"models_agree: {ours}": (f". tests/proof/checks.sh; native='{native}' accelerated='{ours}'; models_agree", agree) for ours, agree in (
        ("train_ms 9 rho 1.0009 right 7", True), ("train_ms 9 rho 1.01 right 7", False), ("train_ms 9 rho nan right 7", False),
        ("train_ms 9 rho -inf right 7", False), ("train_ms 9", False))}
    cases |= {f"figures_agree {figures}": (f". tests/proof/turns.sh; figures_agree {figures}", agree) for figures, agree in (
        ("1e3 1.00000000001e3 0", True), ("1 1.0000001 0", False), ("1 1.0000001 1", True), ("1 1.00001 1", False), ("1 nan 0", False), ("-nan 1 1", False), ("1 inf 0", False))}
    for name, (command, agree) in cases.items():
        done = subprocess.run(["bash", "-c", command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        tap.ok(done.returncode == (0 if agree else 1), name, done.returncode, done.stdout)


def bash(command):
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stdout.strip(), done.stderr


def check_judges():
    """A library that leaves the diagonals alone."""
    lines = "".join(f"{call} {n} 1\n" for call in ("dgetrf", "dpotrf", "dgeqrf") for n in (2, 100))
    for preload, said in ((TESTS / "libdiagonal.so", r"error the result is off by [\d.e+]+ times what rounding explains"), ("", r"\d+\.\d+ -?\d.*")):
        done = subprocess.run([BUILD / "proof/time_calls"], input=lines, env={**os.environ, "LD_PRELOAD": str(preload)}, stdout=subprocess.PIPE, text=True)
        tap.ok([bool(re.fullmatch(said, line)) for line in done.stdout.splitlines()] == [True] * 6, f"factorisations are judged as wholes: {'wrong' if preload else 'right'} ones", done.stdout)


def check_units(folder):
    """What a unit test's output says."""
    for lines, status in ((("ok 1 - a", "ok 2 - b"), 0), (("ok 1 - a", "not ok 2 # SKIP b"), 0), (("ok 1 # SKIP a", "ok 2 - b"), 0), (("ok 1 - a", "not ok 2 - b"), 1), (("ok 1 - a",), 1)):
        program = folder / "unit"
        program.write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in ("1..2", *lines)))
        program.chmod(0o755)
        said = bash(f". tests/proof/checks.sh; kit=none folder={folder} step_end=$((SECONDS + 60)); unit_job {program}")
        tap.ok(said[0] == status, f"a unit test that says {', '.join(lines)}: {'failed' if status else 'ok'}", *said)


def check_order(folder):
    """Unit tests that use the GPU are the first to run: the time may be short."""
    (folder / "tests").mkdir()
    wanted = sorted({path.stem for path in ROOT.glob("tests/**/test_*.c") if "testgpu" not in path.parts})
    _, output, errors = bash(f". tests/proof/checks.sh; build={folder} driver=none; run_jobs() {{ printf '%s\\n' \"$@\"; }}; step_unit")
    names = output.splitlines()[::2]
    gpus = [(ROOT / f"tests/gpu/{name}.c").exists() for name in names]
    tap.ok(len(names) > 50 and gpus == sorted(gpus, reverse=True) and gpus[0] and len(set(names)) == len(names) and not set(names) - set(wanted), "unit tests that use the GPU come first", names, errors)


def check_statuses(folder):
    """A step's status is that of its checks."""
    for statuses, status in ((("ok", "failed", "left out"), "failed"), (("not here", "ok", "left out"), "ok"), (("not here", "left out"), "left out"), (("not here",), "not here"), ((), "left out")):
        (folder / "checks.tsv").write_text("other\tx\tok\t0\t\n" + "".join(f"this\tx\t{one}\t0\t\n" for one in statuses))
        said = bash(f". tests/proof/checks.sh; parts={folder} status_of this")
        tap.ok(said[:2] == (0, status), f"a step with {', '.join(statuses) or 'nothing'}: {status}", *said)


def check_differences(folder):
    (folder / "measures.tsv").write_text("solve_1x1_difference\t1e-16\t\nsolve_2x1_difference\t2e-10\t\nsolve_3x1_difference\tnan\t\nsolve_4x1_difference\t-\tno memory\nsolve_5x1_own\t1\tms\nsolve_6x1_difference\t-nan\t\n")
    said = bash(f". tests/proof/checks.sh; parts={folder} wrong_solutions")
    tap.ok(said[:2] == (0, "solve_2x1_difference=2e-10\nsolve_3x1_difference=nan\nsolve_6x1_difference=-nan"), "solutions of our own kernel that differ from the device's BLAS", *said)


def check_quotes(folder):
    """Notes have whatever a program has printed."""
    parts = {"machine": "gpu\tTest", "steps": "blas\tok\t1\t", "checks": 'blas\tx\tfailed\t1\tat "C:\\new\\\\x"\\', "measures": "", "timings": ""}
    for name, text in parts.items():
        (folder / f"{name}.tsv").write_text(text + "\n" * bool(text))
    for awk in filter(shutil.which, ("mawk", "gawk", "original-awk")):
        done = subprocess.run([awk, "-v", "format=json", "-f", "tests/proof/report.awk", *(folder / f"{name}.tsv" for name in parts)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        try:
            note = json.loads(done.stdout)["checks"][0]["note"]
        except json.JSONDecodeError as error:
            note = error
        tap.ok(note == parts["checks"].split("\t")[-1], f"the report by {awk}: quotes and backslashes", note, done.stdout)


SLOW = """for name in proof/measure proof/time_repeats proof/time_calls accel; do printf '#!/bin/sh\\necho 1\\nexec sleep 30\\n' > $build/$name; chmod +x $build/$name; done
check() { echo "$1: $2: $3"; }; left_out() { check "$1" "$2" "left out"; }; say() { :; }; now() { echo $SECONDS; }
. tests/proof/checks.sh; . tests/proof/turns.sh; few=1 quick=1 cores=1 out=$build parts=$build turns=$build logs=$build work=$build kit=$build step_name=x; touch $build/{checks,measures,timings}.tsv
"""


def check_cuts(folder):
    """What the end of a step's time cuts short is left out, and no failure."""
    (folder / "proof").mkdir()
    wanted = "pinned_up pinned_down dgemm_peak sgemm_peak zgemm_peak".split()
    for name, seconds, command, said in (
            ("the machine", 1, "step_measure", ["measure: the machine: left out", *(f"measure: {what}: left out" for what in wanted)]),
            ("repeats", 6, "step_repeats", ["repeats: dgemv 512: left out", "repeats: dgemm 512: left out"]),
            ("a repeated call", 1, "repeats_check dgemv 512 off '1 2'", ["repeats: dgemv 512 off: left out"]),
            ("a trace", 4, "trace_check thin sleep 30", ["traces: thin: left out"]),
            ("a trace, for which no time is left", 3, "trace_check thin sleep 30", ["traces: thin: left out"]),
            ("panels", 1, "step_panels", ["panels: dpotrf 256: left out"]),
            ("a calibration", 1, "step_calibrate", ["calibrate: accel calibrate: left out"]),
            ("calls, of whose players nothing is known", 0, "players=(cpu); alone=1000000; calls='dgemm dsyrk'; start_player cpu sleep 30; time_calls 4096; stop_players", ["timings: dgemm 4096: left out", "timings: dsyrk 4096: left out"]),
            ("a player", 1, "players=(cpu); start_player cpu sleep 30; request='dgemm 8'; hear cpu 1 || stop_players", ["timings: cpu: left out"]),
            ("all players", 1, "players=(cpu); chosen=(cpu); start_player cpu sleep 30; step_end=$((SECONDS - 4)); time_call dgemm 8; echo $?; stop_players", ["timings: cpu: left out", "2"]),
            ("a player that is silent before", 9, "players=(cpu); start_player cpu sleep 30; request='dgemm 8'; hear cpu 1 || stop_players", ["timings: cpu: failed"])):
        _, output, errors = bash(f"build={folder}; {SLOW} step_end=$((SECONDS + {seconds})); {command}")
        tap.ok(output.splitlines() == said, f"time runs out: {name}", output, errors)


PLAYER = """#!/bin/bash
echo >> "$0.starts"
while read -r line; do
    case $line in memory*) echo 8 ;; prepare*) echo ready ;; quit) exit ;;
    *) [ $(wc -l < "$0.starts") -gt DEATHS ] && echo "1 2 3 4 5 1" || exit 1 ;; esac
done
"""


def check_restart(folder):
    """libaccel_gpu, which ends at its first call, or whenever it is called."""
    for deaths, calls, said in ((1, 2, ["timings: libaccel_gpu: failed"]),
                                (9, 0, ["timings: libaccel_gpu: failed", "timings: libaccel_gpu: failed", "timings: dpotrf 8: left out"])):
        player = folder / f"player{deaths}"
        player.write_text(PLAYER.replace("DEATHS", str(deaths)))
        player.chmod(0o755)
        _, output, errors = bash(f"build={folder}; {SLOW} rm $build/timings.tsv; touch $build/timings.tsv; step_end=$((SECONDS + 60)) alone=1 most_call_seconds=9 most_rounds=1 calls='dgemm dsyrk dpotrf'; "
                              f"players=(libaccel_gpu); start_player libaccel_gpu {player}; time_calls 8; stop_players; cut -f 1 $build/timings.tsv")
        lines = output.splitlines()
        tap.ok([line for line in lines if line.startswith("timings")][:len(said)] == said and lines[len(lines) - calls:] == ["dsyrk", "dpotrf"][:calls],
               f"a player that is lost {'once' if deaths == 1 else 'again and again'}", output, errors)


def check_driver(folder):
    """Where there is a driver to link to, the test GPU is not built, which needs g++ and CUDA 13's headers."""
    done = subprocess.run(["make", "-n", f"BUILD={folder}/none", f"CUDA_DRIVER={BUILD}/testgpu/libcuda.so.1", f"CUDA_INCLUDE={os.environ.get('CUDA_INCLUDE') or BUILD / 'cuda/include'}", "proof-programs"],
                          cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    compiled = [line for line in done.stdout.splitlines() if re.search(r" -o \S*/testgpu\S*|g\+\+", line)]
    linked = [line for line in done.stdout.splitlines() if "/tests/test_gpu " in line and f" {BUILD}/testgpu/libcuda.so.1 " in line]
    tap.ok(len(linked) == 1 and not compiled, "the C tests are linked to a driver that is there", *compiled[:3], done.stdout[-500:] * (not linked))


def check_players():
    """Who plays: those that a call does not take too long, and that have room."""
    # answers: of a probe, "ORDER MILLISECONDS", and of all other requests.
    setting = ("players=(cpu libaccel libaccel_gpu libaccel_log nvblas); most_call_seconds=6; alone=1000000; left_out() { echo \"left out: $*\"; }; tell() { asked=$2; }; "
               "hear() { local at=${asked#* }; at=${at% *}; answer=${answers[$at]:-$size}; }; declare -A answers; "
               'step_end=100; now() { echo 0; }; for p in libaccel libaccel_gpu nvblas; do last_ms["$p dgemm"]=2 last_n["$p dgemm"]=1024; done; '
               'last_ms["cpu dgemm"]=200 last_n["cpu dgemm"]=1024; ')
    for name, n, least, said in (("all that are fast", 2048, "8", r"cpu libaccel libaccel_gpu libaccel_log nvblas 1\.6"),
                                 ("not the CPU, which is slow", 4096, "8; answers[2048]=1600", r"left out: timings dgemm 4096: some players a call would take too long: cpu \(about 12\.8 s\)\n"
                                                                                               r"libaccel libaccel_gpu libaccel_log nvblas 0\.4"),
                                 ("the CPU, whose larger calls are faster than small ones let guess", 4096, "8; answers[2048]=700", r"cpu libaccel libaccel_gpu libaccel_log nvblas 6"),
                                 ("not the CPU, whose larger calls would take too long themselves", 8192, "8; answers[2048]=7 answers[4096]=7",
                                  r"left out: timings dgemm 8192: some players a call would take too long: cpu \(about 102\.4 s\)\nlibaccel libaccel_gpu libaccel_log nvblas 4"),
                                 ("libaccel, as the fastest of those that it may take", 4096, '8; last_ms["libaccel dgemm"]=9000; last_ms["cpu dgemm"]=20',
                                  r"cpu libaccel libaccel_gpu libaccel_log nvblas 1\.7"),
                                 ("one of which nothing is known first makes small calls", 4096, '8; answers[512]=100 answers[1024]=800 answers[2048]=6400; unset "last_ms[nvblas dgemm]"; last_ms["cpu dgemm"]=20',
                                  r"left out: timings dgemm 4096: some players a call would take too long: nvblas \(about 51\.2 s\)\ncpu libaccel libaccel_gpu libaccel_log 1\.6"),
                                 ("one, where all others are left out", 4096, "8; alone=4096", r"libaccel_gpu 0\.1"),
                                 ("one, where memory is short for more", 1024, "$(awk '/^MemAvailable:/ { printf \"%.0f\", $2 * 512 }' /proc/meminfo)",
                                  r"left out: timings dgemm 1024: players but libaccel_gpu this machine has too little memory\nlibaccel_gpu 0\.0"),
                                 ("nobody, where it is short for one", 1024, "1000000000000000", r"left out: timings dgemm 1024 this machine has too little memory\nnobody")):
        command = f". tests/proof/turns.sh; {setting} size={least}; if choose_players dgemm {n}; then echo \"${{chosen[*]}} $seconds_each\"; else echo nobody; fi"
        done = subprocess.run(["bash", "-c", command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        tap.ok(re.fullmatch(said, done.stdout.strip()), f"who times a call: {name}", done.stdout)


def check_several(folder):
    """On slow GPUs: whatever the host copies, the second one is worth it."""
    done, report = proof(folder, "--test-gpu", BUILD / "testgpu", "--only", "shared", env={"PATH": f"{folder}/bin:/usr/bin:/bin", "TESTGPU_DEVICES": "2", "TESTGPU_ATTRIBUTES": "16=1,13=1"})
    found = [(c["status"], c["note"]) for c in report["checks"] if c["check"] == "several GPUs"]
    tap.ok(len(found) == 1 and found[0][0] == "ok" and re.match(r"dgemm of order \d+, 2 GPUs: [\d.]+ ms on gpu0, [\d.]+ ms on gpu0\+gpu1", found[0][1]),
           "two GPUs share products", found, done.stdout[-600:])
    found = [(c["status"], c["note"]) for c in report["checks"] if c["check"] == "triangles over several GPUs"]
    tap.ok(len(found) == 1 and found[0][0] == "ok" and re.match(r"dsyrk of order \d+, 2 GPUs: [\d.]+ ms on gpu0, [\d.]+ ms on gpu0\+gpu1", found[0][1]),
           "two GPUs share a triangle", found, done.stdout[-600:])
    found = [(c["status"], c["note"]) for c in report["checks"] if c["check"] == "LAPACK over several GPUs"]
    tap.ok(len(found) == 1 and found[0][0] == "ok" and re.search(r"2 GPUs: [\d.]+ ms on gpu0, [\d.]+ ms on gpu0\+gpu1", found[0][1]), "two GPUs share a factorisation", found, done.stdout[-600:])


def check_peers():
    """The rates from one GPU to another that may use its memory, a pool or all of it; else why there is none."""
    for settings, said in (({"TESTGPU_DEVICES": "3", "TESTGPU_PEER_GBPS": "4"},
                            {f"{kind}_{pair}": r"[123]\.\d+\tGB/s" for kind in ("peer", "peer_pool") for pair in ("0_1", "0_2", "1_2")}),
                           ({"TESTGPU_DEVICES": "2"}, {kind + "_0_1": "-\tthese GPUs cannot reach each other's memory" for kind in ("peer", "peer_pool")}),
                           ({"TESTGPU_DEVICES": "2", "TESTGPU_PEER_GBPS": "4", "TESTGPU_ATTRIBUTES": "115=0"},
                            {"peer_0_1": r"[123]\.\d+\tGB/s", "peer_pool_0_1": r"-\tcuMemPoolCreate: CUDA_ERROR_NOT_SUPPORTED"}),
                           ({}, {"peer_0_1": "-\tthe machine has one GPU"}))[:4 if LONG else 1]:
        done = subprocess.run([BUILD / "proof/measure", "--quick"], env={**os.environ, "ACCEL_CUDA_DIR": str(BUILD / "testgpu"), **settings}, stdout=subprocess.PIPE, text=True)
        lines = dict(line.split("\t", 1) for line in done.stdout.splitlines() if line.startswith("peer"))
        tap.ok(done.returncode == 0 and set(lines) == set(said) and all(re.fullmatch(said[name], lines[name]) for name in said), f"copies between GPUs: {settings}", lines)


def check_refusals(folder):
    for arguments, said in ((["--seconds", "5"], "60 to 36000"), (["--seconds", "soon"], "60 to 36000"), (["--seed", "32768"], "0 to 32767"), (["--seed", "one"], "0 to 32767"), (["--sizes", "1024,much"], "expected numbers like 1024,4096"), (["--longest", "long"], "expected seconds"), (["--calls", "dgemm,dgemv"], "--calls dgemv: allowed are"), (["--calls", ","], "allowed are dgemm"), (["--alone", "0"], "--alone 0: expected a number"), (["--calibrate", "long"], "--calibrate long: expected seconds"), (["--only", "unit,tests"], "--only tests: allowed are"),
                            (["--bundle", "/nowhere"], "make gpu-bundle"), (["--test-gpu", str(folder)], "no libcuda.so.1"), (["--out"], "needs a value")):
        done, _ = proof(folder, *arguments)
        tap.ok(done.returncode == 2 and said in done.stdout and done.stdout.count("\n") == 1, f"{' '.join(arguments)}: refused in one line", done.stdout)


with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    (folder / "out").mkdir()
    packed = subprocess.run([str(ROOT / "scripts/gpu-bundle"), *([] if LONG else ["--quick"]), str(folder / "bundle.tar")], env={**os.environ, "BUILD": str(BUILD)},
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if tap.ok(packed.returncode == 0, "the bundle is packed", packed.stdout):
        commit = check_bundle(folder / "bundle.tar")
        # A git whose description is older than the files.
        (folder / "bin").mkdir()
        (folder / "bin/git").write_text('#!/bin/sh\ncase $1 in describe) echo older;; *) exec /usr/bin/git "$@";; esac\n')
        (folder / "bin/git").chmod(0o755)
        # The test GPU takes the pipe of this one for MPS, as a driver does.
        service = folder / "bin/nvidia-cuda-mps-control"
        service.write_text('#!/bin/sh\nif [ "$1" = -d ]; then touch "$CUDA_MPS_PIPE_DIRECTORY/control"; else read -r word && [ "$word" = quit ] && rm "$CUDA_MPS_PIPE_DIRECTORY/control"; fi\n')
        service.chmod(0o755)
        # A calibration of another run.
        (BUILD / "gpu-proof").mkdir(exist_ok=True)
        for old in (BUILD / "gpu-proof/model", folder / "out/accel.model"):
            old.write_text("[gpu0 stale]\n")
        done, report = proof(folder, "--test-gpu", BUILD / "testgpu", *([] if LONG else ["--only", ",".join(STEPS)]), env={"PATH": f"{folder}/bin:/usr/bin:/bin"})
        check_report(folder, done, report)
        tap.ok(report["machine"]["commit"] == commit, "the commit is the bundle's where its sources are the same", commit, report["machine"]["commit"])
        check_failures(folder, BUILD / "testgpu")
        if LONG:
            check_host_memory(folder, BUILD / "testgpu")
            check_several(folder)
        check_driver(folder)
        check_peers()
        check_judges()
        for check in (check_units, check_order, check_statuses, check_differences, check_quotes, check_cuts, check_restart):
            with tempfile.TemporaryDirectory() as own:
                check(Path(own))
        check_agreement()
        check_players()
        check_refusals(folder)
tap.done()
