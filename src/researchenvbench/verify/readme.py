"""A code block of the repository's documentation as a stage's command."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..errors import TaskError

if TYPE_CHECKING:
    from pathlib import Path

    from ..task import ReadmeBlock

_LANGUAGES = {
    "python": {"python", "py", "python3"},
    "bash": {"bash", "shell", "console"},
    "sh": {"sh", "shell"},
}
#: CommonMark 0.31, section 4.5: up to three spaces, then three or more backticks or tildes.
_FENCE = re.compile(r"^(?P<indent> {0,3})(?P<fence>`{3,}|~{3,})\s*(?P<info>[^`]*)$")


def code_block(tree: Path, block: ReadmeBlock) -> str:
    """The text of the block in the pristine source `tree`.

    Raises:
        TaskError: the file, or a block of that number, is not there.
    """
    path = tree / block.file
    try:
        if not path.resolve().is_relative_to(tree.resolve()):
            raise TaskError(f"readme_block.file: {block.file} leads out of the source")
        text = path.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError) as error:
        raise TaskError(f"readme_block.file: {block.file} is not a file of the source") from error
    blocks = [
        body for language, body in fenced_blocks(text) if language in _LANGUAGES[block.language]
    ]
    if len(blocks) < block.number:
        raise TaskError(
            f"readme_block.number: {block.file} has {len(blocks)} blocks of {block.language}, "
            f"there is no number {block.number}"
        )
    return blocks[block.number - 1]


def fenced_blocks(text: str) -> list[tuple[str, str]]:
    """(language, body) of each fenced code block of a Markdown text, in order."""
    blocks = []
    fence, indent, language, body = "", 0, "", list[str]()
    for line in text.splitlines():
        match = _FENCE.match(line)
        if not fence:
            if match:
                fence, indent = match["fence"], len(match["indent"])
                language = (match["info"].split() or [""])[0].strip("{}.").lower()
                body = []
        elif match and match["fence"].startswith(fence) and not match["info"].strip():
            blocks.append((language, "\n".join(body) + "\n"))
            fence = ""
        else:
            margin = min(indent, len(line) - len(line.lstrip(" ")))
            body.append(line[margin:])
    if fence:
        # CommonMark: what nothing closes ends with the document.
        blocks.append((language, "\n".join(body) + "\n"))
    return blocks
