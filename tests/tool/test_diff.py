#!/usr/bin/python3 -B
"""accel diff: finds all differences between the runs, in each format, and no others; loses no file; checks expectations of the decisions."""

import io
import os
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse
import yaml

from lib.programs import BUILD, REFERENCE, ROOT, TESTS, clean_env
from lib.tap import Tap

TOOL = str(BUILD / "accel")
PYTHON = "/usr/bin/python3"
TEST_GPU = {"ACCEL_CUDA_DIR": str(BUILD / "testgpu"), "LD_LIBRARY_PATH": str(BUILD / "testgpu"), "TESTGPU_DELAY_US": "0"}
# Sets r to the number of the run: 1 without libaccel, 2 with another number of threads, 3 with
# libaccel.
WHICH = 'case "$LD_PRELOAD" in *libaccel.so*) r=3 ;; *) r=$((3 - OPENBLAS_NUM_THREADS)) ;; esac\n'
SAME, DIFFERS, FAILED = 0, 1, 2

tap = Tap()


def environment(folder, extra=None):
    env = clean_env(str(folder))
    env.update({"TMPDIR": str(Path(folder, "tmp")), **(extra or {})})
    Path(folder, "tmp").mkdir(exist_ok=True)
    return env


def diff(folder, options, program, env=None, stdin="", timeout=120):
    return subprocess.run([TOOL, "diff", *options, "--", *program], cwd=folder, env=environment(folder, env), input=stdin, text=True,
                          errors="replace", stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout)


