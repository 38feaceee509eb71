"""A search of a GitHub: what is asked, fetched, judged and kept, and what goes wrong."""

from __future__ import annotations

import time
from datetime import date

import pytest

from researchenvbench.errors import SearchError
from researchenvbench.selection.criteria import Criterion

from .conftest import WHOLE, names, standings
from .github_server import Fault

SOON = {"Retry-After": "0"}


def test_what_meets_all_is_accepted_with_file_and_line(publish, select):
    repository = publish("owner/net", WHOLE, stargazers_count=101, description="text-to-speech")
    [candidate] = select().candidates
    assert candidate.decision == "accepted"
    assert candidate.rank == 1
    assert candidate.commit == repository("rev-parse", "HEAD")
    domain = candidate.domain, candidate.domain_why
    assert domain == ("audio-speech", "text-to-speech, speech")
    assert set(standings(candidate).values()) == {"met"}
    by = {finding.criterion: finding for finding in candidate.findings}
    assert list(by) == [
        *("created", "stars", "not_archived", "not_a_fork", "python", "paper", "gpu"),
        "distributed_or_kernels",
    ]
    places = {name: [(e.file, e.line) for e in f.evidence] for name, f in by.items()}
    assert places["paper"] == [("README.md", 3)]
    assert places["gpu"] == [("net/train.py", 7)]
    assert places["distributed_or_kernels"] == [("net/train.py", 2)]
    assert by["stars"].why == "101 stars"


def test_the_facts_refuse_and_nothing_is_fetched(publish, select, server):
    publish("a/young-enough", WHOLE, created_at="2024-01-01T00:00:00Z")
    refused = {
        "b/archived": ({"archived": True}, "not_archived"),
        "c/fork": ({"fork": True}, "not_a_fork"),
        "d/cuda": ({"language": "Cuda"}, "python"),
        "e/none": ({"language": None}, "python"),
    }
    for name, (facts, _) in refused.items():
        server.add(name, **facts)
    selection = select(" ")
    found = {candidate.name: candidate for candidate in selection.candidates}
    assert found["a/young-enough"].decision == "accepted"
    for name, (_, criterion) in refused.items():
        assert found[name].decision == "refused"
        assert standings(found[name])[criterion] == "not_met"
        assert standings(found[name])["gpu"] == "unknown"
    assert {request.path.split("/")[1] for request in server.fetches} == {"a"}


def test_a_server_that_ignores_the_limits_is_not_believed(publish, select, server, monkeypatch):
    monkeypatch.setattr("tests.selection.github_server._fits", lambda *_: True)
    server.add("old/net", created_at="2023-12-31T23:59:59Z")
    server.add("poor/net", stargazers_count=100)
    found = {c.name: standings(c) for c in select().candidates}
    assert found["old/net"]["created"] == "not_met"
    assert found["poor/net"]["stars"] == "not_met"
    assert not server.fetches


def test_the_search_says_what_is_wanted(select, server):
    select("diffusion", since=date(2025, 2, 3), more_stars_than=250)
    [asked] = server.searches
    assert asked.query["q"] == (
        "diffusion language:Python stars:>250 created:>=2025-02-03 archived:false"
    )
    assert (asked.query["sort"], asked.query["order"]) == ("stars", "desc")


def test_pages_are_turned_until_the_limit(select, server):
    for number in range(250):
        server.add(f"o{number}/net", fork=True, stargazers_count=1000 - number)
    selection = select(limit=230)
    assert names(selection) == [f"o{number}/net" for number in range(230)]
    assert [request.query["page"] for request in server.searches] == ["1", "2", "3"]


def test_more_than_a_search_gives_is_asked_in_spans_of_days(select, server):
    for number in range(1300):
        day = f"2024-{1 + number % 12:02}-{1 + number % 28:02}"
        stars = 5000 - number
        server.add(f"o{number}/net", fork=True, stargazers_count=stars, created_at=f"{day}T00Z")
    selection = select(limit=1300)
    assert selection.complete is True
    assert names(selection) == [f"o{number}/net" for number in range(1300)]


def test_one_day_with_too_many_is_said(select, server):
    today = date.today()
    for number in range(1001):
        server.add(f"o{number}/net", fork=True, created_at=f"{today}T00:00:00Z")
    selection = select(limit=1100, since=today)
    assert selection.complete is False
    assert "has 1001 results, of which the server gives 1000" in selection.notes[0]


def test_several_queries_name_a_repository_once(publish, select):
    publish("owner/net", WHOLE, description="diffusion")
    assert names(select("net", "diffusion")) == ["owner/net"]


# --- limits, faults ----------------------------------------------------------------------


