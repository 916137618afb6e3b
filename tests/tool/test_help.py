#!/usr/bin/python3 -B
"""--help and --version of accel and of its commands: on stdout, with 0; and with one line and 2 where stdout cannot be written."""

import re

from lib.programs import BUILD, start
from lib.tap import Tap

TOOL = str(BUILD / "accel")
COMMANDS = re.findall(r"^  (\w+)  ", start(TOOL, "--help").stdout.partition("Commands:\n")[2], re.M)
tap = Tap()

tap.ok("run" in COMMANDS and "diff" in COMMANDS, "--help names the commands", COMMANDS)
for words in ((), *((command,) for command in COMMANDS)):
    for option in ("--help", "--usage", *(() if words else ("--version",))):
        what = " ".join(("accel", *words, option))
        done = start(TOOL, *words, option)
        tap.ok(done.returncode == 0 and "accel" in done.stdout and done.stderr == "", what, done)
        with open("/dev/full", "w") as full:
            done = start(TOOL, *words, option, stdout=full)
        tap.ok(done.returncode == 2 and done.stderr == "accel: stdout cannot be written: No space left on device\n", f"{what}, a full disk", done)
done = start("/bin/sh", "-c", f"{TOOL} --version >&-")
tap.ok(done.returncode == 2 and done.stderr == "accel: stdout cannot be written: Bad file descriptor\n", "a closed stdout", done)
tap.done()
