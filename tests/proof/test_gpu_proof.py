#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""scripts/gpu-bundle and scripts/gpu-proof, on the test GPU and in an empty environment: the bundle has what a bare
machine needs; the report has all parts, and its ratios are those of its measurements; what fails is in it, makes the
exit status 1, and stops nothing else; what is refused is refused in one line. With TEST_LONG=1 all steps; else those
from which the report is made, and one that proves, on a bundle that is hardly compressed."""

import contextlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tarfile
import time
from collections import namedtuple
from pathlib import Path

import pytest

from lib.programs import BUILD, BUSY, LONG, ROOT, TESTS, leave_out

STEPS = ("build programs device unit measure random precision shared serve blas lapack sanitizer calibrate ml repeats traces panels "
         "timings" if LONG
         else "build programs measure serve blas traces panels timings").split()
# On the CPU that plays a GPU, the others take minutes.
PROGRAMS = ["solve", "hpl", "torch_mlp", *(["eigenvalues", "least_squares", "svm_train", "liblinear"] if LONG else [])]
CALLS = {c: x for x, c in enumerate("dgemm sgemm zgemm dsyrk dtrsm dgetrf dpotrf dgeqrf dsyevd dgesdd".split())}
# Of an order n: operations over n cubed, elements read and written over n squared, bytes of an
# element.
WORK = {"dgemm": (2, 2, 1, 8), "sgemm": (2, 2, 1, 4), "zgemm": (8, 2, 1, 16), "dsyrk": (1, 1, 0.5, 8),
        "dgetrf": (2 / 3, 1, 1, 8)}
MEASURES = ["start_driver", "start_context", "start_cublas_load", "start_cublas_handle", "pinned_up", "pinned_down",
            "pinned_both",
            "pageable_up", "pageable_down", "device_memory", "pin_small_pages", "pin_huge_pages", "fill_and_wait",
            "sgemm_peak", "dgemm_peak",
            "zgemm_peak", *(f"staged_{way}_{threads}_threads" for way in ("up", "down")
                            for threads in (1, 2, 4, 8, 16)),
            *(f"pieces_{way}_{what}" for way in ("up", "down") for what in ("1024_kib", "4096_kib_2_streams", "call",
                                                                            "beside_8_threads")),
            *(f"{does}_by_8_threads{beside}" for does in ("packed", "unpacked") for beside in ("", "_beside")),
            *(f"pitched_{way}_{512 << i}" for way in ("up", "down") for i in range(5)),
            *(f"libaccel_{way}{shape}" for way in ("up", "down") for shape in ("", "_columns", "_1_mib")),
            "block_64x52x96_ld_80_1_stream", "block_64x52x96_ld_80_2_streams",
            *(f"solve_70x40_{what}" for what in ("blas", "own", "difference")), "thin_128x96_1_stream",
            *(f"triangle_64x128_{way}" for way in ("solved", "multiplied", "in_turn", "beside")),
            *(f"trace_{call}{what}" for call in ("dgemm_800", "dtrsm_900", "thin_512") for what in
              ("", *(f"_{kind}_{what}" for kind in ("up", "compute", "down") for what in ("from", "until", "busy"))))]
IN_BUNDLE = ["bin/make", "bin/svm-train", "bin/liblinear-train", "lib/libopenblas.so.0", "lib/libopenblas64.so.0", "lib/libblas.so.3", "lib/liblapack.so.3",
             "lib/liblapacke.so.3",
              "lib/libgfortran.so.5", "lib/libsvm.so.3", "lib/liblinear.so.4", "lib/FNN/libs/FNN.so",
             "lib/FNN/DESCRIPTION", "data/train-images-idx3-ubyte.gz", "data/letter.xz", "data/shuttle.xz",
             "data/spam.xz",
             "lib/libcmocka.so", "include/cmocka.h", "include/xxhash.h", "blas/xdblat3", "blas/cblas_xzblat2",
              "blas/cblas_xzblat2.in", "lapack/list", "lapack/xlintstd", "lapack/xeigtstz",
             "licenses/libopenblas0-pthread"]
TEST_GPU = ("--test-gpu", BUILD / "testgpu")
# The test GPU takes the pipe of this one for MPS, as a driver does.
MPS = """#!/bin/sh
if [ "$1" = -d ]; then touch "$CUDA_MPS_PIPE_DIRECTORY/control"
else read -r word && [ "$word" = quit ] && rm "$CUDA_MPS_PIPE_DIRECTORY/control"; fi
"""
# A git whose description is older than the files.
GIT = '#!/bin/sh\ncase $1 in describe) echo older;; *) exec /usr/bin/git "$@";; esac\n'

# Of a run of gpu-proof: ten times what the slowest takes.
SECONDS = 3000 if LONG else 900

in_long_form = pytest.mark.skipif(not LONG, reason="the long form has it")


# ---- The bundle ----


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """With the bundle, and programs that come first in a PATH."""
    folder = tmp_path_factory.mktemp("proof")
    (folder / "bin").mkdir()
    for name, text in (("git", GIT), ("nvidia-cuda-mps-control", MPS)):
        (folder / "bin" / name).write_text(text)
        (folder / "bin" / name).chmod(0o755)
    more = {}
    glibc = os.confstr("CS_GNU_LIBC_VERSION").split()[1]
    if tuple(map(int, glibc.split("."))) >= (2, 38):
        more["MOST_GLIBC"] = glibc
        leave_out(f"a bundle for machines with glibc 2.34: this one's libraries are for {glibc}")
    packed = subprocess.run([str(ROOT / "scripts/gpu-bundle"), *([] if LONG else ["--quick"]),
                             str(folder / "bundle.tar")],
                            env={**os.environ, "BUILD": str(BUILD), **more}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True)
    assert packed.returncode == 0, packed.stdout
    return folder


Contents = namedtuple("Contents", "manifest names")


@pytest.fixture(scope="module")
def contents(folder):
    with tarfile.open(folder / "bundle.tar") as archive:
        manifest = archive.extractfile("manifest").read().decode()
        with tarfile.open(fileobj=archive.extractfile("payload.tar.xz")) as payload:
            return Contents(manifest, {m.name.removeprefix("./") for m in [*archive, *payload]})


@in_long_form
def test_the_bundle_has_less_than_60_mb(folder):
    assert (folder / "bundle.tar").stat().st_size < 60e6


def test_it_has_libraries_headers_make_and_the_reference_programs(contents):
    assert not set(IN_BUNDLE) - contents.names


def test_its_manifest_says_what_it_asks_for(contents):
    assert re.search(r"(?m)^glibc 2\.\d+\n", contents.manifest)
    assert re.search(r"(?m)^sources [0-9a-f]{16}$", contents.manifest)


# ---- The report ----

Proved = namedtuple("Proved", "done report out")


def proof(folder, out, *arguments, env={}):
    """gpu-proof in an environment of its own, of the bundle in a folder; its results go to another one."""
    kept = {k: os.environ[k] for k in ("CUDA_HOME", "OWN_ARCHITECTURES") if k in os.environ}
    done = subprocess.run([str(ROOT / "scripts/gpu-proof"), "--quick", "--seed", "1", "--seconds", str(SECONDS),
                           "--programs", ",".join(PROGRAMS),
                           "--build", str(BUILD),
                           "--bundle", str(folder / "bundle.tar"), "--out", str(out), *map(str, arguments)],
                          env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "XDG_RUNTIME_DIR": BUSY.name, **kept, **env},
                          cwd=folder,
                          stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS + 60)
    found = sorted(out.glob("*.json"))
    return Proved(done, json.loads(found[-1].read_text()) if found else {}, out)


@pytest.fixture(scope="module")
def proved(folder, tmp_path_factory):
    """All steps on the test GPU, in the place of another run's calibration."""
    out = tmp_path_factory.mktemp("out")
    (BUILD / "gpu-proof").mkdir(exist_ok=True)
    for old in (BUILD / "gpu-proof/model", out / "accel.model"):
        old.write_text("[gpu0 stale]\n")
    return proof(folder, out, *TEST_GPU, *([] if LONG else ["--only", ",".join(STEPS)]),
                 env={"PATH": f"{folder}/bin:/usr/bin:/bin"})


