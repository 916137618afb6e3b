#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Operands that stay on the GPU between calls. The third call on the same operand sends hardly any of it, with the same
results, bit for bit; from the fourth on it is not even read, where the kernel knows that nobody has written to it; a
call that would gain if its matrix were there brings that, once calls like it have missed as much as that costs. Who
writes to it between calls is the matter of test_storms.py."""

import re

import pytest

from lib.calibrated import calibrate_slow_copies
from lib.log import events, lines_for, outcomes, said
from lib.programs import LOG, LONG, TEST_GPU, TESTS, start

ENV = {**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0", "OPENBLAS_NUM_THREADS": "1"}
HASH = {**ENV, "ACCEL_RESIDENT": "hash"}
OFF = {"ACCEL_RESIDENT": "off"}
SECCOMP = [str(TESTS / "no_userfaultfd"), str(TESTS / "again")]
ROUNDS = 8


def number(line, key):
    return float(line.get(key, 0))


def kept(lines):
    return [line for line in lines if number(line, "kept_mb") > 0]


def signs(values):
    return "".join("-+"[bool(value)] for value in values)


def ran(done):
    return [line["ran"] for line in lines_for(done)]


def again(*arguments, env, program=("again",), complaints=0):
    """A run of tests/fixtures/again.c whose results are right, and that says nothing."""
    done = start(*program, *arguments, env=env)
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.endswith("0 calls wrong\n"), done.stdout[-300:]
    assert len(said(done)) <= complaints, said(done)
    return done


def with_and_without(*arguments, env, **options):
    """The same, whose results are, bit for bit, as those of a run in which nothing is kept: both runs."""
    done, without = again(*arguments, env=env, **options), start("again", *arguments, env={**env, **OFF})
    assert done.stdout == without.stdout
    assert not kept(lines_for(without))
    return done, without


def calibration(folder, name, **options):
    calibrate_slow_copies(folder / name, folder, {"OPENBLAS_NUM_THREADS": "1"}, **options)
    return {"ACCEL_MODEL": str(folder / name)}


@pytest.fixture(scope="module")
def auto(tmp_path_factory):
    return {**ENV, "ACCEL_RESIDENT": "auto", **calibration(tmp_path_factory.mktemp("calibration"), "model")}


@pytest.fixture(scope="module")
def now(auto):
    """Calls that would gain wait for the GPU's start."""
    return {**auto, "ACCEL_POLICY": "auto", "ACCEL_REQUIRE": "gpu"}


@pytest.fixture(scope="module", params=("hash", "auto"))
def env(request):
    return HASH if request.param == "hash" else request.getfixturevalue("auto")


@pytest.fixture(scope="module")
def untracked(auto):
    """What the log says if the kernel has no record of writes."""
    return events(start("again", "unread", 4, env=auto).stderr, "untracked")


@pytest.fixture(scope="module")
def tracked(untracked):
    """The kernel's record of writes."""
    if untracked:
        pytest.skip(untracked[0]["reason"])


kernels_record = pytest.mark.usefixtures("tracked")

# ---- The same operands again ----

CALLS = 5


@pytest.fixture(scope="module")
def off():
    return start("again", "calls", CALLS, env={**ENV, **OFF})


def test_off_keeps_nothing(off):
    assert off.returncode == 0
    assert ran(off) == ["gpu0"] * 11 * CALLS
    assert not kept(lines_for(off))


@pytest.mark.parametrize("how", ["hash", "auto", "hash, log level 2"])
def test_from_the_third_call_on_less_than_a_hundredth_of_an_operand_goes_up(how, off, auto):
    """And of a triangle never all of its square."""
    env = {"hash": HASH, "auto": auto, "hash, log level 2": {**HASH, "ACCEL_LOG": "2"}}[how]
    without = start("again", "calls", CALLS, env={**env, **OFF}) if how == "auto" else off  # rates choose blocks
    done = start("again", "calls", CALLS, env=env)
    assert done.returncode == 0
    assert done.stdout == without.stdout
    assert len(lines_for(done)) == 11 * CALLS
    for i, (with_it, plainly) in enumerate(zip(lines_for(done), lines_for(without))):
        saved = number(plainly, "up_mb") - number(with_it, "up_mb")
        operand = 1.5488  # 440² doubles, or as many bytes
        if with_it["sym"] in ("dsymm_", "dtrmm_",
                              "dtrsm_"):  # little more than the triangle goes up: A is what is not B
            sent = number(with_it, "up_mb") - int(with_it["m"]) * int(with_it["n"]) * 8e-6
            saved = operand - sent
            assert i % CALLS >= 2 or sent <= 0.63 * operand, with_it
        if i % CALLS >= 2:
            assert saved >= 0.99 * operand, with_it
            assert abs(saved - number(with_it, "kept_mb")) <= 0.01 * operand, with_it
    if how.endswith("2"):  # which says which operand was kept
        assert len([line for line in done.stderr.splitlines() if "event=kept" in line]) >= 11 * (CALLS - 2)


