"""How a request is relaxed: one step for one suggestion, each once, and always said."""

from pathlib import Path

from packaging.requirements import Requirement

from researchenvbench.agents.builtin.messages import Suggestion
from researchenvbench.agents.builtin.request import Request


def asked(*lines: str) -> Request:
    request = Request(source=Path("/copy"), source_name="itself")
    for line in lines:
        request.add(Requirement(line), "requirements.txt", ("sha256:0",))
    return request


def test_the_request_as_a_requirements_file():
    request = asked("numpy==1.2", "six")
    request.source_extras = ["gpu"]
    assert request.lines() == [
        "/copy[gpu]", "numpy==1.2 --hash=sha256:0", "six --hash=sha256:0"
    ]  # fmt: skip


def test_a_bound_is_dropped_in_the_request_and_in_what_others_say_of_it():
    request = asked("numpy==1.2", "six")
    done = request.relax(Suggestion("drop_bound", "numpy", ""))
    assert done is not None
    assert "numpy==1.2 (requirements.txt)" in done
    assert "numpy" in request.lines()
    assert request.overrides() == ["numpy"]
    assert request.relax(Suggestion("drop_bound", "numpy", "")) is None


def test_what_is_held_stays_held():
    request = asked("torch==1.9")
    request.held["torch"] = "torch==2.13.0+cpu"
    assert request.relax(Suggestion("drop_bound", "torch", "")) is not None
    assert request.overrides() == ["torch==2.13.0+cpu"]
    assert request.relax(Suggestion("drop_bound", "torch", "")) is None
    assert request.relax(Suggestion("leave_out", "torch", "")) is None


def test_what_is_left_out_is_not_asked_of_anybody():
    request = asked("six", "gone")
    assert "gone left out" in (request.relax(Suggestion("leave_out", "gone", "")) or "")
    assert request.lines() == ["/copy", "six --hash=sha256:0"]
    assert request.overrides() == ["gone; python_version < '0'"]
    assert request.relax(Suggestion("leave_out", "gone", "")) is None


def test_the_repository_itself_is_never_left_out():
    assert asked().relax(Suggestion("leave_out", "itself", "")) is None


def test_a_repository_that_cannot_be_reached_is_left_out_by_its_address():
    request = asked("bar @ git+https://example.org/foo/bar.git@main", "six")
    one = Suggestion("leave_out_url", "https://example.org/foo/bar.git", "")
    assert "bar left out" in (request.relax(one) or "")
    assert request.lines() == ["/copy", "six --hash=sha256:0"]


def test_hashes_and_date_and_isolation_are_given_up_once():
    request = asked("six")
    assert request.relax(Suggestion("drop_hashes", "", ""))
    assert request.lines() == ["/copy", "six"]
    assert request.relax(Suggestion("drop_hashes", "", "")) is None
    assert request.relax(Suggestion("drop_date", "", "")) is None
    assert request.relax(Suggestion("no_isolation", "thing", "", "torch"))
    assert request.relax(Suggestion("no_isolation", "thing", "", "torch")) is None
