"""Turning a process into a program, or saying in words why that cannot be."""

from __future__ import annotations

import errno
import os


def execute(argv: list[str], env: dict[str, str], cwd: str) -> str:
    """Replace this process by the program; returns only when it cannot, with the reason."""
    try:
        os.chdir(cwd)
    except (OSError, ValueError) as error:
        return f"{cwd}: the working folder cannot be entered: {reason(error)}"
    try:
        os.execvpe(argv[0], argv, env)  # noqa: S606 - no shell is what is wanted
    except FileNotFoundError:
        if "/" in argv[0] and os.path.exists(argv[0]):
            return f"{argv[0]}: the interpreter that its first line names does not exist"
        where = "" if "/" in argv[0] else f" on PATH ({env.get('PATH', '')})"
        return f"{argv[0]}: program not found{where}"
    except PermissionError as error:
        if os.path.isdir(argv[0]):
            return f"{argv[0]}: is a folder, not a program"
        return f"{argv[0]}: {reason(error)} (not executable)"
    except OSError as error:
        if error.errno == errno.ENOEXEC:
            return f"{argv[0]}: not a program that this machine can run ({reason(error)})"
        if error.errno == errno.E2BIG:
            return f"{argv[0]}: arguments and environment are too long together"
        return f"{argv[0]}: {reason(error)}"
    except ValueError as error:
        return f"{argv[0]!r}: {error}"


def reason(error: Exception) -> str:
    """Why, in the words of the operating system."""
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
