"""`reb tasks check` names the key, what is wrong, and what was probably meant."""

from __future__ import annotations

import pytest

from researchenvbench.evidence import OutputEvidence
from researchenvbench.run.check_options import unknown_options
from researchenvbench.source import snapshot_in_place
from researchenvbench.task import Stage

from .conftest import SUITE


@pytest.fixture
def check(reb, suite):
    """The exit code and what is said of the smallest task with `old` replaced by `new`."""

    def run(old, new):
        path = suite / "adder" / "task.toml"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        done = reb("tasks", "check", suite)
        assert "Traceback" not in done.stderr
        said = [line.removeprefix(f"{path}: ") for line in done.stderr.splitlines()]
        return done.returncode, said

    return run


def test_a_good_suite_is_good(reb):
    done = reb("tasks", "check", SUITE)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(
        "adder: good; options not read: cpu\nserver: good\n2 tasks checked"
    )


LINE = r"""pattern = 'step \d+ loss (?P<loss>\S+)'
at_least = 3
groups.loss = { falling = true }"""
STEPS = '"--steps", "3"'
EVIDENCE = "stages.cpu.evidence.1.pattern"
COMMAND = 'command = ["{python}", "{repo}/train.py", "--steps", "3"]'
BLOCK = 'readme_block = { file = "README.md", number = 3, language = "bash" }'


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "{repo}/train.py",
            "{repo}/trian.py",
            "stages.cpu.command.1: trian.py is not in the repository; did you mean 'train.py'?",
        ),
        (
            "{repo}/train.py",
            "{repo}/qqqq",
            "stages.cpu.command.1: qqqq is not in the repository",
        ),
        (
            COMMAND,
            BLOCK,
            "stages.cpu.readme_block.number: README.md has 2 blocks of bash, there is no number 3",
        ),
        (
            COMMAND,
            BLOCK.replace("README.md", "READ.md"),
            "stages.cpu.readme_block.file: READ.md is not a file of the source",
        ),
        (
            "[stages.cpu]",
            '[c0]\nroots = ["install.py", "model"]\n\n[stages.cpu]',
            "c0.roots: model is not in the repository",
        ),
        (
            "{repo}/train.py",
            "{repo}/\\u0000",
            "stages.cpu.command.1: \0 is not in the repository",
        ),
        (
            "{work}/result.json",
            "{out}/result.json",
            f"{EVIDENCE}: nothing tells the command of {{out}}, so it puts nothing there",
        ),
        (
            "{work}/result.json",
            "result.json",
            f"{EVIDENCE}: result.json is relative; begin it with {{out}}/, {{work}}/ or {{repo}}/",
        ),
        (
            "{repo}/train.py",
            "{task}/driver.py",
            "stages.cpu.command.1: driver.py is not a file in the task's folder",
        ),
        *(
            (
                "{work}/result.json",
                pattern,
                (
                    f"{EVIDENCE}: {pattern} lies outside the folders that a stage has to itself, "
                    "so what is there need not be of this run; "
                    "begin it with {out}/, {work}/ or {repo}/"
                ),
            )
            for pattern in ("/tmp/result.json", "{work}/../result.json", "{task}/result.json")
        ),
        *(
            (
                LINE,
                f"pattern = '{pattern}'",
                (
                    f"stages.cpu.evidence.0.pattern: {pattern!r} matches {what}, which shows no "
                    "work; write what only the work prints"
                ),
            )
            for pattern, what in [
                *(("", "an empty line"), ("x*", "an empty line"), (".*", "an empty line")),
                *((".", "any line that is not empty"), (r"\S+$", "any line that is not empty")),
            ]
        ),
        *(
            (
                STEPS,
                f'{STEPS}, "{text}", "log.txt"',
                (
                    f"stages.cpu.command.4: {text!r} would be passed on as text, since no shell "
                    'runs a command; let a driver do it: ["{python}", "{task}/drivers/NAME.py"]'
                ),
            )
            for text in ("&&", "|", ";", ">", "2>&1", ">>", "<", ">log.txt", "2>log.txt")
        ),
        (
            "steps = [[",
            'steps = [["touch", "x", "&&", "touch", "y"], [',
            (
                "gold.steps.0.2: '&&' would be passed on as text, since no shell runs a command; "
                "make each command a step of its own"
            ),
        ),
    ],
    ids=[
        *("script", "unlike any", "number of block", "file of block", "root", "no name"),
        *("folder that is not told", "relative", "no driver"),
        *("absolute", "above", "of the task"),
        *("empty", "perhaps nothing", "anything", "a character", "a word"),
        *(
            "and",
            "pipe",
            "semicolon",
            "to",
            "both to",
            "append",
            "from",
            "to file",
            "errors to file",
        ),
        "step",
    ],
)
def test_a_fault_is_one_line(check, old, new, said):
    assert check(old, new) == (1, [said])


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import adder\n", []),
        ("from researchenvbench import task\n", ["researchenvbench is the harness's own package"]),
        (
            "import torch\ntorch.distributed.init_process_group('gloo')\n",
            ["makes a process group, the repository does not"],
        ),
        ("def (\n", ["cannot be read as Python: invalid syntax"]),
    ],
    ids=["good", "ours", "group", "no Python"],
)
def test_drivers_call_only_what_the_repository_offers(check, suite, code, said):
    (suite / "adder" / "driver.py").write_text(code)
    found = check("{repo}/train.py", "{task}/driver.py")[1]
    begin = "stages.cpu.command.1: driver.py"
    assert len(found) == len(said)
    assert all(
        line.startswith((f"{begin}: {word}", f"{begin} {word}"))
        for line, word in zip(found, said, strict=True)
    )


