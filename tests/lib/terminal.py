"""What programs write to a terminal."""

import os
import pty
import threading

from lib.programs import start


def on_terminal(*command, stdout=True, stderr=False, **options):
    """Runs a program with a terminal as its stdout, its stderr, or both; returns the bytes that came there."""
    ours, theirs = pty.openpty()
    parts = []

    def read():  # meanwhile: a terminal holds little
        try:
            while data := os.read(ours, 65536):
                parts.append(data)
        except OSError:  # a terminal's end
            pass

    reader = threading.Thread(target=read)
    reader.start()
    try:
        start(*command, **({"stdout": theirs} if stdout else {}), **({"stderr": theirs} if stderr else {}), **options)
    finally:
        os.close(theirs)
        reader.join()
        os.close(ours)
    return b"".join(parts)