# ---- Results ----


def test_a_result_goes_up_only_where_the_program_has_changed_it(env):
    """Else the next call finds it on the GPU, from the first on."""
    seconds = lines_for(again("chain", 16, env=env))[1::2]
    result, slim = 1.5488, 0.0704
    assert len(seconds) == 16
    assert [i for i, f in enumerate(seconds) if number(f, "up_mb") > 2 * slim] == [3, 7, 11, 15]
    assert all(number(f, "kept_mb") >= result for i, f in enumerate(seconds) if i % 4 != 3)
    assert not kept(lines_for(again("chain", 16, env={**env, **OFF})))


def test_results_that_no_call_reads_are_no_longer_kept_after_some(env, tmp_path):
    """They take the memory of those before, not more and more."""
    done = again("results", 40, env={**env, "TESTGPU_REPORT": str(tmp_path / "report")})
    assert len(lines_for(done)) == 40
    assert int(re.search(r"name=cuMemAlloc\w* n=(\d+)", (tmp_path / "report").read_text())[1]) < 28


def test_the_next_call_finds_a_result_whose_blocks_several_threads_unpack():
    assert [number(f, "kept_mb") > 80 for f in lines_for(again("large", 3, env=HASH))] == 3 * [False, True]


# ---- Results that come down in blocks, and triangles ----

RESULT, SLIM = 3.92, 0.224


def finds(line):
    return number(line, "kept_mb") >= RESULT and number(line, "up_mb") <= SLIM


# readers: of so many calls of a round. changed: every fourth time, the program changes what they
# read.
each_result = pytest.mark.parametrize("what, calls, readers, changed", [
    pytest.param("blocks", 9, (1, 2, 4, 6, 8), (1, 8), id="blocks"),
    pytest.param("triangles", 7, (1, 2, 3, 5, 6), (1, 2, 3), id="triangles")])


