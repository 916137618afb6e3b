"""The commands of the tool, which test_help.py compares with those of --help."""

COMMANDS = "calibrate config diff doctor estimate explain jupyter replay report run serve top".split()
