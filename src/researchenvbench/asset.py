"""What a stage reads and the environment is not asked to bring: the `[assets.NAME]` tables.

An asset says where the original is, by something that fixes its content, and, for what lies on
a hub or a server, how a stand-in is made: `docs/assets.md`. Here is the vocabulary of it alone;
fetching and making are the subject of `assets`.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self
from urllib.parse import unquote, urlsplit

from pydantic import Field, field_validator, model_validator

from .schema import Model, check_specifier, shorten

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Placed = Literal["path", "hub", "torch"]

_SHA256 = r"^[0-9a-f]{64}$"
_REVISION = re.compile(r"[0-9a-f]{40}")
#: A hub's own rule for names of repositories and their owners.
_REPO = re.compile(r"([A-Za-z0-9_][A-Za-z0-9._-]*/)?[A-Za-z0-9_][A-Za-z0-9._-]*")
_SHARED = "../stand_ins/"
#: What a person is told, and what changes no stage.
_WORDS = {"licence": True, "gated": True, "size_bytes": True}


class StandIn(Model):
    """How a stand-in is made: `python SCRIPT OUT --seed N`, without a network.

    The script writes a file or a folder to OUT: the same one each time.
    """

    script: str = Field(description="A Python file of the task's folder, or ../stand_ins/NAME.py.")
    python: str = Field(">=3.11", description="Version specifier of the interpreter.")
    requirements: tuple[str, ...] = Field(
        (), description="What the script imports, each pinned by ==."
    )
    seed: int = Field(0, ge=0)
    digest: str | None = Field(
        None, pattern=_SHA256, description="Of what it makes; `reb assets fetch` says it."
    )
    time_limit_s: float = Field(600.0, gt=0)

    @field_validator("script")
    @classmethod
    def _inside(cls, value: str) -> str:
        inside = value.removeprefix(_SHARED)
        if not value.endswith(".py") or not is_relative(inside):
            raise ValueError(
                f"not a Python file of the task's folder, nor {_SHARED}NAME.py: {shorten(value)}"
            )
        return value

    @field_validator("python")
    @classmethod
    def _specifier(cls, value: str) -> str:
        return check_specifier(value)

    @field_validator("requirements")
    @classmethod
    def _pinned(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        from packaging.requirements import InvalidRequirement, Requirement

        for text in value:
            try:
                requirement = Requirement(text)
            except InvalidRequirement as error:
                raise ValueError(f"not a requirement such as numpy==2.1.0: {text!r}") from error
            pins = [s for s in requirement.specifier if s.operator == "=="]
            if requirement.url or len(pins) != 1 or pins[0].version.endswith(".*"):
                raise ValueError(
                    f"not pinned by ==: {text!r}; another version may make another stand-in"
                )
        return value


class _Asset(Model):
    """What all assets have."""

    name: str = Field(
        "", description="Name of the file or folder at the stage; default: that of the original."
    )
    placed: Placed = Field(
        "path",
        description="How a stage finds it: by its path; in the hub's own cache, for code that "
        "asks for an id; or in TORCH_HOME.",
    )
    licence: str | None = Field(None, description="Its licence, where known.")
    gated: bool = Field(False, description="Whether its original asks for an account.")
    size_bytes: int | None = Field(
        None, alias="bytes", ge=0, description="Its original's size, where known."
    )

    @field_validator("name")
    @classmethod
    def _one_name(cls, value: str) -> str:
        if value and (not is_relative(value) or "/" in value):
            raise ValueError(f"not the name of a file: {shorten(value)}")
        return value

    @model_validator(mode="after")
    def _placed_where_it_can_be(self) -> Self:
        if self.placed == "hub" and not isinstance(self, HubAsset):
            raise ValueError(
                'placed: only what has the kind "hub" lies in a hub\'s cache, which is ordered by '
                "the ids of repositories"
            )
        return self

    @property
    def recipe(self) -> StandIn | None:
        """How it is made where its original is not used."""
        return None

    @property
    def recipe_key(self) -> str:
        """Under which key the task file gives the recipe."""
        return "stand_in"

    @property
    def why_not_pinned(self) -> str:
        """What does not fix the original's content yet; empty where all does."""
        return ""

    def file_name(self, key: str) -> str:
        """The name at the stage of the asset that the task calls `key`."""
        return self.name or PurePosixPath(self._original).name or key

    @property
    def _original(self) -> str:
        """A path whose last part is the original's own name."""
        return ""

    @property
    def not_judged(self) -> dict[str, Any]:
        """The keys that stay out of a task's digest, as pydantic excludes them.

        The content of an asset is in the results of the stages, by its own digest, so what
        only fixes the content is left out: to look it up later voids no proof. What only some
        assets say is in it where they say it.
        """
        defaults = {key: True for key in ("name", "placed") if key not in self.model_fields_set}
        return {**_WORDS, **defaults}


class FileAsset(_Asset):
    """A small file in the task's folder."""

    kind: Literal["file"]
    path: str = Field(description="A file in the task's folder.")
    sha256: str = Field(pattern=_SHA256)

    @property
    def _original(self) -> str:
        return self.path


class SourceAsset(_Asset):
    """A file or folder of the repository, at the task's commit."""

    kind: Literal["source"]
    path: str = Field(description="Within the repository.")

    @field_validator("path")
    @classmethod
    def _within(cls, value: str) -> str:
        if not is_relative(value):
            raise ValueError(f"not a path within the repository: {shorten(value)}")
        return value

    @property
    def _original(self) -> str:
        return self.path


