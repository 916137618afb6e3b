#!/bin/bash
# NumPy 2.3.5 (PyPI's wheel, x86-64 Linux): `import numpy` multiplies two matrices of order 20, in
# blas_fpe_check(), to see whether the BLAS sets floating-point exceptions as Apple's does on M4.
# NumPy 2.3.0 imports without such a call. Whoever counts or redirects calls of BLAS sees one
# before the program's first line; in multiprocessing's fork server it comes before the workers are
# forked. (Python starts that server by default since 3.14, and has it import the main module.)
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for version in 2.3.0 2.3.5; do
    python3 -m venv "$folder/$version"
    "$folder/$version/bin/pip" install -q --disable-pip-version-check --only-binary=:all: numpy==$version
    said=$("$folder/$version/bin/python" -c '
import sys
seen = []
def watch(frame, event, argument):
    if event == "call" and "fpe" in frame.f_code.co_name:
        seen.append(frame.f_code.co_name)
sys.setprofile(watch)
import numpy
sys.setprofile(None)
print(numpy.__version__, *seen)')
    echo "$said"
done > "$folder/said"
cat "$folder/said"
[ "$(cat "$folder/said")" = "2.3.0
2.3.5 blas_fpe_check" ]
