"""What containers are given: decided without an engine, so tried without one."""

import csv
from pathlib import Path

import pytest

from researchenvbench.errors import SandboxError
from researchenvbench.sandbox import HostEnvironment, Layout
from researchenvbench.sandbox.containers import given
from researchenvbench.sandbox.containers.given import (
    CERTIFICATES,
    container_variables,
    needs_host_network,
    package_mounts,
)
from researchenvbench.sandbox.containers.gpus import devices
from researchenvbench.sandbox.containers.options import Options
from researchenvbench.sandbox.engines.engine import Engine

PODMAN, DOCKER = Engine("podman", "/bin/podman", "4"), Engine("docker", "/bin/docker", "25")
LAYOUT = Layout(*(Path("/w") / name for name in "abcdefghijk"))


@pytest.fixture
def certificates(tmp_path):
    file = tmp_path / "certificates.pem"
    file.write_text("trusted\n")
    return file


@pytest.fixture
def without_system_certificates(monkeypatch):
    monkeypatch.setattr(given, "_SYSTEM_CERTIFICATES", ())


class TestMounts:
    def test_certificates_are_where_it_was_said(self, certificates):
        host = HostEnvironment(installs={"PIP_CERT": str(certificates)})
        assert package_mounts(host) == ["-v", f"{certificates}:{CERTIFICATES}:ro"]
        assert package_mounts(host, Path("/reb-1/c"))[1] == f"{certificates}:/reb-1/c:ro"

    def test_certificates_are_the_target_of_a_link(self, certificates, tmp_path):
        (tmp_path / "link").symlink_to(certificates)
        host = HostEnvironment(installs={"SSL_CERT_FILE": str(tmp_path / "link")})
        assert package_mounts(host)[1].startswith(f"{certificates}:")

    @pytest.mark.usefixtures("without_system_certificates")
    def test_an_index_of_this_host_is_seen_at_its_own_place_once(self, tmp_path):
        simple = tmp_path / "index" / "simple"
        simple.mkdir(parents=True)
        host = HostEnvironment(
            installs={
                "PIP_INDEX_URL": f"file://{simple}",
                "UV_DEFAULT_INDEX": f"file://{simple}",
                "PIP_FIND_LINKS": f"{tmp_path}/absent https://example.org/links",
            }
        )
        # All of it: the pages name the packages that lie beside them.
        assert package_mounts(host) == ["-v", f"{simple.parent}:{simple.parent}:ro"]

    @pytest.mark.usefixtures("without_system_certificates")
    def test_without_settings_there_is_nothing(self):
        assert package_mounts(HostEnvironment()) == []

    def test_paths_that_engines_would_divide(self, tmp_path):
        certificates = tmp_path / 'of:the,"host"' / "ca.pem"
        certificates.parent.mkdir()
        certificates.touch()
        host = HostEnvironment(installs={"PIP_CERT": str(certificates)})
        flag, said = package_mounts(host)
        assert flag == "--mount"
        [fields] = csv.reader([said])
        assert fields == [
            "type=bind", f"source={certificates}", f"target={CERTIFICATES}", "readonly"
        ]  # fmt: skip


