"""Which paper a repository names: arXiv ids and DOIs in its README and citation files.

An identifier in a citation (CITATION.cff, a BibTeX entry) or near the head of the README is
the repository's own in all likelihood. One that stands elsewhere may be that of a method that
it uses; by the letter of the criterion it counts, and it is marked as weak.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from .criteria import Criterion, Evidence, Finding, Standing
from .lines import excerpt, lines_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: arXiv's identifiers since April 2007 (https://info.arxiv.org/help/arxiv_identifier.html), in
#: the addresses and notations that name arXiv: a bare number is no identifier. Hugging Face's
#: pages of papers, and alphaXiv's, go by the same numbers.
_ARXIV = re.compile(
    r"(?:arxiv(?:\.org)?(?:[\s:.\-_/<(\[]|%20|abs|pdf|html|preprint){1,24}"
    r"|(?:huggingface\.co/papers|alphaxiv\.org/(?:abs|overview))/)"
    r"(?P<id>\d\d(?:0[1-9]|1[0-2])\.\d{4,5})(?!\d)",
    re.IGNORECASE,
)
_EPRINT = re.compile(
    r"\beprint\s*=\s*[{\"]\s*(?P<id>\d\d(?:0[1-9]|1[0-2])\.\d{4,5})(?!\d)", re.IGNORECASE
)
_ARXIV_OLD = re.compile(
    r"arxiv(?:\.org/(?:abs|pdf)/|:\s?)(?P<id>[a-z-]+(?:\.[A-Z]{2})?/\d{7})(?!\d)", re.IGNORECASE
)
_DOI = re.compile(r"(?<![\w.])(?P<id>10\.\d{4,9}/[^\s\"'<>{}\[\]()|\\,;`]+)", re.IGNORECASE)
#: Archives that give DOIs to software and data: Zenodo, figshare, Dataverse, Dryad.
_NO_PAPERS = ("10.5281/", "10.6084/", "10.7910/", "10.5061/")
#: A publication that is cited without an identifier.
_PUBLICATION = re.compile(
    r"@(?:article|inproceedings|misc|techreport|preprint)\s*\{"
    r"|openreview\.net/(?:forum|pdf)|aclanthology\.org/|openaccess\.thecvf\.com/",
    re.IGNORECASE,
)
_ENTRY = re.compile(r"@\s*[A-Za-z]+\s*\{")
#: Titles, badges and links of authors stand within these; abstracts and news come after.
_HEAD_LINES = 40
#: How many lines a BibTeX entry may have.
_ENTRY_LINES = 25
_MOST = 3

_README = re.compile(
    r"readme(?:(?:[._-][\w-]{1,10})?\.(?:md|rst|txt|markdown|adoc|org))?", re.IGNORECASE
)
_CITATION = re.compile(r"(?:citation|citations)(?:\.(?:cff|bib|md|txt|rst))?", re.IGNORECASE)


@dataclass(frozen=True)
class _Found:
    strength: int  #: 0 a citation file, 1 a citation in a README, 2 near its head, 3 elsewhere
    evidence: Evidence


def is_named_here(path: str) -> bool:
    """Whether a paper that this file names is looked for: README and citation files.

    Of the root, and of the two folders in which GitHub looks for a README.
    """
    pure = PurePosixPath(path)
    at_root = str(pure.parent) in (".", ".github", "docs")
    return at_root and bool(_README.fullmatch(pure.name) or _CITATION.fullmatch(pure.name))


def judge_papers(files: Mapping[str, str]) -> Finding:
    """Whether README or citation files, given as path and text, name a paper."""
    found = sorted(
        (found for path, text in files.items() for found in _in_file(path, text)),
        key=lambda found: (found.strength, found.evidence.file != "README.md"),
    )
    if found:
        weak = found[0].strength == 3
        first = found[0].evidence
        return Finding(
            criterion=Criterion.PAPER,
            standing=Standing.MET,
            why=f"{first.says} ({first.place})"
            + (", neither in a citation nor near the head: perhaps another's" if weak else ""),
            evidence=tuple(one.evidence for one in found[:_MOST]),
            weak=weak,
        )
    if not files:
        return _none("there is no README and no citation file")
    near = [one for path, text in files.items() for one in _publications(path, text)]
    if near:
        why = f"no arXiv id and no DOI of a paper, though {near[0].says} ({near[0].place})"
        return _none(why, tuple(near[:_MOST]))
    return _none(f"no arXiv id and no DOI in {', '.join(sorted(files))}")


def _none(why: str, evidence: tuple[Evidence, ...] = ()) -> Finding:
    return Finding(criterion=Criterion.PAPER, standing=Standing.NOT_MET, why=why, evidence=evidence)


def _in_file(path: str, text: str) -> Iterator[_Found]:
    citation = bool(_CITATION.fullmatch(PurePosixPath(path).name))
    entry_ends = 0
    for number, line in lines_of(text):
        if _ENTRY.search(line):
            entry_ends = number + _ENTRY_LINES
        elif line.strip() in ("}", "```"):
            entry_ends = 0
        for name in _identifiers(line):
            in_entry = number <= entry_ends
            strength = 0 if citation else 1 if in_entry else 2 if number <= _HEAD_LINES else 3
            yield _Found(strength, Evidence(file=path, line=number, text=excerpt(line), says=name))


def _identifiers(line: str) -> Iterator[str]:
    for pattern in (_ARXIV, _EPRINT, _ARXIV_OLD):
        for match in pattern.finditer(line):
            yield f"arXiv {match['id']}"
    for match in _DOI.finditer(line):
        name = match["id"].rstrip(".:")
        if not name.startswith(_NO_PAPERS) and "arxiv" not in name.lower():
            yield f"DOI {name}"


def _publications(path: str, text: str) -> Iterator[Evidence]:
    for number, line in lines_of(text):
        if _PUBLICATION.search(line):
            says = "a publication is cited without one"
            yield Evidence(file=path, line=number, text=excerpt(line), says=says)
        elif any(match["id"].startswith(_NO_PAPERS) for match in _DOI.finditer(line)):
            says = "there is a DOI of software or data"
            yield Evidence(file=path, line=number, text=excerpt(line), says=says)
