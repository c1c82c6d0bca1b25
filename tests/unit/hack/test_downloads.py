"""Downloads, against a local HTTP server that stands in for the official hosts."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import io
import json
import socket
import tarfile
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from hack.fleetlib import debian
from hack.fleetlib.errors import FleetError
from hack.fleetlib.tools import binaries, catalogue, downloads, gobuild, kubernetes
from hack.fleetlib.tools.definitions import Module, Release, Tool

CONTENT = b"#!/bin/sh\necho hello\n"
SUM = hashlib.sha256(CONTENT).hexdigest()


DESCRIBED = json.dumps(
    {"assets": [{"name": "a", "digest": None}, {"name": "tool", "digest": f"sha256:{SUM}"}]}
)


def tool(release: Release, name: str = "tool") -> Tool:
    return Tool(name, "family", "1.2.3", Module("example.com/m", "v1.2.3"), "p", release)


PLAIN = tool(
    Release(
        "https://files.example/v{version}/{os}/{arch}/tool",
        "https://files.example/v{version}/{os}/{arch}/tool.sha256",
    )
)
ARCHIVED = tool(
    Release(
        "https://files.example/v{version}/tool-{arch}.tar.gz",
        "https://files.example/v{version}/SHA256SUMS",
        "tool-{arch}/bin/tool",
    )
)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def served(tmp_path, monkeypatch):
    """Yield a folder that is served as `https://files.example/v1.2.3`."""
    folder = tmp_path / "mirror" / "files.example" / "v1.2.3"
    folder.mkdir(parents=True)
    handler = functools.partial(Quiet, directory=str(tmp_path / "mirror"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("VNODE_DOWNLOAD_MIRROR", f"http://127.0.0.1:{server.server_port}")
        yield folder
        server.shutdown()
        thread.join()


@pytest.fixture
def destination(tmp_path):
    folder = tmp_path / "destination"
    folder.mkdir()
    return folder


def serve_plain(folder, checksum: str) -> None:
    place = folder / "linux" / "amd64"
    place.mkdir(parents=True)
    (place / "tool").write_bytes(CONTENT)
    (place / "tool.sha256").write_text(checksum)


def serve_archive(folder, member: str) -> None:
    with tarfile.open(folder / "tool-amd64.tar.gz", "w:gz") as archive:
        info = tarfile.TarInfo(member)
        info.size = len(CONTENT)
        archive.addfile(info, io.BytesIO(CONTENT))
    digest = hashlib.sha256((folder / "tool-amd64.tar.gz").read_bytes()).hexdigest()
    (folder / "SHA256SUMS").write_text(f"{'0' * 64}  other.tar.gz\n{digest}  tool-amd64.tar.gz\n")


def test_a_program_with_the_published_sum_is_taken(served, destination):
    serve_plain(served, SUM)
    downloads.fetch(PLAIN, destination, "linux", "amd64")
    assert (destination / "tool").read_bytes() == CONTENT
    assert (destination / "tool").stat().st_mode & 0o111
    assert [path.name for path in destination.iterdir()] == ["tool"]


def test_a_program_with_another_sum_is_not_used(served, destination):
    serve_plain(served, "1" * 64)
    with pytest.raises(FleetError, match="not used"):
        downloads.fetch(PLAIN, destination, "linux", "amd64")
    assert list(destination.iterdir()) == []


def test_a_program_is_taken_out_of_an_archive(served, destination):
    serve_archive(served, "tool-amd64/bin/tool")
    downloads.fetch(ARCHIVED, destination, "linux", "amd64")
    assert (destination / "tool").read_bytes() == CONTENT


def test_an_archive_without_the_program_is_an_error(served, destination):
    serve_archive(served, "tool-amd64/README")
    with pytest.raises(FleetError, match="holds no file tool-amd64/bin/tool"):
        downloads.fetch(ARCHIVED, destination, "linux", "amd64")


def test_a_missing_file_is_an_error_that_names_it(served, destination):
    with pytest.raises(FleetError, match=r"cannot read .*tool\.sha256"):
        downloads.fetch(PLAIN, destination, "linux", "amd64")


def test_a_host_that_refuses_is_found_out_before_anything_is_asked(destination, monkeypatch):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        mirror = f"http://127.0.0.1:{closed.getsockname()[1]}"
        monkeypatch.setenv("VNODE_DOWNLOAD_MIRROR", mirror)
        with pytest.raises(FleetError, match="cannot be reached"):
            downloads.fetch(PLAIN, destination, "linux", "amd64")


@pytest.mark.parametrize(
    "text",
    [
        DESCRIBED,
        SUM,
        f"{SUM}\n",
        f"{SUM}  tool\n",
        f"{SUM} *tool\n",
        f"{'0' * 64}  a\n{SUM.upper()}  tool\n",
    ],
)
def test_checksum_files_are_read_in_all_their_forms(text):
    assert downloads.expected_sum(text, "tool") == SUM


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "{",
        '{"assets": [{"name": "tool", "digest": null}]}',
        f"{SUM}  other\n",
        "<html>not found</html>",
        "abc  tool\n",
    ],
)
def test_a_checksum_file_without_the_sum_is_an_error(text):
    with pytest.raises(FleetError, match="checksum file"):
        downloads.expected_sum(text, "tool")


def make(name, folder, content):
    (folder / name).write_bytes(content)
    (folder / name).chmod(0o755)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Return the path of an empty cache; the catalogue has one tool."""
    monkeypatch.setenv("VNODE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBE_BIN_DIR", raising=False)
    monkeypatch.setattr(binaries, "system_and_machine", lambda: ("linux", "amd64"))
    monkeypatch.setattr(catalogue, "TOOLS", {"tool": PLAIN})
    return tmp_path / "cache"


