#!/usr/bin/python3 -B
"""accel doctor: what keeps calls from the GPU, and what mends it: a driver, a library or a device that is not there, old or failing, settings, the
calibration. The exit status is 0 where a program's calls go to the GPU."""

import ctypes
import json
import os
import re
import sys
import tempfile
from pathlib import Path

from lib.log import lines_for
from lib.programs import BUILD, NO_GPU, TEST_GPU, start
from lib.tap import Tap
from lib.terminal import on_terminal

TOOL = str(BUILD / "accel")
TESTGPU = BUILD / "testgpu"
FILES = ("libcuda.so.1", "libcublas.so.13", "libcusolver.so.12")
QUICK = {"TESTGPU_DELAY_US": "0", "CUDA_HOME": "/nowhere"}
# Executes a program to which userfaultfd() is forbidden (seccomp); whether the kernel offers its
# asynchronous write protection.
CALL = {"x86_64": 323, "aarch64": 282}[os.uname().machine]
REFUSING = f"""
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, {CALL}), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code))
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program): sys.exit(3)
os.execv(sys.argv[1], sys.argv[1:])
"""
OFFERS = f"""
import ctypes, fcntl, os, struct
faults = ctypes.CDLL(None).syscall({CALL}, os.O_CLOEXEC | os.O_NONBLOCK | 1)
try:
    fcntl.ioctl(faults, 0xc018aa3f, struct.pack("QQQ", 0xaa, 1 << 15 | 1 << 13, 0))
    print(True)
except (OSError, ValueError):
    print(False)
"""
tap = Tap()


def is_there(*names):
    """Whether the dynamic linker finds one of these libraries on this machine."""
    for name in names:
        try:
            return bool(ctypes.CDLL(name))
        except OSError:
            pass
    return False


def rows_of(done):
    """[(state, what, says, fix)] of the text."""
    return re.findall(r"(?m)^(OK|WARN|FAIL) +(\S.*?)  +(.*)\n(?: +-> (.*)\n)?", done.stdout)


def doctor(folder, *arguments, env=None, **options):
    return start(TOOL, "doctor", *arguments, env={**QUICK, "HOME": folder, **(env or {})}, **options)