def checks_of(report, step):
    """check -> (status, note)."""
    return {c["check"]: (c["status"], c["note"]) for c in report["checks"] if c["step"] == step}


def statuses_of(report, step):
    return {check: status for check, (status, _) in checks_of(report, step).items()}


def test_all_steps_on_the_test_gpu(proved):
    assert proved.done.returncode == 0, proved.done.stdout[-3000:]


def test_the_report_names_format_gpu_and_machine(proved):
    machine = proved.report["machine"]
    assert proved.report["format"] == "accel-gpu-proof 1"
    assert machine["gpu"] == "Test GPU"
    assert not [name for name in ("date", "commit", "sources", "cpu", "cores", "kernel", "glibc", "compiler",
                                  "openblas") if not machine.get(name)]


def test_the_commit_is_the_bundle_s_where_its_sources_are_the_same(proved, contents):
    assert proved.report["machine"]["commit"] == re.search(r"(?m)^commit (.+)$", contents.manifest)[1]


def test_every_step_is_in_it_and_went_well(proved):
    steps = {s["step"]: s["status"] for s in proved.report["steps"]}
    assert list(steps) == STEPS
    # There is no compute-sanitizer for the test GPU.
    assert {step: status for step, status in steps.items()
            if status != "ok"}.items() <= {"sanitizer": "not here"}.items()


def test_every_measure_that_the_test_gpu_allows_is_a_number(proved):
    assert not [m for m in MEASURES if not (proved.report["measures"].get(m) or {}).get("value", 0) > 0]


def test_what_it_does_not_allow_is_named_with_the_reason(proved):
    launch = proved.report["measures"]["launch"]
    assert launch["value"] is None
    assert "cuModuleLoadData" in launch["why"]


def test_write_tracking_is_judged(proved):
    assert "write_tracking" in proved.report["measures"]


def test_every_call_is_timed(proved):
    assert {(t["routine"], t["n"]) for t in proved.report["timings"]} == {(c, n) for c in CALLS for n in (64, 128)}


def test_whole_programs_have_turns_alone_with_libaccel_and_with_a_calibration(proved):
    """Those of the bundle, and of a Python that has NumPy and no PyTorch; what the GPU computes is the same."""
    programs = {p["program"]: p for p in proved.report["programs"]}
    assert list(programs) == PROGRAMS
    for name in set(PROGRAMS) - {"torch_mlp"} - (set() if (BUILD / "hpl/xhpl").exists() else {"hpl"}):
        for player in ("alone", "libaccel", "calibrated"):
            assert len(programs[name][player]["runs"]) >= 1
        assert programs[name]["estimate_s"] > 0
        assert programs[name]["outputs"] == "same"
        assert programs[name]["gpu_calls"] > 0
    assert programs["torch_mlp"]["alone"] is None
    assert checks_of(proved.report, "programs")["torch_mlp"] == ("not here", "/usr/bin/python3 has no torch")
    assert "programs" in {s["step"] for s in proved.report["steps"] if s["status"] == "ok" and "gain" in s["note"]}


def test_the_reference_programs_pass(proved):
    assert statuses_of(proved.report, "blas") == {"xdblat3": "ok", "cblas_xdblat3": "ok"}


def test_nvblas_which_needs_a_real_gpu_is_said_to_be_missing(proved):
    assert "NVBLAS" in {c["check"] for c in proved.report["checks"] if c["status"] == "not here"}


