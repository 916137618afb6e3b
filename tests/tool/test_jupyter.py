#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""accel jupyter: Jupyter finds the kernel, starts it by accel run, and a product in it goes to the GPU; interrupts and
restarts work as in the ordinary kernel. uninstall takes away what install has written, and neither touches another
kernel."""

import json
import subprocess

import pytest

from lib.programs import BUILD, DEBIAN_PYTHON, ROOT, TEST_GPU, clean_env

TOOL = str(BUILD / "accel")

# Runs in the Python that has Jupyter: starts the kernel of a name, runs the cells that it is given,
# prints what each shows.
CLIENT = """
import json, sys, threading
from jupyter_client import KernelManager
manager = KernelManager(kernel_name=sys.argv[1])
manager.start_kernel()
client = manager.blocking_client()
client.start_channels()
client.wait_for_ready(timeout=120)
shown = []
ended, threads = threading.Event(), []
def interrupt():
    # Again and again: ipykernel may lose one that comes while it prints. Seldom: it takes its time
    # to show one.
    pause = 1
    while not ended.wait(pause):
        manager.interrupt_kernel()
        pause = 10
for cell in json.loads(sys.argv[2]):
    if cell == "RESTART":
        manager.restart_kernel()
        client.wait_for_ready(timeout=120)
        continue
    text = []
    def hook(message):
        text.append(message["content"].get("text") or message["content"].get("ename") or "")
        if "sleep" in cell and text[-1] == "now\\n":
            threads.append(threading.Thread(target=interrupt))
            threads[-1].start()
    # For a moment behind an error, ipykernel drops what comes.
    while client.execute_interactive(cell, timeout=120, output_hook=hook)["content"]["status"] == "aborted":
        pass
    ended.set()
    [thread.join() for thread in threads]
    ended.clear()
    shown.append("".join(text))
