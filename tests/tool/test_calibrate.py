#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""accel calibrate: the file has a line for each routine that a library has or the GPU can run, with possible numbers;
without a GPU, with a GPU that fails, with libraries of other names and integers; wrong options are refused. With
TEST_LONG=1 each algorithm for singular values is inaccurate in turn."""

import ctypes
import os
import re
import shutil
import time
from collections import namedtuple
from pathlib import Path

import pytest

from lib.programs import BUILD, LONG, NO_GPU, SHIM, start
from lib.table import routine_table

SYSTEM = Path("/usr/lib/x86_64-linux-gnu")
ACCEL = str(BUILD / "accel")
HIDDEN = {"CUDA_VISIBLE_DEVICES": NO_GPU["CUDA_VISIBLE_DEVICES"]}
GPU = {"ACCEL_CUDA_DIR": str(BUILD / "testgpu"), "LD_LIBRARY_PATH": str(BUILD / "testgpu"), "TESTGPU_DELAY_US": "0"}

# The routines that are measured: see workload_is_for().
LEVEL2 = set("gemv symv hemv trmv trsv ger gerc syr her syr2 her2".split())
ROUTINES = {r for r, op in routine_table("ROUTINE").items() if op not in LEVEL2}
ROUTINES |= {r for r in routine_table("LAPACK") if not re.fullmatch(r".(gelsy|laswp|lacpy|gecon|pocon)", r)}
# Of machine learning: the library, its routine, the sizes of the first call.
TRAININGS = {"libsvm": ("svm_train", "200x20x2x4000:"), "liblinear": ("train", "500x10x5000x2:")}
CPU_KEY = r'\[cpu "[^"]+" threads=(2 library="lib(blas|lapack)|\d library="lib(svm|linear))\.so\S* \d+"\]'
OTHERS = {"reference": [SYSTEM / "blas/libblas.so.3", SYSTEM / "lapack/liblapack.so.3"],
          "ILP64": [SYSTEM / "libblas64.so.3", SYSTEM / "liblapack64.so.3"],
          "NumPy's OpenBLAS, ILP64": [BUILD / "venv/lib/python3*/site-packages/numpy.libs/libscipy_openblas64_-*"],
          "SciPy's OpenBLAS": [BUILD / "venv/lib/python3*/site-packages/scipy.libs/libscipy_openblas-*"],
          "BLIS": [SYSTEM / "libblis.so.4"]}
OTHER_LINES = ("svd_", "gain_", "piece_", "short_", "solve_", "pace_")


def read(path):
    """The sections of a calibration: header -> {name: rest of the line}."""
    head, *lines, checksum = Path(path).read_text().splitlines()
    assert head == "accel-model 1"
    assert checksum.startswith("checksum=")
    sections = {}
    for line in lines:
        if line.startswith("["):
            here = sections[line] = {}
        else:
            name, rest = re.split("[= ]", line, maxsplit=1)
            here[name] = rest
    return sections


def gpu_of(sections):
    """The GPU's section."""
    return next(section for header, section in sections.items() if header.startswith("[gpu "))


def svd(section):
    """The algorithms for singular values: "d_vectors" -> {order: algorithm}."""
    return {name[4:]: dict(entry.split(":") for entry in section[name].split(" ")) for name in section
            if name.startswith("svd_")}


def routines(section):
    return {name for name in section
            if name != "calibrated" and not name.endswith(("_gbps", "_ms", "_ratio"))
            and not name.startswith(OTHER_LINES)}


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
    done = start(ACCEL, "calibrate", f"--seconds={seconds}", *arguments, env={"HOME": str(folder), **env})
    # Other tests may run beside this one.
    done.stderr = re.sub(r"(?m)^accel: the machine is busy: .*\n", "", done.stderr)
    return done


def gpu_calibrated(path, seconds=1, **env):
    """The GPU's section of a calibration of a test GPU with these settings, and the process."""
    done = calibrate(path.parent, "--output", path, env={**GPU, **env}, seconds=seconds)
    return gpu_of(read(path)), done


