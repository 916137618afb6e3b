#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""accel diff: finds all differences between the runs, in each format, and no others; loses no file; checks expectations
of the decisions."""

import io
import os
import re
import signal
import subprocess
import time
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse
import yaml

from lib.programs import BUILD, REFERENCE, ROOT, TESTS, clean_env

TOOL = str(BUILD / "accel")
PYTHON = "/usr/bin/python3"
TEST_GPU = {"ACCEL_CUDA_DIR": str(BUILD / "testgpu"), "LD_LIBRARY_PATH": str(BUILD / "testgpu"),
            "TESTGPU_DELAY_US": "0"}
GPU = {**TEST_GPU, "ACCEL_POLICY": "gpu"}
# Sets r to the number of the run: 1 without libaccel, 2 with another number of threads, 3 with
# libaccel.
WHICH = 'case "$LD_PRELOAD" in *libaccel.so*) r=3 ;; *) r=$((3 - OPENBLAS_NUM_THREADS)) ;; esac\n'
SAME, DIFFERS, FAILED = 0, 1, 2


def environment(folder, extra=None):
    env = clean_env(str(folder))
    env.update({"TMPDIR": str(Path(folder, "tmp")), **(extra or {})})
    Path(folder, "tmp").mkdir(exist_ok=True)
    return env


def diff(folder, options, program, env=None, stdin=""):
    return subprocess.run([TOOL, "diff", *options, "--", *program], cwd=folder, env=environment(folder, env),
                          input=stdin, text=True,
                          errors="replace", stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)


def runs(folder, *contents, options=(), name=None):
    """accel diff of a program whose three runs write these bytes (None: nothing) to stdout, or to the file `name`."""
    for run, content in enumerate(contents, 1):
        path = Path(folder, f"in.{run}")
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
    script = WHICH + (f'[ ! -e in.$r ] || cat in.$r > "{name}"' if name else "cat in.$r")
    if name:
        options = ("--output", name, *options)
    done = diff(folder, options, ["sh", "-c", script])
    assert os.listdir(Path(folder, "tmp")) == [], "nothing is left in TMPDIR"
    return done


def expect(done, status, *texts):
    """Checks the status, and that stdout or stderr has the texts."""
    said = done.stdout + done.stderr
    assert not [text for text in texts if text not in said], said
    assert done.returncode == status, said
    return done


Case = namedtuple("Case", "contents options status says one_line")


def case(status, label, *contents, says=(), one_line=False, **options):
    """A program's three outputs, what accel diff returns, and some of what it says."""
    return pytest.param(Case(contents, options, status, says, one_line), id=label)


def same(label, *contents, **options):
    return case(SAME, label, *contents, **options)


def differs(label, *contents, **options):
    return case(DIFFERS, label, *contents, **options)


def damaged(label, content, says, **options):
    """The run with libaccel leaves a file that cannot be read: content[1]. That is worth one line."""
    return case(FAILED, label, content[0], *content, says=says, one_line=True, **options)


def check(folder, case):
    done = expect(runs(folder, *case.contents, **case.options), case.status, *case.says)
    assert not case.one_line or len(done.stderr.splitlines()) == 1


def saved(array, version=None):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asanyarray(array), version=version)
    return file.getvalue()


def text_cases():
    plain = "n = 12\nsum 1.5 2.25e-3\nend\n"
    yield same("the same", plain, plain, plain, says=("stdout (text): ok; 3 numbers, 0 differ, 0 by more",))
    yield differs("a number differs", plain, plain, plain.replace("2.25e", "2.35e"),
            says=("line 2, column 9: 2.25e-3, with libaccel 2.35e-3 (absolute 0.0001, relative 0.0426",
                  "3 numbers, 1 differs, 1 by more"))
    yield same("a difference within the digits of a double", "x 1.234567890123456\n", "x 1.234567890123456\n",
               "x 1.234567890123999\n")
    yield differs("beyond them", "x 1.234567890123456\n", "x 1.234567890123456\n", "x 1.234567990123456\n")
    yield same("the noise floor is allowed for, and printed", "x 1.000000000\n", "x 1.000001000\n", "x 0.999995000\n",
               says=("worst       with libaccel     noise floor", "absolute             5e-06           1e-06"))
    yield differs("much more than the noise is not allowed", "x 1.000000000\n", "x 1.000001000\n", "x 1.000020000\n")
    yield same("the last of four digits may be rounded otherwise", "0.3333\n", "0.3333\n", "0.3334\n")
    yield differs("the last of three digits may not", "0.333\n", "0.333\n", "0.334\n")
    yield same("spaces beside numbers mean nothing", "[ 1.5  -2.0 ]\n", "[ 1.5  -2.0 ]\n", "[1.5 -2.0]\n")
    yield differs("other spaces mean something", "a  b 1\n", "a  b 1\n", "a b 1\n",
                  says=(r'line 1, column 3: "a  b 1\n", with libaccel "a b 1\n"',))
    yield differs("words", "fine 1\n", "fine 1\n", "bad 1\n")
    yield differs("a line more", plain, plain, plain + "5\n", says=(r'line 4: "5\n" is there with libaccel alone',))
    yield differs("a line less", plain, plain, "n = 12\n", says=("is there without libaccel alone",))
    yield same("--ignore", "took 5 s\nx 1\n", "took 5 s\nx 1\n", "took 77777 s\nx 1\n",
               options=("--ignore", "^took [0-9]+"))
    yield same("ignored lines need not be there", "took 5 s\nx 1\n", "x 1\n", "x 1\ntook\ntook\n",
               options=("-i", "^took", "-i", "never"))
    yield same("--ignore sees where a line ends", *["5 took\nx 1\ntook 5"] * 2, "5 took\nx 1\ngave 5",
               options=("--ignore", "^[a-z]+ 5$"))
    yield differs("and where it begins", *["5 took 5\nx 1\n"] * 2, "5 gave 5\nx 1\n",
                  options=("--ignore", "^[a-z]+ 5$"))
    page = "x" * 4092 + " 1.5"
    yield differs("a number ends the file, and a page", *[page] * 2, page[:-1] + "6",
                  says=("1 number, 1 differs", "line 1, column 4094: 1.5, with libaccel 1.6"))
    yield same("a NaN is a NaN, 0 is -0", "nan -nan 0.0 inf\n", "nan -nan 0.0 inf\n", "NaN nan -0.0 Infinity\n")
    yield differs("a NaN is no number", "1.0\n", "1.0\n", "nan\n", options=("--rtol", "10"), says=("relative inf",))
    yield differs("an infinity is no number", "inf\n", "inf\n", "-inf\n")
    yield same("complex numbers by their moduli", "(1e10+2j) 3 + 4i\n", "(1e10+2j) 3 + 4i\n",
               "(1e10+3j) 3 + 4.00000001i\n")
    yield differs("a complex number", "(1+2j)\n", "(1+2j)\n", "(1-2j)\n",
                  says=("1+2j, with libaccel 1-2j", "absolute 4"))
    yield same("Fortran's exponents", "1.0D+00 0.125-100\n", "1.0D+00 0.125-100\n", "1.0E+00 1.25E-101\n")
    yield same("hexadecimal", "0x1.8p+1 0x10\n", "0x1.8p+1 0x10\n", "3.0 16\n")
    yield differs("integers that no double tells apart", *["12345678901234567\n"] * 2, "12345678901234568\n",
                  says=("absolute 1, ",))
    yield differs("integers of more than 64 bits", *["1234567890123456789012345\n"] * 2, "1234567890123456789012346\n")
    yield same("dates", *["on 2024-01-31 at 12:34:56 by v1.2.3\n"] * 3)
    yield differs("another date", *["on 2024-01-31\n"] * 2, "on 2024-01-30\n",
                  says=("column 12: 31, with libaccel 30",))
    yield differs("no end of line", "a\n", "a\n", "a", says=(r'line 1, column 2: "a\n", with libaccel "a"',))
    yield differs("a line's other end", "1\n", "1\n", "1\r\n", says=(r'"1\n", with libaccel "1\r\n"',))
    yield differs("far along a line", *["x" * 200 + " 1 end"] * 2, "x" * 200 + " 1 And",
            says=("line 1, column 204: \"" + "x" * 27 + " 1 end\", with",))
    yield damaged("a NUL", ("1\n", b"1\0\n"), ("stdout of the run with libaccel: line 1: there is a NUL",))
    yield differs("the first few differences", *["1\n" * 20] * 2, "2\n" * 20, options=("--show", "3"),
                  says=("line 3, column", "and 17 more"))