def test_limits_and_faults_are_waited_out(publish, select, server):
    publish("owner/net", WHOLE)
    reset = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()) + 1)}
    server.faults = [
        Fault(cut_after=40),
        Fault(403, reset, b'{"message": "API rate limit exceeded"}'),
        Fault(429, SOON),
        Fault(403, SOON, b'{"message": "You have exceeded a secondary rate limit"}'),
        Fault(502, SOON, b"<html>"),
    ]
    assert names(select()) == ["owner/net"]
    assert len(server.searches) == 6


def test_a_limit_that_lasts_ends_the_search_and_says_for_how_long(select, server):
    reset = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()) + 3000)}
    server.faults = [Fault(403, reset)]
    with pytest.raises(SearchError, match="gives no more answers for 50 minutes: its limit of"):
        select()
    assert len(server.searches) == 1


def test_json_that_ends_too_early_is_asked_again(publish, select, server):
    publish("owner/net", WHOLE)
    server.faults = [Fault(instead=b'{"total_count": 1, "items": [{"id": 1, "full')]
    assert names(select()) == ["owner/net"]
    assert len(server.searches) == 2


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<html>log in</html>", "answers with something else than JSON"),
        (b'{"items": []}', "answers with something else than results of a search"),
        (b"[1, 2]", "answers with something else than results of a search"),
    ],
)
def test_what_is_no_answer_of_a_search_is_named(select, server, body, said):
    kind = "text/html" if b"html" in body else "application/json"
    server.faults = [Fault(instead=body, headers={"Content-Type": kind})]
    with pytest.raises(SearchError, match=said) as caught:
        select()
    assert "check --api" in caught.value.advice


def test_an_incomplete_answer_is_asked_again_and_then_said(publish, select, server):
    for number in range(2):
        publish(f"owner{number}/net", WHOLE)
    server.faults = [Fault(incomplete=True)]
    assert len(names(select())) == 2
    server.faults = [Fault(incomplete=True)] * 3
    selection = select(fresh=True)
    assert len(names(selection)) == 1
    assert selection.complete is False
    assert "the server ran out of time" in selection.notes[0]
    # And it is not kept: the next time may be better.
    assert len(names(select(fresh=True))) == 2


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault(401, body=b'{"message": "Bad credentials"}'), "401: Bad credentials"),
        (
            Fault(422, body=b'{"message": "Validation Failed", "errors": [{"message": "no q"}]}'),
            "422: Validation Failed; no q; the query was 'x language:Python",
        ),
        (Fault(404, headers={"Content-Type": "text/plain"}), "404: Not Found"),
    ],
)
def test_a_refusal_is_said_in_the_servers_words(select, server, fault, said):
    server.faults = [fault]
    with pytest.raises(SearchError) as caught:
        select("x")
    assert said in str(caught.value)
    assert "GITHUB_TOKEN" in caught.value.advice or "--query" in caught.value.advice


def test_entries_that_cannot_be_relied_on_are_left_out(publish, select, server):
    publish("owner/net", WHOLE)
    server.add("../../net")
    server.add("owner/net-local", clone_url="/etc")
    server.add("owner/net-ext", clone_url="ext::sh -c true")
    server.add("owner/net-language", language=["Python"])
    server.items.append({**server.items[0], "full_name": None, "id": 99})
    selection = select(" ")
    assert names(selection) == ["owner/net"]
    assert len(selection.notes) == 5


def test_a_tree_that_cannot_be_had_leaves_the_candidate_undecided(publish, select, server):
    publish("owner/net", WHOLE)
    server.add("gone/net")
    publish("empty/net", {})("update-ref", "-d", "refs/heads/main")
    selection = select()
    found = {candidate.name: candidate for candidate in selection.candidates}
    assert found["owner/net"].decision == "accepted"
    for name in ("gone/net", "empty/net"):
        assert found[name].decision == "undecided"
        paper = found[name].finding(Criterion.PAPER)
        assert paper.standing == "unknown"
        assert "its tree cannot be had: git fetch" in paper.why


# --- what is kept ------------------------------------------------------------------------


def test_the_same_search_goes_on_and_asks_nothing_twice(publish, select, server):
    publish("owner/net", WHOLE)
    first = select()
    asked = len(server.requests)
    again = select()
    assert len(server.requests) == asked
    assert again.candidates == first.candidates
    server.items[0]["pushed_at"] = "2025-02-02T00:00:00Z"
    assert names(select(fresh=True)) == ["owner/net"]
    assert len(server.searches) == 2
    assert len(server.fetches) == 2


def test_a_large_file_is_not_fetched_and_the_rest_is_read(publish, select, tmp_path):
    big = "x = 1\n" * 200_000
    publish("owner/net", {**WHOLE, "net/data.py": big, "net/weights.bin": big})
    [candidate] = select().candidates
    assert candidate.decision == "accepted"
    [tree] = (tmp_path / "cache" / "selection" / "trees").glob("*.git")
    assert sum(path.stat().st_size for path in tree.rglob("*")) < 100_000
    assert "promisor" not in (tree / "config").read_text()
