"""Writes docs/task-reference.md from the models of a task file.

python scripts/task_reference.py           write the page
python scripts/task_reference.py --check   exit with 1 when it is out of date
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from researchenvbench import asset, evidence, task

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

PAGE = Path(__file__).parent.parent / "docs" / "task-reference.md"

#: Table of the file -> model, in the order of the page.
TABLES: list[tuple[str, type[BaseModel]]] = [
    ("the file itself", task.Task),
    ('`[source]`, kind = "git"', task.GitSource),
    ('`[source]`, kind = "sdist"', task.SdistSource),
    ('`[source]`, kind = "folder"', task.FolderSource),
    ("`[c0]`", task.C0Scope),
    ("`[applicable]`", task.Applicability),
    ("`[provenance]`", task.Provenance),
    ("`suite.toml` beside the tasks, if any", task.SuiteFacts),
    ("`[stages.cpu]`, `[stages.single_gpu]`, `[stages.multi_gpu]`", task.Stage),
    ("`readme_block` of a stage", task.ReadmeBlock),
    ("`[[stages.STAGE.services]]`", task.Service),
    ('`[[stages.STAGE.evidence]]`, kind = "output"', evidence.OutputEvidence),
    ('`[[stages.STAGE.evidence]]`, kind = "file"', evidence.FileEvidence),
    ('`[[stages.STAGE.evidence]]`, kind = "change"', evidence.ChangeEvidence),
    ('`[[stages.STAGE.evidence]]`, kind = "http"', evidence.HttpEvidence),
    ('`[[stages.STAGE.evidence]]`, kind = "exit"', evidence.ExitEvidence),
    ("bounds of `groups` and `numeric`", evidence.Bounds),
    ('`[assets.NAME]`, kind = "file"', asset.FileAsset),
    ('`[assets.NAME]`, kind = "source"', asset.SourceAsset),
    ('`[assets.NAME]`, kind = "url"', asset.UrlAsset),
    ('`[assets.NAME]`, kind = "hub"', asset.HubAsset),
    ('`[assets.NAME]`, kind = "made"', asset.MadeAsset),
    ("`[assets.NAME.stand_in]`, `[assets.NAME.recipe]`", asset.StandIn),
    ("`[gold]`, and a recipe of the agent `script`", task.Recipe),
    ("`[breakages.NAME]`", task.Breakage),
]


def page() -> str:
    """The whole page."""
    lines = [
        "# The task file",
        "",
        "    reb tasks new NAME          # writes a commented template",
        "    reb tasks check FOLDER      # checks the tasks of a folder",
        "",
        "This page is generated from the models by `scripts/task_reference.py`. Placeholders in "
        "commands, folders, variables and patterns: "
        + " ".join(f"`{{{name}}}`" for name in task.PLACEHOLDERS)
        + " and `{assets.NAME}`.",
    ]
    for title, model in TABLES:
        lines += ["", f"## {title}", "", inspect.cleandoc(model.__doc__ or ""), ""]
        lines += ["| key | type | default | meaning |", "| --- | --- | --- | --- |"]
        # What several kinds share comes after what is a kind's own.
        fields = sorted(model.model_fields.items(), key=lambda f: f[0] not in model.__annotations__)
        lines += [
            _row(name, field)
            for name, field in fields
            if name != "folder" or model is not task.Task
        ]
    return "\n".join(lines) + "\n"


def _row(name: str, field: FieldInfo) -> str:
    cells = [f"`{field.alias or name}`", f"`{_type(field.annotation)}`", _default(field)]
    cells.append(field.description or "")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value: Any = field.default
    if value is PydanticUndefined and field.default_factory is not None:
        return "empty"
    if value is None or value in ((), "", {}):
        return "none"
    return "see there" if isinstance(value, BaseModel) else f"`{value}`"


def _type(annotation: Any) -> str:
    text = re.sub(
        r"Annotated\[(.*?), FieldInfo\(.*?\)\]", r"\1", inspect.formatannotation(annotation)
    )
    for prefix in (
        "typing.",
        "researchenvbench.task.",
        "researchenvbench.evidence.",
        "researchenvbench.asset.",
    ):
        text = text.replace(prefix, "")
    return text if len(text) <= 120 else text[:117] + "…"


def main() -> int:
    """Write or check the page."""
    text = page()
    if "--check" in sys.argv:
        return 0 if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text else 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
