"""What a tree shows: uses behind aliases, requirements, scripts, papers; and what shows nothing."""

from __future__ import annotations

import pytest

from researchenvbench.selection.criteria import Criterion
from researchenvbench.selection.languages import judge_language
from researchenvbench.selection.papers import is_named_here, judge_papers
from researchenvbench.selection.requirements import required_by
from researchenvbench.selection.rules import signs_by_name, signs_in
from researchenvbench.selection.tree import LARGEST_FILE_BYTES, Tree, judge_tree

GPU, DISTRIBUTED = "gpu", "distributed_or_kernels"


def seen(path: str, text: str) -> set[tuple[str, int]]:
    """Criterion and line of what a file shows."""
    signs = [*signs_by_name(path), *signs_in(path, text.encode())]
    return {(str(sign.criterion), sign.evidence.line) for sign in signs}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import torch\nx = torch.ones(2)\nx.cuda()", {(GPU, 3)}),
        ("x = (\n    y.a()\n    .cuda()\n)", {(GPU, 3)}),
        ("import torch\ntorch.cuda.empty_cache()", {(GPU, 2)}),
        ("from torch import cuda as c\n\nc.synchronize()", {(GPU, 1), (GPU, 3)}),
        ("x.to('cuda:1')", {(GPU, 1)}),
        ("x.to(f'cuda:{rank}')", {(GPU, 1)}),
        ("def f(device='cuda'): ...", {(GPU, 1)}),
        ("run(accelerator='gpu')", {(GPU, 1)}),
        ("providers = ['CUDAExecutionProvider']", {(GPU, 1)}),
        ("import torch.distributed as dist\ndist.barrier()", {(DISTRIBUTED, 1), (DISTRIBUTED, 2)}),
        ("from torch import nn\nm = nn.DataParallel(m)", {(DISTRIBUTED, 2)}),
        (
            "import triton\n@triton.jit\ndef kernel(): ...",
            {(GPU, 2), (DISTRIBUTED, 2)},
        ),
        ("from accelerate import Accelerator", {(DISTRIBUTED, 1)}),
        ("import jax\nstep = jax.pmap(f)", {(DISTRIBUTED, 2)}),
        ("load(device_map='auto')", {(DISTRIBUTED, 1)}),
        ("options['device_map'] = 'auto'", {(DISTRIBUTED, 1)}),
        ("options = {'device_map': 'auto'}", {(DISTRIBUTED, 1)}),
        ("def load(device_map: str = 'auto'): ...", {(DISTRIBUTED, 1)}),
        ("class Options:\n    device_map: str = 'auto'", {(DISTRIBUTED, 2)}),
        ("LLM(model, tensor_parallel_size=4)", {(DISTRIBUTED, 1)}),
        ("Trainer(strategy='ddp_find_unused_parameters_true')", {(DISTRIBUTED, 1)}),
    ],
)
def test_what_code_uses_is_seen_on_its_line(code, expected):
    assert seen("net/a.py", code) == expected


@pytest.mark.parametrize(
    "code",
    [
        "# torch.cuda.empty_cache(); x.cuda()",
        '"""Moves x to cuda by x.cuda() and torch.distributed."""',
        "import torch\nx = torch.ones(2).to(device)",
        "from . import distributed\ndistributed.barrier()",
        "from .cuda import nothing",
        "LLM(model, tensor_parallel_size=1)",
        "load(device_map=None)",
        "import accelerate",
        "cuda = 3\nprint(cuda)",
        "not Python at all: x.cuda()",
    ],
)
def test_words_and_neighbours_show_nothing(code):
    assert seen("net/a.py", code) == set()


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("csrc/a.cu", "__global__ void f() {}", {(GPU, 0), (DISTRIBUTED, 1)}),
        ("csrc/a.cu", "void launch();", {(GPU, 0)}),
        ("run.sh", "#!/bin/sh\n# torchrun x\ntorchrun --nproc 2 a.py", {(DISTRIBUTED, 3)}),
        ("run.sh", "python -m torch.distributed.launch a.py", {(DISTRIBUTED, 1)}),
        ("run.sh", "deepspeed --include x train.py", {(DISTRIBUTED, 1)}),
        ("run.sh", "pip install deepspeed", set()),
        ("README.md", "Use `torchrun`.\n```bash\ntorchrun a.py\n```\ntorchrun", {(DISTRIBUTED, 3)}),
        ("doc.rst", "With torchrun::\n\n   torchrun a.py\n", {(DISTRIBUTED, 3)}),
        ("a.yaml", "trainer:\n  strategy: ddp\n  accelerator: gpu", {(DISTRIBUTED, 2), (GPU, 3)}),
        ("a.json", '{\n "zero_optimization": {\n', {(DISTRIBUTED, 2)}),
        ("a.yaml", "# strategy: ddp\nstrategy: greedy", set()),
        ("requirements.txt", "torch\nonnxruntime_gpu==1.2 # x", {(GPU, 2)}),
        ("requirements.txt", "# bitsandbytes\ntorch", set()),
        ("notes.txt", "bitsandbytes", set()),
    ],
)
def test_other_files_are_read_by_their_kind(path, text, expected):
    assert seen(path, text) == expected


