"""The table of `make regress`."""

import json
import os


class Row:
    """A line of it: begun before the tests of a program in one mode, written after them."""

    def __init__(self, request):
        self.session, self.failed = request.session, request.session.testsfailed

    def write(self, program, mode, lines, comparisons, worst, floor, limit):
        """lines: decisions, None where there was no log. worst, floor: the largest difference with libaccel, and
        without it between two numbers of threads; limit: what is allowed. All three in the same unit."""
        path = os.environ.get("REGRESS_RECORD")
        if not path:
            return
        entry = {"program": program, "mode": mode, "calls": None if lines is None else len(lines),
                 "gpu": 0 if lines is None else sum(f["ran"] == "gpu0" for f in lines), "comparisons": comparisons,
                 "worst": worst, "floor": floor, "limit": limit, "good": self.session.testsfailed == self.failed}
        with open(path, "a") as out:  # one write: several tests append
            out.write(json.dumps(entry) + "\n")