@pytest.mark.parametrize("case", text_cases())
def test_text(tmp_path, case):
    check(tmp_path, case)


def test_text_of_200000_lines(tmp_path):
    lines = "\n".join(f"row {i} {i * 1.1:.17g}" for i in range(200000))
    done = runs(tmp_path, lines, lines, lines.replace("row 199999 ", "row 199999 -"))
    expect(done, DIFFERS, "400000 numbers, 1 differs")


def unrepeatable_cases():
    """If runs without libaccel differ by more than rounding, nothing can be said of the run with it, even if that is
    the same."""
    def refused(label, first, second, third=None, says=(), **options):
        return case(FAILED, label, first, second, first if third is None else third,
                    says=("NOT REPEATABLE without libaccel; ", "nothing can be said", *says), **options)

    yield refused("a number in text", "t 1.0\nx 3.00000\n", "t 2.0\nx 3.00000\n", "t 4.0\nx 3.10000\n",
            says=("stdout (text): NOT REPEATABLE without libaccel; 2 numbers, 1 differs, 1 by more than rounding",
                  "line 1, column 3: 1.0, with other threads 2.0 (absolute 1, relative 0.5, "))
    yield refused("the run with libaccel is like the first", "1.5\n", "2.5\n")
    yield refused("the run with libaccel is like the second", "1.5\n", "2.5\n", "2.5\n")
    yield refused("an integer", "12 rounds\n", "13 rounds\n", says=("1: 12, with other threads 13 (absolute 1",))
    yield refused("a large integer", "1234567\n", "1234568\n")
    yield refused("a NaN", "nan\n", "1.0\n", says=("relative inf",))
    yield refused("NaNs allow for nothing", "nan\n", "1.0\n", options=("--rtol", "10", "--atol", "1e300"))
    yield refused("words, with numbers beside them", "at host-a 1.5\n", "at host-b 1.5\n", "at host-c 9.5\n",
            says=('line 1, column 9: "at host-a 1.5\\n", with other threads "at host-b 1.5\\n"',))
    yield refused("other lines", "a\n1.5\n", "1.75\n", "a\n1.75\n",
                  says=('line 2: "1.5\\n" is there with the usual threads alone',))
    yield refused("the last of three digits", "0.333\n", "0.334\n")
    yield refused("--show limits the differences that are printed", "1\n" * 20, "2\n" * 20, options=("--show", "3"),
                  says=("line 3, column", "and 17 more"))
    yield refused("JSON: a number", '{"x": [1.5]}', '{"x": [1.75]}', name="o.json",
                  says=("o.json (json): NOT", ".x[0]: 1.5, with other threads 1.75"))
    yield refused("JSON: a member", '{"x": 1}', '{"x": 1, "y": 2}', name="o.json",
                  says=(".y is there with other threads alone",))
    yield refused("npy: an element", *[saved(np.array(x)) for x in ([3.0, 0.84], [3.0, 0.39], [3.0, 5.0])],
                  name="o.npy",
            says=("o.npy (npy): NOT REPEATABLE without libaccel; 2 numbers, 1 differs, 1 by more than rounding",
                  "  [1]: 0.8"))
    yield refused("npy: a small element", *[saved(np.array(x)) for x in ([1e4, 0.84], [1e4, 0.39], [1e4, 5.0])],
                  name="o.npy", says=("  [1]: 0.8",))
    yield refused("npy: an integer", *[saved(np.array(x)) for x in ([3, 100000], [3, 100001])], name="o.npy")
    yield refused("npy: another shape", saved(np.ones(3)), saved(np.ones(4)), name="o.npy",
                  says=("f8 (3), with other threads f8 (4)",))
    head = "%%MatrixMarket matrix array real general\n2 1\n"
    yield refused("mtx: an element", f"{head}1.5\n2.5\n", f"{head}1.5\n2.75\n", name="o.mtx",
                  says=("(2, 1): 2.5, with other threads 2.75",))
    yield refused("bytes", b"a\0b", b"a\0c", name="o.bytes",
                  says=("byte 3 is the first that differs; 3 bytes, with other threads 3",))
    for kind, noise, wanted in (("f2", 0.01, SAME), ("f2", 0.05, FAILED), ("f4", 3e-4, SAME), ("f4", 1e-3, FAILED),
                                ("f8", 9e-5, SAME),
                                ("f8", 2e-4, FAILED), ("f16", 9e-5, SAME), ("f16", 2e-4, FAILED), ("c16", 9e-5, SAME),
                                ("c16", 2e-4, FAILED)):
        first, second = (saved(np.array([1, 1 + x, 1]).astype(kind)) for x in (0, noise))
        yield case(wanted, f"{kind}, {noise:g} of a number", first, second, first, name="o.npy")


@pytest.mark.parametrize("case", unrepeatable_cases())
def test_not_repeatable(tmp_path, case):
    check(tmp_path, case)


RANDOM = "import os, random; print(5.0 if 'accel' in os.environ.get('LD_PRELOAD', '') else random.random())"


@pytest.mark.parametrize("options, status, says", [
    pytest.param([], FAILED,
                 "stdout (text): NOT REPEATABLE without libaccel; 1 number, 1 differs, 1 by more than rounding\n"
                 "  line 1, column 1: 0.", id="it is refused"),
    pytest.param(["--ignore", "."], FAILED, "no compared output has a number", id="with --ignore no number is left"),
    pytest.param(["--atol", "5"], SAME, "", id="--atol allows it")])
def test_a_program_that_prints_random_numbers_and_5_with_libaccel(tmp_path, options, status, says):
    expect(diff(tmp_path, options, [PYTHON, "-c", RANDOM]), status, says)


