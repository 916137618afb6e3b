"""Logs of programs that never ran, as ACCEL_LOG=json writes them."""

import json
import random

BEGIN = 1795460400  # seconds since 1970


def decision(end, ran="cpu", why="slower", ms=1.0, **fields):
    """A line of a call that ended so many seconds after the beginning."""
    line = {"v": 1, "time": BEGIN + round(end, 9), "host": "node17", "rank": 0, "pid": 4711, "tid": 4711, "sym": "dgemm_"}
    sizes = {} if {"m", "n"} & set(fields) else {"args": "N,N", "m": 100, "n": 100, "k": 100}
    return {**line, **sizes, **fields, "ran": ran, "why": why, "ms": ms, "depth": fields.get("depth", 0)}


def busy(seconds=20, seed=1):
    """Two processes with two threads each: products and eigenvalues of many orders. CUDA has started after 1.2 s, cuSOLVER after 4 s."""
    rng = random.Random(seed)
    lines = []

    def call(t, pid, tid, symbol, cpu, gpu, ready, **sizes):
        on_gpu = gpu < 0.95 * cpu and ready
        ms = (gpu if on_gpu else cpu) * rng.uniform(0.85, 1.2)
        end = t + ms * 1e-3
        why = "faster" if on_gpu else "warming" if gpu < 0.95 * cpu else "slower"
        moved = {"up_mb": 1.5, "down_mb": 0.5, "gpu": "NVIDIA H100 80GB HBM3", "gpu_id": "GPU-1"} if on_gpu else {}
        lines.append(decision(end, "gpu0" if on_gpu else "cpu", why, ms, pid=pid, tid=tid, sym=symbol, **sizes, est_cpu_ms=cpu, est_gpu_ms=gpu, **moved))
        return end

    for pid in (4711, 4720):
        for tid in (pid, pid + 3):
            t = rng.uniform(0, 0.3)
            while t < seconds:
                n = int(10 ** rng.uniform(1.6, 3.9))
                t = call(t, pid, tid, "cblas_dgemm", 2 * n**3 / 6e8 + 0.01, 2 * n**3 / 3e10 + n * n / 9e5 + 0.06, t > 1.2, m=n, n=n, k=n) + rng.expovariate(30)
                if rng.random() < 0.05:
                    n = int(10 ** rng.uniform(2, 3.4))
                    t = call(t, pid, tid, "dsyevd_", 9 * n**3 / 6e7, 9 * n**3 / 1.5e9 + 8, t > 4, args="V,L", n=n)
    lines.append(decision(seconds / 2, "gpu0+cpu", "error", 400, sym="dgetrf_", m=3000, n=3000, est_cpu_ms=100, est_gpu_ms=20))
    return sorted(lines, key=lambda line: line["time"])


def write(path, lines):
    with open(path, "w") as to:
        to.writelines(json.dumps(line) + "\n" for line in lines)
    return str(path)
