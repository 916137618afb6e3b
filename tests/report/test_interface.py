#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""The surface users see: the log in its forms, the summary, where they go, settings that cannot be read, silence,
the exported names, what the library needs."""

import json
import os
import re
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from lib.log import LINE, parse_log, said, summaries, table_of
from lib.programs import BUILD, LOG, NO_GPU, ROOT, SHIM, TEST_GPU, TESTS, clean_env, exported, start
from lib.table import routine_table

PROGRAM = ["random_calls", "-i", "cblas-row", "-c", 2, "-n", 30, "-r", "?gemm"]
KEYS = "pid tid sym args layout m n k ran why est_cpu_ms est_gpu_ms ms up_mb down_mb".split()
LIBRARY = BUILD / "libaccel.so"
OURS = {"dlsym", "dlclose", "dlerror", "__cxa_atexit", "R_registerRoutines", "__asan_default_options", "accel_version"}

root_alone = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make one")


def run(*, stderr=subprocess.PIPE, **env):
    return start(*PROGRAM, env=env, stderr=stderr)


# ---- The log ----


@pytest.fixture(scope="module")
def log():
    return run(**TEST_GPU, **LOG).stderr


@pytest.fixture(scope="module")
def lines(log):
    return parse_log(log)


def test_one_line_for_each_call(lines):
    assert len(lines) == 8


def test_lines_of_keys_and_values_nothing_else(log):
    assert not [line for line in log.splitlines() if not LINE.fullmatch(line)]


def test_fields_in_a_fixed_order(lines):
    for fields in lines:
        assert list(fields) == [key for key in KEYS if key in fields]


def test_a_row_major_call_says_so(lines):
    assert {fields["layout"] for fields in lines} == {"row"}


def test_times_and_megabytes_of_what_ran(lines):
    ran = [fields for fields in lines if fields["ran"] == "gpu0"]
    assert ran
    for fields in ran:
        assert float(fields["ms"]) > 0
        assert "up_mb" in fields
    m, n = int(ran[0]["m"]), int(ran[0]["n"])
    size = {"s": 4, "d": 8, "c": 8, "z": 16}[ran[0]["sym"][6]]
    assert abs(float(ran[0]["down_mb"]) - m * n * size * 1e-6) < 1e-5, "down_mb is C"


def test_json():
    objects = [o for o in map(json.loads, run(**TEST_GPU, ACCEL_LOG="json").stderr.splitlines()) if "event" not in o]
    assert len(objects) == 8
    for o in objects:
        assert [k for k in o if k in KEYS] == [k for k in KEYS if k in o], "the same keys"
        assert list(o)[:6] == ["v", "time", "host", "rank", "pid", "tid"], "behind those of every line"
        assert o["v"] == 1
        assert type(o["m"]) is int
        assert type(o["ran"]) is str


def test_the_second_level_shows_what_moved():
    assert {"h2d", "d2h", "allocate"} <= set(re.findall(r" event=(\w+)", run(**TEST_GPU, ACCEL_LOG="2").stderr))


def test_lines_of_8_threads_do_not_mix():
    """One decision, one write(), even in a pipe."""
    done = start("random_calls", "-c", 50, "-n", 8, "-r", "?gemm", 8, env={**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0"})
    assert not [line for line in done.stderr.splitlines() if not LINE.fullmatch(line)]
    assert len(parse_log(done.stderr)) == 8 * 4 * 50


# ---- Where it goes ----


def test_patterns_in_the_log_file_s_name(tmp_path):
    done = run(**TEST_GPU, **LOG, ACCEL_LOG_FILE=f"{tmp_path}/a.%p.%h.%r.%%", OMPI_COMM_WORLD_RANK="7")
    (path,) = tmp_path.iterdir()
    pid = parse_log(path.read_text())[0]["pid"]
    assert path.name == f"a.{pid}.{socket.gethostname()}.7.%"
    assert done.stderr == ""


def test_a_log_file_is_appended_to(tmp_path):
    target = tmp_path / "target"
    target.write_text("before\n")
    run(**TEST_GPU, **LOG, ACCEL_LOG_FILE=str(target))
    assert target.read_text().startswith("before\naccel ")


def test_a_log_file_that_cannot_be_opened_is_named_once_and_the_log_goes_to_stderr(tmp_path):
    done = run(**TEST_GPU, **LOG, ACCEL_LOG_FILE=f"{tmp_path}/none/log")
    (message,) = said(done)
    assert "ACCEL_LOG_FILE" in message
    assert "(No such file or directory)" in message
    assert len(parse_log(done.stderr)) == 8


@root_alone
def test_another_user_s_link_is_not_followed(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("before\n")
    link.symlink_to(target)
    os.lchown(link, 65534, 65534)
    done = run(**TEST_GPU, **LOG, ACCEL_LOG_FILE=str(link))
    assert target.read_text() == "before\n"
    assert "symbolic link" in done.stderr


def test_a_full_disk_does_not_disturb_the_program():
    with open("/dev/full", "w") as full:
        done = run(**TEST_GPU, **LOG, stderr=full)
    assert done.returncode == 0
    assert "0 wrong" in done.stdout


def test_a_closed_pipe_does_not_kill_the_program():
    reader, writer = os.pipe()
    os.close(reader)
    done = run(**TEST_GPU, **LOG, stderr=writer)
    os.close(writer)
    assert done.returncode == 0
    assert "0 wrong" in done.stdout


# ---- The summary ----


@pytest.fixture(scope="module")
def table():
    """The summary's lines at exit."""
    return table_of(run(**TEST_GPU, ACCEL_SUMMARY="1").stderr)


