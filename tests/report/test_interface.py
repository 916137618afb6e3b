#!/usr/bin/python3 -B
"""The surface users see: the log in its forms, the summary, where they go, settings that cannot be read, silence,
the exported names, what the library needs."""

import json
import os
import re
import socket
import subprocess
import tempfile
from pathlib import Path

from lib.log import LINE, table_of, parse_log, said, summaries
from lib.programs import BUILD, LOG, NO_GPU, ROOT, SHIM, TEST_GPU, TESTS, clean_env, exported, start
from lib.table import routine_table
from lib.tap import Tap

tap = Tap()
PROGRAM = ["random_calls", "-i", "cblas-row", "-c", 2, "-n", 30, "-r", "?gemm"]
KEYS = "pid tid sym args layout m n k ran why est_cpu_ms est_gpu_ms ms up_mb down_mb".split()


def read_and_remove(folder):
    return {p.name: p.read_text() for p in sorted(Path(folder).iterdir())}


# ---- The log ----

done = start(*PROGRAM, env={**TEST_GPU, **LOG})
lines = parse_log(done.stderr)
tap.ok(len(lines) == 8, "one line for each call")
raw = done.stderr.splitlines()
tap.ok(all(LINE.fullmatch(line) for line in raw), "lines of key=value, nothing else", *raw)
tap.ok(all([k for k in KEYS if k in f] == list(f) for f in lines), "fields in a fixed order", *lines)
tap.ok(all(f["layout"] == "row" for f in lines), "a row-major call says so")
ran = [f for f in lines if f["ran"] == "gpu0"]
tap.ok(ran and all(float(f["ms"]) > 0 and "up_mb" in f for f in ran), "times and megabytes of what ran")
m, n, k = (int(ran[0][x]) for x in "mnk")
size = {"s": 4, "d": 8, "c": 8, "z": 16}[ran[0]["sym"][6]]
tap.ok(abs(float(ran[0]["down_mb"]) - m * n * size * 1e-6) < 1e-5, "down_mb is C", ran[0])

done = start(*PROGRAM, env={**TEST_GPU, "ACCEL_LOG": "json"})
objects = [o for o in map(json.loads, done.stderr.splitlines()) if "event" not in o]
tap.ok(len(objects) == 8 and all([k for k in KEYS if k in o] == [k for k in o if k in KEYS] for o in objects), "json: the same keys")
tap.ok(all(list(o)[:6] == ["v", "time", "host", "rank", "pid", "tid"] and o["v"] == 1 for o in objects), "json: behind those of every line")
tap.ok(all(type(o["m"]) is int and type(o["ran"]) is str for o in objects), "json: numbers and strings")

done = start(*PROGRAM, env={**TEST_GPU, "ACCEL_LOG": "2"})
events = [line for line in done.stderr.splitlines() if " event=" in line]
kinds = {re.search(r"event=(\w+)", line)[1] for line in events}
tap.ok({"h2d", "d2h", "allocate"} <= kinds, "ACCEL_LOG=2 shows what moved", *events[:5])

# One decision, one write(): lines of 8 threads never mix, even in a pipe.
done = start("random_calls", "-c", 50, "-n", 8, "-r", "?gemm", 8, env={**TEST_GPU, **LOG, "TESTGPU_DELAY_US": "0"})
good = [line for line in done.stderr.splitlines() if LINE.fullmatch(line)]
tap.ok(len(good) == len(done.stderr.splitlines()) and len(parse_log(done.stderr)) == 8 * 4 * 50, "lines of 8 threads do not mix")

# ---- Where it goes ----

with tempfile.TemporaryDirectory() as folder:
    pattern = folder + "/a.%p.%h.%r.%%"
    done = start(*PROGRAM, env={**TEST_GPU, **LOG, "ACCEL_LOG_FILE": pattern, "OMPI_COMM_WORLD_RANK": "7"})
    files = read_and_remove(folder)
    pid = parse_log(next(iter(files.values()), ""))[0]["pid"] if files else ""
    tap.ok(list(files) == [f"a.{pid}.{socket.gethostname()}.7.%"], "%p %h %r %% in ACCEL_LOG_FILE", *files)
    tap.ok(done.stderr == "", "and nothing on stderr", done.stderr)

