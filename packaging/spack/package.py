# Copyright (c) 2026 The libaccel authors
# SPDX-License-Identifier: MIT

from spack.package import *


class Libaccel(MakefilePackage):
    """Runs the BLAS, LAPACK, libsvm and liblinear calls of existing programs on an NVIDIA GPU when that pays: accel run -- PROGRAM."""

    # There is no address yet: `spack install` takes the tarball of make dist from the current folder (`spack install --no-checksum`).
    url = "file:///libaccel-0.1.0.tar.gz"

    license("MIT")

    version("0.1.0")

    variant("kernels", default=False, description="Compile the kernels that support vector machines and nearest neighbours need")

    depends_on("c", type="build")
    depends_on("cxx", type="build", when="+kernels")
    depends_on("gmake", type="build")
    depends_on("xxhash", type="build")
    depends_on("json-c")
    depends_on("cuda@12.9:", type="build", when="+kernels")

    requires("platform=linux", "target=x86_64:")

    def settings(self):
        nvcc = join_path(self.spec["cuda"].prefix.bin, "nvcc") if self.spec.satisfies("+kernels") else ""
        return [f"prefix={self.prefix}", f"libdir={self.prefix.lib}", "JSON_C_LIBS=-ljson-c", f"NVCC={nvcc}"]

    def build(self, spec, prefix):
        make(*self.settings())

    def install(self, spec, prefix):
        make("install", *self.settings())
