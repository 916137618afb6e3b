"""own_tests.py OUT [CHOSEN]: runs scikit-learn's own tests of its support vector machines and of LogisticRegression, or only those that the file CHOSEN
names. Writes to OUT, for each that calls liblinear's train(), a line with its outcome and its name."""

import sys
from pathlib import Path

import pytest
import sklearn
from sklearn.svm import _base


class Callers:
    """pytest's plug-in, which stands for scikit-learn's module _liblinear and counts the calls."""

    def __init__(self, module, chosen):
        self.module, self.chosen = module, chosen
        self.calls, self.outcome, self.callers = 0, {}, []

    def __getattr__(self, name):
        return getattr(self.module, name)

    def train_wrap(self, *arguments):
        self.calls += 1
        return self.module.train_wrap(*arguments)

    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items if not self.chosen or item.nodeid in self.chosen]

    def pytest_runtest_setup(self):
        self.calls = 0

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed":
            self.outcome[report.nodeid] = report.outcome

    def pytest_runtest_teardown(self, item):
        if self.calls:
            self.callers.append(item.nodeid)


def main(*file):
    named = [line.split(maxsplit=1)[1] for path in file for line in Path(path).read_text().splitlines()]
    callers = _base.liblinear = Callers(_base.liblinear, set(named))
    # Output that is captured by its file would take libaccel's log. Tests' names begin with their path from the root.
    pytest.main(["-p", "no:cacheprovider", "--capture=sys", "-q", "-q", "--no-summary", f"--rootdir={Path(sklearn.__file__).parent}", "--pyargs",
                 "sklearn.svm.tests", "sklearn.linear_model.tests.test_logistic", "-k", "not (lbfgs or newton or sag or array_api)"], plugins=[callers])
    Path(sys.argv[1]).write_text("".join(f"{callers.outcome.get(test)} {test}\n" for test in callers.callers))


main(*sys.argv[2:])
