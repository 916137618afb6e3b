#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Programs that others start (docs/spark-dask-ray.md): Dask's workers have libaccel by each of the ways that the page
names, and by no other; a JVM whose native method opens a BLAS."""

import re
import shutil
import subprocess

import pytest

from lib.log import parse_log
from lib.programs import BUILD, DEBIAN_PYTHON, ROOT, RUNTIME, TEST_GPU, TESTS, clean_env

ACCEL, LIBRARY = str(BUILD / "accel"), str(BUILD / "libaccel.so")
GPU = {"ACCEL_CUDA_DIR": TEST_GPU["ACCEL_CUDA_DIR"], "ACCEL_POLICY": "gpu", "ACCEL_LOG": "1"}
CLUSTER = """
import dask, numpy, sys
from distributed import Client, LocalCluster
def product():
    a = numpy.arange(90000.).reshape(300, 300) % 7
    return float((a @ a).sum()), any("libaccel.so" in line for line in open("/proc/self/maps"))
def main(**options):
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, **options) as cluster, Client(cluster) as client:
        print(*client.submit(product).result(), any("libaccel.so" in line for line in open("/proc/self/maps")))
if __name__ == "__main__":
    WAY
"""
WANTED = "242994290.0"
# On a busy machine a worker takes its time.
PATIENT = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "200s", "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "200s"}
pytestmark = pytest.mark.skipif(bool(RUNTIME), reason="a sanitizer's runtime must come first")


def run(folder, argv, env={}):
    return subprocess.run([str(word) for word in argv], cwd=folder, env=clean_env(str(folder)) | env,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace", timeout=250)


def on_gpu(folder):
    return sum(line.get("ran") == "gpu0" for path in folder.glob("log.*") for line in parse_log(path.read_text()))


# ---- Dask: what the page's block sets; the worker has libaccel, and the program itself has not
# ----


def by_config():
    block = re.search(r"(?ms)^```python\n(dask\.config\.set\(.*?)^```", (ROOT / "docs/spark-dask-ray.md").read_text())
    return block[1].replace("/opt/libaccel/lib", str(BUILD)).strip()


# Whether libaccel is in the worker, and in the program.
WAYS = {"without libaccel": ("main()", [], False, False),
        "by accel run": ("main()", [ACCEL, "run", "--"], True, True),
        "by pre-spawn-environ": ("CONFIG; main()", [], True, False),
        "by LocalCluster's env, which comes too late": (f"main(env={{'LD_PRELOAD': {LIBRARY!r}}})", [], False, False)}


@pytest.mark.parametrize("way", WAYS)
def test_dask(way, tmp_path):
    call, start, worker, program = WAYS[way]
    if "CONFIG" in call:
        call = call.replace("CONFIG", by_config())
    (tmp_path / "cluster.py").write_text(CLUSTER.replace("WAY", call))
    done = run(tmp_path, [*start, DEBIAN_PYTHON, "cluster.py"],
               {**GPU, **PATIENT, "ACCEL_LOG_FILE": f"{tmp_path}/log.%p"})
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == f"{WANTED} {worker} {program}"
    assert on_gpu(tmp_path) == worker


# ---- A JVM ----

JAVA = """
class Product {
    static native double sum();
    public static void main(String[] arguments) throws Exception {
        System.load("TESTS/libjni_product.so");
        int[] none = null;
        int caught = 0;
        for (int i = 0; i < 100000; i++)
            try { caught += none[i]; } catch (NullPointerException e) { caught++; }
        Thread worker = new Thread(() -> System.out.println("thread " + sum()));
        worker.start();
        worker.join();
        System.out.println("main " + sum() + " " + caught);
        System.exit(3);
    }
}
"""
COMMAND = ["java", "-Xshare:auto", "-XX:+UseSerialGC", "-cp", ".", "Product"]


@pytest.mark.skipif(not shutil.which("javac"), reason="there is no javac")
def test_jvm(tmp_path):
    """The same output and status, its own signals caught, and both products on the GPU."""
    (tmp_path / "Product.java").write_text(JAVA.replace("TESTS", str(TESTS)))
    built = run(tmp_path, ["javac", "-J-XX:TieredStopAtLevel=1", "Product.java"])
    assert built.returncode == 0, built.stderr
    plain = run(tmp_path, COMMAND)
    shown = f"{float(WANTED) / 1e8}E8"
    assert (plain.returncode, plain.stdout) == (3, f"thread {shown}\nmain {shown} 100000\n"), plain.stderr
    done = run(tmp_path, [ACCEL, "run", "--", *COMMAND], {**GPU, "ACCEL_LOG_FILE": f"{tmp_path}/log.%p"})
    assert (done.returncode, done.stdout, done.stderr) == (3, plain.stdout, plain.stderr)
    assert on_gpu(tmp_path) == 2
