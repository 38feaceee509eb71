"""What a stage reads: where it finds each asset, and which one it was.

Fetching and making assets is the subject of `assets`, and is done before. Here is what a
stage sees of them: places below the layout's `assets`, the variables by which libraries look
there, and, when it has ended, a line for the record.
"""

from __future__ import annotations

import filecmp
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..asset import MadeAsset
from ..assets import Missing, Ready, check_ready, here
from ..assets.definition import key_of_original, key_of_recipe
from ..assets.store import Store
from ..attempt import AssetUse
from ..errors import TaskError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from ..assets import Choice, Origin
    from ..attempt import LevelResult
    from ..sandbox import Layout
    from ..task import Stage, Task
    from .subject import Subject

#: What is placed so lies together, in the layout of the library that looks for it there.
_CACHES = {
    "hub": ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"),  # the second is the older name
    "torch": ("TORCH_HOME",),
}
#: Other variables by which libraries, also older ones, find the same caches. Where nobody sets
#: them they look where the first says, and some warn of those that are set.
_SAME_CACHES = {
    "HF_HUB_CACHE": (
        "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_CACHE", "PYTORCH_TRANSFORMERS_CACHE",
        "PYTORCH_PRETRAINED_BERT_CACHE", "SENTENCE_TRANSFORMERS_HOME", "DIFFUSERS_CACHE",
    ),
}  # fmt: skip
#: Which hub is asked whether what lies in its cache is the newest.
_HUB = "HF_ENDPOINT"
#: What a stage without a network is told, so that libraries do not try to reach a hub first.
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}


@dataclass(frozen=True)
class Shown:
    """What a stage is shown, by places below the layout's `assets`."""

    places: dict[str, Path] = field(default_factory=dict)  #: what of this host is shown there
    named: dict[str, str] = field(default_factory=dict)  #: the place of each asset, by its name
    caches: tuple[str, ...] = ()  #: those of `_CACHES` that are there

    def values(self, layout: Layout) -> dict[str, str]:
        """What `{assets.NAME}` stands for."""
        return {f"assets.{name}": str(layout.assets / place) for name, place in self.named.items()}

    def variables(self, layout: Layout) -> dict[str, str]:
        """By which libraries find their caches."""
        return {
            name: str(layout.assets / cache) for cache in self.caches for name in _CACHES[cache]
        }


def lead_to_caches(
    environment: dict[str, str], before: Mapping[str, str], task: Mapping[str, str]
) -> None:
    """Have all variables of `environment` lead to the caches that `task` gives a stage.

    Args:
        environment: With what the report and a prefix's activation set, which is written over.
        before: What it was without those.
        task: What the stage is given; a cache that it does not give is the environment's own.
    """
    for first, others in _SAME_CACHES.items():
        if first in task:
            environment.update({name: task[first] for name in others if name in environment})
    if "HF_HUB_CACHE" in task:
        environment.pop(_HUB, None)
        environment.update({_HUB: before[_HUB]} if _HUB in before else {})


def problem(subject: Subject, stage: Stage) -> tuple[str, str] | None:
    """Why the stage cannot have what it reads, and what to do; None where it can."""
    for name in stage.assets:
        asset = subject.assets.get(name) or Missing(name, "nobody has fetched or made it", "")
        if isinstance(asset, Missing):
            return f"asset {name}: {asset.why}", asset.advice
        if why := check_ready(asset):
            again = "run the same command again: what has changed is fetched or made anew"
            return f"asset {name}: {why}", again
    return None


def shown(subject: Subject, stage: Stage) -> Shown:
    """What the stage is shown of its assets; all of them must be there.

    Raises:
        TaskError: two of them have another content for one file of a library's cache.
    """
    places: dict[str, Path] = {}
    named: dict[str, str] = {}
    cached: dict[str, list[Path]] = {}
    for name in stage.assets:
        asset = subject.assets[name]
        assert isinstance(asset, Ready)  # noqa: S101  # by `problem`
        if asset.placed == "path":
            # Programs look at names too, such as the ending of a file.
            named[name] = f"{name}/{asset.asset.file_name(name)}"
            places[named[name]] = asset.path
        else:
            named[name] = f"{asset.placed}{_in_cache(asset)}"
            cached.setdefault(asset.placed, []).append(asset.path)
    for cache, folders in cached.items():
        places.update(_merged(cache, folders))
    return Shown(places, named, tuple(cached))


def used(subject: Subject, stage: Stage) -> dict[str, AssetUse]:
    """Which assets the stage has, for its record; called when it has ended, it sees changes.

    Of one that could not be had, which it was to be.
    """
    uses = {}
    for name in stage.assets:
        asset = subject.assets.get(name)
        if isinstance(asset, Ready):
            changed = check_ready(asset) or ""
            uses[name] = AssetUse(origin=asset.origin, digest=asset.digest, changed=changed)
        elif subject.task is not None:
            origin = expected(subject.task, name, subject.asset_choice).origin
            uses[name] = AssetUse(origin=origin, digest="")
    return uses


def same_assets(subject: Subject, stage: Stage, result: LevelResult) -> bool:
    """Whether the stage, where it was run, would read again what it read for `result`."""
    if not result.command:
        return True
    now = used(subject, stage)
    return result.assets == now and not any(use.changed for use in now.values())


def expected(task: Task, name: str, choice: Choice) -> AssetUse:
    """Which content of an asset a stage would have now, as far as the cache knows: else none."""
    asset = task.assets[name]
    origin: Origin = "stand-in"
    try:
        if isinstance(asset, MadeAsset):
            origin = "made"
        elif asset.recipe is None or choice == "real" or _at_hand(task, name, choice):
            origin = "real"
        key = key_of_original(task, name) if origin == "real" else key_of_recipe(task, name)
    except OSError:  # its script is gone
        key = None
    wanted = Store().wanted(key) if key else None
    return AssetUse(origin=origin, digest=wanted.digest if wanted else "")


def _at_hand(task: Task, name: str, choice: Choice) -> bool:
    return choice == "auto" and here(task, name).original is not None


def _in_cache(asset: Ready) -> str:
    """Where in a library's cache the files of the asset are, from its root."""
    snapshots = sorted(asset.path.glob("*/snapshots/*")) if asset.placed == "hub" else []
    return f"/{snapshots[0].relative_to(asset.path)}" if len(snapshots) == 1 else ""


def _merged(place: str, sources: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """(place, what is shown there) of files and folders that are to lie in one folder.

    Whole folders where only one source has them, since each is a mount of its own.
    """
    first, *others = sources
    if not others:
        yield place, first
    elif all(source.is_dir() for source in sources):
        names: dict[str, list[Path]] = {}
        for source in sources:
            for path in sorted(source.iterdir()):
                names.setdefault(path.name, []).append(path)
        for name, paths in names.items():
            yield from _merged(f"{place}/{name}", paths)
    elif all(o.is_file() and first.is_file() and filecmp.cmp(first, o, False) for o in others):
        yield place, first
    else:
        raise TaskError(
            f"two assets of the stage have another content for {place}",
            advice="give both the same revision, or make one asset of them",
        )
