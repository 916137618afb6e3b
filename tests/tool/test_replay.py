#!/usr/bin/python3 -B
"""accel replay: the calls of logs of programs run again, on both sides, with every routine and letter of BLAS and LAPACK; results are right
or said to be wrong, and what cannot run again is named with its reason."""

import json
import re
import subprocess
import tempfile
from pathlib import Path

from lib.log import parse_log
from lib.programs import BUILD, DEBIAN_PYTHON, TEST_GPU, clean_env, start
from lib.table import routine_table
from lib.tap import Tap

TOOL = BUILD / "accel"
GPU = {"ACCEL_CUDA_DIR": str(BUILD / "testgpu"), "TESTGPU_DELAY_US": "0", "OPENBLAS_NUM_THREADS": "1"}
LOGGED = {**TEST_GPU, **GPU, "ACCEL_START": "wait", "ACCEL_LOG": "1"}
SIDE = re.compile(r"  (cpu|gpu) +(?:([\d.e+-]+) ms   (?:error ([\d.e+-]+|inf) of the bound(: WRONG)?|its result cannot be judged)|(.+))")
FOLDER = tempfile.TemporaryDirectory()
LOG = Path(FOLDER.name, "log")
tap = Tap()


def replay(*arguments, env=GPU, text=None):
    """Its exit status; {line: (what, {side: (ms, error, fault)})}; {line: reason}; all it says."""
    if text is not None:
        LOG.write_text(text)
    done = subprocess.run([TOOL, "replay", *map(str, arguments or [LOG])], env={**clean_env(FOLDER.name), **env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    run, left_out, at = {}, {}, None
    for line in done.stdout.splitlines():
        head = re.match(re.escape(str(LOG)) + r":(\d+): (.*?)(?:: not run: (.*))?$", line)
        if head and head[3]:
            left_out[int(head[1])] = head[3]
        elif head:
            at = int(head[1])
            run[at] = (head[2], {})
        elif SIDE.fullmatch(line):
            side, ms, error, _, fault = SIDE.fullmatch(line).groups()
            run[at][1][side] = (float(ms or 0), float(error or -1), fault)
    return done.returncode, run, left_out, done.stdout + done.stderr


def line(**fields):
    return "accel pid=1 tid=1 " + " ".join(f"{k}={v}" for k, v in {**fields, "ran": "cpu", "why": fields.get("why", "slower")}.items()) + "\n"


def routine_of(what):
    return re.fullmatch(r"(?:cblas_|LAPACKE_)?(\w+?)_?", what.split()[0])[1]


# ---- A program's log ----

program = "import numpy as n\na = n.arange(40000.).reshape(200, 200) % 7 + 9 * n.eye(200)\nfor i in range(3): a @ a\nn.linalg.solve(a, a); n.linalg.svd(a)"
done = start(DEBIAN_PYTHON, "-c", program, env={**LOGGED, "ACCEL_LOG_FILE": str(LOG)})
lines = {n: fields for n, text in enumerate(LOG.read_text().splitlines(), 1) for fields in parse_log(text)}  # by their numbers in the file
first, second = list(lines)[:2]
status, run, left_out, said = replay()
tap.ok(status == 0 and {what.split()[0] for what, _ in run.values()} == {"cblas_dgemm", "dgesv_", "dgesdd_"} and len(run) == 3, "of equal calls the first", said)
tap.ok(all(sides.keys() == {"cpu", "gpu"} and all(ms > 0 and 0 <= error <= 1 for ms, error, _ in sides.values()) for _, sides in run.values()), "both sides are right", said)
tap.ok(list(left_out.values()) == ["it asked for a size of workspace"], "and a line says what is not run", said)
tap.ok(all(f"{float(lines[n]['ms']):.4g} ms   gpu0, forced" in said for n in run), "beside the log's own time", said)
every = replay(LOG, "--all")
tap.ok(every[0] == 0 and len(every[1]) + len(every[2]) == len(lines), "--all: every line", every[3])
one = replay(LOG, "--line", second)
tap.ok(one[0] == 0 and list(one[1]) == [second], "--line", one[3])
tap.ok(first > 1 and replay(LOG, "--line=1")[0] == 1, "a line of the banner is no call")
LOG.write_text("a line of the program's\n" + LOG.read_text())
tap.ok(replay(LOG, "--line=1")[0] == 1 and list(replay(LOG, "--line", first + 1)[1]) == [first + 1], "which counts the lines of others")
again = [re.sub(r" +[\d.e+-]+ ms", " ms", replay(LOG)[3]) for _ in range(2)]
tap.ok(again[0] == again[1], "the same numbers each time", *again)

no_gpu = replay(LOG, env={"CUDA_VISIBLE_DEVICES": "-1"})
tap.ok(no_gpu[0] == 0 and "no GPU" in no_gpu[3] and all(sides.keys() == {"cpu"} for _, sides in no_gpu[1].values()) and no_gpu[1], "without a GPU the CPU runs alone", no_gpu[3])
wrong = replay(LOG, env={**GPU, "TESTGPU_WRONG": "gemm:1+"})
tap.ok(wrong[0] == 1 and ": WRONG" in wrong[3], "a wrong result is found", wrong[3])

done = start(DEBIAN_PYTHON, "-c", program, env={**LOGGED, "ACCEL_LOG": "json"})
status, run, _, said = replay(text=done.stderr)
tap.ok(status == 0 and len(run) == 3 and "assumed" not in said, "JSON as well, which leaves nothing to be assumed", said)

# ---- Every routine ----

# Letters and sizes at random; the result of most routines is judged.
def decisions(program, *arguments):
    done = start(program, *arguments, env={**LOGGED, "ACCEL_LOG_FILE": str(LOG)})
    return done.returncode == 0


LOG.unlink()
good = all(decisions("random_calls", "-i", interface, "-c", 3, "-n", 60, "-r", "?*") for interface in ("fortran", "cblas-column", "cblas-row"))
good = decisions("random_lapack", "-f", "tyesmv", "-c", 3, "-n", 40, "-o", Path(FOLDER.name, "report"), 1) and good
# OpenBLAS's gesv does nothing without right-hand sides: replay says so. It lacks some routines, and
# calls of a few come to nothing.
text = "".join(text for text in LOG.read_text().splitlines(True) if " nrhs=0 " not in text)
text += "".join(line(sym=f"{letter}gemmt{end}_", args="L,N,T", n=30, k=20) for letter in "sdcz" for end in ("", "r"))
text += line(sym="sbgemm_", args="N,T", m=40, n=30, k=20) + "".join(line(sym=f"{letter}pocon_", args="U", n=30) for letter in "sdcz")
status, run, left_out, said = replay(text=text)
wrong = [what for what, sides in run.values() for _, error, _ in sides.values() if error > 1]
tap.ok(good and status == 0 and not wrong, "random calls of all routines: no wrong result", status, *wrong)
failed = [what for what, sides in run.values() if "library lacks" not in (sides["cpu"][2] or "library lacks")]
tap.ok(not failed, "the CPU succeeds at each that its library has", *failed)
table = {name for row in ("ROUTINE", "LAPACK") for name, op in routine_table(row).items() if "batch" not in op}
seen = {routine_of(what) for what, _ in run.values()}
tap.ok(table <= seen and len(table) > 200, "each routine of BLAS and LAPACK has run", *sorted(table - seen))
unjudged = {routine_of(what)[1:] for what, sides in run.values() if sides["cpu"][1] < 0 and not sides["cpu"][2]}
tap.ok(unjudged <= {"gecon", "pocon", "laswp", "sygv", "hegv", "sygvd", "hegvd", "sygvx", "hegvx", "syevr", "heevr", "syevx", "heevx"}, "all but few are judged", *unjudged)
on_gpu = sum(sides["gpu"][1] >= 0 for _, sides in run.values())
tap.ok(on_gpu > 0.9 * sum(sides["cpu"][1] >= 0 for _, sides in run.values()), "on the GPU, too", on_gpu)

# ---- What a line does not say, and what cannot be run ----

text = line(sym="dgemm_", args="N,T", m=70, n=50, k=30, lda=80, ldb=60, ldc=90, alpha=-1, beta=0) + line(sym="dgemv_", args="T", m=70, n=50, incx=-2, incy=3, lda=100)
status, run, left_out, said = replay(text=text)
tap.ok(status == 0 and len(run) == 2 and all(0 <= error <= 1 for _, sides in run.values() for _, error, _ in sides.values()), "gaps and scalars that the line tells", said)
tap.ok(said.count("assumed") == 1 and "alpha = 1, beta = 1" in said, "what it does not tell is named", said)
text = (line(sym="svm_train", l=100, features=3) + line(sym="dgemm_batch_strided_", args="N,N", m=1, n=1, k=1) + line(sym="dgemm_", args="N,N", m=9, n=9, k=9, why="device_data") +
        line(sym="dnothing_", m=1) + line(sym="dgemm_", args="N,Q", m=9, n=9, k=9) + line(sym="dgemm_", args="N,N", m=9, n=9) + "accel pid=1 tid=1 event=pinned sym=dgemm_ ms=1 est_cpu_ms=2\n")
status, run, left_out, said = replay(text=text)
tap.ok(status == 1 and not run and sorted(left_out) == [1, 2, 3, 4, 5, 6], "a line with the reason for each that cannot be run; nothing run: 1", said)
status, run, left_out, said = replay(text=line(sym="dgemm_", args="N,N", m=2000000, n=2000000, k=2000000))
tap.ok(status == 1 and "memory" in left_out.get(1, ""), "operands beyond the machine's memory", said)
for arguments in ([], [LOG, LOG], [LOG, "--line=0"], [LOG, "--line=x"], [LOG, "--line=1", "--all"]):
    done = subprocess.run([TOOL, "replay", *map(str, arguments)], env=clean_env(FOLDER.name), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    tap.ok(done.returncode == 2 and len(done.stderr.splitlines()) == 1, f"wrong options: {len(arguments)} {arguments[-1:]}", done.stderr)
done = subprocess.run([TOOL, "replay", "/dev/null"], env={**clean_env(FOLDER.name), **GPU}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
tap.ok(done.returncode == 1, "an empty log", done.stderr)
for options in ([], ["--line=1"]):
    LOG.write_text("accel pid=1 tid=1 event=start version=1\n")
    done = subprocess.run([TOOL, "replay", LOG, *options], env={**clean_env(FOLDER.name), **GPU}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    tap.ok((done.returncode, done.stdout, done.stderr) == (1, "", "accel replay: no call in the log\n"), f"a log without a call {options}", done)
evil = {"v": 1, "pid": 1, "tid": 1, "sym": "dgemm_", "args": "N,N", "m": 9, "n": 9, "k": 9, "x": "\x1b[31m", "ran": "\x1b[32m", "why": "\x1b[33m"}
status, run, left_out, said = replay(text=json.dumps(evil) + "\n" + json.dumps(evil | {"sym": "\x1b[31mevil"}) + "\n")
tap.ok(status == 0 and "\x1b" not in said and all(f"?[3{i}m" in said for i in (1, 2, 3)) and "?[31mevil" in said, "a log's words do not act on a terminal", said)
with open("/dev/full", "w") as full:
    done = subprocess.run([TOOL, "replay", LOG], env={**clean_env(FOLDER.name), **GPU}, stdout=full, stderr=subprocess.PIPE, text=True)
tap.ok(done.returncode == 2 and done.stderr == "accel replay: stdout: No space left on device\n", "a full disk", done)
FEW = Path(FOLDER.name, "few")
FEW.write_text(2 * (json.dumps({"v": 1, "pid": 1, "tid": 1, "sym": "dgemm_", "args": "N,N", "m": 9, "n": 9, "k": 9, "ran": "cpu", "why": "slower"}) + "\n"))  # of which the first runs
with open("/dev/full", "w") as full:
    done = subprocess.run([TOOL, "replay", FEW], env={**clean_env(FOLDER.name), **GPU}, stdout=full, stderr=subprocess.PIPE, text=True)
tap.ok(done.returncode == 2 and done.stderr == "accel replay: stdout: No space left on device\n", "a full disk, and nothing more to write at the end", done)
tap.done()
