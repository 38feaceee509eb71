"""What an agent did, step by step, in one form for all agents.

Each agent's own transcript is kept whole, in its own format; this is what is derived from it,
`transcript.jsonl` in the attempt's folder. It is what tables count, what a reader of the page
sees, and what the agent `replay` does again. A reader of a program's own format
(`transcripts/`) makes it; mini-swe-agent and episodes write it themselves, as they go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field, ValidationError

from ..errors import RecordError
from ..model_use import Call, Tokens  # noqa: TC001  # its models are checked by it
from ..stored import Stored, write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from ..sandbox import Layout

#: The file's name, in the folder of the attempt; and that of the places that it names.
TRANSCRIPT, LAYOUT = "transcript.jsonl", "layout.json"

#: Of a step's output and of what the agent said, in characters: the head and the tail.
SHOWN = 4000


class Step(Stored):
    """One thing that the agent did."""

    number: int = Field(description="From 1.")
    kind: Literal["command", "write", "edit", "other"] = Field(
        description="A shell command; a whole file; a text replaced in a file; another tool."
    )
    began: str | None = Field(None, description="UTC, where the transcript tells.")
    seconds: float | None = Field(None, description="That it took, where that can be told.")
    command: str = Field("", description="Of a shell; or the name of another tool.")
    cwd: str | None = Field(None, description="Where it ran, if the transcript tells.")
    exit_status: int | None = Field(None, description="Null where there is none, or none told.")
    failed: bool = Field(False, description="The agent was told that it did not work.")
    output: str = Field("", description="Its end at least; shortened.")
    path: str = Field("", description="Of the file that was written or edited.")
    content: str = Field("", description="What was written; of an edit, the new text.")
    replaced: str = Field("", description="Of an edit: the old text.")
    everywhere: bool = Field(False, description="Of an edit: each place, not the only one.")
    said: str = Field("", description="What the agent said before it; shortened.")
    turn: str = Field("", description="The provider's id of the answer that asked for it.")
    tokens: Tokens | None = Field(
        None, description="Of the model's turn that asked for it; on the first of its steps."
    )


class Places(Stored):
    """Where a build's box had what its transcript names: an attempt's folder may be moved since.

    Absolute paths inside of the box.
    """

    root: str
    repo: str
    home: str
    tmp: str
    cache: str
    env: str
    report: str


def keep_layout(attempt: Path, layout: Layout) -> None:
    """Write where things are in the build's box into the attempt's folder."""
    names = {name: str(getattr(layout, name)) for name in Places.model_fields}
    Places(**names).save(attempt / LAYOUT)


def shortened(text: str, limit: int = SHOWN) -> str:
    """The head and the tail of a long text; the whole of a short one."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"


def with_tokens(steps: Iterable[Step], calls: Iterable[Call]) -> list[Step]:
    """The steps with the tokens that the relay has counted, where it knows the answer.

    What a transcript says of tokens is not read: an agent writes it, and some note them when
    an answer has only begun.
    """
    counted = {call.answer: call.tokens for call in calls if call.answer and call.tokens}
    found, seen = [], set()
    for step in steps:
        if step.turn in counted:
            tokens = None if step.turn in seen else counted[step.turn]
            step = step.model_copy(update={"tokens": tokens})
        seen.add(step.turn)
        found.append(step)
    return found


def write_steps(path: Path, steps: Iterable[Step]) -> None:
    """Write a common transcript, whole or not at all."""
    lines = (step.model_dump_json(exclude_defaults=True) + "\n" for step in steps)
    write_atomically(path, "".join(lines))


def read_steps(path: Path) -> list[Step]:
    """Read a common transcript.

    Raises:
        RecordError: it cannot be read, or is none; the line is named.
    """
    try:
        # Not by every sign that ends a line somewhere: those stand in texts as they are.
        lines = path.read_bytes().decode().removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{path}: cannot be read: {error}") from error
    steps = []
    for number, line in enumerate(lines if lines != [""] else (), start=1):
        try:
            steps.append(Step.model_validate_json(line))
        except ValidationError as error:
            raise RecordError(
                f"{path}: line {number} is no step: {error.errors()[0]['msg']}"
            ) from error
    return steps
