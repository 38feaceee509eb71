"""PNG and JPEG pictures, decoded to the last pixel by Pillow."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from .wanted import Found, Unreadable, Wanted, need
from .wording import begins_with, shorten

if TYPE_CHECKING:
    from pathlib import Path

#: 400 MB once decoded. Plots and samples are far smaller.
_PIXELS_LIMIT = 100_000_000


def read_png(path: Path, wanted: Wanted) -> Found:
    """A PNG picture."""
    return _read(path, wanted, "PNG")


def read_jpeg(path: Path, wanted: Wanted) -> Found:
    """A JPEG picture."""
    return _read(path, wanted, "JPEG")


def _read(path: Path, wanted: Wanted, kind: str) -> Found:
    pillow = need("PIL.Image")
    with path.open("rb") as stream:
        head = stream.read(64)
    try:
        with warnings.catch_warnings():
            # Its warning about large pictures; the limit below is ours.
            warnings.simplefilter("ignore")
            with pillow.open(path, formats=[kind]) as image:
                width, height = image.size
                if width * height > _PIXELS_LIMIT:
                    raise Unreadable(
                        f"{kind} of {width} x {height} pixels, more than the {_PIXELS_LIMIT} "
                        "that are decoded"
                    )
                image.load()
                palette = image.mode in ("P", "PA")
                pixels = image.convert("RGBA") if palette else image
                extremes = pixels.getextrema()
    except (OSError, SyntaxError, ValueError, EOFError, pillow.DecompressionBombError) as error:
        # Pillow raises any of these for a damaged picture.
        raise Unreadable(
            f"not a whole {kind}: {shorten(str(error))}; {begins_with(head)}"
        ) from error
    found = Found(f"{kind}, {width} x {height} pixels, mode {image.mode}")
    found.need_size(width, height, wanted)
    bands = extremes if isinstance(extremes[0], tuple) else (extremes,)
    if wanted.varied and all(low == high for low, high in bands):
        colour = ", ".join(f"{low:g}" for low, _ in bands)
        found.faults.append(f"every pixel has the same colour ({colour})")
    return found
