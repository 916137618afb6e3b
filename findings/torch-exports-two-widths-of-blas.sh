#!/bin/bash
# PyPI's torch 2.15.0 for CPython 3.11: libtorch_cpu.so exports a hundred functions of BLAS and
# LAPACK in both widths of INTEGER (dgemm_ and dgemm_64_) and in six spellings (dgemm, DGEMM,
# dgemm_64 ...), and calls its own through its PLT; but it exports none of isamax_, idamax_ and
# ilaver_, by whose answers libraries' widths are told (libblastrampoline), and of CBLAS's products
# the batches alone.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip download -q --no-deps --no-cache-dir --only-binary=:all: --python-version 3.11 \
    --platform manylinux_2_28_x86_64 torch==2.15.0 -d .
python3 - <<'EOF'
import glob, zipfile
with zipfile.ZipFile(glob.glob("*.whl")[0]) as wheel:
    wheel.extract("torch/lib/libtorch_cpu.so")
EOF
library=torch/lib/libtorch_cpu.so
nm -D --defined-only $library | awk '{ print $3 }' > names
plain=$(grep -cxE '[sdcz][a-z0-9]{2,8}_' names)
wide=$(grep -cxE '[sdcz][a-z0-9]{2,8}_64_' names)
spellings=$(grep -cxE 'dgemm|dgemm_|DGEMM|dgemm_64|dgemm_64_|DGEMM_64' names)
probes=$(grep -cxE '(is|id)amax_?|ilaver_?' names) || true
cblas=$(grep -xE 'cblas_[sd]gemm(_batch)?' names | sort | tr '\n' ' ')
called=$(readelf -rW $library | grep -cE 'R_X86_64_JUMP_SLOT? +[0-9a-f]+ dgemm_ ') || true
echo "torch 2.15.0: $plain names of 32 bits, $wide of 64, dgemm in $spellings spellings; isamax_ and the like $probes; $cblas; PLT slots for dgemm_: $called"
[ "$plain" = 98 ] && [ "$wide" = 98 ] && [ "$spellings" = 6 ] && [ "$probes" = 0 ] &&
    [ "$cblas" = "cblas_dgemm_batch cblas_sgemm_batch " ] && [ "$called" = 1 ]
