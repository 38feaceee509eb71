"""Agents' own transcripts, read into one form.

The files in tests/data/agents are what the real programs wrote (Claude Code 2.1.332, Codex
0.171.0) while the scripted model of these tests answered them; of a session only the lines that
are events are kept.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from researchenvbench.agents.transcript import (
    Step,
    read_steps,
    shortened,
    with_tokens,
    write_steps,
)
from researchenvbench.agents.transcripts import claude_code, codex, json_lines, read_transcript
from researchenvbench.errors import RecordError
from researchenvbench.model_use import Call, Tokens

DATA = Path(__file__).parent.parent / "data/agents"


def test_claude_code():
    steps = read_transcript("claude-code", DATA / "claude-code.jsonl", ())
    assert [(step.kind, step.command or step.path) for step in steps] == [
        ("command", "echo hello; exit 3"),
        ("write", "/box/repo/a.txt"),
        ("command", "sleep 0.3; cat a.txt"),
        ("edit", "/box/repo/a.txt"),
        ("edit", "/box/repo/a.txt"),
    ]
    failed, write, slept, edit, refused = steps
    assert (failed.exit_status, failed.failed, failed.cwd) == (3, True, "/box/repo")
    assert (failed.said, failed.began) == ("I look.", "2026-12-01T04:15:45.910Z")
    assert (write.content, write.failed) == ("one two\n", False)
    assert (slept.exit_status, slept.output) == (0, "one two")
    assert 0.3 <= slept.seconds < 5
    assert (edit.replaced, edit.content, edit.everywhere) == ("two", "three", False)
    assert refused.failed
    assert write.turn == slept.turn != failed.turn


def test_codex_by_its_session():
    kept = [DATA / "codex-session.jsonl"]
    first, second = read_transcript("codex", DATA / "codex-output.jsonl", kept)
    assert (first.command, first.exit_status, first.failed) == ("echo hello; exit 3", 3, True)
    assert (first.cwd, first.output, first.said) == ("/box/repo", "hello\n", "I look.")
    assert (second.exit_status, second.failed, second.output) == (0, False, "one\n")
    assert first.began < second.began
    assert second.began == "2026-12-01T04:15:49.232+00:00"
    assert second.seconds == 0.164
    assert first.turn != second.turn


def test_codex_a_long_command_is_of_the_answer_before_it():
    """The model asks how far it is, and goes on answering, before its item is complete."""

    def usage(at, answer):
        return {
            "timestamp": f"2026-12-01T00:00:{at:02}.000Z",
            "type": "token_usage_record",
            "payload": {"response_id": answer},
        }

    midnight_ms = 1796083200000
    item = {"type": "CommandExecution", "command": "make", "duration": {"secs": 0, "nanos": 19000}}
    done = {
        "type": "event_msg",
        "payload": {
            "type": "item_completed",
            "item": item,
            "started_at_ms": midnight_ms + 3_000,
            "completed_at_ms": midnight_ms + 50_000,
        },
    }
    (step,) = codex.from_session([usage(1, "a"), usage(2, "b"), usage(30, "c"), done])
    assert (step.turn, step.seconds) == ("b", 47.0)
    assert step.began == "2026-12-01T00:00:03.000+00:00"


def test_codex_by_what_it_printed():
    first, second = read_transcript("codex", DATA / "codex-output.jsonl", ())
    assert (first.command, first.exit_status, first.output) == ("echo hello; exit 3", 3, "hello\n")
    assert second.command == "sleep 0.3; echo one > a.txt; cat a.txt"
    assert second.said == "Now I write."


def test_codex_files_that_a_patch_makes():
    lines = [
        {
            "type": "event_msg",
            "payload": {
                "type": "item_completed",
                "item": {
                    "type": "FileChange",
                    "changes": {
                        "/box/new": {"type": "add", "content": "x\n"},
                        "/box/old": {"type": "update", "unified_diff": "@@ -1 +1 @@"},
                    },
                },
            },
        }
    ]
    new, old = codex.from_session(lines)
    assert (new.kind, new.path, new.content) == ("write", "/box/new", "x\n")
    assert (old.kind, old.command, old.content) == ("other", "apply_patch", "@@ -1 +1 @@")


def test_tokens_are_what_the_relay_counted_and_stand_on_the_first_step_of_an_answer():
    steps = read_transcript("claude-code", DATA / "claude-code.jsonl", ())
    counted = Tokens(input=7, output=70)
    calls = [
        Call(
            number=1,
            began="",
            path="/v1/messages",
            end="complete",
            answer=steps[1].turn,
            tokens=counted,
        )
    ]
    assert steps[1].turn == steps[2].turn
    found = with_tokens(steps, calls)
    assert [step.tokens for step in found] == [None, counted, None, None, None]


def test_an_absent_file_has_no_steps(tmp_path):
    assert read_transcript("claude-code", tmp_path / "nothing", ()) == []
    assert read_transcript("none", DATA / "claude-code.jsonl", ()) == []


def test_a_broken_line_is_passed_over(tmp_path):
    whole = (DATA / "claude-code.jsonl").read_bytes()
    log = tmp_path / "log"
    log.write_bytes(b"warning: {odd\n{\xff\n[1]\n" + whole + whole[: len(whole) // 2])
    expected = read_transcript("claude-code", DATA / "claude-code.jsonl", ())
    assert [step.command for step in read_transcript("claude-code", log, ())][:5] == [
        step.command for step in expected
    ]
    assert len(list(json_lines(log))) > 15


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "message",
                    "content",
                    "id",
                    "name",
                    "input",
                    "item",
                    "payload",
                    "usage",
                    "command",
                    "changes",
                    "duration",
                    "tool_use_id",
                    "started_at_ms",
                    "text",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)
kinds = st.sampled_from(
    ["assistant", "user", "system", "event_msg", "item.completed", "token_usage_record"]
)


entries = st.tuples(kinds, st.dictionaries(st.text(max_size=8), values, max_size=4))


@settings(max_examples=50, deadline=None)
@given(st.lists(entries, max_size=4))
def test_no_transcript_breaks_a_reader(lines):
    objects = [{**rest, "type": kind} for kind, rest in lines]
    for read in (claude_code.steps, codex.from_session, codex.from_output):
        for step in read(objects):
            assert isinstance(step, Step)


def test_steps_are_kept_and_read_again(tmp_path):
    steps = read_transcript("claude-code", DATA / "claude-code.jsonl", ())
    write_steps(tmp_path / "transcript.jsonl", steps)
    assert read_steps(tmp_path / "transcript.jsonl") == steps
    (tmp_path / "bad").write_text(json.dumps({"number": 1, "kind": "command"}) + "\n{}\n")
    with pytest.raises(RecordError, match="line 2 is no step"):
        read_steps(tmp_path / "bad")
    with pytest.raises(RecordError, match="cannot be read"):
        read_steps(tmp_path / "absent")


def test_long_texts_keep_head_and_tail():
    text = "a" * 5000 + "b" * 5000
    short = shortened(text, 100)
    assert short.startswith("a" * 50)
    assert short.endswith("b" * 50)
    assert "9900 characters left out" in short
    assert shortened("short") == "short"


@pytest.mark.parametrize(
    "odd",
    [
        {"cwd": "file://[bad"},
        {"duration": {"secs": 10**400}},
        {"command": "echo '" + "x" * 2_000_000},
    ],
)
def test_codex_what_no_program_writes_is_no_error(odd):
    item = {"type": "CommandExecution", "command": "ls", **odd}
    big = {"started_at_ms": -(10**400), "completed_at_ms": 10**400}
    line = {"type": "event_msg", "payload": {"type": "item_completed", "item": item, **big}}
    (step,) = codex.from_session([line])
    assert step.kind == "command"
    assert step.began is None
