"""Pictures, sound and video, whole and damaged."""

from __future__ import annotations

import math
import struct
import wave
import zlib
from typing import TYPE_CHECKING

import pytest
from reading import cut, faults

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("kind", "mode"), [("png", "RGBA"), ("png", "L"), ("jpeg", "RGB")])
def test_pictures(tmp_path, kind, mode):
    image = pytest.importorskip("PIL.Image")
    path = tmp_path / f"x.{kind}"
    gradient = image.linear_gradient("L").convert(mode)
    gradient.save(path)
    assert faults(path, kind, min_width=256, min_height=256) == ""
    assert "256 pixels wide, at least 300" in faults(path, kind, min_width=300)
    assert "256 pixels high, at least 300" in faults(path, kind, min_height=300)
    assert "not a whole" in faults(cut(path, tmp_path / "cut", 0.6), kind)
    assert "not a whole" in faults(path, "jpeg" if kind == "png" else "png")
    image.new(mode, (64, 64)).save(path)
    assert "the same colour" in faults(path, kind)
    assert faults(path, kind, varied=False) == ""
    path.write_bytes(b"")
    assert "it is empty" in faults(path, kind)


def test_a_palette_picture_of_equal_colours_is_constant(tmp_path):
    image = pytest.importorskip("PIL.Image")
    picture = image.new("P", (8, 8))
    picture.putpalette([9, 9, 9] * 256)
    picture.putpixel((1, 1), 7)
    picture.save(tmp_path / "x.png")
    assert "the same colour" in faults(tmp_path / "x.png", "png")


def test_a_picture_bomb_is_refused_by_its_size(tmp_path):
    pytest.importorskip("PIL.Image")
    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + b"IHDR" + header
    path = tmp_path / "x.png"
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk
        + struct.pack(">I", zlib.crc32(b"IHDR" + header))
        + struct.pack(">I", 0)
        + b"IDAT"
        + struct.pack(">I", zlib.crc32(b"IDAT"))
    )
    assert "3600000000 pixels" in faults(path, "png")


def pcm(path: Path, samples: list[int], width: int = 2, rate: int = 8000) -> Path:
    with wave.open(str(path), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(width)
        out.setframerate(rate)
        out.writeframes(b"".join(s.to_bytes(width, "little", signed=width > 1) for s in samples))
    return path


def float_wav(path: Path, samples: list[float], bits: int = 32) -> Path:
    data = struct.pack(f"<{len(samples)}{'f' if bits == 32 else 'd'}", *samples)
    layout = struct.pack("<HHIIHH", 3, 1, 8000, 8000 * bits // 8, bits // 8, bits)
    chunks = b"fmt " + struct.pack("<I", 16) + layout
    chunks += b"LIST" + struct.pack("<I", 3) + b"abc\0"  # of odd length, so padded
    chunks += b"data" + struct.pack("<I", len(data)) + data
    path.write_bytes(b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks)
    return path


TONE = [int(9000 * math.sin(i / 5)) for i in range(8000)]


@pytest.mark.parametrize("width", [2, 3, 4])
def test_integer_sound(tmp_path, width):
    path = pcm(tmp_path / "x.wav", TONE, width)
    assert faults(path, "wav", min_seconds=1) == ""
    assert "1.000 s long, at least 1.5" in faults(path, "wav", min_seconds=1.5)
    assert "truncated" in faults(cut(path, tmp_path / "cut.wav", 0.5), "wav")


def test_silence_and_constant_sound(tmp_path):
    assert "silence" in faults(pcm(tmp_path / "x.wav", [0] * 999), "wav")
    assert "silence" in faults(pcm(tmp_path / "x.wav", [128] * 999, width=1), "wav")
    assert "the same value" in faults(pcm(tmp_path / "x.wav", [5] * 999), "wav")
    assert faults(pcm(tmp_path / "x.wav", [0] * 999), "wav", varied=False) == ""
    assert "without samples" in faults(pcm(tmp_path / "x.wav", []), "wav")


@pytest.mark.parametrize("bits", [32, 64])
def test_float_sound(tmp_path, bits):
    tone = [sample / 9000 for sample in TONE]
    assert faults(float_wav(tmp_path / "x.wav", tone, bits), "wav", min_seconds=1) == ""
    tone[5] = math.nan
    assert "1 samples are NaN" in faults(float_wav(tmp_path / "x.wav", tone, bits), "wav")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it is empty"),
        (b"RIFF\0\0\0\0AVI ", "not WAV"),
        (b"RIFF\0\0\0\0WAVE", "no data chunk"),
        (b"RIFF\0\0\0\0WAVEdata\4\0\0\0abcd", "before their format"),
        (b"RIFF\0\0\0\0WAVEfmt \4\0\0\0abcd", "damaged format"),
        (b"RIFF\0\0\0\0WAVE" + b"junk\0\0\0\0" * 50_000, "no data chunk"),
    ],
)
def test_sound_that_is_none(tmp_path, content, said):
    (tmp_path / "x.wav").write_bytes(content)
    assert said in faults(tmp_path / "x.wav", "wav")


def film(path: Path, codec: str, shades: list[int]) -> Path:
    av, numpy = pytest.importorskip("av"), pytest.importorskip("numpy")
    with av.open(str(path), "w") as out:
        stream = out.add_stream(codec, rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for shade in shades:
            pixels = numpy.full((48, 64, 3), 20, dtype="uint8")
            pixels[:24] = shade
            for packet in stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")):
                out.mux(packet)
        for packet in stream.encode():
            out.mux(packet)
    return path


@pytest.mark.parametrize(("name", "codec"), [("x.mp4", "mpeg4"), ("x.avi", "mpeg4")])
def test_video(tmp_path, name, codec):
    path = film(tmp_path / name, codec, [10 * i for i in range(20)])
    assert faults(path, "video", min_width=64, min_height=48, min_seconds=1.9) == ""
    assert "64 pixels wide" in faults(path, "video", min_width=65)
    assert "s long, at least 3" in faults(path, "video", min_seconds=3)
    assert faults(cut(path, tmp_path / f"cut-{name}", 0.5), "video") != ""
    constant = film(tmp_path / name, codec, [20] * 5)
    assert "one constant colour" in faults(constant, "video")


def test_video_that_is_none(tmp_path):
    pytest.importorskip("av")
    (tmp_path / "x.mp4").write_bytes(b"")
    assert "it is empty" in faults(tmp_path / "x.mp4", "video")
    sound = pcm(tmp_path / "x.wav", TONE)
    assert "without a video stream" in faults(sound, "video")
    playlist = tmp_path / "list.mp4"
    playlist.write_text("ffconcat version 1.0\nfile /etc/passwd\n")
    assert faults(playlist, "video") != ""
