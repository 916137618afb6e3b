"""What programs write to a terminal."""

import os
import pty

from lib.programs import start


def on_terminal(*command, stdout=True, stderr=False, **options):
    """Runs a program with a terminal as its stdout, its stderr, or both; returns the bytes that came there."""
    ours, theirs = pty.openpty()
    start(*command, **({"stdout": theirs} if stdout else {}), **({"stderr": theirs} if stderr else {}), **options)
    os.close(theirs)
    text = b""
    try:
        while data := os.read(ours, 65536):
            text += data
    except OSError:  # a terminal's end
        pass
    os.close(ours)
    return text