def repeatable_cases():
    yield same("rounding in text", "1.0000\n", "1.00009\n", "1.0000\n")
    yield same("the last of four digits", "0.3333\n", "0.3334\n", "0.3333\n")
    yield differs("the last digit's unit is no noise floor", "0.3333\n", "0.3334\n", "0.3336\n")
    yield same("a rest of numbers that cancel", "residual 1.4e-16\n", "residual -2.2e-16\n", "residual 3.1e-16\n")
    yield same("--rtol allows it", "t 1.50\n", "t 1.52\n", "t 1.53\n", options=("--rtol", "0.1"))
    yield same("--atol allows it, integers", "12 rounds\n", "13 rounds\n", "12 rounds\n", options=("--atol", "1"))
    yield differs("rounding is repeatable, but --rtol 0 does not allow it",
                  *["1.0\n", "1.0000000001\n", "1.0000000001\n"], options=("--rtol", "0"))
    yield same("lines that are ignored", "took 5 s at host-a\nx 1\n", "took 6 s at host-b\nx 1\n", "took 7 s\nx 1\n",
               options=("-i", "^took"))


@pytest.mark.parametrize("case", repeatable_cases())
def test_repeatable(tmp_path, case):
    check(tmp_path, case)


def no_number_cases():
    """Outputs without any number."""
    for label, content, options in (("an empty output", "", {}), ("words", "fine\n", {}),
                                    ("no elements", saved(np.ones((0, 3))), {"name": "o.npy"})):
        yield case(FAILED, label, *[content] * 3, says=("no compared output has a number: ", "nothing can be said"),
                   **options)
        yield same(f"{label}, with --allow-no-numbers", *[content] * 3, options=("--allow-no-numbers",), **options)
    yield differs("texts differ", "fine\n", "fine\n", "bad\n", says=("1 difference of text",))


@pytest.mark.parametrize("case", no_number_cases())
def test_no_number(tmp_path, case):
    check(tmp_path, case)


@pytest.mark.parametrize("options, status, says", [
    pytest.param([], FAILED, "no compared output has a number", id="stdout is not compared"),
    pytest.param(["-o", "bytes:o.bin"], SAME, "o.bin (bytes): ok", id="files compared as bytes need none")])
def test_no_number_where_stdout_is_not_compared(tmp_path, options, status, says):
    expect(diff(tmp_path, ("--stdout", "none", *options), ["sh", "-c", "echo 5; printf 'a\\0b' > o.bin"]), status, says)


def csv_cases():
    table = "name,x,y\nfirst,1.5,-2\nsecond,,3.25e2\n"
    yield same("the same", table, table, table.replace("3.25e2", "325.0"), name="out.csv")
    yield differs("a cell", table, table, table.replace("-2", "-3"), name="out.csv",
                  says=("out.csv (csv): DIFFERS", "line 2, column 11: -2"))
    yield differs("an empty cell is not 0", table, table, table.replace(",,", ",0,"), name="out.csv",
                  says=('line 3, column 8: "second,,3',))
    yield differs("columns of tabs", "1\t\t2\n", "1\t\t2\n", "1\t2\n", name="out.csv")


@pytest.mark.parametrize("case", csv_cases())
def test_csv(tmp_path, case):
    check(tmp_path, case)


def json_cases():
    first = '{"a": [1, 2.5, {"b": null}], "s": "took 1.5 s", "t": true, "big": 12345678901234567, "x": NaN}'
    other = '{"x":NaN,"big":12345678901234567,\n "t":true,"s":"took 1.5 s","a":[1.0,2.50,\n{"b":null}]}\n'
    yield same("by structure", first, first, other, name="out.json")
    yield differs("a number", first, first, other.replace("2.50", "2.75"), name="out.json",
            says=("out.json (json): DIFFERS", ".a[1]: 2.5, with libaccel 2.75 (absolute 0.25"))
    yield differs("an integer", first, first, other.replace("567,", "568,"), name="out.json",
                  says=(".big: 12345678901234567, with", "absolute 1,"))
    yield differs("a member less", first, first, other.replace('"t":true,', ""), name="out.json",
                  says=(".t is there without libaccel alone",))
    yield differs("a member more", first, first, other.replace('"t"', '"u":1,"t"'), name="out.json",
                  says=(".u is there with libaccel alone",))
    yield differs("an element more", first, first, other.replace("[1.0", "[1.0,1"), name="out.json",
                  says=(".a: 3 elements, with libaccel 4",))
    yield differs("another type", first, first, other.replace("null", "0"), name="out.json",
                  says=(".a[2].b: null, with libaccel int",))
    yield differs("true or false", first, first, other.replace("true", "false"), name="out.json",
                  says=(".t: true, with libaccel false",))
    yield differs("a string", first, first, other.replace("took", "gave"), name="out.json",
                  says=('.s, column 1: "took',))
    yield differs("a number in a string", first, first, other.replace("1.5 s", "1.7 s"), name="out.json",
                  says=(".s, column 6: 1.5",))
    yield differs("NaN or not", first, first, other.replace("NaN", "1"), name="out.json",
                  says=(".x: nan, with libaccel 1",))
    yield same("--ignore takes paths", first, first, other.replace("2.50", "7"), name="out.json",
               options=("--ignore", r"^\.a\[1\]$"))
    yield same("noise", '{"x": 1.000001}', '{"x": 1.000002}', '{"x": 1.000005}', name="out.json")
    yield same("stdout", '{"x": 1, "y": 2}', '{"x": 1, "y": 2}', '{"y": 2, "x": 1}', options=("--stdout", "json"))
    yield same("a file that fills a page", first, first, other.ljust(4096), name="out.json")
    yield damaged("cut short", (first, first[:-9]), ("cut short", "out.json of the run with libaccel"), name="out.json")
    yield damaged("no comma", (first, '{"a": 1\n "b": 2}'), ("line 2: not JSON",), name="out.json")
    yield damaged("more behind it", (first, first + "\n]"), ("line 2: not JSON",), name="out.json")
    # json-c makes 2^64 - 1 of the first, and refuses it since 0.18.
    long = first.replace("12345678901234567", "123456789012345678901")
    yield same("an integer of more than 64 bits", long, long, long.replace("2.5", "2.50"), name="out.json")
    yield differs("its last digit", long, long, long.replace("8901,", "8902,"), name="out.json",
                  says=(".big: 123456789012345678901, with libaccel 123456789012345678902",))
    yield differs("its sign", long, long, long.replace('"big": ', '"big": -'), name="out.json",
                  says=(".big: 123456789012345678901, with libaccel -123456789012345678901",))
    yield differs("a long integer and a short one", long, long, first, name="out.json",
                  says=(".big: 123456789012345678901, with libaccel 12345678901234567",))
    yield differs("a long integer and none", long, long, long.replace("123456789012345678901", "null"), name="out.json",
                  says=(".big: int, with libaccel null",))
    yield same("a long integer alone", "9" * 400, "9" * 400, "9" * 400 + "\n", options=("--stdout", "json"))
    for digits in (400, 5000):
        yield differs(f"{digits} digits", "9" * digits, "9" * digits, "9" * (digits - 1) + "8",
                      options=("--stdout", "json"), says=(".: 9999999999",))
    yield same("2^63 and 2^64", "[9223372036854775807,-9223372036854775808,18446744073709551615]",
               "[9223372036854775807, -9223372036854775808, 18446744073709551615]",
               "[ 9223372036854775807,-9223372036854775808,18446744073709551615]", options=("--stdout", "json"))
    yield differs("digits in a string", '{"s": "\\"123456789012345678901"}', '{"s": "\\"123456789012345678901"}',
                  '{"s": "\\"123456789012345678902"}', name="out.json",
                  says=(".s, column 2: 123456789012345678901, with libaccel 123456789012345678902",))
    # json-c 0.18 refuses control characters and, where char has a sign, all that is not ASCII.
    strange = '{"größe": "\x1b[1m 1.5\t\\"µ\\\\", "\\u00e9": [12345678901234567890, "ü"], "x": "ß"}'
    yield same("strings of any characters", strange, strange, strange.replace("1.5", "1.50"), name="out.json")
    yield differs("another character", strange, strange, strange.replace("ß", "ẞ"), name="out.json",
                  says=(".x, column 1: \"ß",))
    yield damaged("no colon behind such a string", (strange, strange.replace(':', "", 1)), ("line 1: not JSON",),
                  name="out.json")
    yield damaged("cut short in such a string", (strange, strange[:6]), ("cut short",), name="out.json")
    yield damaged("a NUL", (first, first + "\n\0[1]"), ("line 2: not JSON: there is a NUL",), name="out.json")
    yield damaged("a comma behind a long integer lacks", (long, long.replace("8901,", "8901\n")), ("line 2: not JSON",),
                  name="out.json")
    yield damaged("cut short in a long integer", (long, long[:long.index("8901,")]), ("cut short",), name="out.json")
    yield damaged("nothing", (first, ""), ("cut short",), name="out.json")