def test_a_driver_may_make_a_process_group_as_the_repository_does(check, suite):
    code = "import torch\ntorch.distributed.init_process_group('gloo')\n"
    (suite / "adder" / "driver.py").write_text(code)
    (suite / "adder" / "repository" / "parallel.py").write_text(code)
    assert check("{repo}/train.py", "{task}/driver.py") == (0, [])


@pytest.mark.parametrize(
    ("parser", "options", "wrong", "read"),
    [
        ("p.add_argument('--rate', '-r')", ["--rate=1"], [], True),
        ("p.add_argument('--learning-rate')", ["--learn", "1"], [], True),
        ("p.add_argument('--rate', action=B)", ["--no-rate"], [], True),
        ("@click.option('--fast/--slow')", ["--slow"], [], True),
        ("p.add_argument('--rate')", ["--help", "--depth"], ["--depth"], True),
        ("p.add_argument(NAME)", ["--depth"], [], False),
        ("p.add_argument('--rate'); p.parse_known_args()", ["--depth"], [], False),
        ("HfArgumentParser(Arguments)", ["--depth"], [], False),
        ("import hydra; p.add_argument('--rate')", ["--depth"], [], False),
        ("pass", ["--depth"], [], False),
        ("def (", ["--depth"], [], False),
        ("pass", ["depth=1"], [], True),
    ],
)
def test_options_are_read_where_they_are_written_out(tmp_path, parser, options, wrong, read):
    (tmp_path / "train.py").write_text(f"import options\n{parser}\n" + "def f(): ...\n")
    (tmp_path / "options.py").write_text("")
    stage = Stage(
        command=("{python}", "{repo}/train.py", *options),
        evidence=(OutputEvidence(kind="output", pattern="x"),),
    )
    lines, could = unknown_options(stage, snapshot_in_place(tmp_path))
    assert ([line.split()[1] for line in lines], could) == (wrong, read)