def test_cublasxt_times_the_products_and_solutions_that_it_has(proved):
    for t in proved.report["timings"]:
        has_it = t["routine"] in ("sgemm", "dgemm", "zgemm", "dsyrk", "dtrsm")
        assert (t["cublasxt"] is not None) == has_it
        assert t["cublasxt_best"] in (("cublasxt_1024", "cublasxt_2048", "cublasxt_4096") if has_it else (None, ))


def value_of(proved, name):
    return proved.report["measures"][name]["value"]


@pytest.mark.parametrize("n", [64, 128])
@pytest.mark.parametrize("routine", ["dgetrf", "dpotrf", "dgeqrf"])
def test_cusolver_is_timed_on_matrices_that_are_on_the_device(proved, routine, n):
    assert value_of(proved, f"cusolver_{routine}_{n}") > 0


def test_dpotrf_in_half_the_memory_of_its_matrix_beside_one_that_fits(proved):
    whole, in_panels = value_of(proved, "dpotrf_256_whole"), value_of(proved, "dpotrf_256_in_panels")
    assert value_of(proved, "dpotrf_in_panels_rate") == pytest.approx(100 * whole / in_panels, rel=0.01)


def test_few_files_the_calibration_among_them_where_one_is_made(proved):
    names = {path.name for path in proved.out.iterdir()}
    assert len(names) <= 9
    assert ("accel.model" in names) == LONG
    assert "gpu-proof.log" in names


def test_a_row_for_each_call_in_the_markdown_table_and_on_the_terminal(proved):
    text = next(proved.out.glob("Test-GPU-*.md")).read_text()
    assert len(re.findall(r"(?m)^\| `(\w+)` \| (\d+) \|", text)) == len(proved.report["timings"])
    assert not [call for call in CALLS if not re.search(rf"(?m)^{call} +128 ", proved.done.stdout)]


def near(a):
    return pytest.approx(a, rel=1e-6)


def test_medians_floors_and_ratios_follow_from_the_measurements(proved):
    measures = {name: m["value"] for name, m in proved.report["measures"].items()}
    assert proved.report["timings"]
    for t in proved.report["timings"]:
        name, n = t["routine"], t["n"]
        cpu, ours, forced = (statistics.median(t[player]["runs"]) for player in ("cpu", "libaccel", "libaccel_gpu"))
        assert (t["cpu"]["ms"], t["libaccel"]["ms"], t["libaccel_gpu"]["ms"]) == near((cpu, ours, forced))
        assert t["nvblas"] is None
        floor = {"up_ms": t["bytes_in"] / measures["pinned_up"] * 1e-6,
                 "down_ms": t["bytes_out"] / measures["pinned_down"] * 1e-6,
                 "operations_ms": t["operations"] / measures[name[0] + "gemm_peak"] * 1e-6}
        floor["ms"] = max(floor.values())
        assert {part: t["floor"][part] for part in floor} == near(floor)
        assert t["ratio"]["cpu_over_libaccel"] == near(cpu / ours)
        assert t["ratio"]["libaccel_over_floor"] == near(ours / floor["ms"])
        assert t["ratio"]["nvblas_over_libaccel"] is None
        if t["cublasxt"]:
            engine = statistics.median(t["cublasxt"]["runs"])
            assert (t["cublasxt"]["ms"], t["ratio"]["cublasxt_over_libaccel"]) == near((engine, engine / ours))
        assert t["ratio"]["forced_over_floor"] == near(forced / floor["ms"])
        solver = measures.get(f"cusolver_{name}_{n}")
        assert (solver is not None) == (name in ("dgetrf", "dpotrf", "dgeqrf"))
        if solver is None:
            assert t["resident"] == {"cusolver_ms": None, "ms": None}
            assert t["ratio"]["forced_over_resident"] is None
        else:
            resident = solver + floor["up_ms"] + floor["down_ms"]
            assert t["resident"]["ms"] == near(resident)
            assert t["ratio"]["forced_over_resident"] == near(forced / resident)
        if name in WORK:
            flops, into, out, size = WORK[name]
            assert (t["operations"], t["bytes_in"], t["bytes_out"]) == pytest.approx(
                (flops * n**3, into * n * n * size, out * n * n * size), rel=1e-4)
        assert (t["libaccel_gpu"]["ran"], t["libaccel_gpu"]["why"]) == ("gpu0", "forced")


SERVED = ("start", "call", "call_after_pause", "up_and_down", "eight_clients")


@pytest.mark.parametrize("name", SERVED)
def test_a_server_s_clients_are_timed_beside_processes_with_cuda(proved, name):
    assert statuses_of(proved.report, "serve")[name] == "ok"
    by = {way: value_of(proved, f"serve_{name}_{way}") for way in ("process", "served")}
    assert min(by.values()) > 0
    row = re.search(rf"(?m)^\|[^|]*\| {by['process']:.4g} \| {by['served']:.4g} \| (\S+) \|$", next(proved.out.glob("Test-GPU-*.md")).read_text())
    assert float(row[1]) == pytest.approx(by["served"] / by["process"], abs=0.06)


def test_the_server_has_sent_the_eight_clients_matrices_and_has_ended_well(proved):
    assert 0 < value_of(proved, "serve_eight_clients_sent") <= 8.5
    assert statuses_of(proved.report, "serve")["the server"] == "ok"
    assert statuses_of(proved.report, "serve")["several GPUs"] == "not here"


# ---- The steps that the long form alone has ----


@in_long_form
def test_first_calls_exits_and_the_like(proved):
    """k = 0, n = 1, storage, info and capture."""
    device = statuses_of(proved.report, "device")
    assert len(device) == 8
    assert set(device.values()) == {"ok"}


@in_long_form
def test_random_calls_on_few_matrices_whose_results_do_not_depend_on_what_stays(proved):
    status, note = checks_of(proved.report, "random")["operands that stay"]
    assert status == "ok"
    assert re.match(r"[1-9]\d* calls on the GPU, 0 wrong, [1-9]\d* found an operand there", note)


