#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""accel estimate: counts the calls that a missing GPU would have run. The program runs on the CPU, as without it."""

import os
import re
from collections import namedtuple

import pytest

from lib.calibrated import put
from lib.programs import BUILD, TESTS, start

TOOL = str(BUILD / "accel")
STEPS = str(TESTS / "steps")
PYTHON = "/usr/bin/python3"
TESTGPU = {"ACCEL_CUDA_DIR": str(BUILD / "testgpu"), "LD_LIBRARY_PATH": str(BUILD / "testgpu")}
PROGRAM = """
import os, sys, numpy as np
a = np.random.default_rng(1).random((900, 900))
b = a @ a
x = np.linalg.solve(a, b)
small = a[:40, :40].copy()
for i in range(50):
    small @ small
print("sum %.6e" % b.sum())
"""
FORKS = """import os
for i in range(2):
  if os.fork() == 0:
    import numpy as n; n.ones((700, 700)) @ n.ones((700, 700)); raise SystemExit(0)
[os.wait() for i in range(2)]"""
# R's package class leaves its function by longjmp where too many points tie.
LEFT = "try(class::knn(matrix(0, 8000, 50), matrix(0, 2000, 50), rep(1:2, 4000), 5), TRUE); " \
       "a <- matrix(rnorm(1e6), 1000); for (i in 1:3) b <- a %*% a"
ONE_CALL = "up_gbps=1\ndown_gbps=1\ndgemm 64x64x64:1\n"


def estimate(*arguments, env=None, folder=None):
    return start(TOOL, "estimate", *arguments, env={**(env or {}), **({"TMPDIR": str(folder)} if folder else {})})


def rows(done):
    """The table: routine -> (calls, on the CPU, GPU calls, were, would be, saved, not paid, lost by)."""
    found = re.findall(r"(?m)^(\w+)((?: +-?[\d.]+){8})$", done.stderr)
    return {name: [float(word) for word in words.split()] for name, words in found}


# ---- A program without a GPU ----

Estimated = namedtuple("Estimated", "folder report done")


@pytest.fixture(scope="module")
def estimated(tmp_path_factory):
    """An estimate of a program; its TMPDIR, and what the test GPU, which is there, would report at its end."""
    folder, report = tmp_path_factory.mktemp("tmp"), tmp_path_factory.mktemp("report") / "report"
    env = {**TESTGPU, "TESTGPU_REPORT": str(report)}
    return Estimated(folder, report, estimate("--gpu", "H200", "--", PYTHON, "-c", PROGRAM, env=env, folder=folder))


def test_the_program_s_output_is_bit_for_bit_its_own(estimated):
    assert estimated.done.returncode == 0
    assert estimated.done.stdout == start(PYTHON, "-c", PROGRAM).stdout


def test_its_routines_are_in_the_table(estimated):
    assert {"dgemm", "dgesv", "all"} <= rows(estimated.done).keys()


def test_51_products_of_which_one_would_have_paid(estimated):
    calls, _, on_gpu, *_ = rows(estimated.done)["dgemm"]
    assert (calls, on_gpu) == (51, 1)


def test_one_solution_which_would_have_paid(estimated):
    assert rows(estimated.done)["dgesv"][2] == 1


def test_the_last_row_is_the_sum(estimated):
    table = rows(estimated.done)
    sums = [sum(table[name][i] for name in table if name != "all") for i in range(8)]
    assert sums == pytest.approx(table["all"], rel=0, abs=0.005 * len(table))


def test_saved_is_the_cpu_s_time_less_the_gpu_s(estimated):
    _, _, _, were, would_be, saved, _, _ = rows(estimated.done)["all"]
    assert abs(were - would_be - saved) < 0.003


def test_it_says_whose_figures_and_how_many_processes(estimated):
    assert "built-in figures" in estimated.done.stderr
    assert "1 process," in estimated.done.stderr


