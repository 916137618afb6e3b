#!/bin/bash
# The OpenBLAS in NumPy's wheel (2.4.6, x86-64) has kernels for Prescott and no older core. Asked
# for them (OPENBLAS_CORETYPE=Prescott), it says that its core is "Katmai", a Pentium III, whose SSE
# cannot compute in double precision: a core that it lacks has the same table as Prescott, and comes
# first.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --only-binary=:all: numpy==2.4.6
said=$(OPENBLAS_CORETYPE=Prescott "$folder/venv/bin/python" - <<'PYTHON'
import ctypes, glob, numpy, os
site = os.path.dirname(os.path.dirname(numpy.__file__))
library = ctypes.CDLL(glob.glob(f"{site}/numpy.libs/libscipy_openblas64_-*")[0])
core = library.scipy_openblas_get_corename64_
core.restype = ctypes.c_char_p
there = [name for name in ("dgemm_kernel_PRESCOTT", "dgemm_kernel_KATMAI") if hasattr(library, name)]
print(numpy.__version__, core().decode(), *there)
PYTHON
)
echo "NumPy, the core that its OpenBLAS names, its kernels of the two: $said"
[ "$said" = "2.4.6 Katmai dgemm_kernel_PRESCOTT" ]
