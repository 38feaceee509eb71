"""Records: what is written is read back whole, and what cannot be read says why."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from researchenvbench.attempt import (
    AttemptStatus,
    EventLog,
    HostFacts,
    Level,
    LevelResult,
    Record,
    Report,
    Verdict,
)
from researchenvbench.errors import RecordError
from researchenvbench.stored import write_atomically

if TYPE_CHECKING:
    from pathlib import Path


def record(status: AttemptStatus = AttemptStatus.OK, **verdicts: Verdict) -> Record:
    return Record(
        reb_version="0",
        task="t",
        task_digest="a",
        source_digest="b",
        agent="builtin",
        sandbox="local",
        status=status,
        started="2026-01-01T00:00:00+00:00",
        finished="2026-01-01T00:01:00+00:00",
        results={
            Level(name): LevelResult(level=Level(name), verdict=verdict)
            for name, verdict in verdicts.items()
        },
        host=HostFacts(system="Linux", cpus=2, memory_bytes=1),
    )


def test_a_record_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    written = record(C0=Verdict.PASSED, C1=Verdict.FAILED)
    written.save(tmp_path / "record.json")
    assert Record.load(tmp_path / "record.json") == written
    assert '"schema": 1' in (tmp_path / "record.json").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["record.json"]


def test_keys_of_a_newer_version_are_left_out(tmp_path: Path) -> None:
    text = record().model_dump_json(by_alias=True)
    (tmp_path / "record.json").write_text(text.replace("{", '{"of_tomorrow": 1, ', 1))
    assert Record.load(tmp_path / "record.json") == record()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "cannot be read: No such file"),
        (b"", "not a Record"),
        (b"[]", "not a Record"),
        (b'{"schema": 1', "not a Record"),
        (b"\xff\xfe", "not a Record"),
        (b"{}", "reb_version: Field required"),
    ],
)
def test_what_cannot_be_read_says_why(tmp_path: Path, content: bytes | None, why: str) -> None:
    path = tmp_path / "record.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RecordError, match=why) as caught:
        Record.load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("status", "verdicts", "ready"),
    [
        (AttemptStatus.OK, {"C0": Verdict.PASSED, "C4": Verdict.NOT_APPLICABLE}, True),
        (AttemptStatus.OK, {"C0": Verdict.PASSED, "C4": Verdict.INCONCLUSIVE}, False),
        (AttemptStatus.OK, {"C0": Verdict.PASSED, "C1": Verdict.FAILED}, False),
        (AttemptStatus.OK, {"C4": Verdict.NOT_APPLICABLE}, False),
        (AttemptStatus.OK, {}, False),
        (AttemptStatus.DISQUALIFIED, {"C0": Verdict.PASSED}, False),
        (AttemptStatus.NO_REPORT, {"C0": Verdict.PASSED}, False),
    ],
)
def test_research_ready_is_that_every_applicable_level_passed(
    status: AttemptStatus, verdicts: dict[str, Verdict], *, ready: bool
) -> None:
    assert record(status, **verdicts).research_ready is ready


def test_there_is_no_fifth_verdict() -> None:
    assert {str(verdict) for verdict in Verdict} == {
        "passed",
        "failed",
        "not_applicable",
        "inconclusive",
    }
    assert [level.label for level in Level] == [
        "imports",
        "CPU run",
        "hardware",
        "one GPU",
        "multi GPU",
        "honesty",
    ]


def test_a_reader_sees_the_old_file_or_the_whole_new_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    texts = ["a" * 100_000, "b" * 100_000]
    write_atomically(path, texts[0])
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            for text in texts:
                write_atomically(path, text)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        seen = {path.read_text() for _ in range(200)}
    finally:
        stop.set()
        writer.join()
    assert seen <= set(texts)


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "new \ud800")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_names_that_are_no_utf8_can_be_recorded(tmp_path: Path) -> None:
    """File names of a repository may hold any byte; a record of them must be writable."""
    strange = os.fsdecode(b"caf\xe9.txt")
    reason = f"{strange}: \ud800 changed é"
    details = {"files": [strange], "loss": float("nan"), "one": 1.0}
    result = LevelResult(level=Level.C0, verdict=Verdict.FAILED, reason=reason, details=details)
    record(C0=Verdict.FAILED).model_copy(update={"results": {Level.C0: result}}).save(
        tmp_path / "record.json"
    )
    read = Record.load(tmp_path / "record.json").results[Level.C0]
    assert read.reason == r"caf\xe9.txt: \ud800 changed é"
    assert read.details == {"files": [r"caf\xe9.txt"], "loss": None, "one": 1.0}


def test_events_are_lines_that_can_be_read_at_any_time(tmp_path: Path) -> None:
    say = EventLog(tmp_path / "events.jsonl")
    say("building")
    say("running\nC1", log=tmp_path / "C1.log")
    lines = (tmp_path / "events.jsonl").read_text().splitlines()
    assert len(lines) == 2
    assert '"doing":"building"' in lines[0]
    assert "C1.log" in lines[1]


@pytest.mark.parametrize(
    "field", [{"gpu_count": "two"}, {"cuda_available": "perhaps"}, {"env": []}, {"claims": 3}]
)
def test_a_report_of_other_types_is_none(field: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(field))):
        Report.model_validate(field)