with tempfile.TemporaryDirectory() as folder:
    target = Path(folder, "target")
    target.write_text("before\n")
    done = start(*PROGRAM, env={**TEST_GPU, **LOG, "ACCEL_LOG_FILE": str(target)})
    tap.ok(target.read_text().startswith("before\naccel "), "a log file is appended to")
    done = start(*PROGRAM, env={**TEST_GPU, **LOG, "ACCEL_LOG_FILE": folder + "/none/log"})
    tap.ok(len(said(done)) == 1 and "ACCEL_LOG_FILE" in said(done)[0] and "(No such file or directory)" in said(done)[0],
           "a log file that cannot be opened is named once", *said(done))
    tap.ok(len(parse_log(done.stderr)) == 8, "and the log goes to stderr")
    if os.geteuid() == 0:
        link = Path(folder, "link")
        link.symlink_to(target)
        os.lchown(link, 65534, 65534)
        length = target.stat().st_size
        done = start(*PROGRAM, env={**TEST_GPU, **LOG, "ACCEL_LOG_FILE": str(link)})
        tap.ok(target.stat().st_size == length and "symbolic link" in done.stderr, "another user's link is not followed")
    else:
        print("ok - # SKIP another user's link: needs root to make one")

with open("/dev/full", "w") as full:
    done = start(*PROGRAM, env={**TEST_GPU, **LOG}, stderr=full)
    tap.ok(done.returncode == 0 and "0 wrong" in done.stdout, "a full disk does not disturb the program")

reader, writer = os.pipe()
os.close(reader)
done = start(*PROGRAM, env={**TEST_GPU, **LOG}, stderr=writer)
os.close(writer)
tap.ok(done.returncode == 0 and "0 wrong" in done.stdout, "a closed pipe does not kill the program", done.returncode)

# ---- The summary ----

done = start(*PROGRAM, env={**TEST_GPU, "ACCEL_SUMMARY": "1"})
table = table_of(done.stderr)
tap.ok(len(table) > 4 and re.fullmatch(r"accel: summary of random_calls, pid \d+: \d+\.\d{3} s", table[0]), "a summary at exit", *table)
tap.ok(re.fullmatch(r"accel: 8 calls of BLAS, LAPACK or machine learning took \d+\.\d{3} s, \d+ % of the time", table[1]), "the share of its calls", *table)
rows = [line.split()[1:] for line in table[3:-2]]
tap.ok(sum(int(row[2]) for row in rows) == 8 and table[-1].split()[:3] == ["accel:", "all", "8"], "that counts every call", *table)
seconds = [float(row[5]) for row in rows if row[5] != "-"]
tap.ok(seconds == sorted(seconds, reverse=True) and len(seconds) > 1, "the longest time first", *table)
whole, outside = float(table[-1].split()[-1]), float(table[-2].split()[-1])
tap.ok(abs(whole - outside - sum(seconds)) < 0.001 * len(table) and table[0].endswith(f" {whole:.3f} s"), "the rows add up to the whole", *table)
done = start(*PROGRAM, env={**TEST_GPU, "ACCEL_SUMMARY": "json"})
found = summaries(done.stderr)
tap.ok(len(found) == 1 and sum(row["calls"] for row in found[0]["rows"]) == found[0]["calls"] == 8, "the same as JSON", done.stderr)
done = start(*PROGRAM, env={**TEST_GPU, "ACCEL_SUMMARY": "1", "ACCEL_LOG": "json"})
tap.ok(len(summaries(done.stderr)) == 1 and "accel: " not in done.stderr, "a summary in a log of JSON is JSON", done.stderr)
done = start("/bin/true", env={**SHIM, "ACCEL_SUMMARY": "1", "ACCEL_LOG": "1"})
tap.ok(done.stderr == "", "a program that calls nothing has none")

# ---- Settings that cannot be read; silence ----