@pytest.mark.parametrize("case", json_cases())
def test_json(tmp_path, case):
    check(tmp_path, case)


def npy_cases():
    numbers = np.random.default_rng(1)
    for kind in "f2 f4 f8 f16 c8 c16 c32 i1 i2 i4 i8 u1 u2 u4 u8 ?".split():
        array = (numbers.random((3, 4, 2)) * 100).astype(kind)
        if array.dtype.kind == "c":
            array += (numbers.random((3, 4, 2)) * 100j).astype(kind)
        other = array.copy()
        other[1, 3, 0] = not array[1, 3, 0] if kind == "?" else array[1, 3, 0] + array.dtype.type(7)
        first = saved(array)
        yield differs(f"{kind}, an element", first, first, saved(other), name="out.npy",
                says=("out.npy (npy): DIFFERS; 24 numbers, 1 differs, 1 by more", "  [1, 3, 0]: "))
        orders = [saved(np.asfortranarray(array)), saved(array.astype(array.dtype.newbyteorder(">"))),
                  saved(array, (2, 0)), saved(array, (3, 0))]
        for label, content in zip(("Fortran's order", "the other byte order", "version 2", "version 3"), orders):
            yield same(f"{kind}, {label}", first, first, content, name="out.npy")
        yield differs(f"{kind}, an element in Fortran's order", first, orders[0], saved(np.asfortranarray(other)),
                      name="out.npy",
                says=("  [1, 3, 0]: ",))

    def nearly(kind, factor):
        """A number off by this many units in the last place."""
        array = np.ones(3, kind)
        other = array.copy()
        other[1] += factor * np.finfo(kind).eps
        return saved(array), saved(array), saved(other)

    for kind in ("f2", "f4", "f8", "f16"):
        yield differs(f"{kind}, ULP are the type's", *nearly(kind, 3), name="o.npy", options=("--ulp", "2"),
                      says=("3 ULP)",))
        yield same(f"{kind}, 3 of 3 ULP", *nearly(kind, 3), name="o.npy", options=("--ulp", "3"))
        yield same(f"{kind}, rounding passes", *nearly(kind, 3), name="o.npy")
    yield same("-0, NaN", *[saved(np.array(x)) for x in ([0.0, np.nan], [0.0, np.nan], [-0.0, -np.nan])], name="o.npy")
    yield differs("a NaN", *[saved(np.array(x)) for x in ([0.0, 1.0], [0.0, 1.0], [0.0, np.nan])], name="o.npy",
                  says=("[1]: 1, with libaccel nan",))
    matrix = np.array([[1.0, 1e-17], [0, 5.0]])
    other = np.array([[1.0, -3e-17], [0, 5.0]])
    yield same("a rest of numbers that cancel", saved(matrix), saved(matrix), saved(other), name="o.npy")
    yield differs("--rtol alone does not allow it", saved(matrix), saved(matrix), saved(other), name="o.npy",
                  options=("--rtol", "1e-9"))
    yield same("--atol allows it", saved(matrix), saved(matrix), saved(other), name="o.npy",
               options=("--rtol", "1e-9", "--atol", "1e-16"))
    yield same("no elements", *[saved(np.ones((0, 3)))] * 3, name="o.npy", options=("--allow-no-numbers",))
    yield same("no dimensions", *[saved(np.float64(3.5))] * 3, name="o.npy")
    yield differs("another shape", *[saved(np.ones((2, 3)))] * 2, saved(np.ones((3, 2))), name="o.npy",
            says=("f8 (2, 3), with libaccel f8 (3, 2)",))
    yield differs("another type", *[saved(np.ones(3))] * 2, saved(np.ones(3, "f4")), name="o.npy",
                  says=("f8 (3), with libaccel f4 (3)",))
    page = saved(np.arange(496.0))
    assert len(page) == 4096
    yield same("a file that fills a page", page, page, page, name="o.npy")
    good = saved(np.ones(3))
    for label, content, says in (
            ("cut short", good[:-1], "23 bytes of data, where 3 elements need 24"),
            ("too long", good + b"x", "25 bytes of data"),
            ("cut within the header", good[:40], "cut short within its header"),
            ("cut within its first bytes", good[:8], "not a .npy file"),
            ("empty", b"", "not a .npy file"),
            ("of a version to come", good[:6] + b"\x09" + good[7:], "version 9 of .npy; allowed: 1, 2, 3"),
            ("another header", good.replace(b"descr", b"drecs"), "header is damaged"),
            ("no shape", good.replace(b"'shape': (3,), ", b"               "), "header is damaged"),
            ("of too large a shape", good.replace(b"(3,), }        ", b"(9999999999,9999999999,9)}"[:15]),
             "header is damaged"),
            ("an archive", b"PK\x03\x04" + good, ".npz"),
            ("of strings", saved(np.array(["a", "b"])), "elements of type <U1; allowed"),
            ("of fields", saved(np.zeros(2, [("a", "f8")])), "elements of type [...]"),
            ("of dates", saved(np.array(["2024-01-01"], "M8[D]")), "elements of type <M8[D]")):
        yield damaged(f"{label}", (good, content), ("o.npy of the run with libaccel: ", says), name="o.npy")


