#!/usr/bin/python3 -B
"""R's e1071 has a copy of libsvm inside: its calls of svm_train() are bound by name, so libaccel sees them; so are those of svm_predict_values()
by that copy itself, with a model on the stack."""

from harness import WORK
from lib.log import lines_for
from lib.programs import LOG, NO_GPU, TEST_GPU, start
from lib.tap import Tap

tap = Tap()
SCRIPT = ("/usr/bin/Rscript", WORK / "e1071_svm.R")
plain = start(*SCRIPT)
tap.ok(plain.returncode == 0 and "classes" in plain.stdout and "target" in plain.stdout, "e1071 itself", plain.stdout, plain.stderr)
done = start(*SCRIPT, env={**TEST_GPU, **LOG})
lines = [lines_for(done, sym="svm_train", ran="gpu0", why="forced", l="150", features="6", kernel=kernel) for kernel in ("rbf", "poly")]
tap.ok(done.stdout == plain.stdout and [len(some) for some in lines] == [1, 1], "on the GPU: the same models and predictions",
       plain.stdout, done.stdout, done.stderr)
predicted = [line for line in lines_for(done) if line["sym"].startswith("svm_predict")]
tap.ok(len(predicted) > 100 and "svm_predict" in {line["sym"] for line in predicted} and {line["ran"] for line in predicted} == {"gpu0"}, "each row is predicted there", len(predicted), predicted[-1:])
done = start(*SCRIPT, env={**NO_GPU, **LOG})
tap.ok(done.stdout == plain.stdout and len(lines_for(done, sym="svm_train", ran="cpu", why="no_gpu")) == 2, "without a GPU: its own",
       done.stdout, done.stderr)
tap.done()