@in_long_form
@pytest.mark.parametrize("name", ["emulated", "tf32"])
def test_precisions_that_cublas_has(proved, name):
    status, note = checks_of(proved.report, "precision")[name]
    assert status == "ok"
    assert re.match(rf"[1-9]\d* calls in {name}, .* 0?\.\d+ of its bound", note)


@in_long_form
def test_a_precision_that_the_machine_lacks(proved):
    status, note = checks_of(proved.report, "precision")["bf16x9"]
    assert status == "not here"
    assert "needs compute capability 10.0" in note


@in_long_form
def test_two_ranks_on_one_gpu_also_by_mps_and_what_the_machine_lacks(proved):
    shared = checks_of(proved.report, "shared")
    assert statuses_of(proved.report, "shared") == {
        "two ranks that take turns": "ok", "two ranks by MPS": "ok", "several GPUs": "not here",
        "triangles over several GPUs": "not here",
        "LAPACK over several GPUs": "not here", "host memory in place": "not here"}
    assert re.search(r"calls, 0 wrong; \d+ calls, 0 wrong", shared["two ranks by MPS"][1])
    assert "one GPU" in shared["several GPUs"][1]
    assert "one GPU" in shared["LAPACK over several GPUs"][1]
    assert "does not use the host's page tables" in shared["host memory in place"][1]


@in_long_form
@pytest.mark.parametrize("name, classes", [("letter", 26), ("shuttle", 5), ("spam", 2)])
def test_libsvm_trains_on_rows_of_known_sets(proved, name, classes):
    _, note = checks_of(proved.report, "ml")[name]
    assert re.match(rf"train_ms [\d.]+ classes {classes} vectors \d+ .*; with libaccel train_ms ", note)
    for side in ("cpu", "libaccel"):
        assert value_of(proved, f"{name}_train_{side}") > 0


@in_long_form
def test_libsvm_and_liblinear_train(proved):
    assert set(statuses_of(proved.report, "ml").values()) == {"ok"}


@in_long_form
def test_of_samples_the_predictions_are_counted_which_the_gpu_makes(proved):
    """As of all of Fashion-MNIST."""
    _, note = checks_of(proved.report, "ml")["svm_270"]
    many = re.match(r"train_ms [\d.]+ classes 10 vectors (\d+) .* right (\d+) ", note)
    assert int(many[1]) >= 256
    assert int(many[2]) >= 12


@in_long_form
def test_fnn_finds_the_same_neighbours_on_the_gpu_to_the_last_bit(proved):
    _, note = checks_of(proved.report, "ml")["knn_270"]
    nearest = re.match(r"predict_ms .* distances (\S+) hash (\d+); with libaccel predict_ms .* distances (\S+) hash "
                       r"(\d+)", note)
    assert nearest.groups()[:2] == nearest.groups()[2:]


@in_long_form
@pytest.mark.parametrize("side", ["cpu", "libaccel"])
@pytest.mark.parametrize("name", ["svm_300_predict", "knn_270_predict"])
def test_times_of_predictions_are_measures(proved, name, side):
    assert value_of(proved, f"{name}_{side}") > 0


@in_long_form
def test_calls_by_the_same_matrix_with_and_without_residency(proved):
    repeats = checks_of(proved.report, "repeats")
    assert statuses_of(proved.report, "repeats") == {f"{routine} 512 {setting}": "ok" for routine in ("dgemv", "dgemm")
                                                     for setting in ("off", "hash", "auto")}
    kept = {name: int(re.search(r"(\d+) calls of 12", note)[1]) for name, (_, note) in repeats.items()}
    assert {kept[name] for name in kept if name.endswith("off")} == {0}
    assert min(kept[name] for name in kept if name.endswith("hash")) >= 9


# ---- What fails ----


@pytest.fixture(scope="module")
def wrong(folder, tmp_path_factory):
    """A run in which from the ninth on, one element of each result is wrong; the step and the check that see it, and
    another step."""
    step, check, rest = ("random", "fortran", "blas") if LONG else ("blas", "xdblat3", "panels")
    proved = proof(folder, tmp_path_factory.mktemp("wrong"), *TEST_GPU, "--only", f"{step},{rest}",
                   env={"TESTGPU_WRONG": "9+"})
    return proved, step, check, rest


def test_wrong_results_exit_status_1_and_which(wrong):
    (done, report, _), step, check, _ = wrong
    assert done.returncode == 1
    assert (step, check) in [(c["step"], c["check"]) for c in report["checks"] if c["status"] == "failed"]
    assert {s["step"]: s["status"] for s in report["steps"]}[step] == "failed"


def test_and_the_rest_goes_on(wrong):
    (_, report, _), step, _, rest = wrong
    assert [s["step"] for s in report["steps"]] == ["build", step, rest]


def test_what_failed_is_said_at_the_end(wrong):
    (done, _, out), step, check, _ = wrong
    assert f"failed: {step}: {check}" in done.stdout
    assert (out / "failures.log").exists()


def test_programs_that_went_to_the_cpu_have_proved_nothing(folder, tmp_path):
    done, report, _ = proof(folder, tmp_path, *TEST_GPU, "--only", "blas", env={"TESTGPU_FAIL": "cuStreamCreate:1+"})
    failed = [c["note"] for c in report["checks"] if c["step"] == "blas" and c["status"] == "failed"]
    assert done.returncode == 1
    assert failed
    assert not [note for note in failed if "on the GPU" not in note]


def test_clients_whose_calls_are_not_on_the_gpu_are_not_timed(folder, tmp_path):
    """Nor are the processes beside them."""
    _, report, _ = proof(folder, tmp_path, *TEST_GPU, "--only", "serve", env={"TESTGPU_FAIL": "cuStreamCreate:1+"})
    assert statuses_of(report, "serve")["calls"] == "failed"
    assert "serve_start_served" not in report["measures"]