@pytest.fixture(scope="module")
def rows(table):
    return [line.split()[1:] for line in table[3:-2]]


def test_a_summary_at_exit(table):
    assert len(table) > 4
    assert re.fullmatch(r"accel: summary of random_calls, pid \d+: \d+\.\d{3} s", table[0])


def test_the_share_of_its_calls(table):
    assert re.fullmatch(r"accel: 8 calls of BLAS, LAPACK or machine learning took \d+\.\d{3} s, \d+ % of the time",
                        table[1])


def test_it_counts_every_call(table, rows):
    assert sum(int(row[2]) for row in rows) == 8
    assert table[-1].split()[:3] == ["accel:", "all", "8"]


def seconds(rows):
    return [float(row[5]) for row in rows if row[5] != "-"]


def test_the_longest_time_is_first(rows):
    assert len(seconds(rows)) > 1
    assert seconds(rows) == sorted(seconds(rows), reverse=True)


def test_the_rows_add_up_to_the_whole(table, rows):
    whole, outside = float(table[-1].split()[-1]), float(table[-2].split()[-1])
    assert abs(whole - outside - sum(seconds(rows))) < 0.001 * len(table)
    assert table[0].endswith(f" {whole:.3f} s")


def test_the_same_as_json():
    (found,) = summaries(run(**TEST_GPU, ACCEL_SUMMARY="json").stderr)
    assert found["calls"] == 8
    assert sum(row["calls"] for row in found["rows"]) == 8


def test_a_summary_in_a_log_of_json_is_json():
    done = run(**TEST_GPU, ACCEL_SUMMARY="1", ACCEL_LOG="json")
    assert len(summaries(done.stderr)) == 1
    assert "accel: " not in done.stderr


def test_a_program_that_calls_nothing_has_none():
    assert start("/bin/true", env={**SHIM, "ACCEL_SUMMARY": "1", "ACCEL_LOG": "1"}).stderr == ""


# ---- Settings that cannot be read; silence ----


def test_three_wrong_values_three_lines_which_say_what_is_allowed():
    done = run(**SHIM, ACCEL_LOG="3", ACCEL_POLICY="GPU", ACCEL_MEMORY="lots")
    assert done.returncode == 0
    assert len(said(done)) == 3
    assert "ACCEL_LOG=3 is not understood; allowed: 0,1,2,json; the default is used" in done.stderr


def test_and_none_in_programs_that_call_nothing():
    assert start("/bin/true", env={**SHIM, "ACCEL_LOG": "3"}).stderr == ""


@pytest.mark.parametrize("env", [NO_GPU, {**TEST_GPU, "ACCEL_POLICY": "auto"}], ids=["no GPU", "test GPU"])
def test_silent_unless_asked(env):
    done = run(**env)
    assert done.stderr == ""
    assert done.stdout == "8 calls, 0 wrong\n"


def test_no_gpu_where_one_was_asked_for_is_said_once():
    (message,) = said(run(**NO_GPU, ACCEL_POLICY="gpu"))
    assert "no GPU is used" in message


def test_the_policy_of_the_cpu_is_logged():
    lines = parse_log(run(**{**TEST_GPU, "ACCEL_POLICY": "cpu"}, **LOG).stderr)
    assert {fields["why"] for fields in lines} <= {"user", "empty"}


def test_a_driver_without_a_device():
    done = run(**TEST_GPU, **LOG, TESTGPU_DEVICES="0")
    assert "CUDA_ERROR_NO_DEVICE" in done.stderr
    assert "0 wrong" in done.stdout


