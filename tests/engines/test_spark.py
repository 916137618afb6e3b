#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Spark of PyPI (docs/spark-dask-ray.md): the JVM of an executor calls the system's BLAS by MLlib, and workers of Python
compute for a UDF: both on GPUs, by spark.executorEnv. Which routines MLlib asks for."""

import json
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from lib.engines import GPU, LIBRARY, PYTHON, Logs, has, needs, run

pytestmark = [needs("pyspark"), pytest.mark.skipif(not shutil.which("java"), reason="no java")]
JOB = """
import json, os, sys
import numpy as np
from pyspark.ml.linalg import Vectors
from pyspark.ml.regression import LinearRegression
from pyspark.mllib.linalg import Matrices
from pyspark.mllib.linalg.distributed import BlockMatrix
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

N = 256
spark = SparkSession.builder.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
jvm = spark.sparkContext._jvm.dev.ludovic.netlib
natives = [jvm.blas.NativeBLAS, jvm.lapack.NativeLAPACK, jvm.arpack.NativeARPACK]
found = {"natives": [native.getInstance().getClass().getSimpleName() for native in natives]}

draw = np.random.default_rng(7)
a = draw.integers(-4, 5, (N, N)).astype(float)
block = Matrices.dense(N, N, a.ravel(order="F"))
blocks = BlockMatrix(spark.sparkContext.parallelize([((0, 0), block)], 1), N, N)
found["product"] = bool((blocks.multiply(blocks).toLocalMatrix().toArray() == a @ a).all())

x = draw.standard_normal((120, 6))
weights = np.arange(1., 7.)
rows = spark.createDataFrame([(float(y), Vectors.dense(r)) for y, r in zip(x @ weights, x)], ["label", "features"]).repartition(1)
fitted = LinearRegression(solver="normal").fit(rows).coefficients.toArray()
found["normal equations"] = bool(np.abs(fitted - weights).max() < 1e-6)

@udf("double")
def total(n):
    import numpy
    ones = numpy.ones((300, 300))
    return float((ones @ ones).sum()) + n

found["udf"] = sorted(row[0] for row in spark.range(2).repartition(2).select(total("id")).collect())
print("FOUND", json.dumps(found))
spark.stop()
"""


@pytest.fixture(scope="module")
def spark():
    home = subprocess.run([PYTHON, "-c", "import pyspark; print(*pyspark.__path__)"], stdout=subprocess.PIPE, text=True, check=True)
    return Path(home.stdout.strip())


def references(spark, jar, name):
    """The names that a class of one of Spark's files refers to."""
    (path,) = (spark / "jars").glob(jar)
    with zipfile.ZipFile(path) as archive:
        return set(re.findall(rb"\b[sd](?:spr|ppsv|gemm|gemv|syr)\b", archive.read(name)))


def test_als_and_normal_equations_ask_for_packed_routines(spark):
    """libaccel does not intercept these: docs/routines.md."""
    assert references(spark, "spark-mllib_*.jar", "org/apache/spark/mllib/linalg/CholeskyDecomposition$.class") == {b"dppsv"}
    assert references(spark, "spark-mllib_*.jar", "org/apache/spark/ml/recommendation/ALS$NormalEquation.class") == {b"dspr"}


def test_a_job_on_a_local_cluster_and_a_udf(spark, tmp_path):
    (tmp_path / "job.py").write_text(JOB)
    env = {**GPU, "LD_PRELOAD": LIBRARY, "ACCEL_LOG_FILE": f"{tmp_path}/log.%p", "TESTGPU_DEVICES": "4", "SPARK_LOCAL_IP": "127.0.0.1"}
    settings = {"spark.master": "local-cluster[1,2,1024]", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
                "spark.sql.shuffle.partitions": "1", "spark.driver.bindAddress": "127.0.0.1",
                **{f"spark.executorEnv.{name}": value for name, value in env.items()}}
    (tmp_path / "settings").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    done = run(tmp_path, [spark / "bin/spark-submit", "--properties-file", "settings", "job.py"], {
        "SPARK_HOME": str(spark), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": PYTHON, "PYSPARK_DRIVER_PYTHON": PYTHON})
    found = json.loads(re.search("(?m)^FOUND (.*)", done.stdout)[1])
    assert found == {"natives": ["JNIBLAS", "JNILAPACK", "JNIARPACK"], "product": True, "normal equations": True,
                     "udf": [27e6, 27e6 + 1]}
    logs = Logs(tmp_path)
    # The driver has not libaccel: its own products are in no log.
    (executor,) = logs.on_gpu("dgemm_")
    assert logs.programs[executor] == "java"
    workers = logs.on_gpu("cblas_dgemm") | logs.on_gpu("scipy_cblas_dgemm64_")
    assert {logs.programs[pid] for pid in workers} <= {"python", "python3"}
    assert len(workers) > 0
    assert len({logs.gpus[pid] for pid in workers | {executor}}) == len(workers) + 1