def test_a_server_with_several_gpus_has_programs_on_all(folder, tmp_path):
    """And the times are those of one."""
    _, report, _ = proof(folder, tmp_path, *TEST_GPU, "--only", "serve", env={"TESTGPU_DEVICES": "2"})
    status, note = checks_of(report, "serve")["several GPUs"]
    assert status == "ok", note
    assert re.fullmatch(r"4 of 4 programs have right results; gpu0: \d+ calls, gpu1: \d+ calls", note)
    assert 0 < report["measures"]["serve_eight_clients_sent"]["value"] <= 8.5


def test_a_call_whose_result_is_wrong_is_not_timed_and_its_trace_is_a_failure(folder, tmp_path):
    """One element of each result is wrong: each program judges its own."""
    judged = [call for call in CALLS if call not in ("dsyevd", "dgesdd")]
    _, report, _ = proof(folder, tmp_path, *TEST_GPU, "--only", "traces,timings", "--calls", ",".join(judged),
                         env={"TESTGPU_WRONG": "1+"})
    notes = [c["note"] for c in report["checks"] if (c["step"], c["check"], c["status"]) == ("timings", "libaccel_gpu",
                                                                                             "failed")]
    assert {note.split(" ")[0] for note in notes if "error the result is off by" in note} == set(judged)
    assert not [t for t in report["timings"] if t["libaccel_gpu"]]
    assert [c["status"] for c in report["checks"] if c["step"] == "traces"] == ["failed"] * 3


@contextlib.contextmanager
def traced():
    """A process that its debugger, this one, has stopped."""
    code = "import ctypes, os; ctypes.CDLL(None).ptrace(0, 0, None, None); os.kill(os.getpid(), 19)"
    process = subprocess.Popen([sys.executable, "-c", code])
    try:
        status = Path(f"/proc/{process.pid}/status")
        while process.poll() is None and not re.search(r"(?m)^State:\s+[tT]", status.read_text()):
            time.sleep(0.01)
        assert re.search(r"(?m)^State:\s+t", status.read_text())
        yield
    finally:
        process.kill()
        process.wait()


def test_no_gpu_exit_status_1_and_why_also_beside_a_process_that_a_debugger_has_stopped(folder, tmp_path):
    with traced():
        done, report, _ = proof(folder, tmp_path, *TEST_GPU, env={"TESTGPU_FAIL": "cuInit:1+"})
    assert done.returncode == 1
    assert "no GPU: cuInit" in done.stdout
    assert report["checks"][-1]["status"] == "failed"


# ---- Other GPUs ----


@in_long_form
def test_a_gpu_that_uses_the_host_s_page_tables(folder, tmp_path):
    """Random calls under each policy."""
    _, report, _ = proof(folder, tmp_path, *TEST_GPU, "--only", "shared", env={"TESTGPU_ATTRIBUTES": "100=1"})
    status, note = checks_of(report, "shared")["host memory in place"]
    assert status == "ok"
    for c2c, moved in (("place", "0"), ("migrate", r"[1-9]\d*"), ("auto", "0")):
        assert re.search(rf"{c2c}: \d+ calls, 0 wrong, [1-9]\d* operands in place, {moved} moved", note)


@in_long_form
def test_two_gpus_share_products_a_triangle_and_a_factorisation(folder, tmp_path):
    """Slow ones: whatever the host copies, the second one is worth it."""
    _, report, _ = proof(folder, tmp_path, *TEST_GPU, "--only", "shared",
                         env={"PATH": f"{folder}/bin:/usr/bin:/bin", "TESTGPU_DEVICES": "2",
                              "TESTGPU_ATTRIBUTES": "16=1,13=1"})
    checks = checks_of(report, "shared")
    took = r"2 GPUs: [\d.]+ ms on gpu0, [\d.]+ ms on gpu0\+gpu1"
    for name, said in (("several GPUs", rf"dgemm of order \d+, {took}"),
                       ("triangles over several GPUs", rf"dsyrk of order \d+, {took}"),
                       ("LAPACK over several GPUs", f".*{took}")):
        assert checks[name][0] == "ok"
        assert re.match(said, checks[name][1])


