"""What installs need here reaches a box, for uv too; the rest stays outside."""

import os
import subprocess
import sys
import zipfile

import pytest

from researchenvbench.errors import HostError
from researchenvbench.sandbox.host_environment import (
    base_environment,
    host_environment,
    redacted,
    redacted_variables,
)
from researchenvbench.sandbox.local.sandbox import LocalSandbox


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def host(home, tmp_path):
    """The environment of a host that has no configuration of its own."""

    def host(**variables):
        plain = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(home),
            "XDG_CONFIG_DIRS": str(tmp_path / "xdg"),
        }
        return host_environment({**plain, **variables})

    return host


def without_system_file(installs):
    """What does not come from the /etc/pip.conf of the machine that runs the tests."""
    return {name: value for name, value in installs.items() if "CERT" not in name}


class TestScrubbed:
    def test_only_declared_variables_pass(self, host):
        got = host(
            NCCL_NVLS_ENABLE="0",
            NVSHMEM_DISABLE_NVLS="1",
            TORCH_SYMM_MEM_DISABLE_MULTICAST="1",
            OPENBLAS_CORETYPE="Haswell",
            OPENAI_API_KEY="secret",
            LD_PRELOAD="/x.so",
            PYTHONPATH="/x",
            OMP_NUM_THREADS="1",
        )
        assert got.variables == {
            "NCCL_NVLS_ENABLE": "0",
            "NVSHMEM_DISABLE_NVLS": "1",
            "OPENBLAS_CORETYPE": "Haswell",
            "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
        }
        everything = {**got.installs, **got.variables}
        assert not {"OPENAI_API_KEY", "LD_PRELOAD", "PYTHONPATH"} & everything.keys()

    def test_path(self, host, tmp_path):
        active, conda, other, shared = (tmp_path / n for n in ("venv", "conda", "other", "shared"))
        for folder in (active, conda, other, shared):
            (folder / "bin").mkdir(parents=True)
        (other / "pyvenv.cfg").touch()
        (shared / "bin").chmod(0o777)
        entries = [
            active / "bin",
            conda / "bin",
            other / "bin",
            shared / "bin",
            "relative",
            "",
            ".",
        ]
        path = os.pathsep.join([*map(str, entries), "/opt/tools/bin", "/usr/bin", "/usr/bin"])
        got = host(PATH=path, VIRTUAL_ENV=str(active), CONDA_PREFIX=str(conda))
        assert got.path == "/opt/tools/bin:/usr/bin"

    def test_base_environment(self, host, attempt):
        layout = LocalSandbox().layout(attempt)
        here = host(
            NCCL_DEBUG="WARN", PIP_INDEX_URL="https://index.example/simple", HTTPS_PROXY="p"
        )
        stage = base_environment(layout, here, installs=False)
        build = base_environment(layout, here, installs=True)
        assert stage["HOME"] == str(layout.home)
        assert stage["TMPDIR"] == str(layout.tmp)
        assert stage["XDG_CACHE_HOME"] == str(layout.cache)
        assert stage["NCCL_DEBUG"] == "WARN"
        assert not [name for name in stage if name.startswith(("PIP_", "UV_", "HTTP"))]
        assert build["PIP_INDEX_URL"] == build["UV_DEFAULT_INDEX"] == "https://index.example/simple"
        assert build["HTTPS_PROXY"] == "p"