done = start(*PROGRAM, env={**SHIM, "ACCEL_LOG": "3", "ACCEL_POLICY": "GPU", "ACCEL_MEMORY": "lots"})
tap.ok(done.returncode == 0 and len(said(done)) == 3, "three wrong values, three lines", done.stderr)
tap.ok("ACCEL_LOG=3 is not understood; allowed: 0,1,2,json; the default is used" in done.stderr, "which say what is allowed")
done = start("/bin/true", env={**SHIM, "ACCEL_LOG": "3"})
tap.ok(done.stderr == "", "and none in programs that call nothing")
for name, env in {"no GPU": NO_GPU, "test GPU": {**TEST_GPU, "ACCEL_POLICY": "auto"}}.items():
    done = start(*PROGRAM, env=env)
    tap.ok(done.stderr == "" and done.stdout == "8 calls, 0 wrong\n", f"{name}: silent unless asked", done.stderr)
done = start(*PROGRAM, env={**NO_GPU, "ACCEL_POLICY": "gpu"})
tap.ok(len(said(done)) == 1 and "no GPU is used" in said(done)[0], "no GPU where one was asked for: said once")
done = start(*PROGRAM, env={**TEST_GPU, "ACCEL_POLICY": "cpu", **LOG})
tap.ok({f["why"] for f in parse_log(done.stderr)} <= {"user", "empty"}, "ACCEL_POLICY=cpu is logged", done.stderr)
done = start(*PROGRAM, env={**TEST_GPU, **LOG, "TESTGPU_DEVICES": "0"})
tap.ok("CUDA_ERROR_NO_DEVICE" in done.stderr and "0 wrong" in done.stdout, "a driver without a device", done.stderr[:300])