@pytest.fixture
def open_folder():
    """A folder that other users may enter; pytest's own are not."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@root_alone
def test_a_setuid_program(open_folder):
    """It starts with AT_SECURE set: the variables are somebody else's. The linker preloads into it only from its own
    folders, and only setuid libraries."""
    program, log = open_folder / "products", open_folder / "log"
    program.write_bytes((TESTS / "random_calls").read_bytes())
    library = Path("/usr/lib/x86_64-linux-gnu/libaccel-at-secure-test.so")

    def products(file, policy, **options):
        env = {**clean_env(str(open_folder)), **TEST_GPU, **LOG, "LD_PRELOAD": library.name, "ACCEL_LOG_FILE": file,
               "ACCEL_SUMMARY": "1", "ACCEL_POLICY": policy}
        return subprocess.run([program, "-c", "2", "-r", "?gemm"], env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE,
                              text=True, **options)

    try:
        library.write_bytes(LIBRARY.read_bytes())
        library.chmod(0o4755)
        program.chmod(0o4755)
        seen = products(str(log), "gpu", user=65534, group=65534, extra_groups=[])
        assert seen.returncode == 0
        assert "0 wrong" in seen.stdout
        assert seen.stderr == "", "libaccel does not write"
        assert not log.exists()
        # That the library was there at all: the same, without the setuid bit.
        program.chmod(0o755)
        assert "accel pid=" in products("/dev/stderr", "auto").stderr
    finally:
        library.unlink(missing_ok=True)


# ---- Programs that come early, or rearrange their surroundings ----


def test_a_constructor_that_runs_before_ours_is_seen_too():
    done = start("start_up", "early", env={**TEST_GPU, **LOG})
    assert done.returncode == 0
    assert len(parse_log(done.stderr)) == 2


def start_up(folder, *command, **env):
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={**clean_env(str(folder)), **TEST_GPU, **LOG, "ACCEL_MEMORY": "lots", **env})


def test_nothing_is_written_to_a_file_that_took_stderr_s_place(tmp_path):
    # CUDA opens files of its own.
    seen = start_up(tmp_path, "/bin/sh", "-c", 'exec "$0" stderr 2>&-', str(TESTS / "start_up"), ACCEL_POLICY="cpu")
    assert seen.returncode == 0
    assert (tmp_path / "data").read_bytes() == b""


def test_a_relative_log_file_is_meant_from_where_the_program_was_started(tmp_path):
    start_up(tmp_path, TESTS / "start_up", "folder", ACCEL_LOG_FILE="a%%.log")
    assert (tmp_path / "a%.log").exists()


def test_a_log_that_the_program_closes_is_opened_again(tmp_path):
    start_up(tmp_path, TESTS / "start_up", "closed", ACCEL_LOG_FILE="log")
    assert len(parse_log((tmp_path / "log").read_text())) >= 2


@pytest.mark.parametrize("form, calls", [("before", 3), ("after", 4)])
def test_parent_and_child_have_one_summary(form, calls):
    found = summaries(start("forks", form, env={**NO_GPU, "ACCEL_SUMMARY": "json"}).stderr)
    assert [(s["calls"], s["processes"]) for s in found] == [(calls, 2)]


# ---- The built file ----


def said_by(*command):
    return subprocess.run([*command, LIBRARY], stdout=subprocess.PIPE, text=True).stdout


@pytest.fixture(scope="module")
def names():
    """The exported names."""
    return exported(LIBRARY)


def of_routines(names, kind, prefix):
    """Those of BLAS or of LAPACK in the known manglings."""
    routines = "|".join(routine_table(kind))
    internal = rf"|({routines})_internal_(64_)?" if kind == "ROUTINE" else ""  # NVPL's
    shape = re.compile(rf"(scipy_)?({prefix})?({routines})(_|64_|_64|_64_)?|({routines.upper()}){internal}")
    return {name for name in names if shape.fullmatch(name)}


def test_names_of_libraries_have_a_version_which_references_to_another_version_pass(names):
    assert set(re.findall(r"(?m) (\w+)@@ACCEL_UNVERSIONED$", said_by("nm", "-D", "--defined-only"))) == names - OURS


def test_only_the_intended_names_are_exported(names):
    wanted = OURS | set(re.findall(r"(\w+);", (BUILD / "symbols.map").read_text().split("local:")[0]))
    assert len(wanted) > 40
    assert names == wanted


@pytest.mark.parametrize("kind, prefix", [("ROUTINE", "cblas_"), ("LAPACK", "LAPACKE_")])
def test_names_of_routines_in_the_known_manglings(names, kind, prefix):
    assert len(of_routines(names, kind, prefix)) > 40


def test_the_others_are_functions_of_other_libraries_and_ours(names):
    """Ours: the dynamic linker's, the C library's for exit handlers, R's for packages' functions, AddressSanitizer's
    for options, and the version. Words that programs use as names are not exported."""
    tables = "".join(path.read_text() for path in sorted((ROOT / "ops").glob("*/functions.def")))
    words = set(re.findall(r"\bWORD\((\w+), (?!with)", tables))
    assert words == {"train"}
    left = names - of_routines(names, "ROUTINE", "cblas_") - of_routines(names, "LAPACK", "LAPACKE_")
    assert not words & left
    pairs = re.findall(r"\bM\(name, (\w+)\)|\bFUNCTION\((\w+),[^)]*ACCEL_PLAIN_NAME\)", tables)
    others = {name for pair in pairs for name in pair if name}
    assert len(others) > 20
    assert others <= left
    assert left - others == OURS


def test_needed_lists_libc_alone():
    assert set(re.findall(r"NEEDED.*\[(.*)\]", said_by("readelf", "-d"))) <= {"libc.so.6", "libdl.so.2",
                                                                              "libpthread.so.0", "libm.so.6"}


def test_no_cuda_name_is_undefined_in_it():
    undefined = said_by("nm", "-D", "--undefined-only")
    assert undefined
    assert not re.search(r"\b(cu[A-Z]|cuda|cublas)\w*", undefined)
