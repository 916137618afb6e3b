#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""accel doctor: what keeps calls from the GPU, and what mends it: a driver, a library or a device that is not there,
old or failing, settings, the calibration. The exit status is 0 where a program's calls go to the GPU."""

import ctypes
import json
import os
import re
import sys

import pytest

from lib.log import lines_for
from lib.programs import BUILD, NO_GPU, TEST_GPU, start
from lib.terminal import on_terminal

TOOL = str(BUILD / "accel")
TESTGPU = BUILD / "testgpu"
FILES = ("libcuda.so.1", "libcublas.so.13", "libcusolver.so.12")
GPU = {"ACCEL_CUDA_DIR": str(TESTGPU)}
QUICK = {"TESTGPU_DELAY_US": "0", "CUDA_HOME": "/nowhere"}
RANKS = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
         "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}
NO_MPS = {**GPU, "TESTGPU_ATTRIBUTES": "133=0"}
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


def unless_there(*names):
    """Skips the test where the dynamic linker finds one of these libraries on this machine."""
    for name in names:
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        pytest.skip(f"this machine has {name}")


def rows_of(done):
    """[(state, what, says, fix)] of the text."""
    return re.findall(r"(?m)^(OK|WARN|FAIL) +(\S.*?)  +(.*)\n(?: +-> (.*)\n)?", done.stdout)


def says_of(done):
    """what -> says."""
    return {what: says for _, what, says, _ in rows_of(done)}


def doctor(folder, *arguments, env=None, **options):
    return start(TOOL, "doctor", *arguments, env={**QUICK, "HOME": str(folder), **(env or {})}, **options)


def check(folder, status, state, what, says, fix, env, program=True):
    """A row, the exit status, and whether a program's call under the same settings goes to the GPU."""
    done = doctor(folder, env=env)
    rows = rows_of(done)
    assert [row for row in rows if row[:2] == (state, what) and says in row[2] and fix in row[3]], done.stdout
    assert done.returncode == status
    assert ("FAIL" in done.stdout) == (status == 1)
    assert not done.stderr
    if program:
        ran = start("steps", "dgemm:100:2", env={**QUICK, **TEST_GPU, "ACCEL_LOG": "1", "HOME": str(folder), **env})
        on_gpu = lines_for(ran, ran="gpu0") or lines_for(ran, ran="gpu1")
        assert bool(on_gpu) == (status == 0), ran.stderr
    return rows


def libraries(folder, **changed):
    """A folder of the test GPU's libraries; changed: the bytes of one, None for one that is not there."""
    for file in FILES:
        data = changed.get(file.split(".")[0], b"")
        if data == b"":
            (folder / file).symlink_to((TESTGPU / file).resolve())
        elif data is not None:
            (folder / file).write_bytes(data)
    return {"ACCEL_CUDA_DIR": str(folder)}


def lacking(file, function):
    """The bytes of one of the test GPU's libraries, without this function's name."""
    data = (TESTGPU / file).read_bytes()
    less = data.replace(b"\0%s\0" % function, b"\0%s~\0" % function[:-1])
    assert less != data
    return less


# ---- All is well ----


@pytest.fixture
def well(tmp_path):
    """The rows of a test GPU, and what those that are well say."""
    rows = check(tmp_path, 0, "OK", "a call", "dgemm of order 256 ran on gpu0", "", GPU)
    return rows, {what: text for state, what, text, _ in rows if state == "OK"}


def test_paths_and_versions(well):
    says = well[1]
    assert says["driver"] == f"for CUDA 13.0, {TESTGPU}/libcuda.so.1"
    assert re.fullmatch(rf"13\.\d+\.\d+, {TESTGPU}/libcublas\.so\.13", says["cuBLAS"])
    assert re.fullmatch(rf"12\.\d+\.\d+, {TESTGPU}/libcusolver\.so\.12", says["cuSOLVER"])


def test_the_library_the_device_the_files(well):
    says = well[1]
    assert says["libaccel"].endswith(str(BUILD / "libaccel.so"))
    assert "Test GPU" in says["devices"]
    assert says["config"] == "no config file"


def test_no_calibration_is_worth_a_warning(well, tmp_path):
    said = f"none: libaccel estimates times from the GPU's attributes ({tmp_path}/.cache/accel/model)"
    assert [row for row in well[0] if row[0] == "WARN"] == [("WARN", "calibration", said, "accel calibrate")]


def test_json_has_the_same_rows(tmp_path):
    text, made = doctor(tmp_path, env=GPU), doctor(tmp_path, "--json", env=GPU)
    assert made.returncode == 0
    told = json.loads(made.stdout)
    assert told["v"] == 1
    assert told["gpu"] is True
    assert [(row["state"].upper(), row["what"], row["says"], row.get("fix", ""))
            for row in told["rows"]] == rows_of(text)


