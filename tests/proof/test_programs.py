#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""How scripts/gpu-proof times whole programs: what is missing, fails, is slow or prints something else is said in a
line each, and the rest goes on; NVBLAS plays where it can see calls; the report's sums are those of its programs."""

import json
import re
import statistics
import subprocess
from pathlib import Path

import pytest

from lib.programs import BUILD, ROOT, TEST_GPU

# The step alone, in a folder: the bundle's programs and python3 are scripts of the test's.
STEP = """
check() { echo "$2: $3${5:+: $5}"; printf '%s\\t%s\\t%s\\t0\\t\\n' "$1" "$2" "$3" >> $parts/checks.tsv; }
left_out() { check "$1" "$2" "left out" 0 "$3"; }
say() { echo "$*"; }; machine() { :; }
root=$PWD build=BUILD kit=FOLDER/kit work=FOLDER parts=FOLDER logs=FOLDER cores=2 quick= few= gpu='Test GPU'
inherited= toolkit_libraries= nvblas= no_nvblas='none here' PROGRAM_SCALE=0.02 program_seconds=16
. tests/proof/checks.sh; . tests/proof/programs.sh
export PROGRAM_SCALE
step_end=$((SECONDS + 600)) most_program_turns=1
calibrate_programs() { calibration=(ACCEL_POLICY=auto); }
"""
WITH = 'case "$LD_PRELOAD:$ACCEL_ESTIMATE" in *libaccel.so:) '


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    """All that the step calls, but no Python."""
    folder = tmp_path_factory.mktemp("tools")
    for program in Path("/usr/bin").iterdir():
        if not program.name.startswith("python"):
            (folder / program.name).symlink_to(program)
    return folder


