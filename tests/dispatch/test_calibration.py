#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""The calibration's file: decisions follow it; what cannot be used is named once; ACCEL_LEARN=1 writes it, and nothing
else does."""

import os
import re
from pathlib import Path

import pytest

from lib.calibrated import AUTO, calibrate, gpu_lines, keys, lines, put
from lib.log import lines_for, outcomes, said
from lib.programs import BUILD, LOG, VENV_PYTHON, right, start

WAIT = {**AUTO, "TESTGPU_DELAY_US": "0", "ACCEL_START": "wait"}
HEART = "/usr/share/doc/liblinear-tools/examples/heart_scale"
STEPS = ["dgemm:500:2", "solve:400:2", "other:500:1"]
GPU, SLOWER = ("gpu0", "faster"), ("cpu", "slower")


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    return keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def cpu(known):
    """How the key of a CPU's library begins."""
    return re.match(r'\[cpu ".*?"', known["blas"]).group()


@pytest.fixture
def model(tmp_path):
    return tmp_path / "model"


@pytest.fixture
def env(model):
    return {**WAIT, **LOG, "ACCEL_MODEL": str(model)}


def run(*steps, env):
    done = start("steps", *steps, env=env)
    assert right(done), done.stderr[-1500:]
    return done


# ---- Decisions follow it ----


@pytest.mark.parametrize("steps, mode", [(STEPS, "wait"), (["dgemm:500:1", "started", *STEPS], "background")],
                         ids=["wait", "background"])
@pytest.mark.parametrize("cpu_ms, gpu_ms, where", [(1000, 1, GPU), (100, 1000, SLOWER)])
def test_decisions_follow_it(cpu_ms, gpu_ms, where, steps, mode, known, model, env):
    """Its times are the estimates."""
    calibrate(model, known, cpu_ms, gpu_ms)
    done = run(*steps, env={**env, "ACCEL_START": mode})
    assert set(outcomes(lines_for(done))[-5:]) == {where}
    assert not said(done)
    if where == SLOWER:
        assert {(f["est_cpu_ms"], f["est_gpu_ms"]) for f in lines_for(done, sym="dgemm_", m="500")[1:]} == {("100",
                                                                                                             "1000")}


def test_without_accel_model_that_of_the_cache_folder(known, tmp_path):
    (tmp_path / "accel").mkdir()
    calibrate(tmp_path / "accel/model", known, 1, 1000)
    done = start("steps", *STEPS, env={**WAIT, **LOG, "XDG_CACHE_HOME": str(tmp_path)})
    assert {f["why"] for f in lines_for(done)} == {"slower"}
    assert not said(done)


# ---- Trainings ----

SVM_TRAIN, LINEAR_TRAIN = ["/usr/bin/svm-train", "-q"], ["/usr/bin/liblinear-train", "-s", "0", "-q"]
PROGRAMS = {"svm_train": SVM_TRAIN, "train": LINEAR_TRAIN}
SIZES = {"svm_train": "270x13x2x3378", "train": "270x13x3378x2"}


@pytest.mark.parametrize("library, near", [("libsvm.so.9 1", 500), ("other", 5)])
def test_times_of_libsvm_are_those_of_any_library_that_has_been_measured(library, near, known, cpu, model, env,
                                                                         tmp_path):
    """Programs carry copies of it."""
    put(model, {f'{cpu} threads=1 library="{library}"]': f"svm_train 270x13x2x3510:{near}\n",
                known["gpu"]: gpu_lines(1)})
    line, = lines_for(start(*SVM_TRAIN, HEART, tmp_path / "svm", env=env), sym="svm_train")
    assert abs(float(line["est_cpu_ms"]) / near - 1) < 0.1


@pytest.mark.parametrize("near, where", [(300, GPU), (7000, SLOWER)])
@pytest.mark.parametrize("routine", PROGRAMS)
def test_the_devices_trainings_likewise_by_what_is_measured_there(routine, near, where, known, cpu, model, env,
                                                                  tmp_path):
    put(model, {f'{cpu} threads=1 library="other"]': f"{routine} {SIZES[routine]}:1000\n",
                known["gpu"]: gpu_lines(1) + f"{routine} {SIZES[routine]}:{near}\n"})
    line, = lines_for(start(*PROGRAMS[routine], HEART, tmp_path / "of", env=env), sym=routine)
    assert abs(float(line["est_gpu_ms"]) / near - 1) < 0.1
    assert (line["ran"], line["why"]) == where


