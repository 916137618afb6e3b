#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Dask of PyPI (docs/spark-dask-ray.md): a cluster's workers compute on the GPUs, one on each; what dask.array and joblib
compute is right."""

import json

from lib.engines import ACCEL, GPU, LIBRARY, PYTHON, Logs, needs, run

pytestmark = needs("distributed")
# On a busy machine a worker takes its time.
PATIENT = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "200s", "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "200s"}
FOUR = {**GPU, **PATIENT, "TESTGPU_DEVICES": "4"}
JOBS = """
import json, os, sys
import dask, dask.array as da, numpy as np
from distributed import Client, LocalCluster

def product(_):
    a = np.arange(90000.).reshape(300, 300) % 7
    return os.getpid(), float((a @ a).sum())

def near(found, wanted):
    return bool(np.abs(np.asarray(found) - wanted).max() < 1e-8)

def array_jobs():
    draw = np.random.default_rng(0)
    x, b = draw.standard_normal((600, 40)), draw.standard_normal((200, 200))
    a = x.T @ x + 40 * np.eye(40)
    tall, square, definite = da.from_array(x, chunks=(150, 40)), da.from_array(b, chunks=100), da.from_array(a, chunks=20)
    q, r = da.linalg.tsqr(tall)
    factor = da.linalg.cholesky(definite, lower=True)
    return {"svd": near(da.linalg.svd(tall)[1], np.linalg.svd(x, compute_uv=False)), "tsqr": near(q @ r, x),
            "product": near(square @ square, b @ b), "cholesky": near(factor @ factor.T, a),
            "solve": near(a @ da.linalg.solve(definite, definite[:, 0]).compute(), a[:, 0])}

def grid_by_joblib():
    import joblib
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.model_selection import GridSearchCV
    x = np.random.default_rng(1).standard_normal((120, 6))
    search = GridSearchCV(KernelRidge(kernel="rbf"), {"alpha": [.01, .1, 1]}, cv=3)
    here = search.fit(x, x[:, 0] ** 2).cv_results_["mean_test_score"]
    with joblib.parallel_backend("dask"):
        return near(search.fit(x, x[:, 0] ** 2).cv_results_["mean_test_score"], here)

if __name__ == "__main__":
    if len(sys.argv) > 1:
        dask.config.set({"distributed.nanny.pre-spawn-environ.LD_PRELOAD": sys.argv[1]})
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        seen = client.gather([client.submit(product, i, workers=[w], pure=False)
                              for i, w in enumerate(client.scheduler_info()["workers"])])
        print(json.dumps({"products": seen, "jobs": array_jobs(), "grid": grid_by_joblib()}))
"""


def jobs(folder, start=(), *arguments):
    (folder / "jobs.py").write_text(JOBS)
    done = run(folder, [*start, PYTHON, "jobs.py", *arguments], {**FOUR, "ACCEL_LOG_FILE": f"{folder}/log.%p"})
    found = json.loads(done.stdout)
    assert set(found["jobs"].values()) == {found["grid"]} == {True}, found
    assert {total for _, total in found["products"]} == {242994290.0}
    return {pid for pid, _ in found["products"]}, Logs(folder)


def test_by_pre_spawn_environ_each_worker_has_a_gpu(tmp_path):
    workers, logs = jobs(tmp_path, (), LIBRARY)
    assert len(workers) == 2
    assert {pid: logs.gpus.get(pid) for pid in workers}.keys() == logs.gpus.keys()
    assert sorted(logs.gpus.values()) == [("0", "fewest"), ("1", "fewest")]
    assert workers <= logs.on_gpu("cblas_dgemm") | logs.on_gpu("scipy_cblas_dgemm64_")


def test_by_accel_run_the_program_has_one_too(tmp_path):
    workers, logs = jobs(tmp_path, (ACCEL, "run", "--"))
    assert workers < logs.gpus.keys()
    assert sorted(index for index, _ in logs.gpus.values()) == ["0", "1", "2"]