# ---- Test GPU, the usual libraries, the usual place ----

Usual = namedtuple("Usual", "home model done took began found cpu gpu section")


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    """The first calibration of a home; cpu, gpu: the headers of its sections; section: the GPU's. Nobody changes the
    home's files."""
    home = tmp_path_factory.mktemp("usual")
    model = home / ".cache/accel/model"
    began, since = int(time.time()), time.monotonic()
    done = calibrate(home, env=GPU)
    took = time.monotonic() - since
    found = read(model)
    cpu, gpu = ([h for h in found if h.startswith(f"[{side} ")] for side in ("cpu", "gpu"))
    return Usual(home, model, done, took, began, found, cpu, gpu, gpu_of(found))


def test_it_runs(usual):
    assert usual.done.returncode == 0
    assert not usual.done.stderr


def test_it_takes_the_given_time_or_not_much_longer(usual):
    # On a busy machine the smallest shapes alone may take much longer.
    assert usual.took < 250


def test_one_section_of_the_gpu(usual):
    assert len(usual.gpu) == 1
    assert re.fullmatch(r'\[gpu "[^"]+" cuda=\d+\.\d+ cublas=\d{6}\]', usual.gpu[0])


def test_sections_of_libraries(usual):
    assert usual.cpu
    assert not [header for header in usual.cpu if not re.fullmatch(CPU_KEY, header)]


@pytest.mark.parametrize("library", TRAININGS)
def test_a_section_with_trainings(usual, library):
    routine, first = TRAININGS[library]
    (header,) = [header for header in usual.cpu if library in header]
    assert routines(usual.found[header]) == {routine}
    assert usual.found[header][routine].startswith(first)
    assert usual.section[routine].startswith(first), "the GPU's are of the sizes that are measured on the CPU"


def test_a_line_for_each_routine_and_for_trainings(usual):
    assert routines(usual.section) == ROUTINES | {"svm_train", "train"}


def test_rates_of_copies(usual):
    assert float(usual.section["up_gbps"]) > 0
    assert float(usual.section["down_gbps"]) > 0


def test_the_pieces_of_copies(usual):
    assert usual.section["piece_kb"] in ("256", "512", "1024", "2048")
    assert f"in pieces of {usual.section['piece_kb']} KiB" in usual.done.stdout


@pytest.mark.parametrize("way, said", [("up", "to the GPU"), ("down", "back")])
def test_what_short_columns_take(usual, way, said):
    length, ms = (float(usual.section.get(f"short_{way}_{what}", 0)) for what in ("bytes", "ms"))
    line = re.search(rf"columns of a matrix of less than (\S+) KB take up to (\S+) ns more each {said}$",
                     usual.done.stdout, re.M)
    assert 1 <= length <= 65536
    if ms > 0:
        assert float(line[1]) * 1e3 == pytest.approx(length, rel=0.01)
        assert float(line[2]) * 1e-6 == pytest.approx(ms, rel=0.01)
    else:
        assert length == 1
        assert not line


def test_none_of_reads_in_place_which_it_cannot_do(usual):
    assert "place_gbps" not in usual.section
    assert "in place" not in usual.done.stdout


def test_what_first_calls_load(usual):
    assert float(usual.section["kernels_ms"]) > 0
    assert float(usual.section["solver_ms"]) > 0
    assert "first calls: " in usual.done.stdout


def test_how_fast_its_blas_solves_by_triangles(usual):
    """The kernel of our own, which it emulates, is far too slow to be used."""
    solves = {name: float(value) for name, value in usual.section.items() if name.startswith("solve_")}
    assert solves.keys() == {f"solve_{t}_blas_{what}" for t in "sd" for what in ("gbps", "row_ms")}
    assert min(solves.values()) > 0


