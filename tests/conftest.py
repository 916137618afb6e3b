"""For pytest: failures in what tests share show what was compared, too."""

import pytest

pytest.register_assert_rewrite("lib", "dispatch", "docs", "faults", "gpu", "ops", "packages", "programs", "proof", "reference",
                               "regress", "report", "shim", "suites", "tool")
