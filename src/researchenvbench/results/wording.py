"""The words in which verdicts, times and sizes are shown, and what makes foreign text safe.

Reasons, log lines and names come from programs that nobody vouches for: whatever is shown
goes through `clean` first, so that it cannot steer a terminal or take more than its line.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Literal

from ..attempt import Level, Owner, Verdict, Want

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..attempt import LevelResult
    from ..model_use import ModelUse
    from ..network_use import NetworkUse

    #: Of the weights and data of a stage, as a whole.
    AssetKind = Literal["", "originals", "stand-ins"]

#: What a level asks, in a line that a newcomer understands.
QUESTIONS = {
    Level.C0: "do the imports of the code resolve in the environment?",
    Level.C1: "does the repository's own entry point run on the CPU?",
    Level.C2: "do the frameworks fit the driver and the GPUs?",
    Level.C3: "does the entry point compute on one GPU?",
    Level.C4: "does it run on several GPUs together?",
    Level.C5: "is what the agent reported true?",
}
LONGEST_LABEL = max(len(level.label) for level in Level)
#: Marks behind a verdict, and what they mean.
MARKS = {
    "*": "the stage was not proven when this ran: `reb tasks prove SUITE` proves it, "
    "then `--reverify`",
    "~": "repeats gave different verdicts",
    "+": "not fresh: an earlier stage had changed files of the environment",
    "=": "with the originals of the weights or data that it reads",
    "^": "with stand-ins for weights or data that it reads: the code ran, on made-up inputs",
}
STYLES = {
    Verdict.PASSED: "green",
    Verdict.FAILED: "bold red",
    Verdict.INCONCLUSIVE: "yellow",
    Verdict.NOT_APPLICABLE: "dim",
}
_ASSET_MARKS = {"originals": "=", "stand-ins": "^"}
#: One letter a verdict, for lists of runs.
LETTERS = {
    Verdict.PASSED: "P",
    Verdict.FAILED: "F",
    Verdict.INCONCLUSIVE: "?",
    Verdict.NOT_APPLICABLE: "-",
}
NOT_MEASURED = "."
#: Levels whose verdict rests on a stage that a task must have proven.
STAGE_LEVELS = (Level.C1, Level.C3, Level.C4)

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # titles, links, clipboards
    r"|\x1b[ -/]*[0-~]",
    re.DOTALL,
)
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9.+-]*(?::[a-z0-9]+)?")
_MINUTE_S, _HOUR_S = 60.0, 3600.0


def clean(text: object, limit: int = 400) -> str:
    """Foreign text as one line that no terminal obeys, at most `limit` characters long."""
    shown = " ".join(_ESCAPES.sub("", str(text)[: limit * 8]).split())
    shown = "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) in ("Cc", "Cf", "Cs") else c
        for c in shown
    )
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


def is_unproven(result: LevelResult) -> bool:
    """Whether the verdict rests on a stage that nothing has proven."""
    return (
        result.level in STAGE_LEVELS
        and result.proven in (None, "unproven")
        and result.verdict is not Verdict.NOT_APPLICABLE
        and result.owner is not Owner.TASK
    )


def kind_of_assets(result: LevelResult) -> AssetKind:
    """What a level's stage read: the originals, something that stands in for one, or neither."""
    origins = {use.origin for use in result.assets.values()}
    return "stand-ins" if "stand-in" in origins else "originals" if "real" in origins else ""


def asset_words(result: LevelResult) -> str:
    """Each asset of a level's stage, with which it was; empty where it reads none."""
    words = {"real": "original", "stand-in": "stand-in", "made": "made"}
    parts = []
    for name, use in result.assets.items():
        which = f"{words[use.origin]} {use.digest[:12]}" if use.digest else "could not be had"
        changed = f", changed when the stage had ended: {use.changed}" if use.changed else ""
        parts.append(f"{name} ({which}{changed})")
    return "; ".join(parts)


def gpu_words(result: LevelResult) -> str:
    """How well it is known that each GPU computed, and what was counted; empty of other levels."""
    use = result.gpu_use
    if use is None or not result.gpu_grades:
        return ""
    parts = []
    for number, gpu in enumerate(use.gpus):
        counted = [one for process in use.processes for one in process.counted if one.gpu == gpu]
        kernels = sum(one.kernels for one in counted)
        nccl = sum(one.nccl_kernels for one in counted)
        graphs = sum(one.graphs for one in counted)
        said = [f"{kernels} kernels"] if kernels else []
        said += [f"{nccl} of NCCL"] if nccl else []
        said += [f"{graphs} graphs"] if graphs else []
        words = f" ({', '.join(said)})" if said else ""
        parts.append(f"GPU {number} {result.gpu_grades.get(gpu, 'none')}{words}")
    return "; ".join(parts)


