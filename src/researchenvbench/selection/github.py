"""A GitHub's search for repositories, asked over its REST API.

One endpoint: `GET /search/repositories` with `q`, `sort`, `order`, `per_page` and `page`. It
gives at most a thousand results of a query, so a larger one is asked in spans of the day of
creation. `incomplete_results` means that the server ran out of time: it is asked again, and
what stays incomplete is said. Limits are waited out by `assets.http`. The token is that of
GITHUB_TOKEN; it is sent to the API alone, and is in no message, file or cache.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlencode, urlsplit

from pydantic import ValidationError

from ..assets.http import Client, Refused
from ..errors import AssetError, SearchError
from .criteria import Facts

if TYPE_CHECKING:
    from collections.abc import Callable

    from .answers import Answers

PUBLIC_API = "https://api.github.com"
#: https://docs.github.com/en/rest/about-the-rest-api/api-versions
_HEADERS = {
    "Accept": "application/vnd.github+json",
    "X-GitHub-Api-Version": "2022-11-28",
    "User-Agent": "researchenvbench",
}
_A_PAGE = 100  #: the most that the server gives
_A_QUERY = 1000  #: likewise, of all pages
#: The limit of searches is one of a minute; longer than this nobody waits before a terminal.
_LONGEST_WAIT_S = 900.0
_TRIES_INCOMPLETE = 3
_WAIT_INCOMPLETE_S = 2.0
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?/[A-Za-z0-9._-]+")


@dataclass
class Found:
    """What a search gave."""

    repositories: list[Facts] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    complete: bool = True


@dataclass(frozen=True)
class Search:
    """What is searched for."""

    query: str
    since: date
    more_stars_than: int
    until: date | None = None

    def text(self) -> str:
        """The query with its qualifiers (GitHub, "Searching for repositories")."""
        span = f">={self.since}" if self.until is None else f"{self.since}..{self.until}"
        own = f"language:Python stars:>{self.more_stars_than} created:{span} archived:false"
        return f"{self.query} {own}".strip()


class GitHub:
    """A GitHub's API, with answers of before from the cache."""

    def __init__(
        self,
        api: str,
        answers: Answers,
        say: Callable[[str], None],
        *,
        wait_incomplete_s: float = _WAIT_INCOMPLETE_S,
    ) -> None:
        """The API at the address `api`.

        Raises:
            SearchError: the address is none, or a token would be sent to it unprotected.
        """
        parts = urlsplit(api)
        self.api = api.rstrip("/")
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            raise SearchError(
                f"{parts.scheme}://{parts.hostname or ''} is no address of an API",
                advice=f"give --api {PUBLIC_API}, or https://HOST/api/v3 of an Enterprise server; "
                "a token belongs into GITHUB_TOKEN",
            )
        token = os.environ.get("GITHUB_TOKEN") or None
        local = parts.hostname in ("127.0.0.1", "localhost", "::1")
        if token and parts.scheme == "http" and not local:
            raise SearchError(
                f"GITHUB_TOKEN would be sent to {parts.hostname} without encryption",
                advice="give an https address by --api, or unset GITHUB_TOKEN for this command",
            )
        self._token = token
        self._answers = answers
        self._say = say
        self._wait_incomplete_s = wait_incomplete_s
        self._client = Client(
            say,
            token=token,
            headers=_HEADERS,
            setting="--api",
            longest_wait_s=_LONGEST_WAIT_S,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.__exit__()

    def search(self, search: Search, limit: int) -> Found:
        """The `limit` repositories with most stars that the search finds.

        Raises:
            SearchError: the server refuses it, or cannot be reached.
        """
        found = Found()
        by_id: dict[int, Facts] = {}  # while pages are turned, a repository can move to the next
        spans = [search]
        while spans:
            span = spans.pop()
            first, total = self._page(span, 1, found)
            too_many = total > _A_QUERY and limit > _A_QUERY
            if too_many and (halves := _halves(span)):
                spans += halves
                continue
            if too_many:
                found.complete = False
                found.notes.append(
                    f"{span.text()!r} has {total} results, of which the server gives {_A_QUERY}"
                )
            by_id.update((facts.id, facts) for facts in first)
            wanted = min(limit, total, _A_QUERY)
            for page in range(2, -(-wanted // _A_PAGE) + 1):
                more, _ = self._page(span, page, found)
                by_id.update((facts.id, facts) for facts in more)
        best = sorted(by_id.values(), key=lambda facts: (-facts.stars, facts.name.lower()))
        found.repositories = best[:limit]
        return found

    def _page(self, search: Search, page: int, found: Found) -> tuple[list[Facts], int]:
        """The repositories of a page, and how many there are in all."""
        query = {
            "q": search.text(),
            "sort": "stars",
            "order": "desc",
            "per_page": _A_PAGE,
            "page": page,
        }
        url = f"{self.api}/search/repositories?{urlencode(query)}"
        answer = self._answers.get(url)
        if answer is None:
            answer = self._ask(url, search)
            if not answer.get("incomplete_results"):
                self._answers.keep(url, answer)
        if answer.get("incomplete_results"):
            found.complete = False
            found.notes.append(
                f"page {page} of {search.text()!r} is incomplete: the server ran out of time"
            )
        items, total = answer.get("items"), answer.get("total_count")
        if not isinstance(items, list) or not isinstance(total, int):
            raise SearchError(
                f"{_host(url)} answers with something else than results of a search",
                advice="check --api: it must be the root of GitHub's REST API",
            )
        repositories = []
        for item in items:
            facts = facts_of(item)
            if facts is None:
                name = item.get("full_name") if isinstance(item, dict) else item
                found.notes.append(f"what is said of {str(name)[:100]!r} cannot be read")
            else:
                repositories.append(facts)
        return repositories, total

    def _ask(self, url: str, search: Search) -> dict[str, Any]:
        answer: dict[str, Any] = {}
        for tried in range(1, _TRIES_INCOMPLETE + 1):
            try:
                said = self._client.json(url)
            except Refused as refused:
                raise self._refusal(refused, search) from refused
            except AssetError as error:
                raise SearchError(str(error.args[0]), advice=error.advice) from error
            answer = said if isinstance(said, dict) else {}
            if not answer.get("incomplete_results"):
                break
            if tried < _TRIES_INCOMPLETE:
                self._say(f"{_host(url)}: an incomplete answer; it is asked again")
                time.sleep(self._wait_incomplete_s * tried)
        return answer

    def _refusal(self, answer: Refused, search: Search) -> SearchError:
        said = f"{_host(self.api)} answers {answer.status}: {answer.words}"
        if answer.status == 401:
            return SearchError(
                f"{said} (GITHUB_TOKEN is {'set' if self._token else 'not set'})",
                advice="set GITHUB_TOKEN to a token that is valid there; searches of public "
                "repositories need none, and have a lower limit without",
            )
        if answer.status == 422:
            return SearchError(
                f"{said}; the query was {search.text()!r}",
                advice="correct --query: it is GitHub's syntax for searches of repositories",
            )
        return SearchError(said, advice="check --api, and what GITHUB_TOKEN may do there")


def facts_of(item: Any) -> Facts | None:
    """What an entry of the results says; None where it cannot be relied on."""
    try:
        facts = Facts(
            id=item["id"],
            name=item["full_name"],
            address=item["clone_url"],
            created=date.fromisoformat(item["created_at"][:10]),
            pushed=item["pushed_at"] or "",
            stars=item["stargazers_count"],
            archived=item["archived"],
            fork=item["fork"],
            language=item.get("language"),
            description=item.get("description") or "",
            topics=tuple(item.get("topics") or ()),
        )
    except (KeyError, TypeError, ValueError, ValidationError):
        return None
    # Both go into names of folders and arguments of git.
    whole = _NAME.fullmatch(facts.name) and not facts.name.endswith(("/.", "/.."))
    served = facts.address.startswith(("https://", "http://"))
    return facts if whole and served else None


def _halves(search: Search) -> list[Search]:
    """The search in two spans of days; empty where it is of one."""
    end = search.until or date.today()  # a day more or less finds the same
    if end <= search.since:
        return []
    middle = search.since + (end - search.since) // 2
    earlier = Search(search.query, search.since, search.more_stars_than, middle)
    later = Search(search.query, middle + timedelta(days=1), search.more_stars_than, end)
    return [earlier, later]


def _host(url: str) -> str:
    return urlsplit(url).netloc
