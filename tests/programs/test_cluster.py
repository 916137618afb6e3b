#!/usr/bin/python3 -B
"""As clusters start programs (docs/hpc.md): libaccel beside other preloads in the ranks of mpirun, in each order; by a prolog that prints variables;
and in /etc/ld.so.preload, where it is in every program."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from lib.log import parse_log
from lib.programs import BUILD, RUNTIME, TEST_GPU, TESTS, clean_env
from lib.tap import Tap

LIBRARY = str(BUILD / "libaccel.so")
BY_PLATFORM = f"{BUILD}/accel-preload/$PLATFORM/libaccel.so"
# A sanitizer has an allocator of its own.
JEMALLOC = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2" if not RUNTIME else str(TESTS / "libwrapper.so")
OBSERVER = str(TESTS / "libobserver.so")
# mpirun refuses to run as root otherwise.
MPIRUN = ["mpirun", "--timeout", "150", "--oversubscribe", "--bind-to", "none", "--mca", "btl_vader_single_copy_mechanism", "none", "-n", "2"]
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
GPU = {"ACCEL_CUDA_DIR": TEST_GPU["ACCEL_CUDA_DIR"], "ACCEL_POLICY": "gpu"}
tap = Tap()


def run(folder, argv, env, timeout=200):
    return subprocess.run([str(word) for word in argv], cwd=folder, env=clean_env(str(folder)) | env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace", timeout=timeout)


def logs(folder):
    return {path: parse_log(path.read_text()) for path in Path(folder).glob("log.*")}


# ---- Ranks, beside other preloads ----

plain = None
for label, preloads in (("alone", []), ("before other preloads", [LIBRARY, OBSERVER, JEMALLOC]), ("between them", [OBSERVER, LIBRARY, JEMALLOC]), ("behind them", [JEMALLOC, OBSERVER, LIBRARY])):
    with tempfile.TemporaryDirectory(prefix="accel-cluster-") as folder:
        settings = {"LD_PRELOAD": ":".join([*RUNTIME, *preloads]), "TEST_OBSERVER": f"{folder}/seen", "ACCEL_LOG": "1", "ACCEL_LOG_FILE": f"{folder}/log.%r", **(GPU if preloads else {})}
        exports = [word for name, value in settings.items() for word in ("-x", f"{name}={value}")]
        done = run(folder, [*MPIRUN, *exports, TESTS / "ranks"], {**AS_ROOT, "TMPDIR": folder})
        ranks = sorted(done.stdout.splitlines())
        plain, said = plain or ranks, said if preloads else done.stderr
        seen = Path(folder, "seen").read_text().splitlines() if Path(folder, "seen").exists() else []
        if not preloads:
            tap.ok(done.returncode == 0 and [line.split(":")[0] for line in ranks] == ["rank 0", "rank 1"], "two ranks without libaccel", done.stdout, done.stderr)
            continue
        decisions = {path.name: [(line["sym"], line["ran"]) for line in lines if "ran" in line] for path, lines in logs(folder).items()}
        tap.ok(done.returncode == 0 and ranks == plain and done.stderr == said, f"libaccel {label}: the same output", done.stdout, done.stderr)
        tap.ok(decisions == {"log.0": [("dgemm_", "gpu0")], "log.1": [("dgemm_", "gpu0")]}, f"libaccel {label}: each rank's product is on the GPU", decisions)
        tap.ok(len(seen) == 2 and all(re.fullmatch(r"ranks started 1 opened [1-9]\d* finished 1", line) for line in seen), f"libaccel {label}: the other preload sees both ranks", seen)

# ---- A prolog, as Slurm's TaskProlog: what it prints as `export NAME=value' is in the task's
# environment ----

prolog = re.search(r"(?s)cat >task_prolog.sh <<'END'\n(.*?)\n *END\n", (Path(__file__).resolve().parents[2] / "docs/hpc.md").read_text())
with tempfile.TemporaryDirectory(prefix="accel-cluster-") as folder:
    script = Path(folder, "task_prolog.sh")
    script.write_text(re.sub("(?m)^    ", "", prolog[1]).replace("/opt/libaccel/lib", str(BUILD)) + "\n" if prolog else "exit 9")
    for label, env, want in (("not asked for", {}, None), ("asked for", {"SITE_ACCEL": "1"}, BY_PLATFORM),
                             ("beside another preload", {"SITE_ACCEL": "1", "LD_PRELOAD": JEMALLOC}, f"{BY_PLATFORM}:{JEMALLOC}")):
        printed = run(folder, ["sh", script], env)
        exports = dict(re.findall(r"(?m)^export (\w+)=(.*)$", printed.stdout))
        tap.ok(printed.returncode == 0 and exports.get("LD_PRELOAD") == want and len(printed.stdout.splitlines()) == len(exports), f"docs/hpc.md's TaskProlog, {label}", printed.stdout, printed.stderr)
    exports["LD_PRELOAD"] = ":".join([*RUNTIME, exports.get("LD_PRELOAD", "")])
    done = run(folder, [*MPIRUN[:-1], "1", *(word for name, value in {**exports, **GPU, "ACCEL_LOG": "1"}.items() for word in ("-x", f"{name}={value}")), TESTS / "ranks"], {**AS_ROOT, "TMPDIR": folder})
    tap.ok(done.returncode == 0 and "sym=dgemm_" in done.stderr and "ran=gpu0" in done.stderr, "a task with its variables is on the GPU", done.stdout, done.stderr)

# ---- /etc/ld.so.preload: a copy of /etc in a mount namespace of the test's own ----

with tempfile.TemporaryDirectory(prefix="accel-cluster-") as folder:
    etc = Path(folder, "etc")
    copied = subprocess.run(["cp", "-a", "/etc", etc], stderr=subprocess.DEVNULL).returncode
    inside = 'mount --bind "$0/etc" /etc && exec "$@"'
    unshare = ["unshare", "--mount", "--propagation", "private", "sh", "-c", inside, folder]
    if RUNTIME or copied != 0 or run(folder, [*unshare, "true"], {}).returncode != 0:
        tap.skip("/etc/ld.so.preload", "a sanitizer's runtime must come first" if RUNTIME else "no mount namespace of its own is allowed here")
    else:
        (etc / "accel.conf").write_text("ACCEL = 0\n")
        (etc / "ld.so.preload").write_text(LIBRARY + "\n")
        script = f"""sh -c 'echo from sh'; awk 'BEGIN {{ print "from awk" }}'; {shutil.which('perl')} -e 'print "from perl\\n"'; OMPI_COMM_WORLD_RANK=0 {TESTS}/ranks"""
        want = run(folder, ["sh", "-c", script], AS_ROOT)
        for label, env, logged in (("off by /etc/accel.conf", {}, False), ("on for one user", {"ACCEL": "1"}, True)):
            done = run(folder, [*unshare, "sh", "-c", script], {**AS_ROOT, **GPU, "ACCEL_LOG": "1", **env})
            tap.ok(done.returncode == want.returncode == 0 and done.stdout == want.stdout, f"/etc/ld.so.preload, {label}: all programs print the same", done.stdout, done.stderr)
            tap.ok(("ran=gpu0" in done.stderr) == logged and (logged or not done.stderr), f"/etc/ld.so.preload, {label}: {'the program that calls BLAS is on the GPU' if logged else 'silence'}", done.stderr)
        (etc / "ld.so.preload").write_text("/no/such/libaccel.so\n")
        done = run(folder, [*unshare, "sh", "-c", "echo here"], {})
        tap.ok(done.stdout == "here\n" and "ERROR: ld.so: object '/no/such/libaccel.so' from /etc/ld.so.preload cannot be preloaded" in done.stderr,
               "a file that is not there: a line for each program, which runs all the same", done.stderr)
tap.done()