@pytest.mark.parametrize("case", npy_cases())
def test_npy(tmp_path, case):
    check(tmp_path, case)


def market(matrix, **options):
    file = io.BytesIO()
    scipy.io.mmwrite(file, matrix, **options)
    return file.getvalue()


def mtx_cases():
    head = "%%MatrixMarket matrix "
    real = head + "coordinate real general\n% a comment\n\n3 3 3\n1 1 1.5\n2 3 -2.5e-3\n3 1 4\n"
    mixed = head + "COORDINATE Real General\n3 3 4\n3 1 4.0\n2 3 -0.0025\n1 1 1.5D0\n2 2 0.0\n"
    yield same("entries in any order, stored zeros", real, real, mixed, name="out.mtx")
    yield differs("an entry", real, real, mixed.replace("4.0", "4.5"), name="out.mtx",
            says=("out.mtx (mtx): DIFFERS; 4 numbers", "(3, 1): 4, with libaccel 4.5 (absolute 0.5"))
    yield differs("an entry less", real, real, head + "coordinate real general\n3 3 2\n1 1 1.5\n3 1 4\n",
                  name="out.mtx",
            says=("(2, 3): -0.0025", "with libaccel 0 "))
    yield differs("an entry more", real, real, mixed.replace("2 2 0.0", "2 2 1.0"), name="out.mtx",
                  says=("(2, 2): 0, with libaccel 1 ",))
    yield differs("another size", real, real, real.replace("3 3 3", "3 4 3"), name="out.mtx",
                  says=("3 x 3, with libaccel 3 x 4",))
    yield same("entries of one place are added up", real, real, real.replace("3 3 3", "3 3 4") + "3 1 0\n",
               name="out.mtx")
    # The same matrices, stored in full, as a triangle, and in an array.
    numbers = np.random.default_rng(2)
    a = numbers.random((4, 4)) + 1j * numbers.random((4, 4))
    for label, matrix in (("symmetric", a.real + a.real.T), ("skew-symmetric", a.real - a.real.T),
                          ("hermitian", a + a.conj().T),
                          ("symmetric", a + a.T)):
        sparse = scipy.sparse.coo_matrix(matrix)
        forms = [market(sparse, symmetry=label), market(sparse, symmetry="general"), market(matrix, symmetry=label),
                 market(matrix, symmetry="general")]
        kind = f"{matrix.dtype}, {label}"
        assert label.encode() in forms[0] and b"array" in forms[2], "as SciPy writes it"
        for form in forms:
            yield same(f"{kind}: {form.split(b'matrix ')[1].splitlines()[0].decode()}", forms[0], forms[1], form,
                       name="out.mtx")
        matrix[2, 1] += 0.5
        yield differs(f"{kind}: an element", forms[0], forms[1], market(matrix, symmetry="general"), name="out.mtx",
                      says=("1 by more than allowed", "(3, 2): "))
    yield same("by its first line", real, real, mixed, name="out.dat")
    pattern = head + "coordinate pattern general\n2 2 2\n1 1\n2 2\n"
    yield same("pattern", pattern, pattern, head + "coordinate integer general\n2 2 2\n2 2 1\n1 1 1\n", name="out.mtx")
    yield differs("another pattern", pattern, pattern, head + "coordinate pattern general\n2 2 2\n1 1\n2 1\n",
                  name="out.mtx")
    whole = head + "array integer general\n2 1\n9007199254740993\n-1\n"
    yield same("integers", whole, whole, whole, name="out.mtx")
    yield differs("an integer", whole, whole, whole.replace("93\n", "92\n"), name="out.mtx",
                  says=("(1, 1): 9007199254740993, with", "absolute 1,"))
    for label, content, says in (
            ("no banner", real[2:], "not a Matrix Market file"),
            ("another kind", real.replace(" real", " quaternion"), "line 1: coordinate quaternion general; allowed"),
            ("an array of a pattern", head + "array pattern general\n1 1\n1\n",
             "line 1: array pattern general; allowed"),
            ("cut short", real[:-2], "cut short: a number is missing"),
            ("an entry less than said", real.replace("3 1 4\n", ""), "cut short: a row within the matrix is missing"),
            ("an entry more than said", real + "1 2 3\n", "there is more than the size line says"),
            ("out of the matrix", real.replace("2 3 -", "2 4 -"), "line 6: a column within the matrix is expected"),
            ("row 0", real.replace("2 3 -", "0 3 -"), "line 6: a row within the matrix is expected"),
            ("no number", real.replace("1.5", "1.5x"), "line 5: a number is expected"),
            ("a real among integers", whole.replace("-1", "-1.5"), "line 4: an integer is expected"),
            ("a long word", real.replace("1.5", "1" * 5000), "line 5: a number is expected"),
            ("of a size that cannot be", real.replace("3 3 3", "3 -3 3"), "line 4: the number of columns"),
            ("symmetric, not square", head + "array real symmetric\n2 1\n1\n1\n", "allowed with a symmetry")):
        yield damaged(f"{label}", (real, content), ("out.mtx of the run with libaccel: ", says), name="out.mtx")


@pytest.mark.parametrize("case", mtx_cases())
def test_matrix_market(tmp_path, case):
    check(tmp_path, case)


# ---- Files ----


def listing(folder):
    return sorted(name for name in os.listdir(folder) if not name.startswith("in.") and name != "tmp")


def test_a_file_that_no_run_writes(tmp_path):
    expect(runs(tmp_path, b"a\0b", b"a\0b", b"a\0c", name="x.bin", options=("--output", "bytes:y.bin")), FAILED,
           "y.bin")


def test_another_length(tmp_path):
    done = diff(tmp_path, ("--output", "bytes:out.txt"),
                ["sh", "-c", WHICH + "printf 'a\\0b' > out.txt; [ $r != 3 ] || printf c >> out.txt"])
    expect(done, DIFFERS, "out.txt (bytes): DIFFERS", "byte 4 is the first that differs; 3 bytes, with libaccel 4")


def test_what_the_last_run_writes_stays_and_nothing_else(tmp_path):
    out = tmp_path / "out.txt"
    expect(runs(tmp_path, "1\n", "1\n", "1.0\n", name="out.txt"), SAME)
    assert out.read_text() == "1.0\n"
    assert listing(tmp_path) == ["out.txt"]
    done = expect(runs(tmp_path, "1\n", "1\n", "1.0\n", name="out.txt"), SAME)
    assert listing(tmp_path) == ["out.txt"], "an equal file may be there before"
    assert not done.stderr


def test_former_files_are_kept_and_named(tmp_path):
    out = tmp_path / "out.txt"
    out.write_text("precious\n")
    expect(runs(tmp_path, "1\n", "1\n", "2\n", name="out.txt"), DIFFERS, "the former out.txt is kept as", "out.txt.~1~")
    assert out.read_text() == "2\n"
    assert (tmp_path / "out.txt.~1~").read_text() == "precious\n"
    assert len(listing(tmp_path)) == 2
    runs(tmp_path, "1\n", "1\n", "3\n", name="out.txt")
    assert out.read_text() == "3\n"
    assert (tmp_path / "out.txt.~2~").read_text() == "2\n"
    assert (tmp_path / "out.txt.~1~").read_text() == "precious\n"


