"""Runs a block of Python as the interactive prompt would, showing what expressions give.

Stand-alone, for any Python 3.6 or newer: `python echo_block.py BLOCK.py`. The block is
executed unchanged, in a module named `__main__`.
"""

import ast
import sys
import types


def main(path: str) -> None:
    """Run the block in the file `path`."""
    with open(path, encoding="utf-8") as stream:  # noqa: PTH123  # stand-alone and old Pythons
        text = stream.read()
    module = types.ModuleType("__main__")
    module.__file__ = path
    sys.modules["__main__"] = module
    for statement in ast.parse(text, path).body:
        if isinstance(statement, ast.Expr):
            code = compile(ast.Interactive([statement]), path, "single")
        else:
            code = compile(ast.Module([statement], []), path, "exec")
        exec(code, module.__dict__)  # noqa: S102  # the block is the repository's own


if __name__ == "__main__":
    sys.argv = sys.argv[1:]
    main(sys.argv[0])
