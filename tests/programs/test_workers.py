#!/usr/bin/python3 -B
"""Programs that others start (docs/spark-dask-ray.md): Dask's workers have libaccel by each of the ways that the page names, and by no other; a JVM whose native method
opens a BLAS."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from lib.log import parse_log
from lib.programs import BUILD, DEBIAN_PYTHON, ROOT, RUNTIME, TEST_GPU, TESTS, clean_env
from lib.tap import Tap

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
tap = Tap()


def run(folder, argv, env={}):
    return subprocess.run([str(word) for word in argv], cwd=folder, env=clean_env(str(folder)) | env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace", timeout=250)


def on_gpu(folder):
    return sum(line.get("ran") == "gpu0" for path in Path(folder).glob("log.*") for line in parse_log(path.read_text()))


# ---- Dask: what the page's block sets; the worker has libaccel, and the program itself has not
# ----

page = (ROOT / "docs/spark-dask-ray.md").read_text()
block = re.search(r"(?ms)^```python\n(dask\.config\.set\(.*?)^```", page)
by_config = block[1].replace("/opt/libaccel/lib", str(BUILD)) if block else "none"
for label, way, start, want in (("without libaccel", "main()", [], f"{WANTED} False False"),
                                ("by accel run", "main()", [ACCEL, "run", "--"], f"{WANTED} True True"),
                                ("by pre-spawn-environ", by_config.strip() + "; main()", [], f"{WANTED} True False"),
                                ("by LocalCluster's env, which comes too late", f"main(env={{'LD_PRELOAD': {LIBRARY!r}}})", [], f"{WANTED} False False")):
    if RUNTIME:
        tap.skip(f"Dask, {label}", "a sanitizer's runtime must come first")
        continue
    with tempfile.TemporaryDirectory(prefix="accel-workers-") as folder:
        Path(folder, "cluster.py").write_text(CLUSTER.replace("WAY", way))
        done = run(folder, [*start, DEBIAN_PYTHON, "cluster.py"], {**GPU, **PATIENT, "ACCEL_LOG_FILE": f"{folder}/log.%p"})
        gpu = on_gpu(folder)
        tap.ok(done.returncode == 0 and done.stdout.strip() == want, f"Dask, {label}: the worker's product, libaccel in the worker, in the program: {want}", done.stdout, done.stderr[-2000:])
        tap.ok(gpu == (want.split()[1] == "True"), f"Dask, {label}: calls on the GPU", gpu)

# ---- A JVM ----

if not shutil.which("javac") or RUNTIME:
    tap.skip("a JVM", "a sanitizer's runtime must come first" if RUNTIME else "there is no javac")
else:
    with tempfile.TemporaryDirectory(prefix="accel-workers-") as folder:
        Path(folder, "Product.java").write_text(f"""
class Product {{
    static native double sum();
    public static void main(String[] arguments) throws Exception {{
        System.load("{TESTS}/libjni_product.so");
        int[] none = null;
        int caught = 0;
        for (int i = 0; i < 100000; i++)
            try {{ caught += none[i]; }} catch (NullPointerException e) {{ caught++; }}
        Thread worker = new Thread(() -> System.out.println("thread " + sum()));
        worker.start();
        worker.join();
        System.out.println("main " + sum() + " " + caught);
        System.exit(3);
    }}
}}
""")
        built = run(folder, ["javac", "-J-XX:TieredStopAtLevel=1", "Product.java"])
        java = ["java", "-Xshare:auto", "-XX:+UseSerialGC", "-cp", ".", "Product"]
        plain = run(folder, java)
        done = run(folder, [ACCEL, "run", "--", *java], {**GPU, "ACCEL_LOG_FILE": f"{folder}/log.%p"})
        tap.ok(built.returncode == 0 and (plain.returncode, plain.stdout) == (3, f"thread {float(WANTED)/1e8}E8\nmain {float(WANTED)/1e8}E8 100000\n"), "a JVM without libaccel", built.stderr, plain.stdout, plain.stderr)
        tap.ok((done.returncode, done.stdout, done.stderr) == (3, plain.stdout, plain.stderr), "a JVM with it: the same output and status, its own signals caught", done.stdout, done.stderr)
        tap.ok(on_gpu(folder) == 2, "a JVM: both products on the GPU", on_gpu(folder))
tap.done()