def test_a_file_that_is_not_written_with_libaccel(tmp_path):
    (tmp_path / "out.txt").write_text("precious\n")
    expect(runs(tmp_path, "1\n", "1\n", None, name="out.txt"), DIFFERS, "out.txt: DIFFERS: not written with libaccel")
    assert (tmp_path / "out.txt").read_text() == "precious\n", "the former file is put back"
    assert listing(tmp_path) == ["out.txt"]


def test_a_file_that_is_not_written_by_the_second_run(tmp_path):
    expect(runs(tmp_path, "1\n", None, "1\n", name="out.txt"), FAILED,
           "out.txt of the run with another number of threads: not written")


def test_a_file_that_is_never_written(tmp_path):
    done = diff(tmp_path, ("--output", "nothing.txt"), ["true"])
    expect(done, FAILED, "nothing.txt of the run without libaccel: not written")


def test_a_program_that_appends_finds_no_former_file(tmp_path):
    (tmp_path / "out.txt").write_text("precious\n")
    expect(diff(tmp_path, ("--output", "out.txt"), ["sh", "-c", "echo 5 >> out.txt"]), SAME, "1 number,")


def test_after_a_failure_the_former_file_is_put_back(tmp_path):
    (tmp_path / "out.txt").write_text("5\n")
    done = diff(tmp_path, ("--output", "out.txt"), ["sh", "-c", "echo 6 > out.txt; exit 4"])
    expect(done, FAILED, "sh: the run without libaccel ends with status 4; allowed: 0")
    assert (tmp_path / "out.txt").read_text() == "5\n"


def test_a_folder_that_the_program_makes(tmp_path):
    done = diff(tmp_path, ("--output", "new/a.txt", "-o", f"{tmp_path}/new/b.txt"),
                ["sh", "-c", "mkdir -p new; echo 1 > new/a.txt; echo 2 > new/b.txt"])
    expect(done, SAME, "new/a.txt (text): ok", "b.txt (text): ok")
    assert sorted(os.listdir(tmp_path / "new")) == ["a.txt", "b.txt"], "it has nothing else"


@pytest.mark.parametrize("name, says", [("pipe", "not a regular file; allowed"), ("a/", "not the name of a file"),
                                        ("x" * 300, "File name too long"), ("/proc/none", "not written")],
                         ids=lambda value: value[:20])
def test_what_cannot_be_an_output(tmp_path, name, says):
    (tmp_path / "pipe").mkdir()
    expect(diff(tmp_path, ("--output", name), ["true"]), FAILED, says)


@pytest.mark.parametrize("name", ["jsno:x", "out:1.txt"])
def test_no_format(tmp_path, name):
    done = diff(tmp_path, ("--output", name), ["touch", "started"])
    kind = name.split(":")[0]
    expect(done, FAILED, f"accel diff: --output {name}: {kind} is no format; allowed: text, csv,", f"is ./{name}\n")
    assert not (tmp_path / "started").exists(), "nothing has run"
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("option", ["./jsno:x", "FOLDER/jsno:x", "text:jsno:x"])
def test_a_colon_in_the_name(tmp_path, option):
    done = diff(tmp_path, ("--output", option.replace("FOLDER", str(tmp_path))), ["sh", "-c", "echo 7 > jsno:x"])
    expect(done, SAME, "jsno:x (text): ok")


def test_one_file_twice(tmp_path):
    (tmp_path / "new").mkdir()
    (tmp_path / "new/a.txt").touch()
    expect(diff(tmp_path, ("-o", "new/a.txt", "-o", "./new/../new/a.txt"), ["true"]), FAILED, "named twice")
    assert (tmp_path / "new/a.txt").exists(), "it is still there"


def test_keep_keeps_all_that_the_runs_have_written(tmp_path):
    expect(diff(tmp_path, ("--keep", "kept", "--output", "out.txt", "--atol", "2"),
                ["sh", "-c", WHICH + "echo $r; echo 1.$r > out.txt"]), SAME)
    for i, run in enumerate(("1-without", "2-threads", "3-with"), 1):
        assert (tmp_path / "kept" / run / "stdout").read_text() == f"{i}\n"
        assert (tmp_path / "kept" / run / "out.txt").read_text() == f"1.{i}\n"


def test_keep_of_two_of_one_name(tmp_path):
    (tmp_path / "new").mkdir()
    (tmp_path / "new/a.txt").touch()
    done = diff(tmp_path, ("--keep", "kept", "-o", "new/a.txt", "-o", "a.txt"), ["true"])
    expect(done, FAILED, "two files would be a.txt; allowed: each name once")


def test_keep_in_no_folder(tmp_path):
    expect(diff(tmp_path, ("--keep", "/proc/none"), ["true"]), FAILED, "--keep: /proc/none: ")


# ---- Programs ----


@pytest.mark.parametrize("end, status, says", [
    pytest.param("[ $r -lt 3 ] || exit 5", DIFFERS, "exit status: DIFFERS: 0, with libaccel 5",
                 id="it fails with libaccel alone"),
    pytest.param("[ $r -lt 3 ] || kill -SEGV $$", DIFFERS, "with libaccel 139",
                 id="a signal ends it with libaccel alone"),
    pytest.param("[ $r -ne 2 ] || exit 6", FAILED, "the run with another number of threads ends with status 6",
                 id="it fails with another number of threads alone")])
def test_a_program_that_fails(tmp_path, end, status, says):
    expect(diff(tmp_path, (), ["sh", "-c", WHICH + end]), status, says)


def test_no_such_program(tmp_path):
    expect(diff(tmp_path, (), ["/no/such/program"]), FAILED, "/no/such/program: No such file", "status 127")


def test_each_run_gets_the_same_stdin(tmp_path):
    done = diff(tmp_path, (), ["sh", "-c", "cat; cat"], stdin="1 2\n" + "3.5\n" * 50000)
    expect(done, SAME, "stdout (text): ok; 50002 numbers, 0 differ")


def test_settings_are_for_the_run_with_libaccel_alone(tmp_path):
    show = "echo ${ACCEL_POLICY-none} ${ACCEL-none} ${ACCEL_LOG-none} ${ACCEL_START-none} $OPENBLAS_NUM_THREADS " \
           "$LD_PRELOAD >&2"
    env = {"ACCEL_POLICY": "cpu", "ACCEL": "1", "ACCEL_LOG": "2", "LD_PRELOAD": f"{BUILD}/libaccel.so"}
    done = diff(tmp_path, (), ["sh", "-c", show], env=env)
    assert [line for line in done.stderr.splitlines() if "none" in line or "cpu" in line] == [
        "none none none none 2", "none none none none 1",
        f"cpu 1 json wait 2 {BUILD}/accel-preload/$PLATFORM/libaccel.so"]


@pytest.mark.parametrize("options, env, threads", [([], {}, "1"), ([], {"OPENBLAS_NUM_THREADS": "1"}, "2"),
                                                   (["--threads", "7"], {}, "7")],
                         ids=["1 where there are 2", "2 where there is 1", "--threads"])
