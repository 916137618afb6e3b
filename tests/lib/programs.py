"""Running programs with and without libaccel: those that are built from tests/fixtures, and any other."""

import glob
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
from collections import namedtuple
from importlib.metadata import version
from pathlib import Path

from lib.log import check_json

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("BUILD", "build")
TESTS = BUILD / "tests"
DEBIAN_PYTHON = "/usr/bin/python3"
VENV_PYTHON = str(BUILD / "venv/bin/python")

# Programs that are to crash leave no file behind.
resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))

# Programs do not ignore the signals that the caller of the tests ignores, as nohup(1) and shells in
# the background do.
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def debian_has(package, *least):
    """Whether Debian's package of Python has that version or a newer one: its interpreter runs the tests."""
    return tuple(map(int, re.findall(r"\d+", version(package))[:len(least)])) >= least


# Set by `make test-all`: tests that have a short form and a long one take the long one.
LONG = os.environ.get("TEST_LONG") == "1"

# Set by `make test-served`: programs that would have one test GPU in their process have a server
# that owns it (lib/served.py).
SERVED = os.environ.get("TEST_SERVED") == "1"

# A sanitizer's runtime comes before all others, with libaccel and without it: see
# tests/sanitize/run.
RUNTIME = [*filter(None, [os.environ.get("SANITIZER_RUNTIME")])]
UNDER_TSAN = any("libtsan" in path for path in RUNTIME)
SHIM = {"LD_PRELOAD": ":".join([*RUNTIME, str(BUILD / "libaccel.so")])}
# A real GPU of this machine is hidden by the driver's own variable.
NO_GPU = {**SHIM, "CUDA_VISIBLE_DEVICES": "-1"}
# The reference BLAS and LAPACK as a program's own.
REFERENCE = {"LD_LIBRARY_PATH": "/usr/lib/x86_64-linux-gnu/lapack:/usr/lib/x86_64-linux-gnu/blas"}
TEST_GPU = {**SHIM, "ACCEL_CUDA_DIR": str(BUILD / "testgpu"), "ACCEL_POLICY": "gpu"}
PLAIN = {}
LOG = {"ACCEL_LOG": "1"}

Run = namedtuple("Run", "rc stdout stderr files log")

# What a test leaves out because a library is wrong by itself: tests/tap.py says it at the end.
LEFT_OUT = []

# Processes on a device tell each other how busy it is. Those of tests that run at the same time
# must not.
BUSY = tempfile.TemporaryDirectory(prefix="accel-busy-")


# A tests' run may be a task of a job; the programs that it starts are no ranks.
RANKS = ("SLURM_", "OMPI_", "PMI_", "PMIX_", "MPI_LOCAL", "MV2_", "PALS_", "FLUX_")


def clean_env(home):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("ACCEL", "XDG_", "OMP_", "OPENBLAS_", *RANKS))}
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "LD_PRELOAD", "CUDA_VISIBLE_DEVICES", "PYTHONPATH", "PYTHONUNBUFFERED", "NO_COLOR", "CUDA_MPS_PIPE_DIRECTORY"):
        env.pop(name, None)
    if RUNTIME:
        env.update(LD_PRELOAD=":".join(RUNTIME))
    env.update(HOME=home, XDG_RUNTIME_DIR=BUSY.name, LC_ALL="C.UTF-8", PYTHONHASHSEED="0", PYTHONDONTWRITEBYTECODE="1")
    # Two threads everywhere: the number of threads changes the rounding.
    env.update(OPENBLAS_NUM_THREADS="2", OMP_NUM_THREADS="2")
    # Threads that wait for work sleep. By default they spin, for milliseconds behind each product,
    # and take the CPUs from other tests.
    env.update(OPENBLAS_THREAD_TIMEOUT="4", OMP_WAIT_POLICY="passive")
    return env


def placed(env):
    """The environment of a program as the tests have it: by a server where they are to."""
    if not SERVED:
        return env
    from lib.served import check_servers, through_server

    check_servers()
    return through_server(env)


def start(name, *arguments, env=PLAIN, timeout=300, **options):
    """Runs a test program; returns the finished process, its output as text."""
    full = clean_env(tempfile.gettempdir())
    full.update(env)
    full = placed(full)
    path = name if "/" in name else str(TESTS / name)
    done = subprocess.run(
        [path, *map(str, arguments)], env=full, cwd=ROOT, stdin=subprocess.DEVNULL, timeout=timeout,
        stdout=options.pop("stdout", subprocess.PIPE), stderr=options.pop("stderr", subprocess.PIPE),
        text=True, errors="replace", **options,
    )
    check_logs(done.stderr, full)
    for what in re.findall("(?m)^# left out: (.*)", done.stderr or ""):
        leave_out(what)
    return done


def leave_out(what):
    if what not in LEFT_OUT:
        LEFT_OUT.append(what)


def right(done, status=0):
    """Whether a program ended so, and each of its lines says that nothing was wrong."""
    return done.returncode == status and done.stdout.count(" 0 wrong") == done.stdout.count("\n") > 0


def exported(library):
    """The names that a library defines for others, without their versions."""
    listing = subprocess.run(["nm", "-D", "--defined-only", str(library)], stdout=subprocess.PIPE, text=True, check=True).stdout
    return {line.split()[-1].split("@")[0] for line in listing.splitlines() if " A " not in line}


def check_logs(stderr, env):
    """Whatever a test looks at: each line that its programs log in JSON is right by the schema."""
    check_json(stderr or "")
    pattern = env.get("ACCEL_LOG_FILE", "")
    if env.get("ACCEL_LOG") == "json":
        for path in glob.glob(re.sub("%[phr]", "*", pattern).replace("%%", "%")):
            if os.path.isfile(path):
                check_json(Path(path).read_text(errors="replace"))


def run(argv, extra, timeout=180):
    """Runs argv in a folder of its own: @OUT@ stands for its path, and @HOME@ for the one above, where logs go."""
    home = tempfile.mkdtemp(prefix="accel-program-")
    try:
        out = Path(home, "out")
        out.mkdir()
        place = lambda text: text.replace("@OUT@", str(out)).replace("@HOME@", home)
        env = clean_env(home)
        env.update({name: place(value) for name, value in extra.items()})
        env = placed(env)
        done = subprocess.run(
            [place(a) for a in argv], cwd=out, env=env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout,
        )
        files = {p.name: p.read_bytes() for p in sorted(out.iterdir())}
        log = "".join(p.read_text() for p in sorted(Path(home).glob("log.*")))
        check_json(stderr := done.stderr.decode(errors="replace"))
        check_json(log)
        return Run(done.returncode, done.stdout.decode(), stderr, files, log)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Run(-1, "", str(error), {}, "")
    finally:
        shutil.rmtree(home, ignore_errors=True)
