"""`reb tasks select`: candidates for tasks, by the paper's criteria.

How they look is the subject of `selection_words`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import EXIT_INCONCLUSIVE
from .sources import from_option, source_mirror_option

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from ..selection.criteria import Asked, Selection

_PUBLIC_API = "https://api.github.com"


@click.command("select", short_help="Find candidates for tasks, by the paper's criteria.")
@click.option("--query", "queries", multiple=True, metavar="Q", help="What GitHub searches for.")
@click.option("--suite", "suite_name", metavar="SUITE", help="Judge the trees of SUITE instead.")
@click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%d"]),
    default="2024-01-01",
    metavar="DATE",
    help="Created on that day or later.  [default: 2024-01-01]",
)
@click.option(
    "--stars",
    type=click.IntRange(0),
    default=100,
    metavar="N",
    help="More stars than that.  [default: 100]",
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=100,
    metavar="N",
    help="The N with most stars.  [default: 100]",
)
@click.option(
    "--api",
    envvar="GITHUB_API_URL",
    default=_PUBLIC_API,
    metavar="URL",
    help="Root of GitHub's REST API.  [env: GITHUB_API_URL]",
)
@click.option("--fresh", is_flag=True, help="Ask again what was answered within a day.")
@click.option("--only", multiple=True, metavar="TASK", help="Of SUITE, only these.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write candidates and reasons as JSON.",
)
@click.option("--why", "all_reasons", is_flag=True, help="Every reason, with file and line.")
@click.option("--json", "as_json", is_flag=True, help="Print what FILE would hold.")
@from_option
@source_mirror_option
def select(
    queries: tuple[str, ...],
    suite_name: str | None,
    since: datetime,
    stars: int,
    limit: int,
    api: str,
    fresh: bool,
    only: tuple[str, ...],
    out: Path | None,
    all_reasons: bool,
    as_json: bool,
    places: tuple[Path, ...],
) -> int:
    """Find repositories that could become tasks, and say why each is one or not.

    \b
    Examples:
      reb tasks select --query "diffusion" --limit 50 --out candidates.json
      reb tasks select --suite paper44 --source-mirror path/to/mirrors

    With --query a GitHub is searched, and the trees of what its facts do not
    refuse are fetched and read. With --suite the commits of SUITE are read, and
    no server is asked for facts: what a tree does not show is unknown.

    GITHUB_TOKEN, where it is set, raises GitHub's limits; it is written nowhere.
    Answers and trees are kept, so the same command goes on where it was cut off.
    Exits with 3 when something could not be asked or read.
    """
    from ..selection.criteria import Asked

    if bool(queries) == (suite_name is not None):
        raise click.UsageError("give either --query or --suite")
    if only and suite_name is None:
        raise click.UsageError("--only needs --suite")
    if places and suite_name is None:
        raise click.UsageError("--from needs --suite: trees of candidates come from the server")
    if out is not None and not out.absolute().parent.is_dir():
        raise click.UsageError(f"--out: there is no folder {out.absolute().parent}")
    asked = Asked(
        queries=queries,
        api="" if suite_name else api,
        suite=suite_name or "",
        since=since.date(),
        more_stars_than=stars,
        limit=None if suite_name else limit,
    )
    keep = _keeper(out)
    if suite_name is not None:
        selection, whole = _of_suite(asked, only, places)
        keep(selection)
    else:
        selection, whole = _of_search(asked, api, keep, fresh=fresh)
    _show(selection, as_json=as_json, all_reasons=all_reasons, out=out)
    return 0 if whole else EXIT_INCONCLUSIVE


def _of_suite(
    asked: Asked, only: tuple[str, ...], places: tuple[Path, ...]
) -> tuple[Selection, bool]:
    """The selection, and whether all was read that is known to be somewhere."""
    from ..selection.selecting import judge_suite
    from ..taskfile import load_suite

    suite = load_suite(asked.suite)
    tasks = [suite.task(name) for name in only] or list(suite.tasks)
    selection = judge_suite(asked, tasks, places=places, say=_say)
    read = {candidate.name for candidate in selection.candidates if candidate.commit}
    return selection, all(task.name in read or task.unavailable for task in tasks)


def _of_search(
    asked: Asked, api: str, keep: Callable[[Selection], None], *, fresh: bool
) -> tuple[Selection, bool]:
    """The selection, and whether it was whole and every candidate could be decided."""
    from ..places import default_cache
    from ..selection.answers import Answers
    from ..selection.criteria import Decision
    from ..selection.github import GitHub
    from ..selection.selecting import select as select_candidates
    from ..selection.trees import Trees

    cache = default_cache() / "selection"
    answers = Answers(cache / "answers", fresh=fresh)
    with GitHub(api, answers, _say) as github:
        selection = select_candidates(asked, github, Trees(cache / "trees"), say=_say, keep=keep)
    keep(selection)
    if answers.oldest is not None:
        _say(f"answers from {answers.oldest:%Y-%m-%d %H:%M} UTC on were used; --fresh asks again")
    undecided = any(one.decision is Decision.UNDECIDED for one in selection.candidates)
    return selection, selection.complete and not undecided


def _show(selection: Selection, *, as_json: bool, all_reasons: bool, out: Path | None) -> None:
    if as_json:
        click.echo(selection.model_dump_json(indent=1, by_alias=True))
        return
    import sys

    from rich.console import Console

    from .selection_words import reasons, sums, table

    width = None if sys.stdout.isatty() else 200
    Console(width=width).print(table(selection))
    for line in reasons(selection, every=all_reasons):
        click.echo(line)
    for line in sums(selection):
        click.echo(line)
    if out is not None:
        click.echo(f"{out} has all reasons")


def _keeper(out: Path | None) -> Callable[[Selection], None]:
    def keep(selection: Selection) -> None:
        if out is not None:
            selection.save(out)

    return keep


def _say(line: str) -> None:
    click.echo(line, err=True)