# ---- The driver, cuBLAS, cuSOLVER, the devices ----


@pytest.mark.parametrize("data", [None, b"no library\n"], ids=["none", "a damaged one"])
def test_no_driver(tmp_path, data):
    unless_there(FILES[0])
    env = libraries(tmp_path, libcuda=data)
    check(tmp_path, 1, "FAIL", "driver", "libcuda.so.1 (the NVIDIA driver) was not found",
          TO_CONTAINER if IN_CONTAINER else "install NVIDIA's driver", env)


NO_DEVICE = "there is no NVIDIA GPU here: programs run on the CPU, unchanged"
TO_CONTAINER = "docker run --gpus all, podman run --device nvidia.com/gpu=all, apptainer exec --nv"
IN_CONTAINER = any(map(os.path.exists, ("/.dockerenv", "/run/.containerenv"))) or any(
    name in os.environ for name in ("container", "KUBERNETES_SERVICE_HOST", "APPTAINER_CONTAINER",
                                    "SINGULARITY_CONTAINER"))
NODES = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg", "/dev/nvgpu", "/dev/nvhost-gpu", "/dev/nvmap")


def doctor_beside(folder, devices, env):
    """Where the PCI bus has these devices: {name: {file: content}}."""
    if any(os.path.exists(node) for node in NODES):
        pytest.skip("this machine has files of NVIDIA's driver")
    bus = "/sys/bus/pci/devices"
    if not os.path.isdir(bus) or start("/usr/bin/unshare", "-rm", "mount", "-t", "tmpfs", "none", bus).returncode != 0:
        pytest.skip("nothing can be mounted in a namespace")
    put = [f"mkdir {bus}/{name}" + "".join(f"; echo {text} >{bus}/{name}/{file}" for file, text in files.items())
           for name, files in devices.items()]
    done = start("/usr/bin/unshare", "-rm", "sh", "-c", "; ".join([f"mount -t tmpfs none {bus}", *put, 'exec "$@"']),
                 "sh", TOOL, "doctor", env={**QUICK, "HOME": str(folder), **env})
    assert done.returncode == 1
    return rows_of(done)


GRAPHICS = {"vendor": "0x10de", "class": "0x030000"}
OTHERS = {"0000:00:02.0": {"vendor": "0x8086", "class": "0x030000"},
          "0000:01:00.1": {"vendor": "0x10de", "class": "0x040300"}}


@pytest.mark.parametrize("container", [{}, {"container": "podman"}, {"APPTAINER_CONTAINER": "/x.sif"}],
                         ids=lambda env: "".join(env) or "none")
@pytest.mark.parametrize("there", [False, True])
def test_no_driver_where_a_device_is_and_is_not(tmp_path, there, container):
    unless_there(FILES[0])
    rows = doctor_beside(tmp_path, {**OTHERS, **({"0000:01:00.0": GRAPHICS} if there else {})}, container)
    (row,) = [row for row in rows if row[1] in ("driver", "devices")]
    assert row[:3] == ("FAIL", "driver" if there else "devices",
                       "libcuda.so.1 (the NVIDIA driver) was not found" if there else NO_DEVICE)
    if container or IN_CONTAINER:
        assert TO_CONTAINER in row[3]
    else:
        assert row[3].startswith("install NVIDIA's driver" if there else "`accel estimate`")


def test_a_driver_without_a_device(tmp_path):
    """As of an image that has CUDA."""
    rows = doctor_beside(tmp_path, OTHERS, {"LD_LIBRARY_PATH": str(TESTGPU), "TESTGPU_DEVICES": "0"})
    assert [row[:3] for row in rows if row[1] in ("driver", "devices")] == [
        ("OK", "driver", f"for CUDA 13.0, {TESTGPU}/libcuda.so.1"), ("FAIL", "devices", NO_DEVICE)]


@pytest.mark.parametrize("function", ["cuEventRecord", "cuDriverGetVersion"])
def test_an_old_driver(tmp_path, function):
    env = libraries(tmp_path, libcuda=lacking(FILES[0], function.encode()))
    says = f"libcuda.so.1 has no {function}: the driver is too old"
    check(tmp_path, 1, "FAIL", "driver", says, "install a driver of CUDA 12", env)


def test_no_cublas(tmp_path):
    unless_there(FILES[1], "libcublas.so.12")
    check(tmp_path, 1, "FAIL", "cuBLAS", "was not found", "install", libraries(tmp_path, libcublas=None))


