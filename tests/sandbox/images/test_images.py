"""Base images: what is known of them, what is noted, and what stands in the way of one."""

import http.server
import itertools
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
import uuid

import pytest

from researchenvbench.errors import HostError, RecordError, SandboxError
from researchenvbench.sandbox.engines.engine import Engine
from researchenvbench.sandbox.images import containerfile, debian
from researchenvbench.sandbox.images.base import base_images, default_image, image_of
from researchenvbench.sandbox.images.containerfile import (
    CONTAINERFILE,
    PAPER_BASE,
    ContainerfileRecipe,
    build_argv,
    build_containerfile_image,
    host_secrets,
)
from researchenvbench.sandbox.images.debian import PACKAGES, build_debian_image, debian_recipe
from researchenvbench.sandbox.images.lock import ImageLock, resolve
from researchenvbench.sandbox.images.mirror import find_mirror
from researchenvbench.sandbox.images.scratch import alone, scratch_folder

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
DIGEST = "sha256:" + "d" * 64
LABELS = {
    "org.researchenvbench.kind": "base",
    "org.researchenvbench.recipe": "sha256:" + "e" * 64,
    "org.researchenvbench.base": "debian bookworm",
    "org.opencontainers.image.created": "2026-11-30T11:18:04+00:00",
}
#: As podman 4.3.1 answers.
PODMAN = {
    "Id": "a" * 64,
    "Digest": DIGEST,
    "RepoTags": ["localhost/other:1", "localhost/researchenvbench/base:debian-bookworm"],
    "RepoDigests": [f"localhost/other@{DIGEST}"],
    "Created": "2026-11-30T11:04:50.442849965Z",
    "Labels": LABELS,
    "Size": 666850765,
}
#: As docker 28 answers for an image that it imported.
DOCKER = {
    "Id": "sha256:" + "a" * 64,
    "RepoTags": ["localhost/researchenvbench/base:debian-bookworm"],
    "RepoDigests": [],
    "Created": "2026-11-30T12:04:50.442849965+01:00",
    "Config": {"Labels": LABELS},
    "Size": 666850765,
}


@pytest.fixture
def engine_that_says(tmp_path):
    """An engine with recorded answers, by how its command line begins."""

    def engine_that_says(answers, name="podman"):
        lines = ["#!/bin/sh", 'case "$*" in']
        for begins, answer in answers.items():
            words = answer if isinstance(answer, str) else json.dumps(answer)
            lines.append(f"{shlex.quote(begins)}*) printf %s {shlex.quote(words)};;")
        lines += ["*) echo 'Error: inspecting object: x: image not known' >&2; exit 125;;", "esac"]
        program = tmp_path / "engine"
        program.write_text("\n".join(lines))
        program.chmod(0o755)
        return Engine(name, str(program), "1")

    return engine_that_says


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """A web server with the `Release` files of two mirrors, one of them of Debian."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    for place, origin, suites in (
        ("debian", "Debian", ["bookworm", "sid"]),
        ("tools", "Maker of Tools", ["bookworm", "trixie"]),
    ):
        for suite in suites:
            folder = tmp_path / "www" / place / "dists" / suite
            folder.mkdir(parents=True)
            (folder / "Release").write_text(f"Origin: {origin}\nSuite: {suite}\n")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    def handler(*arguments):
        return Quiet(*arguments, directory=tmp_path / "www")

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


# --- what is known of an image ---------------------------------------------------------


@pytest.mark.parametrize(("answer", "digest"), [(PODMAN, DIGEST), (DOCKER, None)])
def test_podman_and_docker_say_the_same_of_an_image(engine_that_says, answer, digest):
    name = "localhost/researchenvbench/base:debian-bookworm"
    image = image_of(engine_that_says({"image inspect": [answer]}), name)
    assert image.id == "sha256:" + "a" * 64
    assert image.digest == digest
    assert image.name == name
    assert image.base == "debian bookworm"
    assert image.recipe == LABELS["org.researchenvbench.recipe"]
    assert image.created == "2026-11-30T11:18:04+00:00"
    assert image.size_bytes == 666850765


def test_an_image_that_is_not_there_is_said_with_how_to_make_one(engine_that_says):
    with pytest.raises(SandboxError, match="no image nonesuch") as caught:
        image_of(engine_that_says({}), "nonesuch")
    assert "reb image build" in caught.value.advice


def test_an_engine_that_fails_is_not_taken_for_one_without_the_image():
    with pytest.raises(SandboxError, match="it said nothing"):
        image_of(Engine("podman", "/bin/false", "1"), "x")


def test_the_newest_base_with_a_name_is_the_one_to_use(engine_that_says):
    def image(number, hour, tags):
        created = {"org.opencontainers.image.created": f"2026-11-30T{hour}:00:00+00:00"}
        return {**PODMAN, "Id": number * 64, "RepoTags": tags, "Labels": {**LABELS, **created}}

    images = [image("1", 10, ["a:1"]), image("2", 12, ["b:1"]), image("3", 14, [])]
    engine = engine_that_says({"image ls": "1\n2\n3\n2\n", "image inspect 1 2 3": images})
    assert [found.id[-1] for found in base_images(engine)] == ["3", "2", "1"]
    assert default_image(engine).name == "b:1"


def test_what_is_built_on_a_base_is_nobody_elses_base(engine_that_says):
    """It has the base's labels, its date among them, and a layer more."""
    below = {"Layers": ["sha256:" + "e" * 64]}
    above = {"Layers": [*below["Layers"], "sha256:" + "f" * 64]}
    ours = {**PODMAN, "Id": "1" * 64, "RepoTags": ["base:1"], "RootFS": below}
    mine = {**PODMAN, "Id": "2" * 64, "RepoTags": ["a-mine:1"], "RootFS": above}
    engine = engine_that_says({"image ls": "1\n2\n", "image inspect 1 2": [mine, ours]})
    assert default_image(engine).name == "base:1"
    assert len(base_images(engine)) == 1


