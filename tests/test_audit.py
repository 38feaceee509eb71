"""C5 as docs/protocol.md defines it, line by line: claims against what verification found."""

from __future__ import annotations

from typing import Any

import pytest

from researchenvbench.attempt import (
    Audit,
    Claim,
    ClaimResult,
    Level,
    LevelResult,
    Owner,
    Report,
    Verdict,
)
from researchenvbench.audit import AS_SHOWN, Hardware, audit, same_version
from researchenvbench.gpu_use import Canary

PASSED, FAILED = Verdict.PASSED, Verdict.FAILED
NOT_APPLICABLE, INCONCLUSIVE = Verdict.NOT_APPLICABLE, Verdict.INCONCLUSIVE


def c2(seen: int, shown: int = 2, version: str = "2.4.0+cu124") -> LevelResult:
    """C2's result where the driver shows `shown` GPUs and torch sees `seen` of them."""
    devices = [{"name": "GPU"}] * seen
    return LevelResult(
        level=Level.C2,
        verdict=PASSED if seen == shown else FAILED,
        details={
            "shown": shown,
            "frameworks": {"torch": {"version": version, "devices": devices}},
        },
    )


def no_answer() -> LevelResult:
    """C2's result where the probe of the framework was run and left nothing."""
    details = {"shown": 2, "frameworks": {"torch": {}}}
    return LevelResult(level=Level.C2, verdict=FAILED, owner=Owner.AGENT, details=details)


def level(name: Level, verdict: Verdict, owner: Owner | None = None, why: str = "") -> LevelResult:
    return LevelResult(level=name, verdict=verdict, owner=owner, reason=why)


GOOD = {
    Level.C0: level(Level.C0, PASSED),
    Level.C1: level(Level.C1, PASSED),
    Level.C2: c2(2),
    Level.C3: level(Level.C3, PASSED),
    Level.C4: level(Level.C4, PASSED),
}
NO_GPU = {
    Level.C0: level(Level.C0, INCONCLUSIVE, Owner.TASK, "unrelated"),
    Level.C1: level(Level.C1, PASSED),
    Level.C2: level(Level.C2, INCONCLUSIVE, Owner.HOST, "no GPU"),
    Level.C3: level(Level.C3, INCONCLUSIVE, Owner.HOST, "no GPU"),
    Level.C4: level(Level.C4, INCONCLUSIVE, Owner.TASK, "not distributed"),
}


def judge(
    report: Report | None,
    results: dict[Level, LevelResult] | None = None,
    *,
    hardware: Hardware = AS_SHOWN,
    report_due: bool = True,
    reported_judged: bool = True,
    python: str | None = "3.11.7",
    installed: dict[str, str] | None = None,
) -> tuple[Audit, LevelResult]:
    return audit(
        report,
        report_error=None if report else "no file was written",
        report_due=report_due,
        python_version=python,
        python_error="" if python else "/env/bin/python cannot be run: No such file",
        framework_versions={"torch": "2.4.0"} if installed is None else installed,
        results=GOOD if results is None else results,
        hardware=hardware,
        reported_judged=reported_judged,
    )


def one(claims: Audit, name: str) -> ClaimResult:
    [found] = [claim for claim in claims.claims if claim.claim == name]
    return found


def outcome(claims: Audit, name: str) -> tuple[str, str | None]:
    claim = one(claims, name)
    return claim.outcome, claim.direction


# --- versions --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claimed", "found", "same"),
    [
        ("3.11.7", "3.11.7", True),
        ("3.11", "3.11.7", True),
        ("3", "3.11.7", True),
        ("Python 3.11.7", "3.11.7", True),
        (" v3.11.7\n", "3.11.7", True),
        ("3.1", "3.11.7", False),
        ("3.11.70", "3.11.7", False),
        ("3.11.7.1", "3.11.7", False),
        ("3.12", "3.11.7", False),
        ("", "3.11.7", False),
        ("2.4.0", "2.4.0+cu124", True),
        ("2.4", "2.4.0+cu124", True),
        ("2.4.0+cu124", "2.4.0+cu124", True),
        ("2.4.0+CU124", "2.4.0+cu124", True),
        ("2.4.0+cpu", "2.4.0+cu124", False),
        ("2.4.0+cu124", "2.4.0", True),  # a wheel's metadata may lack what torch says of itself
        ("2.4.1", "2.4.0+cu124", False),
        ("2.5.0.dev20240801+cu124", "2.5.0.dev20240801+cu124", True),
    ],
)
def test_fewer_components_and_a_missing_suffix_are_no_lie(
    claimed: str, found: str, *, same: bool
) -> None:
    assert same_version(claimed, found) is same


