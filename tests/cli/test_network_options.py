"""What builds reach of networks, as `reb run` is asked for it; nothing is built here."""

import json
from pathlib import Path

import pytest

from .test_commands import reb

SUITE = Path(__file__).parents[1] / "suites" / "small"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["--network", "none"], "--sandbox podman, or leave --network out"),
        (["--network", "registries"], "its programs have this host's network"),
        (["--network", "all"], "'all' is not one of"),
        (["--allow-host", "x.example"], "--allow-host is for --network registries"),
        (
            ["--network", "registries", "--allow-host", "https://x.example"],
            "'https://x.example' is no host that could be allowed",
        ),
        (
            ["--sandbox", "podman", "--network", "none", "--sandbox-option", "network=mine"],
            "leave one of them out",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_done(tmp_path, line, said):
    done = reb("run", SUITE, "--agent", "gold", "--out", tmp_path / "run", *line)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
    assert not (tmp_path / "run").exists()


def test_the_default_is_kept_with_the_run(tmp_path):
    done = reb("run", SUITE, "--only", "adder", "--agent", "gold", "--out", tmp_path, "--dry-run")
    assert done.returncode == 0, done.stderr
    from researchenvbench.run.plan import RunPlan

    kept = json.loads(RunPlan(suite="s", agent="gold").model_dump_json())
    assert kept["network"] == {"policy": "full", "allow_hosts": []}