@pytest.fixture
def step(tmp_path, tools):
    """step(programs, settings, {file of the bundle's bin: script}, python3) -> lines, rows of programs.tsv."""

    def run(programs, settings="", scripts={}, python=None):
        binaries = tmp_path / "kit/bin"
        binaries.mkdir(parents=True)
        (tmp_path / "kit/lib").mkdir()
        path = tmp_path / "path"
        path.mkdir()
        for folder, names in ((binaries, scripts), (path, {"python3": python} if python else {})):
            for name, text in names.items():
                (folder / name).write_text(f"#!/bin/sh\n{text}\n")
                (folder / name).chmod(0o755)
        command = STEP.replace("BUILD", str(BUILD)).replace("FOLDER", str(tmp_path))
        done = subprocess.run(["bash", "-c", f"{command}{settings}\nwanted_programs='{programs}'; step_programs"],
                              cwd=ROOT,
                              env={"PATH": f"{path}:{tools}", "HOME": str(tmp_path), "OPENBLAS_NUM_THREADS": "1",
                                   "ACCEL_CUDA_DIR": TEST_GPU["ACCEL_CUDA_DIR"]},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert (tmp_path / "programs.tsv").exists(), done.stdout
        rows = [line.split("\t") for line in (tmp_path / "programs.tsv").read_text().splitlines()]
        said = [line for line in done.stdout.splitlines() if not line.startswith(("NVBLAS:", "programs: "))]
        return said, rows

    return run


def turns(rows, program):
    return [player for name, player, _ in rows if name == program and player in ("alone", "libaccel", "calibrated")]


PASSED = "echo PASSED > hpccoutf.txt"
TRAINED = 'printf "nr_class 26\\ntotal_sv 7\\n" > "$7"'
ALL = ["alone", "libaccel", "calibrated"]


@pytest.mark.parametrize("python, said", [
    pytest.param('exec /usr/bin/python3 -I -S "$@"', r"solve: not here: \S+/python3 has no numpy",
                 id="without NumPy"),
    pytest.param("echo broken >&2; exit 3", r"solve: not here: \S+/python3 does not work: broken",
                 id="that does not work"),
    pytest.param(None, "solve: not here: there is no python3", id="that is not there")])
def test_a_python(step, python, said):
    lines, rows = step("solve hpl", scripts={"xhpl": PASSED}, python=python)
    assert re.fullmatch(said, lines[0])
    assert lines[1].startswith("hpl: ok: ")
    assert turns(rows, "hpl") == ALL


def test_a_module_that_only_one_program_needs(step):
    """As torch, where the machine's Python has NumPy."""
    lines, _ = step("torch_mlp solve", "estimated_gpu=H100",
                    python='case "$*" in *find_spec*) echo torch;; *) exit 1;; esac')
    assert re.fullmatch(r"torch_mlp: not here: \S+/python3 has no torch", lines[0])


def test_a_bundle_without_a_program(step):
    lines, rows = step("hpl svm_train", scripts={"svm-train": TRAINED})
    assert lines[0] == "hpl: not here: the bundle has no xhpl"
    assert lines[1].startswith("svm_train: ok")
    assert turns(rows, "svm_train") == ALL


@pytest.mark.parametrize("script, settings, said", [
    pytest.param("echo no luck >&2; exit 3", "", "hpl: left out: without a GPU: exit status 3, no luck",
                 id="that fails alone"),
    pytest.param("sleep 30", "program_limit=1", "hpl: left out: without a GPU: not finished after 1 s, its limit",
                 id="that runs past its limit"),
    pytest.param(f"{PASSED}; {WITH} exit 3;; esac", "",
                 "hpl, libaccel: failed: with libaccel: exit status 3, .*; alone it ends well",
                 id="that fails with libaccel"),
    pytest.param(f"{PASSED}; {WITH} sleep 30;; esac", "libaccel_limit=1",
                 "hpl, libaccel: failed: with libaccel: not finished after 1 s, its limit; .*",
                 id="that is slow with libaccel"),
    pytest.param(f"{PASSED}; {WITH} {PASSED}; {PASSED.replace('>', '>>')};; esac", "",
                 "hpl, outputs: failed: with libaccel others than alone: .*DIFFERS.*", id="that prints something else"),
    pytest.param(f"{PASSED}; seq $(date +%N | cut -c 2-6) | sed 's/.*/PASSED/' >> hpccoutf.txt", "",
                 "hpl, outputs: left out: accel diff cannot tell: .*", id="that is not repeatable")])
def test_a_program(step, script, settings, said):
    lines, rows = step("hpl svm_train", settings, {"xhpl": script, "svm-train": TRAINED})
    assert len([line for line in lines if re.fullmatch(said, line)]) == 1, lines
    assert lines[-1].startswith("svm_train: ok"), lines
    assert turns(rows, "svm_train") == ALL


def test_the_step_s_time_ends(step):
    lines, rows = step("hpl svm_train", "calibrate_programs() { step_end=$((SECONDS + 5)); }",
                       {"xhpl": f"{PASSED}; {WITH} sleep 30;; esac", "svm-train": TRAINED})
    assert lines == ["hpl, libaccel: left out: not finished in the step's time", "svm_train: left out: no time is left"]


def test_programs_have_more_turns_while_there_is_time_and_another_begins(step):
    _, rows = step("hpl", "most_program_turns=3", {"xhpl": PASSED})
    assert turns(rows, "hpl") == [*ALL, "calibrated", "alone", "libaccel", *ALL]


# ---- NVBLAS ----

# A program that makes a call, and prints how NVBLAS is set.
CALL = f"echo 'dgemm 256 9' | {BUILD}/proof/time_calls > /dev/null; {PASSED}; [ ! -e \"$NVBLAS_CONFIG_FILE\" ] || "


# What the variants take, whatever else runs here.
TAKEN = """
eval "real_$(declare -f play)"
play() {
    real_play "$@" || return
    case $2 in nvblas_PINNED | nvblas_4096) took=20000000 ;; nvblas_*) took=30000000 ;; esac
}
"""


@pytest.mark.parametrize("best, pinned", [("pinned", ["AUTOPIN"]), ("shipped", [])])
def test_nvblas_is_tried_in_five_ways(step, tmp_path, best, pinned):
    """As shipped and with pinned operands; then by other tiles in the better of both ways."""
    lines, rows = step("hpl", f"{TAKEN.replace('PINNED', best)} nvblas={BUILD}/proof/libR.so",
                       {"xhpl": f"{CALL} {{ tr '\\n' ' ' < $NVBLAS_CONFIG_FILE; echo; }} >> {tmp_path}/tried"})
    tried = (tmp_path / "tried").read_text().splitlines()
    assert [re.findall(r"AUTOPIN|TILE_DIM \d+", line) for line in tried] == [
        [], ["AUTOPIN"], *([*pinned, f"TILE_DIM {size}"] for size in (1024, 4096, 8192))]
    assert [what for _, what, _ in rows if re.match(r"nvblas_[^n]", what)] == [
        f"nvblas_{name}" for name in ("shipped", "pinned", 1024, 4096, 8192)]
    assert ["hpl", "nvblas_note", "sees dgemm_"] in rows
    assert lines[-1].startswith("hpl: ok")


def test_nvblas_does_not_play_where_it_sees_no_call(step):
    _, rows = step("hpl", f"nvblas={BUILD}/proof/libR.so", {"xhpl": PASSED})
    assert ["hpl", "nvblas_note", "sees none of its calls"] in rows
    assert not [what for _, what, _ in rows if re.match(r"nvblas_[^n]", what)]


def test_a_failure_of_nvblas_is_said_and_no_failure_of_ours(step):
    lines, rows = step("hpl", "nvblas=/nowhere/libnvblas.so.13", {"xhpl": f"{CALL} exit 9"})
    assert "hpl, NVBLAS: not here: exit status 9, " in lines[0]
    assert lines[-1].startswith("hpl: ok")


# ---- The report ----

ROWS = """solve\tabout\tNumPy: a "system"
solve\testimate\t2.2
solve\talone\t8.2
solve\talone\t8.0
solve\tlibaccel\t2.0
solve\tlibaccel\t1.6
solve\tlibaccel\t9.0
solve\tcalibrated\t1.5
solve\tgpu_calls\t3
solve\toutputs\tsame
solve\tnvblas_note\tsees none of its calls
hpl\talone\t5
hpl\tlibaccel\t2
hpl\tcalibrated\t2.5
hpl\testimate\t1.8
hpl\tnvblas_shipped\t4.5
hpl\tnvblas_pinned\t4
hpl\tnvblas_note\tsees dgemm_
image\talone\t2
image\tlibaccel\t1.9
image\testimate\t2
image\tnvblas_note\tsees none of its calls
kalman\tabout\tnot here
"""


@pytest.fixture
def report(tmp_path):
    (tmp_path / "programs.tsv").write_text(ROWS)

    def made(form):
        return subprocess.run(["awk", "-v", f"format={form}", "-f", "tests/proof/report.awk",
                               tmp_path / "programs.tsv"], cwd=ROOT, stdout=subprocess.PIPE, text=True,
                              check=True).stdout

    return made


def test_the_report_has_medians_ratios_and_nvblas_at_its_best(report):
    solve, hpl, image, kalman = json.loads(report("json"))["programs"]
    assert solve["alone"] == {"s": statistics.median([8.2, 8.0]), "runs": [8.2, 8.0]}
    assert solve["libaccel"]["s"] == 2
    assert solve["nvblas"] == {"s": 8.1, "best": None, "note": "sees none of its calls", "tried": {}}
    assert solve["ratio"] == {"alone_over_libaccel": 4.05, "nvblas_over_libaccel": 4.05}
    assert (solve["about"], solve["gpu_calls"], solve["outputs"]) == ('NumPy: a "system"', 3, "same")
    assert (hpl["nvblas"]["s"], hpl["nvblas"]["best"]) == (4, "pinned")
    assert kalman["alone"] is None


def test_the_sums_are_those_of_the_programs_that_gain_a_tenth(report):
    sums = json.loads(report("json"))["program_sums"]
    assert sums == {"gaining": 2, "alone_s": 13.1, "nvblas_s": 12.1, "libaccel_s": 4, "calibrated_s": 4,
                    "estimate_s": 4, "estimate_off": 0}
    said = "the 2 that gain take 13.10 s alone, 12.10 s with NVBLAS at its best, 4.00 s with libaccel (3.27 times"
    assert said in report("programs")


def test_the_markdown_has_a_row_for_each(report):
    rows = re.findall(r"(?m)^\| `(\w+)` \|(.*)\|$", report("markdown"))
    assert [name for name, _ in rows] == ["solve", "hpl", "image", "kalman"]
    assert [cell.strip() for cell in rows[0][1].split("|")][:7] == [
        "8.10", "sees none", "2.00", "1.50", "2.20", "4.05", "4.05"]


def test_every_program_of_the_folder_is_in_the_list_and_says_what_it_does():
    scripts = {path.stem: path.read_text() for path in (ROOT / "scripts/programs").glob("*.py")
               if path.stem != "inputs"}
    every = re.search(r'every_program="(.*)"', (ROOT / "tests/proof/programs.sh").read_text())[1].split()
    assert len(every) >= 14
    assert set(scripts) == set(every) - {"hpl", "svm_train", "liblinear"}
    assert not [name for name, text in scripts.items() if not re.match(r'""".+"""\n', text)]


# ---- NVBLAS among the calls that are timed ----


def test_nvblas_at_its_best_counts_for_a_call(tmp_path):
    lines = [("cpu", 90), ("nvblas", 30), ("nvblas_pinned", 20), ("nvblas_4096", 12), ("nvblas_4096", 14),
             ("cublasxt_1024", 9), ("cublasxt_2048", 7), ("libaccel", 2), ("libaccel_gpu", 2)]
    (tmp_path / "timings.tsv").write_text("".join(f"dgemm\t512\t{player}\t1\t{ms}\t1e9\t1e6\t1e6\tgpu0\tfaster\n"
                                                  for player, ms in lines))
    made = subprocess.run(["awk", "-v", "format=json", "-f", "tests/proof/report.awk", tmp_path / "timings.tsv"],
                          cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    (call,) = json.loads(made.stdout)["timings"]
    assert (call["nvblas"]["ms"], call["nvblas_best"]) == (13, "nvblas_4096")
    assert call["ratio"]["nvblas_over_libaccel"] == 6.5
    assert (call["cublasxt"]["ms"], call["cublasxt_best"]) == (7, "cublasxt_2048")
    assert call["ratio"]["cublasxt_over_libaccel"] == 3.5


@pytest.mark.parametrize("times, playing", [
    pytest.param("nvblas 1024 30; nvblas_pinned 1024 20; nvblas_4096 1024 21", "nvblas_pinned nvblas_4096",
                 id="a slow one"),
    pytest.param("nvblas 512 30; nvblas_pinned 512 20; nvblas_4096 512 21", "nvblas nvblas_pinned nvblas_4096",
                 id="at a small order"),
    pytest.param("nvblas 1024 30; nvblas_pinned 2048 239; nvblas_4096 2048 400", "nvblas nvblas_pinned",
                 id="at other orders"),
    pytest.param("nvblas 1024 30; cublasxt_1024 1024 10; cublasxt_2048 1024 14", "nvblas nvblas_pinned nvblas_4096",
                 id="of its own kind"),
    pytest.param("", "nvblas nvblas_pinned nvblas_4096", id="nothing known")])
def test_an_nvblas_that_another_one_has_outplayed_sits_out(times, playing):
    known = "".join(f'last_ms["{player} dgemm"]={ms} last_n["{player} dgemm"]={n}; '
                    for player, n, ms in (entry.split() for entry in times.split("; ") if entry))
    command = (f". tests/proof/turns.sh; players=(cpu nvblas nvblas_pinned nvblas_4096 cublasxt_1024 cublasxt_2048); "
               f"alone=99999; {known}"
               'for p in "${players[@]:1:3}"; do ! plays $p dgemm 4096 || echo $p; done | xargs')
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    assert done.stdout.strip() == playing


def test_cublasxt_plays_level_3_and_its_slow_tiles_sit_out():
    known = "".join(f"last_ms[cublasxt_{tile}\\ dgemm]={ms} last_n[cublasxt_{tile}\\ dgemm]=1024; "
                    for tile, ms in ((1024, 14), (2048, 10), (4096, 12)))
    command = (f". tests/proof/turns.sh; players=(nvblas cublasxt_1024 cublasxt_2048 cublasxt_4096); alone=99999; {known}"
               'for c in dgemm dtrsm dgetrf dsyevd; do for p in "${players[@]:1}"; do ! plays $p $c 4096 || echo '
               '$c ${p#cublasxt_}; done; done')
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    assert done.stdout.splitlines() == ["dgemm 2048", "dgemm 4096", *(f"dtrsm {tile}" for tile in (1024, 2048, 4096))]


@pytest.mark.parametrize("variant, said", [
    ("nvblas", []), ("pinned", ["NVBLAS_AUTOPIN_MEM_ENABLED"]),
    ("4096", ["NVBLAS_AUTOPIN_MEM_ENABLED", "NVBLAS_TILE_DIM 4096"])])
def test_the_settings_of_an_nvblas(variant, said):
    done = subprocess.run(["bash", "-c", f". tests/proof/checks.sh; turns=/t kit=/k nvblas_settings {variant}"],
                          cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.splitlines() == ["NVBLAS_LOGFILE /t/nvblas.log", "NVBLAS_CPU_BLAS_LIB /k/lib/libopenblas.so.0",
                                        "NVBLAS_GPU_LIST 0", *said]