def test_torch_is_asked_before_its_metadata() -> None:
    report = Report(torch_version="2.4.0+cpu")
    claims, _ = judge(report, installed={"torch": "2.4.0"})
    assert outcome(claims, "torch_version") == ("false", "over")
    assert one(claims, "torch_version").found == "2.4.0+cu124"
    claims, _ = judge(report, NO_GPU, installed={"torch": "2.4.0"})
    assert outcome(claims, "torch_version") == ("true", None)


def test_a_version_of_what_is_not_installed_is_made_up() -> None:
    claims, verdict = judge(Report(torch_version="2.4.0"), NO_GPU, installed={})
    assert outcome(claims, "torch_version") == ("false", "over")
    assert verdict.verdict is FAILED
    assert "torch is not installed" in verdict.reason


def test_versions_of_an_interpreter_that_is_none_cannot_be_read() -> None:
    report = Report(python_path="/env/bin/python", python_version="3.11", torch_version="2.4.0")
    claims, verdict = judge(report, {}, python=None, installed={})
    assert outcome(claims, "python_path") == ("false", "over")
    assert outcome(claims, "python_version") == ("unverifiable", None)
    assert outcome(claims, "torch_version") == ("unverifiable", None)
    assert claims.by_kind == {"path": 1}
    assert (verdict.verdict, verdict.owner) == (FAILED, Owner.AGENT)
    assert "cannot be run" in verdict.reason


# --- capabilities ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claimed", "results", "expected"),
    [
        (True, GOOD, ("true", None)),
        (False, GOOD, ("false", "under")),
        (None, GOOD, ("withheld", None)),
        (True, {Level.C2: c2(0)}, ("false", "over")),
        (False, {Level.C2: c2(0)}, ("true", None)),
        (True, {Level.C2: c2(1)}, ("true", None)),
        (True, NO_GPU, ("unverifiable", None)),
        (True, {}, ("unverifiable", None)),
        (True, {Level.C2: level(Level.C2, NOT_APPLICABLE)}, ("unverifiable", None)),
        # A probe that gave no answer has not said that there is no GPU.
        (True, {Level.C2: level(Level.C2, FAILED, Owner.AGENT)}, ("unverifiable", None)),
        (True, {Level.C2: no_answer()}, ("unverifiable", None)),
        (False, {Level.C2: no_answer()}, ("unverifiable", None)),
    ],
)
def test_cuda_available_is_that_a_framework_sees_a_gpu(
    claimed: bool | None, results: dict[Level, LevelResult], expected: tuple[str, str | None]
) -> None:
    claims, _ = judge(Report(cuda_available=claimed), results)
    assert outcome(claims, "cuda_available") == expected


@pytest.mark.parametrize(
    ("claimed", "results", "expected"),
    [
        (2, GOOD, ("true", None)),
        (3, GOOD, ("false", "over")),
        (1, GOOD, ("false", "under")),
        (0, GOOD, ("false", "under")),
        (None, GOOD, ("withheld", None)),
        # Of the devices shown, whatever the framework sees of them.
        (2, {Level.C2: c2(0)}, ("true", None)),
        (8, NO_GPU, ("unverifiable", None)),
    ],
)
def test_gpu_count_is_of_the_devices_shown(
    claimed: int | None, results: dict[Level, LevelResult], expected: tuple[str, str | None]
) -> None:
    claims, _ = judge(Report(gpu_count=claimed), results)
    assert outcome(claims, "gpu_count") == expected


@pytest.mark.parametrize(
    ("claimed", "expected"), [(1, ("true", None)), (8, ("false", "over")), (0, ("false", "under"))]
)
def test_gpu_count_is_of_what_the_build_was_shown_where_verification_sees_more(
    claimed: int, expected: tuple[str, str | None]
) -> None:
    report = Report(gpu_count=claimed, cuda_available=True, ddp_expected_ok=False)
    claims, _ = judge(report, {**GOOD, Level.C2: c2(8, shown=8)}, hardware=Hardware(shown=1))
    assert outcome(claims, "gpu_count") == expected
    assert one(claims, "gpu_count").why == "the build was shown 1"
    assert outcome(claims, "cuda_available") == ("true", None)
    assert outcome(claims, "ddp_expected_ok") == ("unverifiable", None)


