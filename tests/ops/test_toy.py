#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""A library that is no BLAS, with a struct argument and a double result, in a libaccel of its own build (tests/toy/):
its exported names are those of its row, a version is accepted or not, a call runs on the test GPU, and one that does
not finds its original with registers and stack as they were passed."""

import pytest

from lib.calibrated import key_that_is_missed, put
from lib.log import lines_for
from lib.programs import BUILD, LOG, NO_GPU, SHIM, TEST_GPU, exported, start

TOY = BUILD / "tests/toy"
SCORES = "score 2.5\n" * 3


def with_toy(env):
    return {name: value.replace(str(BUILD / "libaccel.so"), str(TOY / "libaccel.so")) for name, value in env.items()}


def call(what, library, *settings):
    env = {"LD_LIBRARY_PATH": str(TOY / library)}
    for some in settings:
        env.update(some)
    return start(str(TOY / "toy_call"), what, env=with_toy(env))


def score(**env):
    """The lines of a run on the test GPU that gets the library's own results."""
    done = call("score", "1", TEST_GPU, LOG, env)
    assert done.returncode == 0, done.stderr
    assert done.stdout == SCORES
    return lines_for(done, sym="toy_score")


def whys(lines):
    return [line["why"] for line in lines]


def test_a_function_of_another_library_is_exported_under_its_plain_name_alone():
    assert exported(TOY / "libaccel.so") ^ exported(BUILD / "libaccel.so") == {"toy_score"}


def test_libtoy_itself():
    assert call("score", "1").stdout == SCORES


def test_the_double_result_and_the_operations_own_fields_in_the_log():
    lines = score()
    assert len(lines) == 3
    assert {(line["ran"], line["why"], line["features"]) for line in lines} == {("gpu0", "forced", "1000")}


def test_the_same_fields_in_json():
    done = call("score", "1", TEST_GPU, {"ACCEL_LOG": "json"})
    assert done.stdout == SCORES
    assert done.stderr.count('"sym": "toy_score", "features": 1000, "ran": "gpu0"') == 3


def test_the_operation_verifies_its_own_results():
    assert [float(line["verify"]) <= 1 for line in score(ACCEL_VERIFY="all") if line["ran"] == "gpu0"] == [True] * 3


def test_a_wrong_result_is_computed_anew():
    assert whys(score(ACCEL_VERIFY="all", ACCEL_VERIFY_ACTION="cpu", TESTGPU_WRONG="2")) == ["forced", "verify_failed",
                                                                                             "verify_failed"]


def test_a_wrong_result_stays_with_a_warning():
    done = call("score", "1", TEST_GPU, LOG, {"ACCEL_VERIFY": "all", "ACCEL_VERIFY_ACTION": "warn",
                                              "TESTGPU_WRONG": "2"})
    assert done.stdout != SCORES
    assert whys(lines_for(done, sym="toy_score")) == ["forced"] * 3


@pytest.mark.parametrize("features, why", [("63", "small"), ("64", "slower")])
def test_small_as_for_the_entry(features, why):
    assert len(lines_for(call(features, "1", TEST_GPU, LOG, {"ACCEL_POLICY": "auto"}), sym="toy_score",
                         features=features, why=why)) == 3


# ---- Estimates ----
# Nominal times: 3 steps of a millisecond on the device; half of the 2 * 1000 operations at a tenth
# of 25 Gflop/s on the CPU. A calibration's come first, also another library's on this CPU; so
# decisions follow them.


def estimated(folder, **env):
    env = {"ACCEL_POLICY": "auto", "ACCEL_START": "wait", "XDG_CACHE_HOME": str(folder), **env}
    return lines_for(call("score", "1", TEST_GPU, LOG, env), sym="toy_score")


def test_nominal_times_of_the_work_that_each_side_is_thought_to_do(tmp_path):
    line = estimated(tmp_path)[0]
    assert 3 < float(line["est_gpu_ms"]) < 53.2
    assert 0 < float(line["est_cpu_ms"]) < 0.01


@pytest.mark.parametrize("own", [True, False], ids=["libtoy", "another library"])
def test_a_calibrations_times_are_the_estimates(own, tmp_path):
    library = f"libtoy.so {(TOY / '1/libtoy.so').resolve().stat().st_size}" if own else "libanother.so 1"
    cpu = key_that_is_missed(tmp_path, {'[gpu "none"]': ""}, "dgemm:400:1", {})
    put(tmp_path / "model", {f'[{cpu} threads=1 library="{library}"]': "toy_score 500:500 1000:1000 2000:2000\n"})
    lines = estimated(tmp_path, ACCEL_MODEL=str(tmp_path / "model"))
    assert [(line["ran"], line["why"]) for line in lines] == [("gpu0", "faster")] * 3
    assert abs(float(lines[0]["est_cpu_ms"]) - 1000) < 200