def saved(done):
    """Seconds that would be saved: with CUDA's start, and without."""
    return [float(word) for word in re.search(r"in all; (\S+) s would be saved, (\S+) s if", done.stderr).groups()]


def test_a_program_that_ends_before_cuda_is_up_saves_nothing(estimated):
    with_start, up = saved(estimated.done)
    assert with_start == 0
    assert up == rows(estimated.done)["all"][5] > 0


def test_a_longer_one_saves_once_cuda_is_up_and_kernels_are_loaded(tmp_path):
    model, key = tmp_path / "model", '[gpu "NVIDIA H200" cuda=13.0 cublas=130100]'
    program = ("import numpy as np; a = np.random.default_rng(1).random((900, 900)) + 900 * np.eye(900)\n"
               "for i in range(40): a @ a; np.linalg.solve(a, a)")

    def seconds(start_ms):
        put(model, {key: f"up_gbps=50\ndown_gbps=50\nkernels_ms=1\nsolver_ms=1\nstart_ms={start_ms}\ndgemm 64x64x64:.1\n"})
        return saved(estimate("--gpu", "H200", "--", PYTHON, "-c", program, env={"ACCEL_MODEL": str(model)}))

    slowly, up = seconds(10000000)
    assert slowly == 0 < up
    at_once, up = seconds(1)
    assert 0.5 * up < at_once < up


def test_no_cuda_was_started_though_it_was_there(estimated):
    assert not estimated.report.exists()


def test_nothing_is_left_in_tmpdir(estimated):
    assert os.listdir(estimated.folder) == []


def test_without_a_calibration_the_program_says_nothing_of_the_place_where_one_would_be(tmp_path):
    done = estimate("--gpu", "H200", "--", STEPS, "dgemm:600:1", env={"HOME": str(tmp_path), "ACCEL_LOG": "1"})
    assert done.returncode == 0
    assert "sym=dgemm_" in done.stderr
    assert "no calibration" not in done.stderr


def test_a_calibration_that_the_setting_names_and_that_is_not_there(tmp_path):
    env = {"HOME": str(tmp_path), "ACCEL_LOG": "1", "ACCEL_MODEL": f"{tmp_path}/none"}
    done = estimate("--gpu", "H200", "--", STEPS, "dgemm:600:1", env=env)
    assert done.returncode == 0
    assert f"accel: no calibration at {tmp_path}/none (ACCEL_MODEL)" in done.stderr


# ---- What another precision would bring, where that is as accurate and faster ----


def hints(card, folder, **env):
    """What is hinted, and what products would take on the GPU."""
    done = estimate("--gpu", card, "--", STEPS, "dgemm:1500:2", env=env, folder=folder)
    return [line for line in done.stderr.splitlines() if line.startswith("accel: hint:")], rows(done).get("dgemm",
                                                                                                          [0] * 5)[4]


def test_what_emulation_would_bring_on_a_card_with_slow_double_precision(tmp_path):
    (hint,), _ = hints("rtx4090", tmp_path)
    assert hint == "accel: hint: dgemm on this card: native 0.903 TF/s, emulated 12.9; ACCEL_PRECISION=emulated"


def test_no_hint_where_it_is_asked_for_already_and_the_estimate_knows_its_rate(tmp_path):
    found, emulated = hints("rtx4090", tmp_path, ACCEL_PRECISION="emulated", ACCEL_GPU="dgemm")
    assert not found
    _, native = hints("rtx4090", tmp_path, ACCEL_GPU="dgemm")
    assert 0 < emulated < native


@pytest.mark.parametrize("card", ["H100", "A100", "V100"])
def test_a_card_whose_own_is_as_fast_has_no_hint(tmp_path, card):
    assert not hints(card, tmp_path)[0]


def test_a_calibration_s_rate_comes_before_the_data_sheet_s(tmp_path):
    put(tmp_path / "model", {'[gpu "NVIDIA GeForce RTX 4090" cuda=13.0 cublas=130100]':
                             "up_gbps=10\ndown_gbps=10\ngain_emulated=3\ndgemm 64x64x64:1\n"})
    (hint,), _ = hints("rtx4090", tmp_path, ACCEL_MODEL=str(tmp_path / "model"))
    assert "native 0.903 TF/s, emulated 2.71;" in hint