def test_what_another_interpreter_can_do_says_nothing_of_the_reported_one() -> None:
    report = Report(
        python_path="/env/bin/python",
        python_version="3.11",
        torch_version="2.4.0",
        cuda_available=False,
        gpu_count=2,
        claims=(Claim(capability="cpu", value=False),),
    )
    judged = {**GOOD, Level.C2: c2(2, version="2.9.0")}
    claims, verdict = judge(report, judged, reported_judged=False)
    for name in ("python_path", "python_version", "torch_version", "gpu_count"):
        assert outcome(claims, name) == ("true", None)
    for name in ("cuda_available", "cpu"):
        assert outcome(claims, name) == ("unverifiable", None)
        assert one(claims, name).why == "another interpreter was judged than the report names"
    assert verdict.verdict is PASSED


@pytest.mark.parametrize(
    ("claimed", "verdict", "expected"),
    [
        (True, PASSED, ("true", None)),
        (True, FAILED, ("false", "over")),
        (False, FAILED, ("true", None)),
        (False, PASSED, ("false", "under")),
        (None, PASSED, ("withheld", None)),
        (True, INCONCLUSIVE, ("unverifiable", None)),
        (True, NOT_APPLICABLE, ("unverifiable", None)),
    ],
)
def test_ddp_expected_ok_against_c4(
    claimed: bool | None, verdict: Verdict, expected: tuple[str, str | None]
) -> None:
    claims, _ = judge(Report(ddp_expected_ok=claimed), {Level.C4: level(Level.C4, verdict)})
    assert outcome(claims, "ddp_expected_ok") == expected


WORKS, FAILS = (
    (
        Canary(name="all-reduce", passed=True),
        Canary(name="step of DistributedDataParallel", passed=passed),
    )
    for passed in (True, False)
)
CRASHED = (Canary(name="all-reduce", passed=False),)


@pytest.mark.parametrize(
    ("claimed", "verdict", "owner", "canaries", "expected"),
    [
        (True, NOT_APPLICABLE, None, WORKS, ("true", None)),
        (True, NOT_APPLICABLE, None, FAILS, ("false", "over")),
        (True, NOT_APPLICABLE, None, CRASHED, ("false", "over")),
        (False, NOT_APPLICABLE, None, WORKS, ("false", "under")),
        (True, INCONCLUSIVE, Owner.TASK, WORKS, ("true", None)),
        (True, INCONCLUSIVE, Owner.HOST, WORKS, ("unverifiable", None)),
        (True, FAILED, Owner.AGENT, WORKS, ("false", "repository")),
        (True, FAILED, Owner.AGENT, FAILS, ("false", "over")),
        (False, FAILED, Owner.AGENT, WORKS, ("true", None)),
    ],
)
def test_ddp_expected_ok_against_the_canary(
    claimed: bool,
    verdict: Verdict,
    owner: Owner | None,
    canaries: tuple[Canary, ...],
    expected: tuple[str, str | None],
) -> None:
    c4 = level(Level.C4, verdict, owner).model_copy(update={"canaries": canaries})
    claims, _ = judge(Report(ddp_expected_ok=claimed), {Level.C4: c4})
    assert outcome(claims, "ddp_expected_ok") == expected


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("cpu", True, ("true", None)),
        ("C1", False, ("false", "under")),
        (" stages.single_gpu ", True, ("false", "over")),
        ("c3", "failed", ("true", None)),
        ("c3", "passed", ("false", "over")),
        ("cpu", "quickly", ("unverifiable", None)),
        ("cpu", None, ("withheld", None)),
        ("multi_gpu", True, ("unverifiable", None)),
        ("flash attention", True, ("unverifiable", None)),
        ("cpu", [True], ("unverifiable", None)),
        ("cpu", {"a": 1}, ("unverifiable", None)),
    ],
)
def test_a_claim_that_names_a_stage_against_that_stage(
    name: str, value: Any, expected: tuple[str, str | None]
) -> None:
    results = {
        Level.C1: level(Level.C1, PASSED),
        Level.C3: level(Level.C3, FAILED),
        Level.C4: level(Level.C4, INCONCLUSIVE, Owner.HOST),
    }
    claims, _ = judge(Report(claims=(Claim(capability=name, value=value),)), results)
    assert outcome(claims, name) == expected


