#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""MPICH and mpi4py of PyPI: ranks are known by MPICH's variables, and take a GPU each."""

import json
from pathlib import Path

from lib.engines import ACCEL, GPU, PYTHON, Logs, needs, run

pytestmark = needs("mpi4py")
RANKS = """
import json, os
from mpi4py import MPI
import numpy as n
a = n.arange(90000.).reshape(300, 300) % 7
seen = MPI.COMM_WORLD.gather((os.getpid(), float((a @ a).sum())))
if seen:
    print(json.dumps(seen))
"""


def test_three_ranks_of_mpich(tmp_path):
    (tmp_path / "ranks.py").write_text(RANKS)
    done = run(tmp_path, [Path(PYTHON).parent / "mpiexec", "-n", 3, ACCEL, "run", "--", PYTHON, "ranks.py"],
               {**GPU, "ACCEL_LOG_FILE": f"{tmp_path}/log.%p", "TESTGPU_DEVICES": "4"})
    ranks, logs = json.loads(done.stdout), Logs(tmp_path)
    assert {total for _, total in ranks} == {242994290.0}
    assert [logs.gpus[pid] for pid, _ in ranks] == [("0", "rank"), ("1", "rank"), ("2", "rank")]