def test_a_slice_s_rates_are_its_share(tmp_path):
    (hint,), _ = hints("B200 MIG 3g.90gb", tmp_path)
    assert "native 9.71 TF/s, emulated 32.8" in hint


# ---- Other programs ----


def test_the_calls_of_children_are_added_up(tmp_path):
    done = estimate("--gpu", "V100", "--", PYTHON, "-c", FORKS, folder=tmp_path)
    assert done.returncode == 0
    assert rows(done)["dgemm"][0] == 2
    assert "2 processes," in done.stderr


def test_calls_after_one_that_was_left_by_longjmp(tmp_path):
    done = estimate("--gpu", "H100", "--", "/usr/bin/Rscript", "--vanilla", "-e", LEFT, folder=tmp_path)
    assert done.returncode == 0
    assert rows(done)["dgemm"][0] == 3


# ---- A calibration of a test GPU so slow that every call loses ----


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """The calibration, and the GPU's name in it."""
    model = tmp_path_factory.mktemp("slow") / "model"
    start(TOOL, "calibrate", "--seconds", "1", "--output", model,
          env={**TESTGPU, "TESTGPU_DELAY_US": "0", "TESTGPU_GFLOPS": "0.5", "TESTGPU_DATA": "0"})
    return model, re.search(r'\[gpu "([^"]+)"', model.read_text())[1]


def test_a_slow_gpu_of_the_calibration_would_have_got_no_product(slow, tmp_path):
    model, name = slow
    done = estimate("--gpu", name, "--model", model, "--", PYTHON, "-c", PROGRAM, folder=tmp_path)
    assert done.returncode == 0
    assert "measured figures" in done.stderr
    assert rows(done)["dgemm"][2] == 0


# ---- The names of GPUs: the list needs no program; case, spaces and hyphens do not matter ----


@pytest.mark.parametrize("word", ["list", "?"])
def test_a_list_without_a_program(slow, tmp_path, word):
    model, name = slow
    done = estimate("--gpu", word, "--model", model, folder=tmp_path)
    listed = dict(line.rsplit(None, 1) for line in done.stdout.splitlines())
    assert done.returncode == 0
    assert listed["RTX 4090"] == "built-in"
    assert listed[name] == "measured"
    assert len(listed) > 20
    assert not done.stderr


def test_a_setting_that_is_not_understood(tmp_path):
    done = estimate("--gpu", "list", env={"ACCEL_POLICY": "fast"}, folder=tmp_path)
    assert done.returncode == 0
    assert done.stderr == "accel: ACCEL_POLICY=fast is not understood; allowed: auto,gpu,cpu; the default is used\n"


def test_a_list_that_cannot_be_written():
    with open("/dev/full", "w") as full:
        done = start(TOOL, "estimate", "--gpu", "list", stdout=full)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("given, meant", [
    ("RTX4090", "RTX 4090"), ("rtx-4090", "RTX 4090"), ("4090", "RTX 4090"), ("NVIDIA GeForce RTX 4090", "RTX 4090"),
    ("nvidiah100", "H100"),
    ("h100pcie", "H100 PCIe"), ("H100 PCIe", "H100 PCIe"), ("A100-SXM4-40GB", "A100-SXM4-40GB"), ("l4", "L4"),
    ("a10080gb", "A100 80GB")])
def test_names(slow, tmp_path, given, meant):
    done = estimate("--gpu", given, "--model", slow[0], "--", "true", folder=tmp_path)
    assert done.returncode == 0
    assert f" ({meant}, built-in figures)" in done.stderr


def test_the_name_of_the_calibration_s(slow, tmp_path):
    model, name = slow
    done = estimate("--gpu", name.replace(" ", "").upper(), "--model", model, "--", "true", folder=tmp_path)
    assert done.returncode == 0
    assert f" ({name}, measured figures)" in done.stderr


