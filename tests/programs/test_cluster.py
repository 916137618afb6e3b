#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""As clusters start programs (docs/hpc.md): libaccel beside other preloads in the ranks of mpirun, in each order; by
a prolog that prints variables; and in /etc/ld.so.preload, where it is in every program."""

import re
import shutil
import subprocess

import pytest

from lib.log import parse_log
from lib.programs import BUILD, ROOT, RUNTIME, TEST_GPU, TESTS, clean_env

LIBRARY = str(BUILD / "libaccel.so")
BY_PLATFORM = f"{BUILD}/accel-preload/$PLATFORM/libaccel.so"
# A sanitizer has an allocator of its own.
JEMALLOC = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2" if not RUNTIME else str(TESTS / "libwrapper.so")
OBSERVER = str(TESTS / "libobserver.so")
# The ranks are on one machine: about the network, Open MPI 5 writes lines that no two runs have
# alike.
MPIRUN = [
    "mpirun", "--timeout", "150", "--oversubscribe", "--bind-to", "none", "--mca", "btl_vader_single_copy_mechanism",
    "none", "--mca", "btl", "^tcp", "-n", "2"
]
# mpirun refuses to run as root otherwise.
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
GPU = {"ACCEL_CUDA_DIR": TEST_GPU["ACCEL_CUDA_DIR"], "ACCEL_POLICY": "gpu"}
RANKS = TESTS / "ranks"


def run(folder, argv, env):
    return subprocess.run([str(word) for word in argv], cwd=folder, env=clean_env(str(folder)) | env,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace", timeout=200)


def exported(settings):
    """mpirun's words for variables of the ranks."""
    return [word for name, value in settings.items() for word in ("-x", f"{name}={value}")]


# ---- Ranks, beside other preloads ----


def two_ranks(folder, preloads, settings):
    """The finished mpirun, and what the ranks print."""
    settings = {"LD_PRELOAD": ":".join([*RUNTIME, *preloads]), "TEST_OBSERVER": f"{folder}/seen", "ACCEL_LOG": "1",
                "ACCEL_LOG_FILE": f"{folder}/log.%r", **settings}
    done = run(folder, [*MPIRUN, *exported(settings), RANKS], {**AS_ROOT, "TMPDIR": str(folder)})
    return done, sorted(done.stdout.splitlines())


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Without libaccel: what the ranks print, and mpirun's messages."""
    done, ranks = two_ranks(tmp_path_factory.mktemp("ranks"), [], {})
    assert done.returncode == 0, done.stderr
    assert [line.split(":")[0] for line in ranks] == ["rank 0", "rank 1"]
    return ranks, done.stderr


ORDERS = {
    "alone": [LIBRARY], "before other preloads": [LIBRARY, OBSERVER, JEMALLOC],
    "between them": [OBSERVER, LIBRARY, JEMALLOC], "behind them": [JEMALLOC, OBSERVER, LIBRARY]
}


@pytest.mark.parametrize("order", ORDERS)
def test_ranks_beside_other_preloads(order, plain, tmp_path):
    done, ranks = two_ranks(tmp_path, ORDERS[order], GPU)
    decisions = {path.name: [(line["sym"], line["ran"]) for line in parse_log(path.read_text()) if "ran" in line]
                 for path in tmp_path.glob("log.*")}
    assert done.returncode == 0
    assert (ranks, done.stderr) == plain
    assert decisions == {"log.0": [("dgemm_", "gpu0")], "log.1": [("dgemm_", "gpu0")]}
    if OBSERVER in ORDERS[order]:
        seen = (tmp_path / "seen").read_text().splitlines()
        assert len(seen) == 2
        assert all(re.fullmatch(r"ranks started 1 opened [1-9]\d* finished 1", line) for line in seen)


# ---- A prolog, as Slurm's TaskProlog: what it prints as `export NAME=value' is in the task's
# environment ----

PROLOGS = {"not asked for": ({}, None), "asked for": ({"SITE_ACCEL": "1"}, BY_PLATFORM),
           "beside another preload": ({"SITE_ACCEL": "1", "LD_PRELOAD": JEMALLOC}, f"{BY_PLATFORM}:{JEMALLOC}")}


