#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""The gallery's verdicts, of runs that never were; how examples are cut out of notebooks and functions' files."""

import os
import subprocess
import sys
import tempfile
from struct import pack

import pytest

from gallery import product
from gallery.cells import code_of, program
from gallery.examples import Example, demos, write_demos
from gallery.judge import judge
from gallery.runs import Output, lines_of
from gallery.table import faults

EXAMPLE = Example("R/toy/one", [], None, [])
KERNELS = ("Haswell", "Sandybridge", "Nehalem")


def array(*values):
    """The bytes of a file in NumPy's format."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({len(values)},), }}"
    header += " " * (53 - len(header) % 64 + 64 * (len(header) % 64 > 53)) + "\n"
    return b"\x93NUMPY\x01\x00" + pack("<H", len(header)) + header.encode() + pack(f"<{len(values)}d", *values)


def output(*lines, end="ok", errors=(), arrays={}, loaded=True, gpu=3, bad=()):
    return Output(end, 1.0, {"stdout": list(lines), "stderr": list(errors)}, arrays, loaded, 3, gpu, list(bad))


def judged(plain, without, gpu, **others):
    """others: what further runs give, where not what the first one gave. A list gives one after another."""
    runs = {"plain": plain, "no GPU": without, "test GPU": gpu, **others}
    turns = {}

    def run(example, mode, limit, extra={}):
        given = runs.get(mode, plain if not isinstance(plain, list) else plain[0])
        if isinstance(given, list):
            turns[mode] = turns.get(mode, -1) + 1
            return given[min(turns[mode], len(given) - 1)]
        return given

    return judge(EXAMPLE, 60, run)[0]


def test_same():
    row = judged(output("x 1.5"), output("x 1.5"), output("x 1.5"))
    assert (row["verdict"], row["numbers"], row["gpu"], row["calls"]) == ("same", 1, 3, 3)


def test_rounding():
    row = judged(output("x 1.5000000001"), output("x 1.5000000001"), output("x 1.5000000002"))
    assert row["verdict"] == "rounding" and 0 < row["worst"] < 1e-9


def test_rounding_of_a_figure():
    row = judged(output(arrays={"a": array(1, 1e-17)}), output(arrays={"a": array(1, 1e-17)}), output(arrays={"a": array(1, 3e-17)}))
    assert (row["verdict"], row["numbers"]) == ("rounding", (len(array(1, 1e-17)) // 8))


@pytest.mark.parametrize("other", [output("x 1.6"), output("y 1.5"), output("x 1.5", "x"), output("x 1.5", arrays={"a": array(1)})])
def test_what_the_gpu_changes(other):
    assert judged(output("x 1.5"), output("x 1.5"), other)["verdict"] == "DIFFERS on the GPU"


def test_a_figure_that_the_gpu_changes():
    one, other = output(arrays={"a": array(1, 2)}), output(arrays={"a": array(1, 2.1)})
    assert judged(one, one, other)["verdict"] == "DIFFERS on the GPU"


def test_one_bit_without_a_gpu():
    row = judged(output("x 1.5000000001"), output("x 1.5000000002"), output("x 1.5000000001"))
    assert row["verdict"] == "DIFFERS without a GPU"


def test_a_time_of_day_is_left_out_and_the_rest_is_compared():
    times = [output(f"took {i} s", "x 1.5") for i in range(1, 6)]
    assert judged(times, times[3], times[4])["verdict"] == "same"
    assert judged(times, times[3], output("took 9 s", "x 1.6"))["verdict"] == "DIFFERS on the GPU"


def test_a_rounded_time_may_be_the_same_thrice():
    times = [output(f"took {i} s", "some 0.1 s", "x 1.5") for i in range(1, 4)] + [output("took 4 s", "some 0.2 s", "x 1.5")]
    assert judged(times, output("took 9 s", "some 0.3 s", "x 1.5"), output("took 9 s", "some 0.4 s", "x 1.5"))["verdict"] == "same"
    assert judged(times, output("took 1 s", "some 0.1 s", "x 1.5"), output("took 9 s", "some 0.4 s", "x 1.5"))["verdict"] == "same"
    assert judged(times, output("took 9 s", "some 0.3 s", "x 1.6"), output("took 9 s", "some 0.4 s", "x 1.5"))["verdict"] == "DIFFERS without a GPU"


def test_what_repeats_is_run_thrice_and_no_more():
    again, plain = [], output("x 1.5")

    def run(example, mode, limit, extra={}):
        again.append(mode)
        return output("x 1.6") if mode == "no GPU" else plain

    assert judge(EXAMPLE, 60, run)[0]["verdict"] == "DIFFERS without a GPU"
    assert again == ["plain", "no GPU", "plain", "plain"]


def test_the_report_has_what_differs():
    one, other = output("x 1.5", arrays={"a": array(1, 1e-17)}), output("x 1.6", arrays={"a": array(1, 3e-17)})
    note = judged(one, one, other)["note"]
    assert "stdout.txt" in note and "a.npy" not in note


def test_nothing_that_repeats():
    times = [output(f"took {i} s") for i in range(1, 6)]
    assert judged(times, times[3], times[4])["verdict"] == "not repeatable"


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_other_kernels_change_too(kernel):
    plain = output("7 steps", "x 1.5")
    assert judged(plain, plain, output("8 steps", "x 1.5"), **{kernel: output("9 steps", "x 1.5")})["verdict"] == "sensitive"
    assert judged(plain, plain, output("8 steps", "x 1.6"), **{kernel: output("9 steps", "x 1.5")})["verdict"] == "DIFFERS on the GPU"


def test_few_digits_that_other_kernels_change_are_no_rounding():
    plain = output("x 0.543")
    assert judged(plain, plain, output("x 0.544"), Nehalem=output("x 0.544"))["verdict"] == "sensitive"


def test_rounding_by_other_kernels_excuses_nothing():
    plain = output("x 1.500000000001")
    assert judged(plain, plain, output("x 1.6"), Haswell=output("x 1.500000000002"))["verdict"] == "DIFFERS on the GPU"


@pytest.mark.parametrize("end, errors, verdict", [
    ("exit status 1", ["ValueError: no"], "fails alone"), ("too long", [], "too long alone"), ("exit status 1", ["urllib.error.URLError: <refused>"], "needs the network"),
    ("exit status 1", ["ModuleNotFoundError: No module named 'x'"], "needs a package")])
def test_alone(end, errors, verdict):
    assert judged(output(end=end, errors=errors), None, None)["verdict"] == verdict


def test_the_reason_is_the_last_error():
    plain = output("error: plot: no", "-- demo 02", "error: plot: not", end="exit status 1", errors=["Qt is better."])
    assert judged(plain, None, None)["note"] == "exit status 1: error: plot: not Qt is better."
    plain = output(end="exit status 1", errors=["Traceback:", "Error in f(x) : ", "  no x", "  here", "Execution halted"])
    assert judged(plain, None, None)["note"] == "exit status 1: Error in f(x) : no x"
    assert judged(output("a", "b", "c", end="exit status 1"), None, None)["note"] == "exit status 1: b c"


def test_ends():
    fine = output("1")
    assert judged(fine, output(end="SIGSEGV"), fine)["verdict"] == "FAILS without a GPU"
    assert judged(fine, fine, output(end="SIGSEGV"))["verdict"] == "FAILS on the GPU"
    assert judged(fine, fine, output("1", bad=["dgemm ran=gpu0+cpu"]))["verdict"] == "GPU FAULT"
    assert judged(fine, output("1", loaded=False), fine)["verdict"] == "NOT ACTIVE"
    assert judged(fine, fine, output("1", loaded=False))["verdict"] == "NOT ACTIVE"


def row(verdict, name="R/toy/one", gpu=1):
    return {"name": name, "verdict": verdict, "note": "", "gpu": gpu}


def test_a_worker_that_the_limit_has_ended():
    """joblib ends the program by an error of its own."""
    said = "The exit codes of the workers are {SIGKILL(-9), EXIT(0)}"
    assert judged(output("x 1"), output("x 1"), output(end="exit status 1", errors=[said]))["verdict"] == "too long alone"
    assert judged(output("x 1"), output("x 1"), output(end="exit status 1", errors=["The exit codes of the workers are {SIGSEGV(-11)}"]))["verdict"] == "FAILS on the GPU"


def test_what_fails_the_whole():
    assert not faults([row("same"), row("sensitive"), row("fails alone", "R/toy/two")], {})
    assert faults([row("DIFFERS on the GPU")], {}) and faults([row("NOT ACTIVE")], {})
    assert not faults([row("DIFFERS on the GPU")], {"R/toy/one": "why"})
    assert faults([row("same")], {"R/toy/one": "why"}) == ["R/toy/one: an exception that is not needed"]
    assert faults([row("same", f"R/toy/{i}", gpu=0) for i in range(6)], {}) == ["R: no call ran on the GPU"]


def test_no_exception_excuses_what_is_not_of_results():
    assert all(faults([row(verdict)], {"R/toy/one": "why"}) for verdict in ("NOT ACTIVE", "FAILS on the GPU", "GPU FAULT", "DIFFERS without a GPU"))


def test_times_may_be_others_without_a_gpu():
    times = {"R/toy/one": "times: a power of the times of a loop"}
    assert not faults([row("DIFFERS without a GPU")], times) and not faults([row("DIFFERS on the GPU")], times) and not faults([row("same")], times)
    assert all(faults([row(verdict)], times) for verdict in ("NOT ACTIVE", "FAILS without a GPU", "GPU FAULT"))


def test_what_changes_by_nature():
    text = f"<A at 0x7f0012345678> 12:30:59 {tempfile.gettempdir()}/accel-gallery-x_1/cwd\naccel: hint\n2"
    assert lines_of(text.encode()) == ["<A at 0x> hh:mm:ss TMPDIR", "2"]


def test_what_matplotlib_says_of_a_slow_start_is_left_out():
    assert lines_of(b"Matplotlib is building the font cache; this may take a moment.\n1.5\n") == ["1.5"]


def test_of_a_file_of_pages_what_is_drawn():
    pdf = b"%PDF-1.4\n6 0 obj\n<< /Length 7 0 R >>\nstream\n1 0 l\n(D) Tj\nendstream\nxref\n0 9\n"
    assert lines_of(pdf) == ["1 0 l", "(D) Tj"]


def test_demos_of_a_function():
    text = "function f\n%!demo\n%! x = 1;\n%! y = 2;\n\n%!test\n%! z = 3;\n%!demo <*5>\n%! w = 4;\n"
    assert demos(text) == [" x = 1;\n y = 2;\n", " w = 4;\n"]


def test_demos_that_are_there_stay(tmp_path):
    folder = tmp_path / "f"
    write_demos(folder, ["a\n", "b\n"])
    with (folder / "01.m").open() as reader:
        write_demos(folder, ["a\n", "b\n"])
        assert os.path.samefile(folder / "01.m", reader.fileno())
    write_demos(folder, ["c\n"])
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"01.m": "c\n"}


def library(folder, name, *lines):
    (folder / "one.c").write_text("\n".join(lines))
    subprocess.run(["gcc", "-g", "-shared", "-fPIC", "-Wl,--build-id", "-o", folder / name, folder / "one.c"], check=True)
    return folder / name


def test_a_commit_and_a_comment_have_nothing_run_again(tmp_path):
    text = 'const char *commit(void) {{ return "{}"; }}', "int f(void) {{ return {}; }}"
    one = library(tmp_path, "one.so", text[0].format("0123456789ab"), text[1].format(1))
    other = library(tmp_path, "other.so", "// why", text[0].format("abcdef012345"), text[1].format(1))
    changed = library(tmp_path, "changed.so", text[0].format("0123456789ab"), text[1].format(2))
    assert one.read_bytes() != other.read_bytes()
    assert product.digest([one], "0123456789ab") == product.digest([other], "abcdef012345")
    assert product.digest([one], "0123456789ab") != product.digest([changed], "0123456789ab")


def test_cells_of_a_notebook():
    text = "# T\n```{code-cell} ipython3\n:tags: [x]\n\n%matplotlib inline\na = 1\n```\ntext\n```python\nb\n```\n```{code-cell}\na + 1\n```\n"
    assert code_of(text).split() == ["a", "=", "1", "a", "+", "1"]


def test_options_of_a_cell_are_no_code():
    text = "```{code-cell} ipython3\n---\nmystnb:\n  image:\n    alt: a\n      b.\n---\na = 1\n```\n```{code-cell}\nb\n```\n---\n"
    assert code_of(text).split() == ["a", "=", "1", "b"]


def test_expressions_are_printed(tmp_path, capsys):
    path = tmp_path / "one.py"
    path.write_text('"""A text."""\n1 + 1\nNone\nif True:\n    3\n"seen"\n')
    shown = sys.displayhook
    try:
        exec(program(str(path)), {})
    finally:
        sys.displayhook = shown
    assert capsys.readouterr().out == "2\n"
