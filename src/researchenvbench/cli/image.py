"""`reb image`: make and list base images, which containers start from."""

from __future__ import annotations

import json
import signal
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ..sandbox.engines.engine import Engine

_ENGINE = click.option(
    "--engine",
    "engine_name",
    type=click.Choice(["podman", "docker"]),
    help="Whose images.  [default: the first that works]",
)


@click.group("image")
def command() -> None:
    """Base images: what agents in containers start from.

    \b
    Example:
      reb image build --from-debian bookworm
    """


@command.command("build")
@click.option("--from-debian", "suite", metavar="SUITE", help="With debootstrap, as root.")
@click.option("--mirror", metavar="URL", help="Of Debian.  [default: as apt of this host has it]")
@click.option("--base", metavar="IMAGE", help="Instead of the paper's base.")
@click.option(
    "--lock", type=click.Path(dir_okay=False, path_type=Path), help="Of the base's digest."
)
@click.option("--pythons", metavar="VERSIONS", help='"3.10 3.12"; "" for the base\'s own alone.')
@click.option("--micromamba", metavar="VERSION", help='"" leaves it out.')
@click.option("--micromamba-sha256", metavar="DIGEST", help="Checked, if given.")
@click.option("--name", metavar="NAME", help="What to call it.")
@click.option("--rebuild", is_flag=True, help="Also where it is there already.")
@_ENGINE
def build(
    suite: str | None,
    mirror: str | None,
    base: str | None,
    lock: Path | None,
    pythons: str | None,
    micromamba: str | None,
    micromamba_sha256: str | None,
    name: str | None,
    rebuild: bool,
    engine_name: str | None,
) -> None:
    """Make a base image: Pythons, uv, compilers, git, and no framework.

    \b
    Example:
      reb image build
      reb image build --from-debian bookworm    # as root

    Without --from-debian it is made on the paper's base (CUDA 12.4.1, Ubuntu 22.04), which
    comes from an image registry. Its digest is looked up once and noted in the lock:
    ./image.lock if that is there, else one in the cache. Where no registry is reachable,
    --from-debian makes a plain base from a mirror of Debian; debootstrap needs root for it.
    """
    for_containerfile = {
        "--base": base,
        "--lock": lock,
        "--pythons": pythons,
        "--micromamba": micromamba,
        "--micromamba-sha256": micromamba_sha256,
    }
    given = [option for option, value in for_containerfile.items() if value is not None]
    if suite is not None and given:
        raise click.UsageError(f"{given[0]} has no meaning with --from-debian")
    if suite is None and mirror is not None:
        raise click.UsageError("--mirror has no meaning without --from-debian")
    if base is not None and name is None:
        raise click.UsageError("--base needs a --name: the usual one says what the base is")
    for ending in (signal.SIGTERM, signal.SIGHUP):
        # As Ctrl-C, so that nothing half-made stays.
        signal.signal(ending, signal.default_int_handler)
    engine = _engine(engine_name)
    started = time.monotonic()

    def say(line: str) -> None:
        click.echo(f"{time.monotonic() - started:6.0f} s  {line}", err=True)

    if suite is not None:
        from ..sandbox.images.debian import build_debian_image

        image = build_debian_image(
            engine, suite, name=name, mirror=mirror, rebuild=rebuild, say=say
        )
    else:
        from ..sandbox.images.containerfile import (
            PAPER_IMAGE,
            ContainerfileRecipe,
            build_containerfile_image,
        )

        asked = ContainerfileRecipe()
        recipe = ContainerfileRecipe(
            base=base or asked.base,
            pythons=asked.pythons if pythons is None else tuple(pythons.split()),
            micromamba=asked.micromamba if micromamba is None else micromamba or None,
            micromamba_sha256=micromamba_sha256,
        )
        image = build_containerfile_image(
            engine,
            recipe,
            lock or _default_lock(),
            name=name or PAPER_IMAGE,
            rebuild=rebuild,
            say=say,
        )
    click.echo(f"{image.name}\n  id      {image.id}\n  size    {image.size_bytes / 1e6:.0f} MB")
    click.echo(f"  base    {image.base}\n  digest  {image.digest or 'none'}")


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@_ENGINE
def list_images(as_json: bool, engine_name: str | None) -> None:
    """List base images, newest first; the first is the one that is used.

    \b
    Example:
      reb image list
    """
    from ..sandbox.images.base import base_images

    images = base_images(_engine(engine_name))
    if as_json:
        click.echo(json.dumps([asdict(image) for image in images], indent=1))
        return
    if not images:
        click.echo("none yet; make one: reb image build, or reb image build --from-debian bookworm")
        return
    rows = [("name", "id", "size", "base", "created")]
    for image in images:
        name = image.name if image.name != image.id else "(another has its name)"
        size = f"{image.size_bytes / 1e6:.0f} MB"
        rows.append((name, _short(image.id), size, image.base or "", image.created))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        click.echo("  ".join(cells).rstrip())


def _short(image_id: str) -> str:
    """As engines show it."""
    return image_id.removeprefix("sha256:")[:12]


def _engine(name: str | None) -> Engine:
    """The one that was asked for, else the first that works."""
    from ..sandbox.engines.finding import require_engine

    return require_engine(name)


def _default_lock() -> Path:
    from ..places import default_cache

    here = Path("image.lock")
    return here if here.exists() else default_cache() / "image.lock"
