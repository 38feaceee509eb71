"""Environments as files: written whole or not at all, and the same when they are loaded."""

import io
import json
import subprocess
import tarfile
from pathlib import Path

import pytest

from researchenvbench.errors import HostError, RebError, SandboxError
from researchenvbench.sandbox.containers import moving
from researchenvbench.sandbox.containers.archives import read_archive
from researchenvbench.sandbox.containers.copies import put, read
from researchenvbench.sandbox.containers.inventory import (
    BASE_ID,
    BASE_NAME,
    ENVIRONMENTS,
    MOVED,
    SHOWN_GPUS,
    environment_image,
)
from researchenvbench.sandbox.containers.moving import export_image, import_image
from researchenvbench.sandbox.engines.engine import Engine
from researchenvbench.sandbox.engines.known import known_image

pytestmark = pytest.mark.container


@pytest.fixture
def environment(podman, tmp_path):
    """A small environment, of a file that no other has; gone in the end, with its copies."""
    name = f"{ENVIRONMENTS}:test-{tmp_path.name.replace('[', '').replace(']', '')}-1"
    said = {
        "kind": "build",
        "attempt": str(tmp_path / "a run" / "attempts" / "x--1"),
    }
    more = {BASE_NAME: "localhost/base:1", BASE_ID: "sha256:12", SHOWN_GPUS: '["H200 (sm_90)"]'}
    labels = [f"org.researchenvbench.{key}={value}" for key, value in said.items()]
    labels += [f"{key}={value}" for key, value in more.items()]
    flags = [part for label in labels for part in ("--label", label)]
    made = podman.ask(
        "create", *flags, *podman.run_flags, "localhost/researchenvbench/probe:1", "x"
    )
    container = made.splitlines()[-1]
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        entry = tarfile.TarInfo("report.json")
        entry.size = 100_000
        tar.addfile(entry, io.BytesIO(str(tmp_path).encode().ljust(entry.size, b"x")))
    podman.call("cp", "-", f"{container}:/", stdin=archive.getvalue())
    change = ("--change", "LABEL org.researchenvbench.kind=environment")
    podman.call("commit", "--format", "docker", *change, container, name)
    podman.call("rm", container)
    found = environment_image(podman, name)
    yield found
    mine = f"label=org.researchenvbench.attempt={said['attempt']}"
    for identifier in podman.listed("image", "ls", "--filter", mine):
        podman.call("rmi", "--force", identifier)


@pytest.fixture
def forget(podman, environment):
    """Remove the environment, as if this were another host."""

    def forget():
        podman.call("rmi", "--force", environment.id)

    return forget


@pytest.mark.parametrize("form", ["oci", "tar"])
def test_an_environment_is_the_same_where_it_is_loaded(podman, environment, forget, tmp_path, form):
    file = tmp_path / "moved"
    size_bytes = export_image(podman, environment, file, form)
    assert file.stat().st_size == size_bytes
    assert read_archive(file).format == form
    assert environment_image(podman, environment.id).names == environment.names  # as before
    forget()
    loaded = import_image(podman, file)
    assert loaded.content == environment.content
    assert loaded.attempt == environment.attempt
    assert (loaded.base_name, loaded.base_id) == ("localhost/base:1", "sha256:12")
    assert loaded.shown_gpus == ("H200 (sm_90)",)
    assert loaded.own_bytes == environment.own_bytes > 100_000
    assert loaded.names == (f"{MOVED}:{loaded.id.removeprefix('sha256:')[:12]}",)
    assert loaded.moved
    assert (loaded.id == environment.id) is (form == "tar")
    assert import_image(podman, file) == loaded  # the second time changes nothing


def test_nothing_is_written_over_unless_that_is_asked_for(podman, environment, tmp_path):
    file = tmp_path / "there"
    file.write_text("mine")
    with pytest.raises(SandboxError, match="there already"):
        export_image(podman, environment, file, "tar")
    assert file.read_text() == "mine"
    export_image(podman, environment, file, "tar", force=True)
    assert read_archive(file).format == "tar"
    with pytest.raises(SandboxError, match="no folder"):
        export_image(podman, environment, tmp_path / "absent" / "file", "tar")


