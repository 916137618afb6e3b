#!/bin/bash
# OpenBLAS 0.3.28 and 0.3.29: cgemmt and zgemmt with TRANSB = 'C' conjugate their input B in place.
# C is right; B, which is an input alone, is not what it was when the call returns. (PyPI's
# scipy-openblas32 0.3.28.0.2 and 0.3.29.0.0; the same in Debian 13's libopenblas0-pthread 0.3.29.)
# A program that uses B again computes with its conjugate. 0.3.30 to 0.3.34.237 conjugate B and put
# it back: there C is wrong where A and B are the same matrix. 0.3.34.481 has neither.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/gemmt.py" <<'EOF'
import ctypes, glob, sys
def number(value):
    return ctypes.byref(ctypes.c_int(value))
def letter(value):
    return ctypes.byref(ctypes.c_char(value))
path = glob.glob(sys.argv[1] + "/lib/*/site-packages/scipy_openblas32/lib/libscipy_openblas.so")[0]
library, said = ctypes.CDLL(path), []
for name, part in ("cgemmt", ctypes.c_float), ("zgemmt", ctypes.c_double):
    for transb in b"NTC":
        one, zero = (part * 2)(1, 0), (part * 2)(0, 0)
        a, b, c = (part * 2)(1, 2), (part * 2)(3, 4), (part * 2)()
        getattr(library, f"scipy_{name}_")(letter(b"L"), letter(b"N"), letter(transb), number(1), number(1), one,
                                           a, number(1), b, number(1), zero, c, number(1))
        said.append(f"{name} {chr(transb)} c={complex(*c)} b={complex(*b)}")
    getattr(library, f"scipy_{name}_")(letter(b"L"), letter(b"N"), letter(b"C"), number(1), number(1), one,
                                       a, number(1), a, number(1), zero, c, number(1))
    said.append(f"{name} C of one matrix c={complex(*c)}")
print(*said, sep="\n")
EOF
right="cgemmt N c=(-5+10j) b=(3+4j)
cgemmt T c=(-5+10j) b=(3+4j)
cgemmt C c=(11+2j) b=(3+4j)
cgemmt C of one matrix c=(5+0j)
zgemmt N c=(-5+10j) b=(3+4j)
zgemmt T c=(-5+10j) b=(3+4j)
zgemmt C c=(11+2j) b=(3+4j)
zgemmt C of one matrix c=(5+0j)"
for version in 0.3.28.0.2 0.3.29.0.0 0.3.30.0.8 0.3.34.237.2 0.3.34.481.3; do
    python3 -m venv "$folder/$version"
    "$folder/$version/bin/pip" install -q --disable-pip-version-check --no-deps --only-binary=:all: scipy-openblas32==$version
    OPENBLAS_NUM_THREADS=1 python3 "$folder/gemmt.py" "$folder/$version" > "$folder/$version.said"
    echo "OpenBLAS $version:"
    cat "$folder/$version.said"
done
put_back=${right//c=(5+0j)/c=(-3-4j)}
conjugated=${put_back//C c=(11+2j) b=(3+4j)/C c=(11+2j) b=(3-4j)}
[ "$(cat "$folder/0.3.28.0.2.said")" = "$conjugated" ] || exit 1
[ "$(cat "$folder/0.3.29.0.0.said")" = "$conjugated" ] || exit 1
[ "$(cat "$folder/0.3.30.0.8.said")" = "$put_back" ] || exit 1
[ "$(cat "$folder/0.3.34.237.2.said")" = "$put_back" ] || exit 1
[ "$(cat "$folder/0.3.34.481.3.said")" = "$right" ]