def test_a_device_that_cublas_13_has_no_code_for(tmp_path):
    unless_there("libcublas.so.12")
    capability = {"TESTGPU_ATTRIBUTES": "75=7,76=0"}
    check(tmp_path, 1, "FAIL", "cuBLAS", "fit for the device", "install", {**GPU, **capability})


def test_a_driver_that_does_not_tell_its_version(tmp_path):
    rows = check(tmp_path, 1, "FAIL", "cuBLAS", "and a driver of unknown version, was not found", "install",
                 {**GPU, "TESTGPU_FAIL": "cuDriverGetVersion:1+"})
    assert [says for _, what, says, _ in rows if what == "driver"] == [
        f"for CUDA of unknown version, {TESTGPU}/libcuda.so.1"]


def test_a_cublas_that_lacks_a_function(tmp_path):
    env = libraries(tmp_path, libcublas=lacking(FILES[1], b"cublasDgeam"))
    check(tmp_path, 1, "FAIL", "cuBLAS", "libcublas has no cublasDgeam", "install", env)


@pytest.mark.parametrize("function", [None, b"cusolverDnXpotrf"],
                         ids=["no cuSOLVER", "a cuSOLVER that lacks a function"])
def test_without_cusolver_lapack_is_right_on_the_cpu_and_blas_on_the_gpu(tmp_path, function):
    env = libraries(tmp_path, libcusolver=function and lacking(FILES[2], function))
    check(tmp_path, 0, "WARN", "cuSOLVER", "LAPACK stays on the CPU", "install", env)
    ran = start("steps", "solve:100:2", "dgemm:100:1", env={**QUICK, **TEST_GPU, "ACCEL_LOG": "1",
                                                            "HOME": str(tmp_path), **env})
    assert ran.returncode == 0
    assert ran.stdout.count(" 0 wrong") == 2
    assert len(lines_for(ran, sym="dgesv_", ran="cpu")) == 2
    assert len(lines_for(ran, sym="dgemm_", ran="gpu0")) == 1


@pytest.mark.parametrize("status, state, says, fix, env", [
    pytest.param(1, "FAIL", "CUDA_ERROR_NO_DEVICE; set is CUDA_VISIBLE_DEVICES=-1", "unset that variable",
                 {"CUDA_VISIBLE_DEVICES": NO_GPU["CUDA_VISIBLE_DEVICES"]}, id="none"),
    pytest.param(0, "WARN", "passed over: gpu0: its compute mode is prohibited", "ACCEL_DEVICES",
                 {"TESTGPU_DEVICES": "2", "TESTGPU_MODES": "prohibited,default"}, id="one of two"),
    pytest.param(1, "FAIL", "gpu1: its compute mode is prohibited", "nvidia-smi",
                 {"TESTGPU_DEVICES": "2", "TESTGPU_MODES": "failing,prohibited"}, id="none of two")])
def test_devices(tmp_path, status, state, says, fix, env):
    check(tmp_path, status, state, "devices", says, fix, {**GPU, **env})


def test_a_cublas_that_fails(tmp_path):
    env = {**GPU, "TESTGPU_FAIL": "cublasDgemm_v2_64:1+,cublasDgemm_v2:1+,cublasDgemm:1+"}
    check(tmp_path, 1, "FAIL", "a call", "dgemm of order 256 failed on gpu0", "cuBLAS", env, program=False)


# ---- Settings and config files ----


@pytest.mark.parametrize("setting", ["ACCEL=0", "ACCEL_POLICY=cpu", "ACCEL_DEVICES=none"])
def test_no_call_goes_to_a_gpu(tmp_path, setting):
    name, value = setting.split("=")
    check(tmp_path, 1, "FAIL", "settings", f"{setting}: no call goes to a GPU", f"take {name} out of: environment",
          {**GPU, name: value})


@pytest.mark.parametrize("value", ["*", "blas:*,lapack:,?*"])
def test_no_call_goes_to_a_gpu_by_accel_cpu(tmp_path, value):
    says = f"ACCEL_CPU={value}: no call goes to a GPU, except with operands in device memory"
    check(tmp_path, 1, "FAIL", "settings", says, "take ACCEL_CPU out of: environment", {**GPU, "ACCEL_CPU": value})


