"""Runs an example as its gallery does: an expression on a line of its own is printed, as notebooks print it, and the numbers
of all figures are written to $GALLERY_OUT. Generators without a seed have one."""

import os
import random
import secrets
import sys
from sys import path as folders

random.seed(0)
secrets.randbits = random.Random(0).getrandbits  # NumPy's source for a generator without a seed


def run(path):
    import cells
    import figures

    sys.argv, folders[0] = [path], os.path.dirname(path)
    globals().update(__file__=path, __doc__=None)
    figures.watch()
    with open("/proc/self/maps", encoding="utf-8") as maps:
        if "/libaccel.so" in maps.read():
            open(f"{figures.OUT}/libaccel", "w", encoding="utf-8").close()  # says that it is in this process
    try:
        exec(cells.program(path), globals())
    finally:
        figures.write_all()


run(sys.argv[1])
