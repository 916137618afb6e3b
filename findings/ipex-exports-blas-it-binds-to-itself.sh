#!/bin/bash
# intel-extension-for-pytorch 2.8.0 (PyPI): libintel-ext-pt-cpu.so exports MKL's cblas_sgemm and
# dgemm_ as ordinary functions (GLOBAL, DEFAULT), and has neither DT_SYMBOLIC nor a relocation for
# them: its hundreds of calls of cblas_sgemm are direct. So the names cannot be interposed for the
# library that exports them, and its dynamic section does not say so. (PyTorch's libtorch_cpu.so,
# which has the same MKL inside, calls its own names through its PLT.)
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip download -q --no-deps --no-cache-dir --only-binary=:all: --python-version 3.11 \
    --platform manylinux_2_28_x86_64 intel-extension-for-pytorch==2.8.0 -d .
python3 -m zipfile -e ./*.whl x
library=x/intel_extension_for_pytorch/lib/libintel-ext-pt-cpu.so
exported=$(readelf --dyn-syms -W $library | awk '$5 == "GLOBAL" && $6 == "DEFAULT" && $7 != "UND" { print $8 }' |
    grep -cxE 'cblas_sgemm|dgemm_|sgemm_') || true
relocated=$(readelf -rW $library | grep -cE ' (cblas_sgemm|dgemm_|sgemm_)( |@|$)') || true
symbolic=$(readelf -dW $library | grep -ciE 'symbolic') || true
calls=$(objdump -d --no-show-raw-insn $library | grep -cE 'call +[0-9a-f]+ <cblas_sgemm>$') || true
echo "ipex 2.8.0: exported $exported of 3, relocations $relocated, DT_SYMBOLIC $symbolic, direct calls of cblas_sgemm $calls"
[ "$exported" = 3 ] && [ "$relocated" = 0 ] && [ "$symbolic" = 0 ] && [ "$calls" -gt 100 ]