def test_a_download_ends_in_the_cache_and_is_found_there_again(served, cache):
    serve_plain(served, SUM)
    path = binaries.locate(["tool"])["tool"]
    assert path == cache / "bin" / "family-1.2.3-linux-amd64" / "tool"
    (served / "linux" / "amd64" / "tool").unlink()
    assert binaries.locate(["tool"]) == {"tool": path}
    assert [file.name for file in path.parent.iterdir()] == ["tool"]


def test_what_cannot_be_downloaded_is_built(served, cache, monkeypatch):
    def build(tools, folder):
        for one in tools:
            make(one.name, folder, b"built")

    monkeypatch.setattr(gobuild, "build", build)
    serve_plain(served, "2" * 64)
    assert binaries.locate(["tool"])["tool"].read_bytes() == b"built"


def test_what_is_not_published_is_built_and_the_rest_downloaded(served, cache, monkeypatch):
    built = []

    def build(tools, folder):
        for one in tools:
            built.append(one.name)
            make(one.name, folder, b"built")

    monkeypatch.setattr(gobuild, "build", build)
    own = dataclasses.replace(PLAIN, name="own", release=None)
    monkeypatch.setattr(catalogue, "TOOLS", {"own": own, "tool": PLAIN})
    serve_plain(served, SUM)
    found = binaries.locate(["own", "tool"])
    assert built == ["own"]
    assert found["tool"].read_bytes() == CONTENT


def test_downloads_go_side_by_side(cache, monkeypatch):
    tools = {
        name: dataclasses.replace(PLAIN, name=name, family=family)
        for name, family in (("one", "family"), ("two", "family"), ("three", "other"))
    }
    all_begun = threading.Barrier(len(tools), timeout=60)

    def fetch(tool, folder, *_):
        all_begun.wait()
        make(tool.name, folder, CONTENT)

    monkeypatch.setattr(catalogue, "TOOLS", tools)
    monkeypatch.setattr(downloads, "fetch", fetch)
    assert [path.name for path in binaries.locate(tools).values()] == list(tools)