def test_how_fast_blocks_of_many_rows_are_multiplied_is_not_measured_where_they_take_long(usual):
    assert not [name for name in usual.section if name.startswith("pace_")]
    assert " rows are multiplied " not in usual.done.stdout


def test_products_in_the_precisions_that_it_has(usual):
    assert float(usual.section["gain_tf32"]) > 0
    assert not float(usual.section.get("gain_bf16x9", 0))
    said = re.search(r"products: emulated is (\S+) times as fast as native", usual.done.stdout)
    assert float(said[1]) == pytest.approx(float(usual.section["gain_emulated"]), rel=0.01)


def test_one_line_for_each_routine_of_the_libraries(usual):
    libraries = [ctypes.CDLL("libblas.so.3"), ctypes.CDLL("liblapack.so.3")]
    there = [name for header in usual.cpu if not any(library in header for library in TRAININGS)
             for name in routines(usual.found[header])]
    assert sorted(there) == sorted(r for r in ROUTINES if any(hasattr(library, r + "_") for library in libraries))


def test_sizes_and_times(usual):
    assert not [line for section in usual.found.values() for line in wrong_lines(section)]


def test_when_it_was_measured(usual):
    assert not [section["calibrated"] for section in usual.found.values()
                if not usual.began <= int(section["calibrated"]) <= time.time()]


def test_it_reports_the_file_its_sections_and_rates(usual):
    said = usual.done.stdout
    assert str(usual.model) in said
    assert not [header for header in usual.found if header not in said]
    assert "copies: " in said
    assert re.search(r"dgemm of order \d+ on the CPU: [\d.]+ Gflop/s\ndgemm of order \d+ on the GPU: [\d.]+ Gflop/s\n"
                     r"dgemm is faster on the [CG]PU ", said)


def test_nothing_is_left_beside_the_file(usual):
    assert os.listdir(usual.model.parent) == ["model"]


def test_without_a_gpu_the_former_section_of_one_stays(usual, tmp_path):
    model = shutil.copy(usual.model, tmp_path)
    done = calibrate(tmp_path, "--output", model, env=HIDDEN, seconds=1)
    assert done.returncode == 0
    assert not done.stderr
    assert "no GPU was measured: " in done.stdout
    after = read(model)
    assert after.keys() == usual.found.keys()
    assert gpu_of(after) == usual.section


# ---- Other test GPUs ----


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """The test GPU takes a given time for each function, and for a library."""
    return gpu_calibrated(tmp_path_factory.mktemp("slow") / "slow", TESTGPU_FIRST_MS="40", TESTGPU_LOAD_MS="300", TESTGPU_START_MS="250",
                          TESTGPU_ATTRIBUTES="100=1")


def test_a_gpu_with_the_host_s_page_tables_reads_in_place(slow):
    section, done = slow
    assert float(section["place_gbps"]) > 0
    assert "operands in host memory: kernels read " in done.stdout


def test_first_calls_that_load_much(slow):
    assert float(slow[0]["kernels_ms"]) > 15
    assert float(slow[0]["solver_ms"]) > 200


def test_how_long_cuda_starts(usual, slow):
    assert float(slow[0]["start_ms"]) > 250 > float(usual.section["start_ms"]) > 0


def test_precisions_that_are_faster(tmp_path):
    """The test GPU's integers are four times as fast as its double precision, its TF32 eight times as its single."""
    section, _ = gpu_calibrated(tmp_path / "rated", TESTGPU_GFLOPS="1", TESTGPU_DATA="0", TESTGPU_MEMORY="2G")
    assert float(section["gain_emulated"]) > 1
    assert float(section["gain_tf32"]) > 1


@pytest.fixture(scope="module")
def paced(tmp_path_factory):
    """A test GPU whose kernels take the time of a fast one's. Where the machine has other work, there may be no time
    for the pace of blocks of some numbers of rows: then once more, with more time."""
    path = tmp_path_factory.mktemp("paced") / "paced"
    for seconds in 1, 1, 1, 15, 30, 60:
        section, done = gpu_calibrated(path, seconds, TESTGPU_GFLOPS="60000", TESTGPU_HALF="128", TESTGPU_DATA="0",
                                       TESTGPU_MEMORY="2G")
        if {"pace_s", "pace_d"} <= section.keys():
            break
    return section, done