def runs(first, second, third, options=(), name=None, folder=None):
    """accel diff of a program whose runs write these bytes (None: nothing) to stdout, or to the file `name`."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = folder or temporary
        for run, content in enumerate((first, second, third), 1):
            if content is not None:
                Path(folder, f"in.{run}").write_bytes(content if isinstance(content, bytes) else content.encode())
        script = WHICH + (f'[ ! -e in.$r ] || cat in.$r > "{name}"' if name else "cat in.$r")
        if name:
            options = ("--output", name, *options)
        done = diff(folder, options, ["sh", "-c", script])
        left = os.listdir(Path(folder, "tmp"))
        if left:
            tap.ok(False, "nothing is left in TMPDIR", *left)
        return done


def expect(label, done, status, *texts):
    """Checks the status, and that stdout or stderr has the texts."""
    said = done.stdout + done.stderr
    missing = [text for text in texts if text not in said]
    tap.ok(done.returncode == status and not missing, label, f"status {done.returncode}, wanted {status}; missing: {missing}", said)


def same(label, *content, **options):
    expect(label, runs(*content, **options), SAME)


def differs(label, *content, says=(), **options):
    expect(label, runs(*content, **options), DIFFERS, *says)


def damaged(label, content, says, **options):
    """The run with libaccel leaves a file that cannot be read: content[1]."""
    done = runs(content[0], content[0], content[1], **options)
    expect(label, done, FAILED, *says)
    tap.ok(len(done.stderr.splitlines()) == 1, f"{label}: one line", done.stderr)


def text():
    plain = "n = 12\nsum 1.5 2.25e-3\nend\n"
    expect("text: the same", runs(plain, plain, plain), SAME, "stdout (text): ok; 3 numbers, 0 differ, 0 by more")
    differs("text: a number differs", plain, plain, plain.replace("2.25e", "2.35e"),
            says=("line 2, column 9: 2.25e-3, with libaccel 2.35e-3 (absolute 0.0001, relative 0.0426", "3 numbers, 1 differs, 1 by more"))
    same("text: a difference within the digits of a double", "x 1.234567890123456\n", "x 1.234567890123456\n", "x 1.234567890123999\n")
    differs("text: beyond them", "x 1.234567890123456\n", "x 1.234567890123456\n", "x 1.234567990123456\n")
    expect("text: the noise floor is allowed for, and printed", runs("x 1.000000000\n", "x 1.000001000\n", "x 0.999995000\n"), SAME,
           "worst       with libaccel     noise floor", "absolute             5e-06           1e-06")
    differs("text: much more than the noise is not allowed", "x 1.000000000\n", "x 1.000001000\n", "x 1.000020000\n")
    same("text: the last of four digits may be rounded otherwise", "0.3333\n", "0.3333\n", "0.3334\n")
    differs("text: the last of three digits may not", "0.333\n", "0.333\n", "0.334\n")
    same("text: spaces beside numbers mean nothing", "[ 1.5  -2.0 ]\n", "[ 1.5  -2.0 ]\n", "[1.5 -2.0]\n")
    differs("text: other spaces mean something", "a  b 1\n", "a  b 1\n", "a b 1\n", says=(r'line 1, column 3: "a  b 1\n", with libaccel "a b 1\n"',))
    differs("text: words", "fine 1\n", "fine 1\n", "bad 1\n")
    differs("text: a line more", plain, plain, plain + "5\n", says=(r'line 4: "5\n" is there with libaccel alone',))
    differs("text: a line less", plain, plain, "n = 12\n", says=("is there without libaccel alone",))
    same("text: --ignore", "took 5 s\nx 1\n", "took 5 s\nx 1\n", "took 77777 s\nx 1\n", options=("--ignore", "^took [0-9]+"))
    same("text: ignored lines need not be there", "took 5 s\nx 1\n", "x 1\n", "x 1\ntook\ntook\n", options=("-i", "^took", "-i", "never"))
    same("text: --ignore sees where a line ends", *["5 took\nx 1\ntook 5"] * 2, "5 took\nx 1\ngave 5", options=("--ignore", "^[a-z]+ 5$"))
    differs("text: and where it begins", *["5 took 5\nx 1\n"] * 2, "5 gave 5\nx 1\n", options=("--ignore", "^[a-z]+ 5$"))
    page = "x" * 4092 + " 1.5"
    differs("text: a number ends the file, and a page", *[page] * 2, page[:-1] + "6", says=("1 number, 1 differs", "line 1, column 4094: 1.5, with libaccel 1.6"))
    same("text: a NaN is a NaN, 0 is -0", "nan -nan 0.0 inf\n", "nan -nan 0.0 inf\n", "NaN nan -0.0 Infinity\n")
    differs("text: a NaN is no number", "1.0\n", "1.0\n", "nan\n", options=("--rtol", "10"), says=("relative inf",))
    differs("text: an infinity is no number", "inf\n", "inf\n", "-inf\n")
    same("text: complex numbers by their moduli", "(1e10+2j) 3 + 4i\n", "(1e10+2j) 3 + 4i\n", "(1e10+3j) 3 + 4.00000001i\n")
    differs("text: a complex number", "(1+2j)\n", "(1+2j)\n", "(1-2j)\n", says=("1+2j, with libaccel 1-2j", "absolute 4"))
    same("text: Fortran's exponents", "1.0D+00 0.125-100\n", "1.0D+00 0.125-100\n", "1.0E+00 1.25E-101\n")
    same("text: hexadecimal", "0x1.8p+1 0x10\n", "0x1.8p+1 0x10\n", "3.0 16\n")
    differs("text: integers that no double tells apart", *["12345678901234567\n"] * 2, "12345678901234568\n", says=("absolute 1, ",))
    differs("text: integers of more than 64 bits", *["1234567890123456789012345\n"] * 2, "1234567890123456789012346\n")
    same("text: dates", *["on 2024-01-31 at 12:34:56 by v1.2.3\n"] * 3)
    differs("text: another date", *["on 2024-01-31\n"] * 2, "on 2024-01-30\n", says=("column 12: 31, with libaccel 30",))
    differs("text: no end of line", "a\n", "a\n", "a", says=(r'line 1, column 2: "a\n", with libaccel "a"',))
    differs("text: a line's other end", "1\n", "1\n", "1\r\n", says=(r'"1\n", with libaccel "1\r\n"',))
    differs("text: far along a line", *["x" * 200 + " 1 end"] * 2, "x" * 200 + " 1 And",
            says=("line 1, column 204: \"" + "x" * 27 + " 1 end\", with",))
    damaged("text: a NUL", ("1\n", b"1\0\n"), ("stdout of the run with libaccel: line 1: there is a NUL",))
    expect("text: the first few differences", runs("1\n" * 20, "1\n" * 20, "2\n" * 20, options=("--show", "3")), DIFFERS,
           "line 3, column", "and 17 more")
    lines = "\n".join(f"row {i} {i * 1.1:.17g}" for i in range(200000))
    started = time.monotonic()
    expect("text: 200000 lines", runs(lines, lines, lines.replace("row 199999 ", "row 199999 -")), DIFFERS, "400000 numbers, 1 differs")
    tap.note(f"in {time.monotonic() - started:.1f} s")


def not_repeatable():
    """If runs without libaccel differ by more than rounding, nothing can be said of the run with it, even if that is the same."""
    def refused(label, first, second, third=None, says=(), **options):
        expect(f"not repeatable: {label}", runs(first, second, first if third is None else third, **options), FAILED,
               "NOT REPEATABLE without libaccel; ", "nothing can be said", *says)

    with tempfile.TemporaryDirectory() as folder:
        random = [PYTHON, "-c", "import os, random; print(5.0 if 'accel' in os.environ.get('LD_PRELOAD', '') else random.random())"]
        expect("not repeatable: a program that prints random numbers, and 5.0 with libaccel", diff(folder, (), random), FAILED,
               "stdout (text): NOT REPEATABLE without libaccel; 1 number, 1 differs, 1 by more than rounding\n  line 1, column 1: 0.")
        expect("not repeatable: with --ignore no number is left", diff(folder, ("--ignore", "."), random), FAILED,
               "no compared output has a number")
        expect("not repeatable: --atol allows it", diff(folder, ("--atol", "5"), random), SAME)
    refused("a number in text", "t 1.0\nx 3.00000\n", "t 2.0\nx 3.00000\n", "t 4.0\nx 3.10000\n",
            says=("stdout (text): NOT REPEATABLE without libaccel; 2 numbers, 1 differs, 1 by more than rounding",
                  "line 1, column 3: 1.0, with other threads 2.0 (absolute 1, relative 0.5, "))
    refused("the run with libaccel is like the first", "1.5\n", "2.5\n")
    refused("the run with libaccel is like the second", "1.5\n", "2.5\n", "2.5\n")
    refused("an integer", "12 rounds\n", "13 rounds\n", says=("1: 12, with other threads 13 (absolute 1",))
    refused("a large integer", "1234567\n", "1234568\n")
    refused("a NaN", "nan\n", "1.0\n", says=("relative inf",))
    refused("NaNs allow for nothing", "nan\n", "1.0\n", options=("--rtol", "10", "--atol", "1e300"))
    refused("words, with numbers beside them", "at host-a 1.5\n", "at host-b 1.5\n", "at host-c 9.5\n",
            says=('line 1, column 9: "at host-a 1.5\\n", with other threads "at host-b 1.5\\n"',))
    refused("other lines", "a\n1.5\n", "1.75\n", "a\n1.75\n", says=('line 2: "1.5\\n" is there with the usual threads alone',))
    refused("the last of three digits", "0.333\n", "0.334\n")
    refused("--show limits the differences that are printed", "1\n" * 20, "2\n" * 20, options=("--show", "3"), says=("line 3, column", "and 17 more"))
    refused("JSON: a number", '{"x": [1.5]}', '{"x": [1.75]}', name="o.json", says=("o.json (json): NOT", ".x[0]: 1.5, with other threads 1.75"))
    refused("JSON: a member", '{"x": 1}', '{"x": 1, "y": 2}', name="o.json", says=(".y is there with other threads alone",))
    refused("npy: an element", *[saved(np.array(x)) for x in ([3.0, 0.84], [3.0, 0.39], [3.0, 5.0])], name="o.npy",
            says=("o.npy (npy): NOT REPEATABLE without libaccel; 2 numbers, 1 differs, 1 by more than rounding", "  [1]: 0.8"))
    refused("npy: a small element", *[saved(np.array(x)) for x in ([1e4, 0.84], [1e4, 0.39], [1e4, 5.0])], name="o.npy", says=("  [1]: 0.8",))
    refused("npy: an integer", *[saved(np.array(x)) for x in ([3, 100000], [3, 100001])], name="o.npy")
    refused("npy: another shape", saved(np.ones(3)), saved(np.ones(4)), name="o.npy", says=("f8 (3), with other threads f8 (4)",))
    head = "%%MatrixMarket matrix array real general\n2 1\n"
    refused("mtx: an element", f"{head}1.5\n2.5\n", f"{head}1.5\n2.75\n", name="o.mtx", says=("(2, 1): 2.5, with other threads 2.75",))
    refused("bytes", b"a\0b", b"a\0c", name="o.bytes", says=("byte 3 is the first that differs; 3 bytes, with other threads 3",))
    for kind, noise, wanted in (("f2", 0.01, SAME), ("f2", 0.05, FAILED), ("f4", 3e-4, SAME), ("f4", 1e-3, FAILED), ("f8", 9e-5, SAME),
                                ("f8", 2e-4, FAILED), ("f16", 9e-5, SAME), ("f16", 2e-4, FAILED), ("c16", 9e-5, SAME), ("c16", 2e-4, FAILED)):
        first, second = (saved(np.array([1, 1 + x, 1]).astype(kind)) for x in (0, noise))
        done = runs(first, second, first, name="o.npy")
        tap.ok(done.returncode == wanted, f"not repeatable: {kind}, {noise:g} of a number: status {wanted}", done.stdout)
    same("repeatable: rounding in text", "1.0000\n", "1.00009\n", "1.0000\n")
    same("repeatable: the last of four digits", "0.3333\n", "0.3334\n", "0.3333\n")
    differs("repeatable: the last digit's unit is no noise floor", "0.3333\n", "0.3334\n", "0.3336\n")
    same("repeatable: a rest of numbers that cancel", "residual 1.4e-16\n", "residual -2.2e-16\n", "residual 3.1e-16\n")
    same("repeatable: --rtol allows it", "t 1.50\n", "t 1.52\n", "t 1.53\n", options=("--rtol", "0.1"))
    same("repeatable: --atol allows it, integers", "12 rounds\n", "13 rounds\n", "12 rounds\n", options=("--atol", "1"))
    differs("repeatable: rounding is repeatable, but --rtol 0 does not allow it", *["1.0\n", "1.0000000001\n", "1.0000000001\n"], options=("--rtol", "0"))
    same("repeatable: lines that are ignored", "took 5 s at host-a\nx 1\n", "took 6 s at host-b\nx 1\n", "took 7 s\nx 1\n", options=("-i", "^took"))

    # Outputs without any number.
    for label, content, options in (("an empty output", "", {}), ("words", "fine\n", {}), ("no elements", saved(np.ones((0, 3))), {"name": "o.npy"})):
        expect(f"no number: {label}", runs(content, content, content, **options), FAILED, "no compared output has a number: ",
               "nothing can be said")
        expect(f"no number: {label}, with --allow-no-numbers", runs(content, content, content, options=("--allow-no-numbers",), **options), SAME)
    expect("no number: texts differ", runs("fine\n", "fine\n", "bad\n"), DIFFERS, "1 difference of text")
    with tempfile.TemporaryDirectory() as folder:
        script = ["sh", "-c", "echo 5; printf 'a\\0b' > o.bin"]
        expect("no number: stdout is not compared", diff(folder, ("--stdout", "none"), script), FAILED, "no compared output has a number")
        expect("no number: files compared as bytes need none", diff(folder, ("--stdout", "none", "-o", "bytes:o.bin"), script), SAME, "o.bin (bytes): ok")


def csv():
    table = "name,x,y\nfirst,1.5,-2\nsecond,,3.25e2\n"
    same("csv: the same", table, table, table.replace("3.25e2", "325.0"), name="out.csv")
    differs("csv: a cell", table, table, table.replace("-2", "-3"), name="out.csv", says=("out.csv (csv): DIFFERS", "line 2, column 11: -2"))
    differs("csv: an empty cell is not 0", table, table, table.replace(",,", ",0,"), name="out.csv", says=('line 3, column 8: "second,,3',))
    differs("csv: columns of tabs", "1\t\t2\n", "1\t\t2\n", "1\t2\n", name="out.csv")


def json():
    first = '{"a": [1, 2.5, {"b": null}], "s": "took 1.5 s", "t": true, "big": 12345678901234567, "x": NaN}'
    other = '{"x":NaN,"big":12345678901234567,\n "t":true,"s":"took 1.5 s","a":[1.0,2.50,\n{"b":null}]}\n'
    same("json: by structure", first, first, other, name="out.json")
    differs("json: a number", first, first, other.replace("2.50", "2.75"), name="out.json",
            says=("out.json (json): DIFFERS", ".a[1]: 2.5, with libaccel 2.75 (absolute 0.25"))
    differs("json: an integer", first, first, other.replace("567,", "568,"), name="out.json", says=(".big: 12345678901234567, with", "absolute 1,"))
    differs("json: a member less", first, first, other.replace('"t":true,', ""), name="out.json", says=(".t is there without libaccel alone",))
    differs("json: a member more", first, first, other.replace('"t"', '"u":1,"t"'), name="out.json", says=(".u is there with libaccel alone",))
    differs("json: an element more", first, first, other.replace("[1.0", "[1.0,1"), name="out.json", says=(".a: 3 elements, with libaccel 4",))
    differs("json: another type", first, first, other.replace("null", "0"), name="out.json", says=(".a[2].b: null, with libaccel int",))
    differs("json: true or false", first, first, other.replace("true", "false"), name="out.json", says=(".t: true, with libaccel false",))
    differs("json: a string", first, first, other.replace("took", "gave"), name="out.json", says=('.s, column 1: "took',))
    differs("json: a number in a string", first, first, other.replace("1.5 s", "1.7 s"), name="out.json", says=(".s, column 6: 1.5",))
    differs("json: NaN or not", first, first, other.replace("NaN", "1"), name="out.json", says=(".x: nan, with libaccel 1",))
    same("json: --ignore takes paths", first, first, other.replace("2.50", "7"), name="out.json", options=("--ignore", r"^\.a\[1\]$"))
    same("json: noise", '{"x": 1.000001}', '{"x": 1.000002}', '{"x": 1.000005}', name="out.json")
    same("json: stdout", '{"x": 1, "y": 2}', '{"x": 1, "y": 2}', '{"y": 2, "x": 1}', options=("--stdout", "json"))
    same("json: a file that fills a page", first, first, other.ljust(4096), name="out.json")
    damaged("json: cut short", (first, first[:-9]), ("cut short", "out.json of the run with libaccel"), name="out.json")
    damaged("json: no comma", (first, '{"a": 1\n "b": 2}'), ("line 2: not JSON",), name="out.json")
    damaged("json: more behind it", (first, first + "\n]"), ("line 2: not JSON",), name="out.json")
    damaged("json: an integer of more than 64 bits", (first, first.replace("12345678901234567", "123456789012345678901")), (".big: an integer of 64 bits or more",), name="out.json")
    damaged("json: nothing", (first, ""), ("cut short",), name="out.json")


def saved(array, version=None):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asanyarray(array), version=version)
    return file.getvalue()


def npy():
    numbers = np.random.default_rng(1)
    for kind in "f2 f4 f8 f16 c8 c16 c32 i1 i2 i4 i8 u1 u2 u4 u8 ?".split():
        array = (numbers.random((3, 4, 2)) * 100).astype(kind)
        if array.dtype.kind == "c":
            array += (numbers.random((3, 4, 2)) * 100j).astype(kind)
        other = array.copy()
        other[1, 3, 0] = not array[1, 3, 0] if kind == "?" else array[1, 3, 0] + array.dtype.type(7)
        first = saved(array)
        differs(f"npy: {kind}, an element", first, first, saved(other), name="out.npy",
                says=("out.npy (npy): DIFFERS; 24 numbers, 1 differs, 1 by more", "  [1, 3, 0]: "))
        orders = [saved(np.asfortranarray(array)), saved(array.astype(array.dtype.newbyteorder(">"))), saved(array, (2, 0)), saved(array, (3, 0))]
        for label, content in zip(("Fortran's order", "the other byte order", "version 2", "version 3"), orders):
            same(f"npy: {kind}, {label}", first, first, content, name="out.npy")
        differs(f"npy: {kind}, an element in Fortran's order", first, orders[0], saved(np.asfortranarray(other)), name="out.npy",
                says=("  [1, 3, 0]: ",))

    def nearly(kind, factor):
        """A number off by this many units in the last place."""
        array = np.ones(3, kind)
        other = array.copy()
        other[1] += factor * np.finfo(kind).eps
        return saved(array), saved(array), saved(other)

    for kind in ("f2", "f4", "f8", "f16"):
        expect(f"npy: {kind}, ULP are the type's", runs(*nearly(kind, 3), name="o.npy", options=("--ulp", "2")), DIFFERS, "3 ULP)")
        same(f"npy: {kind}, 3 of 3 ULP", *nearly(kind, 3), name="o.npy", options=("--ulp", "3"))
        same(f"npy: {kind}, rounding passes", *nearly(kind, 3), name="o.npy")
    same("npy: -0, NaN", *[saved(np.array(x)) for x in ([0.0, np.nan], [0.0, np.nan], [-0.0, -np.nan])], name="o.npy")
    differs("npy: a NaN", *[saved(np.array(x)) for x in ([0.0, 1.0], [0.0, 1.0], [0.0, np.nan])], name="o.npy", says=("[1]: 1, with libaccel nan",))
    matrix = np.array([[1.0, 1e-17], [0, 5.0]])
    other = np.array([[1.0, -3e-17], [0, 5.0]])
    same("npy: a rest of numbers that cancel", saved(matrix), saved(matrix), saved(other), name="o.npy")
    differs("npy: --rtol alone does not allow it", saved(matrix), saved(matrix), saved(other), name="o.npy", options=("--rtol", "1e-9"))
    same("npy: --atol allows it", saved(matrix), saved(matrix), saved(other), name="o.npy", options=("--rtol", "1e-9", "--atol", "1e-16"))
    same("npy: no elements", *[saved(np.ones((0, 3)))] * 3, name="o.npy", options=("--allow-no-numbers",))
    same("npy: no dimensions", *[saved(np.float64(3.5))] * 3, name="o.npy")
    differs("npy: another shape", *[saved(np.ones((2, 3)))] * 2, saved(np.ones((3, 2))), name="o.npy",
            says=("f8 (2, 3), with libaccel f8 (3, 2)",))
    differs("npy: another type", *[saved(np.ones(3))] * 2, saved(np.ones(3, "f4")), name="o.npy", says=("f8 (3), with libaccel f4 (3)",))
    page = saved(np.arange(496.0))
    tap.ok(len(page) == 4096, "npy: a whole page")
    same("npy: a file that fills a page", page, page, page, name="o.npy")
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
            ("of too large a shape", good.replace(b"(3,), }        ", b"(9999999999,9999999999,9)}"[:15]), "header is damaged"),
            ("an archive", b"PK\x03\x04" + good, ".npz"),
            ("of strings", saved(np.array(["a", "b"])), "elements of type <U1; allowed"),
            ("of fields", saved(np.zeros(2, [("a", "f8")])), "elements of type [...]"),
            ("of dates", saved(np.array(["2024-01-01"], "M8[D]")), "elements of type <M8[D]")):
        damaged(f"npy: {label}", (good, content), ("o.npy of the run with libaccel: ", says), name="o.npy")


def market(matrix, **options):
    file = io.BytesIO()
    scipy.io.mmwrite(file, matrix, **options)
    return file.getvalue()


def matrix_market():
    head = "%%MatrixMarket matrix "
    real = head + "coordinate real general\n% a comment\n\n3 3 3\n1 1 1.5\n2 3 -2.5e-3\n3 1 4\n"
    mixed = head + "COORDINATE Real General\n3 3 4\n3 1 4.0\n2 3 -0.0025\n1 1 1.5D0\n2 2 0.0\n"
    same("mtx: entries in any order, stored zeros", real, real, mixed, name="out.mtx")
    differs("mtx: an entry", real, real, mixed.replace("4.0", "4.5"), name="out.mtx",
            says=("out.mtx (mtx): DIFFERS; 4 numbers", "(3, 1): 4, with libaccel 4.5 (absolute 0.5"))
    differs("mtx: an entry less", real, real, head + "coordinate real general\n3 3 2\n1 1 1.5\n3 1 4\n", name="out.mtx",
            says=("(2, 3): -0.0025", "with libaccel 0 "))
    differs("mtx: an entry more", real, real, mixed.replace("2 2 0.0", "2 2 1.0"), name="out.mtx", says=("(2, 2): 0, with libaccel 1 ",))
    differs("mtx: another size", real, real, real.replace("3 3 3", "3 4 3"), name="out.mtx", says=("3 x 3, with libaccel 3 x 4",))
    same("mtx: entries of one place are added up", real, real, real.replace("3 3 3", "3 3 4") + "3 1 0\n", name="out.mtx")
    # The same matrices, stored in full, as a triangle, and in an array.
    numbers = np.random.default_rng(2)
    a = numbers.random((4, 4)) + 1j * numbers.random((4, 4))
    for label, matrix in (("symmetric", a.real + a.real.T), ("skew-symmetric", a.real - a.real.T), ("hermitian", a + a.conj().T),
                          ("symmetric", a + a.T)):
        sparse = scipy.sparse.coo_matrix(matrix)
        forms = [market(sparse, symmetry=label), market(sparse, symmetry="general"), market(matrix, symmetry=label),
                 market(matrix, symmetry="general")]
        kind = f"mtx: {matrix.dtype}, {label}"
        tap.ok(label.encode() in forms[0] and b"array" in forms[2], f"{kind}: as SciPy writes it")
        for form in forms:
            same(f"{kind}: {form.split(b'matrix ')[1].splitlines()[0].decode()}", forms[0], forms[1], form, name="out.mtx")
        matrix[2, 1] += 0.5
        differs(f"{kind}: an element", forms[0], forms[1], market(matrix, symmetry="general"), name="out.mtx", says=("1 by more than allowed", "(3, 2): "))
    same("mtx: by its first line", real, real, mixed, name="out.dat")
    pattern = head + "coordinate pattern general\n2 2 2\n1 1\n2 2\n"
    same("mtx: pattern", pattern, pattern, head + "coordinate integer general\n2 2 2\n2 2 1\n1 1 1\n", name="out.mtx")
    differs("mtx: another pattern", pattern, pattern, head + "coordinate pattern general\n2 2 2\n1 1\n2 1\n", name="out.mtx")
    whole = head + "array integer general\n2 1\n9007199254740993\n-1\n"
    same("mtx: integers", whole, whole, whole, name="out.mtx")
    differs("mtx: an integer", whole, whole, whole.replace("93\n", "92\n"), name="out.mtx", says=("(1, 1): 9007199254740993, with", "absolute 1,"))
    for label, content, says in (
            ("no banner", real[2:], "not a Matrix Market file"),
            ("another kind", real.replace(" real", " quaternion"), "line 1: coordinate quaternion general; allowed"),
            ("an array of a pattern", head + "array pattern general\n1 1\n1\n", "line 1: array pattern general; allowed"),
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
        damaged(f"mtx: {label}", (real, content), ("out.mtx of the run with libaccel: ", says), name="out.mtx")


def files():
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out.txt")
        listing = lambda: sorted(name for name in os.listdir(folder) if not name.startswith("in.") and name != "tmp")
        expect("files: one that no run writes", runs(b"a\0b", b"a\0b", b"a\0c", name="x.bin", options=("--output", "bytes:y.bin")), FAILED, "y.bin")
        done = diff(folder, ("--output", "bytes:out.txt"), ["sh", "-c", WHICH + "printf 'a\\0b' > out.txt; [ $r != 3 ] || printf c >> out.txt"])
        expect("files: another length", done, DIFFERS, "out.txt (bytes): DIFFERS", "byte 4 is the first that differs; 3 bytes, with libaccel 4")
        out.unlink()

        same("files: what the last run writes stays", "1\n", "1\n", "1.0\n", name="out.txt", folder=folder)
        tap.ok(out.read_text() == "1.0\n" and listing() == ["out.txt"], "files: it is the only one left", *listing())
        done = runs("1\n", "1\n", "1.0\n", name="out.txt", folder=folder)
        tap.ok(done.returncode == SAME and listing() == ["out.txt"] and not done.stderr, "files: an equal file may be there before", done.stderr, *listing())
        out.write_text("precious\n")
        done = runs("1\n", "1\n", "2\n", name="out.txt", folder=folder)
        expect("files: the former file is named", done, DIFFERS, "the former out.txt is kept as", "out.txt.~1~")
        tap.ok(out.read_text() == "2\n" and Path(folder, "out.txt.~1~").read_text() == "precious\n" and len(listing()) == 2,
               "files: the former file is kept", *listing())
        runs("1\n", "1\n", "3\n", name="out.txt", folder=folder)
        tap.ok(out.read_text() == "3\n" and Path(folder, "out.txt.~2~").read_text() == "2\n" and
               Path(folder, "out.txt.~1~").read_text() == "precious\n", "files: the next former file is kept, too", *listing())
        for path in Path(folder).glob("out*"):
            path.unlink()
        out.write_text("precious\n")
        Path(folder, "in.3").unlink()
        expect("files: not written with libaccel", runs("1\n", "1\n", None, name="out.txt", folder=folder), DIFFERS,
               "out.txt: DIFFERS: not written with libaccel")
        tap.ok(out.read_text() == "precious\n" and listing() == ["out.txt"], "files: the former file is put back", *listing())
        Path(folder, "in.2").unlink()
        expect("files: not written by the second run", runs("1\n", None, "1\n", name="out.txt", folder=folder), FAILED,
               "out.txt of the run with another number of threads: not written")
        done = diff(folder, ("--output", "nothing.txt"), ["true"])
        expect("files: never written", done, FAILED, "nothing.txt of the run without libaccel: not written")
        done = diff(folder, ("--output", "out.txt"), ["sh", "-c", "echo 5 >> out.txt"])
        expect("files: a program that appends finds no former file", done, SAME, "1 number,")
        done = diff(folder, ("--output", "out.txt"), ["sh", "-c", "echo 6 > out.txt; exit 4"])
        expect("files: a program that fails", done, FAILED, "sh: the run without libaccel ends with status 4; allowed: 0")
        tap.ok(out.read_text() == "5\n", "files: after a failure the former file is put back", out.read_text())
        for path in Path(folder).glob("out*"):
            path.unlink()
        done = diff(folder, ("--output", "new/a.txt", "-o", f"{folder}/new/b.txt"), ["sh", "-c", "mkdir -p new; echo 1 > new/a.txt; echo 2 > new/b.txt"])
        expect("files: a folder that the program makes", done, SAME, "new/a.txt (text): ok", "b.txt (text): ok")
        tap.ok(sorted(os.listdir(Path(folder, "new"))) == ["a.txt", "b.txt"], "files: that folder has nothing else", *os.listdir(Path(folder, "new")))
        Path(folder, "pipe").mkdir()
        for name, says in (("pipe", "not a regular file; allowed"), ("a/", "not the name of a file"), ("x" * 300, "File name too long"),
                           ("/proc/none", "not written")):
            expect(f"files: --output {name[:20]}", diff(folder, ("--output", name), ["true"]), FAILED, says)
        for name in "jsno:x", "out:1.txt":
            done = diff(folder, ("--output", name), ["touch", "started"])
            expect(f"files: --output {name}", done, FAILED, f"accel diff: --output {name}: {name.split(':')[0]} is no format; allowed: text, csv,", f"is ./{name}\n")
            tap.ok(not Path(folder, "started").exists() and done.stderr.count("\n") == 1, f"files: --output {name}: nothing has run", done.stderr)
        for option in "./jsno:x", f"{folder}/jsno:x", "text:jsno:x":
            expect(f"files: a colon in the name, {option[-11:]}", diff(folder, ("--output", option), ["sh", "-c", "echo 7 > jsno:x"]), SAME, "jsno:x (text): ok")
        Path(folder, "jsno:x").unlink(missing_ok=True)
        expect("files: one file twice", diff(folder, ("-o", "new/a.txt", "-o", "./new/../new/a.txt"), ["true"]), FAILED, "named twice")
        tap.ok(Path(folder, "new/a.txt").exists(), "files: the file that is named twice is still there")

        done = diff(folder, ("--keep", "kept", "--output", "out.txt", "--atol", "2"), ["sh", "-c", WHICH + "echo $r; echo 1.$r > out.txt"])
        expect("files: --keep", done, SAME)
        kept = {str(path.relative_to(Path(folder, "kept"))): path.read_text() for path in Path(folder, "kept").rglob("*") if path.is_file()}
        wanted = {f"{run}/{name}": value for i, run in enumerate(("1-without", "2-threads", "3-with"), 1)
                  for name, value in (("stdout", f"{i}\n"), ("out.txt", f"1.{i}\n"))}
        tap.ok(kept.items() >= wanted.items(), "files: --keep keeps all that the runs have written", kept)
        expect("files: --keep of two of one name", diff(folder, ("--keep", "kept", "-o", "new/a.txt", "-o", "a.txt"), ["true"]), FAILED,
               "two files would be a.txt; allowed: each name once")
        expect("files: --keep in no folder", diff(folder, ("--keep", "/proc/none"), ["true"]), FAILED, "--keep: /proc/none: ")


def programs():
    with tempfile.TemporaryDirectory() as folder:
        done = diff(folder, (), ["sh", "-c", WHICH + "[ $r -lt 3 ] || exit 5"])
        expect("a program that fails with libaccel alone", done, DIFFERS, "exit status: DIFFERS: 0, with libaccel 5")
        done = diff(folder, (), ["sh", "-c", WHICH + "[ $r -lt 3 ] || kill -SEGV $$"])
        expect("a program that a signal ends with libaccel alone", done, DIFFERS, "with libaccel 139")
        done = diff(folder, (), ["sh", "-c", WHICH + "[ $r -ne 2 ] || exit 6"])
        expect("a program that fails with another number of threads alone", done, FAILED, "the run with another number of threads ends with status 6")
        expect("no such program", diff(folder, (), ["/no/such/program"]), FAILED, "/no/such/program: No such file", "status 127")
        done = diff(folder, (), ["sh", "-c", "cat; cat"], stdin="1 2\n" + "3.5\n" * 50000)
        expect("each run gets the same stdin", done, SAME, "stdout (text): ok; 50002 numbers, 0 differ")
        show = "echo ${ACCEL_POLICY-none} ${ACCEL-none} ${ACCEL_LOG-none} ${ACCEL_START-none} $OPENBLAS_NUM_THREADS $LD_PRELOAD >&2"
        done = diff(folder, (), ["sh", "-c", show], env={"ACCEL_POLICY": "cpu", "ACCEL": "1", "ACCEL_LOG": "2", "LD_PRELOAD": f"{BUILD}/libaccel.so"})
        seen = [line for line in done.stderr.splitlines() if "none" in line or "cpu" in line]
        tap.ok(seen == ["none none none none 2", "none none none none 1", f"cpu 1 json wait 2 {BUILD}/accel-preload/$PLATFORM/libaccel.so"],
               "settings are for the run with libaccel alone", *seen)
        for threads, env in (("1", {}), ("2", {"OPENBLAS_NUM_THREADS": "1"}), ("7", {})):
            options = ("--threads", "7") if threads == "7" else ()
            done = diff(folder, options, ["sh", "-c", "echo $OMP_NUM_THREADS $MKL_NUM_THREADS $BLIS_NUM_THREADS >&2"], env=env)
            tap.ok(f"{threads} {threads} {threads}" in done.stderr, f"the second run has {threads} threads", done.stderr)

        for number, name in ((signal.SIGINT, "SIGINT"), (signal.SIGTERM, "SIGTERM")):
            Path(folder, "out.txt").write_text("precious\n")
            script = "echo 1 > out.txt; echo begun >&2; exec sleep 500"
            # A shell's background process ignores SIGINT, and so would accel.
            process = subprocess.Popen([TOOL, "diff", "--output", "out.txt", "--", "sh", "-c", script], cwd=folder, env=environment(folder),
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                       preexec_fn=lambda asked=number: signal.signal(asked, signal.SIG_DFL))
            process.stderr.readline()
            started = time.monotonic()
            process.send_signal(number)
            process.communicate(timeout=300)
            tap.ok(process.returncode == -number and time.monotonic() - started < 200, f"{name} ends the program, and accel by it", process.returncode)
            left = sorted(set(os.listdir(folder)) | set(os.listdir(Path(folder, "tmp"))))
            tap.ok(left == ["out.txt", "tmp"] and Path(folder, "out.txt").read_text() == "precious\n", f"{name}: all is as before", *left)
            Path(folder, "out.txt").unlink()

        # A signal while the runs are compared, as soon as the third one has ended: the report goes
        # on, in a file too, and accel ends by it.
        script = WHICH + "seq 1 2000000\nif [ $r = 3 ]; then (while kill -0 $$; do sleep 0.01; done; sleep 0.05; kill -TERM $PPID) >/dev/null 2>&1 & fi"
        with open(Path(folder, "report"), "w") as report:
            done = subprocess.run([TOOL, "diff", "--", "sh", "-c", script], cwd=folder, env=environment(folder), stdin=subprocess.DEVNULL, stdout=report, stderr=subprocess.PIPE,
                                  text=True, timeout=300)
        told = Path(folder, "report").read_text()
        tap.ok(done.returncode == -signal.SIGTERM and "2000000 numbers, 0 differ" in told and told.endswith("accel diff: the same, within what is allowed\n"),
               "a signal during the comparison", done.returncode, told, done.stderr)

        for options, says in (
                (("--rtol", "x"), "--rtol x: allowed: a number, 0 or more"), (("--atol", "-1"), "--atol -1: allowed"),
                (("--ulp", "nan"), "--ulp nan: allowed"), (("--noise", ""), "--noise : allowed"), (("--threads", "0"), "--threads 0: allowed: 1 to"),
                (("--show", "1x"), "--show 1x: allowed: 0 to"), (("--stdout", "xml"), "--stdout xml: allowed: text, csv, json"),
                (("--ignore", "(a"), "--ignore (a: "), (("--shim", "/none"), "/none is not there"),
                (("--expect", "*gemm* at gpu >= 1"), "at is neither on nor why; allowed: 'SYMBOL on gpu|cpu OP N'"),
                (("--expect", "*gemm* on gup >= 1"), "gup is neither gpu nor cpu"), (("--expect", "*gemm* on gpu => 1"), "=> is no relation"),
                (("--expect", "*gemm* on gpu >= -1"), "-1 is no count"), (("--expect", "*gemm* on gpu >= 1.5"), "1.5 is no count"),
                (("--expect", "*gemm* on gpu"), "not five words"), (("--expect", "*gemm* on gpu >= 1 or"), "more than five words"),
                (("--expect", "*gem_ on gpu == 0"), "*gem_ names nothing that libaccel intercepts"),
                (("--expect", "svm_predictor on gpu == 0"), "svm_predictor names nothing that libaccel intercepts"),
                (("--expect", "*gemm* why slow == 0"), "slow is no reason; allowed: faster forced"), (("--nothing",), "unrecognized option")):
            done = diff(folder, options, ["true"])
            expect(f"{' '.join(options)}: {says}", done, FAILED, says)
        done = subprocess.run([TOOL, "diff"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(folder))
        expect("no program", done, FAILED, "no program is given")
        expect("no folder for the runs", diff(folder, (), ["true"], env={"TMPDIR": "/no/such/folder"}), FAILED, "no folder can be made")
        with open("/dev/full", "w") as full:
            done = subprocess.run([TOOL, "diff", "--", "true"], stdout=full, stderr=subprocess.PIPE, text=True, env=environment(folder),
                                  stdin=subprocess.DEVNULL)
        tap.ok(done.returncode == FAILED and done.stderr.endswith("accel diff: the report cannot be written: No space left on device\n"), "a report that cannot be written", done.stderr)


NUMPY = """
import os, sys, numpy as np
a = np.random.default_rng(1).random((200, 200))
b = np.linalg.solve(a + 200 * np.eye(200), a @ a)
np.save("result.npy", b)
print("elapsed %.6f s" % (os.getpid() * 1e-3))
print("sum %.15e" % b.sum())
"""


def real_programs():
    with tempfile.TemporaryDirectory() as folder:
        program = [PYTHON, "-c", NUMPY]
        options = ("--output", "result.npy", "--ignore", "^elapsed")
        gpu = {**TEST_GPU, "ACCEL_POLICY": "gpu"}
        met = ("--expect", "*gemm* on gpu >= 1", "--expect", "*gesv* on gpu == 1", "--expect", "* why error == 0", "--expect", "* on cpu < 1",
               "--expect", "*gemm* why forced > 0", "--expect", "*gemm* on gpu != 0", "--expect", "*trsm* on gpu <= 0", "--expect", "svm_predict on gpu == 0")
        done = diff(folder, (*options, *met), program, env=gpu)
        expect("NumPy on the test GPU: the same", done, SAME, "result.npy (npy): ok; 40000 numbers", "stdout (text): ok", "expect *gemm* on gpu >= 1: ok; 1",
               "decisions         2 on the GPU, 0 on the CPU (forced 2)")
        for line in done.stdout.splitlines():
            tap.note(line)
        tap.ok(np.load(Path(folder, "result.npy")).shape == (200, 200), "NumPy: its file is there")
        done = diff(folder, (*options, "--rtol", "0"), program, env=gpu)
        expect("NumPy on the test GPU: not bit for bit", done, DIFFERS, "allowed       relative 0\n")
        expect("NumPy: a planted fault", diff(folder, options, program, env={**gpu, "TESTGPU_WRONG": "1"}), DIFFERS, "result.npy (npy): DIFFERS")
        for wrong in ("*gemm* on gpu == 0", "*gemm* on cpu >= 1", "*gesv* why unsupported > 0", "*gemm* on gpu > 1"):
            done = diff(folder, (*options, *met, "--expect", wrong), program, env=gpu)
            expect(f"NumPy: expect {wrong}", done, DIFFERS, f"expect {wrong}: NOT MET; ", "expect *gemm* on gpu >= 1: ok; 1")
        done = diff(folder, (*options, "--expect", "* on cpu == 2"), program, env={"CUDA_VISIBLE_DEVICES": "-1"})
        expect("NumPy without a GPU: bit for bit", done, SAME, "40000 numbers, 0 differ, 0 by more", "nothing ran on the GPU")
        done = diff(folder, (*options, "--expect", "*gemm* on cpu == 1", "--expect", "*gemm* why error == 1", "--expect", "*gemm* on gpu == 0"), program,
                    env={**gpu, "TESTGPU_FAIL": "cublasDgemm_v2:1"})
        expect("NumPy: a GPU that fails", done, SAME, "is left to the CPU from here on")
        expect("NumPy: calls below ACCEL_LOG_MIN_MS count", diff(folder, (*options, *met), program, env={**gpu, "ACCEL_LOG_MIN_MS": "100000"}), SAME,
               "decisions         2 on the GPU, 0 on the CPU")
        expect("NumPy: a summary in the log does not count", diff(folder, (*options, *met), program, env={**gpu, "ACCEL_SUMMARY": "1"}), SAME)
        done = diff(folder, ("--allow-no-numbers", "--expect", "dtrsm_ on cpu >= 2"), [str(TESTS / "nested"), "nothing"], env={**REFERENCE, "CUDA_VISIBLE_DEVICES": "-1"})
        counts = [int(n) for n in re.search(r"  decisions +(\d+) on the GPU, (\d+) on the CPU \([^)]*\); inside these (\d+) more on the GPU, (\d+) on the CPU\n", done.stdout + "\n").groups()]
        tap.ok(done.returncode == SAME and counts[:3] == [0, 3, 0] and counts[3] > 5, "calls inside others are counted apart, and count for an expectation", counts, done.stdout, done.stderr)
        twice = f"import os, sys\nif os.fork() == 0:\n  os.execv('{PYTHON}', ['{PYTHON}', '-c', {NUMPY!r}])\nos.wait()\n" + NUMPY
        done = diff(folder, (*options, "--expect", "*gemm* on gpu == 2"), [PYTHON, "-c", twice], env=gpu)
        expect("NumPy: the calls of all processes count", done, SAME)


def octave():
    """Octave's own text: matrices, complex numbers, what cancels."""
    source = ("A = reshape(mod((1:10000) * 7919, 1009), 100, 100) / 1009 + 50 * eye(100);"
              "x = A \\ ones(100, 1); x(1:4)', disp(sum(x)), A(1:3, 1:3) * (1 + 2i), [norm(A * inv(A)), log(-1)]")
    with tempfile.TemporaryDirectory() as folder:
        program = ["octave-cli", "--norc", "-q", "--eval", source]
        gpu = {**TEST_GPU, "ACCEL_POLICY": "gpu"}
        done = diff(folder, ("--expect", "*getrf* on gpu >= 1", "--expect", "*gemm* on gpu >= 1"), program, env=gpu)
        expect("Octave on the test GPU: the same", done, SAME, "stdout (text): ok; 16 numbers")
        expect("Octave: a planted fault", diff(folder, (), program, env={**gpu, "TESTGPU_WRONG": "1+"}), DIFFERS, "stdout (text): DIFFERS")