def test_builds_go_two_at_a_time(cache, monkeypatch):
    two, under_way = threading.Barrier(2, timeout=60), threading.BoundedSemaphore(2)

    def build(tools, folder):
        assert under_way.acquire(blocking=False)
        two.wait()
        for one in tools:
            make(one.name, folder, b"built")
        under_way.release()

    names = ("one", "two", "three", "four")
    own = {name: dataclasses.replace(PLAIN, name=name, family=name, release=None) for name in names}
    monkeypatch.setattr(catalogue, "TOOLS", own)
    monkeypatch.setattr(gobuild, "build", build)
    assert set(binaries.locate(names)) == set(names)


def test_what_debian_has_is_not_built(cache, monkeypatch):
    own = dataclasses.replace(PLAIN, release=None, debian="tools")
    monkeypatch.setattr(catalogue, "TOOLS", {"tool": own})
    monkeypatch.setattr(debian, "unpack", lambda _, tool, folder: make(tool, folder, b"debian's"))
    assert binaries.locate(["tool"])["tool"].read_bytes() == b"debian's"


def test_what_debian_does_not_give_is_built(cache, monkeypatch, capsys):
    def fail(*_):
        raise FleetError("no apt-get here")

    own = dataclasses.replace(PLAIN, release=None, debian="tools")
    monkeypatch.setattr(catalogue, "TOOLS", {"tool": own})
    monkeypatch.setattr(debian, "unpack", fail)
    monkeypatch.setattr(gobuild, "build", lambda _, folder: make("tool", folder, b"built"))
    assert binaries.locate(["tool"])["tool"].read_bytes() == b"built"
    assert "no tool of Debian's package tools (no apt-get here)" in capsys.readouterr().err


def test_a_folder_of_the_user_comes_first(cache, tmp_path, monkeypatch):
    own = tmp_path / "own"
    own.mkdir()
    make("tool", own, CONTENT)
    monkeypatch.setenv("KUBE_BIN_DIR", str(own))
    assert binaries.locate(["tool"]) == {"tool": own / "tool"}


def test_programs_of_another_version_are_beside_the_usual(cache, monkeypatch):
    built = []

    def build(tools, folder):
        for one in tools:
            built.append((one.name, one.module.version, one.module.staging))
            make(one.name, folder, one.version.encode())

    def refuse(*_):
        raise FleetError("no network")

    monkeypatch.setattr(gobuild, "build", build)
    monkeypatch.setattr(downloads, "fetch", refuse)
    usual = kubernetes.programs(kubernetes.DEFAULT)
    monkeypatch.setattr(catalogue, "TOOLS", {tool.name: tool for tool in usual})
    found = binaries.locate_each(["kubelet@1.33", "kubelet", "kube-proxy@1.33.5", "kubectl"])
    assert [path.read_bytes() for path in found] == [b"1.33.5", b"1.37.2", b"1.33.5", b"1.37.2"]
    assert found[0] == cache / "bin" / "kubernetes-1.33.5-linux-amd64" / "kubelet"
    assert built[0] == ("kubelet", "v1.33.5", "v0.33.5")
    with pytest.raises(FleetError, match="kubectl has one version only"):
        binaries.locate_each(["kubectl@1.33"])


def test_a_folder_of_the_user_has_the_usual_version(cache, tmp_path, monkeypatch):
    make("kubelet", tmp_path, CONTENT)
    environ = {"KUBE_BIN_DIR": str(tmp_path)}
    of_both = [
        next(tool for tool in kubernetes.programs(version) if tool.name == "kubelet")
        for version in (kubernetes.DEFAULT, "1.33.5")
    ]
    assert [binaries.present(tool, environ) for tool in of_both] == [tmp_path / "kubelet", None]


def test_an_unknown_program_is_refused_with_the_known_ones(cache):
    with pytest.raises(FleetError, match="known are tool"):
        binaries.locate(["rkt"])