def test_where_there_is_a_driver_the_c_tests_are_linked_to_it(tmp_path):
    """The test GPU is not built, which needs g++ and CUDA 13's headers."""
    done = subprocess.run(["make", "-n", f"BUILD={tmp_path}/none", f"CUDA_DRIVER={BUILD}/testgpu/libcuda.so.1",
                           f"CUDA_INCLUDE={os.environ.get('CUDA_INCLUDE') or BUILD / 'cuda/include'}",
                           "proof-programs"],
                          cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = done.stdout.splitlines()
    assert len([line for line in lines if "/tests/test_gpu " in line
                and f" {BUILD}/testgpu/libcuda.so.1 " in line]) == 1
    assert not [line for line in lines if re.search(r" -o \S*/testgpu\S*|g\+\+", line)]


NO_PEERS = "-\tthese GPUs cannot reach each other's memory"
RATE = r"[123]\.\d+\tGB/s"


@pytest.mark.parametrize("settings, said", [
    pytest.param({"TESTGPU_DEVICES": "3", "TESTGPU_PEER_GBPS": "4"},
                 {f"{kind}_{pair}": RATE for kind in ("peer", "peer_pool") for pair in ("0_1", "0_2", "1_2")},
                 id="three"),
    *([pytest.param({"TESTGPU_DEVICES": "2"}, {"peer_0_1": NO_PEERS, "peer_pool_0_1": NO_PEERS}, id="two apart"),
       pytest.param({"TESTGPU_DEVICES": "2", "TESTGPU_PEER_GBPS": "4", "TESTGPU_ATTRIBUTES": "115=0"},
                    {"peer_0_1": RATE, "peer_pool_0_1": r"-\tcuMemPoolCreate: CUDA_ERROR_NOT_SUPPORTED"},
                    id="two without pools"),
       pytest.param({}, {"peer_0_1": "-\tthe machine has one GPU"}, id="one")] if LONG else [])])
def test_the_rates_from_one_gpu_to_another(settings, said):
    """That may use its memory, a pool or all of it; else why there is none."""
    done = subprocess.run([BUILD / "proof/measure", "--quick"],
                          env={**os.environ, "ACCEL_CUDA_DIR": str(BUILD / "testgpu"), **settings},
                          stdout=subprocess.PIPE, text=True)
    lines = dict(line.split("\t", 1) for line in done.stdout.splitlines() if line.startswith("peer"))
    assert done.returncode == 0
    assert lines.keys() == said.keys()
    for name, pattern in said.items():
        assert re.fullmatch(pattern, lines[name])


# ---- How it judges ----


def bash(command):
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stdout.strip(), done.stderr


@pytest.mark.parametrize("preload, said", [
    pytest.param(TESTS / "libdiagonal.so", r"error the result is off by [\d.e+]+ times what rounding explains",
                 id="wrong ones"),
    pytest.param("", r"\d+\.\d+ -?\d.*", id="right ones")])
def test_factorisations_are_judged_as_wholes(preload, said):
    """A library leaves the diagonals alone."""
    lines = "".join(f"{call} {n} 1\n" for call in ("dgetrf", "dpotrf", "dgeqrf") for n in (2, 100))
    done = subprocess.run([BUILD / "proof/time_calls"], input=lines, env={**os.environ, "LD_PRELOAD": str(preload)},
                          stdout=subprocess.PIPE,
                          text=True)
    assert [bool(re.fullmatch(said, line)) for line in done.stdout.splitlines()] == [True] * 6


def test_operands_of_cublasxt_are_pinned_and_its_results_are_those_of_the_cpu(tmp_path):
    report = tmp_path / "report"
    lines = "".join(f"{call} {n} 2\n" for call in ("sgemm", "dgemm", "zgemm", "dsyrk", "dtrsm") for n in (2, 100))
    env = {**os.environ, "ACCEL_CUDA_DIR": str(BUILD / "testgpu"), "TESTGPU_REPORT": str(report)}
    answers = []
    for name in "time_calls", "time_calls_xt":
        done = subprocess.run([BUILD / "proof" / name], input=lines, env=env, stdout=subprocess.PIPE, text=True,
                              check=True)
        answers.append([line.split()[1:] for line in done.stdout.splitlines()])
    for cpu, engine in zip(*answers, strict=True):
        assert [float(x) for x in engine] == pytest.approx([float(x) for x in cpu], rel=1e-6)
    calls = dict(re.findall(r"call name=(\w+) n=(\d+)", report.read_text()))
    assert calls["cublasXtDgemm"] == calls["cublasXtDtrsm"] == "4"
    assert calls["cuMemHostAlloc"] == calls["cuMemFreeHost"] == str(2 * (3 * 3 + 2 * 2))
    assert "faults n=0" in report.read_text()


@pytest.mark.parametrize("folder, said", [
    pytest.param("testgpu", "", id="all there"),
    pytest.param("none", r"cuBLASXt: .*libcuda\.so\.1: cannot open .*", id="no CUDA"),
    pytest.param("older", "cuBLASXt: cublasXtCreate: the library has no such function", id="a library without it")])
def test_where_there_is_no_cublasxt_one_line_says_so(tmp_path, folder, said):
    older = tmp_path / "older"
    older.mkdir()
    shutil.copy(BUILD / "testgpu/libcuda.so.1", older)
    shutil.copy(BUILD / "testgpu/libcuda.so.1", older / "libcublas.so.13")
    place = BUILD / folder if folder == "testgpu" else tmp_path / folder
    _, output, errors = bash(f". tests/proof/checks.sh; export ACCEL_CUDA_DIR={place}; build={BUILD} "
                             'step_end=$((SECONDS + 60)); find_cublasxt; echo "$no_cublasxt"')
    assert re.fullmatch(said, output), output + errors


@pytest.mark.parametrize("lines, status", [(["ok 1 - a", "ok 2 - b"], 0), (["ok 1 - a", "not ok 2 # SKIP b"], 0),
                                           (["ok 1 # SKIP a", "ok 2 - b"], 0), (["ok 1 - a", "not ok 2 - b"], 1),
                                           (["ok 1 - a"], 1)],
                         ids=lambda value: ", ".join(value) if isinstance(value, list) else None)
def test_what_a_unit_test_s_output_says(tmp_path, lines, status):
    program = tmp_path / "unit"
    program.write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in ("1..2", *lines)))
    program.chmod(0o755)
    said = bash(f". tests/proof/checks.sh; kit=none folder={tmp_path} step_end=$((SECONDS + 60)); unit_job {program}")
    assert said[0] == status, said


def test_unit_tests_that_use_the_gpu_come_first(tmp_path):
    """The time may be short."""
    (tmp_path / "tests").mkdir()
    there = {path.stem for path in ROOT.glob("tests/**/test_*.c") if "testgpu" not in path.parts}
    _, output, _ = bash(f". tests/proof/checks.sh; build={tmp_path} driver=none; run_jobs() {{ printf '%s\\n' \"$@\"; "
                        f"}}; step_unit")
    names = output.splitlines()[::2]
    gpus = [(ROOT / f"tests/gpu/{name}.c").exists() for name in names]
    assert len(names) > 50
    assert gpus[0]
    assert gpus == sorted(gpus, reverse=True)
    assert len(set(names)) == len(names)
    assert not set(names) - there


@pytest.mark.parametrize("checks, status", [("ok, failed, left out", "failed"), ("not here, ok, left out", "ok"),
                                            ("not here, left out", "left out"), ("not here", "not here"),
                                            ("", "left out")])
def test_a_step_s_status_is_that_of_its_checks(tmp_path, checks, status):
    lines = [f"this\tx\t{check}\t0\t\n" for check in checks.split(", ") if check]
    (tmp_path / "checks.tsv").write_text("other\tx\tok\t0\t\n" + "".join(lines))
    assert bash(f". tests/proof/checks.sh; parts={tmp_path} status_of this")[:2] == (0, status)


