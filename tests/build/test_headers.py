#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""gpu/cuda/api/abi.h and the prototypes of gpu/cuda/api/cuda_functions.def are those of NVIDIA's headers, the oldest of
CUDA 12 and the newest of CUDA 13: each function's type, each constant, each type's size and layout. libaccel is
compiled without NVIDIA's headers; what of the tests sees them compiles with both generations. They are fetched once."""

import os
import re
import subprocess
from collections import namedtuple
from pathlib import Path

import pytest

from lib.programs import BUILD, ROOT

# What these headers do not declare: the library may be newer; CUDA 13's have cuEventElapsedTime and
# cuMemPrefetchAsync under the names of their second versions alone, and the driver has both.
SETS = {"oldest": (BUILD / "cuda-oldest/include", "12000", {"cusolverDnXgeev", "cusolverDnXgeev_bufferSize",
                                                          "cusolverDnXhetrf", "cusolverDnXhetrf_bufferSize",
                                                          "cusolverDnXhetrs", "cusolverDnXhetrs_bufferSize",
                                                          "cublasSetFixedPointEmulationMantissaBitCountPointer"}),
        "newest": (BUILD / "cuda/include", "13050", {"cuEventElapsedTime", "cuMemPrefetchAsync"})}
# Constants that old headers do not have.
LATER = {"CUBLAS_FP32_EMULATED_BF16X9_MATH", "CUBLAS_FP64_EMULATED_FIXEDPOINT_MATH", "CU_DEVICE_ATTRIBUTE_MPS_ENABLED"}
NVIDIAS = "#include <cuda.h>\n#include <cublas_v2.h>\n#include <cusolverDn.h>\n"
ABI, FUNCTIONS = ROOT / "gpu/cuda/api/abi.h", ROOT / "gpu/cuda/api/cuda_functions.def"
# What differs, and is to be found: file, text, wrong text.
MISTAKES = [
    (ABI, "CUDA_ERROR_DEINITIALIZED = 4", "CUDA_ERROR_DEINITIALIZED = 5"),
    (ABI, "typedef int CUdevice;", "typedef long CUdevice;"),
    (ABI, "    size_t srcY;\n", ""), (ABI, "cuMemFree_v2", "cuMemFree_v3"), (ABI, "((CUstream)0x1)", "((CUstream)0x2)"),
    (ABI, "CUBLAS_GEMM_DEFAULT = -1", "CUBLAS_GEMM_DEFAULT = 1"),
    (FUNCTIONS, "CUdevice *device, int ordinal", "CUdevice *device, unsigned ordinal"),
    (FUNCTIONS, "const R *beta, T *c, I ldc\n#define TRMM", "const T *beta, T *c, I ldc\n#define TRMM"),
    (FUNCTIONS, "OPTIONAL, const char *, cublas", "OPTIONAL, char *, cublas")]
NAMES = ("cuda.h", "cuda_runtime.h", "cuda_runtime_api.h", "cublas_v2.h", "cublas_api.h", "cusolverDn.h",
         "cusolver_common.h",
         "library_types.h", "cuComplex.h")