PYPROJECT = """\
[project]
name = "vllm"
description = "like vllm"
keywords = ["apex"]
dependencies = [
  "Flash_Attn[x]>=2; python_version > '3'",
]
[project.optional-dependencies]
x = ["ray"]
"""


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        (
            "pyproject.toml",
            PYPROJECT,
            [(6, "flash-attn"), (9, "ray")],
        ),
        ("pyproject.toml", '[tool.poetry.dependencies]\nxformers = "^1"', [(2, "xformers")]),
        ("pyproject.toml", "[project", []),
        ("pyproject.toml", '[project]\ndependencies = "vllm"\n', []),
        (
            "setup.py",
            "setup(name='apex', install_requires=['vllm>=1',\n 'a b c'], long_description='ray')",
            [(1, "vllm")],
        ),
        ("setup.py", "setup(", []),
        (
            "environment.yml",
            "name: apex\ndependencies:\n  - numpy=1\n  - pip:\n      - vllm==1\n",
            [(3, "numpy"), (5, "vllm")],
        ),
        ("requirements/dev.txt", "-r base.txt\nray @ https://x/ray.whl\n", [(2, "ray")]),
    ],
)
def test_requirements_are_those_and_not_descriptions(path, text, expected):
    assert required_by(path, text) == expected


# --- papers --------------------------------------------------------------------------------

TEXT = "\n" * 50


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("https://arxiv.org/abs/2403.01234v2", "arXiv 2403.01234"),
        ("[![](https://img.shields.io/badge/arXiv-2403.01234-b31b1b)](x)", "arXiv 2403.01234"),
        ("badge/arXiv-<2403.01234>-<COLOR>.svg", "arXiv 2403.01234"),
        ("journal={arXiv preprint arXiv:2403.01234}", "arXiv 2403.01234"),
        ("  eprint = {2403.01234},", "arXiv 2403.01234"),
        ("doi: 10.48550/arXiv.2403.01234", "arXiv 2403.01234"),
        ("https://huggingface.co/papers/2403.01234", "arXiv 2403.01234"),
        ("arXiv:hep-th/9901001", "arXiv hep-th/9901001"),
        ("url = {https://doi.org/10.1145/3689031.3696098},", "DOI 10.1145/3689031.3696098"),
        ("(doi:10.1038/s41586-021-03819-2).", "DOI 10.1038/s41586-021-03819-2"),
    ],
)
def test_identifiers_are_found_as_they_are_written(line, name):
    found = judge_papers({"README.md": f"# Net\n{line}\n"})
    assert (found.standing, found.evidence[0].says, found.evidence[0].line) == ("met", name, 2)
    assert not found.weak


@pytest.mark.parametrize(
    "line",
    [
        "version 2403.01234",
        "arXiv",
        "https://arxiv.org/abs/2413.01234",  # there is no thirteenth month
        "https://arxiv.org/list/cs.LG/recent",
        "doi = {10.5281/zenodo.15858845}",
        "@misc{net2024, title={Net}}",
        "https://openreview.net/forum?id=x",
    ],
)
def test_what_is_no_identifier_of_a_paper(line):
    found = judge_papers({"README.md": f"# Net\n{line}\n"})
    assert found.standing == "not_met"


def test_a_publication_without_an_identifier_is_named_in_the_reason():
    cited = judge_papers({"README.md": "@misc{net2024,\n"})
    assert "a publication is cited without one (README.md:1)" in cited.why
    archived = judge_papers({"README.md": "doi = {10.5281/zenodo.1}"})
    assert "a DOI of software or data (README.md:1)" in archived.why
    assert judge_papers({}).why == "there is no README and no citation file"