def test_without_a_base_image_it_is_said_how_to_get_one(engine_that_says):
    engine = engine_that_says({"image ls": ""})
    assert base_images(engine) == []
    with pytest.raises(SandboxError, match="no base image yet") as caught:
        default_image(engine)
    assert "--from-debian bookworm" in caught.value.advice


# --- the lock --------------------------------------------------------------------------


def test_a_digest_is_looked_up_once_and_used_from_then_on(engine_that_says, tmp_path):
    lock = tmp_path / "new" / "image.lock"
    answers = {f"pull {PAPER_BASE}": "", f"image inspect {PAPER_BASE}": [PODMAN]}
    by_digest = f"docker.io/nvidia/cuda@{DIGEST}"
    assert resolve(engine_that_says(answers), PAPER_BASE, lock) == by_digest
    noted = ImageLock.load(lock).images
    assert noted[PAPER_BASE].digest == DIGEST
    assert noted[PAPER_BASE].looked_up.endswith("+00:00")
    # Nothing is asked of an engine any more.
    assert resolve(Engine("podman", "/bin/false", "1"), PAPER_BASE, lock) == by_digest


def test_another_base_is_added_to_the_lock(engine_that_says, tmp_path):
    lock = tmp_path / "image.lock"
    for name in ("registry.example:5000/a:1", "registry.example:5000/b"):
        engine = engine_that_says({f"pull {name}": "", f"image inspect {name}": [PODMAN]})
        assert resolve(engine, name, lock) == f"{name.removesuffix(':1')}@{DIGEST}"
    assert len(ImageLock.load(lock).images) == 2


def test_without_a_registry_nothing_is_noted(tmp_path):
    lock = tmp_path / "image.lock"
    with pytest.raises(SandboxError, match="podman pull") as caught:
        resolve(Engine("podman", "/bin/false", "1"), PAPER_BASE, lock)
    assert "--from-debian bookworm" in caught.value.advice
    assert not lock.exists()


def test_a_base_by_digest_or_of_this_host_needs_no_lock(engine_that_says, tmp_path):
    lock = tmp_path / "image.lock"
    name = f"docker.io/nvidia/cuda@{DIGEST}"
    assert resolve(Engine("podman", "/bin/false", "1"), name, lock) == name
    engine = engine_that_says({"image inspect localhost/x:1": [PODMAN]})
    assert resolve(engine, "localhost/x:1", lock) == "sha256:" + "a" * 64
    assert not lock.exists()


