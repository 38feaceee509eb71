"""Makes results and records of the real models; a test changes what it is about."""

from __future__ import annotations

from researchenvbench.attempt import (
    AttemptStatus,
    Audit,
    BuildResult,
    ClaimResult,
    EvidenceResult,
    Freshness,
    HostFacts,
    Level,
    LevelResult,
    Owner,
    Record,
    Sizes,
    Verdict,
    Want,
)

HOST = HostFacts(system="Linux 6.1 x86_64", cpus=2, memory_bytes=24_000_000_000)
NO_GPU = {
    "verdict": Verdict.INCONCLUSIVE,
    "owner": Owner.HOST,
    "want": Want.GPU,
    "reason": "no GPU",
}
ESCAPE = "\x1b[2J\x1b]0;owned\x07"
HOSTILE = (
    f"<script>alert(1)</script> [red]x[/red] {ESCAPE}\u202e{{{{ 7 * 7 }}}}\r\nsecond '\" &amp;"
)


def c0_details(third_party=20, missing=(), total_paper=60, missing_paper=0):
    """As verification writes them; `missing` is (name, required) pairs."""
    return {
        "files": 9,
        "total_paper": total_paper,
        "missing_paper": missing_paper,
        "third_party": third_party,
        "missing": [
            {"name": n, "required": r, "decides": r, "modules": [n], "files": ["a.py"]}
            for n, r in missing
        ],
        "scope_files": 2,
    }


def result(level, verdict=Verdict.PASSED, **more):
    return LevelResult(level=level, verdict=verdict, **more)


def results(**changed):
    """The levels of a good attempt on a host without a GPU, with some of them changed."""
    fresh = Freshness(kind="overlay", network="none")
    good = {
        Level.C0: result(Level.C0, details=c0_details(), log="logs/C0.log", fresh=fresh),
        Level.C1: result(
            Level.C1,
            seconds=12.3,
            proven="proven",
            log="logs/cpu.log",
            command=("/x/env/bin/python", "train.py"),
            exit_code=0,
            fresh=fresh,
            evidence=(
                EvidenceResult(entry="prints a loss", verdict=Verdict.PASSED, seen="3 lines"),
            ),
        ),
        Level.C2: result(Level.C2, **NO_GPU),
        Level.C3: result(Level.C3, **NO_GPU, proven="proven"),
        Level.C4: result(Level.C4, **NO_GPU, proven="proven"),
        Level.C5: result(Level.C5, reason="4 of 4 claims true, 3 withheld"),
    }
    for name, value in changed.items():
        good[Level(name)] = value
    return {level: value for level, value in good.items() if value is not None}


def build(seconds=41.0, **more):
    return BuildResult(
        reb_version="0.1.0",
        outcome=more.pop("outcome", "finished"),
        started="2026-11-29T20:00:00+00:00",
        seconds=seconds,
        task_digest="t",
        source_digest="s",
        agent="builtin",
        agent_digest="a",
        host=HOST,
        **more,
    )


def record(task="alpha", **more):
    audit = Audit(
        claims=(
            ClaimResult(
                claim="python_path", kind="path", value="/x/bin/python", found="/x", outcome="true"
            ),
        ),
        made=4,
        true=4,
        withheld=3,
        precision=1.0,
    )
    fields = {
        "reb_version": "0.1.0",
        "task": task,
        "suite": "sample",
        "task_digest": "t",
        "source_digest": "s",
        "agent": "builtin",
        "sandbox": "local",
        "status": AttemptStatus.OK,
        "started": "2026-11-29T20:00:00+00:00",
        "finished": "2026-11-29T20:01:00+00:00",
        "build": build(),
        "python": "/x/env/bin/python",
        "python_version": "3.11.7",
        "results": results(),
        "audit": audit,
        "sizes": Sizes(prefix_bytes=312_000_000, build_bytes=400_000_000),
        "host": HOST,
    }
    return Record(**(fields | more))


FAILED_CPU = result(
    Level.C1,
    Verdict.FAILED,
    owner=Owner.AGENT,
    reason="no module named 'torch_ema' (exit 1)",
    advice="install what provides torch_ema",
    proven="proven",
    log="logs/cpu.log",
    exit_code=1,
)