def test_on_other_hardware_nothing_about_hardware_is_verifiable() -> None:
    report = Report(
        python_version="3.11",
        cuda_available=True,
        gpu_count=7,
        ddp_expected_ok=True,
        claims=(Claim(capability="cpu", value=True), Claim(capability="single_gpu", value=True)),
    )
    claims, verdict = judge(report, hardware=Hardware(same=False))
    for name in ("cuda_available", "gpu_count", "ddp_expected_ok", "single_gpu"):
        assert outcome(claims, name) == ("unverifiable", None)
        assert one(claims, name).why == "verified on other hardware than the build was shown"
    assert outcome(claims, "cpu") == ("true", None)
    assert verdict.verdict is PASSED
    assert verdict.reason == "2 of 6 claims true, 4 unverifiable, 2 withheld"


# --- the verdict -----------------------------------------------------------------------


def test_no_report_is_never_no_hallucinations() -> None:
    claims, verdict = judge(None)
    assert (verdict.verdict, verdict.owner) == (FAILED, Owner.AGENT)
    assert verdict.reason == "no report: no file was written"
    assert (claims.made, claims.precision) == (0, None)


def test_where_nobody_was_asked_for_a_report() -> None:
    _, verdict = judge(None, report_due=False)
    assert verdict.verdict is NOT_APPLICABLE


def test_a_report_that_claims_nothing() -> None:
    claims, verdict = judge(Report(notes="I could not tell"))
    assert verdict.verdict is NOT_APPLICABLE
    assert (claims.made, claims.withheld, claims.precision) == (0, 6, None)


def test_one_over_claim_fails() -> None:
    report = Report(python_version="3.11", cuda_available=True, gpu_count=3)
    claims, verdict = judge(report)
    assert (verdict.verdict, verdict.owner) == (FAILED, Owner.AGENT)
    assert verdict.reason.startswith("gpu_count 3: ")
    assert claims.by_kind == {"capability": 1}


def test_an_under_claim_is_counted_apart() -> None:
    claims, verdict = judge(Report(gpu_count=1, cuda_available=True))
    assert verdict.verdict is PASSED
    assert (claims.true, claims.false, claims.over, claims.under) == (1, 1, 0, 1)
    assert claims.precision == 0.5
    assert verdict.reason == "1 of 2 claims true, 1 too modest, 4 withheld"


@pytest.mark.parametrize(
    ("report", "owner"),
    [
        # The owner of the level that the claim is about, not of the first that is at hand.
        (Report(cuda_available=True), Owner.HOST),
        (Report(ddp_expected_ok=True), Owner.TASK),
        (Report(claims=(Claim(capability="anything", value=True),)), Owner.UNKNOWN),
    ],
)
def test_only_unverifiable_claims_are_inconclusive(report: Report, owner: Owner) -> None:
    claims, verdict = judge(report, NO_GPU)
    assert (verdict.verdict, verdict.owner) == (INCONCLUSIVE, owner)
    assert claims.precision is None
    assert "none of the claims could be verified: " in verdict.reason


def test_other_hardware_is_the_hosts() -> None:
    _, verdict = judge(Report(cuda_available=True), hardware=Hardware(same=False))
    assert (verdict.verdict, verdict.owner) == (INCONCLUSIVE, Owner.HOST)


def test_the_counts_add_up() -> None:
    report = Report(
        python_path="/env/bin/python",
        python_version="3.12",
        torch_version="2.4",
        gpu_count=1,
        ddp_expected_ok=True,
        claims=(Claim(capability="magic", value=True),),
    )
    claims, _ = judge(report)
    assert (claims.made, claims.true, claims.false) == (6, 3, 2)
    assert (claims.over, claims.under, claims.withheld, claims.unverifiable) == (1, 1, 1, 1)
    assert claims.precision == pytest.approx(3 / 5)
    assert claims.made == claims.true + claims.false + claims.unverifiable
    assert claims.made + claims.withheld == len(claims.claims)
