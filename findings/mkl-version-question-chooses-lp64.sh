#!/usr/bin/env bash
# oneMKL's libmkl_rt: whoever asks for its version has chosen LP64 for good.
# MKL_Get_Version_String() and MKL_Get_Max_Threads() take no INTEGER and mean the same in every
# layer. But after either, MKL_Set_Interface_Layer(MKL_INTERFACE_ILP64) changes nothing and answers
# 0 (LP64), without a message: of the 64-bit integers that the program then passes, the lower
# halves are read, and pivots come back as pairs in one integer. Only a value out of range, such as
# MKL_Set_Interface_Layer(99), asks for the layer and chooses nothing; -1: there is none yet.
# Package: mkl 2024.2.2 of PyPI.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-deps mkl==2024.2.2
cat >"$folder/ask.py" <<'PYTHON'
import ctypes, sys
mkl = ctypes.CDLL(sys.argv[1] + "/lib/libmkl_rt.so.2", mode=ctypes.RTLD_GLOBAL)
text = ctypes.create_string_buffer(198)
if sys.argv[2] == "version":
    mkl.MKL_Get_Version_String(text, 198)
if sys.argv[2] == "threads":
    mkl.MKL_Get_Max_Threads()
before = mkl.MKL_Set_Interface_Layer(99)
answer = mkl.MKL_Set_Interface_Layer(1)
ipiv = (ctypes.c_int64 * 2)(-1, -1)
a = (ctypes.c_double * 4)(0, 1, 1, 0)  # rows are exchanged: the pivots are 2 and 2
n, info = ctypes.c_int64(2), ctypes.c_int64(0)
mkl.dgetrf_(ctypes.byref(n), ctypes.byref(n), a, ctypes.byref(n), ipiv, ctypes.byref(info))
print(before, answer, *ipiv)
PYTHON
export MKL_THREADING_LAYER=SEQUENTIAL
echo "mkl 2024.2.2: the layer before, the answer to ILP64, pivots as 64-bit integers"
status=0
for asked in nothing version threads; do
    got=$("$folder/venv/bin/python" "$folder/ask.py" "$folder/venv" "$asked")
    echo "after a question for $asked: $got"
    case $asked in
    nothing) wanted="-1 1 2 2" ;;
    *) wanted="0 0 8589934594 -1" ;;
    esac
    [ "$got" = "$wanted" ] || status=1
done
exit $status
