"""Definitions of agents: those that come along, and what is said of one that does not fit."""

from __future__ import annotations

import os
from importlib.util import find_spec

import click
import pytest

from researchenvbench.agents import agent_wire, make_agent
from researchenvbench.agents import model as module
from researchenvbench.agents.definition import bundled_agents, load_bundled, load_definition
from researchenvbench.agents.model import ModelChoice
from researchenvbench.agents.presets import preset, presets
from researchenvbench.cli.model_options import chosen_model
from researchenvbench.errors import RebError

MINE = """
name = "mine"
title = "Mine"
program = "mine"
[run]
argv = ["{program}", "--task", "{prompt_file}"]
"""


def load(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return load_definition(path)


def test_those_that_come_along_are_named_by_their_files_and_pinned():
    for name in bundled_agents():
        found = load_bundled(name)
        assert found.name == name
        assert found.wire is not None
        assert bool(found.downloads) == bool(found.version)
        for machine, download in found.downloads.items():
            assert found.version in download.url
            assert download.size_bytes > 1_000_000
            assert machine in ("x86_64", "aarch64")
    assert {"claude_code", "codex", "nexau"} <= set(bundled_agents())


def test_no_definition_holds_a_key():
    """What an agent is given in place of a key is the relay's token."""
    for name in bundled_agents():
        env = load_bundled(name).run.env
        secret = {key: value for key, value in env.items() if "KEY" in key or "TOKEN" in key}
        assert set(secret.values()) <= {"{token}", ""}


def test_a_small_definition_is_enough(tmp_path):
    found = load(tmp_path, MINE)
    assert found.run.success == (0,)
    assert found.wire is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("[run]", "wires = 1\n[run]"), "wires: unknown key; did you mean 'wire'?"),
        (("[run]", 'version = "../../x"\n[run]'), "version: string should match pattern"),
        (("[run]", 'keep = ["../../**"]\n[run]'), "does not lie in the agent's own folder"),
        (("[run]", "[run]\nsuccess = []"), "success: "),
        (("[run]", '[run]\nenv = {"A=B" = "x"}'), "is no name of a variable"),
        (('"mine"\ntitle', '"Mine!"\ntitle'), "name: string should match pattern"),
        (("{prompt_file}", "x"), "the task is given nowhere: {prompt} or {prompt_file}"),
        (('"{prompt_file}"', '"{prompt_flie}"'), "unknown placeholder {prompt_flie}; did you mean"),
        (('"{prompt_file}"', '"{prompt_file}", "{token}"'), "{token} needs `wire`"),
        (('program = "mine"', ""), "program: is required"),
        (('title = "Mine"', ""), "title: is required"),
        (("[run]", 'wire = "openai"\n[run]'), "'openai' is not one of"),
        (("[run]", "[run]\nfiles = { '../x' = '' }"), "does not lie in the agent's own folder"),
        (("[run]", "[run"), "not valid TOML"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, change, said):
    with pytest.raises(RebError) as caught:
        load(tmp_path, MINE.replace(*change))
    assert said in str(caught.value)
    assert "mine.toml" in str(caught.value)


def test_a_download_brings_the_program(tmp_path):
    download = f"""
version = "1"
[downloads.x86_64]
url = "https://example.org/x.tgz"
integrity = "sha512-{"A" * 86}=="
size_bytes = 5
take = {{ "package/other" = "other" }}
[run]"""
    with pytest.raises(RebError, match="does not bring mine, which is started"):
        load(tmp_path, MINE.replace("[run]", download))
    found = load(tmp_path, MINE.replace("[run]", download.replace('= "other"', '= "mine"')))
    assert found.downloads["x86_64"].take == {"package/other": "mine"}


def test_absent_files_are_told_from_bad_ones(tmp_path):
    with pytest.raises(RebError, match="there is no such file"):
        load_definition(tmp_path / "nothing.toml")
    with pytest.raises(RebError, match="is no file"):
        load_definition(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RebError, match="is no file"):
        load_definition(tmp_path / "pipe")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(RebError, match="not valid TOML"):
        load_definition(tmp_path / "binary")
    (tmp_path / "huge").write_bytes(b"#" * 300_000)
    with pytest.raises(RebError, match="larger than a definition"):
        load_definition(tmp_path / "huge")


class TestMakeAgent:
    def test_a_model_is_needed_where_the_definition_says_so(self):
        assert agent_wire("codex", {}) == "openai-responses"
        with pytest.raises(RebError, match="works with a language model, and none is named"):
            make_agent("codex")

    def test_a_model_is_refused_where_none_is_used(self):
        choice = ModelChoice.of("m", "openai-chat")
        with pytest.raises(RebError, match="works without a language model"):
            make_agent("builtin", {}, choice)

    def test_a_name_that_is_none(self):
        with pytest.raises(RebError, match="there is no agent 'codx'; did you mean 'codex'"):
            make_agent("codx")

    def test_command_needs_its_file(self, tmp_path):
        with pytest.raises(RebError, match="the agent command needs a definition"):
            make_agent("command")
        path = tmp_path / "mine.toml"
        path.write_text(MINE)
        agent = make_agent("command", {"file": str(path)})
        assert agent.name == "mine"
        assert not agent.built_in

    def test_the_digest_follows_definition_and_model_and_not_the_key(self, tmp_path):
        def digest(**changes):
            given = {
                "name": "m",
                "wire": "openai-responses",
                "upstream": "http://a",
                "key": "env:A",
            }
            return make_agent("codex", {}, ModelChoice(**{**given, **changes})).digest(None)

        assert digest() == digest(key="env:B") == digest(preset="paper/codex")
        others = ({"name": "n"}, {"upstream": "http://b"}, {"tokens": 5}, {"usd": 1.0})
        assert len({digest(), *(digest(**change) for change in others)}) == 5


