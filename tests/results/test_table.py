"""The terminal's table: complete, in 80 columns, without colour, and safe."""

import io

import pytest
from result_samples import FAILED_CPU, c0_details, record, result, results
from rich.cells import cell_len
from rich.console import Console

from researchenvbench.attempt import AttemptStatus, Finding, Level, Verdict
from researchenvbench.results.entries import Entry, entry_of
from researchenvbench.results.table import Run, comparison_view, run_view
from researchenvbench.results.verdicts import verdict_lines


def shown(view, width=80, **console):
    out = io.StringIO()
    Console(file=out, width=width, highlight=False, emoji=False, **console).print(view, crop=False)
    return out.getvalue()


def test_every_attempt_is_shown_and_what_it_lacks(entries):
    text = shown(run_view(entries, suite="sample", agent="builtin"))
    for entry in entries:
        assert entry.task[:10] in text
    assert "gamma: disqualified" in text
    assert "a tracked file was changed in src/train.py" in text
    assert "epsilon: void: the index answers with HTML" in text
    assert "zeta: no record: the job ended with -9" in text
    assert "beta-long-name-of-a-task: C1 failed: no module named 'torch_ema' (exit 1)" in text
    assert "what to do: install what provides torch_ema" in text
    assert "apt-get install libgl1\n" in text
    assert "? no GPU" in text


def test_one_reason_is_said_once(entries):
    text = shown(run_view(entries))
    assert text.count("(host: no GPU)") == 1
    assert "C2, C3, C4: inconclusive (host: no GPU) wherever the level applies" in text


def test_a_reason_of_all_attempts_names_their_number():
    text = shown(run_view([entry_of(record(name)) for name in "abcd"]))
    assert "C2, C3, C4: inconclusive (host: no GPU) on all 4 attempts" in text


@pytest.mark.parametrize("width", [30, 40, 60, 80, 100, 200])
def test_lines_keep_to_the_width_but_for_what_is_copied(entries, width):
    for line in shown(run_view(entries), width).splitlines():
        assert cell_len(line) <= width or "log: " in line or "apt-get" in line


def test_a_log_path_is_whole(entries):
    wanted = "attempts/beta-long-name-of-a-task--1/logs/cpu.log"
    assert any(line.endswith(wanted) for line in shown(run_view(entries), 40).splitlines())


def test_no_colour_where_none_is_wanted(entries, hostile, monkeypatch):
    assert "\x1b" not in shown(run_view([*entries, hostile]))
    monkeypatch.setenv("NO_COLOR", "1")
    text = shown(run_view(entries), force_terminal=True)
    assert "\x1b[3" not in text


def test_hostile_text_does_not_reach_the_terminal(hostile):
    for view in (
        run_view([hostile]),
        verdict_lines(hostile.record, hostile.folder),
        comparison_view([Run("a", [hostile]), Run("[b]\x1b[2J", [hostile])]),
    ):
        text = shown(view, 200)
        assert "\x1b" not in text
        assert "[red]x[/red]" in text
        assert "etc/passwd" not in text


def test_attempts_at_one_task_have_numbers():
    text = shown(run_view([entry_of(record("a")), entry_of(record("a", attempt=2))]))
    assert "a #1" in text
    assert "a #2" in text


def test_a_run_without_attempts():
    assert "no attempt" in shown(run_view([]))


def test_only_lost_attempts():
    text = shown(run_view([Entry("a", problem="killed")], suite="s", agent="x"))
    assert "a: no record: killed" in text
    assert "s by x: 1 task, 1 attempt" in text


def test_the_verdicts_of_one_environment():
    changed = results(
        C0=result(
            Level.C0, details=c0_details(214, [("wandb", False), ("apex", True)]), log="logs/C0.log"
        ),
        C1=FAILED_CPU,
    )
    lines = shown(verdict_lines(record(results=changed)), 120).splitlines()
    assert " ".join(" ".join(lines[:2]).split()) == (
        "C0 imports passed 212 of 214 third-party imports resolve; "
        "missing, imported without a fall-back: apex; missing, imported with a fall-back: wandb"
    )
    assert lines[2].split()[:5] == ["C1", "CPU", "run", "failed", "(agent)"]
    assert lines[3].strip() == "what to do: install what provides torch_ema"
    assert lines[4].strip() == "log: logs/cpu.log"


def test_what_is_ready_is_said_and_what_nobody_has_proven():
    good = {
        level: result(level, proven="proven" if level in (Level.C1, Level.C3, Level.C4) else None)
        for level in Level
    }
    words = "research-ready: every level that applies passed"
    assert shown(verdict_lines(record(results=good))).splitlines()[-1].strip() == words
    good[Level.C1] = result(Level.C1, proven="unproven")
    last = shown(verdict_lines(record(results=good))).splitlines()[-1].strip()
    assert last == "every level that applies passed; not proven: the stage of C1"


def test_findings_and_packages_of_one_environment(entries):
    text = shown(verdict_lines(entries[2].record))
    assert "disqualifies: a tracked file was changed in src/train.py" in text
    assert "does not count" in text
    assert "apt-get install libgl1\n" in shown(verdict_lines(entries[3].record))


def test_runs_side_by_side(entries):
    other = [entry_of(record("alpha", agent="other"))]
    text = shown(comparison_view([Run("one", entries, "sample", "builtin"), Run("two", other)]))
    row = next(line for line in text.splitlines() if line.startswith("alpha"))
    assert row.split() == ["alpha", "PP???P", "PP???P"]
    assert next(li for li in text.splitlines() if li.startswith("zeta")).split()[-1] == "-"
    assert "C1 CPU run" in text


def test_a_level_that_was_not_measured_is_no_pass():
    text = shown(run_view([entry_of(record(results={Level.C2: result(Level.C2)}))]))
    row = next(line for line in text.splitlines() if line.startswith("alpha"))
    assert row.split()[:7] == ["alpha", "-", "-", "pass", "-", "-", "-"]
    assert Verdict.PASSED not in row


def many_files(number):
    return tuple(
        Finding(kind="tracked-file-changed", what="removed", where=f"{place}.py", disqualifies=True)
        for place in range(number)
    )


def test_of_many_files_the_first_are_shown():
    other = Finding(kind="commit-moved", what="the commit is another", disqualifies=True)
    judged = record("alpha", status=AttemptStatus.DISQUALIFIED, findings=(*many_files(45), other))
    for text in (
        shown(verdict_lines(judged)),
        shown(run_view([entry_of(judged)], suite="sample", agent="builtin")),
    ):
        assert text.count("removed in") == 3
        assert "and 42 more files" in text
        assert "the commit is another" in text
    few = record("alpha", status=AttemptStatus.DISQUALIFIED, findings=many_files(3))
    assert " more " not in shown(verdict_lines(few))
