#!/usr/bin/python3 -B
"""Random products in every interface, integer width and type: right, and nothing else touched. Sizes with 0
and 1, all flags, ld > rows, NaN in C where beta is 0, callers without hidden lengths, 8 threads."""

from common import BUILD, LOG, NO_GPU, SHIM, TEST_GPU, Tap, lines_for, said, start

INTERFACES = ["fortran", "no-lengths", "cblas-column", "cblas-row"]
PROGRAMS = {"LP64": "random_products", "ILP64": "random_products64"}
MODES = {
    "no GPU": NO_GPU,
    "ACCEL=0": {**SHIM, "ACCEL": "0"},
    "test GPU": TEST_GPU,
    "test GPU without delays": {**TEST_GPU, "TESTGPU_DELAY_US": "0"},
    "CUDA 12, no 64-bit functions": {**TEST_GPU, "ACCEL_CUDA_DIR": str(BUILD / "testgpu-cuda12")},
}

tap = Tap()


def right(name, program, arguments, env, on_gpu):
    done = start(program, *arguments, env={**env, **LOG})
    tap.ok(done.returncode == 0 and "0 wrong" in done.stdout, name, done.stdout, done.stderr[-800:])
    lines = lines_for(done)
    if on_gpu:
        other = [f for f in lines if f["ran"] != "gpu0" and f["why"] != "empty"]
        tap.ok(lines and not other and not said(done), f"{name}: all ran on the test GPU", *other[:5], *said(done))
    return lines


for width, program in PROGRAMS.items():
    for interface in INTERFACES:
        done = start(program, "-i", interface, "-c", 30)
        tap.ok(done.returncode == 0, f"{width} {interface}, without libaccel", done.stderr)
        for mode, env in MODES.items():
            right(f"{width} {interface}, {mode}", program, ["-i", interface, "-c", 60], env, "GPU" in mode and env.get("ACCEL_POLICY"))

for width, program in PROGRAMS.items():
    lines = right(f"{width}, 8 threads", program, ["-c", 40, "-n", 60, 8], TEST_GPU, True)
    tap.ok(len({f["tid"] for f in lines}) == 8, f"{width}: 8 threads in the log")
    tap.ok(len(lines) == 8 * 4 * 40, f"{width}: one line for each call, {len(lines)}")

right("8 threads, hidden behind one another", "random_products", ["-c", 10, "-n", 100, 8],
      {**TEST_GPU, "TESTGPU_DELAY_US": "2000"}, True)

# Other libraries as the original; a CBLAS that calls the Fortran name is decided once.
FOLDERS = {"reference": "blas", "BLIS": "blis-pthread", "OpenBLAS": "openblas-pthread"}
for library, folder in FOLDERS.items():
    for interface in ("fortran", "cblas-column", "cblas-row"):
        for mode, env in {"no GPU": NO_GPU, "test GPU": TEST_GPU}.items():
            path = {"LD_LIBRARY_PATH": f"/usr/lib/x86_64-linux-gnu/{folder}"}
            lines = right(f"{library}, {interface}, {mode}", "random_products", ["-i", interface, "-c", 10],
                          {**env, **path}, env is TEST_GPU)
            tap.ok(len(lines) == 40, f"{library}, {interface}, {mode}: each call decided once", len(lines))

# Tiles: what may be used holds a part of the operands; the device is smaller than they are.
for name, extra in {"ACCEL_MEMORY": {"ACCEL_MEMORY": "400K"}, "a small device": {"TESTGPU_MEMORY": "5M"}}.items():
    for interface in ("fortran", "cblas-row"):
        right(f"tiles, {name}, {interface}", "random_products", ["-i", interface, "-c", 12, "-n", 300],
              {**TEST_GPU, **extra}, True)
right("tiles, 8 threads", "random_products", ["-c", 4, "-n", 200, 8], {**TEST_GPU, "ACCEL_MEMORY": "3M"}, False)

# A planted fault must be seen: the check itself is checked.
done = start("random_products", "-c", 10, env={**TEST_GPU, "TESTGPU_WRONG": "3"})
tap.ok(done.returncode == 1 and "1 wrong" in done.stdout, "one wrong element is noticed", done.stdout)
tap.done()