CROSS = f"from liblinear.liblinearutil import *; train(*svm_read_problem({HEART!r}), '-s 0 -v 3 -q')"


@pytest.mark.parametrize("name, routine, call", [("svm_cross_validation", "svm_train", [*SVM_TRAIN, "-v", "3", HEART]),
                                                 ("cross_validation", "train", [VENV_PYTHON, "-B", "-c", CROSS])])
def test_a_cross_validation_takes_as_many_trainings_time(name, routine, call, known, cpu, model, env):
    """By what is measured of these."""
    times = []
    for ms in 1000, 20000:
        put(model, {f'{cpu} threads=1 library="other"]': f"{routine} {SIZES[routine]}:{ms}\n",
                    known["gpu"]: gpu_lines(1) + f"{routine} {SIZES[routine]}:{10 * ms}\n"})
        done = start(*call, env={**env, "PYTHONPATH": sorted(BUILD.glob("liblinear/*"))[-1]})
        line, = lines_for(done, sym=name)
        times.append([float(line["est_cpu_ms"]), float(line["est_gpu_ms"])])
    for few, many in zip(*times):
        assert few > 500
        assert abs(many / few / 20 - 1) < 0.1
    assert times[0][1] > 5 * times[0][0]


SHAPES = {"svm_train": [(200, 20), (200, 200), (400, 50), (400, 400), (800, 20), (800, 100), (1600, 400), (3200, 100)],
          "train": [(500, 10), (500, 100), (2000, 200), (5000, 20), (20000, 50), (100000, 10), (50000, 100)]}
TIMES = {"svm_train": lambda rows, features, each, besides: 1e-6 * rows * rows * (each * features + besides),
         "train": lambda rows, features, each, besides: 2e-5 * rows * (each * features + besides)}


@pytest.fixture
def few(tmp_path):
    """Data of two features."""
    path = tmp_path / "few"
    path.write_text("".join(f"{i % 2} 1:{i % 17 / 17} 2:{i * i % 23 / 23}\n" for i in range(1000)))
    return path


@pytest.mark.parametrize("each, besides", [(0.5, 3), (0.5, 30), (5, 3)])
@pytest.mark.parametrize("routine", PROGRAMS)
def test_a_training_takes_time_for_each_element_and_for_each_kernel_value_or_row_besides(routine, each, besides, known,
                                                                                         cpu, few, model, env,
                                                                                         tmp_path):
    """In nanoseconds. What is measured with many features tells both."""
    sizes = {(n, k): f"{n}x{k}x2x{n * k}" if routine == "svm_train" else f"{n}x{k}x{n * k}x2" for n,
             k in SHAPES[routine]}
    measured = " ".join(f"{size}:{TIMES[routine](*shape, each, besides):.6f}" for shape, size in sizes.items())
    put(model, {f'{cpu} threads=1 library="a library"]': f"{routine} {measured}\n", known["gpu"]: gpu_lines(1)})
    line, = lines_for(start(*PROGRAMS[routine], few, tmp_path / "of", env={**env, "ACCEL_POLICY": "cpu"}), sym=routine)
    assert 0.75 < float(line["est_cpu_ms"]) / TIMES[routine](1000, 2, each, besides) < 1.33


# What the table of docs/costs.md measured: a kernel value of two features takes 10 to 20 ns, and a
# third of the rows are support vectors; a row in each of 20 directions takes 5 ns, and its one
# element 0.9 to 7 on one thread.
@pytest.mark.parametrize("routine, least, most", [("svm_train", 3.3, 6.7), ("train", 20000 * 5.9e-6, 20000 * 12e-6)])
def test_a_training_without_a_calibration(routine, least, most, few, tmp_path):
    if routine == "train":
        few.write_text("".join(f"{i % 2} 1:{i % 17 / 17 + 1}\n" for i in range(1000)))
    line, = lines_for(start(*PROGRAMS[routine], few, tmp_path / "of",
                            env={**WAIT, **LOG, "XDG_CACHE_HOME": str(tmp_path), "ACCEL_POLICY": "cpu",
                                 "OPENBLAS_NUM_THREADS": "1"}))
    assert least <= float(line["est_cpu_ms"]) <= most


# ---- What cannot be used ----


