"""What of the built libraries a result depends on: their code and data, without the commit that they name, so that a commit
of documents or tests has no example run again."""

import hashlib
import re
import subprocess
import tempfile
from pathlib import Path

BUILD_ID = re.compile(rb"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0.{20}", re.DOTALL)


def code(library, commit):
    """The bytes of a library without symbols, debugging information, the linker's digest of both, and the commit's name."""
    with tempfile.TemporaryDirectory(prefix="accel-gallery-") as folder:
        stripped = Path(folder, "stripped")
        subprocess.run(["objcopy", "--strip-all", library, stripped], check=True)
        data = BUILD_ID.sub(b"", stripped.read_bytes())
    return data.replace(commit.encode(), b"") if commit else data


def commit_of(accel):
    """The commit that a build is of, as its tool says; empty if it knows none."""
    said = subprocess.run([accel, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout
    found = re.search(r"(?m)^commit (\w+)$", said)
    return found[1] if found else ""


def digest(libraries, commit):
    found = hashlib.sha256()
    for library in libraries:
        found.update(code(library, commit))
    return found.hexdigest()