class TestModelChoice:
    def test_the_makers_own_address_and_variable(self):
        choice = ModelChoice.of("m", "anthropic-messages")
        assert (choice.upstream, choice.key) == (
            "https://api.anthropic.com",
            "env:ANTHROPIC_API_KEY",
        )

    def test_a_key_goes_to_its_own_provider_only(self):
        with pytest.raises(RebError, match="is not the address that env:OPENAI_API_KEY is for"):
            ModelChoice.of("m", "openai-chat", upstream="https://elsewhere.example/v1")
        choice = ModelChoice.of("m", "openai-chat", upstream="https://x.example/v1", key="env:X")
        assert choice.key == "env:X"

    def test_what_it_is_told_of_its_budget(self):
        choice = ModelChoice.of("m", "openai-chat", tokens=1000, usd=2.5)
        assert choice.limits == (
            "Tokens of the model: 1000, read and written, in all.",
            "Cost of the model: 2.5 US dollars in all.",
        )


class TestPresets:
    def test_those_of_the_paper(self):
        found = presets()
        assert set(found) == {
            "paper/codex",
            "paper/claude-code-sonnet",
            "paper/claude-code-glm",
            "paper/nexau",
        }
        for one in found.values():
            definition = load_bundled(one.agent)
            assert (one.version, one.wire) == (definition.version, definition.wire)
            # The paper's hour to build, and its two to verify.
            assert (one.build_minutes, one.verify_minutes) == (60, 120)
            assert one.differs

    def test_one_that_is_none(self):
        with pytest.raises(RebError, match="no preset 'paper/codx'; did you mean 'paper/codex'"):
            preset("paper/codx")

    def chosen(self, name, agent=None, **given):
        found = preset(name)
        options = dict.fromkeys(
            ("model", "upstream", "key", "budget_tokens", "budget_usd", "prices")
        )
        return chosen_model(agent or found.agent, {}, found, **{**options, **given})

    def test_its_parts_are_taken(self):
        choice = self.chosen("paper/claude-code-glm")
        assert choice.preset == "paper/claude-code-glm"
        assert (choice.name, choice.upstream, choice.key) == (
            "glm-4.7",
            "https://api.z.ai/api/anthropic",
            "env:ZAI_API_KEY",
        )

    def test_its_key_goes_to_its_own_address_only(self):
        elsewhere = "https://elsewhere.example"
        with pytest.raises(RebError, match=f"{elsewhere} is not the address that"):
            self.chosen("paper/claude-code-glm", upstream=elsewhere)
        choice = self.chosen("paper/claude-code-glm", upstream=elsewhere, key="env:MINE")
        assert (choice.upstream, choice.key) == (elsewhere, "env:MINE")

    def test_where_it_has_no_address_the_key_is_for_the_one_that_is_given(self):
        with pytest.raises(click.UsageError, match="the preset has no address"):
            self.chosen("paper/nexau")
        choice = self.chosen("paper/nexau", upstream="http://127.0.0.1:8000/v1")
        assert (choice.upstream, choice.key) == ("http://127.0.0.1:8000/v1", "env:NEX_API_KEY")

    @pytest.mark.parametrize("option", ["upstream", "key"])
    def test_an_empty_option_is_no_default(self, option):
        """A variable of the shell that is not set must not send one maker's key to another."""
        with pytest.raises(click.UsageError, match=f"--{option} is empty"):
            self.chosen("paper/codex", **{option: ""})
        choice = ModelChoice.of("m", "openai-chat", upstream="https://x.example", key="")
        assert choice.key == ""

    def test_one_of_another_agent_is_refused(self):
        with pytest.raises(click.UsageError, match="the preset is of the agent codex"):
            self.chosen("paper/codex", agent="claude_code")


class TestLibraries:
    """What is absent is said before a run begins, and not by a build that fails."""

    @pytest.fixture
    def without(self, monkeypatch):
        def absent(*names):
            monkeypatch.setattr(
                module, "find_spec", lambda name: None if name in names else find_spec(name)
            )

        return absent

    @pytest.mark.parametrize("library", ["httpx", "uvicorn"])
    def test_what_the_relay_is_made_of(self, without, library, monkeypatch):
        monkeypatch.setenv("OPENAI_API_KEY", "canary-key-0123456789")
        choice = ModelChoice.of("m", "openai-chat")
        choice.check()
        without(library)
        with pytest.raises(RebError, match=f"need the library {library}, which is not installed"):
            choice.check()