def exports_of_prolog(folder, env):
    """What docs/hpc.md's TaskProlog exports."""
    prolog = re.search(r"(?s)cat >task_prolog.sh <<'END'\n(.*?)\n *END\n", (ROOT / "docs/hpc.md").read_text())
    script = folder / "task_prolog.sh"
    script.write_text(re.sub("(?m)^    ", "", prolog[1]).replace("/opt/libaccel/lib", str(BUILD)) + "\n")
    printed = run(folder, ["sh", script], env)
    exports = dict(re.findall(r"(?m)^export (\w+)=(.*)$", printed.stdout))
    assert printed.returncode == 0, printed.stderr
    assert len(printed.stdout.splitlines()) == len(exports)
    return exports


@pytest.mark.parametrize("env, wanted", PROLOGS.values(), ids=PROLOGS)
def test_task_prolog(env, wanted, tmp_path):
    assert exports_of_prolog(tmp_path, env).get("LD_PRELOAD") == wanted


def test_task_with_the_prologs_variables_is_on_the_gpu(tmp_path):
    exports = exports_of_prolog(tmp_path, PROLOGS["beside another preload"][0])
    settings = {**exports, "LD_PRELOAD": ":".join([*RUNTIME, exports["LD_PRELOAD"]]), **GPU, "ACCEL_LOG": "1"}
    done = run(tmp_path, [*MPIRUN[:-1], "1", *exported(settings), RANKS], {**AS_ROOT, "TMPDIR": str(tmp_path)})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "sym=dgemm_" in done.stderr
    assert "ran=gpu0" in done.stderr


# ---- /etc/ld.so.preload: a copy of /etc in a mount namespace of the test's own ----


@pytest.fixture
def etc(tmp_path):
    """The copy, and the command that enters the namespace."""
    if RUNTIME:
        pytest.skip("a sanitizer's runtime must come first")
    inside = 'mount --bind "$0/etc" /etc && exec "$@"'
    enter = ["unshare", "--mount", "--propagation", "private", "sh", "-c", inside, tmp_path]
    copied = subprocess.run(["cp", "-a", "/etc", tmp_path / "etc"], stderr=subprocess.DEVNULL).returncode
    if copied != 0 or run(tmp_path, [*enter, "true"], {}).returncode != 0:
        pytest.skip("no mount namespace of its own is allowed here")
    (tmp_path / "etc/accel.conf").write_text("ACCEL = 0\n")
    (tmp_path / "etc/ld.so.preload").write_text(LIBRARY + "\n")
    return tmp_path / "etc", enter


SCRIPT = f"""sh -c 'echo from sh'; awk 'BEGIN {{ print "from awk" }}'; {shutil.which('perl')} -e 'print "from perl\\n"'
OMPI_COMM_WORLD_RANK=0 {RANKS}"""


def all_print_the_same(folder, enter, env):
    """Under /etc/ld.so.preload; returns what is on stderr."""
    wanted = run(folder, ["sh", "-c", SCRIPT], AS_ROOT)
    done = run(folder, [*enter, "sh", "-c", SCRIPT], {**AS_ROOT, **GPU, "ACCEL_LOG": "1", **env})
    assert wanted.returncode == 0
    assert (done.returncode, done.stdout) == (0, wanted.stdout), done.stderr
    return done.stderr


def test_etc_ld_so_preload_off_by_etc_accel_conf(etc, tmp_path):
    assert all_print_the_same(tmp_path, etc[1], {}) == ""


def test_etc_ld_so_preload_on_for_one_user(etc, tmp_path):
    assert "ran=gpu0" in all_print_the_same(tmp_path, etc[1], {"ACCEL": "1"})


def test_etc_ld_so_preload_of_a_file_that_is_not_there(etc, tmp_path):
    """A line for each program, which runs all the same."""
    folder, enter = etc
    (folder / "ld.so.preload").write_text("/no/such/libaccel.so\n")
    done = run(tmp_path, [*enter, "sh", "-c", "echo here"], {})
    assert done.stdout == "here\n"
    assert "ERROR: ld.so: object '/no/such/libaccel.so' from /etc/ld.so.preload cannot be preloaded" in done.stderr
