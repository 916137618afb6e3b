#!/bin/bash
# numpy 2.4.6 from PyPI (OpenBLAS 0.3.31, x86-64): dnrm2 is computed by the x87 unit, not by SSE. So
# its result depends on the x87 control word, which x86-64 programs believe to be out of use: with a
# precision of 53 bits instead of 64 (0x27f, as Windows and QD's fpu_fix_start() set it) about half
# of the norms of random vectors of 1000 elements change. MXCSR stays as it is.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install --no-cache-dir numpy==2.4.6
cat > "$folder/norms.py" <<'EOF'
import ctypes, glob, os, struct
import numpy as np
libm = ctypes.CDLL("libm.so.6")
library = ctypes.CDLL(glob.glob(os.path.dirname(np.__path__[0]) + "/numpy.libs/libscipy_openblas64_*.so")[0])
config = library.scipy_openblas_get_config64_
config.restype = ctypes.c_char_p
dnrm2 = library.scipy_dnrm2_64_
dnrm2.restype = ctypes.c_double
n, one = ctypes.c_int64(1000), ctypes.c_int64(1)

def norm(x, control):
    was, environment = ctypes.create_string_buffer(32), ctypes.create_string_buffer(32)  # glibc's fenv_t
    libm.fegetenv(was)
    libm.fegetenv(environment)
    struct.pack_into("<H", environment, 0, control)
    libm.fesetenv(environment)
    result = dnrm2(ctypes.byref(n), x.ctypes.data_as(ctypes.c_void_p), ctypes.byref(one))
    libm.fesetenv(was)
    return result

rng = np.random.default_rng(0)
other = sum(norm(x, 0x37F) != norm(x, 0x27F) for x in rng.random((200, 1000)))
print(config().decode(), "numpy", np.__version__)
print(f"norms that the x87 unit's precision changes: {other} of 200")
raise SystemExit(not 50 <= other <= 150)
EOF
OPENBLAS_NUM_THREADS=1 "$folder/venv/bin/python" "$folder/norms.py"