@pytest.mark.parametrize(
    "text", ["{", '{"schema": 1, "images": {"a:1": {"digest": "latest", "looked_up": ""}}}']
)
def test_a_lock_that_cannot_be_read_is_no_reason_to_look_up_anew(tmp_path, text):
    lock = tmp_path / "image.lock"
    lock.write_text(text)
    with pytest.raises(RecordError, match=r"image\.lock"):
        resolve(Engine("podman", "/bin/false", "1"), "a:1", lock)
    assert lock.read_text() == text


# --- the Containerfile -----------------------------------------------------------------


def test_both_ways_bring_the_same_packages():
    text = CONTAINERFILE.read_text()
    listed = text.partition("--no-install-recommends")[2].partition(";")[0]
    assert set(PACKAGES) == set(listed.replace("\\", " ").split()) - {"bzip2"}


def test_the_build_is_told_what_was_asked_and_what_the_host_needs(tmp_path):
    engine = Engine("podman", "podman", "4", ("--runtime", "runc"), ("--ulimit", "nproc=9:9"))
    recipe = ContainerfileRecipe(pythons=("3.9", "3.12"), micromamba=None)
    argv = build_argv(
        engine,
        "localhost/a:1",
        arguments=recipe.build_arguments("base@sha256:1"),
        labels={"k": "v"},
        secrets={"reb-host": tmp_path / "host.sh"},
        context=tmp_path,
    )
    assert argv[:6] == ["podman", "--runtime", "runc", "build", "--ulimit", "nproc=9:9"]
    pairs = list(itertools.pairwise(argv))
    assert ("--build-arg", "BASE=base@sha256:1") in pairs
    assert ("--build-arg", "PYTHONS=3.9 3.12") in pairs
    assert ("--build-arg", "MICROMAMBA=") in pairs
    assert ("--label", "k=v") in pairs
    assert ("--secret", f"id=reb-host,src={tmp_path}/host.sh") in pairs
    assert argv[-1] == str(tmp_path)