class UrlAsset(_Asset):
    """A file that a server gives, such as one of a forge's release."""

    kind: Literal["url"]
    url: str = Field(description="http or https.")
    sha256: str | None = Field(
        None,
        pattern=_SHA256,
        description="Of the file as the server gives it. Left out where nobody has looked it "
        "up: then the original is not used.",
    )
    unpack: Literal["zip", "tar"] | None = Field(
        None, description="The file is such an archive, and the asset the folder in it."
    )
    stand_in: StandIn | None = Field(None, description="`[assets.NAME.stand_in]`, see there.")

    @field_validator("url")
    @classmethod
    def _address(cls, value: str) -> str:
        try:
            parts = urlsplit(value)
            good = parts.scheme in ("http", "https") and bool(parts.hostname)
        except ValueError:
            good = False
        if not good:
            raise ValueError(f"not an http or https address: {shorten(value)}")
        if "@" in parts.netloc:
            raise ValueError("holds a user or a password, which belong into no task file")
        return value

    @property
    def recipe(self) -> StandIn | None:
        """Its stand-in."""
        return self.stand_in

    @property
    def why_not_pinned(self) -> str:
        """Whether sha256 is missing."""
        return "" if self.sha256 else "the task gives no sha256"

    @property
    def _original(self) -> str:
        path = unquote(urlsplit(self.url).path)
        return re.sub(r"\.(zip|tgz|tar(\.\w+)?)$", "", path) if self.unpack else path

    @property
    def not_judged(self) -> dict[str, Any]:
        """As of every asset; the sha256 only fixes the content."""
        return {**super().not_judged, "sha256": True, "stand_in": _RECIPE_NOT_JUDGED}


class HubAsset(_Asset):
    """Files of a repository on a hub that speaks the Hugging Face Hub's protocol."""

    kind: Literal["hub"]
    repo: str = Field(description="The repository's id, such as OWNER/NAME.")
    type: Literal["model", "dataset", "space"] = "model"
    revision: str | None = Field(
        None,
        description="Full commit id. Left out where nobody has looked it up: then the original "
        "is not used.",
    )
    files: tuple[str, ...] = Field((), description="Globs of its files; default: all.")
    stand_in: StandIn | None = Field(None, description="`[assets.NAME.stand_in]`, see there.")

    @field_validator("repo")
    @classmethod
    def _id(cls, value: str) -> str:
        if not _REPO.fullmatch(value) or ".." in value or "--" in value:
            raise ValueError(f"not the id of a repository such as OWNER/NAME: {shorten(value)}")
        return value

    @field_validator("revision")
    @classmethod
    def _full(cls, value: str | None) -> str | None:
        if value is not None and not _REVISION.fullmatch(value):
            raise ValueError(
                f"not a full commit id of 40 hexadecimal digits: {shorten(value)}; a branch or a "
                "tag can move, and fixes no content. Leave it out where it is not known"
            )
        return value

    @property
    def recipe(self) -> StandIn | None:
        """Its stand-in."""
        return self.stand_in

    @property
    def why_not_pinned(self) -> str:
        """Whether the revision is missing."""
        return "" if self.revision else "the task gives no revision"

    @property
    def _original(self) -> str:
        return self.repo

    @property
    def not_judged(self) -> dict[str, Any]:
        """As of every asset; the revision only fixes the content."""
        return {**super().not_judged, "revision": True, "stand_in": _RECIPE_NOT_JUDGED}


class MadeAsset(_Asset):
    """What has no original: a recipe makes it."""

    kind: Literal["made"]
    how: StandIn = Field(alias="recipe", description="`[assets.NAME.recipe]`: as a stand_in.")

    @property
    def recipe(self) -> StandIn | None:
        """What makes it."""
        return self.how

    @property
    def recipe_key(self) -> str:
        """There is nothing that it stands in for."""
        return "recipe"

    @property
    def not_judged(self) -> dict[str, Any]:
        """As of every asset."""
        return {**super().not_judged, "how": _RECIPE_NOT_JUDGED}


#: What it makes is in the results of stages, by its digest.
_RECIPE_NOT_JUDGED = {"digest": True, "time_limit_s": True}

Asset = Annotated[
    FileAsset | SourceAsset | UrlAsset | HubAsset | MadeAsset, Field(discriminator="kind")
]


def scripts(assets: Mapping[str, Asset], folder: Path) -> dict[str, Path]:
    """The script of each recipe, by the key of the task file that names it."""
    return {
        f"assets.{name}.{asset.recipe_key}.script": folder / asset.recipe.script
        for name, asset in assets.items()
        if asset.recipe is not None
    }


def missing_files(assets: Mapping[str, Asset], folder: Path) -> list[str]:
    """A line for each file of the task's folder that an asset names and that is not there."""
    missing = [
        f"assets.{name}.path: {shorten(asset.path)} is not a file in the task's folder"
        for name, asset in assets.items()
        if isinstance(asset, FileAsset) and not _is_file_below(folder, folder / asset.path)
    ]
    shared = folder.resolve().parent / "stand_ins"
    for key, script in scripts(assets, folder).items():
        if not (_is_file_below(folder, script) or _is_file_below(shared, script)):
            missing.append(f"{key}: {shorten(script.name)} is not a file there")
    return missing


def is_relative(path: str) -> bool:
    """Whether it is a plain relative path that leads nowhere else."""
    return (
        bool(path)
        and path == str(PurePosixPath(path))
        and not path.startswith(("/", "~"))
        and path != "."
        and ".." not in path.split("/")
        and "\0" not in path
        and "\\" not in path
    )


def _is_file_below(folder: Path, place: Path) -> bool:
    return (
        "\0" not in str(place)
        and place.is_file()
        and place.resolve().is_relative_to(folder.resolve())
    )