def test_options_may_be_declared_in_another_file(tmp_path):
    (tmp_path / "train.py").write_text("import options\noptions.parser()\n")
    (tmp_path / "options.py").write_text("def parser(): p.add_argument('--rate')\n")
    evidence = (OutputEvidence(kind="output", pattern="x"),)
    for launcher in (["{python}"], ["torchrun", "--nproc-per-node", "{nproc}"]):
        stage = Stage(command=(*launcher, "{repo}/train.py", "--rote", "1"), evidence=evidence)
        lines, read = unknown_options(stage, snapshot_in_place(tmp_path))
        at = len(launcher) + 1
        assert (lines, read) == (
            [f"command.{at}: --rote is no option of train.py; did you mean --rate?"],
            True,
        )


def test_a_block_that_is_there_is_good(check):
    assert check(COMMAND, BLOCK.replace("number = 3", "number = 2")) == (0, [])


def test_a_file_that_only_the_run_makes_is_no_fault(check):
    assert check("{work}/result.json", "{repo}/result.json") == (0, [])


def test_a_source_that_cannot_be_had_here_is_neither_good_nor_a_fault(check, suite, tmp_path):
    source = f'kind = "git"\nurl = "{tmp_path}/gone.git"\ncommit = "{"1" * 40}"'
    path = suite / "adder" / "task.toml"
    path.write_text(path.read_text().replace('kind = "folder"\npath = "repository"', source))
    code, said = check("schema = 1", "schema = 1")
    assert code == 3
    assert said[0].startswith("adder: commit 1111")
    assert "--source-mirror" in said[-1]


def test_a_source_that_is_not_there_is_said(check):
    code, said = check('path = "repository"', 'path = "repositroy"')
    assert code == 1
    assert "repositroy" in said[0]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            'name = "adder"',
            'name = "subtracter"',
            (
                "name: its folder is called adder, and commands and tables know a task by its name "
                "alone; call both the same"
            ),
        ),
        (
            STEPS,
            f'{STEPS}, "$HOME/x"',
            (
                "stages.cpu.command.4: $HOME would be passed on as text, since no shell runs a "
                "command; if its value is meant, write a placeholder such as {work}, or let a "
                "driver read the variable"
            ),
        ),
        (
            STEPS,
            f'{STEPS}, "--separator", "|"',
            (
                "stages.cpu.command.5: '|' is given to --separator as its value, since no shell "
                "runs a command; if more commands are meant, let a driver run them"
            ),
        ),
        (
            "steps = [[",
            'steps = [["touch", "${HOME}/x"], [',
            (
                "gold.steps.0.1: ${HOME} would be passed on as text, since no shell runs a "
                "command; if its value is meant, write it"
            ),
        ),
    ],
    ids=["name", "variable", "value of an option", "variable in a step"],
)
def test_what_may_be_meant_is_a_remark(reb, suite, old, new, said):
    path = suite / "adder" / "task.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    done = reb("tasks", "check", suite / "adder")
    assert (done.returncode, done.stderr) == (0, "")
    assert f": good; {said}" in done.stdout


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (STEPS, f'{STEPS}, "model.width=${{oc.env:WIDTH}}", "a|b", ">=1"'),
        ("steps = [[", 'steps = [["patchelf", "--set-rpath", "$ORIGIN/../lib"], ['),
        ("steps = [[", 'steps = [["bash", "-c", "cd $HOME && make > log"], ['),
        ("steps = [[", 'steps = [["find", "{work}", "-exec", "rm", "{}", ";"], ['),
        ("loss (?P<loss>\\S+)'", "loss (?P<loss>.*)'"),
        ("'step \\d+ loss (?P<loss>\\S+)'", "'(?P<loss>.*)'"),
    ],
    ids=["of a configuration", "of the loader", "for a shell", "of find", "group", "all a group"],
)
def test_what_only_looks_like_a_mistake_is_good(reb, suite, old, new):
    path = suite / "adder" / "task.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    done = reb("tasks", "check", suite / "adder")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "adder: good; options not read: cpu\n"