def test_settings_of_the_host_reach_the_steps_as_files(tmp_path):
    certificates = tmp_path / "own.pem"
    certificates.write_text("-----BEGIN CERTIFICATE-----\n")
    folder = tmp_path / "secrets"
    folder.mkdir()
    index = "https://me:it's secret@index.example/simple"
    installs = {
        "PIP_INDEX_URL": index.replace(" ", "-"),
        "PIP_EXTRA_INDEX_URL": "file:///here/simple https://more.example/simple",
        "PIP_FIND_LINKS": "/here/wheels",
        "PIP_CERT": str(certificates),
        "https_proxy": "http://proxy.example:3128",
    }
    files = host_secrets(folder, installs, {"UV_PYTHON_INSTALL_MIRROR": "https://m.example"})
    names = (*installs, "SSL_CERT_FILE", "UV_PYTHON_INSTALL_MIRROR")
    shown = " ".join(f'"${name}"' for name in names)
    line = f". {files['reb-host']}; printf '%s\\n' {shown}"
    printed = subprocess.run(
        ["sh", "-c", line], env={}, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert dict(zip(names, printed, strict=True)) == {
        "PIP_INDEX_URL": "https://me:it's-secret@index.example/simple",
        "PIP_EXTRA_INDEX_URL": "https://more.example/simple",
        "PIP_FIND_LINKS": "",
        "PIP_CERT": "/run/secrets/reb-certificates",
        "https_proxy": "http://proxy.example:3128",
        "SSL_CERT_FILE": "/run/secrets/reb-certificates",
        "UV_PYTHON_INSTALL_MIRROR": "https://m.example",
    }
    assert files["reb-certificates"].read_text() == certificates.read_text()


def test_too_small_a_disk_is_said_before_anything_is_pulled(
    engine_that_says, tmp_path, monkeypatch
):
    monkeypatch.setattr(containerfile, "_ROOM_BYTES", 10**18)
    engine = engine_that_says({"info": str(tmp_path)})
    with pytest.raises(HostError, match=r"GB free; the image needs 1000000000\.0 GB"):
        build_containerfile_image(engine, ContainerfileRecipe(), tmp_path / "image.lock")


# --- Debian ----------------------------------------------------------------------------


def test_the_mirror_is_that_of_apt_and_it_is_one_of_debian(mirror, tmp_path):
    apt = tmp_path / "apt"
    (apt / "sources.list.d").mkdir(parents=True)
    (apt / "sources.list").write_text(
        "# deb http://commented.example/debian bookworm main\n"
        f"deb {mirror}/tools/ bookworm main\n"
        "deb [signed-by=/etc/apt/keyrings/other.gpg] http://other.example bookworm main\n"
        "deb-src http://source.example/debian bookworm main\n"
    )
    (apt / "sources.list.d" / "debian.sources").write_text(
        "Types: deb\nURIs: http://off.example\nSuites: bookworm\nComponents: main\nEnabled: no\n\n"
        f"# the one\nTypes: deb deb-src\nURIs: {mirror}/debian/\nSuites: bookworm\n"
        "Components: main contrib\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
    )
    assert find_mirror("bookworm", apt=apt) == f"{mirror}/debian"
    with pytest.raises(SandboxError, match=r"/debian has no suite trixie") as caught:
        find_mirror("trixie", apt=apt)
    assert "bookworm, sid" in caught.value.advice


def test_no_suite_of_that_name_is_said_with_those_that_exist(mirror):
    assert find_mirror("sid", f"{mirror}/debian") == f"{mirror}/debian"
    with pytest.raises(SandboxError, match="has no suite potato") as caught:
        find_mirror("potato", f"{mirror}/debian")
    assert "bookworm, sid" in caught.value.advice
    with pytest.raises(SandboxError, match="no name of a Debian suite"):
        find_mirror("../sid", f"{mirror}/debian")


def test_a_mirror_that_cannot_be_reached_is_the_hosts_trouble():
    with pytest.raises(HostError, match=r"http://127\.0\.0\.1:1/debian cannot be reached"):
        find_mirror("bookworm", "http://127.0.0.1:1/debian")


def test_an_address_with_a_password_is_refused_and_not_repeated():
    with pytest.raises(SandboxError, match="holds a password") as caught:
        find_mirror("bookworm", "https://me:hunter2@mirror.example/debian")
    assert "hunter2" not in str(caught.value)
    with pytest.raises(SandboxError, match="reached by http"):
        find_mirror("bookworm", "file:///srv/debian")


def test_what_decides_the_content_decides_the_digest():
    recipe = debian_recipe("bookworm")
    assert recipe.digest == debian_recipe("bookworm").digest
    assert recipe.digest != debian_recipe("trixie").digest


def test_the_same_recipe_is_not_made_twice(engine_that_says):
    labels = {**LABELS, "org.researchenvbench.recipe": debian_recipe("bookworm").digest}
    engine = engine_that_says({"image inspect": [{**PODMAN, "Labels": labels}]})
    said = []
    image = build_debian_image(engine, "bookworm", say=said.append)
    assert image.id == "sha256:" + "a" * 64
    assert "is there already" in said[0]


def test_an_ordinary_user_is_told_what_is_needed(engine_that_says, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(HostError, match="needs root") as caught:
        build_debian_image(engine_that_says({}), "bookworm")
    assert "reb image build" in caught.value.advice


@needs_root
def test_without_debootstrap_it_is_said_where_it_comes_from(
    engine_that_says, monkeypatch, tmp_path
):
    monkeypatch.setattr(debian, "_PATH", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostError, match="not installed") as caught:
        build_debian_image(engine_that_says({}), "bookworm")
    assert caught.value.advice == "apt-get install debootstrap"


@needs_root
@pytest.mark.usefixtures("needs_overlay")
def test_what_debootstrap_left_mounted_is_unmounted_and_not_emptied(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("kept")

    def interrupted():
        with scratch_folder() as folder:
            place = folder / "a b"
            place.mkdir()
            subprocess.run(["mount", "--bind", outside, place], check=True)
            assert (place / "precious").exists()
            seen.append(folder)
            raise KeyboardInterrupt

    seen = []
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not seen[0].exists()
    assert (outside / "precious").read_text() == "kept"


@pytest.mark.container
@pytest.mark.slow
@pytest.mark.network
@pytest.mark.timeout(1200)
def test_the_image_of_debian_has_what_an_agent_needs_and_its_mirror(podman, debian_image):
    name = f"localhost/researchenvbench/base:test-{uuid.uuid4().hex[:12]}"
    podman.call("tag", debian_image.id, name)
    try:
        image = image_of(podman, name)
        assert image.id == debian_image.id
        assert image.recipe == debian_recipe("bookworm").digest
        assert image.digest
        assert image.digest.startswith("sha256:")
        script = (
            "set -e; pwd; echo $LANG; python3 --version; python --version; uv --version; "
            "g++ --version | head -n 1; git --version; python3 -m venv /tmp/v; "
            "stat -c %a /tmp; ls -A /var/lib/apt/lists; ls /var/cache/apt/archives/*.deb || true; "
            "python3 -c 'import torch' || echo no framework"
        )
        said = podman.ask(
            "run", "--rm", "--network=none", *podman.run_flags, name, "sh", "-c", script
        )
        lines = said.splitlines()
        assert lines[:2] == ["/", "C.UTF-8"]
        assert lines[2] == lines[3]
        assert lines[2].startswith("Python 3.11")
        assert lines[4].startswith(f"uv {debian_recipe('bookworm').uv}")
        assert lines[5].startswith("g++ (Debian")
        assert lines[6].startswith("git version")
        assert lines[7:] == ["1777", "no framework"]
    finally:
        podman.call("image", "rm", name)


@pytest.mark.container
@pytest.mark.slow
@pytest.mark.network
@pytest.mark.timeout(1200)
def test_the_containerfile_builds_on_an_image_of_this_host(podman, debian_image, tmp_path):
    name = f"localhost/researchenvbench/base:test-{uuid.uuid4().hex[:12]}"
    base = f"{name}-below"
    podman.call("tag", debian_image.id, base)
    said = []
    try:
        recipe = ContainerfileRecipe(base=base, pythons=(), micromamba=None)
        lock = tmp_path / "image.lock"
        image = build_containerfile_image(podman, recipe, lock, name=name, say=said.append)
        assert image.name == name
        assert image.base == f"{base} ({debian_image.id[7:19]})"
        assert any("STEP " in line for line in said)
        # What the steps were given is neither in the image nor in its history.
        left = podman.ask("run", "--rm", *podman.run_flags, name, "find", "/run/secrets", "/opt")
        assert left.splitlines() == ["/run/secrets", "/opt"]
        again = build_containerfile_image(podman, recipe, lock, name=name, say=said.append)
        assert again.id == image.id
        assert "is there already" in said[-1]
        assert not lock.exists()
    finally:
        podman.call("image", "rm", base)
        podman.call("image", "rm", "--force", name)


@pytest.mark.container
@pytest.mark.slow
@pytest.mark.network
@pytest.mark.timeout(1200)
def test_an_interrupted_build_leaves_nothing(podman, debian_image, tmp_path):
    name = f"localhost/researchenvbench/base:test-{uuid.uuid4().hex[:12]}"
    base = f"{name}-below"
    podman.call("tag", debian_image.id, base)
    everything = ("ps", "--all", "--external", "--format", "{{.ID}} {{.Command}}")
    before = {line for line in podman.ask(*everything).splitlines() if "buildah" in line}
    command = [sys.executable, "-m", "researchenvbench", "image", "build", "--engine=podman"]
    options = [f"--base={base}", f"--name={name}", "--pythons=", "--micromamba="]
    building = subprocess.Popen(
        [*command, *options],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # Whoever runs the tests in the background ignores Ctrl-C for them.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        assert any("STEP " in line for line in building.stderr)
        time.sleep(3)
        assert list(tmp_path.iterdir()) != []
        building.send_signal(signal.SIGINT)
        building.communicate(timeout=60)
        assert building.returncode == 130
        assert list(tmp_path.iterdir()) == []
        after = {line for line in podman.ask(*everything).splitlines() if "buildah" in line}
        assert after <= before
        with pytest.raises(SandboxError, match="no image"):
            image_of(podman, name)
    finally:
        building.kill()
        building.communicate()
        podman.call("image", "rm", base)


def test_an_image_is_made_by_one_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setenv("REB_CACHE", str(tmp_path))
    order, said = [], []

    def second():
        with alone("podman", "a/b:c", said.append):
            order.append("second")

    with alone("podman", "a/b:c", said.append), alone("podman", "another", said.append):
        waiting = threading.Thread(target=second)
        waiting.start()
        deadline = time.monotonic() + 20
        while not said and time.monotonic() < deadline:
            time.sleep(0.01)
        order.append("first")
    waiting.join(20)
    assert said == ["waiting for another process, which is making a/b:c"]
    assert order == ["first", "second"]