def gcc(*arguments, text=""):
    done = subprocess.run(["gcc", *map(str, arguments)], cwd=ROOT, input=text, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    return done.stdout, done.stderr, done.returncode


def bare(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def prototypes(abi, functions):
    """{the name in the library: (result, arguments)}."""
    rows, said, status = gcc("-E", "-P", "-I.", "-xc", "-", text=f'#include "{abi}"\n' + "".join(
        f"#define {library}(function, need, result, ...) @@ function @ result @ __VA_ARGS__ @\n"
        for library in ("DRIVER", "CUBLAS", "CUSOLVER")) + f'#include "{functions}"\n')
    assert status == 0, said
    return {name: (result, arguments) for name, result, arguments in re.findall(r"@@\s*(\w+)\s*@([^@]*)@([^@]*)@",
                                                                                rows)}


def comparison(abi, rows, declared):
    """A C file that compiles only if all is the same."""
    text = bare(Path(abi).read_text())
    enums = re.findall(r"typedef enum \{([^}]*)\} (\w+);", text)
    structs = re.findall(r"typedef struct \{([^}]*)\} (\w+);", text)
    plain = re.findall(r"typedef [^{};]*?(\w+);", text)
    values = [name for body, _ in enums for name in re.findall(r"(\w+) =", body)]
    values += re.findall(r"#define (\w+) \(", text)
    values = [name for name in values if name in declared or name not in LATER]
    types = [name for _, name in enums + structs] + plain
    lines = [NVIDIAS, "#include <stddef.h>"]
    lines += [f'_Static_assert(__builtin_types_compatible_p(__typeof__(&{name}), {result} (*)({arguments})), "{name}");'
              for name, (result, arguments) in rows.items() if name in declared]
    lines += [f"enum {{ nvidias_{name} = (int)(intptr_t){name} }};"
              for name in values] + [f"typedef {name} nvidias_{name};" for name in types]
    lines += [f"#undef {name}" for name in re.findall(r"#define (\w+)", text)]
    lines += [f"#define {name} our_{name}" for name in values + types
              if f"#define {name} " not in text] + [f'#include "{abi}"']
    lines += [f"enum {{ our_{name} = (int)(intptr_t){name} }};" for name in values if f"#define {name} " in text]
    lines += [f'_Static_assert((int)our_{name} == (int)nvidias_{name}, "{name}");' for name in values]
    lines += [f'_Static_assert(sizeof(our_{name}) == sizeof(nvidias_{name}) && (((our_{name})-1 < 0) == '
              f'((nvidias_{name})-1 < 0)), "{name}");' for _, name in enums]
    lines += [f'_Static_assert(__builtin_types_compatible_p(our_{name}, nvidias_{name}), "{name}");' for name in plain]
    for body, name in structs:
        lines.append(f'_Static_assert(sizeof(our_{name}) == sizeof(nvidias_{name}) && _Alignof(our_{name}) == '
                     f'_Alignof(nvidias_{name}), "{name}");')
        # What old headers reserve, newer ones have names for.
        for member in [m for m in re.findall(r"(\w+)(?:\[\d+\])?;", body) if m != "reserved"]:
            lines.append(f'_Static_assert(offsetof(our_{name}, {member}) == offsetof(nvidias_{name}, {member}) && '
                         f'sizeof(((our_{name} *)0)->{member}) == sizeof(((nvidias_{name} *)0)->{member}), '
                         f'"{name}.{member}");')
    return "\n".join(lines) + "\n", len(values), len(types)


# Of a generation: its folder, the names that it declares, and those of functions that it does not.
Headers = namedtuple("Headers", "include declared absent")


@pytest.fixture(scope="module", params=SETS)
def headers(request):
    include, version, absent = SETS[request.param]
    found = re.search(r"#define CUDA_VERSION (\d+)", (include / "cuda.h").read_text())[1]
    assert found == version, "scripts/install-deps headers fetches them"
    text, _, _ = gcc("-E", "-P", "-isystem", include, "-xc", "-", text=NVIDIAS)
    return Headers(include, set(re.findall(r"\w+", text)), absent)


def compared(headers, abi=ABI, functions=FUNCTIONS):
    """Whether functions, types and constants are those of the headers, and what the compiler says if not."""
    rows = prototypes(abi, functions)
    if set(rows) - headers.declared != headers.absent or len(rows) < 300:
        return False, f"{len(rows)} functions, not declared: {set(rows) - headers.declared}"
    text, values, types = comparison(abi, rows, headers.declared)
    _, said, status = gcc("-std=c11", "-Wall", "-Werror", "-fsyntax-only", "-I.", "-isystem", headers.include, "-xc",
                          "-", text=text)
    return status == 0 and values > 70 and types > 35, said


def test_functions_constants_and_types_are_those_of_gpu_cuda(headers):
    same, said = compared(headers)
    assert same, said[:2000]


def test_programs_of_tests_with_cuda_of_their_own_compile(headers):
    seers = [path.relative_to(ROOT) for folder in ("fixtures/calls", "fixtures/cuda", "proof")
             for path in sorted((ROOT / "tests" / folder).glob("*.c"))
             if re.search(r'#include (<cuda\.h>|"tests/lib/must\.h"|"driver\.h")', path.read_text())]
    _, said, status = gcc("-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I.", f"-I{BUILD}", "-isystem",
                          headers.include, *seers)
    assert len(seers) > 5
    assert status == 0, said[:2000]


@pytest.mark.parametrize("path, right, wrong", MISTAKES, ids=[right.strip() for _, right, _ in MISTAKES])
def test_what_differs_is_found(headers, tmp_path, path, right, wrong):
    same, said = compared(headers)
    assert same, said[:2000]
    text = path.read_text()
    assert text.count(right) == 1
    changed = tmp_path / path.name
    changed.write_text(text.replace(right, wrong))
    assert not compared(headers, **{"abi" if path == ABI else "functions": changed})[0]


# ---- The build has no need of them ----


def test_gpu_is_compiled_without_nvidia_s_headers(tmp_path):
    for name in NAMES:
        (tmp_path / name).write_text("#error a header of NVIDIA's\n")
    sources = [path.relative_to(ROOT) for path in sorted((ROOT / "gpu").glob("**/*.c"))]
    _, said, status = gcc("-M", "-I.", f"-I{BUILD}", "-isystem", tmp_path, *sources)
    assert len(sources) > 30
    assert status == 0, said[:1000]


def test_headers_that_are_there_are_not_fetched_again():
    done = subprocess.run(["scripts/install-deps", "headers"], cwd=ROOT, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT,
                          env={**os.environ, "BUILD": str(BUILD), "PIP_NO_INDEX": "1"})
    assert done.returncode == 0
    assert not done.stdout