def test_the_threads_of_the_second_run(tmp_path, options, env, threads):
    done = diff(tmp_path, options, ["sh", "-c", "echo $OMP_NUM_THREADS $MKL_NUM_THREADS $BLIS_NUM_THREADS >&2"],
                env=env)
    assert f"{threads} {threads} {threads}" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_signal_ends_the_program_and_accel_by_it(tmp_path, number):
    (tmp_path / "out.txt").write_text("precious\n")
    script = "echo 1 > out.txt; echo begun >&2; exec sleep 500"
    # A shell's background process ignores SIGINT, and so would accel.
    process = subprocess.Popen([TOOL, "diff", "--output", "out.txt", "--", "sh", "-c", script], cwd=tmp_path,
                               env=environment(tmp_path),
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
    process.stderr.readline()
    started = time.monotonic()
    process.send_signal(number)
    process.communicate(timeout=300)
    assert process.returncode == -number
    assert time.monotonic() - started < 200
    assert sorted({*os.listdir(tmp_path), *os.listdir(tmp_path / "tmp")}) == ["out.txt", "tmp"], "all is as before"
    assert (tmp_path / "out.txt").read_text() == "precious\n"


def test_a_signal_during_the_comparison(tmp_path):
    """As soon as the third run has ended: the report goes on, in a file too, and accel ends by it."""
    script = WHICH + "seq 1 2000000\nif [ $r = 3 ]; then (while kill -0 $$; do sleep 0.01; done; sleep 0.05; kill " \
                     "-TERM $PPID) >/dev/null 2>&1 & fi"
    with open(tmp_path / "report", "w") as report:
        done = subprocess.run([TOOL, "diff", "--", "sh", "-c", script], cwd=tmp_path, env=environment(tmp_path),
                              stdin=subprocess.DEVNULL,
                              stdout=report, stderr=subprocess.PIPE, text=True, timeout=300)
    told = (tmp_path / "report").read_text()
    assert done.returncode == -signal.SIGTERM, done.stderr
    assert "2000000 numbers, 0 differ" in told
    assert told.endswith("accel diff: the same, within what is allowed\n")


@pytest.mark.parametrize("options, says", [
    (("--rtol", "x"), "--rtol x: allowed: a number, 0 or more"), (("--atol", "-1"), "--atol -1: allowed"),
    (("--ulp", "nan"), "--ulp nan: allowed"), (("--noise", ""), "--noise : allowed"),
    (("--threads", "0"), "--threads 0: allowed: 1 to"),
    (("--show", "1x"), "--show 1x: allowed: 0 to"), (("--stdout", "xml"), "--stdout xml: allowed: text, csv, json"),
    (("--ignore", "(a"), "--ignore (a: "), (("--shim", "/none"), "/none is not there"),
    (("--expect", "*gemm* at gpu >= 1"), "at is neither on nor why; allowed: 'SYMBOL on gpu|cpu OP N'"),
    (("--expect", "*gemm* on gup >= 1"), "gup is neither gpu nor cpu"),
    (("--expect", "*gemm* on gpu => 1"), "=> is no relation"),
    (("--expect", "*gemm* on gpu >= -1"), "-1 is no count"), (("--expect", "*gemm* on gpu >= 1.5"), "1.5 is no count"),
    (("--expect", "*gemm* on gpu"), "not five words"), (("--expect", "*gemm* on gpu >= 1 or"), "more than five words"),
    (("--expect", "*gem_ on gpu == 0"), "*gem_ names nothing that libaccel intercepts"),
    (("--expect", "svm_predictor on gpu == 0"), "svm_predictor names nothing that libaccel intercepts"),
    (("--expect", "*gemm* why slow == 0"), "slow is no reason; allowed: faster forced"),
    (("--nothing",), "unrecognized option")],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else value[:30])
def test_refused(tmp_path, options, says):
    expect(diff(tmp_path, options, ["true"]), FAILED, says)


def test_no_program_is_given(tmp_path):
    done = subprocess.run([TOOL, "diff"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=environment(tmp_path))
    expect(done, FAILED, "no program is given")


def test_no_folder_for_the_runs(tmp_path):
    expect(diff(tmp_path, (), ["true"], env={"TMPDIR": "/no/such/folder"}), FAILED, "no folder can be made")


def test_a_report_that_cannot_be_written(tmp_path):
    with open("/dev/full", "w") as full:
        done = subprocess.run([TOOL, "diff", "--", "true"], stdout=full, stderr=subprocess.PIPE, text=True,
                              env=environment(tmp_path),
                              stdin=subprocess.DEVNULL)
    assert done.returncode == FAILED
    assert done.stderr.endswith("accel diff: the report cannot be written: No space left on device\n")


# ---- NumPy ----

NUMPY = """
import os, sys, numpy as np
a = np.random.default_rng(1).random((200, 200))
b = np.linalg.solve(a + 200 * np.eye(200), a @ a)
np.save("result.npy", b)
print("elapsed %.6f s" % (os.getpid() * 1e-3))
print("sum %.15e" % b.sum())
"""
PRODUCTS = [PYTHON, "-c", NUMPY]
OUTPUTS = ("--output", "result.npy", "--ignore", "^elapsed")
MET = [word for text in ("*gemm* on gpu >= 1", "*gesv* on gpu == 1", "* why error == 0", "* on cpu < 1",
                         "*gemm* why forced > 0",
                         "*gemm* on gpu != 0", "*trsm* on gpu <= 0", "svm_predict on gpu == 0")
       for word in ("--expect", text)]


def test_numpy_on_the_test_gpu_is_the_same(tmp_path):
    expect(diff(tmp_path, (*OUTPUTS, *MET), PRODUCTS, env=GPU), SAME, "result.npy (npy): ok; 40000 numbers",
           "stdout (text): ok",
           "expect *gemm* on gpu >= 1: ok; 1", "decisions         2 on the GPU, 0 on the CPU (forced 2)")
    assert np.load(tmp_path / "result.npy").shape == (200, 200), "its file is there"


@pytest.mark.parametrize("options, extra, status, says", [
    pytest.param(["--rtol", "0"], {}, DIFFERS, ["allowed       relative 0\n"], id="not bit for bit"),
    pytest.param([], {"TESTGPU_WRONG": "1"}, DIFFERS, ["result.npy (npy): DIFFERS"], id="a planted fault"),
    *(pytest.param([*MET, "--expect", wrong], {}, DIFFERS, [f"expect {wrong}: NOT MET; ",
                                                            "expect *gemm* on gpu >= 1: ok; 1"], id=f"expect {wrong}")
      for wrong in ("*gemm* on gpu == 0", "*gemm* on cpu >= 1", "*gesv* why unsupported > 0", "*gemm* on gpu > 1")),
    pytest.param(["--expect", "*gemm* on cpu == 1", "--expect", "*gemm* why error == 1", "--expect",
                  "*gemm* on gpu == 0"],
                 {"TESTGPU_FAIL": "cublasDgemm_v2:1"}, SAME, ["is left to the CPU from here on"],
                 id="a GPU that fails"),
    pytest.param(MET, {"ACCEL_LOG_MIN_MS": "100000"}, SAME, ["decisions         2 on the GPU, 0 on the CPU"],
                 id="calls below ACCEL_LOG_MIN_MS count"),
    pytest.param(MET, {"ACCEL_SUMMARY": "1"}, SAME, [], id="a summary in the log does not count")])
def test_numpy_on_the_test_gpu(tmp_path, options, extra, status, says):
    expect(diff(tmp_path, (*OUTPUTS, *options), PRODUCTS, env={**GPU, **extra}), status, *says)


def test_numpy_without_a_gpu_is_the_same_bit_for_bit(tmp_path):
    done = diff(tmp_path, (*OUTPUTS, "--expect", "* on cpu == 2"), PRODUCTS, env={"CUDA_VISIBLE_DEVICES": "-1"})
    expect(done, SAME, "40000 numbers, 0 differ, 0 by more", "nothing ran on the GPU")


def test_calls_inside_others_are_counted_apart_and_count_for_an_expectation(tmp_path):
    done = diff(tmp_path, ("--allow-no-numbers", "--expect", "dtrsm_ on cpu >= 2"), [str(TESTS / "nested"), "nothing"],
                env={**REFERENCE, "CUDA_VISIBLE_DEVICES": "-1"})
    expect(done, SAME)
    counts = re.search(r"  decisions +(\d+) on the GPU, (\d+) on the CPU \([^)]*\); inside these (\d+) more on the "
                       r"GPU, (\d+) on the CPU\n",
                       done.stdout + "\n").groups()
    assert counts[:3] == ("0", "3", "0")
    assert int(counts[3]) > 5


def test_the_calls_of_all_processes_count(tmp_path):
    twice = f"import os, sys\nif os.fork() == 0:\n  os.execv('{PYTHON}', ['{PYTHON}', '-c', " \
            f"{NUMPY!r}])\nos.wait()\n" + NUMPY
    expect(diff(tmp_path, (*OUTPUTS, "--expect", "*gemm* on gpu == 2"), [PYTHON, "-c", twice], env=GPU), SAME)


# ---- Octave's own text: matrices, complex numbers, what cancels ----

OCTAVE = ["octave-cli", "--norc", "-q", "--eval",
          "A = reshape(mod((1:10000) * 7919, 1009), 100, 100) / 1009 + 50 * eye(100);"
          "x = A \\ ones(100, 1); x(1:4)', disp(sum(x)), A(1:3, 1:3) * (1 + 2i), [norm(A * inv(A)), log(-1)]"]


def test_octave_on_the_test_gpu_is_the_same(tmp_path):
    done = diff(tmp_path, ("--expect", "*getrf* on gpu >= 1", "--expect", "*gemm* on gpu >= 1"), OCTAVE, env=GPU)
    expect(done, SAME, "stdout (text): ok; 16 numbers")


def test_a_planted_fault_in_octave(tmp_path):
    expect(diff(tmp_path, (), OCTAVE, env={**GPU, "TESTGPU_WRONG": "1+"}), DIFFERS, "stdout (text): DIFFERS")


# ---- scripts/diff-programs: a list of programs ----

SCRIPT = str(ROOT / "scripts/diff-programs")
GOOD = "# programs\n\none: -- echo '1  2'\ntwo: --output x -- sh -c 'echo 1 > x; echo \"two:\"'\n"
DIFFERING = "three: -- sh -c 'case $LD_PRELOAD in *accel*) echo 1 ;; *) echo 2 ;; esac'\n"


def run_list(folder, lines):
    Path(folder, "list").write_text(lines)
    return subprocess.run([SCRIPT, "list"], cwd=folder, env={**environment(folder),
                                                             "BUILD": os.path.relpath(BUILD, ROOT)}, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)


def test_a_list_of_programs(tmp_path):
    done = run_list(tmp_path, GOOD)
    assert done.returncode == SAME, done.stderr
    assert done.stdout == "ok 1 - one\nok 2 - two\n1..2\n"


@pytest.mark.parametrize("lines, status, says", [
    pytest.param(GOOD + DIFFERING + "four: -- echo 4", DIFFERS,
                 ["not ok 3 - three\n# accel diff: sh -c", "#   line 1, column 1: 2, ", "ok 4 - four", "1..4"],
                 id="one differs"),
    pytest.param("zero: -- false\n" + DIFFERING, FAILED, ["not ok 1 - zero", "not ok 2 - three"], id="one fails"),
    pytest.param("echo\n", FAILED, ["diff-programs: echo: allowed: NAME: "], id="a line that is none")])
def test_a_list_of_programs_of_which(tmp_path, lines, status, says):
    expect(run_list(tmp_path, lines), status, *says)


def test_no_list(tmp_path):
    done = subprocess.run([SCRIPT, "none"], cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    expect(done, FAILED, "usage: ")


# ---- docs/ci.md: its files, as they are written there ----


def ci_files():
    return [yaml.safe_load(file) for file in re.findall(r"(?ms)^```yaml\n(.*?)^```", (ROOT / "docs/ci.md").read_text())]


def github():
    """The job of docs/ci.md, what its step gives the action, and the action."""
    job = ci_files()[0]["jobs"]["same-results"]
    given = next(step["with"] for step in job["steps"] if "libaccel" in step.get("uses", ""))
    return job, given, yaml.safe_load((ROOT / "action.yml").read_text())


def example(name):
    """The script of GitHub's or GitLab's, its environment, and the name of its report."""
    if name == "GitLab":
        job = ci_files()[1]["same-results"]
        return "\n".join(job["script"]), job["variables"], job["artifacts"]["reports"]["junit"]
    job, given, action = github()
    step = action["runs"]["steps"][-1]
    inputs = {name: given[value.split()[1].split(".")[1]] for name, value in step["env"].items()}
    return step["run"], {**job["env"], **inputs}, given["junit"]


def test_github_s_inputs_are_those_of_action_yml():
    _, given, action = github()
    assert given.keys() <= action["inputs"].keys()


@pytest.mark.parametrize("fault, status", [({}, SAME), ({"TESTGPU_WRONG": "1"}, DIFFERS)],
                         ids=["the same", "a planted fault"])
@pytest.mark.parametrize("name", ["GitHub", "GitLab"])
def test_files_of_ci(tmp_path, name, fault, status):
    script, env, report = example(name)
    assert env.get("ACCEL_POLICY") == "gpu"
    (tmp_path / "simulate.py").write_text(NUMPY if name == "GitHub" else NUMPY.replace("print(\"elapsed", "(\"elapsed"))
    done = subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120,
                          env={**environment(tmp_path, {**TEST_GPU, **env, **fault}), "PATH": f"{BUILD}:/usr/bin:/bin"})
    expect(done, status, "result.npy (npy)")
    assert (tmp_path / report).stat().st_size > 500, "the report"
    assert name != "GitHub" or (tmp_path / "accel-diff/3-with/decisions.json").exists(), "the decisions are kept"
