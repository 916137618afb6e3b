#!/usr/bin/python3 -B
"""Loads a package.py as Spack does, and has it build and install: Spack itself cannot be had from Debian or PyPI. It has Spack's directives and globals that
recipes of one make use of, with Spack's parameters and no others (spack.directives, spack.build_environment of Spack 1.0), and says what the recipe asks for.

    stand_in_for_spack.py PACKAGE.PY SOURCE PREFIX"""

import json
import os
import platform
import subprocess
import sys
import types

said = {"versions": [], "variants": [], "depends": {}, "requires": []}


def license(*license_identifiers, checked_by=None, when=None):
    pass


def version(ver, checksum=None, *, preferred=None, deprecated=None, no_cache=None, sha256=None, url=None):
    said["versions"].append(ver)


def variant(name, default=None, description="", values=None, multi=None, validator=None, when=None, sticky=False):
    said["variants"].append(name)


def depends_on(spec, when=None, type=("build", "link"), patches=None):
    if when is None:
        said["depends"][spec] = [type] if isinstance(type, str) else list(type)


def satisfied(spec):
    """Whether this machine is what the spec asks for."""
    key, _, value = spec.partition("=")
    here = {"platform": sys.platform, "target": platform.machine()}[key]
    return here == value.rstrip(":")


def requires(*requirement_specs, policy="one_of", when=None, msg=None):
    count = sum(map(satisfied, requirement_specs))
    said["requires"].append([*requirement_specs, count == 1 if policy == "one_of" else count > 0])


def join_path(prefix, *args):
    return os.path.join(prefix, *args)


class Prefix(str):
    """prefix.bin, prefix.lib and so on are its folders."""

    def __getattr__(self, name):
        return Prefix(os.path.join(self, name))


class Spec:
    def satisfies(self, spec):
        return False  # no variant is on by default


class MakefilePackage:
    spec = Spec()


def module(name, **content):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__dict__.update(content)


for name in "spack", "spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems":
    module(name)
module("spack.package", **{f.__name__: f for f in (license, version, variant, depends_on, requires, join_path)})
module("spack_repo.builtin.build_systems.makefile", MakefilePackage=MakefilePackage)

recipe, source, prefix = sys.argv[1:]
# What Spack puts into the module when it builds.
scope = {"__name__": "libaccel", "make": lambda *words: subprocess.run(["make", "-j2", *words], check=True, stdout=sys.stderr)}
exec(compile(open(recipe).read(), recipe, "exec"), scope)
package = scope["Libaccel"]()
package.prefix = Prefix(prefix)
said["tarball"] = package.url
os.environ.update(CC="gcc")
os.chdir(source)
package.build(package.spec, package.prefix)
package.install(package.spec, package.prefix)
print(json.dumps(said))