@pytest.mark.parametrize("kind", "sd")
def test_the_pace_of_blocks_of_all_sizes(paced, kind):
    section, done = paced
    paces = {int(rows): float(pace) for rows,
             pace in (entry.split(":") for entry in section[f"pace_{kind}"].split(" "))}
    assert list(paces) == list(range(640, 4097, 128))
    assert paces[3200] == 1
    assert min(paces.values()) >= 0.5
    assert max(paces.values()) <= 2
    said = re.search(rf"^{kind}gemm: blocks of (\d+) rows are multiplied (\S+) times as fast as those of (\d+)$",
                     done.stdout, re.M)
    if said:
        assert paces[int(said[1])] / paces[int(said[3])] == pytest.approx(float(said[2]), rel=0.02)
    else:
        assert len(set(paces.values())) == 1


def test_eigenvalues_and_the_like_have_a_square_of_order_192_however_short_the_time(paced):
    others = [r for r in ROUTINES if re.fullmatch("d(sy(ev.?|gvd?|sv|trf)|ge(svd|sdd|ls[sd]|ev))", r)]
    assert [r for r in others if re.search(r"\b192(x192)*:", paced[0].get(r, ""))]


def test_a_gpu_that_fails_while_it_is_measured_has_no_section(tmp_path):
    done = calibrate(tmp_path, "--output", tmp_path / "one", seconds=1,
                     env={**GPU, "TESTGPU_FAIL": "cuMemcpyHtoDAsync:800+=CUDA_ERROR_ILLEGAL_ADDRESS"})
    assert done.returncode == 0
    assert "no GPU was measured: " in done.stdout
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in done.stdout
    assert not [header for header in read(tmp_path / "one") if not header.startswith("[cpu ")], "the libraries alone"


# ---- Other libraries, each with its own section in one file ----


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """The file of all of them."""
    return tmp_path_factory.mktemp("other") / "other"


@pytest.mark.parametrize("name", OTHERS)
def test_other_libraries(other, name):
    paths = [next(Path("/").glob(str(pattern)[1:])) for pattern in OTHERS[name]]
    before = read(other) if other.exists() else {}
    done = calibrate(other.parent, "--library", ",".join(map(str, paths)),
                     env={**HIDDEN, "ACCEL_MODEL": str(other), "BLIS_NUM_THREADS": "1"},
                     seconds=1)
    assert done.returncode == 0
    assert not done.stderr
    after = read(other)
    new = {header: after[header] for header in after.keys() - before.keys()}
    assert len(new) == len(paths), "a section for each library"
    for path in paths:
        assert [header for header in new if f'"{path.resolve().name} {path.stat().st_size}"' in header], "its key"
    assert {header: after.get(header) for header in before} == before, "the others stay"
    lines = {r for section in new.values() for r in routines(section)}
    assert "dgemm" in lines
    assert name == "BLIS" or "zgesdd" in lines
    assert not [line for section in new.values() for line in wrong_lines(section)], "sizes and times"


@pytest.mark.skipif(not LONG, reason="the long form has it")
def test_the_squares_by_which_larger_calls_are_estimated(tmp_path):
    section, done = gpu_calibrated(tmp_path / "guided", 40, TESTGPU_DATA="0", TESTGPU_MEMORY="4G")
    assert done.returncode == 0
    squares = (("dgemm", "3200x3200x3200"), ("sgemm", "3200x3200x3200"), ("dsyrk", "1600x1600"), ("dtrsm", "1600x1600"),
               ("dgetrf", "1600x1600"), ("dpotrf", "1600"), ("dgeqrf", "1600x1600"))
    assert not [(name, size) for name, size in squares if f"{size}:" not in section.get(name, "")]