def check_said_once(model, line="the calibration ", **env):
    done = run(*STEPS, "threads:4:300:2", env={**WAIT, "ACCEL_MODEL": str(model), **env})
    (message,) = [line for line in done.stderr.splitlines() if not line.startswith("accel ")]
    assert message.startswith("accel: " + line)


OTHER_GPU = '[gpu "Other" cuda=13.0 cublas=130100]'
FOREIGN = {
    # A library that nobody has calibrated is named in a log alone; and the GPU is reached, where
    # that matters.
    "of another CPU": (lambda known, cpu: {known["blas"].replace(cpu, '[cpu "Other"'): lines(1),
                                           known["gpu"]: lines(1000)}, {}),
    "of another library": (lambda known, cpu: {known["blas"].replace("library=", "library=other"): lines(1),
                                               known["gpu"]: lines(1000)}, LOG),
    "of another GPU": (lambda known, cpu: {known["blas"]: lines(1), known["lapack"]: lines(1), OTHER_GPU: lines(1000)},
                       {"ACCEL_GPU": "dgemm"}),
    "of another driver": (lambda known, cpu: {known["blas"]: lines(1000), known["lapack"]: lines(1000),
                                              known["gpu"].replace("cuda=13", "cuda=12"): lines(1)},
                          {"ACCEL_GPU": "dgemm"}),
    "of nothing that is here": (lambda known, cpu: {'[cpu "Other" threads=2 library="x 1"]': lines(1),
                                                    OTHER_GPU: lines(1)}, {}),
}


@pytest.mark.parametrize("sections, env", FOREIGN.values(), ids=FOREIGN)
def test_one_is_named_once(sections, env, known, cpu, model):
    put(model, sections(known, cpu))
    check_said_once(model, **env)


@pytest.mark.parametrize("change", [
    pytest.param(lambda good: good.replace(b"accel-model 1", b"accel-model 2"), id="version"),
    pytest.param(lambda good: b"accel\n", id="text"),
    pytest.param(lambda good: bytes(range(256)), id="binary"),
    pytest.param(lambda good: good.replace(b":1.", b":2."), id="checksum"),
    pytest.param(lambda good: b"", id="nothing")])
def test_another_content_is_named_once(change, known, model):
    calibrate(model, known, 1, 1000)
    model.write_bytes(change(model.read_bytes()))
    check_said_once(model)


@pytest.mark.parametrize("make", [pytest.param(os.mkdir, id="a folder"),
                                  pytest.param(os.mkfifo, id="a FIFO, which is not waited for")])
def test_what_is_no_file_is_named_once(make, model):
    make(model)
    check_said_once(model)


def test_a_missing_one_is_named_once(model):
    check_said_once(model, "no calibration at ")


def test_no_file_and_none_asked_for_nothing_is_said(tmp_path):
    assert run(*STEPS, env={**WAIT, "XDG_CACHE_HOME": str(tmp_path)}).stderr == ""


def test_damaged_in_each_byte_named_never_a_crash(known, model, tmp_path):
    """Every byte changed, every length."""
    put(model, {known["blas"]: "dgemm 100x100x100:2 1000x1000x1000:30\n",
                known["gpu"]: "up_gbps=9\ndown_gbps=8.5\ndgemm 64x64x64:0.1\n"})
    with open(tmp_path / "stderr", "w+") as stderr:
        done = start("damage", model, env={**WAIT, "ACCEL_START": "background", "ACCEL_MODEL": str(model)},
                     stderr=stderr)
    assert done.returncode == 0
    assert re.search(r"^[2-9]\d\d files, 0 wrong$", done.stdout, re.M)


# ---- Copies and kernels that overlap ----


def of_products(times):
    return "dgemm " + " ".join(f"{n}x{n}x{n}:{ms}" for n, ms in times.items()) + "\n"


def test_copies_and_kernels_that_overlap(known, model, env):
    """1.6 ms up, 1 ms for the kernel, 0.8 ms down: more than the CPU's 3 ms together, and less by a schedule. A call of
    less than 4 MB has no schedule: 0.24 ms up, 0.2 for the kernel, 0.12 down stay a sum beside the CPU's 0.5. One that
    gains much has the GPU started."""
    put(model, {known["blas"]: of_products({2000: 1000, 1000: 3, 390: 0.5}),
                known["gpu"]: "up_gbps=10\ndown_gbps=10\nkernels_ms=0.001\n" + of_products({2000: 8, 1000: 1,
                                                                                            390: 0.2})})
    done = run("dgemm:2000:1", "dgemm:1000:3", "dgemm:390:3", env=env)
    for n, why, least, most in ((1000, "faster", 1.6, 2.85), (390, "slower", 0.5, 0.7)):
        found = lines_for(done, n=str(n))
        assert [f["why"] for f in found] == [why] * 3
        assert all(least < float(f["est_gpu_ms"]) < most for f in found)