def lists():
    """scripts/diff-programs: a list of programs."""
    script = str(ROOT / "scripts/diff-programs")
    with tempfile.TemporaryDirectory() as folder:
        def run_list(lines):
            Path(folder, "list").write_text(lines)
            return subprocess.run([script, "list"], cwd=folder, env={**environment(folder), "BUILD": os.path.relpath(BUILD, ROOT)}, text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)

        good = "# programs\n\none: -- echo '1  2'\ntwo: --output x -- sh -c 'echo 1 > x; echo \"two:\"'\n"
        done = run_list(good)
        tap.ok(done.returncode == SAME and done.stdout == "ok 1 - one\nok 2 - two\n1..2\n", "a list of programs: TAP", done.stdout, done.stderr)
        differing = "three: -- sh -c 'case $LD_PRELOAD in *accel*) echo 1 ;; *) echo 2 ;; esac'\n"
        done = run_list(good + differing + "four: -- echo 4")
        expect("a list of programs, of which one differs", done, DIFFERS, "not ok 3 - three\n# accel diff: sh -c", "#   line 1, column 1: 2, ", "ok 4 - four",
               "1..4")
        expect("a list of programs, of which one fails", run_list("zero: -- false\n" + differing), FAILED, "not ok 1 - zero", "not ok 2 - three")
        expect("a list with a line that is none", run_list("echo\n"), FAILED, "diff-programs: echo: allowed: NAME: ")
        done = subprocess.run([script, "none"], cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        expect("no list", done, FAILED, "usage: ")


def ci_files():
    """The files in docs/ci.md, as they are written there: GitHub's, whose step is that of action.yml, and GitLab's."""
    github, gitlab = (yaml.safe_load(file) for file in re.findall(r"(?ms)^```yaml\n(.*?)^```", (ROOT / "docs/ci.md").read_text()))
    job, action = github["jobs"]["same-results"], yaml.safe_load((ROOT / "action.yml").read_text())
    given = next(step["with"] for step in job["steps"] if "libaccel" in step.get("uses", ""))
    step = action["runs"]["steps"][-1]
    inputs = {name: given[value.split()[1].split(".")[1]] for name, value in step["env"].items()}
    tap.ok(given.keys() <= action["inputs"].keys(), "docs/ci.md: GitHub's inputs are those of action.yml", given, action["inputs"])
    examples = (("GitHub", step["run"], {**job["env"], **inputs}, given["junit"]), ("GitLab", "\n".join(gitlab["same-results"]["script"]), gitlab["same-results"]["variables"],
                                                                                gitlab["same-results"]["artifacts"]["reports"]["junit"]))
    for name, script, env, report in examples:
        tap.ok(env.get("ACCEL_POLICY") == "gpu", f"docs/ci.md, {name}: settings", env)
        for fault, status in (({}, SAME), ({"TESTGPU_WRONG": "1"}, DIFFERS)):
            with tempfile.TemporaryDirectory() as folder:
                Path(folder, "simulate.py").write_text(NUMPY if name == "GitHub" else NUMPY.replace("print(\"elapsed", "(\"elapsed"))
                done = subprocess.run(["bash", "-e", "-c", script], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                      timeout=120, env={**environment(folder, {**TEST_GPU, **env, **fault}), "PATH": f"{BUILD}:/usr/bin:/bin"})
                expect(f"docs/ci.md, {name}: it ends with {status}", done, status, "result.npy (npy)")
                tap.ok(Path(folder, report).stat().st_size > 500, f"docs/ci.md, {name}: the report")
                tap.ok(name != "GitHub" or Path(folder, "accel-diff/3-with/decisions.json").exists(), f"docs/ci.md, {name}: the decisions are kept")


for part in (text, not_repeatable, csv, json, npy, matrix_market, files, programs, real_programs, octave, lists, ci_files):
    part()
tap.done()