def test_solutions_of_our_own_kernel_that_differ_from_the_device_s_blas(tmp_path):
    rows = (("1x1_difference", "1e-16", ""), ("2x1_difference", "2e-10", ""), ("3x1_difference", "nan", ""),
            ("4x1_difference", "-", "no memory"),
            ("5x1_own", "1", "ms"), ("6x1_difference", "-nan", ""))
    (tmp_path / "measures.tsv").write_text("".join(f"solve_{name}\t{value}\t{unit}\n" for name, value, unit in rows))
    said = bash(f". tests/proof/checks.sh; parts={tmp_path} wrong_solutions")
    assert said[:2] == (0, "solve_2x1_difference=2e-10\nsolve_3x1_difference=nan\nsolve_6x1_difference=-nan")


@pytest.mark.parametrize("awk", ["mawk", "gawk", "original-awk"])
def test_notes_have_whatever_a_program_has_printed(tmp_path, awk):
    """Quotes and backslashes."""
    if not shutil.which(awk):
        pytest.skip("it is not installed")
    note = 'at "C:\\new\\\\x"\\'
    parts = {"machine": "gpu\tTest", "steps": "blas\tok\t1\t", "checks": f"blas\tx\tfailed\t1\t{note}", "measures": "",
             "timings": ""}
    for name, text in parts.items():
        (tmp_path / f"{name}.tsv").write_text(text + "\n" * bool(text))
    done = subprocess.run([awk, "-v", "format=json", "-f", "tests/proof/report.awk",
                           *(tmp_path / f"{name}.tsv" for name in parts)], cwd=ROOT,
                          stdout=subprocess.PIPE, text=True)
    assert json.loads(done.stdout)["checks"][0]["note"] == note


@pytest.mark.parametrize("ours, agree", [
    ("train_ms 9 rho 1.0009 right 7", True), ("train_ms 9 rho 1.01 right 7", False),
    ("train_ms 9 rho nan right 7", False),
    ("train_ms 9 rho -inf right 7", False), ("train_ms 9", False)])
def test_models_agree(ours, agree):
    """Of what a model computes without libaccel and with it."""
    native = "train_ms 1 rho 1 right 7"
    said = bash(f". tests/proof/checks.sh; native='{native}' accelerated='{ours}'; models_agree")
    assert said[0] == (0 if agree else 1), said


@pytest.mark.parametrize("figures, agree", [
    ("1e3 1.00000000001e3 0", True), ("1 1.0000001 0", False), ("1 1.0000001 1", True), ("1 1.00001 1", False),
    ("1 nan 0", False),
    ("-nan 1 1", False), ("1 inf 0", False)])
def test_figures_agree(figures, agree):
    """Of a call."""
    said = bash(f". tests/proof/turns.sh; figures_agree {figures}")
    assert said[0] == (0 if agree else 1), said


# ---- What the end of a step's time cuts short is left out, and no failure ----

SLOW = """
for name in proof/measure proof/time_repeats proof/time_calls accel; do
    printf '#!/bin/sh\\necho 1\\nexec sleep 30\\n' > $build/$name; chmod +x $build/$name
done
check() { echo "$1: $2: $3"; }; left_out() { check "$1" "$2" "left out"; }; say() { :; }; now() { echo $SECONDS; }
. tests/proof/checks.sh; . tests/proof/turns.sh; few=1 quick=1 cores=1 out=$build parts=$build turns=$build
logs=$build work=$build kit=$build step_name=x; touch $build/{checks,measures,timings}.tsv
"""
PLAYER_30 = "players=(cpu); start_player cpu sleep 30;"


@pytest.mark.parametrize("seconds, command, said", [pytest.param(*case, id=name) for name, *case in (
    ("the machine", 1, "step_measure", ["measure: the machine: left out",
                                        *(f"measure: {what}: left out"
                                          for what in "pinned_up pinned_down dgemm_peak sgemm_peak "
                                                      "zgemm_peak".split())]),
    ("repeats", 6, "step_repeats", ["repeats: dgemv 512: left out", "repeats: dgemm 512: left out"]),
    ("a repeated call", 1, "repeats_check dgemv 512 off '1 2'", ["repeats: dgemv 512 off: left out"]),
    ("a trace", 4, "trace_check thin sleep 30", ["traces: thin: left out"]),
    ("a trace, for which no time is left", 3, "trace_check thin sleep 30", ["traces: thin: left out"]),
    ("panels", 1, "step_panels", ["panels: dpotrf 256: left out"]),
    ("a calibration", 1, "step_calibrate", ["calibrate: accel calibrate: left out"]),
    ("calls, of whose players nothing is known", 0,
     "players=(cpu); alone=1000000; calls='dgemm dsyrk'; start_player cpu sleep 30; time_calls 4096; stop_players",
     ["timings: dgemm 4096: left out", "timings: dsyrk 4096: left out"]),
    ("a player", 1, PLAYER_30 + " request='dgemm 8'; hear cpu 1 || stop_players", ["timings: cpu: left out"]),
    ("all players", 1,
     "players=(cpu); chosen=(cpu); start_player cpu sleep 30; step_end=$((SECONDS - 4)); time_call dgemm 8; echo $?; "
     "stop_players", ["timings: cpu: left out", "2"]),
    ("a player that is silent before", 9, PLAYER_30 + " request='dgemm 8'; hear cpu 1 || stop_players",
     ["timings: cpu: failed"]))])
def test_time_runs_out(tmp_path, seconds, command, said):
    (tmp_path / "proof").mkdir()
    _, output, errors = bash(f"build={tmp_path}; {SLOW}step_end=$((SECONDS + {seconds})); {command}")
    assert output.splitlines() == said, errors


PLAYER = """#!/bin/bash
echo >> "$0.starts"
while read -r line; do
    case $line in memory*) echo 8 ;; prepare*) echo ready ;; quit) exit ;;
    *) [ $(wc -l < "$0.starts") -gt DEATHS ] && echo "1 2 3 4 5 1" || exit 1 ;; esac
done
"""


