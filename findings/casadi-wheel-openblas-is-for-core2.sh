#!/bin/bash
# CasADi's wheel (3.8.2) brings an OpenBLAS (libcasadi-tp-openblas.so) that has the kernels of one
# core alone, CORE2 of 2006, with vectors of 128 bits: no setting makes it use a CPU of today, and
# products take about three times as long as by NumPy's OpenBLAS beside it.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --only-binary=:all: numpy==2.4.6 casadi==3.8.2
said=$(OPENBLAS_CORETYPE=Haswell "$folder/venv/bin/python" - <<'PYTHON'
import ctypes, importlib.util
from pathlib import Path
folder = Path(importlib.util.find_spec("casadi").origin).parent
library = ctypes.CDLL(str(folder / "libcasadi-tp-openblas.so"))
core, config = library.openblas_get_corename, library.openblas_get_config
core.restype = config.restype = ctypes.c_char_p
print(core().decode(), "|", config().decode())
PYTHON
)
echo "CasADi 3.8.2: $said"
[ "${said%% |*}" = CORE2 ] && [ "${said#*DYNAMIC_ARCH}" = "$said" ]