# ---- Settings, versions and failures ----


@pytest.mark.parametrize("name, value, why", [
    ("ACCEL_CPU", "toy_*", "user"), ("ACCEL_CPU", "blas:*,lapack:*", "forced"), ("ACCEL_ML", "0", "user"),
    ("ACCEL_ML", "liblinear", "user"),
    ("ACCEL_ML", "libsvm", "forced"), ("ACCEL_ML", "1,xgboost", "forced")])
def test_a_library_that_a_setting_turns_off_or_on(name, value, why):
    assert whys(score(**{name: value})).count(why) == 3


def test_another_version_is_the_originals_and_the_log_says_so():
    done = call("score", "2", TEST_GPU, LOG)
    assert done.stdout == SCORES
    assert len(lines_for(done, sym="toy_score", ran="cpu", why="unsupported")) == 3
    assert "features" not in done.stderr


@pytest.mark.parametrize("fault, why", [("cuMemAlloc:1+", "no_memory"), ("cublasDgemm:1+", "error"),
                                        ("cuMemcpyHtoDAsync:1+", "error"),
                                        ("cuMemcpyDtoHAsync:1+", "error")])
def test_a_call_that_always_fails_leaves_the_originals_result(fault, why):
    assert why in whys(score(TESTGPU_FAIL=fault))


# A model without features is not understood.
PYTHON = f"""import ctypes
class Model(ctypes.Structure):
    _fields_ = [("features", ctypes.c_int), ("weights", ctypes.c_void_p), ("bias", ctypes.c_double)]
x = (ctypes.c_double * 3)(1, 2, 3)
score = ctypes.CDLL("{TOY}/1/libtoy.so").toy_score
score.restype = ctypes.c_double
for features in 3, 0:
    print(score(ctypes.byref(Model(features, ctypes.addressof(x), 0.25)), x))
"""


def test_a_pointer_from_dlsym_and_a_call_that_the_operation_cannot_read():
    """As ctypes calls; the second one is the original's."""
    done = start("/usr/bin/python3", "-c", PYTHON, env=with_toy({**TEST_GPU, **LOG}))
    assert done.stdout == "14.25\n0.25\n"
    assert len(lines_for(done, sym="toy_score", ran="gpu0", features="3")) == 1
    assert len(lines_for(done, sym="toy_score", ran="cpu", why="unsupported")) == 1


# ---- Registers and the stack, which the library notes; it returns something in each register for
# results ----

AS_PASSED = "differs:; returned: 1111 2222 4369 8738\n" * 3


@pytest.mark.parametrize("library, settings", [
    pytest.param("witness", [], id="without libaccel"),
    pytest.param("witness", [SHIM, {"ACCEL": "0"}], id="ACCEL=0"),
    pytest.param("witness", [NO_GPU], id="no GPU"),
    pytest.param("witness", [SHIM, {"ACCEL_POLICY": "cpu"}], id="left to the CPU by the user"),
    pytest.param("witness2", [TEST_GPU], id="another version"),
    pytest.param("witness2", [TEST_GPU, LOG], id="another version, logged")])
def test_registers_and_stack_are_as_they_were_passed(library, settings):
    assert call("witness", library, *settings).stdout == AS_PASSED


@pytest.mark.parametrize("library, first", [pytest.param("witness", 0, id="NULL"),
                                            pytest.param("witness2", 77, id="an integer, to another version")])
def test_the_entry_reads_the_struct_of_an_accepted_version_alone(library, first):
    """And not that at NULL."""
    done = start(str(TOY / "toy_call"), "witness", first, env=with_toy({**TEST_GPU, "ACCEL_POLICY": "auto",
                                                                        "LD_LIBRARY_PATH": str(TOY / library)}))
    assert done.stdout == AS_PASSED


def test_no_gpu_logged_all_argument_registers_and_all_results_are_passed_on():
    """Where libaccel is to say how long the call took, it calls the original itself."""
    assert call("witness", "witness", NO_GPU,
                LOG).stdout == "differs: saved stack sp; returned: 1111 2222 4369 8738\n" * 3