# ---- Where the file goes, and wrong options ----


def test_xdg_cache_home(tmp_path):
    calibrate(tmp_path, env={**HIDDEN, "XDG_CACHE_HOME": f"{tmp_path}/cache"}, seconds=1)
    assert read(tmp_path / "cache/accel/model")


@pytest.mark.parametrize("argument, words", [
    ("--seconds=0", "1 to 3600"), ("--seconds=1e2", "1 to 3600"), ("--seconds=soon", "1 to 3600"),
    ("--memory=1M", "16M to 1024G"),
    ("--memory=2X", "16M to 1024G"), ("--library=/no/such.so", "/no/such.so"), ("--library=", "path"),
    ("--output=", "path"),
    ("dgemm", "--help")])
def test_refused_in_one_line_that_says_what_is_allowed(tmp_path, argument, words):
    nothing = tmp_path / "nothing"
    done = start(ACCEL, "calibrate", argument, env={"HOME": str(tmp_path), "ACCEL_MODEL": str(nothing)})
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert not done.stdout
    assert not nothing.exists()


def test_another_command_is_refused():
    done = start(ACCEL, "measure")
    assert done.returncode == 2
    assert "calibrate" in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_unknown_option_is_refused():
    done = start(ACCEL, "calibrate", "--no-such")
    assert done.returncode == 2
    assert "--no-such" in done.stderr


@pytest.mark.parametrize("words", ["--help", "calibrate --help"])
def test_help(words):
    done = start(ACCEL, *words.split())
    assert done.returncode == 0
    assert "Usage: accel" in done.stdout
    assert not done.stderr


@pytest.mark.parametrize("place", ["a folder", "/proc/no/model", "below a file"])
def test_a_file_that_cannot_be_written_even_by_root_is_refused_before_anything_is_measured(usual, tmp_path, place):
    model = Path(shutil.copy(usual.model, tmp_path))
    closed = tmp_path / "closed"
    closed.mkdir()
    path = {"a folder": closed, "below a file": model / "below"}.get(place, place)
    began = time.monotonic()
    done = start(ACCEL, "calibrate", "--output", path, env=HIDDEN)
    assert time.monotonic() - began < 60
    assert done.returncode == 1
    assert str(path) in done.stderr
    assert done.stderr.count("\n") == 1
    assert not done.stdout
    assert model.read_bytes() == usual.model.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["closed", "model"], "nothing is left beside the file"


def test_no_place_for_the_file():
    done = start(ACCEL, "calibrate", env={"HOME": ""})
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1


def test_under_libaccel_which_would_be_measured(tmp_path):
    done = start(ACCEL, "calibrate", env={**SHIM, "HOME": str(tmp_path)})
    assert done.returncode == 1
    assert "preloaded" in done.stderr


@pytest.mark.parametrize("wrong, allowed", [
    pytest.param("gesvdp:1+", {"gesvdj"}, id="an inaccurate gesvdp"),
    *([pytest.param("gesvdj:1+", {"gesvdp"}, id="an inaccurate gesvdj"),
       pytest.param("", {"gesvdp", "gesvdj"}, id="all accurate")] if LONG else [])])
def test_singular_values_have_the_fastest_of_the_accurate_algorithms_at_each_order(tmp_path, wrong, allowed):
    """Xgesvd has long chains of kernels, which are slow here: slower than the other algorithms also where other
    processes take most of the machine."""
    section, _ = gpu_calibrated(tmp_path / "model", 3, TESTGPU_LAUNCH_US="400", TESTGPU_GFLOPS="2000",
                                TESTGPU_WRONG=wrong)
    chosen = svd(section)
    assert chosen.keys() == {f"{t}_{w}" for t in "sdcz" for w in ("values", "vectors")}
    for orders in chosen.values():
        assert orders
        assert set(orders.values()) <= allowed
