#!/usr/bin/python3 -B
"""accel jupyter: Jupyter finds the kernel, starts it by accel run, and a product in it goes to the GPU; interrupts and restarts work as in the ordinary kernel.
uninstall takes away what install has written, and neither touches another kernel."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

from lib.programs import BUILD, DEBIAN_PYTHON, ROOT, TEST_GPU, clean_env
from lib.tap import Tap

TOOL = str(BUILD / "accel")
tap = Tap()

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


def accel(folder, *arguments, env={}, cwd=ROOT):
    return subprocess.run([TOOL, "jupyter", *map(str, arguments)], cwd=cwd, env=clean_env(str(folder)) | env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120)


def cells(folder, kernel, *texts, env={}):
    """What each cell shows."""
    done = subprocess.run([DEBIAN_PYTHON, "-c", CLIENT, kernel, json.dumps(texts)], cwd=folder, env=clean_env(str(folder)) | env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=300)
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 and done.stdout else [done.stdout + done.stderr]


def refused(done, status, text):
    return done.returncode == status and text in done.stderr and done.stderr.count("\n") == 1 and not done.stdout


with tempfile.TemporaryDirectory(prefix="accel-jupyter-") as name:
    home = Path(name)
    there = home / ".local/share/jupyter/kernels/accel/kernel.json"
    done = accel(home, "install", DEBIAN_PYTHON)
    kernel = json.loads(there.read_text()) if there.exists() else {}
    tap.ok(done.returncode == 0 and done.stdout == f"{there}\n" and kernel.get("argv") == [TOOL, "run", "--", DEBIAN_PYTHON, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
           and kernel["language"] == "python", "install: the file, and its path on stdout", done.stdout, done.stderr, kernel)
    log = home / "log"
    shown = cells(home, "accel", LIBRARIES, PRODUCT, "import time\nprint('now', flush=True)\ntime.sleep(100)", PRODUCT, "RESTART", LIBRARIES,
                  env={"ACCEL_CUDA_DIR": TEST_GPU["ACCEL_CUDA_DIR"], "ACCEL_POLICY": "gpu", "ACCEL_LOG": "1", "ACCEL_LOG_FILE": str(log), "JUPYTER_RUNTIME_DIR": name})
    want = subprocess.run([DEBIAN_PYTHON, "-c", PRODUCT], env=clean_env(name), stdout=subprocess.PIPE, text=True).stdout
    tap.ok(shown == ["True\n", want, "now\nKeyboardInterrupt", want, "True\n"], "the kernel has libaccel, computes, can be interrupted, and is there again after a restart", *shown)
    lines = log.read_text() if log.exists() else ""
    tap.ok(lines.count("sym=cblas_dgemm args=N,N") == 2 and lines.count("ran=gpu0 why=forced") == 2, "its products ran on the GPU", lines)
    there.write_text(json.dumps(kernel | {"env": {"ACCEL_LOG": "1"}, "interrupt_mode": "message"}))
    tap.ok(accel(home, "install", "--user", "--display-name=Fast \"Python\"", DEBIAN_PYTHON).returncode == 0 and json.loads(there.read_text())["display_name"] == 'Fast "Python"',
           "install again: another text", there.read_text())
    tap.ok(json.loads(there.read_text()) == kernel | {"env": {"ACCEL_LOG": "1"}, "interrupt_mode": "message", "display_name": 'Fast "Python"'}, "what the user has added stays", there.read_text())
    done = accel(home, "install", "--display-name=\udcffq\u00e9", DEBIAN_PYTHON)
    tap.ok(done.returncode == 0 and json.loads(there.read_bytes().decode(errors="backslashreplace"))["display_name"] == "?q\u00e9", "and one that is no UTF-8", there.read_bytes())
    (there.parent / "logo.svg").write_text("<svg/>")
    done = accel(home, "uninstall")
    tap.ok(done.returncode == 0 and not done.stdout and not there.exists() and (there.parent / "logo.svg").exists(), "uninstall: the file is gone, what is beside it stays", done.stderr)
    tap.ok(refused(accel(home, "uninstall"), 1, f"{there}: No such file"), "uninstall again: it is not there")

    # ---- Names and places ----

    for what, options, env, place in (("--prefix", ["--prefix", home / "p", "--name=a.B_c-1"], {}, "p/share/jupyter/kernels/a.B_c-1"), ("XDG_DATA_HOME", [], {"XDG_DATA_HOME": f"{home}/x"}, "x/jupyter/kernels/accel"),
                                      ("JUPYTER_DATA_DIR", [], {"JUPYTER_DATA_DIR": f"{home}/j", "XDG_DATA_HOME": "/no"}, "j/kernels/accel"),
                                      ("python3 on the PATH", ["--name=of-path"], {"PATH": f"/no:{home}/bin:/usr/bin", "XDG_DATA_HOME": f"{home}/x"}, "x/jupyter/kernels/of-path")):
        if what.endswith("PATH"):
            (home / "bin").mkdir()
            (home / "bin/python3").symlink_to(DEBIAN_PYTHON)
        python = [] if what.endswith("PATH") else [DEBIAN_PYTHON]
        done = accel(home, "install", *options, *python, env=env)
        file = home / place / "kernel.json"
        good = done.returncode == 0 and file.exists() and json.loads(file.read_text())["argv"][3] == (f"{home}/bin/python3" if not python else DEBIAN_PYTHON)
        done = accel(home, "uninstall", *options, env=env)
        tap.ok(good and done.returncode == 0 and not file.parent.exists(), f"{what}: install, uninstall", done.stderr, os.listdir(home))

    # ---- What is refused ----

    foreign = home / "p/share/jupyter/kernels/python3/kernel.json"
    foreign.parent.mkdir(parents=True)
    for content in ('{"argv": ["/usr/bin/python3", "-m", "ipykernel_launcher", "-f", "{connection_file}"]}', '{"argv": [1, 2, 3]}', '{"argv": "accel run"}', "[", ""):
        foreign.write_text(content)
        for action in (["install", DEBIAN_PYTHON], ["uninstall"]):
            done = accel(home, *action, "--prefix", home / "p", "--name", "python3")
            tap.ok(refused(done, 1, "accel has not made this kernel") and foreign.read_text() == content, f"{action[0]}: another's kernel stays: {content}", done.stderr)
    (home / "bare").write_text(f"#!/bin/sh\nexec {DEBIAN_PYTHON} -I -S \"$@\"\n")
    (home / "bare").chmod(0o755)
    for what, arguments, status, text in (("a Python without ipykernel", ["install", home / "bare"], 1, "bare has no ipykernel"), ("true", ["install", "/bin/true"], 1, "/bin/true is no Python"), ("false", ["install", "/bin/false"], 1, "/bin/false is no Python"),
                                          ("an empty folder", ["install", "--prefix=", DEBIAN_PYTHON], 2, "--prefix= is empty; allowed: a folder"), ("no such Python", ["install", "no_such_python"], 1, "no such program"),
                                          ("a name", ["install", "--name=../x", DEBIAN_PYTHON], 2, "--name=../x: allowed"), ("an empty name", ["install", "--name="], 2, "allowed"),
                                          ("no action", [], 2, "no action: allowed: install, uninstall"), ("another action", ["list"], 2, "list: allowed"),
                                          ("a folder that cannot be made", ["install", "--prefix=/dev/null", DEBIAN_PYTHON], 1, "Not a directory")):
        done = accel(home, *arguments)
        tap.ok(refused(done, status, text), f"refused: {what}", done.returncode, done.stdout, done.stderr)
    done = accel(home, "install", DEBIAN_PYTHON, env={"HOME": ""})
    tap.ok(refused(done, 1, "no folder for this user"), "refused: no home", done.stderr)
tap.done()
