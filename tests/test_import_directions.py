"""The folders know each other in one direction only, as docs/architecture.md draws it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "researchenvbench"
PROBES = sorted(PACKAGE.glob("**/probes/*.py"))


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return subprocess.run(
        [sys.executable, "-c", code, "--no-cache"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_import_directions_hold() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_wrong_direction_would_be_seen(tmp_path: Path) -> None:
    """The contracts are read, and can fail: here one turns the layers upside down."""
    text = (ROOT / ".importlinter").read_text()
    assert "    cli\n    run | results | selection\n" in text
    turned = text.replace(
        "    cli\n    run | results | selection\n", "    run | results | selection\n    cli\n"
    )
    (tmp_path / ".importlinter").write_text(turned)
    done = lint(tmp_path)
    assert done.returncode == 1
    assert "researchenvbench.run is not allowed to import" in done.stdout or (
        "researchenvbench.cli is not allowed to import" in done.stdout
    )


@pytest.mark.parametrize("probe", PROBES, ids=[str(path.relative_to(PACKAGE)) for path in PROBES])
def test_a_probe_imports_the_standard_library_and_what_it_judges(probe: Path) -> None:
    """Probes are copied into a box and run by its interpreter, which knows nothing of ours."""
    imported = set()
    for node in ast.walk(ast.parse(probe.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno} is a relative import"
            imported.add((node.module or "").partition(".")[0])
        elif isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
    judged = {"torch", "jax", "tensorflow", "pip"}
    if "jax" in imported:
        judged.add("numpy")  # it is nothing without, and its arrays on the host are numpy's
    assert imported <= sys.stdlib_module_names | judged


@pytest.mark.parametrize(
    "before",
    ["", "import researchenvbench.verify.pyramid", "import researchenvbench as r; r.verify"],
)
def test_verify_is_the_function_whatever_was_imported(before: str) -> None:
    code = f"{before}\nfrom researchenvbench import verify\nassert callable(verify), verify\n"
    code += "import researchenvbench\nassert researchenvbench.verify is verify\n"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