@each_result
def test_the_next_calls_find_results_and_send_no_more_than_their_own_operands(what, calls, readers, changed, env):
    done, without = with_and_without(what, ROUNDS, env=env)
    assert ran(done) == ran(without)
    lines = lines_for(done)[:ROUNDS * calls]
    assert len(lines) == ROUNDS * calls
    for i, line in enumerate(lines):
        if i % calls in readers and not (i // calls % 4 == 3 and i % calls in changed):
            assert finds(line), i
        if i // calls % 4 == 3 and i % calls == changed[0]:
            assert not finds(line), i


@pytest.mark.parametrize("what, memory", [("blocks", "16M"), ("triangles", "16M"), ("blocks", "5M")])
def test_results_that_others_read_in_little_memory(what, memory):
    """In tiles, in the least."""
    done, without = with_and_without(what, ROUNDS, env={**HASH, "ACCEL_MEMORY": memory})
    assert ran(done) == ran(without)


def test_triangles_in_tiles():
    """Little memory may change how potrf is divided, and so its rounding."""
    again("triangles", ROUNDS, env={**HASH, "ACCEL_MEMORY": "5M"})


def test_a_triangle_times_the_matrix_that_it_is_of(env):
    """The triangle that has stayed is not the whole matrix."""
    done, _ = with_and_without("symmetric", 8, env=env)
    if env is HASH:  # the triangle is found, and nothing else
        found = [number(f, "kept_mb") for f in lines_for(done, sym="dsymm_")]
        assert len(found) == 8
        assert not [mb for mb in found if abs(mb - RESULT) >= 0.01 * RESULT]


# ---- Batches ----


def test_matrices_of_batches_that_are_side_by_side_or_one_for_all_stay(env):
    # (The calibration is not of the library that has these batches.)
    done, without = with_and_without("batches", ROUNDS, env=env, complaints=9)
    lines, plainly = lines_for(done), lines_for(without)
    assert ran(done) + ran(without) == ["gpu0"] * 10 * ROUNDS
    # Matrices of the first operand side by side; of the second one, that of the call before, as the
    # first one's have gaps; both; one matrix for all; of the first one, transposed. The first
    # operand changes in the fourth and eighth round, the second one in each, before the first call.
    for i, found in enumerate((3.6864, 3.6864, 1.8432 + 3.6864, 1.5488, 3.19488)):
        for k in range(2, ROUNDS):
            if i == 1 or k % 4 != 3:
                line = lines[5 * k + i]
                assert abs(number(line, "kept_mb") - found) <= 0.01, (i, k)
                assert abs(number(plainly[5 * k + i], "up_mb") - number(line, "up_mb") - found) <= 0.01, (i, k)


# ---- Random calls on few matrices ----


@pytest.mark.parametrize("seed", range(1, 7) if LONG else (3, 5))
def test_random_calls(seed, env):
    env = {**env, "AGAIN_SEED": str(seed)}
    done, without = (start("again", "mixed", 400 if LONG else 120, env={**env, **more}) for more in ({}, OFF))
    assert done.returncode == 0, done.stderr[-300:]
    assert done.stdout == without.stdout
    assert not kept(lines_for(without))
    assert "gpu0" in ran(done)
    assert len(kept(lines_for(done))) > (30 if LONG else 10)


# ---- LAPACK ----


def test_factorisations_and_what_uses_the_factors(env):
    calls = lines_for(with_and_without("factors", 6, env=env)[0])
    assert len(calls) == 36
    found = {f["sym"] + str(i): signs(number(f, "kept_mb") > 1.5 for f in calls[i::6]) for i, f in enumerate(calls[:6])}
    # The matrix is the same three times, then changes; the factors of LU are a result that stays,
    # those of Cholesky and QR come up as a triangle.
    assert not {name: signs for name, signs in found.items() if signs[2] != "+"}
    assert [*found.values()][3] == "++++++"  # getrs finds the factors that getrf has left
    assert not [f for f in calls[12:18] if number(f, "up_mb") >= 0.1]  # nothing but right-hand sides goes up


def test_choleskys_factors_and_those_of_results(env):
    lines = lines_for(with_and_without("cholesky", 6, env=env)[0])
    assert len(lines) == 30
    found = [signs(number(f, "kept_mb") > 1.4 and number(f, "up_mb") < 0.5 for f in lines[i::5]) for i in range(5)]
    # The fourth time, the factor changes behind its factorisation, and the imaginary part of a
    # number on the diagonal of the Hermitian result.
    assert found[1][:4] == "+++-"
    assert found[4][:4] == "+++-"
    assert found[2][:3] == "+++"


def test_a_matrix_with_a_nan_that_products_have_left_on_the_gpu():
    """LAPACK sees the NaN there, too, and the CPU gets it."""
    done = again("nan", 4, env=HASH)
    assert outcomes(lines_for(done)) == [("gpu0", "forced")] * 4 + [("cpu", "unsupported")]
    assert len(kept(lines_for(done, sym="dgemm_"))) == 2


# ---- A schedule that hides uploads behind kernels ----


@pytest.mark.parametrize("resident, gpu_ms, found", [
    pytest.param("auto", 10, False, id="auto"), pytest.param("auto", None, True, id="auto, fast kernels"),
    pytest.param("hash", 10, True, id="hash")])
def test_whether_matrices_are_kept_for_large_products(resident, gpu_ms, found, auto, tmp_path):
    slow = calibration(tmp_path, "slow", gpu_ms=gpu_ms) if gpu_ms else {}
    large = lines_for(again("vector", 1, env={**auto, **slow, "ACCEL_RESIDENT": resident}), sym="dgemm_", ran="gpu0")
    assert len(large) == 40
    assert bool(kept(large)) == found


# ---- The kernel's record of writes ----


def test_from_the_fourth_call_on_a_matrix_that_nobody_has_written_to_is_not_read(auto, tracked):
    again("unread", 12, env=auto)
    assert "of the matrix have been read\n" in start("again", "unread", 12, env=HASH).stdout  # for a digest


def test_products_of_a_watched_matrix_with_a_vector(auto, tracked):
    """They run on the GPU until it changes, which sends nothing up; then the third one, which has not changed for two,
    is worth an upload."""
    done = again("vector", 12, env={**auto, "ACCEL_POLICY": "auto", "ACCEL_START": "background"})
    vectors = lines_for(done, sym="dgemv_")
    assert outcomes(vectors) == [("gpu0", "faster")] * 6 + [("cpu", "slower")] * 2 + [("gpu0", "faster")] * 4
    on_gpu = [f for f in vectors if f["ran"] == "gpu0"]
    assert signs(number(f, "up_mb") > 1.5 for f in on_gpu) == "------+---"
    assert signs(number(f, "kept_mb") > 1.5 for f in on_gpu) == "++++++-+++"


def test_the_same_without_a_log(auto, tracked, tmp_path):
    """Whose lines need every call: the entry lets calls with a vector through as long as there is such a matrix. Ten
    run on the GPU, and one in vain: the kernel runs beside the scan that finds the change."""
    again("vector", 12, env={**auto, "ACCEL_POLICY": "auto", "ACCEL_LOG": "0",
                             "TESTGPU_REPORT": str(tmp_path / "report")})
    assert re.search(r"kernels .*gemv=11\b", (tmp_path / "report").read_text())


def test_a_product_that_no_longer_pays_is_no_fallback(now, tracked):
    again("vector", 12, env=now)


def test_products_that_are_for_the_gpu_whatever_they_cost(auto, tracked):
    """One that has run in vain runs again there, with the matrix as it is now."""
    vectors = lines_for(again("vector", 12, env={**auto, "ACCEL_REQUIRE": "gpu"}), sym="dgemv_")
    assert [f["ran"] for f in vectors] == ["gpu0"] * 12
    assert signs(number(f, "kept_mb") > 1.5 for f in vectors[5:8]) == "+-+"


def test_products_by_few_columns_of_a_matrix_that_changes(auto, tracked, tmp_path):
    """Both where one kernel and where several multiply, one runs in vain, beside the scan that finds the change, and
    then again."""

    def kernels(name):
        return int(re.search(r"kernels .*gemm=(\d+)", (tmp_path / name).read_text())[1])

    done = again("speculative", 12, env={**auto, "TESTGPU_REPORT": str(tmp_path / "speculative")})
    without = start("again", "speculative", 12, env={**auto, **OFF, "TESTGPU_REPORT": str(tmp_path / "off")})
    assert done.stdout == without.stdout
    products = lines_for(done, sym="dgemm_")
    assert [f["ran"] for f in products] == ["gpu0"] * 24
    assert signs(number(f, "kept_mb") > 1.5 for f in products[5:8] + products[17:20]) == "+-++-+"
    assert kernels("speculative") == 13 * (kernels("off") // 12) > 13 * 2


def test_products_with_a_vector_stay_on_the_cpu_by_digests_alone(auto, tracked):
    done = start("again", "vector", 12, env={**auto, "ACCEL_POLICY": "auto", "ACCEL_RESIDENT": "hash"})
    assert {f["ran"] for f in lines_for(done, sym="dgemv_")} == {"cpu"}


# ---- Factors of LAPACK that are only read ----


@pytest.fixture(scope="module")
def solves(auto, tracked):
    return with_and_without("solves", 12, env=auto)[0]


@pytest.mark.parametrize("name", ["dgetrs_", "dpotrs_", "dormqr_"])
def test_factors_are_found_except_by_the_call_behind_a_change(name, solves):
    found = signs(number(f, "kept_mb") > 1.5 and number(f, "up_mb") < 0.1 for f in lines_for(solves, sym=name))
    assert re.fullmatch("[-+]{2}[+]{4}-[-+][+]{4}", found)


@pytest.mark.parametrize("name", ["dgetrs_", "dpotrs_"])  # dormqr's estimate has no copies here
def test_the_estimate_knows_that_factors_are_there_and_when_they_are_not(name, solves):
    calls = lines_for(solves, sym=name)
    assert number(calls[5], "est_gpu_ms") < number(calls[7], "est_gpu_ms") - 0.5


@kernels_record
def test_solutions_in_panels_and_then_with_few_right_hand_sides():
    """A call that finds no room for a copy of what it reads, goes on in panels: what was to stay has gone. The factor
    stays when there is room."""
    calls = lines_for(again("crowded", 3, env={**HASH, "ACCEL_MEMORY": "10M"}), sym="dpotrs_")
    assert signs(number(f, "kept_mb") > 1.5 for f in calls) == "----++"
    assert number(calls[1], "up_mb") > number(calls[0], "up_mb") + 3


def test_a_matrix_that_products_and_solutions_read(auto, tracked):
    """The watch of a matrix that products have found unchanged says nothing of NaNs."""
    lines = lines_for(with_and_without("lu", 6, env=auto)[0])
    assert {f["why"] for f in lines} == {"forced"}
    assert signs(number(f, "kept_mb") > 1.5 for f in lines) == "--" + "+" * 16


def test_factors_that_nobody_has_written_to_are_not_read(auto, tracked):
    again("sealed", 9, env=auto)
    assert "of the matrix have been read\n" in start("again", "sealed", 9, env=HASH).stdout  # for a digest


# ---- Calls that bring their matrix ----


def brings(lines):
    return "".join("c" if f["ran"] == "cpu" else "u" if number(f, "up_mb") > 1.5 else "k" if number(f, "kept_mb") > 1.5
                   else "?" for f in lines)


@pytest.mark.parametrize("what", ["vectors", "thin"])
def test_the_third_call_sends_less_than_a_hundredth_of_the_matrix(what, auto, tracked):
    assert brings(lines_for(with_and_without(what, 8, env=auto)[0])[1:]) == "uukkkkkk"


# One upload takes 3.1 ms. So much a call of these gains, if its matrix is there, or half of it.
@pytest.mark.parametrize("what, vector_ms, want", [("vectors", 40, r"ccuk{9}"), ("vectors", 8, r"c{3}uk{8}"),
                                                   ("thin", 10, r"c{3}uk{8}"), ("vectors", 0.2, r"c{12}")])
def test_a_matrix_goes_up_once_as_much_has_been_missed(what, vector_ms, want, now, tracked, tmp_path):
    done = again(what, 12, env={**now, **calibration(tmp_path, "model", cpu_ms=60, vector_ms=vector_ms)})
    assert re.fullmatch(want, brings(lines_for(done)[1:]))


def test_without_a_log_the_third_of_twelve_brings_it_so_that_ten_run_on_the_gpu(now, tracked, tmp_path):
    again("vectors", 12, env={**now, "ACCEL_LOG": "0", "TESTGPU_REPORT": str(tmp_path / "report")})
    assert re.search(r"kernels .*gemv=10\b", (tmp_path / "report").read_text())


def test_the_gpu_is_started_for_them_and_brings_the_matrix_when_it_is_there(now, tracked):
    done = again("paced", 300, env={**now, "ACCEL_REQUIRE": "", "TESTGPU_START_MS": "100"})
    assert re.fullmatch("c+uk+", brings(lines_for(done, sym="dgemv_")))


@pytest.mark.parametrize("more, program", [
    pytest.param({"ACCEL_RESIDENT": "hash"}, ["again"], id="ACCEL_RESIDENT=hash"),
    pytest.param(OFF, ["again"], id="ACCEL_RESIDENT=off"),
    pytest.param({"ACCEL_START": "wait"}, ["again"], id="ACCEL_START=wait"),
    pytest.param({"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_LOCAL_RANK": "0",
                  "OMPI_COMM_WORLD_LOCAL_SIZE": "2"},
                 ["again"], id="MPI"),
    pytest.param({}, SECCOMP, id="seccomp")])
def test_no_call_brings_its_matrix(more, program, now, tracked):
    assert brings(lines_for(again("vectors", 12, env={**now, **more}, program=program), sym="dgemv_")) == "c" * 12


def test_panels_are_found_within_the_matrix_that_is_there(auto, tracked):
    panels = lines_for(with_and_without("panels", 12, env=auto)[0])[6:]
    # The fifth time, an element of the matrix changes in a page that the panel has no part of; the
    # ninth time, one of the panel's.
    assert signs(number(f, "kept_mb") > 1.3 and number(f, "up_mb") < 0.1 for f in panels[:9]) == "++++++++-"


# ---- Kernels and sandboxes without it ----


@pytest.mark.parametrize("fails, reason", [
    pytest.param(None, "userfaultfd: Operation not permitted", id="seccomp"),
    pytest.param("api:1", "UFFDIO_API with UFFD_FEATURE_WP_ASYNC (Linux 6.7): Invalid argument", id="an older kernel"),
    pytest.param("open:1", "userfaultfd: Function not implemented", id="no userfaultfd"),
    pytest.param("scan:1+", "PAGEMAP_SCAN: Inappropriate ioctl for device", id="no PAGEMAP_SCAN")])
def test_digests_find_matrices_without_the_kernels_record(fails, reason, auto, untracked):
    """One line of the log says why it is not used."""
    failing = {"TRACKING_FAILS": fails,
               "LD_PRELOAD": f"{TESTS / 'libtracking_fails.so'}:{auto['LD_PRELOAD']}"} if fails else {}
    done = again("many", 60, env={**auto, **failing}, program=["again"] if fails else SECCOMP)
    assert untracked or [line["reason"] for line in events(done.stderr, "untracked")] == [reason]
    assert len(kept(lines_for(done))) > 20


# ---- Several operands, threads, forks, little memory ----


def test_six_matrices_of_which_one_changes_now_and_then():
    assert len(kept(lines_for(again("many", 400, env=HASH)))) > 200


def test_no_call_lacks_memory_for_what_is_kept():
    """With memory for three matrices, some find theirs."""
    done = again("many", 400, env={**HASH, "ACCEL_MEMORY": "4M"})
    assert set(ran(done)) == {"gpu0"}
    assert 20 < len(kept(lines_for(done))) < 300


def test_operands_that_do_not_fit_go_through_in_tiles_as_ever():
    done, small = (start("again", "calls", CALLS, env={**HASH, "ACCEL_MEMORY": "1M", **more}) for more in ({}, OFF))
    assert done.returncode == 0
    assert done.stdout == small.stdout
    assert not kept(lines_for(done))


def test_memory_that_runs_out_behind_a_matrix_that_was_found(tmp_path):
    """The fourth call finds its matrix, and then no memory for its result; what it has found goes back, too, before it
    tries again, with a new copy."""
    trace = tmp_path / "trace"
    log = start("again", "skinny", 3, env={**HASH, "ACCEL_LOG": "2", "TESTGPU_TRACE": str(trace)}).stderr
    # Workspaces, which no call's record has.
    of_ctxs = trace.read_text().count("cuMemAlloc_v2(") - log.count("event=allocate")
    before = of_ctxs + log.split("kept_mb=")[0].count("event=allocate")
    done = again("skinny", 3, env={**HASH, "TESTGPU_FAIL": ",".join(f"cuMemAlloc:{before + i}" for i in (1, 2, 3))})
    assert ran(done) == ["gpu0"] * 6
    assert signs(number(f, "kept_mb") > 0 for f in lines_for(done)[2:4]) == "+-"


def test_two_threads_with_one_matrix_that_both_read():
    assert len(kept(lines_for(again("threads", 300 if LONG else 30, env=HASH)))) > 60


def test_forks_the_child_and_the_parent_compute_with_what_each_has():
    """The child on the CPU."""
    done = again("fork", 30 if LONG else 6, env=HASH)
    assert set(ran(done)) == {"gpu0", "cpu"}
    assert kept(lines_for(done))


@pytest.mark.parametrize("name, value", [("ACCEL_VERIFY", "all"), ("ACCEL_REQUIRE", "gpu")])
def test_operands_are_found_with(name, value):
    lines = lines_for(again("many", 60, env={**HASH, name: value}))
    assert kept(lines)
    assert all(number(f, "verify") <= 1 for f in lines)


def test_a_wrong_value_of_the_setting_is_named_with_the_right_ones():
    (message,) = said(start("again", "skinny", 1, env={**ENV, "ACCEL_RESIDENT": "disk"}))
    assert "ACCEL_RESIDENT" in message
    assert "auto,hash,off" in message
