"""Which imports the agent takes to be third-party, and how much hangs on each."""

from researchenvbench.agents.builtin import plan

from .reading import manifests, probe, survey


def levels(repository):
    tree, found = survey(repository), manifests(repository)
    wanted = plan.wanted_modules(tree, plan.needed_files(tree, found))
    return {one.module: one.level for one in wanted}


def test_a_module_beside_the_importing_file_is_the_repositorys_own():
    assert levels("declares_nothing") == {"numpy": "needed", "yaml": "needed"}


def test_what_console_scripts_import_is_needed_and_what_examples_import_is_wanted():
    assert levels("examples_need_an_extra") == {"six": "needed", "yaml": "code"}


def test_the_ways_in_which_an_import_can_be_optional(tmp_path):
    (tmp_path / "module.py").write_text(
        "import certain_one\n"
        "try:\n    import guarded_one\nexcept ImportError:\n    import guarded_two\n"
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import guarded_three\n"
        "def f():\n    import lazy_one\n"
        "try:\n    import certain_two\nexcept ValueError:\n    pass\n"
        "if __name__ == '__main__':\n    import certain_three\n"
        "from . import relative\n"
    )
    (tmp_path / "two.py").write_text("print 'Python 2'\n")
    tree = survey(tmp_path)
    how = {use.module: use.how for use in tree.third_party()}
    assert how == {
        "certain_one": "certain",
        "guarded_one": "guarded",
        "guarded_two": "guarded",
        "guarded_three": "guarded",
        "lazy_one": "lazy",
        "certain_two": "certain",
        "certain_three": "certain",
    }
    assert list(tree.unreadable) == ["two.py"]


def test_links_are_not_followed_and_folders_of_others_are_skipped(tmp_path):
    (tmp_path / "secret.py").write_text("import secret_one\n")
    repo = tmp_path / "repo"
    (repo / ".venv").mkdir(parents=True)
    (repo / ".venv" / "other.py").write_text("import other_one\n")
    (repo / "link.py").symlink_to(tmp_path / "secret.py")
    (repo / "own.py").write_text("import own_one\n")
    assert [use.module for use in survey(repo).third_party()] == ["own_one"]


def test_in_a_git_repository_only_tracked_files_count(repository):
    repository.commit({"tracked.py": "import tracked_one\n"})
    repository.write({"untracked.py": "import untracked_one\n"})
    assert [use.module for use in survey(repository.folder).third_party()] == ["tracked_one"]


def test_what_the_code_imports_is_looked_up_where_the_repository_declares_it_first():
    found = manifests("examples_need_an_extra")
    assert plan.distribution_for("yaml", found) == ("PyYAML>=5", "setup.py extra examples")
    assert plan.distribution_for("cv2", found) == ("opencv-python-headless", "generally known")
    assert plan.distribution_for("einops", found) == ("einops", "the name is the same")
    for common_word in ("utils", "models", "config", "io"):
        assert plan.distribution_for(common_word, found) is None
    assert plan.distribution_for("nothing", found) == ("nothing", "the name is the same")


def test_the_first_request_holds_what_is_declared_and_says_what_it_leaves_out():
    said = []
    request = plan.first_request(manifests("contradicts_itself"), said.append, installs_itself=True)
    assert request.lines() == ["six"]
    assert "requirements.txt:1 asks for packaging==25.0" in said[0]
    assert "setup.cfg install_requires for packaging<25" in said[0]


def test_the_host_probe_names_interpreters_and_programs():
    import json
    import sys
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "torch-2.0.0+cpu-cp311-cp311-linux_x86_64.whl").touch()
        question = Path(folder) / "question.json"
        question.write_text(
            json.dumps({"candidates": [sys.executable], "find_links": [f"file://{folder}"]})
        )
        said = probe("host", question)
    version = ".".join(map(str, sys.version_info[:3]))
    assert version in {one["version"] for one in said["interpreters"]}
    assert said["wheels"] == ["torch-2.0.0+cpu-cp311-cp311-linux_x86_64.whl"]
    assert said["programs"].keys() >= {"nvcc", "g++"}
