#!/usr/bin/python3 -B
"""accel config: each setting with the value that counts and its origin, the config files, and what is wrong with them; as a program under libaccel
has it."""

import re
import tempfile
from pathlib import Path

from lib.programs import BUILD, NO_GPU, ROOT, start
from lib.tap import Tap

TOOL = str(BUILD / "accel")
SYSTEMS = "/etc/accel.conf"
tap = Tap()


def config(home, **settings):
    done = start(TOOL, "config", env={"HOME": home, **settings})
    table, _, files = done.stdout.partition("\n\n")
    rows = {name: (value, origin) for name, value, origin in re.findall(r"(?m)^(\w+) +(.*?) {2,}(\S.*)$", table)}
    return done, rows, dict(line.split(": ", 1) for line in files.splitlines())


with tempfile.TemporaryDirectory() as home:
    user, named = Path(home, ".config/accel/accel.conf"), Path(home, "n.conf")

    # ---- The defaults, which are those of docs/settings.md ----

    done, rows, files = config(home)
    tap.ok(done.returncode == 0 and not done.stderr and all(origin == "default" for _, origin in rows.values()), "nothing is set", done.stdout, done.stderr)
    tap.ok(list(files) == [str(user), SYSTEMS] and files[str(user)] == "not there", "the files that are looked for", files)
    documented = {}
    for line in (ROOT / "docs/settings.md").read_text().splitlines():
        cells = line.split(" | ")
        for name in re.findall(r"`(ACCEL\w*)`", cells[0]) if line.startswith("| `") else []:
            documented[name] = cells[1].split(",")[0].split(" or ")[-1].strip(" `…")
    model = str(Path(home, ".cache/accel/model"))
    shown = {name: value.replace(model, "$XDG_CACHE_HOME/accel/model") or "empty" for name, (value, _) in rows.items()}
    tap.ok(len(rows) > 15 and shown == documented, "each setting of docs/settings.md with its default", shown.items() ^ documented.items())

    # ---- Origins ----

    user.parent.mkdir(parents=True)
    user.write_text("# mine\nACCEL_LOG = 2\nACCEL_SUMMARY=1\nACCEL_POLICY=gpu\nACCEL_GPU=\n")
    named.write_text('ACCEL_SUMMARY=yes\n\nACCEL_CPU = "dgemm, zgemm"\n')
    done, rows, files = config(home, ACCEL_CONFIG=str(named), ACCEL_LOG="json", ACCEL_DEVICES="", ACCEL_LOG_FILE="\x1b[2J")
    wanted = {"ACCEL_LOG": ("json", "environment"), "ACCEL_SUMMARY": ("yes", f"{named}:1"), "ACCEL_CPU": ("dgemm, zgemm", f"{named}:3"),
              "ACCEL_POLICY": ("gpu", f"{user}:4"), "ACCEL_GPU": ("", f"default: empty in {user}:5"), "ACCEL_DEVICES": ("auto", "default: empty in environment"),
              "ACCEL_LOG_FILE": ("?[2J", "environment"), "ACCEL_LEARN": ("0", "default")}
    tap.ok(done.returncode == 0 and not done.stderr and wanted.items() <= rows.items(), "environment, file and line, default", done.stdout, done.stderr)
    tap.ok(list(files)[:2] == [str(named), str(user)] and files[str(named)] == files[str(user)] == "read", "the files that are read", files)
    _, rows, _ = config(home, OMPI_COMM_WORLD_SIZE="2", OMPI_COMM_WORLD_RANK="1")
    tap.ok(rows["ACCEL_START"] == ("wait", "default"), "ranks of MPI have another default of ACCEL_START", rows["ACCEL_START"])
    _, rows, _ = config(home, ACCEL="0", ACCEL_LOG="1")
    tap.ok(rows["ACCEL"] == ("0", "environment") and rows["ACCEL_LOG"] == ("1", "environment"), "ACCEL=0", rows)

    # ---- What is wrong: the program's own lines, and status 1 ----

    user.write_text("ACCEL_LOG=loud\nACCEL_FAST=1\n")
    wrong = {"ACCEL_POLICY": "fast", "ACCEL_VERIFY": "some"}
    done, rows, _ = config(home, **wrong)
    tap.ok(done.returncode == 1 and rows["ACCEL_POLICY"] == ("auto", "default: not understood in environment") and
           rows["ACCEL_LOG"] == ("0", f"default: not understood in {user}:1"), "values that are not understood", done.stdout)
    told = start("random_calls", "-c", 1, "-n", 30, "-r", "dgemm", env={**NO_GPU, "HOME": home, **wrong}).stderr
    tap.ok(done.stderr.count("\n") == 4 and done.stderr in told, "are said as the library says them", done.stderr, told)
    user.chmod(0o666)
    done, _, files = config(home)
    tap.ok(done.returncode == 1 and files[str(user)] == "may be written by all" and f"{user} may be written by all; it is ignored" in done.stderr, "a file that is refused", done.stdout, done.stderr)
    done, _, files = config(home, ACCEL_CONFIG=f"{home}/none.conf")
    tap.ok(done.returncode == 1 and files[f"{home}/none.conf"] == "not there" and "ACCEL_CONFIG" in done.stderr, "a file that is named, and is not there", done.stdout, done.stderr)
    user.unlink()
    for options, status, line in ({"ACCEL_CUDA_DIR": "/none"}, 1, "accel: ACCEL_CUDA_DIR=/none cannot be opened (No such file or directory); it is ignored\n"), (
            {"ACCEL_MODEL": f"{home}/none"}, 1, f"accel: no calibration at {home}/none (ACCEL_MODEL); built-in figures are used (run `accel calibrate`)\n"), (
            {"ACCEL_MODEL": f"{home}/none", "ACCEL_LEARN": "1"}, 0, ""), ({"ACCEL_MODEL": str(named)}, 0, ""):
        done, _, _ = config(home, **options)
        told = start("random_calls", "-c", 1, "-n", 30, "-r", "dgemm", env={**NO_GPU, "HOME": home, **options}).stderr
        tap.ok((done.returncode, done.stderr) == (status, line) and line in told, f"what is not there, as the library says it: {options}", done.returncode, done.stderr, told)
    with open("/dev/full", "w") as full:
        done = start(TOOL, "config", env={"HOME": "/"}, stdout=full)
    tap.ok(done.returncode == 2 and done.stderr == "accel config: the list cannot be written: No space left on device\n", "a full disk", done.stderr)
tap.done()
