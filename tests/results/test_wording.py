import pytest
from result_samples import FAILED_CPU, HOSTILE, NO_GPU, result

from researchenvbench.attempt import Freshness, Level, Owner, Verdict, Want
from researchenvbench.network_use import NetworkUse
from researchenvbench.results.wording import (
    clean,
    duration,
    install_line,
    network_words,
    short_verdict,
    size,
)


def test_foreign_text_cannot_steer_a_terminal():
    shown = clean(HOSTILE)
    assert "\x1b" not in shown
    assert "\n" not in shown
    assert "\u202e" not in shown
    assert "owned" not in shown
    assert "second" in shown


def test_a_title_that_never_ends_takes_the_rest_with_it():
    assert clean("before \x1b]0;title without an end") == "before"


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (NetworkUse(), "full"),
        (NetworkUse(policy="none"), "none"),
        (NetworkUse(policy="registries"), "registries; fetched 0 times, 0 B"),
        (
            NetworkUse(
                policy="registries",
                allow_hosts=("data.example",),
                fetches=1,
                failed=2,
                refused=3,
                refused_hosts=("evil.example:443",),
                bytes_in=2_100_000_000,
            ),
            (
                "registries; and data.example; fetched once, 2.1 GB; 2 could not be reached; "
                "3 refused: evil.example:443"
            ),
        ),
    ],
)
def test_what_a_build_reached(use, words):
    assert network_words(use) == words


def test_long_text_is_cut():
    assert len(clean("x" * 10_000, 100)) == 100


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (result(Level.C1, proven="proven"), "pass"),
        (result(Level.C0), "pass"),
        (FAILED_CPU, "FAIL"),
        (result(Level.C2, Verdict.NOT_APPLICABLE), "n/a"),
        (result(Level.C2, **NO_GPU), "? no GPU"),
        (
            result(
                Level.C3,
                Verdict.INCONCLUSIVE,
                owner=Owner.HOST,
                want=Want.WITNESS,
                reason="nothing watched",
            ),
            "? witness",
        ),
        (result(Level.C3, Verdict.INCONCLUSIVE, owner=Owner.ASSET, reason="x"), "? asset"),
        (result(Level.C3, Verdict.INCONCLUSIVE, reason="x"), "? unknown"),
        (result(Level.C1), "pass*"),
        (result(Level.C0, flaky=True), "pass~"),
        (
            result(Level.C0, fresh=Freshness(kind="in-place", network="host", changed=("a",))),
            "pass+",
        ),
        (None, "-"),
    ],
)
def test_a_verdict_is_a_short_word(given, shown):
    assert short_verdict(given) == shown


def test_units():
    assert [duration(x) for x in (None, 0.44, 41.2, 192, 7200)] == [
        "-", "0.4 s", "41 s", "3.2 min", "2.0 h",
    ]  # fmt: skip
    assert [size(x) for x in (None, 12, 312_000_000, 1_100_000_000)] == [
        "-", "12 B", "312 MB", "1.1 GB",
    ]  # fmt: skip


def test_an_install_line_holds_package_names_and_nothing_else():
    assert install_line(["libgl1", "libegl1; rm -rf /", "--force", "libgl1"]) == (
        "apt-get install libgl1"
    )
    assert install_line(["$(reboot)"]) == ""