with tempfile.TemporaryDirectory() as folder:
    GPU = {"ACCEL_CUDA_DIR": str(TESTGPU)}
    model = Path(folder, ".cache/accel/model")
    numbers = iter(range(100))

    def libraries(**changed):
        """A folder of the test GPU's libraries; changed: the bytes of one, None for one that is not there."""
        place = Path(folder, f"libraries{next(numbers)}")
        place.mkdir()
        for file in FILES:
            data = changed.get(file.split(".")[0], b"")
            if data == b"":
                (place / file).symlink_to((TESTGPU / file).resolve())
            elif data is not None:
                (place / file).write_bytes(data)
        return {"ACCEL_CUDA_DIR": str(place)}

    def is_so(name, status, state, what, says, fix, env=None, program=True):
        """A row, the exit status, and whether a program's call under the same settings goes to the GPU."""
        done = doctor(folder, env=env)
        rows = rows_of(done)
        there = any(s == state and w == what and says in t and fix in f for s, w, t, f in rows)
        tap.ok(done.returncode == status and there and ("FAIL" in done.stdout) == (status == 1) and not done.stderr, name, done.returncode, done.stdout, done.stderr)
        if program:
            ran = start("steps", "dgemm:100:2", env={**QUICK, **TEST_GPU, "ACCEL_LOG": "1", "HOME": folder, **(env or {})})
            tap.ok(bool(lines_for(ran, ran="gpu0") or lines_for(ran, ran="gpu1")) == (status == 0), f"{name}: so it is of a program", ran.stderr)
        return rows

    # ---- All is well ----

    rows = is_so("a GPU", 0, "OK", "a call", "dgemm of order 256 ran on gpu0", "", GPU)
    says = {what: text for state, what, text, _ in rows if state == "OK"}
    tap.ok(says["driver"] == f"for CUDA 13.0, {TESTGPU}/libcuda.so.1" and re.fullmatch(rf"13\.\d+\.\d+, {TESTGPU}/libcublas\.so\.13", says["cuBLAS"]) and
           re.fullmatch(rf"12\.\d+\.\d+, {TESTGPU}/libcusolver\.so\.12", says["cuSOLVER"]), "paths and versions", says)
    tap.ok(says["libaccel"].endswith(str(BUILD / "libaccel.so")) and "Test GPU" in says["devices"] and says["config"] == "no config file", "the library, the device, the files", says)
    tap.ok([row for row in rows if row[0] == "WARN"] == [("WARN", "calibration", f"none: libaccel estimates times from the GPU's attributes ({model})", "accel calibrate")],
           "no calibration is worth a warning", rows)
    text, made = doctor(folder, env=GPU), doctor(folder, "--json", env=GPU)
    told = json.loads(made.stdout)
    tap.ok(made.returncode == 0 and told["v"] == 1 and told["gpu"] is True and
           [(row["state"].upper(), row["what"], row["says"], row.get("fix", "")) for row in told["rows"]] == rows_of(text), "--json: the same rows", made.stdout)

    # ---- The driver, cuBLAS, cuSOLVER, the devices ----

    driver = (TESTGPU / FILES[0]).read_bytes()
    old = driver.replace(b"\0cuEventRecord\0", b"\0cuEventRecor~\0")
    tap.ok(old != driver, "an older driver is made")
    if is_there(FILES[0]):
        tap.skip("no driver", "this machine has one")
    else:
        is_so("no driver", 1, "FAIL", "driver", "libcuda.so.1 (the NVIDIA driver) was not found", "install NVIDIA's driver", libraries(libcuda=None))
        is_so("a damaged driver", 1, "FAIL", "driver", "libcuda.so.1 (the NVIDIA driver) was not found", "install NVIDIA's driver", libraries(libcuda=b"no library\n"))
    is_so("an old driver", 1, "FAIL", "driver", "libcuda.so.1 has no cuEventRecord: the driver is too old", "install a driver of CUDA 12", libraries(libcuda=old))
    without = driver.replace(b"\0cuDriverGetVersion\0", b"\0cuDriverGetVersio~\0")
    is_so("a driver without a version", 1, "FAIL", "driver", "libcuda.so.1 has no cuDriverGetVersion: the driver is too old", "install a driver of CUDA 12", libraries(libcuda=without))
    if is_there(FILES[1], "libcublas.so.12"):
        tap.skip("no cuBLAS", "this machine has one")
    else:
        is_so("no cuBLAS", 1, "FAIL", "cuBLAS", "was not found", "install", libraries(libcublas=None))
    if is_there("libcublas.so.12"):
        tap.skip("a device that cuBLAS 13 has no code for", "this machine has cuBLAS 12")
    else:  # 75 and 76 are the compute capability
        is_so("a device that cuBLAS 13 has no code for", 1, "FAIL", "cuBLAS", "fit for the device", "install", {**GPU, "TESTGPU_ATTRIBUTES": "75=7,76=0"})
    is_so("a driver that does not tell its version", 1, "FAIL", "cuBLAS", "was not found", "install", {**GPU, "TESTGPU_FAIL": "cuDriverGetVersion:1+"})
    lacking = (TESTGPU / FILES[1]).read_bytes().replace(b"\0cublasDgeam\0", b"\0cublasDgea~\0")
    is_so("a cuBLAS that lacks a function", 1, "FAIL", "cuBLAS", "libcublas has no cublasDgeam", "install", libraries(libcublas=lacking))
    is_so("no cuSOLVER", 0, "WARN", "cuSOLVER", "LAPACK stays on the CPU", "install", libraries(libcusolver=None))
    no_solver = libraries(libcusolver=(TESTGPU / FILES[2]).read_bytes().replace(b"\0cusolverDnXpotrf\0", b"\0cusolverDnXpotr~\0"))
    is_so("a cuSOLVER that lacks a function", 0, "WARN", "cuSOLVER", "LAPACK stays on the CPU", "install", no_solver)
    for name, env in ("no cuSOLVER", libraries(libcusolver=None)), ("a cuSOLVER that lacks a function", no_solver):
        ran = start("steps", "solve:100:2", "dgemm:100:1", env={**QUICK, **TEST_GPU, "ACCEL_LOG": "1", "HOME": folder, **env})
        tap.ok(ran.returncode == 0 and ran.stdout.count(" 0 wrong") == 2 and len(lines_for(ran, sym="dgesv_", ran="cpu")) == 2 and
               len(lines_for(ran, sym="dgemm_", ran="gpu0")) == 1, f"{name}: a program's LAPACK is right, on the CPU, and its BLAS on the GPU", ran.stdout, ran.stderr)
    is_so("no device", 1, "FAIL", "devices", "CUDA_ERROR_NO_DEVICE; set is CUDA_VISIBLE_DEVICES=-1", "unset that variable", {**GPU, "CUDA_VISIBLE_DEVICES": NO_GPU["CUDA_VISIBLE_DEVICES"]})
    is_so("one of two devices", 0, "WARN", "devices", "passed over: gpu0: its compute mode is prohibited", "ACCEL_DEVICES",
          {**GPU, "TESTGPU_DEVICES": "2", "TESTGPU_MODES": "prohibited,default"})
    is_so("none of two devices", 1, "FAIL", "devices", "gpu1: its compute mode is prohibited", "nvidia-smi",
          {**GPU, "TESTGPU_DEVICES": "2", "TESTGPU_MODES": "failing,prohibited"})
    is_so("a cuBLAS that fails", 1, "FAIL", "a call", "dgemm of order 256 failed on gpu0", "cuBLAS", {**GPU, "TESTGPU_FAIL": "cublasDgemm_v2_64:1+,cublasDgemm_v2:1+,cublasDgemm:1+"}, program=False)

    # ---- Settings and config files ----

    for name, value in ("ACCEL", "0"), ("ACCEL_POLICY", "cpu"), ("ACCEL_DEVICES", "none"):
        is_so(f"{name}={value}", 1, "FAIL", "settings", f"{name}={value}: no call goes to a GPU", f"take {name} out of: environment", {**GPU, name: value})
    for value in "*", "blas:*,lapack:,?*":
        is_so(f"ACCEL_CPU={value}", 1, "FAIL", "settings", f"ACCEL_CPU={value}: no call goes to a GPU, except with operands in device memory", "take ACCEL_CPU out of: environment", {**GPU, "ACCEL_CPU": value})
    is_so("ACCEL_CPU of some routines", 0, "OK", "settings", "ACCEL_CPU=blas2:,lapack:, from: environment", "", {**GPU, "ACCEL_CPU": "blas2:,lapack:"})
    is_so("a setting with an error", 0, "WARN", "settings", "ACCEL_LEARN=perhaps is not understood; allowed: 0,1", "accel config", {**GPU, "ACCEL_LEARN": "perhaps"})
    is_so("a promise with an error", 1, "FAIL", "settings", "a program ends at its first call of BLAS", "mend", {**GPU, "ACCEL_VERIFY": "perhaps"})
    is_so("a setting and where it is", 0, "OK", "settings", f"ACCEL_CUDA_DIR={TESTGPU}, from: environment", "", GPU)
    is_so("the kernels of our own", 0, "OK", "kernels", "built in", "", GPU)
    conf = Path(folder, ".config/accel/accel.conf")
    conf.parent.mkdir(parents=True)
    conf.write_text("ACCEL_SUMMARY=0\n")
    is_so("a config file", 0, "OK", "config", f"{conf} is read", "", GPU)
    is_so("a setting in it", 0, "OK", "settings", f"ACCEL_SUMMARY=0, from: {conf}:1", "", GPU)
    conf.chmod(0o666)
    is_so("a config file that is refused", 0, "WARN", "settings", f"{conf} may be written by all; it is ignored", "", GPU)
    conf.chmod(0o600)

    # ---- MPS ----

    pipes = Path(folder, "pipes")
    asked = {**GPU, "CUDA_MPS_PIPE_DIRECTORY": str(pipes)}
    is_so("MPS that does not run", 0, "WARN", "MPS", f"asked for, but not running in {pipes}", "nvidia-cuda-mps-control -d", asked, program=False)
    pipes.mkdir()
    (pipes / "control").touch()
    is_so("MPS", 0, "OK", "MPS", f"running ({pipes})", "", asked, program=False)
    is_so("MPS, of a driver that cannot be asked", 0, "OK", "MPS", f"running ({pipes})", "", {**asked, "TESTGPU_ATTRIBUTES": "133=-1"}, program=False)
    is_so("a pipe that MPS has left", 0, "WARN", "MPS", f"has ended, or is not for this GPU: its pipe is in {pipes}", "nvidia-cuda-mps-control -d",
          {**asked, "TESTGPU_ATTRIBUTES": "133=0"}, program=False)
    # Without the variable the pipe is looked for in its default folder, where a machine may have
    # one: then the row is another.
    says = dict((what, says) for _, what, says, _ in rows_of(doctor(folder, env={**GPU, "TESTGPU_ATTRIBUTES": "133=0"})))["MPS"]
    ranks = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}
    alone = {**GPU, **ranks, "TESTGPU_ATTRIBUTES": "133=0"}
    if "its pipe is in" in says:
        tap.skip("no MPS", "this machine has it")
    else:
        is_so("no MPS", 0, "OK", "MPS", "not running: processes take turns on the GPU", "", {**GPU, "TESTGPU_ATTRIBUTES": "133=0"}, program=False)
        is_so("no MPS, and ranks that share a GPU", 0, "WARN", "MPS", "not running: 2 ranks take turns on the GPU", "nvidia-cuda-mps-control -d", {**alone, "TESTGPU_DEVICES": "2"}, program=False)
        is_so("no MPS, and a GPU for each rank", 0, "OK", "MPS", "not running: processes take turns", "", {**alone, "TESTGPU_DEVICES": "4"}, program=False)

    # ---- Ranks, and what the kernel can do ----

    is_so("no rank", 0, "OK", "ranks", "this process is no rank of MPI or Slurm", "", GPU, program=False)
    is_so("a rank that shares its GPU", 0, "OK", "ranks", "rank 1 of 4, of which 4 are on this machine; 2 of them share gpu1", "", {**GPU, **ranks, "TESTGPU_DEVICES": "2"}, program=False)
    is_so("a rank with a GPU of its own", 0, "OK", "ranks", "rank 1 of 4, of which 4 are on this machine; gpu1 is this one's alone", "", {**GPU, **ranks, "TESTGPU_DEVICES": "4"}, program=False)
    refused = start(sys.executable, "-c", REFUSING, TOOL, "doctor", env={**QUICK, **GPU, "HOME": folder})
    told = {what: (state, text) for state, what, text, _ in rows_of(refused)}.get("tracking", ("", ""))
    tap.ok(refused.returncode == 0 and told[0] == "OK" and "cannot prove that memory was not written (Linux 6.7 can): userfaultfd: Operation not permitted; matrices that stay on the GPU are compared by digests" in told[1],
           "a kernel that cannot tell whether memory was written", refused.stdout, refused.stderr)
    told = {what: text for _, what, text, _ in rows_of(doctor(folder, env=GPU))}["tracking"]
    able = start(sys.executable, "-c", OFFERS, env={})
    tap.ok(able.stdout.strip() in ("True", "False") and told.startswith("this kernel can prove") == (able.stdout == "True\n"), "and what this one says of itself", told, able.stdout, able.stderr)

    # ---- The calibration ----

    done = start(TOOL, "calibrate", "--seconds=1", env={**QUICK, **GPU, "HOME": folder})
    tap.ok(done.returncode == 0, "accel calibrate", done.stderr)
    is_so("a calibration", 0, "OK", "calibration", f"{model}, 0 hours old", "", GPU, program=False)
    os.utime(model, (0, os.path.getmtime(model) - 10 * 86400 - 600))
    is_so("an older one", 0, "OK", "calibration", f"{model}, 10 days old", "", GPU, program=False)
    is_so("that of another GPU", 0, "WARN", "calibration", "has no figures of this GPU", "accel calibrate", {**GPU, "TESTGPU_NAME": "Other GPU"}, program=False)
    model.write_text(model.read_text()[:-20])
    is_so("a damaged one", 0, "WARN", "calibration", f"{model}: ", "accel calibrate", GPU, program=False)
    for place in (f"{model}/below", f"{conf}/none/model"):
        is_so(f"no place for it: {place}".replace(folder, "HOME"), 0, "WARN", "calibration", f"`accel calibrate` cannot write {place}", "ACCEL_MODEL", {**GPU, "ACCEL_MODEL": place}, program=False)

    # ---- Colour, and what cannot be written ----

    def shown_on_terminal(**env):
        return on_terminal(TOOL, "doctor", env={**QUICK, **GPU, "HOME": folder, **env}, timeout=300).decode()

    tap.ok("\033[32mOK  \033[0m  driver" in shown_on_terminal(TERM="xterm"), "colour on a terminal")
    for name, env in ("NO_COLOR", {"NO_COLOR": "1", "TERM": "xterm"}), ("a terminal without", {"TERM": "dumb"}):
        shown = shown_on_terminal(**env)
        tap.ok("\033" not in shown and "OK    driver" in shown, f"no colour: {name}", shown)
    tap.ok("\033" not in doctor(folder, env=GPU).stdout, "no colour in a pipe")
    with open("/dev/full", "w") as full:
        done = doctor(folder, env=GPU, stdout=full)
    tap.ok(done.returncode == 2 and done.stderr == "accel doctor: the rows cannot be written: No space left on device\n", "a full disk", done.stderr)
    # Longer than a stream's buffer: nothing is left to write at the end.
    with open("/dev/full", "w") as full:
        done = doctor(folder, "--json", env={**GPU, **{f"ACCEL_{name}": "a" * 3000 for name in ("TRACE", "LOG_FILE")}}, stdout=full)
    tap.ok(done.returncode == 2 and done.stderr == "accel doctor: the rows cannot be written: No space left on device\n", "a full disk, and much to write", done.stderr)
    # What it opens, such as a device's file, must not get the number of stdout.
    done = start("/bin/sh", "-c", f"{TOOL} doctor >&-", env=GPU)
    tap.ok(done.returncode == 2 and done.stderr == "accel doctor: the rows cannot be written: Bad file descriptor\n", "a closed stdout", done.returncode, done.stderr)
    done = start("/bin/sh", "-c", f"{TOOL} run -- /bin/sh -c 'ls -l /proc/self/fd >&2' >&-", env=NO_GPU)
    tap.ok(" 0 -> " in done.stderr and " 1 -> /dev/null" not in done.stderr, "a program that accel run starts has it closed, too", done.stderr)
tap.done()
