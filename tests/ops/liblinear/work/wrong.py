"""Problems for liblinear's train() that are not numbers, or hardly: prints the weights of each, to the last bit."""

import ctypes
import sys

from train import Node, Old, Problem, array, model_type

library = ctypes.CDLL(sys.argv[1])
library.set_print_string_function(None)
library.train.restype = ctypes.POINTER(model_type(Old))
for value, label in ((float("nan"), 1), (float("inf"), 1), (2, float("nan")), (2, 1e300)):
    rows = [array(Node, [(1, value), (2, 1), (-1, 0)]), array(Node, [(1, -1), (-1, 0)]), array(Node, [(-1, 0)])]
    x = (ctypes.POINTER(Node) * 3)(*[ctypes.cast(row, ctypes.POINTER(Node)) for row in rows])
    problem = Problem(3, 2, array(ctypes.c_double, [label, -1, -1]), x, -1)
    model = library.train(ctypes.byref(problem), ctypes.byref(Old(solver=2, eps=0.1, C=1))).contents
    print("w", [float(w).hex() for w in model.w[:2]], model.nr_class, flush=True)
