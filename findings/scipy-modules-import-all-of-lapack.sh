#!/bin/bash
# SciPy 1.17.1, PyPI's wheel for CPython 3.12: the import table of a module does not tell what it
# calls. Its module for L-BFGS-B (C, seven routines of BLAS and LAPACK) imports 1638 names, all
# Bunch-Kaufman and Schur routines included: in it is a jump for each name of BLAS and LAPACK, and
# the dynamic linker has as many slots to fill. "nm -D" of such a module, or the count of its
# relocations, says that it uses ?hetri and ?trsyl, which nothing in it can reach.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip download -q --no-deps --only-binary=:all: --python-version 3.12 --implementation cp \
    --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 -d "$folder" scipy==1.17.1
python3 - "$folder" <<'END'
import re, subprocess, sys, zipfile
from pathlib import Path

folder = Path(sys.argv[1])
with zipfile.ZipFile(next(folder.glob("scipy-*.whl"))) as wheel:
    name = next(n for n in wheel.namelist() if re.search(r"/_lbfgsb\..*\.so$", n))
    module = folder / "module.so"
    module.write_bytes(wheel.read(name))


def output(*command):
    return subprocess.run([*command, module], stdout=subprocess.PIPE, text=True, check=True).stdout


imported = set(re.findall(r" (scipy_\w+)", output("nm", "-D", "-u")))
code = output("objdump", "-d", "--no-show-raw-insn")
jumps, reached = {}, set()
for at, how, to, what in re.findall(r"(?m)^\s*([0-9a-f]+):\s+(?:bnd )?(jmp|call)\s+([0-9a-f]+) <([^>]*)>", code):
    found = re.fullmatch(r"(scipy_\w+)@plt", what)
    if found and how == "jmp":
        jumps[int(at, 16)] = found[1]
    else:
        reached.add(found[1] if found else int(to, 16))
reached |= {int(at, 16) for at in re.findall(r"\blea\s.*# ([0-9a-f]+)", code)}
# A function may begin with an instruction of four bytes for indirect jumps.
called = {what for at, what in jumps.items() if at in reached or at - 4 in reached or what in reached}
print("SciPy 1.17.1,", name)
print(len(imported), "names of BLAS and LAPACK imported,", len(jumps), "jumps to them,", len(called), "of which something in the module calls:", *sorted(called))
seen = len(imported) == 1638 and len(jumps) == 1638 and len(called) < 20
seen = seen and {"scipy_zhetri_", "scipy_dtrsyl_", "scipy_dgees_"} <= imported - called
sys.exit(0 if seen else "not as described")
END
