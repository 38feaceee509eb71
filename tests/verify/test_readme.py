"""A code block of a README becomes a command, unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from researchenvbench.errors import TaskError
from researchenvbench.task import ReadmeBlock
from researchenvbench.verify.readme import code_block, fenced_blocks

if TYPE_CHECKING:
    from pathlib import Path

README = """\
# A project

```bash
pip install .
```

~~~ python
print("tildes")
~~~

1. In a list:

   ```python
   if True:
       print("indented")
   ```

````py
fence = "```"
````

```{.python}
print("pandoc")
```

    ```python
    four spaces are no fence
    ```

```python title="x.py"
unclosed = 1
"""


def test_blocks_in_order() -> None:
    assert fenced_blocks(README) == [
        ("bash", "pip install .\n"),
        ("python", 'print("tildes")\n'),
        ("python", 'if True:\n    print("indented")\n'),
        ("py", 'fence = "```"\n'),
        ("python", 'print("pandoc")\n'),
        # CommonMark: a block that nothing closes ends with the document.
        ("python", "unclosed = 1\n"),
    ]


@pytest.mark.parametrize(
    ("language", "number", "text"),
    [
        ("python", 1, 'print("tildes")\n'),
        ("python", 3, 'fence = "```"\n'),
        ("bash", 1, "pip install .\n"),
    ],
)
def test_a_block_is_named_by_language_and_number(
    tmp_path: Path, language: str, number: int, text: str
) -> None:
    (tmp_path / "README.md").write_text(README)
    block = ReadmeBlock.model_validate(
        {"file": "README.md", "language": language, "number": number}
    )
    assert code_block(tmp_path, block) == text


def test_windows_line_ends_and_bytes_that_are_no_utf8(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_bytes(b"\xff\r\n```python\r\nx = 1\r\n\r\ny = 2\r\n```\r\n")
    block = ReadmeBlock(file="README.md", number=1)
    assert code_block(tmp_path, block) == "x = 1\n\ny = 2\n"


def test_a_block_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(README)
    with pytest.raises(TaskError, match=r"README\.md has 5 blocks of python, .* no number 6"):
        code_block(tmp_path, ReadmeBlock(file="README.md", number=6))


@pytest.mark.parametrize("name", ["MISSING.md", ".", "a\0b", "docs"])
def test_a_file_that_is_not_there(tmp_path: Path, name: str) -> None:
    (tmp_path / "docs").mkdir()
    with pytest.raises(TaskError, match=r"readme_block\.file: .* is not a file of the source"):
        code_block(tmp_path, ReadmeBlock(file=name, number=1))


def test_a_file_outside_of_the_source(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tmp_path / "secret.md").write_text("```python\nx\n```\n")
    (tree / "link.md").symlink_to("../secret.md")
    (tree / "real.md").write_text("```python\nx\n```\n")
    (tree / "inner.md").symlink_to("real.md")
    for name in ("../secret.md", "link.md", str(tmp_path / "secret.md")):
        with pytest.raises(TaskError, match="leads out of the source"):
            code_block(tree, ReadmeBlock(file=name, number=1))
    assert code_block(tree, ReadmeBlock(file="inner.md", number=1)) == "x\n"
