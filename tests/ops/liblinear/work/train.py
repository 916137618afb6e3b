"""Random problems for a liblinear's train(), by ctypes: train.py LIBRARY VERSION FIRST COUNT FILE prints what the library prints, and writes the
results to FILE. With `spread` before FILE it trains each problem also with a tenth of eps, and 17 times with elements that differ in their
last bits.
train.py compare OURS THEIRS judges ours by theirs and that spread; what each run has printed is in OURS.out and THEIRS.out. Decision values may
differ by three times what these variants change; objectives by 1e-6, or where the library's own steps depend on rounding, by three times what that
changes. The lines are the library's: their numbers differ by no more than a hundredth until rounding is amplified, which shows as a line of the
library's own that the last bit of the elements changes; half as many lines as come before that one must agree.

17 times, because where rounding decides where the library ends (w169, w228 and w277 of 2.30, w228 and w252 of 2.50; the cap of 1000 iterations ends
w169, w229 and w277 of 2.30) one change of last bits tells little of what others do: of 2.30's w169 they move decision values by 5e-6 to 0.29, of 2.50's
w228 the objective by 0.0016 to 0.027."""

import ctypes
import re
import sys
from itertools import zip_longest
from pathlib import Path

import numpy as np

LR, SVC, SVR = 0, 2, 11
ROUNDED = {"rounded_" + letter: k for k, letter in enumerate("abcdefghijklmnopq", 1)}  # variants of last bits


class Node(ctypes.Structure):
    _fields_ = [("index", ctypes.c_int), ("value", ctypes.c_double)]


class Problem(ctypes.Structure):
    _fields_ = [("l", ctypes.c_int), ("n", ctypes.c_int), ("y", ctypes.POINTER(ctypes.c_double)),
                ("x", ctypes.POINTER(ctypes.POINTER(Node))), ("bias", ctypes.c_double)]


COMMON = [("solver", ctypes.c_int), ("eps", ctypes.c_double), ("C", ctypes.c_double), ("nr_weight", ctypes.c_int),
          ("weight_label", ctypes.POINTER(ctypes.c_int)), ("weight", ctypes.POINTER(ctypes.c_double)), ("p", ctypes.c_double)]
START = ("init_sol", ctypes.POINTER(ctypes.c_double))


class Old(ctypes.Structure):
    _fields_ = [*COMMON, START]


class New(ctypes.Structure):
    _fields_ = [*COMMON, ("nu", ctypes.c_double), START, ("regularize_bias", ctypes.c_int), ("w_recalc", ctypes.c_bool)]


def model_type(parameter):
    class Model(ctypes.Structure):
        _fields_ = [("param", parameter), ("nr_class", ctypes.c_int), ("nr_feature", ctypes.c_int), ("w", ctypes.POINTER(ctypes.c_double)),
                    ("label", ctypes.POINTER(ctypes.c_int)), ("bias", ctypes.c_double)]
    return Model


def array(kind, values):
    return (kind * len(values))(*values)


