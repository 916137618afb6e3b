# Copyright (c) 2026 The libaccel authors
# SPDX-License-Identifier: MIT
# For Spack 1.0 and newer, in a repository of packages (`spack repo create`).

import os

from spack_repo.builtin.build_systems.makefile import MakefilePackage

from spack.package import *


class Libaccel(MakefilePackage):
    """Runs the BLAS, LAPACK, libsvm and liblinear calls of existing programs on an NVIDIA GPU when that pays: accel run -- PROGRAM."""

    # There is no address yet: `spack install --no-checksum libaccel` in the folder with the tarball
    # of make dist.
    url = f"file://{os.getcwd()}/libaccel-0.1.0.tar.gz"

    license("MIT")

    version("0.1.0")

    variant("kernels", default=False, description="Compile the kernels that support vector machines and nearest neighbours need")

    depends_on("c", type="build")
    depends_on("cxx", type="build", when="+kernels")
    depends_on("gmake", type="build")
    depends_on("xxhash")  # only its header; the compiler finds headers of linked packages alone
    depends_on("json-c")
    depends_on("cuda@12.9:", type="build", when="+kernels")

    requires("platform=linux")
    requires("target=x86_64:", "target=aarch64:", policy="one_of")

    def make_settings(self):
        nvcc = join_path(self.spec["cuda"].prefix.bin, "nvcc") if self.spec.satisfies("+kernels") else ""
        return [f"CC={os.environ['CC']}", f"prefix={self.prefix}", f"libdir={self.prefix.lib}", "JSON_C_LIBS=-ljson-c", f"NVCC={nvcc}"]

    def build(self, spec, prefix):
        make(*self.make_settings())

    def install(self, spec, prefix):
        make("install", *self.make_settings())