@pytest.mark.parametrize("given, text", [("L4", "(L4, built-in"), ("rtx4000ada", "(NVIDIA RTX 4000 Ada, measured")])
def test_a_calibration_of_an_l40x(tmp_path, given, text):
    put(tmp_path / "many", {'[gpu "NVIDIA L40X" cuda=13.0 cublas=1]': ONE_CALL,
                            '[gpu "NVIDIA RTX 4000 Ada" cuda=13.0 cublas=1]': ONE_CALL})
    done = estimate("--gpu", given, "--model", tmp_path / "many", "--", "true", folder=tmp_path)
    assert done.returncode == 0
    assert text in done.stderr


# ---- What goes wrong ----


def in_words(value):
    return " ".join(value) if isinstance(value, (list, tuple)) else None


@pytest.mark.parametrize("arguments, text", [
    (("--gpu", "Foo", "--", "true"),
     "--gpu Foo is not known; allowed: a name that `accel estimate --gpu list` prints\n"),
    (("--gpu", "RTX4080", "--", "true"), "--gpu RTX4080 is not known; near: RTX "),
    (("--gpu", "RTX", "--", "true"), "--gpu RTX may be several; near: RTX "),
    (("--gpu", "H100 MIG 1g", "--", "true"),
     "--gpu H100 MIG 1g is no whole name of a MIG instance, such as H200 MIG 1g.18gb; near: H100; allowed: "),
    (("--gpu", "H100 MIG", "--", "true"), "--gpu H100 MIG is no whole name of a MIG instance"),
    (("--gpu", "h100 foo bar", "--", "true"),
     "--gpu h100 foo bar has words that belong to no known GPU; near: H100; allowed: "),
    (("--gpu", "-", "--", "true"), "--gpu - is no name"), (("--gpu", "", "--", "true"), "--gpu  is no name"),
    (("--gpu", "H200", "--model", "/none", "--", "true"), "--model /none: there is no such file; allowed"),
    (("--gpu", "list", "--model", "/dev/null"), "--model /dev/null: it is no regular file"),
    (("--", "true"), "no GPU is given: --gpu NAME; --gpu list"), ((), "no GPU is given"),
    (("--gpu", "H200"), "no program"),
    (("--gpu", "H200", "--shim", "/none", "--", "true"), "/none is not there")], ids=in_words)
def test_refused_in_one_line(tmp_path, arguments, text):
    done = estimate(*arguments, folder=tmp_path)
    assert done.returncode == 2
    assert text in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("program, status, text", [
    (["/no/such/program"], 127, "/no/such/program"), (["/dev/null"], 126, "/dev/null: Permission denied"),
    (["sh", "-c", "exit 7"], 7, "no call of BLAS"), (["sh", "-c", "exit 127"], 127, "no call of BLAS"),
    (["sh", "-c", "kill -9 $$"], 137, "no call of BLAS")], ids=in_words)
def test_the_exit_status_of_a_program(tmp_path, program, status, text):
    done = estimate("--gpu", "H200", "--", *program, folder=tmp_path)
    assert done.returncode == status
    assert text in done.stderr


def test_without_a_folder_for_the_counts():
    done = estimate("--gpu", "H200", "--", "true", folder="/no/such/folder")
    assert done.returncode == 126
    assert "in TMPDIR, or /tmp: No such file or directory; nothing is run\n" in done.stderr


def test_where_gpu_and_cpu_share_one_memory_operands_are_read_where_they_are():
    def estimated_ms(c2c):
        done = estimate("--gpu", "GB10", "--", STEPS, "dgemm:400:1", env={"ACCEL_LOG": "1", "ACCEL_C2C": c2c})
        return float(re.search(r"sym=dgemm_ .*est_gpu_ms=([\d.]+)", done.stderr)[1])

    assert estimated_ms("auto") < 0.9 * estimated_ms("copy")