client.stop_channels()
manager.shutdown_kernel()
print(json.dumps(shown))
"""
LIBRARIES = "print(sum('libaccel.so' in line for line in open('/proc/self/maps')) > 0)"
PRODUCT = "import numpy\na = numpy.arange(90000.).reshape(300, 300) % 7\nprint((a @ a).sum())"


def accel(home, *arguments, env={}):
    return subprocess.run([TOOL, "jupyter", *map(str, arguments)], cwd=ROOT, env=clean_env(str(home)) | env,
                          stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)


def cells(home, kernel, *texts, env={}):
    """What each cell shows."""
    done = subprocess.run([DEBIAN_PYTHON, "-c", CLIENT, kernel, json.dumps(texts)], cwd=home,
                          env=clean_env(str(home)) | env,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def is_refused(done, status, text):
    assert done.returncode == status
    assert text in done.stderr
    assert done.stderr.count("\n") == 1
    assert not done.stdout


@pytest.fixture
def there(tmp_path):
    """The file of a kernel that is installed in the home tmp_path."""
    path = tmp_path / ".local/share/jupyter/kernels/accel/kernel.json"
    done = accel(tmp_path, "install", DEBIAN_PYTHON)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{path}\n"
    return path


def test_install_writes_the_file(there):
    kernel = json.loads(there.read_text())
    assert kernel["argv"] == [TOOL, "run", "--", DEBIAN_PYTHON, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    assert kernel["language"] == "python"


def test_the_kernel_has_libaccel_computes_can_be_interrupted_and_restarted(there, tmp_path):
    log = tmp_path / "log"
    shown = cells(tmp_path, "accel", LIBRARIES, PRODUCT, "import time\nprint('now', flush=True)\ntime.sleep(100)",
                  PRODUCT, "RESTART", LIBRARIES,
                  env={"ACCEL_CUDA_DIR": TEST_GPU["ACCEL_CUDA_DIR"], "ACCEL_POLICY": "gpu", "ACCEL_LOG": "1",
                       "ACCEL_LOG_FILE": str(log),
                       "JUPYTER_RUNTIME_DIR": str(tmp_path)})
    want = subprocess.run([DEBIAN_PYTHON, "-c", PRODUCT], env=clean_env(str(tmp_path)), stdout=subprocess.PIPE,
                          text=True).stdout
    assert shown == ["True\n", want, "now\nKeyboardInterrupt", want, "True\n"]
    lines = log.read_text()
    assert lines.count("sym=cblas_dgemm args=N,N") == 2
    assert lines.count("ran=gpu0 why=forced") == 2


def test_install_again_leaves_what_the_user_has_added(there, tmp_path):
    kernel = json.loads(there.read_text()) | {"env": {"ACCEL_LOG": "1"}, "interrupt_mode": "message"}
    there.write_text(json.dumps(kernel))
    assert accel(tmp_path, "install", "--user", "--display-name=Fast \"Python\"", DEBIAN_PYTHON).returncode == 0
    assert json.loads(there.read_text()) == kernel | {"display_name": 'Fast "Python"'}


def test_a_display_name_that_is_no_utf_8(there, tmp_path):
    assert accel(tmp_path, "install", "--display-name=\udcffq\u00e9", DEBIAN_PYTHON).returncode == 0
    assert json.loads(there.read_bytes().decode(errors="backslashreplace"))["display_name"] == "?q\u00e9"


def test_uninstall(there, tmp_path):
    (there.parent / "logo.svg").write_text("<svg/>")
    done = accel(tmp_path, "uninstall")
    assert done.returncode == 0, done.stderr
    assert not done.stdout
    assert not there.exists()
    assert (there.parent / "logo.svg").exists(), "what is beside it stays"
    is_refused(accel(tmp_path, "uninstall"), 1, f"{there}: No such file")


# ---- Names and places ----


@pytest.mark.parametrize("options, env, on_path, place", [
    pytest.param(["--prefix", "HOME/p", "--name=a.B_c-1"], {}, False, "p/share/jupyter/kernels/a.B_c-1", id="--prefix"),
    pytest.param([], {"XDG_DATA_HOME": "HOME/x"}, False, "x/jupyter/kernels/accel", id="XDG_DATA_HOME"),
    pytest.param([], {"JUPYTER_DATA_DIR": "HOME/j", "XDG_DATA_HOME": "/no"}, False, "j/kernels/accel",
                 id="JUPYTER_DATA_DIR"),
    pytest.param(["--name=of-path"], {"PATH": "/no:HOME/bin:/usr/bin", "XDG_DATA_HOME": "HOME/x"}, True,
                 "x/jupyter/kernels/of-path",
                 id="python3 on the PATH")])
def test_install_and_uninstall(tmp_path, options, env, on_path, place):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python3").symlink_to(DEBIAN_PYTHON)
    options = [option.replace("HOME", str(tmp_path)) for option in options]
    env = {name: value.replace("HOME", str(tmp_path)) for name, value in env.items()}
    done = accel(tmp_path, "install", *options, *([] if on_path else [DEBIAN_PYTHON]), env=env)
    assert done.returncode == 0, done.stderr
    file = tmp_path / place / "kernel.json"
    assert json.loads(file.read_text())["argv"][3] == (f"{tmp_path}/bin/python3" if on_path else DEBIAN_PYTHON)
    done = accel(tmp_path, "uninstall", *options, env=env)
    assert done.returncode == 0, done.stderr
    assert not file.parent.exists()


# ---- What is refused ----


@pytest.mark.parametrize("action", [["install", DEBIAN_PYTHON], ["uninstall"]], ids=["install", "uninstall"])
@pytest.mark.parametrize("content",
                         ['{"argv": ["/usr/bin/python3", "-m", "ipykernel_launcher", "-f", "{connection_file}"]}',
                                     '{"argv": [1, 2, 3]}', '{"argv": "accel run"}', "[", ""])
def test_another_s_kernel_stays(tmp_path, action, content):
    foreign = tmp_path / "p/share/jupyter/kernels/python3/kernel.json"
    foreign.parent.mkdir(parents=True)
    foreign.write_text(content)
    is_refused(accel(tmp_path, *action, "--prefix", tmp_path / "p", "--name", "python3"), 1,
               "accel has not made this kernel")
    assert foreign.read_text() == content


@pytest.mark.parametrize("arguments, status, text", [
    pytest.param(["install", "/bin/true"], 1, "/bin/true is no Python", id="true"),
    pytest.param(["install", "/bin/false"], 1, "/bin/false is no Python", id="false"),
    pytest.param(["install", "--prefix=", DEBIAN_PYTHON], 2, "--prefix= is empty; allowed: a folder",
                 id="an empty folder"),
    pytest.param(["install", "no_such_python"], 1, "no such program", id="no such Python"),
    pytest.param(["install", "--name=../x", DEBIAN_PYTHON], 2, "--name=../x: allowed", id="a name"),
    pytest.param(["install", "--name="], 2, "allowed", id="an empty name"),
    pytest.param([], 2, "no action: allowed: install, uninstall", id="no action"),
    pytest.param(["list"], 2, "list: allowed", id="another action"),
    pytest.param(["install", "--prefix=/dev/null", DEBIAN_PYTHON], 1, "Not a directory",
                 id="a folder that cannot be made")])
def test_refused(tmp_path, arguments, status, text):
    is_refused(accel(tmp_path, *arguments), status, text)


@pytest.fixture
def without(tmp_path):
    """An environment in which Pythons lack some modules."""
    (tmp_path / "lack").mkdir()
    (tmp_path / "lack/sitecustomize.py").write_text(
        "import os, sys\nsys.modules.update(dict.fromkeys(os.environ['LACK'].split()))\n")
    return lambda modules: {"PYTHONPATH": str(tmp_path / "lack"), "LACK": modules}


@pytest.fixture
def environment(tmp_path):
    """A Python that pip may change."""
    subprocess.run([DEBIAN_PYTHON, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    return tmp_path / "venv/bin/python"


def test_without_ipykernel_pip_installs_it(tmp_path, environment, without):
    (tmp_path / "lack/pip.py").touch()
    is_refused(accel(tmp_path, "install", environment, env=without("")), 1,
               f"accel jupyter: {environment} has no ipykernel: {environment} -m pip install ipykernel\n")


def test_without_pip_ensurepip_installs_that(tmp_path, environment, without):
    (tmp_path / "lack/ensurepip.py").touch()
    is_refused(accel(tmp_path, "install", environment, env=without("")), 1,
               f"accel jupyter: {environment} has neither ipykernel nor pip: {environment} -m ensurepip && "
               f"{environment} -m pip install ipykernel\n")


def test_without_both_another_tool_does(tmp_path, environment, without):
    is_refused(accel(tmp_path, "install", environment, env=without("ipykernel pip ensurepip")), 1,
               f"uv pip install --python {environment} ipykernel")


def test_a_python_of_the_system(tmp_path, without):
    managed = tmp_path / "managed"
    managed.write_text(f"#!/bin/sh\nexec {DEBIAN_PYTHON} \"$@\"\n")
    managed.chmod(0o755)
    is_refused(accel(tmp_path, "install", managed, env=without("ipykernel")), 1,
               f"accel jupyter: {managed} has no ipykernel, and its packages are the system's: {managed} -m venv ENV "
               "&& ENV/bin/pip install ipykernel && accel jupyter install ENV/bin/python\n")


@pytest.mark.parametrize("modules", ["ipykernel", "ipykernel pip", "ipykernel pip ensurepip"])
def test_debian_s_own_python(tmp_path, without, modules):
    is_refused(accel(tmp_path, "install", DEBIAN_PYTHON, env=without(modules)), 1,
               f"accel jupyter: {DEBIAN_PYTHON} has no ipykernel: apt install python3-ipykernel\n")


def test_no_home(tmp_path):
    is_refused(accel(tmp_path, "install", DEBIAN_PYTHON, env={"HOME": ""}), 1, "no folder for this user")