@pytest.fixture
def estimate(known, model, env):
    """The estimate of a product of order 2000, by these lines of the GPU."""

    def estimate(values):
        put(model, {known["blas"]: of_products({2000: 1000, 1000: 300}),
                    known["gpu"]: f"kernels_ms=0.001\n{values}{of_products({2000: 8, 1000: 1})}"})
        return float(lines_for(start("steps", "dgemm:2000:1", env=env), n="2000")[0]["est_gpu_ms"])

    return estimate


def test_what_short_columns_take_is_in_estimates(estimate):
    """Blocks of rows of a matrix are short columns: what these take as measured counts, 2 ms each here, and none if
    none are short."""
    rates = "up_gbps=10\ndown_gbps=10\n"
    known, none, up, down = (estimate(rates + values) for values in (
        "", "short_up_bytes=1\nshort_down_bytes=1\n", "short_up_bytes=65536\nshort_up_ms=2\n",
        "short_down_bytes=65536\nshort_down_ms=2\n"))
    assert none <= known <= 1.05 * none
    assert 1.02 * none < up
    assert 1.02 * none < down


def test_how_fast_blocks_are_multiplied_is_in_estimates(estimate):
    """So does the pace of its blocks, beside that of the call whose time was measured: faster ones are taken, and none
    that are slower. That of another type counts nothing."""

    def paced(kind, pace):
        paces = " ".join(f"{rows}:{1 if rows == 2048 else pace}" for rows in range(640, 4097, 128))
        return estimate(f"up_gbps=1000\ndown_gbps=1000\npace_{kind} {paces}\n")

    slow, fast, other = paced("d", 0.5), paced("d", 2), paced("s", 0.5)
    assert 0.99 * other < slow < 1.2 * other
    assert fast < 0.8 * other


# ---- ACCEL_LEARN ----


def test_without_it_nothing_is_written(tmp_path):
    start("steps", *STEPS, "dgemm:500:20", "sleep:500", "dgemm:500:5",
          env={**WAIT, "XDG_CACHE_HOME": str(tmp_path), "ACCEL_START": "background"})
    assert not list(tmp_path.rglob("*"))


# Of calls whose operands are on the GPU already, nothing is learned.
LEARNS = {**AUTO, "TESTGPU_START_MS": "10", "ACCEL_RESIDENT": "off"}


def learn(model, *steps, **env):
    return start("steps", *steps, env={**LEARNS, "ACCEL_MODEL": str(model), "ACCEL_LEARN": "1", **env})


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A calibration that was written at exit, once and again: its path, and the second run."""
    path = tmp_path_factory.mktemp("learned") / "new/folder/model"
    for _ in range(2):
        done = learn(path, "solve:500:2", "dgemm:500:200", "sleep:700", "dgemm:500:8", "solve:400:8", "dgemm:20:1",
                     **LOG)
        assert right(done)
        assert not said(done)
        check_written(path.read_text())
    return path, done


def check_written(text):
    assert re.search(r"^checksum=", text, re.M)
    assert text.count("\n[") == 3
    pattern = r"accel-model 1|\[.*\]|\w+=[\w.]+|[a-z]+( \d+(x\d+)*:\d+(\.\d+)?)+"
    assert not [line for line in text.splitlines() if not re.fullmatch(pattern, line)]


def section_of(text, key):
    return text.split(key)[1].split("\n[")[0]


def test_written_at_exit_with_what_the_calls_took(learned, known):
    text = learned[0].read_text()
    assert not [key for key in known.values() if f"\n{key}\n" not in text]
    assert not [path for path in learned[0].parent.iterdir() if path.name != "model"]  # no draft is left


def test_with_how_much_longer_calls_take_on_the_gpu_than_their_schedules_say(learned, known):
    """Copies and kernels of a product of order 500 overlap: that is learned, not its kernel."""
    section = section_of(learned[0].read_text(), known["gpu"])
    assert float(re.search(r"^schedule_ratio=([\d.]+)$", section, re.M)[1]) not in (0, 1)
    assert not re.search(r"^dgemm .*\b500x500x500:", section, re.M)


def test_with_no_built_in_figures_which_would_count_as_measured(learned, known):
    """Nor does the GPU's line say that they are of a calibration."""
    path, done = learned
    assert not re.search("^(up_gbps|kernels_ms|solver_ms|calibrated)=", section_of(path.read_text(), known["gpu"]),
                         re.M)
    assert "event=gpu " in done.stderr
    assert "figures=measured" not in done.stderr.split("event=gpu ")[1].splitlines()[0]