class TestPip:
    def write(self, file, text):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def test_files_in_the_order_of_pip(self, host, home, tmp_path):
        self.write(tmp_path / "xdg/pip/pip.conf", "[global]\nindex-url = https://a/\nretries = 1\n")
        self.write(home / ".pip/pip.conf", "[global]\nindex-url = https://b/\ntimeout = 5\n")
        self.write(home / ".config/pip/pip.conf", "[global]\nindex-url = https://c/\n")
        got = host().installs
        assert got["PIP_INDEX_URL"] == got["UV_DEFAULT_INDEX"] == "https://c/"
        assert got["PIP_RETRIES"] == "1"
        assert got["PIP_TIMEOUT"] == got["UV_HTTP_TIMEOUT"] == "5"
        assert got["PIP_CONFIG_FILE"] == os.devnull

    def test_install_beats_global_and_variables_beat_files(self, host, home, tmp_path):
        self.write(
            tmp_path / "xdg/pip/pip.conf",
            "[install]\nindex-url = https://install/\n[global]\nretries = 1\n",
        )
        self.write(home / ".pip/pip.conf", "[global]\nindex-url = https://global/\n")
        assert host().installs["PIP_INDEX_URL"] == "https://install/"
        assert host(PIP_INDEX_URL="https://v/").installs["PIP_INDEX_URL"] == "https://v/"

    def test_chosen_file_replaces_the_users(self, host, home, tmp_path):
        self.write(home / ".pip/pip.conf", "[global]\nretries = 9\n")
        self.write(tmp_path / "mine", "[global]\nindex-url = https://mine/\n")
        got = host(PIP_CONFIG_FILE=str(tmp_path / "mine")).installs
        assert got["PIP_INDEX_URL"] == "https://mine/"
        assert "PIP_RETRIES" not in got
        none = host(PIP_CONFIG_FILE=os.devnull).installs
        assert "PIP_INDEX_URL" not in none

    def test_paths_become_absolute(self, host, home):
        (home / ".pip").mkdir()
        (home / ".pip" / "wheels").mkdir()
        self.write(
            home / ".pip/pip.conf",
            "[global]\nfind-links =\n  wheels\n  https://x/\nconstraint = c.txt\ncert = ca.pem\n",
        )
        got = host().installs
        assert got["PIP_FIND_LINKS"] == f"{home}/.pip/wheels https://x/"
        assert got["UV_FIND_LINKS"] == f"{home}/.pip/wheels,https://x/"
        assert got["PIP_CONSTRAINT"] == got["UV_CONSTRAINT"] == f"{home}/.pip/c.txt"
        assert got["PIP_CERT"] == got["SSL_CERT_FILE"] == f"{home}/.pip/ca.pem"

    def test_extra_indexes_as_pip_takes_them(self, host):
        got = host(PIP_EXTRA_INDEX_URL="https://x/ https://y/").installs
        assert got["UV_INDEX"] == "https://x/ https://y/"
        assert got["UV_INDEX_STRATEGY"] == "unsafe-best-match"
        assert "UV_DEFAULT_INDEX" not in got

    def test_uvs_own_variables_win(self, host):
        got = host(
            PIP_INDEX_URL="https://pip/", UV_DEFAULT_INDEX="https://uv/", UV_CACHE_DIR="/cache"
        ).installs
        assert got["PIP_INDEX_URL"] == "https://pip/"
        assert got["UV_DEFAULT_INDEX"] == "https://uv/"
        assert "UV_CACHE_DIR" not in got

    def test_what_would_change_where_things_go_is_left_out(self, host):
        got = host(PIP_TARGET="/t", PIP_USER="1", PIP_CACHE_DIR="/c", PIP_PREFIX="/p").installs
        assert not {"PIP_TARGET", "PIP_USER", "PIP_CACHE_DIR", "PIP_PREFIX"} & got.keys()

    def test_malformed_file(self, host, home):
        self.write(home / ".pip/pip.conf", "index-url = x\n")
        with pytest.raises(HostError, match="pip's configuration cannot be read"):
            host()


def test_passwords_are_never_shown():
    assert redacted("https://me:secret@index/simple https://plain/") == (
        "https://***@index/simple https://plain/"
    )
    assert redacted_variables({"UV_INDEX_X_PASSWORD": "s", "PIP_INDEX_URL": "https://t@h/"}) == {
        "UV_INDEX_X_PASSWORD": "***",
        "PIP_INDEX_URL": "https://***@h/",
    }


# --- installs for real, from indexes in folders ----------------------------------------


def wheel(folder, name, version):
    """A package in a wheel, as an index or a folder of wheels holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    file = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"{name}.py", f"version = {version!r}\n")
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n")
    return file


def index(folder, *wheels):
    for file in wheels:
        name = file.name.partition("-")[0]
        page = folder / name / "index.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        text = page.read_text() if page.exists() else ""
        page.write_text(text + f'<a href="{file.as_uri()}">{file.name}</a>\n')
    return folder.as_uri()


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_both_installers_see_the_hosts_settings(host, tmp_path, attempt, installer):
    wheels = tmp_path / "wheels"
    first = index(
        tmp_path / "first", wheel(wheels, "rebone", "1.0"), wheel(wheels, "rebtwo", "1.0")
    )
    more = index(tmp_path / "more", wheel(wheels, "rebtwo", "2.0"), wheel(wheels, "rebtwo", "3.0"))
    wheel(tmp_path / "links one", "rebthree", "1.0")
    wheel(tmp_path / "links", "rebfour", "1.0")
    (tmp_path / "constraints.txt").write_text("rebtwo<3\n")
    layout = LocalSandbox().layout(attempt)
    layout.tmp.mkdir(parents=True)
    here = host(
        PIP_INDEX_URL=first,
        PIP_EXTRA_INDEX_URL=f"{more} {(tmp_path / 'absent').as_uri()}",
        PIP_FIND_LINKS=f"{tmp_path}/links {(tmp_path / 'links one').as_uri()} {tmp_path}/absent",
        PIP_CONSTRAINT=str(tmp_path / "constraints.txt"),
    )
    env = base_environment(layout, here, installs=True)
    target = tmp_path / "target"
    if installer == "uv":
        from uv import find_uv_bin

        command = [find_uv_bin(), "pip", "install", "--python", sys.executable]
    else:
        command = [sys.executable, "-m", "pip", "install"]
    command += ["--target", str(target), "rebone", "rebtwo", "rebthree", "rebfour"]
    done = subprocess.run(
        command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(path.name for path in target.glob("*.py")) == [
        "rebfour.py",
        "rebone.py",
        "rebthree.py",
        "rebtwo.py",
    ]
    # The best of both indexes, within the constraint.
    assert (target / "rebtwo.py").read_text() == "version = '2.0'\n"
    if installer == "uv":
        assert list(layout.cache.iterdir())
    assert not (tmp_path / "home" / ".cache").exists()