def model_words(use: ModelUse) -> str:
    """What a build used of its model."""
    tokens = use.tokens
    counted = (
        f"{tokens.input} input, {tokens.cached} cached, {tokens.cache_write} cache write, "
        f"{tokens.output} output"
    )
    parts = [f"{use.model} at {use.upstream}: {use.calls} calls, {tokens.total} tokens ({counted})"]
    if use.cost_usd is not None:
        parts.append(f"{use.cost_usd:.2f} USD ({use.price_source})")
    if use.failed_calls:
        parts.append(f"{use.failed_calls} calls did not end well")
    if use.uncounted_calls:
        parts.append(f"{use.uncounted_calls} answers came without usage and are not counted")
    if use.waited_s >= 1:
        parts.append(f"{use.waited_s:.0f} s were given back for the provider's faults")
    if use.lost_tokens.total:
        cost = f" ({use.lost_cost_usd:.2f} USD)" if use.lost_cost_usd is not None else ""
        parts.append(f"{use.lost_tokens.total} tokens{cost} were spent by builds that were lost")
    return "; ".join(parts)


def network_words(use: NetworkUse) -> str:
    """What a build could reach of networks, and what came of it."""
    if use.policy != "registries":
        return use.policy
    parts = ["registries"]
    if use.allow_hosts:
        parts.append(f"and {', '.join(use.allow_hosts)}")
    times = "once" if use.fetches == 1 else f"{use.fetches} times"
    parts.append(f"fetched {times}, {size(use.bytes_in)}")
    if use.failed:
        parts.append(f"{use.failed} could not be reached")
    if use.refused:
        parts.append(f"{use.refused} refused: {', '.join(use.refused_hosts)}")
    return "; ".join(parts)


def marks(result: LevelResult) -> str:
    """The marks behind a verdict, of those in `MARKS`."""
    decided = result.verdict in (Verdict.PASSED, Verdict.FAILED)
    found = "*" if decided and is_unproven(result) else ""
    found += "~" if result.flaky else ""
    found += "+" if result.fresh and result.fresh.changed else ""
    return found + _ASSET_MARKS.get(kind_of_assets(result), "")


def short_verdict(result: LevelResult | None) -> str:
    """A verdict for a cell: pass, FAIL, n/a, or `?` and what could not be decided why."""
    if result is None:
        return "-"
    match result.verdict:
        case Verdict.PASSED:
            word = "pass"
        case Verdict.FAILED:
            word = "FAIL"
        case Verdict.NOT_APPLICABLE:
            word = "n/a"
        case Verdict.INCONCLUSIVE:
            word = f"? {_short_owner(result)}"
    return word + marks(result)


def letters(results: dict[Level, LevelResult]) -> str:
    """All verdicts as six letters."""
    return "".join(
        LETTERS[results[level].verdict] if level in results else NOT_MEASURED for level in Level
    )


def style(result: LevelResult | None) -> str:
    """The colour of a verdict."""
    return "dim" if result is None else STYLES[result.verdict]


def verdict_words(result: LevelResult) -> str:
    """A verdict in full: `inconclusive (host)`."""
    words = result.verdict.replace("_", " ")
    if result.verdict in (Verdict.FAILED, Verdict.INCONCLUSIVE) and result.owner:
        words = f"{words} ({result.owner})"
    return words


#: What the host lacks, as short as a column.
_WANTS = {
    Want.GPU: "no GPU",
    Want.MORE_GPUS: "GPUs",
    Want.WITNESS: "witness",
    Want.LIBRARY: "lib",
    Want.PROGRAM: "program",
    Want.DISK: "disk",
    Want.READER: "reader",
}


def _short_owner(result: LevelResult) -> str:
    if result.owner is not Owner.HOST:
        return str(result.owner or Owner.UNKNOWN)
    return _WANTS.get(result.want, "host") if result.want else "host"


def duration(seconds: float | None) -> str:
    """`41 s`, `3.2 min`, `1.4 h`."""
    if seconds is None:
        return "-"
    if seconds < 9.95:  # where one decimal would show 10.0
        return f"{seconds:.1f} s"
    if seconds < 1.5 * _MINUTE_S:
        return f"{seconds:.0f} s"
    if seconds < 1.5 * _HOUR_S:
        return f"{seconds / _MINUTE_S:.1f} min"
    return f"{seconds / _HOUR_S:.1f} h"


def size(size_bytes: float | None) -> str:
    """`312 MB`, `1.1 GB`: powers of ten."""
    if size_bytes is None:
        return "-"
    for unit, factor, digits in (("GB", 1e9, 1), ("MB", 1e6, 0), ("kB", 1e3, 0)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.{digits}f} {unit}"
    return f"{size_bytes:.0f} B"


def plural(number: int, noun: str) -> str:
    """`1 attempt`, `2 attempts`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def install_line(packages: Iterable[str]) -> str:
    """The one command that installs the system packages, or nothing."""
    names = sorted({name for name in packages if _PACKAGE.fullmatch(name)})
    return f"apt-get install {' '.join(names)}" if names else ""
