#!/usr/bin/env -S /usr/bin/python3 -B
"""tests/tap.py FILE [OPTION...]: runs a file of pytest's, and prints TAP, which prove reads. Such a file names this one in
its first line, so that `prove` runs it as any other test; options are pytest's: -k NAME chooses some. For people there is
pytest itself: `/usr/bin/python3 -m pytest FILE`."""

import sys

import pytest

LINES = 60  # of a failure


class Tap:
    """A plug-in of pytest: a line for each test when it has ended, and the plan at the end."""

    def __init__(self):
        self.count = 0

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config):
        # pytest 8 asks for the reporter's writer when it explains a comparison.
        writer = config.get_terminal_writer()
        config.get_terminal_writer = lambda: writer
        config.pluginmanager.unregister(name="terminalreporter")

    def line(self, good, name, why="", details=""):
        self.count += 1
        print(f"{'ok' if good else 'not ok'} {self.count} - {name.replace('#', '')}{why}")
        for line in details.splitlines()[-LINES:]:
            print("#   " + line)
        sys.stdout.flush()

    def pytest_collectreport(self, report):
        if report.failed:
            self.line(False, report.nodeid, details=report.longreprtext)

    def pytest_runtest_logreport(self, report):
        name = report.nodeid.partition("::")[2]
        if report.skipped:
            self.line(True, name, f" # SKIP {report.longrepr[2].removeprefix('Skipped: ')}")
        elif report.failed:
            self.line(False, name if report.when == "call" else f"{name}: {report.when}", details=report.longreprtext)
        elif report.when == "call":
            self.line(True, name)

    def pytest_sessionfinish(self):
        for what in getattr(sys.modules.get("lib.programs"), "LEFT_OUT", ()):
            print("# left out: " + what)
        print(f"1..{self.count}")


if __name__ == "__main__":
    # Each test's own output is in the details of its failure.
    sys.exit(pytest.main([*sys.argv[1:], "--tb=short"], plugins=[Tap()]))
