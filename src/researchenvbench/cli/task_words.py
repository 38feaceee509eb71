"""How `reb tasks list` and `reb tasks show` put a suite and a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..asset import FileAsset, HubAsset, SourceAsset, UrlAsset
from ..proofs import standing
from ..results.wording import plural
from ..task import GitSource, SdistSource, StageName
from ..verify.evidence import describe

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.table import Table

    from ..asset import Asset
    from ..run.part import Part
    from ..task import Breakage, Stage, Task

#: Standing -> how a narrow column puts it.
_SHORT = {
    "proven": "proven",
    "unproven": "unproven",
    "not_solvable": "unsolvable",
    "not_distributed": "one process",
    "not written": "unwritten",
    "no source": "no source",
}


def stage_standings(task: Task) -> dict[str, str]:
    """By stage that counts, how far it is to be trusted, or why it is not there."""
    return {
        name: task.word_for_unwritten() if task.is_unwritten(name) else standing(task, name)
        for name in StageName
        if name in task.stages or task.is_unwritten(name)
    }


def suite_table(tasks: Sequence[Task]) -> Table:
    """Tasks of a suite, a line each."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for heading in ("task", *StageName):
        table.add_column(heading, no_wrap=True)
    # Where the terminal is narrow these give way, and no line becomes two.
    for heading in ("frameworks", "domain"):
        table.add_column(heading)
    for task in tasks:
        standings = stage_standings(task)
        stages = [_SHORT.get(standings.get(name, ""), "-") for name in StageName]
        ends = (", ".join(task.frameworks) or "none", task.domain)
        cells = [Text(end, no_wrap=True, overflow="ellipsis") for end in ends]
        table.add_row(task.name, *stages, *cells)
    return table


def suite_words(tasks: Sequence[Task], part: Part) -> Iterator[str]:
    """What is to be said below the table."""
    names = [stage for task in tasks for stage in stage_standings(task)]
    counts = ", ".join(f"{names.count(stage)} {stage}" for stage in StageName)
    number = plural(len(tasks), "task")
    if part.words:
        number = f"{len(tasks)} of {plural(part.suite_tasks, 'task')} ({part.words})"
    yield f"{number}; stages that count: {counts}"
    yield (
        "proven: gold passes it and damages fail it; unproven: nobody has shown that yet; "
        "unwritten: it counts and is inconclusive; no source: likewise, since nobody has the "
        "commit; one process: likewise, since the repository offers no distributed run; -: it "
        "does not apply"
    )
    gone = [task.name for task in tasks if task.unavailable]
    if gone:
        yield f"source not available: {', '.join(gone)}"


def task_page(task: Task) -> Iterator[str]:
    """All that there is to know about a task."""
    yield f"{task.name}: {task.title}" if task.title else task.name
    for name, value in _facts(task):
        yield f"  {name:<12}{value}"
    standings = stage_standings(task)
    for name in StageName:
        if name in task.stages:
            yield from ("", f"stage {name} ({standings[name].replace('_', ' ')})")
            yield from _stage(task.stages[name])
        elif name in standings:
            why = "cannot be written: its source is not available"
            if not task.unavailable:
                why = "is not written yet"
            yield from ("", f"stage {name} applies and {why}: inconclusive (task)")
        elif task.applicable is not None:
            yield from ("", f"stage {name} does not apply: {task.why_not_applicable(name)}")
    for asset_name, asset in task.assets.items():
        yield from ("", f"asset {asset_name}: {_original(asset)}")
        if asset.why_not_pinned:
            yield f"  {asset.why_not_pinned}, so the original is not used"
        if asset.recipe is not None:
            word = "made by" if asset.kind == "made" else "stand-in by"
            known = f", digest {asset.recipe.digest}" if asset.recipe.digest else ""
            yield f"  {word} {asset.recipe.script}{known}"
    if task.gold:
        yield from ("", f"gold: Python {task.gold.python}")
        for step in task.gold.steps:
            yield f"  {' '.join(step)}"
    for breakage_name, breakage in task.breakages.items():
        yield from ("", f"breakage {breakage_name}: {breakage.description}")
        yield from (f"  {line}" for line in _damage(breakage))
        must = "still pass"
        if breakage.expect == "failed":
            must = f"fail, and say {breakage.because}"
        yield f"  {breakage.level} must {must}"
    if task.notes:
        yield from ("", "notes")
        yield from (f"  {line}" for line in task.notes.strip().splitlines())


def _damage(breakage: Breakage) -> Iterator[str]:
    """What is done to the environment."""
    for word in ("uninstall", "remove", "stub", "install"):
        if names := getattr(breakage, word):
            yield f"{word} {', '.join(names)}"
    for file, code in breakage.append.items():
        yield f"append to {file}: {' / '.join(code.strip().splitlines())}"


def _facts(task: Task) -> Iterator[tuple[str, str]]:
    """The lines at the top: name and value."""
    yield "domain", task.domain
    yield from _source(task)
    yield "licence", task.licence or "none known"
    yield "python", task.python or "any"
    yield "frameworks", ", ".join(task.frameworks) or "none"
    if task.also_uses:
        yield "also uses", ", ".join(task.also_uses)
    for i, (name, what) in enumerate(task.native_extensions.items()):
        yield "" if i else "native", f"{name}: {what}"
    if task.auxiliary_tools:
        yield "tools", ", ".join(task.auxiliary_tools)
    if task.c0.total_paper is not None:
        yield "imports", f"{task.c0.total_paper} modules in the paper's reading"
    provenance = task.provenance
    if provenance.paper:
        stars = provenance.stars_at_selection
        yield "chosen by", f"{provenance.paper}, on {provenance.selected_on or 'a day not known'}"
        yield "", f"stars on that day: {'not known' if stars is None else stars}"
    if provenance.facts:
        yield "facts from", provenance.facts


def _source(task: Task) -> Iterator[tuple[str, str]]:
    source = task.source
    if isinstance(source, GitSource):
        yield "source", f"git {source.url}"
        yield "", f"at {source.commit}"
        for url in source.also_at:
            yield "", f"also at {url}"
        if source.unavailable:
            yield "", f"not available: {source.unavailable}"
    elif isinstance(source, SdistSource):
        yield "source", f"sdist {source.name} {source.version}"
    else:
        yield "source", f"folder {source.path}"


def _original(asset: Asset) -> str:
    """Where it lies, and under which conditions."""
    match asset:
        case HubAsset():
            where = f"{asset.type} {asset.repo}"
            where += f" at {asset.revision}" if asset.revision else ""
        case UrlAsset():
            where = asset.url
        case FileAsset() | SourceAsset():
            where = f"{asset.path}, of the {'task' if asset.kind == 'file' else 'repository'}"
        case _:
            where = "no original"
    known = [where, asset.licence or "", "gated" if asset.gated else ""]
    return ", ".join(word for word in known if word)


def _stage(stage: Stage) -> Iterator[str]:
    if stage.readme_block:
        block = stage.readme_block
        yield f"  runs        {block.language} block {block.number} of {block.file}"
    elif stage.command:
        yield f"  runs        {' '.join(stage.command)}"
    for why in (stage.not_solvable, stage.not_distributed):
        if why:
            yield f"  not run     {' '.join(why.split())}"
    if stage.assets:
        yield f"  reads       {', '.join(stage.assets)}"
    if stage.folder != "{work}":
        yield f"  in          {stage.folder}"
    for service in stage.services:
        yield f"  beside      {service.name}: {' '.join(service.command)}"
    yield f"  time limit  {stage.time_limit_s:.0f} s"
    for entry in stage.evidence:
        yield f"  evidence    {describe(entry)}"