def test_a_citation_counts_more_than_the_head_and_a_mention_is_weak():
    mention = "thanks to https://arxiv.org/abs/2401.00001"
    entry = "```\n@article{x,\n journal={arXiv:2402.00002}\n}\n```"
    head = "[paper](https://arxiv.org/abs/2403.00003)"
    citation = {"CITATION.cff": "doi: 10.1000/x"}
    assert judge_papers({"README.md": TEXT + mention}).weak
    both = {"README.md": f"{head}\n{TEXT}{mention}"}
    assert judge_papers(both).evidence[0].says == "arXiv 2403.00003"
    three = {"README.md": f"{head}\n{TEXT}{mention}\n{entry}"}
    assert judge_papers(three).evidence[0].says == "arXiv 2402.00002"
    assert judge_papers({**three, **citation}).evidence[0].says == "DOI 10.1000/x"
    after = f"{TEXT}{entry}\n{mention}"
    assert [e.line for e in judge_papers({"README.md": after}).evidence] == [53, 56]


@pytest.mark.parametrize(
    ("path", "read"),
    [
        *[(name, True) for name in ("README.md", "readme", "README_zh-CN.md", "CITATION.cff")],
        *[(name, True) for name in ("docs/README.md", ".github/README.rst", "CITATION.bib")],
        *[(name, False) for name in ("net/README.md", "README.py", "READMENOT.md", "a.md")],
    ],
)
def test_papers_are_looked_for_in_these_files(path, read):
    assert is_named_here(path) is read


# --- whole trees -----------------------------------------------------------------------------


def test_notebooks_and_documents_are_no_language():
    many = {"a.py": 100, "b.ipynb": 10_000_000, "c.md": 5000, "d.cu": 99}
    assert judge_language(many).standing == "met"
    other = judge_language({"a.py": 100, "b.rs": 300})
    assert (other.standing, other.why) == (
        "not_met",
        "Rust is 75 % of the bytes of its sources, Python 25 %",
    )
    assert judge_language({"a.txt": 1}).standing == "not_met"


def judged(repository, files):
    commit = repository.commit(files)
    tree = Tree(repository.folder / ".git", commit)
    return {finding.criterion: finding for finding in judge_tree(tree)}


def test_what_is_only_in_tests_or_taken_from_elsewhere_is_weak(repository):
    code = "import torch.distributed\nx.cuda()\n"
    found = judged(repository, {"a.py": "", "tests/t.py": code, "third_party/b.py": code})
    for criterion in (Criterion.GPU, Criterion.DISTRIBUTED_OR_KERNELS):
        assert found[criterion].weak
        assert found[criterion].evidence[0].file == "tests/t.py"
    own = judged(repository, {"net/z.py": code})
    assert not own[Criterion.GPU].weak
    assert own[Criterion.GPU].evidence[0].file == "net/z.py"
    assert own[Criterion.GPU].why == "something is moved to a GPU (net/z.py:2, and 2 more files)"


def test_trainers_and_foreign_kernels_are_by_the_letter_at_most(repository):
    weak = judged(repository, {"a.py": "from pytorch_lightning import Trainer\nTrainer()\n"})
    assert weak[Criterion.DISTRIBUTED_OR_KERNELS].weak
    strong = judged(repository, {"z.py": "import deepspeed\n"})
    assert not strong[Criterion.DISTRIBUTED_OR_KERNELS].weak
    assert strong[Criterion.DISTRIBUTED_OR_KERNELS].evidence[0].file == "z.py"


def test_build_outputs_links_and_large_files_are_not_read(repository):
    (repository.folder / "link.py").symlink_to("/etc/passwd")
    large = "x.cuda()\n" * (LARGEST_FILE_BYTES // 9 + 1)
    found = judged(repository, {"build/a.py": "x.cuda()", "big.py": large, "a.py": "x = 1\n"})
    assert found[Criterion.GPU].standing == "not_met"


def test_a_copy_that_lacks_a_file_serves_for_the_rest(repository):
    commit = repository.commit({"a.py": "x.cuda()\n", "README.md": "arXiv:2403.01234\n"})
    digest = repository("rev-parse", "HEAD:README.md")
    (repository.folder / ".git" / "objects" / digest[:2] / digest[2:]).unlink()
    found = {f.criterion: f for f in judge_tree(Tree(repository.folder / ".git", commit))}
    assert found[Criterion.GPU].standing == "met"
    assert found[Criterion.PAPER].standing == "not_met"


def test_text_of_any_bytes_is_read_and_kept(repository, tmp_path):
    name = b"caf\xe9.py".decode("utf-8", "surrogateescape")
    (repository.folder / name).write_bytes(b"# -*- coding: latin-1 -*-\nx.cuda()  # \xe9\n")
    found = judged(repository, {"README.md": "\ufeffarXiv:2403.01234\r\nx\r\n"})
    assert found[Criterion.PAPER].standing == "met"
    [evidence] = found[Criterion.GPU].evidence
    assert evidence.line == 2
    found[Criterion.GPU].save(tmp_path / "finding.json")
    assert "caf\\\\xe9.py" in (tmp_path / "finding.json").read_text()
