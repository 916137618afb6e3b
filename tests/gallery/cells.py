"""An example's source as a program that prints what a notebook prints."""

import ast
import re
import sys


def code_of(markdown):
    """The code cells of a notebook in MyST's Markdown."""
    cells = re.findall(r"(?ms)^```\{code-cell\}[^\n]*\n(?:---\n.*?^---\n)?(.*?)^```", markdown)
    return "\n".join("\n".join(line for line in cell.splitlines() if not re.match(r":\w|[%!]", line)) for cell in cells)


def shown(node):
    """The statement that prints the value of an expression, unless that is None."""
    call = ast.parse("__import__('sys').displayhook(0)").body[0]
    call.value.args = [node.value]
    return ast.copy_location(call, node)


def program(path):
    """The code of a script or a notebook."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    tree = ast.parse(code_of(text) if path.endswith(".md") else text)
    tree.body = [shown(node) if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant) else node for node in tree.body]
    sys.displayhook = lambda value: None if value is None else print(repr(value))
    return compile(ast.fix_missing_locations(tree), path, "exec")
