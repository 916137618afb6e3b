#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""Perl's Algorithm::SVM, which Debian links with its libsvm: a program like any other that calls svm_train() through
the dynamic linker."""

import re

import pytest

from lib.log import lines_for
from lib.programs import LOG, NO_GPU, PLAIN, TEST_GPU, run
from programs.harness import WORK


def train(env):
    """The finished program, what it prints of the classes, and its numbers."""
    done = run(["/usr/bin/perl", str(WORK / "algorithm_svm.pl"), "@OUT@"], {**env, **LOG})
    assert done.rc == 0, done.stdout + done.stderr
    text = done.stdout + done.files["model"].decode()
    return done, re.search("classes.*",
                           done.stdout)[0], [float(x) for x in re.findall(r"(?:rho|obj|nu) =? ?(-?[\d.e-]+)", text)]


@pytest.fixture(scope="module")
def plain():
    done, classes, numbers = train(PLAIN)
    assert len(numbers) >= 9
    return done, classes, numbers


def test_one_call_on_the_test_gpu_and_the_same_answer(plain):
    _, classes, numbers = plain
    done, same, near = train(TEST_GPU)
    assert same == classes
    assert len(near) == len(numbers)
    assert all(abs(a - b) < 1e-3 * max(1, abs(a)) for a, b in zip(numbers, near)), (numbers, near)
    assert len(lines_for(done, sym="svm_train", ran="gpu0", l="120", classes="3")) == 1


def test_without_a_gpu_bit_for_bit_the_same(plain):
    done, _, _ = train(NO_GPU)
    assert (done.stdout, done.files) == (plain[0].stdout, plain[0].files)