def test_an_export_that_fails_leaves_nothing(podman, environment, tmp_path):
    program = tmp_path / "podman"
    program.write_text(
        f'#!/bin/sh\ncase "$1" in save) echo half > "$5"; echo "Error: no space left on device" '
        f'>&2; exit 1;; esac\nexec {podman.program} "$@"\n'
    )
    program.chmod(0o755)
    with pytest.raises(HostError, match="the disk is full"):
        export_image(Engine("podman", str(program), "1"), environment, tmp_path / "file", "tar")
    assert {path.name for path in tmp_path.iterdir()} == {"podman"}
    assert environment_image(podman, environment.id).names == environment.names


def test_room_is_looked_for_before_anything_is_written(podman, environment, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    huge = environment.__class__(**{**environment.__dict__, "size_bytes": 1 << 60})
    with pytest.raises(HostError, match="the environment needs"):
        export_image(podman, huge, tmp_path / "file", "oci")
    assert list(tmp_path.iterdir()) == []


def test_what_is_damaged_or_foreign_is_refused(podman, environment, tmp_path):
    file = tmp_path / "file"
    export_image(podman, environment, file, "tar")
    whole = file.read_bytes()
    for text, words in (
        (b"", "damaged, or no archive"),
        (b"not an archive" * 1000, "damaged, or no archive"),
        (whole[: len(whole) // 2], "damaged"),
        (archive_of({"a.txt": b"a"}), "none of an image"),
        (archive_of({"manifest.json": b"[]"}), "no archive of an image"),
        (archive_of({"manifest.json": b"[{"}), "no archive of an image"),
        (archive_of({"manifest.json": b'[{"Config": "gone"}]'}), "no archive of an image"),
        (archive_of({"index.json": b'{"manifests": []}', "oci-layout": b""}), "no archive"),
    ):
        file.write_bytes(text)
        with pytest.raises(SandboxError, match=words) as caught:
            import_image(podman, file)
        assert caught.value.advice
    with pytest.raises(SandboxError, match="not a file"):
        import_image(podman, tmp_path / "absent")


@pytest.mark.parametrize("form", ["oci", "tar"])
def test_a_layer_that_was_changed_on_the_way_is_not_loaded(
    podman, environment, forget, tmp_path, form
):
    file = tmp_path / "file"
    export_image(podman, environment, file, form)
    with tarfile.open(file) as archive:
        layer = max(archive, key=lambda member: member.size)
        place = layer.offset_data + layer.size // 2
    forget()
    content = bytearray(file.read_bytes())
    content[place] ^= 0xFF
    file.write_bytes(content)
    with pytest.raises(RebError):
        import_image(podman, file)


def test_an_image_that_is_no_environment_is_not_loaded(podman, tmp_path):
    file = tmp_path / "file"
    probe = "localhost/researchenvbench/probe:1"
    subprocess.run(
        podman.argv("save", "--format", "docker-archive", "--output", str(file), probe),
        check=True,
        capture_output=True,
    )
    with pytest.raises(SandboxError, match="no environment that `reb` has made"):
        import_image(podman, file)


# --- files that mean harm --------------------------------------------------------------


def rewritten(file, target, change):
    """A copy of an archive with other files in it: `change` gets and gives (name, content)."""
    with tarfile.open(file) as read, tarfile.open(target, "w") as write:
        files = [(m.name, read.extractfile(m).read()) for m in read if m.isreg()]
        for name, content in change(files):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            write.addfile(entry, io.BytesIO(content))


def with_json(wanted, edit):
    def change(files):
        for name, content in files:
            if name == wanted:
                document = json.loads(content)
                content = json.dumps(edit(document) or document).encode()
            yield name, content

    return change


def called(key):
    return lambda document: document[0].update({key: [VICTIM]})


def annotated(name):
    def edit(document):
        document["manifests"][0]["annotations"] = {name: VICTIM}

    return edit


def names_and_ids(podman, environment):
    """Of what a file could touch: images of the environment's attempt, and the victim."""
    label = f"label=org.researchenvbench.attempt={environment.attempt}"
    ours = podman.listed("image", "ls", "--all", "--filter", label)
    return ours, known_image(podman, VICTIM)


VICTIM = "localhost/researchenvbench/probe:1"


@pytest.mark.parametrize(
    ("form", "change", "words"),
    [
        ("tar", with_json("manifest.json", called("RepoTags")), "would take the name"),
        ("oci", with_json("index.json", annotated("io.containerd.image.name")), "would take"),
        (
            "oci",
            with_json("index.json", annotated("org.opencontainers.image.ref.name")),
            "would take the name",
        ),
        # Engines read these as the other spelling.
        ("tar", with_json("manifest.json", called("repotags")), "twice"),
        ("tar", with_json("manifest.json", lambda entries: entries * 2), "2 images"),
        (
            "oci",
            with_json("index.json", lambda index: index | {"manifests": index["manifests"] * 2}),
            "2 images",
        ),
        ("tar", lambda files: [*files, ("./manifest.json", b"[]")], "twice"),
        ("oci", lambda files: [*files, ("manifest.json", b"[]")], "0 images"),
    ],
)
def test_a_file_cannot_take_a_name_of_this_host(
    podman, environment, forget, tmp_path, form, change, words
):
    export_image(podman, environment, tmp_path / "good", form)
    rewritten(tmp_path / "good", tmp_path / "bad", change)
    forget()
    before = names_and_ids(podman, environment)
    with pytest.raises(SandboxError, match=words) as caught:
        import_image(podman, tmp_path / "bad")
    assert caught.value.advice
    assert names_and_ids(podman, environment) == before


def test_what_is_loaded_and_is_not_what_was_read_is_removed(podman, environment, forget, tmp_path):
    export_image(podman, environment, tmp_path / "good", "tar")

    def emptied(document):  # as an engine that reads another list than we do
        document["rootfs"]["diff_ids"] = ["sha256:" + "0" * 64]

    with tarfile.open(tmp_path / "good") as archive:
        config = json.load(archive.extractfile("manifest.json"))[0]["Config"]
    rewritten(tmp_path / "good", tmp_path / "other", with_json(config, emptied))
    forget()
    program = tmp_path / "podman"
    program.write_text(
        f'#!/bin/sh\ncase "$1" in load) exec {" ".join(podman.argv("load"))} --input '
        f'{tmp_path}/good;; esac\nexec {podman.program} "$@"\n'
    )
    program.chmod(0o755)
    before = names_and_ids(podman, environment)
    with pytest.raises(SandboxError, match="something else"):
        import_image(Engine("podman", str(program), "1"), tmp_path / "other")
    assert names_and_ids(podman, environment) == before


def test_an_export_gives_no_name_that_a_kill_could_leave(podman, environment, tmp_path):
    program, seen = tmp_path / "podman", tmp_path / "seen"
    program.write_text(
        f'#!/bin/sh\ncase "$1" in save) {podman.program} image inspect --format '
        f"'{{{{json .RepoTags}}}}' {environment.id} > {seen};; esac\n"
        f'exec {podman.program} "$@"\n'
    )
    program.chmod(0o755)
    export_image(Engine("podman", str(program), "1"), environment, tmp_path / "file", "tar")
    assert json.loads(seen.read_text()) == list(environment.names)
    assert read_archive(tmp_path / "file").names == ()


def test_no_copy_of_an_archive_stays(podman, environment, forget, tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    made = podman.ask("create", *podman.run_flags, environment.id, "x").splitlines()[-1]
    try:
        put(podman, made, {Path("/a/file"): b"x" * 50_000}, 0o644, ())
        assert read(podman, made, Path("/report.json"), 1 << 20).strip(b"x")
    finally:
        podman.call("rm", made)
    for form in ("oci", "tar"):
        export_image(podman, environment, tmp_path / form, form)
    forget()
    import_image(podman, tmp_path / "tar")
    assert list(scratch.iterdir()) == []


def test_a_docker_that_is_too_old_for_oci_archives_says_so(environment, tmp_path):
    program = tmp_path / "docker"
    program.write_text("#!/bin/sh\necho 20.10.24\n")
    program.chmod(0o755)
    old = Engine("docker", str(program), "20.10.24")
    with pytest.raises(SandboxError, match=r"docker 20\.10\.24 does not write OCI") as caught:
        export_image(old, environment, tmp_path / "file", "oci")
    assert "--format tar" in caught.value.advice


def test_the_progress_of_a_long_export_is_said(podman, environment, tmp_path, monkeypatch):
    monkeypatch.setattr(moving, "_SAY_EVERY_S", 0.01)
    lines = []
    export_image(podman, environment, tmp_path / "file", "tar", say=lines.append)
    assert any("MB written" in line for line in lines), lines


def archive_of(files):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text))
    return content.getvalue()