@pytest.mark.parametrize("deaths, calls, said", [
    pytest.param(1, ["dsyrk", "dpotrf"], ["timings: libaccel_gpu: failed"], id="once"),
    pytest.param(9, [], ["timings: libaccel_gpu: failed", "timings: libaccel_gpu: failed",
                         "timings: dpotrf 8: left out"], id="again and again")])
def test_a_player_that_is_lost(tmp_path, deaths, calls, said):
    """libaccel_gpu, which ends at its first call, or whenever it is called."""
    player = tmp_path / "player"
    player.write_text(PLAYER.replace("DEATHS", str(deaths)))
    player.chmod(0o755)
    _, output, errors = bash(f"build={tmp_path}; {SLOW}rm $build/timings.tsv; touch $build/timings.tsv; "
                             "step_end=$((SECONDS + 60)) alone=1 most_call_seconds=9 most_rounds=1 calls='dgemm dsyrk "
                             "dpotrf'; "
                             f"players=(libaccel_gpu); start_player libaccel_gpu {player}; time_calls 8; stop_players; "
                             "cut -f 1 $build/timings.tsv")
    lines = output.splitlines()
    assert [line for line in lines if line.startswith("timings")][:len(said)] == said, errors
    assert lines[len(lines) - len(calls):] == calls


# ---- Who times a call: those that a call does not take too long, and that have room ----

# answers: of a probe, "ORDER MILLISECONDS", and of all other requests.
PLAYERS = ("players=(cpu libaccel libaccel_gpu libaccel_log nvblas); most_call_seconds=6; alone=1000000; left_out() { "
           "echo \"left out: $*\"; }; tell() { asked=$2; }; "
           "hear() { local at=${asked#* }; at=${at% *}; answer=${answers[$at]:-$size}; }; declare -A answers; "
           'step_end=100; now() { echo 0; }; for p in libaccel libaccel_gpu nvblas; do last_ms["$p dgemm"]=2 '
           'last_n["$p dgemm"]=1024; done; '
           'last_ms["cpu dgemm"]=200 last_n["cpu dgemm"]=1024; ')
ALL = "cpu libaccel libaccel_gpu libaccel_log nvblas"
TOO_LONG = r"left out: timings dgemm %d: some players a call would take too long: %s \(about %s s\)\n"


@pytest.mark.parametrize("n, least, said", [pytest.param(*case, id=name) for name, *case in (
    ("all that are fast", 2048, "8", rf"{ALL} 1\.6"),
    ("not the CPU, which is slow", 4096, "8; answers[2048]=1600",
     TOO_LONG % (4096, "cpu", r"12\.8") + r"libaccel libaccel_gpu libaccel_log nvblas 0\.4"),
    ("the CPU, whose larger calls are faster than small ones let guess", 4096, "8; answers[2048]=700", rf"{ALL} 6"),
    ("not the CPU, whose larger calls would take too long themselves", 8192, "8; answers[2048]=7 answers[4096]=7",
     TOO_LONG % (8192, "cpu", r"102\.4") + r"libaccel libaccel_gpu libaccel_log nvblas 4"),
    ("libaccel, as the fastest of those that it may take", 4096,
     '8; last_ms["libaccel dgemm"]=9000; last_ms["cpu dgemm"]=20', rf"{ALL} 1\.7"),
    ("one of which nothing is known first makes small calls", 4096,
     '8; answers[512]=100 answers[1024]=800 answers[2048]=6400; unset "last_ms[nvblas dgemm]"; last_ms["cpu dgemm"]=20',
     TOO_LONG % (4096, "nvblas", r"51\.2") + r"cpu libaccel libaccel_gpu libaccel_log 1\.6"),
    ("one, where all others are left out", 4096, "8; alone=4096", r"libaccel_gpu 0\.1"),
    ("one, where memory is short for more", 1024,
     "$(awk '/^MemAvailable:/ { printf \"%.0f\", $2 * 512 }' /proc/meminfo)",
     r"left out: timings dgemm 1024: players but libaccel_gpu this machine has too little memory\nlibaccel_gpu 0\.0"),
    ("nobody, where it is short for one", 1024, "1000000000000000",
     r"left out: timings dgemm 1024 this machine has too little memory\nnobody"))])
def test_who_times_a_call(n, least, said):
    command = f". tests/proof/turns.sh; {PLAYERS} size={least}; " \
              f'if choose_players dgemm {n}; then echo "${{chosen[*]}} $seconds_each"; else echo nobody; fi'
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    assert re.fullmatch(said, done.stdout.strip())


# ---- What is refused ----


@pytest.mark.parametrize("arguments, said", [
    ("--seconds 5", "60 to 36000"), ("--seconds soon", "60 to 36000"), ("--seed 32768", "0 to 32767"),
    ("--seed one", "0 to 32767"),
    ("--sizes 1024,much", "expected numbers like 1024,4096"), ("--longest long", "expected seconds"),
    ("--calls dgemm,dgemv", "--calls dgemv: allowed are"), ("--calls ,", "allowed are dgemm"),
    ("--alone 0", "--alone 0: expected a number"),
    ("--calibrate long", "--calibrate long: expected seconds"), ("--programs solve,it", "--programs it: allowed are"),
    ("--program-seconds 0", "--program-seconds 0: expected seconds"), ("--only unit,tests", "--only tests: allowed are"),
    ("--bundle /nowhere", "make gpu-bundle"), ("--test-gpu FOLDER", "no libcuda.so.1"), ("--out", "needs a value")])
def test_refused_in_one_line(folder, tmp_path, arguments, said):
    done, _, _ = proof(folder, tmp_path, *arguments.replace("FOLDER", str(tmp_path)).split())
    assert done.returncode == 2
    assert said in done.stdout
    assert done.stdout.count("\n") == 1
