"""Is what was left what it looks like? The work tree and the environment, judged from outside.

    worktree.py    tracked files and the commit; edits.py for a user's own folder
    shadows.py     untracked modules that come before others; submodules.py those inside packages
    restore.py     what installers rewrite
    prefix.py      the environment as a whole
    launch.py      the program that the reported interpreter is
    hooks.py       code that every start executes
    frameworks.py  torch, jax, tensorflow against their lists and the files they need
    variables.py   variables that change what is loaded

The facts come from `standalone.look`, the judgement is made here.
"""