def test_a_second_process_uses_it_and_leaves_it_as_it_is(learned, known):
    """Its figures are the estimates."""
    path, text = learned[0], learned[0].read_text()
    done = run("dgemm:500:2", "solve:400:1", env={**LEARNS, "ACCEL_MODEL": str(path), **LOG, "ACCEL_START": "wait"})
    assert not said(done)
    found = re.search(re.escape(known["blas"]) + r"\n(?:.*\n)*?dgemm .*\b500x500x500:([\d.]+)", text)
    assert abs(float(lines_for(done, sym="dgemm_")[0]["est_cpu_ms"]) / float(found[1]) - 1) < 0.01
    assert path.read_text() == text


def test_what_it_does_not_know_better_stays(known, model):
    put(model,
        {**{key: lines(3) for key in known.values()}, '[cpu "Other" threads=2 library="x 1"]': "dgemm 10x10x10:1\n"})
    learn(model, "dgemm:500:4")
    text = model.read_text()
    assert '[cpu "Other" threads=2 library="x 1"]\ndgemm 10x10x10:1\n' in text
    assert text.count("\n[") == 4
    assert "dgemm" in text.split(known["blas"])[1].splitlines()[1]


def test_what_calibrations_alone_measure_stays_when_the_gpus_section_is_written_anew(known, model):
    values = ("pace_d 640:0.9 "
              "768:1.1\nshort_up_bytes=6000\nshort_up_ms=0.00006525\nshort_down_bytes=1\ngain_emulated=5\n"
              "solve_d_blas_gbps=70\n"
              "solve_d_blas_row_ms=0.0004\nsolve_d_own_gbps=300\nsolve_d_own_row_ms=0.0002\nsolve_d_own_nrhs=1024\n")
    put(model, {known["blas"]: lines(60), known["lapack"]: lines(60),
                known["gpu"]: f"up_gbps=11\ndown_gbps=11\n{values}{lines(0.5)}"})
    learn(model, "solve:500:2", "dgemm:500:20", "sleep:500", "dgemm:500:8")
    section = section_of(model.read_text(), known["gpu"])
    assert "\nschedule_ratio=" in section
    assert not [value for value in values.splitlines() if f"\n{value}\n" not in section]


# Nobody may make a folder in /sys: its system says so, not that the folder is not there.
@pytest.mark.parametrize("home, wanted", [
    pytest.param("/sys",
                 r" in /sys/\.cache/accel/model: its folder cannot be made \((Read-only file system|Operation not "
                 r"permitted|Permission denied)\)",
                 id="a home that cannot be written"),
    pytest.param("", ": no file to write: ACCEL_MODEL, XDG_CACHE_HOME and HOME name none", id="no home")])
def test_what_is_not_kept_is_said_once_with_the_reason(home, wanted):
    done = start("steps", "dgemm:500:12", "end:exit", env={**LEARNS, "HOME": home, "ACCEL_LEARN": "1"})
    assert done.returncode == 7
    (message,) = [line for line in said(done) if "is not kept" in line]
    assert re.fullmatch("accel: what was learned is not kept" + wanted, message)


@pytest.mark.parametrize("name", [pytest.param("file/model", id="a folder that is a file"),
                                  pytest.param("/proc/none/model", id="no folder")])
def test_what_cannot_be_written_is_said_once_and_the_exit_status_stays(name, tmp_path):
    (tmp_path / "file").touch()
    done = learn(tmp_path / name, "dgemm:500:12", "end:exit")
    assert done.returncode == 7
    assert done.stderr.count("\n") == len(said(done))
    assert sum("is not kept" in line for line in said(done)) == 1