class Case:
    """A problem that its number determines."""

    def __init__(self, number, new):
        rng = self.rng = np.random.default_rng(number)
        self.solver = [LR, SVC, SVR][number % 3]
        self.rows, features = int(rng.integers(1, 200)), int(rng.integers(1, 30))
        self.bias = float(rng.choice([-1, 1, 0.5]))
        self.columns = features + (self.bias >= 0)
        filled = rng.random((self.rows, features)) < rng.choice([1, 0.8, 0.2, 0.05])
        x = rng.standard_normal((self.rows, features)) * filled * rng.choice([1, 1, 1, 100])
        classes = int(rng.choice([1, 2, 2, 3, 5]))
        labels = rng.permutation([-1, 1, 0, 7, -3][:classes] if rng.random() < .7 else [2, 5, 9, 11, 40][:classes])
        score = x @ rng.standard_normal((features, classes)) + rng.standard_normal((self.rows, classes))
        self.y = score[:, 0] if self.solver == SVR else labels[score.argmax(1) if classes > 1 else [0] * self.rows].astype(float)
        self.nodes = []
        for row in x:
            at = np.flatnonzero(row)
            nodes = [(int(j) + 1, float(row[j])) for j in (rng.permutation(at) if number % 7 == 6 else at)]
            if number % 11 == 10 and nodes:
                nodes.append(nodes[0])  # a column twice
            if self.bias >= 0:
                nodes.append((self.columns, self.bias))
            self.nodes.append(nodes)
        self.x = np.zeros((self.rows, self.columns))
        for i, nodes in enumerate(self.nodes):
            for j, value in nodes:
                self.x[i, j - 1] += value
        self.eps, self.c, self.p = 10. ** -rng.integers(1, 5), 10. ** rng.integers(-2, 3), float(rng.choice([0, 0.1, 1]))
        present = np.unique(self.y).astype(int) if self.solver != SVR else []
        self.weights = {int(k): float(rng.uniform(0.2, 3)) for k in present if rng.random() < .3}
        problems = 1 if self.solver == SVR or len(present) == 2 else len(present)
        self.start = rng.standard_normal(self.columns * problems) if rng.random() < .2 else None
        self.regularized = not (new and self.bias == 1 and rng.random() < .3)

    def train(self, library, parameter, eps, k):
        """k > 0: a variant of the elements, by some units in their last place: the first one by up to two, the others by one."""
        rng = np.random.default_rng(max(k - 1, 0))
        ulps = [lambda i, j: 0, lambda i, j: (j + i) % 3, lambda i, j: int(rng.integers(-1, 2))][min(k, 2)]
        rows = [array(Node, [*((j, value * (1 + ulps(i, j) * 2. ** -52)) for j, value in nodes), (-1, 0)]) for i, nodes in enumerate(self.nodes)]
        x = (ctypes.POINTER(Node) * self.rows)(*[ctypes.cast(row, ctypes.POINTER(Node)) for row in rows])
        problem = Problem(self.rows, self.columns, array(ctypes.c_double, self.y), x, self.bias)
        param = parameter(solver=self.solver, eps=eps, C=self.c, p=self.p, nr_weight=len(self.weights),
                          weight_label=array(ctypes.c_int, list(self.weights)), weight=array(ctypes.c_double, list(self.weights.values())))
        if self.start is not None:
            param.init_sol = array(ctypes.c_double, self.start)
        if parameter is New:
            param.regularize_bias = int(self.regularized)
        library.train.restype = ctypes.POINTER(model_type(parameter))
        found = library.train(ctypes.byref(problem), ctypes.byref(param))
        model = found.contents
        assert (model.nr_feature, model.bias, model.param.solver) == (self.columns - (self.bias >= 0), self.bias, self.solver)
        count = 1 if model.nr_class == 2 else model.nr_class
        w = np.array(model.w[:self.columns * count]).reshape(self.columns, count)
        label = np.array(model.label[:model.nr_class] if model.label else [])
        self.check_predictions(library, found, rows, w)
        library.free_and_destroy_model(ctypes.byref(found))
        return w, label

    def check_predictions(self, library, model, rows, w):
        values = (ctypes.c_double * w.shape[1])()
        library.predict_values(model, rows[0], values)
        assert np.allclose(self.x[0] @ w, values)

    def objectives(self, w, label):
        """Of each problem."""
        for k in range(w.shape[1]):
            v, z = w[:, k] if self.regularized else w[:-1, k], self.x @ w[:, k]
            c = np.full(self.rows, self.c)
            if self.solver == SVR:
                loss = np.maximum(abs(z - self.y) - self.p, 0) ** 2
            else:
                positive = self.y == label[k]
                c[positive] *= self.weights.get(int(label[k]), 1)
                if len(label) == 2:
                    c[~positive] *= self.weights.get(int(label[1]), 1)
                margin = np.where(positive, 1, -1) * z
                loss = np.logaddexp(0, -margin) if self.solver == LR else np.maximum(1 - margin, 0) ** 2
            yield v @ v / 2 + c @ loss


