"""`reb tasks select`: what a person sees, what is written, what is never written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from researchenvbench.cli import EXIT_USAGE, group
from researchenvbench.errors import SearchError
from researchenvbench.selection.answers import Answers
from researchenvbench.selection.criteria import Selection
from researchenvbench.selection.github import GitHub
from tests.run.test_totals import write_task

from .conftest import WHOLE, standings
from .github_server import Fault


def test_what_was_judged_is_in_the_file_when_the_rest_is_cut_off(publish, server, tmp_path, reb):
    publish("owner/net", WHOLE, stargazers_count=900)
    publish("other/net", WHOLE, stargazers_count=800)
    out = tmp_path / "candidates.json"
    command = ("tasks", "select", "--query", "net", "--api", server.address, "--out", out)
    started = reb.start(*command)
    for line in started.stderr:
        if "1 of 2: owner/net: accepted" in line:
            break
    started.send_signal(2)
    _, said = started.communicate(timeout=60)
    assert started.returncode in (0, 130)
    assert "Traceback" not in said
    kept = json.loads(out.read_text())
    assert kept["candidates"][0]["name"] == "owner/net"
    assert reb(*command).returncode == 0
    whole = json.loads(out.read_text())
    assert (whole["complete"], len(whole["candidates"])) == (True, 2)
    assert len(server.searches) == 1


def test_the_token_goes_to_the_api_and_nowhere_else(publish, reb, server, tmp_path):
    publish("owner/net", WHOLE)
    server.faults = [Fault(401, body=b'{"message": "Bad credentials"}')]
    out = tmp_path / "out.json"
    command = ("tasks", "select", "--query", "net", "--api", server.address, "--out", out)
    secret = {"GITHUB_TOKEN": "ghp_secret"}
    refused = reb(*command, **secret)
    assert "GITHUB_TOKEN is set" in refused.stderr
    done = reb(*command, **secret)
    assert done.returncode == 0
    assert all(r.headers["Authorization"] == "Bearer ghp_secret" for r in server.searches)
    elsewhere = [r for r in server.requests if r not in server.searches]
    assert elsewhere
    assert not any("Authorization" in request.headers for request in elsewhere)
    assert "ghp_secret" not in refused.stderr + done.stdout + done.stderr
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert out in kept
    assert not any(b"ghp_secret" in path.read_bytes() for path in kept)


def test_a_token_is_not_sent_without_encryption(reb):
    asked = ("tasks", "select", "--query", "x", "--api", "http://github.invalid/api/v3")
    done = reb(*asked, GITHUB_TOKEN="ghp_secret")
    assert done.returncode == 2
    assert "GITHUB_TOKEN would be sent to github.invalid without encryption" in done.stderr


def test_the_table_the_reasons_and_the_sums(publish, reb, server):
    publish("owner/net", WHOLE, stargazers_count=900)
    publish("owner/net-two", WHOLE, stargazers_count=800)
    publish("plain/net", {**WHOLE, "README.md": "# Net\n"}, stargazers_count=700)
    server.add("forked/net", fork=True)
    done = reb("tasks", "select", "--query", "net", "--api", server.address)
    assert done.returncode == 0, done.stderr
    rows = {line.split()[1]: line.split() for line in done.stdout.splitlines()[1:5]}
    assert rows["owner/net"][:3] == ["1", "owner/net", "accepted"]
    lines = done.stdout.splitlines()
    assert "  set aside: owner/net is of the same owner and field" in lines
    assert "  paper: NO: no arXiv id and no DOI in README.md" in lines
    assert "  no fork: NO: it is a fork" in lines
    assert "4 candidates: 2 accepted, 2 refused" in lines
    assert "  paper: 2 of 3 meet it" in lines
    every = reb("tasks", "select", "--query", "net", "--api", server.address, "--why")
    assert "    net/train.py:7: something is moved to a GPU: torch.zeros(3).cuda()" in (
        every.stdout.splitlines()
    )


def test_nothing_found_is_no_failure(reb, server):
    done = reb("tasks", "select", "--query", "nothing", "--api", server.address)
    assert done.returncode == 0
    assert "no candidate was found" in done.stdout


def test_a_candidate_that_cannot_be_decided_is_an_exit_code_of_its_own(reb, server):
    server.add("gone/net")
    done = reb("tasks", "select", "--query", "net", "--api", server.address, "--json")
    assert done.returncode == 3
    [candidate] = json.loads(done.stdout)["candidates"]
    assert candidate["decision"] == "undecided"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give either --query or --suite"),
        (("--query", "x", "--suite", "starter"), "give either --query or --suite"),
        (("--query", "x", "--only", "y"), "--only needs --suite"),
        (("--query", "x", "--from", "."), "--from needs --suite"),
        (("--query", "x", "--since", "yesterday"), "--since"),
        (("--query", "x", "--limit", "0"), "--limit"),
        (("--query", "x", "--out", "no/such/file"), "there is no folder"),
    ],
)
def test_a_wrong_command_line_says_what_is_wrong(arguments, said):
    done = CliRunner().invoke(group, ["tasks", "select", *arguments])
    assert done.exit_code == EXIT_USAGE
    assert said in done.output


@pytest.mark.parametrize("api", ["github", "https://a:b@github.invalid", "ftp://github.invalid"])
def test_what_is_no_address_of_an_api_is_said(api, tmp_path):
    with pytest.raises(SearchError, match="is no address of an API") as caught:
        GitHub(api, Answers(tmp_path), print)
    assert "a:b" not in str(caught.value)


# --- a suite -------------------------------------------------------------------------------


@pytest.fixture
def suite(repository, tmp_path):
    """A suite of one task whose commit is there, and one whose commit nobody has."""
    folder = tmp_path / "suite"
    commit = repository.commit(WHOLE)
    write_task(folder, "one", repository.folder, commit)
    gone = 'unavailable = "deleted"\n'
    write_task(folder, "two", "https://example.invalid/x", "ab" * 20, source=gone)
    return folder


def test_of_a_suite_the_trees_are_judged_and_the_rest_is_unknown(reb, suite, tmp_path):
    out = tmp_path / "out.json"
    done = reb("tasks", "select", "--suite", suite, "--out", out)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "2 candidates: 2 undecided" in lines
    assert "  paper: 1 of 1 meet it" in lines
    assert not any(line.startswith("  stars:") for line in lines)
    assert "1 of 1 meet all that a tree shows; ?: it does not show that" in lines
    unread = next(line for line in lines if "python, paper, gpu" in line)
    assert "source not available: deleted" in unread
    one, two = Selection.load(out).candidates
    assert (one.name, two.name) == ("one", "two")
    assert standings(one) == {
        **dict.fromkeys(("created", "stars", "not_archived", "not_a_fork"), "unknown"),
        **dict.fromkeys(("python", "paper", "gpu", "distributed_or_kernels"), "met"),
    }
    assert set(standings(two).values()) == {"unknown"}


def test_of_a_suite_a_commit_is_taken_from_a_mirror(reb, suite, repository, tmp_path):
    assert reb("sources", "mirror", tmp_path / "mirrors", suite).returncode == 0
    (repository.folder / ".git").rename(tmp_path / "away")
    own_cache = {"REB_CACHE": str(tmp_path / "empty")}
    asked = ("tasks", "select", "--suite", suite, "--only", "one")
    assert reb(*asked, **own_cache).returncode == 3
    done = reb(*asked, "--source-mirror", tmp_path / "mirrors", **own_cache)
    assert (done.returncode, "1 of 1 meet all" in done.stdout) == (0, True)


@pytest.mark.skipif(
    "REB_PAPER_SOURCES" not in os.environ,
    reason="REB_PAPER_SOURCES names no folder of mirrors or clones of the paper's repositories",
)
def test_the_papers_suite_is_judged_as_the_page_says(reb):
    done = reb("tasks", "select", "--suite", "paper44", "--from", os.environ["REB_PAPER_SOURCES"])
    page = (Path(__file__).parents[2] / "docs" / "selecting.md").read_text()
    told = {line.strip() for line in page.splitlines()}
    sums = {line.strip() for line in done.stdout.splitlines() if " of 42 meet " in line}
    assert len(sums) == 5
    assert sums <= told
