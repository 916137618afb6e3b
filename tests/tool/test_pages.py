#!/usr/bin/python3 -B
"""The completion of bash, zsh and fish, and the manual pages: each command, each option and each setting that the tool has, and what a person sees."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from lib.programs import BUILD, ROOT, clean_env, start
from lib.tap import Tap

TOOL = str(BUILD / "accel")
SHARE = BUILD / "share"
BASH = SHARE / "bash-completion/completions/accel"
ZSH = SHARE / "zsh/site-functions/_accel"
FISH = SHARE / "fish/vendor_completions.d/accel.fish"
HOME = tempfile.TemporaryDirectory(prefix="accel-pages-")
tap = Tap()


def run(*command, env=None, **options):
    return subprocess.run([str(word) for word in command], env={**clean_env(HOME.name), **(env or {})}, cwd=ROOT, stdin=subprocess.DEVNULL, text=True, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def options_of(*command):
    """The long options of --help, and whether each takes a value."""
    return {name: bool(value) for name, value in re.findall(r"(?m)^  (?:-\S, |    )--([a-z-]+)(=|\[=)?", start(TOOL, *command, "--help").stdout)}


commands = re.findall(r"(?m)^  ([a-z]+)  +\S", start(TOOL, "--help").stdout)
options = {command: options_of(command) for command in commands}
tap.ok(len(commands) >= 6 and options["run"].get("policy") is True and options["run"].get("summary") is False, "the commands and options of --help", options)

# ---- bash ----


def bash(*words):
    """What the last word may become."""
    script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _accel; printf "%s\\n" "${COMPREPLY[@]}"'
    done = run("bash", "-c", script, "bash", BASH, "accel", *words)
    return [] if done.stderr else done.stdout.split()


tap.ok(set(commands) <= set(bash("")) and bash("do") == ["doctor"], "bash: the commands", bash(""))
for command in commands:
    found = bash(command, "--")
    wanted = {f"--{name}{'=' if value else ''}" for name, value in options[command].items()}
    tap.ok(set(found) == wanted, f"bash: the options of {command}", *(set(found) ^ wanted))
tap.ok(bash("run", "--po") == ["--policy="] and bash("run", "--policy", "g") == ["gpu"] and bash("run", "--policy", "=", "c") == ["cpu"] and
       set(bash("run", "--policy", "=")) == {"auto", "gpu", "cpu"}, "bash: an option's values", bash("run", "--policy", "="))
tap.ok("READ" not in bash("run", "--shim", "READ") and "README.md" in bash("run", "--shim", "READ"), "bash: files", bash("run", "--shim", "READ"))
tap.ok("python3" in bash("run", "--", "pytho") and bash("run", "--", "python3", "--po") == [] and "python3" in bash("doctor", "pytho"), "bash: a program, whose words are its own",
       bash("run", "--", "python3", "--po"))

# ---- zsh: its own functions for completion print what they get ----

if shutil.which("zsh"):
    stubs = '_describe() { print -l describe $accel_commands; }; _arguments() { print -l arguments "$@"; }; file=$1; shift; words=("$@"); CURRENT=$#; source $file'

    def zsh(*words):
        done = run("zsh", "-f", "-c", stubs, "zsh", ZSH, "accel", *words)
        return [done.stderr] if done.stderr else done.stdout.splitlines()

    tap.ok([line.split(":")[0] for line in zsh("")[1:]] == commands and zsh("")[0] == "describe", "zsh: the commands", zsh(""))
    for command in commands:
        found = zsh(command, "")
        names = set(re.findall(r"--([a-z-]+)=?(?=\[)", "\n".join(found)))
        tap.ok(found[0] == "arguments" and names == set(options[command]), f"zsh: the options of {command}", *(names ^ set(options[command])))
    lines = zsh("run", "")
    tap.ok(any(line.startswith("--policy=[") and line.endswith(":value:(auto gpu cpu)") for line in lines) and "*::program:_normal" in lines and
           any(line.startswith("(-v --verbose)-v[") for line in lines), "zsh: values, programs, short options", *lines)
else:
    tap.skip("zsh", "it is not installed")

# ---- fish: as on its command line ----

if shutil.which("fish"):
    def fish(line):
        done = run("fish", "--no-config", "-c", f"source {FISH}; complete -C {line!r}")
        return {word.split("\t")[0]: word for word in done.stdout.splitlines()}

    tap.ok(set(fish("accel ")) == set(commands) and "config\tprint the settings in force" in fish("accel co")["config"], "fish: the commands", fish("accel "))
    for command in commands:
        found = {word.rstrip("=") for word in fish(f"accel {command} --")}
        tap.ok(found == {f"--{name}" for name in options[command]}, f"fish: the options of {command}", *(found ^ {f"--{name}" for name in options[command]}))
    tap.ok(set(fish("accel run --policy ")) == {"auto", "gpu", "cpu"} and "README.md" in fish("accel run --shim READ"), "fish: values and files", fish("accel run --policy "))
    tap.ok("bash" in fish("accel run -- bas"), "fish: a program", *list(fish("accel run -- bas"))[:9])
else:
    tap.skip("fish", "it is not installed")

# ---- The manual ----

pages = {}
for name in ("man1/accel.1", "man5/accel.conf.5", "man7/libaccel.7"):
    if not shutil.which("man"):
        tap.skip(name, "there is no man")
        continue
    done = run("man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", SHARE / "man" / name, env={"MANWIDTH": "100", "LC_ALL": "C.UTF-8", "MAN_KEEP_FORMATTING": "", "PAGER": "cat"})
    text = re.sub(r".\x08|\x1b\[[\d;]*m", "", done.stdout).replace("‐\n", "").replace("−", "-").replace("‐", "-")
    pages[name] = re.sub(r"\s+", " ", text)
    tap.ok(done.returncode == 0 and not done.stderr and "@" not in text and f"libaccel {(ROOT / 'VERSION').read_text().strip()}" in text and "SEE ALSO" in text, f"{name}: without a warning",
           done.stderr, text[:300])
if pages:
    for command in commands:
        part = pages["man1/accel.1"].partition(f"accel {command} [option...]")[2] or pages["man1/accel.1"].partition(f" accel {command} ")[2]
        lacking = [name for name in options[command] if name not in ("help", "usage", "version") and f"--{name}" not in part]
        tap.ok(part and not lacking, f"accel.1: the options of {command}", *lacking)
    done = start(TOOL, "run", "--no-such-option")
    ends = pages["man1/accel.1"].partition("EXIT STATUS")[2].partition("FILES")[0].replace(" ", "")  # of words that are hyphenated, too
    tap.ok(done.returncode == 2 and all(f"accel{command}ha" in ends for command in ("estimate", "replay")) and "Wrongoptionsare2" in ends and
           ("oneline" in ends) == (done.stderr.count("\n") == 1), "accel.1: the exit statuses", ends, done.stderr)
    page = pages["man5/accel.conf.5"]
    settings = re.findall(r"(?m)^(ACCEL\w*) ", start(TOOL, "config").stdout)
    tap.ok(len(settings) > 15 and all(f" {name}" in page for name in settings), "accel.conf.5: each setting", *(name for name in settings if f" {name}" not in page))
    tap.ok("(auto, gpu, cpu) gpu: every call that the GPU supports goes there" in page,
           "with its values and its meaning", page[2000:4000])
    tap.ok(not re.search(r"\]\(|`", page), "and no Markdown", *re.findall(r".{30}(?:\]\(|`).{30}", page))

for command in "estimate", "explain", "replay", "report":
    text = " ".join(start(TOOL, command, "--help").stdout.split())
    tap.ok("xit status is" in text and "2 for wrong options" in text, f"accel {command} --help: the exit statuses", text)

# A table that has drifted is refused.
wrong = Path(BUILD, "settings-wrong.md")
for what, text in (("lacks a setting", lambda t: re.sub(r"(?m)^\| `ACCEL_MODEL`.*\n", "", t)), ("has another", lambda t: t.replace("`ACCEL_LEARN` |", "`ACCEL_LERN` |"))):
    wrong.write_text(text((ROOT / "docs/settings.md").read_text()))
    done = run(BUILD / "pages", "man", ROOT / "tool/pages/accel.conf.5", wrong)
    tap.ok(done.returncode == 1 and "its table is not that of" in done.stderr, f"docs/settings.md {what}: the build fails", done.returncode, done.stderr)
wrong.unlink()
tap.done()
