"""TAP, the output of the tests."""

import sys


class Tap:
    def __init__(self):
        self.count = self.failed = 0

    def ok(self, good, name, *details):
        self.count += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.count} - {name}")
        if not good:
            for line in "\n".join(map(str, details)).splitlines()[:30]:
                self.note("  " + line)
        sys.stdout.flush()
        return good

    def note(self, text):
        print("# " + text)

    def skip(self, name, why):
        self.ok(True, f"{name} # SKIP {why}")

    def done(self):
        print(f"1..{self.count}")
        sys.exit(1 if self.failed else 0)
