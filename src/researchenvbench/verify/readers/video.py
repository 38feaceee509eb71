"""Video in any container that FFmpeg knows, through PyAV.

Every packet is taken out of the container, which shows a truncated file; only the first
frames are decoded, which shows that they can be and that they hold a picture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .wanted import Found, Unreadable, Wanted, need
from .wording import begins_with, counted, shorten

if TYPE_CHECKING:
    from pathlib import Path

_DECODED_FRAMES = 48
_PIXELS_LIMIT = 50_000_000


def read_video(path: Path, wanted: Wanted) -> Found:
    """A video whose first frames decode."""
    av = need("av")
    with path.open("rb") as stream:
        head = stream.read(64)
        stream.seek(0)
        try:
            # An open file, never a name: FFmpeg would take some names for addresses.
            with av.open(stream, mode="r") as container:
                return _read(container, wanted)
        except (av.FFmpegError, OSError, ValueError, EOFError) as error:
            raise Unreadable(f"not video: {shorten(str(error))}; {begins_with(head)}") from error


def _read(container: Any, wanted: Wanted) -> Found:
    if not container.streams.video:
        raise Unreadable(f"{container.format.name} without a video stream")
    stream = container.streams.video[0]
    if stream.codec_context is None:
        raise Unreadable("video in an encoding that is not known here")
    width, height = stream.codec_context.width, stream.codec_context.height
    if width * height > _PIXELS_LIMIT:
        raise Unreadable(f"video of {width} x {height} pixels, more than is decoded here")
    packets, decoded, last = 0, 0, None
    colours: set[tuple[int, ...]] = set()
    for packet in container.demux(stream):
        if packet.size:
            packets += 1
        if packet.pts is not None and packet.time_base is not None:
            end = float((packet.pts + (packet.duration or 0)) * packet.time_base)
            last = end if last is None else max(last, end)
        if decoded < _DECODED_FRAMES:
            for frame in packet.decode():
                decoded += 1
                colours |= _colours(frame)
    if not decoded:
        raise Unreadable("video of which no frame can be decoded")
    if stream.frames and packets < stream.frames:
        raise Unreadable(f"truncated video: {stream.frames} frames promised, {packets} there")
    start = float((stream.start_time or 0) * stream.time_base) if stream.time_base else 0.0
    seconds = max(0.0, (last or 0.0) - start)
    found = Found(
        f"video ({stream.codec_context.name}), {width} x {height} pixels, "
        f"{counted(packets, 'frame')}, {seconds:.2f} s"
    )
    found.need_size(width, height, wanted)
    if wanted.varied and len(colours) < 2:
        found.faults.append(f"the first {counted(decoded, 'frame')} are one constant colour")
    if wanted.min_seconds is not None and seconds < wanted.min_seconds:
        found.faults.append(f"{seconds:.2f} s long, at least {wanted.min_seconds:g} wanted")
    return found


def _colours(frame: Any) -> set[tuple[int, ...]]:
    """The darkest and the lightest value of each channel: two of them where it varies."""
    pixels = frame.to_image()
    extremes = pixels.getextrema()
    return {tuple(low for low, _ in extremes), tuple(high for _, high in extremes)}
