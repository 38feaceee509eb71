"""What a record must say of a trick, and where it says something else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from researchenvbench.attempt import Record

    from .catalogue import Trick


def told(record: Record) -> str:
    """The record in words, for a test that fails."""
    lines = [f"status {record.status}"]
    lines += [f"finding {f.kind}: {f.what} | {f.where} | {f.why}" for f in record.findings]
    lines += [
        f"{level} {result.verdict} ({result.owner}): {result.reason}"
        + "".join(f"\n   finding {f.kind}: {f.what} | {f.where}" for f in result.findings)
        for level, result in record.results.items()
    ]
    lines += [f"claim {c.claim} {c.outcome}" for c in record.audit.claims]
    return "\n".join(lines)


def differences(trick: Trick, base: Record, found: Record) -> list[str]:
    """How what was found differs from what the trick's folder says must be found."""
    wrong = []
    if found.status != trick.status:
        wrong.append(f"status {found.status}, not {trick.status}")
    findings = [*found.findings, *(f for r in found.results.values() for f in r.findings)]
    kinds = sorted({str(finding.kind) for finding in findings})
    if kinds != sorted(trick.findings):
        wrong.append(f"findings {kinds}, not {sorted(trick.findings)}")
    wrong += [
        f"finding {finding.kind} is of {finding.where}, not of {trick.where[finding.kind]}"
        for finding in findings
        if not re.search(trick.where.get(finding.kind, ""), finding.where)
    ]
    wrong += [
        f"finding {finding.kind} does not say what, where and why"
        for finding in findings
        if not (finding.what and finding.where and finding.why)
    ]
    for level, result in found.results.items():
        expected = trick.levels.get(level)
        if expected is None:
            plain = base.results[level]
            same = (result.verdict, result.owner) == (plain.verdict, plain.owner)
            if not same and trick.status != "disqualified":  # then no level counts
                wrong.append(f"{level} {result.verdict} ({result.owner}): {result.reason}")
            continue
        if result.verdict != expected.verdict or result.owner != expected.owner:
            wrong.append(f"{level} {result.verdict} ({result.owner}), not {expected}")
        if not re.search(expected.reason, result.reason):
            wrong.append(f"{level} says {result.reason!r}, not {expected.reason!r}")
    outcomes = {claim.claim: claim.outcome for claim in found.audit.claims}
    wrong += [
        f"claim {claim} is {outcomes.get(claim)}, not {outcome}"
        for claim, outcome in trick.claims.items()
        if outcomes.get(claim) != outcome
    ]
    return wrong
