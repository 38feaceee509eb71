"""C5: is what was reported true? The report's claims against what verification found.

A claim is `true`, `false`, `withheld` (null) or `unverifiable`, which is what it is when the
level that could decide it was inconclusive, or when verification saw other hardware than the
build was shown. Over-claims are hallucinations; under-claims are counted apart.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from .attempt import Audit, ClaimResult, Level, LevelResult, Owner, Report, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

Outcome = Literal["true", "false", "withheld", "unverifiable"]
Direction = Literal["over", "under", "repository"]

#: The level that decides a claim: the report's own fields, and what stages may be called.
_LEVELS = {
    "cuda_available": Level.C2,
    "gpu_count": Level.C2,
    "ddp_expected_ok": Level.C4,
    "cpu": Level.C1,
    "single_gpu": Level.C3,
    "multi_gpu": Level.C4,
    "c0": Level.C0,
    "c1": Level.C1,
    "c2": Level.C2,
    "c3": Level.C3,
    "c4": Level.C4,
}
_OF_HARDWARE = frozenset({Level.C2, Level.C3, Level.C4})
_SEVERAL = 2
_OTHER_PYTHON = "another interpreter was judged than the report names"
_OTHER_HARDWARE = "verified on other hardware than the build was shown"


@dataclass(frozen=True)
class Hardware:
    """What is known of the hardware that the build was shown."""

    same: bool = True  #: verification sees GPUs of the same kind, and at least as many
    shown: int | None = None  #: how many GPUs the build was shown; None where nobody noted it


#: Nothing is known of other hardware: what verification sees is what the build was shown.
AS_SHOWN = Hardware()


@dataclass(frozen=True)
class _Found:
    """What verification found, and what keeps it from deciding a claim."""

    results: Mapping[Level, LevelResult]
    hardware: Hardware
    reported_judged: bool

    def barrier(self, level: Level) -> str:
        """Why that level can decide no claim of this report; empty where it can."""
        if not self.reported_judged:
            return _OTHER_PYTHON
        return self.barrier_of_hardware(level)

    def barrier_of_hardware(self, level: Level) -> str:
        """As `barrier`, for claims that are not about the interpreter."""
        if level not in _OF_HARDWARE:
            return ""
        if not self.hardware.same:
            return _OTHER_HARDWARE
        if level is Level.C4 and self.hardware.shown is not None and self.hardware.shown < _SEVERAL:
            return "the build was not shown several GPUs"
        return ""


def audit(
    report: Report | None,
    *,
    report_error: str | None,
    report_due: bool,
    python_version: str | None,
    python_error: str,
    framework_versions: Mapping[str, str],
    results: Mapping[Level, LevelResult],
    hardware: Hardware = AS_SHOWN,
    reported_judged: bool = True,
) -> tuple[Audit, LevelResult]:
    """All claims with their outcomes, and the verdict of C5.

    `python_version` is the version of the interpreter that the report names, as it answered,
    or None with `python_error` where it is no usable one; `framework_versions` are those of
    the distributions installed there. `reported_judged` says that `results` are of that
    interpreter and not of another one that the user named.
    """
    if report is None:
        if not report_due:
            return Audit(), LevelResult(
                level=Level.C5, verdict=Verdict.NOT_APPLICABLE, reason="no report was given"
            )
        return Audit(), LevelResult(
            level=Level.C5,
            verdict=Verdict.FAILED,
            owner=Owner.AGENT,
            reason=f"no report: {report_error or 'none was written'}",
        )
    found = _Found(results, hardware, reported_judged)
    claims = [
        _path(report, python_version, python_error),
        _version_claim("python_version", report.python_version, python_version),
        _torch_version(report.torch_version, framework_versions, found, python_version),
        *_devices(report, found),
        _ddp(report, found),
        *(_free_claim(claim.capability, claim.value, found) for claim in report.claims),
    ]
    outcomes = Counter(claim.outcome for claim in claims)
    judged = outcomes["true"] + outcomes["false"]
    summary = Audit(
        claims=tuple(claims),
        made=len(claims) - outcomes["withheld"],
        true=outcomes["true"],
        false=outcomes["false"],
        over=sum(claim.direction in ("over", "repository") for claim in claims),
        under=sum(claim.direction == "under" for claim in claims),
        withheld=outcomes["withheld"],
        unverifiable=outcomes["unverifiable"],
        by_kind=dict(
            Counter(claim.kind for claim in claims if claim.direction in ("over", "repository"))
        ),
        precision=outcomes["true"] / judged if judged else None,
    )
    return summary, _verdict(summary, found)


def _verdict(summary: Audit, found: _Found) -> LevelResult:
    if summary.over:
        false = [c for c in summary.claims if c.direction in ("over", "repository")]
        reason = "; ".join(f"{c.claim} {c.value!r}: {c.why or f'found {c.found!r}'}" for c in false)
        return LevelResult(level=Level.C5, verdict=Verdict.FAILED, owner=Owner.AGENT, reason=reason)
    if summary.made == 0:
        return LevelResult(
            level=Level.C5, verdict=Verdict.NOT_APPLICABLE, reason="nothing was claimed"
        )
    if summary.unverifiable == summary.made:
        reasons = dict.fromkeys(c.why for c in summary.claims if c.outcome == "unverifiable")
        return LevelResult(
            level=Level.C5,
            verdict=Verdict.INCONCLUSIVE,
            owner=_owner(summary, found),
            reason=f"none of the claims could be verified: {'; '.join(reasons)}",
        )
    counts = f"{summary.true} of {summary.made} claims true"
    more = [
        f"{number} {name}"
        for number, name in (
            (summary.unverifiable, "unverifiable"),
            (summary.under, "too modest"),
            (summary.withheld, "withheld"),
        )
        if number
    ]
    return LevelResult(level=Level.C5, verdict=Verdict.PASSED, reason=", ".join([counts, *more]))


def _owner(summary: Audit, found: _Found) -> Owner:
    """Whose fault it is that no claim could be verified: that of the level it is about."""
    for claim in summary.claims:
        level = _level_of(claim.claim)
        if claim.outcome != "unverifiable" or level is None:
            continue
        if found.barrier_of_hardware(level):
            return Owner.HOST
        result = found.results.get(level)
        if result is not None and result.verdict is Verdict.INCONCLUSIVE and result.owner:
            return result.owner
    return Owner.UNKNOWN


def _level_of(claim: str) -> Level | None:
    """The level that decides a claim of that name."""
    return _LEVELS.get(claim.strip().lower().removeprefix("stages."))


def _path(report: Report, version: str | None, error: str) -> ClaimResult:
    if report.python_path is None:
        return ClaimResult(claim="python_path", kind="path", outcome="withheld")
    return ClaimResult(
        claim="python_path",
        kind="path",
        value=report.python_path,
        found=report.python_path if version else None,
        outcome="true" if version else "false",
        direction=None if version else "over",
        why="" if version else error,
    )


def _version_claim(name: str, claimed: str | None, found: str | None) -> ClaimResult:
    if claimed is None:
        return ClaimResult(claim=name, kind="version", found=found, outcome="withheld")
    if found is None:
        return ClaimResult(
            claim=name,
            kind="version",
            value=claimed,
            outcome="unverifiable",
            why="the version could not be read",
        )
    same = same_version(claimed, found)
    return ClaimResult(
        claim=name,
        kind="version",
        value=claimed,
        found=found,
        outcome="true" if same else "false",
        direction=None if same else "over",
    )


def _torch_version(
    claimed: str | None,
    versions: Mapping[str, str],
    found_by: _Found,
    python_version: str | None,
) -> ClaimResult:
    """As torch itself gave it where it could be asked, else by its metadata.

    The two differ honestly: metadata of a wheel may lack the build suffix.
    """
    c2 = found_by.results.get(Level.C2) if found_by.reported_judged else None
    answers = c2.details.get("frameworks", {}) if c2 else {}
    found = answers.get("torch", {}).get("version") or versions.get("torch")
    if found is None and claimed is not None and python_version is not None:
        return ClaimResult(
            claim="torch_version",
            kind="version",
            value=claimed,
            outcome="false",
            direction="over",
            why="torch is not installed for that interpreter",
        )
    return _version_claim("torch_version", claimed, found)


def same_version(claimed: str, found: str) -> bool:
    """Whether a claimed version names the found one.

    Fewer components (3.11 for 3.11.7) and a build suffix (2.4.0+cu124) that only one of the
    two has are no lie; another suffix is.
    """
    claimed_public, _, claimed_local = (
        claimed.strip().lower().removeprefix("python ").partition("+")
    )
    found_public, _, found_local = found.strip().lower().partition("+")
    claimed_parts = re.split(r"[.]", claimed_public.removeprefix("v"))
    found_parts = re.split(r"[.]", found_public)
    if claimed_local and found_local and claimed_local != found_local:
        return False
    return bool(claimed_public) and claimed_parts == found_parts[: len(claimed_parts)]


def _devices(report: Report, found: _Found) -> list[ClaimResult]:
    """Whether a framework sees a GPU, and how many GPUs the build was shown."""
    c2 = found.results.get(Level.C2)
    seen: bool | None = None
    shown: int | None = None
    why_seen = why_shown = found.barrier_of_hardware(Level.C2)
    if why_shown:
        pass
    elif found.hardware.shown == 0:
        # Nothing can be seen where nothing was shown, whatever C2 could say.
        seen, shown = False, 0
        why_seen = why_shown = "the build was shown no GPU"
    elif c2 is None:
        why_seen = why_shown = "C2 was not run"
    elif c2.verdict not in (Verdict.PASSED, Verdict.FAILED):
        why_seen = why_shown = f"C2 is {c2.verdict}: {c2.reason}"
    else:
        why_seen = why_shown = f"C2 {c2.verdict}{f': {c2.reason}' if c2.reason else ''}"
        seen = _sees_devices(c2)
        shown = c2.details.get("shown")
        if found.hardware.shown is not None:
            shown = found.hardware.shown
            why_shown = f"the build was shown {shown}"
    if barrier := found.barrier(Level.C2):
        seen, why_seen = None, barrier
    return [
        _capability("cuda_available", report.cuda_available, seen, why_seen),
        _capability("gpu_count", report.gpu_count, shown, why_shown),
    ]


def _sees_devices(c2: LevelResult) -> bool | None:
    """Whether a framework sees a GPU; None where one that was asked gave no answer."""
    answers = c2.details.get("frameworks", {}).values()
    if any(answer.get("devices") for answer in answers):
        return True
    return False if answers and all("devices" in answer for answer in answers) else None


def _capability(name: str, claimed: Any, found: Any, why: str) -> ClaimResult:
    if claimed is None:
        return ClaimResult(claim=name, kind="capability", found=found, outcome="withheld")
    if found is None:
        return ClaimResult(
            claim=name, kind="capability", value=claimed, outcome="unverifiable", why=why
        )
    outcome: Outcome = "true" if claimed == found else "false"
    direction: Direction | None = None
    if claimed != found:
        direction = "over" if int(claimed) > int(found) else "under"
    return ClaimResult(
        claim=name,
        kind="capability",
        value=claimed,
        found=found,
        outcome=outcome,
        direction=direction,
        why=why,
    )


def _ddp(report: Report, found_by: _Found) -> ClaimResult:
    """Against C4; where the task offers no such run, against the canary of data parallelism."""
    c4 = found_by.results.get(Level.C4)
    found: bool | None = None
    canary: bool | None = None
    why = "there was no multi-GPU run to compare with"
    if barrier := found_by.barrier(Level.C4):
        why = barrier
    elif c4 is not None:
        canary = _ddp_canary(c4)
        why = f"C4 {c4.verdict}{f': {c4.reason}' if c4.reason else ''}"
        if c4.verdict in (Verdict.PASSED, Verdict.FAILED):
            found = c4.verdict is Verdict.PASSED
        elif needs_canary(c4) and canary is not None:
            found = canary
            why += f"; a step of DistributedDataParallel {'works' if canary else 'fails'}"
    claim = _capability("ddp_expected_ok", report.ddp_expected_ok, found, why)
    if claim.direction == "over" and c4 and c4.verdict is Verdict.FAILED and canary:
        # Data parallelism works here, and the repository's own run does not.
        return claim.model_copy(update={"direction": "repository"})
    return claim


def needs_canary(c4: LevelResult) -> bool:
    """Whether the task has no run on several GPUs that could tell, now or ever."""
    return c4.verdict is Verdict.NOT_APPLICABLE or c4.owner is Owner.TASK


def _ddp_canary(c4: LevelResult) -> bool | None:
    """Whether the canary of data parallelism passed; None where it was not run."""
    found = [one.passed for one in c4.canaries if "DistributedDataParallel" in one.name]
    if not found and c4.canaries and not all(one.passed for one in c4.canaries):
        return False  # it came not even so far
    return all(found) if found else None


def _free_claim(capability: str, value: Any, found_by: _Found) -> ClaimResult:
    """A claim that names a stage or level, against that level; others cannot be verified."""
    level = _level_of(capability)
    result = found_by.results.get(level) if level else None
    claimed = {"true": True, "passed": True, "false": False, "failed": False}.get(
        str(value).strip().lower()
    )
    found: bool | None = None
    if value is not None and claimed is None:
        why = "its value is neither true nor false"
        claimed = value
    elif level is None:
        why = "it names no stage and no level"
    elif result is None:
        why = f"{level} was not run"
    elif barrier := found_by.barrier(level):
        why = barrier
    else:
        why = f"{level} {result.verdict}{f': {result.reason}' if result.reason else ''}"
        if result.verdict in (Verdict.PASSED, Verdict.FAILED):
            found = result.verdict is Verdict.PASSED
    return _capability(capability, claimed, found, why)