class TestVariables:
    def test_the_image_s_then_ours_then_the_host_s(self):
        host = HostEnvironment(variables={"NCCL_DEBUG": "INFO", "FROM": "host"})
        image = {"PATH": "/opt/bin:/bin", "HOME": "/nowhere", "FROM": "image", "CUDA_HOME": "/c"}
        found = container_variables(image, LAYOUT, host, installs=False)
        assert found["PATH"] == "/opt/bin:/bin"
        assert found["HOME"] == str(LAYOUT.home)
        assert found["TMPDIR"] == str(LAYOUT.tmp)
        assert (found["FROM"], found["CUDA_HOME"]) == ("host", "/c")
        assert container_variables({}, LAYOUT, host, installs=False)["PATH"]

    def test_settings_of_installs_are_for_installs(self, certificates):
        host = HostEnvironment(
            installs={"PIP_INDEX_URL": "https://i.example/simple", "PIP_CERT": str(certificates)}
        )
        without = container_variables({}, LAYOUT, host, installs=False)
        assert "PIP_INDEX_URL" not in without
        assert "PIP_CERT" not in without
        found = container_variables({}, LAYOUT, host, installs=True, certificates=Path("/x/c"))
        assert found["PIP_INDEX_URL"] == "https://i.example/simple"
        assert {found[name] for name in ("PIP_CERT", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS")} == {
            "/x/c"
        }

    def test_places_that_a_container_has_not_are_left_out(self):
        host = HostEnvironment(installs={"RUSTUP_HOME": "/root/.rustup", "SSL_CERT_DIR": "/etc"})
        found = container_variables({}, LAYOUT, host, installs=True)
        assert not {"RUSTUP_HOME", "SSL_CERT_DIR"} & found.keys()


@pytest.mark.parametrize(
    ("installs", "needed"),
    [
        ({"PIP_INDEX_URL": "http://localhost:3141/simple"}, True),
        ({"PIP_EXTRA_INDEX_URL": "https://i.example/simple http://127.0.0.1:8080/s"}, True),
        ({"https_proxy": "http://[::1]:3128"}, True),
        ({"PIP_INDEX_URL": "https://i.example/simple"}, False),
        ({"no_proxy": "localhost,127.0.0.1"}, False),
        ({}, False),
    ],
)
def test_what_is_on_this_host_s_loopback_needs_its_network(installs, needed):
    assert needs_host_network(HostEnvironment(installs=installs)) is needed


def test_gpus_are_given_by_their_uuid():
    assert devices(PODMAN, ()) == devices(DOCKER, ()) == []
    assert devices(DOCKER, ["GPU-1", "GPU-2"]) == ["--gpus", '"device=GPU-1,GPU-2"']
    # One that this host has is known to CDI by its number; one that it lacks by what was said.
    assert devices(PODMAN, ["GPU-1"]) == ["--device=nvidia.com/gpu=GPU-1"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, value) for name in ("memory", "shm", "disk") for value in ("0", "-1", "x", "")),
        ("memory", "63m"),
        ("memory", "\u0661g"),
        ("memory", "9" * 400),
        *(("pids", value) for value in ("0", "63", "100.5", "-1", "x", "", "\u0661\u0660\u0660")),
        *(("cpus", value) for value in ("0", "0.0", "-1", "x", "\u0664", "inf")),
        *((name, value) for name in ("image", "network") for value in ("", "--help", "a b")),
    ],
)
def test_values_that_no_container_can_have_are_refused(name, value):
    with pytest.raises(SandboxError, match=name):
        Options.of({name: value})


def test_values_that_a_container_can_have_are_taken():
    chosen = {"memory": "64m", "shm": "1k", "disk": "1.5g", "pids": 64, "cpus": "0.5"}
    options = Options.of(chosen)
    assert (options.memory, options.pids) == ("64m", "64")
    options.check(PODMAN)  # asks no engine
    assert Options.of({}) == Options()


def test_more_than_this_host_has_is_refused():
    for chosen in ({"cpus": "100000"}, {"memory": "900t"}, {"shm": "900t"}):
        with pytest.raises(SandboxError, match="more than"):
            Options.of(chosen).check(PODMAN)
    Options().check(PODMAN)  # what is not chosen is fitted to the host


@pytest.mark.container
def test_a_network_that_is_not_there_is_said_before_a_build(podman):
    with pytest.raises(SandboxError, match="has no network nonesuch") as caught:
        Options.of({"network": "nonesuch"}).check(podman)
    assert "network ls" in caught.value.advice
    Options.of({"network": "podman"}).check(podman)
    Options.of({"network": "host"}).check(podman)
