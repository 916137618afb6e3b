"""Bare systems in folders, made by scripts/install-deps packages: what is installed there runs as root of a system of its own."""

import subprocess

from lib.programs import BUILD

TREES = BUILD / "trees"


def in_tree(name, script, env={}, timeout=120):
    """Runs a shell's commands in the tree of that name, with a /proc and a /tmp of its own and no environment except env."""
    words = [f"{key}={value}" for key, value in env.items()]
    inner = 'tree=$1; shift; mount -t proc proc "$tree/proc" && mount -t tmpfs tmpfs "$tree/tmp" && exec chroot "$tree" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"'
    return subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", inner, "sh", TREES / name, *words, "sh", "-c", script],
                          text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout)


def files_of(name):
    """The tree's files and links, except those that running programs write."""
    done = subprocess.run(["find", ".", "-xdev", "(", "-path", "./var/lib/dpkg", "-o", "-path", "./var/log", "-o", "-path", "./var/cache", "-o", "-path", "./root", "-o",
                           "-path", "./tmp", "-o", "-path", "./dev", "-o", "-name", "__pycache__", ")", "-prune", "-o", "!", "-type", "d", "-print"],
                          cwd=TREES / name, text=True, stdout=subprocess.PIPE, check=True)
    return set(done.stdout.split("\n"))