@pytest.mark.parametrize("status, state, what, says, fix, env", [
    pytest.param(0, "OK", "settings", "ACCEL_CPU=blas2:,lapack:, from: environment", "",
                 {"ACCEL_CPU": "blas2:,lapack:"},
                 id="ACCEL_CPU of some routines"),
    pytest.param(0, "WARN", "settings", "ACCEL_LEARN=perhaps is not understood; allowed: 0,1", "accel config",
                 {"ACCEL_LEARN": "perhaps"},
                 id="a setting with an error"),
    pytest.param(1, "FAIL", "settings", "a program ends at its first call of BLAS", "mend", {"ACCEL_VERIFY": "perhaps"},
                 id="a promise with an error"),
    pytest.param(0, "OK", "settings", f"ACCEL_CUDA_DIR={TESTGPU}, from: environment", "", {},
                 id="a setting and where it is"),
    pytest.param(0, "OK", "kernels", "built in", "", {}, id="the kernels of our own")])
def test_settings(tmp_path, status, state, what, says, fix, env):
    check(tmp_path, status, state, what, says, fix, {**GPU, **env})


def test_a_config_file(tmp_path):
    conf = tmp_path / ".config/accel/accel.conf"
    conf.parent.mkdir(parents=True)
    conf.write_text("ACCEL_SUMMARY=0\n")
    check(tmp_path, 0, "OK", "config", f"{conf} is read", "", GPU)
    check(tmp_path, 0, "OK", "settings", f"ACCEL_SUMMARY=0, from: {conf}:1", "", GPU)
    conf.chmod(0o666)
    check(tmp_path, 0, "WARN", "settings", f"{conf} may be written by all; it is ignored", "", GPU)


# ---- MPS ----


def test_mps_that_does_not_run(tmp_path):
    pipes = tmp_path / "pipes"
    env = {**GPU, "CUDA_MPS_PIPE_DIRECTORY": str(pipes)}
    says = f"asked for, but not running in {pipes}"
    check(tmp_path, 0, "WARN", "MPS", says, "nvidia-cuda-mps-control -d", env, program=False)


@pytest.mark.parametrize("state, says, fix, env", [
    pytest.param("OK", "running (PIPES)", "", {}, id="it runs"),
    pytest.param("OK", "running (PIPES)", "", {"TESTGPU_ATTRIBUTES": "133=-1"}, id="a driver that cannot be asked"),
    pytest.param("WARN", "has ended, or is not for this GPU: its pipe is in PIPES", "nvidia-cuda-mps-control -d",
                 {"TESTGPU_ATTRIBUTES": "133=0"}, id="a pipe that MPS has left")])
def test_mps(tmp_path, state, says, fix, env):
    (tmp_path / "control").touch()
    env = {**GPU, "CUDA_MPS_PIPE_DIRECTORY": str(tmp_path), **env}
    check(tmp_path, 0, state, "MPS", says.replace("PIPES", str(tmp_path)), fix, env, program=False)


@pytest.mark.parametrize("state, says, fix, env", [
    pytest.param("OK", "not running: processes take turns on the GPU", "", {}, id="one process"),
    pytest.param("WARN", "not running: 2 ranks take turns on the GPU", "nvidia-cuda-mps-control -d",
                 {**RANKS, "TESTGPU_DEVICES": "2"},
                 id="ranks that share a GPU"),
    pytest.param("OK", "not running: processes take turns", "", {**RANKS, "TESTGPU_DEVICES": "4"},
                 id="a GPU for each rank")])
def test_no_mps(tmp_path, state, says, fix, env):
    # Without the variable the pipe is looked for in its default folder, where a machine may have
    # one: then the row is another.
    if "its pipe is in" in says_of(doctor(tmp_path, env=NO_MPS))["MPS"]:
        pytest.skip("this machine has it")
    check(tmp_path, 0, state, "MPS", says, fix, {**NO_MPS, **env}, program=False)


# ---- Ranks, and what the kernel can do ----


@pytest.mark.parametrize("says, env", [
    pytest.param("this process is no rank of MPI or Slurm", {}, id="none"),
    pytest.param("rank 1 of 4, of which 4 are on this machine; 2 of them share gpu1", {**RANKS, "TESTGPU_DEVICES": "2"},
                 id="a shared GPU"),
    pytest.param("rank 1 of 4, of which 4 are on this machine; gpu1 is this one's alone",
                 {**RANKS, "TESTGPU_DEVICES": "4"},
                 id="a GPU of its own")])
def test_ranks(tmp_path, says, env):
    check(tmp_path, 0, "OK", "ranks", says, "", {**GPU, **env}, program=False)


def test_a_kernel_that_cannot_tell_whether_memory_was_written(tmp_path):
    refused = start(sys.executable, "-c", REFUSING, TOOL, "doctor", env={**QUICK, **GPU, "HOME": str(tmp_path)})
    assert refused.returncode == 0
    (told,) = [row for row in rows_of(refused) if row[1] == "tracking"]
    assert told[0] == "OK"
    assert "cannot prove that memory was not written (Linux 6.7 can): userfaultfd: Operation not permitted; " \
           "matrices that stay on the GPU are compared by digests" in told[2]


