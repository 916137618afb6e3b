#!/usr/bin/python3 -B
"""Perl's Algorithm::SVM, which Debian links with its libsvm: a program like any other that calls svm_train() through the dynamic linker."""

import re

from harness import WORK
from lib.log import lines_for
from lib.programs import LOG, NO_GPU, PLAIN, TEST_GPU, run
from lib.tap import Tap

tap = Tap()


def train(env):
    done = run(["/usr/bin/perl", str(WORK / "algorithm_svm.pl"), "@OUT@"], {**env, **LOG})
    return done, re.search("classes.*", done.stdout), [float(x) for x in re.findall(r"(?:rho|obj|nu) =? ?(-?[\d.e-]+)", done.stdout + done.files["model"].decode())]


plain, classes, numbers = train(PLAIN)
tap.ok(plain.rc == 0 and classes and len(numbers) >= 9, "Algorithm::SVM itself", plain.stdout, plain.stderr)
device, same, near = train(TEST_GPU)
tap.ok(classes[0] == same[0] and len(near) == len(numbers) and all(abs(a - b) < 1e-3 * max(1, abs(a)) for a, b in zip(numbers, near))
       and len(lines_for(device, sym="svm_train", ran="gpu0", l="120", classes="3")) == 1,
       "one call on the test GPU, the same answer", device.stdout, device.stderr)
bits, _, _ = train(NO_GPU)
tap.ok((bits.stdout, bits.files) == (plain.stdout, plain.files), "no GPU: bit for bit the same", bits.stdout)
tap.done()
