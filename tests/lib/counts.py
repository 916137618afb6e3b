"""Calls of the driver, and waits for the device, that one call of BLAS makes: counted by the test GPU."""

import re

CALLS = 200
DRIVER = re.compile(r"^testgpu call name=(cu(?!blas|solver)\w+) n=(\d+)", re.M)
# What comes back when the device is done.
WAITS = re.compile(r"cu(Stream|Event|Ctx)Synchronize$|cuMemcpy(HtoD|DtoH|DtoD)(_v2)?$")


def totals(report):
    driver = waits = 0
    for name, count in DRIVER.findall(report):
        driver += int(count)
        waits += int(count) if WAITS.match(name) else 0
    return driver, waits


def per_call(run):
    """(driver calls, waits) of one call. `run` makes so many calls and returns the report; the difference of two runs takes out the start. A
    thread looks at idle memory five times a second, which is less than a call in these."""
    once, twice = totals(run(CALLS)), totals(run(2 * CALLS))
    return tuple((b - a) / CALLS for a, b in zip(once, twice))