def train(path, version, first, count, *rest):
    library = ctypes.CDLL(path)
    new = int(version) > 230
    results = {}
    for number in range(int(first), int(first) + int(count)):
        case = Case(number, new)
        variants = [("w", case.eps, 0), ("tenth", case.eps / 10, 0), *((name, case.eps, k) for name, k in ROUNDED.items())]
        for name, eps, k in variants if len(rest) == 2 else variants[:1]:
            print(f"case {number} {name}", flush=True)
            results[f"{name}{number}"], results[f"label{number}"] = case.train(library, New if new else Old, eps, k)
    np.savez(rest[-1], new=new, **results)


def lines(path):
    """What each training has printed."""
    text = Path(f"{path}.out").read_text()
    return {name: part.splitlines() for name, part in re.findall(r"^case (\d+ \w+)\n(.*?)(?=^case |\Z)", text, re.M | re.S)}


def is_alike(line, other):
    """Whether words are the same, and numbers within a hundredth."""
    pairs = list(zip(line.split(), other.split()))
    number = re.compile(r"-?[0-9.]+(e[-+][0-9]+)?").fullmatch
    return len(line.split()) == len(other.split()) and all(
        a == b or number(a) and number(b) and abs(float(a) - float(b)) <= 0.01 * max(abs(float(a)), abs(float(b))) for a, b in pairs)


def agreeing(lines, others):
    """How many lines come before the first that differs; infinite if none does."""
    for i, (line, other) in enumerate(zip_longest(lines, others, fillvalue="")):
        if not is_alike(line, other):
            return i
    return float("inf")


def compare(path, other):
    """Prints a line for each case that differs by more than it may, and how many objectives, decision values and labels there were."""
    our_lines, their_lines = lines(path), lines(other)
    for name, printed in our_lines.items():
        own = their_lines[name]
        agree, sure = agreeing(printed, own), agreeing(own, their_lines[name.replace(" w", " rounded_a")])
        if agree < sure / 2:
            print(name, "line", agree, "differs; rounding changes line", sure)
    ours, theirs = np.load(path), np.load(other)
    objectives = decisions = labels = 0
    for name in ours.files:
        if not name.startswith("w"):
            continue
        case, w, v, label = Case(int(name[1:]), bool(ours["new"])), ours[name], theirs[name], ours["label" + name[1:]]
        if not np.array_equal(label, theirs["label" + name[1:]]):
            print(name, "labels differ", label, theirs["label" + name[1:]])
            continue
        others = [case.objectives(theirs[other + name[1:]], label) for other in ROUNDED]
        for f, g, *own in zip(case.objectives(w, label), case.objectives(v, label), *others):
            objectives += 1
            if not abs(f - g) <= max(1e-6 * abs(g), 3 * max(abs(g - h) for h in own), 1e-12):
                print(name, "objective", f, g, "solver", case.solver, "eps", case.eps)
        mine, its = case.x @ w, case.x @ v
        spread = max(abs(its - case.x @ theirs[other + name[1:]]).max() for other in ("tenth", *ROUNDED))
        bound = 3 * spread + 1e-9 * (1 + abs(its).max())
        decisions += its.size
        if not abs(mine - its).max() <= bound:
            print(name, "decision values", abs(mine - its).max(), "bound", bound)
        if case.solver != SVR and len(label) > 1:
            first = mine.argmax(1) if len(label) > 2 else mine[:, 0] > 0
            second = its.argmax(1) if len(label) > 2 else its[:, 0] > 0
            ordered = np.sort(its, axis=1)
            sure = (ordered[:, -1] - ordered[:, -2] > 2 * bound) if len(label) > 2 else abs(its[:, 0]) > bound
            labels += int(sure.sum())
            if (first != second)[sure].any():
                print(name, "labels of", (first != second)[sure].sum(), "rows")
    print("compared", objectives, decisions, labels)


if __name__ != "__main__":
    pass
elif sys.argv[1] == "compare":
    compare(*sys.argv[2:])
else:
    train(*sys.argv[1:])