def test_what_this_kernel_says_of_itself(tmp_path):
    told = says_of(doctor(tmp_path, env=GPU))["tracking"]
    able = start(sys.executable, "-c", OFFERS, env={}).stdout
    assert able in ("True\n", "False\n")
    assert told.startswith("this kernel can prove") == (able == "True\n")


# ---- The calibration ----


@pytest.fixture(scope="module")
def calibration(tmp_path_factory):
    """The bytes of one of the test GPU."""
    folder = tmp_path_factory.mktemp("calibration")
    done = start(TOOL, "calibrate", "--seconds=1", "--output", folder / "model",
                 env={**QUICK, **GPU, "HOME": str(folder)})
    assert done.returncode == 0, done.stderr
    return (folder / "model").read_bytes()


@pytest.fixture
def model(tmp_path, calibration):
    """The calibration, at its usual place."""
    path = tmp_path / ".cache/accel/model"
    path.parent.mkdir(parents=True)
    path.write_bytes(calibration)
    return path


def test_a_calibration(tmp_path, model):
    check(tmp_path, 0, "OK", "calibration", f"{model}, 0 hours old", "", GPU, program=False)


def test_an_older_one(tmp_path, model):
    os.utime(model, (0, os.path.getmtime(model) - 10 * 86400 - 600))
    check(tmp_path, 0, "OK", "calibration", f"{model}, 10 days old", "", GPU, program=False)


def test_that_of_another_gpu(tmp_path, model):
    env = {**GPU, "TESTGPU_NAME": "Other GPU"}
    check(tmp_path, 0, "WARN", "calibration", "has no figures of this GPU", "accel calibrate", env, program=False)


def test_a_damaged_one(tmp_path, model, calibration):
    model.write_bytes(calibration[:-20])
    check(tmp_path, 0, "WARN", "calibration", f"{model}: ", "accel calibrate", GPU, program=False)


@pytest.mark.parametrize("below", ["below", "none/model"])
def test_no_place_for_it(tmp_path, model, below):
    place = f"{model}/{below}"
    says = f"`accel calibrate` cannot write {place}"
    check(tmp_path, 0, "WARN", "calibration", says, "ACCEL_MODEL", {**GPU, "ACCEL_MODEL": place}, program=False)


# ---- Colour, and what cannot be written ----


def shown_on_terminal(folder, **env):
    return on_terminal(TOOL, "doctor", env={**QUICK, **GPU, "HOME": str(folder), **env}).decode()


def test_colour_on_a_terminal(tmp_path):
    assert "\033[32mOK  \033[0m  driver" in shown_on_terminal(tmp_path, TERM="xterm")


@pytest.mark.parametrize("env", [{"NO_COLOR": "1", "TERM": "xterm"}, {"TERM": "dumb"}],
                         ids=["NO_COLOR", "a terminal without"])
def test_no_colour(tmp_path, env):
    shown = shown_on_terminal(tmp_path, **env)
    assert "\033" not in shown
    assert "OK    driver" in shown


def test_no_colour_in_a_pipe(tmp_path):
    assert "\033" not in doctor(tmp_path, env=GPU).stdout


# Longer than a stream's buffer: nothing is left to write at the end.
@pytest.mark.parametrize("options, env",
                         [([], {}), (["--json"], {f"ACCEL_{name}": "a" * 3000 for name in ("TRACE", "LOG_FILE")})],
                         ids=["little to write", "much to write"])
def test_a_full_disk(tmp_path, options, env):
    with open("/dev/full", "w") as full:
        done = doctor(tmp_path, *options, env={**GPU, **env}, stdout=full)
    assert done.returncode == 2
    assert done.stderr == "accel doctor: the rows cannot be written: No space left on device\n"


def test_a_closed_stdout():
    """What it opens, such as a device's file, must not get the number of stdout."""
    done = start("/bin/sh", "-c", f"{TOOL} doctor >&-", env=GPU)
    assert done.returncode == 2
    assert done.stderr == "accel doctor: the rows cannot be written: Bad file descriptor\n"


def test_a_program_that_accel_run_starts_has_it_closed_too():
    done = start("/bin/sh", "-c", f"{TOOL} run -- /bin/sh -c 'ls -l /proc/self/fd >&2' >&-", env=NO_GPU)
    assert " 0 -> " in done.stderr
    assert " 1 -> /dev/null" not in done.stderr