# A setuid program starts with AT_SECURE set: the variables are somebody else's.
if os.geteuid() == 0:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        program = Path(folder, "products")
        program.write_bytes((TESTS / "random_calls").read_bytes())
        library = Path("/usr/lib/x86_64-linux-gnu/libaccel-at-secure-test.so")
        try:
            # The linker preloads into a setuid program only from its own folders, and only setuid
            # libraries.
            library.write_bytes((BUILD / "libaccel.so").read_bytes())
            library.chmod(0o4755)
            program.chmod(0o4755)
            log = Path(folder, "log")
            env = {**clean_env(folder), **TEST_GPU, **LOG, "LD_PRELOAD": library.name, "ACCEL_LOG_FILE": str(log),
                   "ACCEL_SUMMARY": "1"}
            seen = subprocess.run([str(program), "-c", "2", "-r", "?gemm"], env=env, user=65534, group=65534, extra_groups=[],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            tap.ok(seen.returncode == 0 and "0 wrong" in seen.stdout, "a setuid program runs", seen.stderr)
            tap.ok(seen.stderr == "" and not log.exists(), "and libaccel neither reads nor writes there", seen.stderr)
            # That the library was there at all: the same, without the setuid bit.
            program.chmod(0o755)
            env["ACCEL_LOG_FILE"] = "/dev/stderr"
            seen = subprocess.run([str(program), "-c", "2", "-r", "?gemm"], env={**env, "ACCEL_POLICY": "auto"}, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
            tap.ok("accel pid=" in seen.stderr, "as it does without the setuid bit", seen.stderr)
        finally:
            library.unlink(missing_ok=True)
else:
    print("ok - # SKIP a setuid program: needs root to make one")

# ---- Programs that come early, or rearrange their surroundings ----

done = start("start_up", "early", env={**TEST_GPU, **LOG})
tap.ok(done.returncode == 0 and len(parse_log(done.stderr)) == 2, "a constructor that runs before ours is seen, too", done.stderr)
with tempfile.TemporaryDirectory() as folder:
    environment = {**clean_env(folder), **TEST_GPU, **LOG, "ACCEL_CUDA_DIR": str(BUILD / "testgpu"), "ACCEL_MEMORY": "lots"}
    program = str(TESTS / "start_up")
    seen = subprocess.run(["/bin/sh", "-c", 'exec "$0" stderr 2>&-', program], cwd=folder, stdout=subprocess.PIPE,
                          env={**environment, "ACCEL_POLICY": "cpu"})  # CUDA opens files of its own
    tap.ok(seen.returncode == 0 and Path(folder, "data").read_bytes() == b"", "nothing is written to a file that took stderr's place",
           seen.returncode, Path(folder, "data").read_bytes()[:200])
    seen = subprocess.run([program, "folder"], env={**environment, "ACCEL_LOG_FILE": "a%%.log"}, cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    tap.ok(Path(folder, "a%.log").exists(), "a relative ACCEL_LOG_FILE is meant from where the program was started")
    seen = subprocess.run([program, "closed"], env={**environment, "ACCEL_LOG_FILE": "log"}, cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    tap.ok(len(parse_log(Path(folder, "log").read_text())) >= 2, "a log that the program closes is opened again")
for form in "before", "after":
    done = start("forks", form, env={**NO_GPU, "ACCEL_SUMMARY": "json"})
    found = summaries(done.stderr)
    tap.ok([(s["calls"], s["processes"]) for s in found] == [({"before": 3, "after": 4}[form], 2)], f"parent and child have one summary ({form} the first call)", done.stderr)

# ---- The built file ----

listing = subprocess.run(["nm", "-D", "--defined-only", str(BUILD / "libaccel.so")], stdout=subprocess.PIPE, text=True).stdout
with_version = set(re.findall(r"(?m) (\w+)@@ACCEL_UNVERSIONED$", listing))
OURS = {"dlsym", "dlclose", "dlerror", "__cxa_atexit", "R_registerRoutines", "__asan_default_options", "accel_version"}
left = exported(BUILD / "libaccel.so")
wanted = OURS | set(re.findall(r"(\w+);", (BUILD / "symbols.map").read_text().split("local:")[0]))
tap.ok(with_version == left - OURS, "names of libraries have a version, which references to another version pass", *with_version ^ (left - OURS))
tap.ok(left == wanted and len(wanted) > 40, "only the intended names are exported", left ^ wanted)
for kind, prefix in ("ROUTINE", "cblas_"), ("LAPACK", "LAPACKE_"):
    names = "|".join(routine_table(kind))
    internal = rf"|({names})_internal_(64_)?" if kind == "ROUTINE" else ""  # NVPL's
    shape = re.compile(rf"(scipy_)?({prefix})?({names})(_|64_|_64|_64_)?|({names.upper()}){internal}")
    known = {name for name in left if shape.fullmatch(name)}
    tap.ok(len(known) > 40, f"{len(known)} of them are those of {kind} in the known manglings")
    left -= known
tables = "".join(path.read_text() for path in sorted((ROOT / "ops").glob("*/functions.def")))
others = set(re.findall(r"\bM\(name, (\w+)\)|\bFUNCTION\((\w+),[^)]*ACCEL_PLAIN_NAME\)", tables))
words = set(re.findall(r"\bWORD\((\w+), (?!with)", tables))
tap.ok(words == {"train"} and not words & left, "words that programs use as names are not exported", *words & left)
others = {name for pair in others for name in pair if name}
tap.ok(len(others) > 20 and others <= left, f"{len(others)} are functions of libraries that are no BLAS", *others - left)
left -= others
tap.ok(left == OURS,
       "the others are the dynamic linker's, the C library's for exit handlers, R's for packages' "
       "functions, AddressSanitizer's for options, and the version", *left)
dynamic = subprocess.run(["readelf", "-d", str(BUILD / "libaccel.so")], stdout=subprocess.PIPE, text=True).stdout
needed = re.findall(r"NEEDED.*\[(.*)\]", dynamic)
tap.ok(set(needed) <= {"libc.so.6", "libdl.so.2", "libpthread.so.0", "libm.so.6"}, "NEEDED lists libc alone", *needed)
undefined = subprocess.run(["nm", "-D", "--undefined-only", str(BUILD / "libaccel.so")], stdout=subprocess.PIPE, text=True).stdout
tap.ok(not re.search(r"\b(cu[A-Z]|cuda|cublas)\w*", undefined), "no CUDA name is undefined in it", undefined)
tap.done()
