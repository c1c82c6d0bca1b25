"""Images are whole, of their architecture, without what they need not have, and run."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import vnode
from hack.distlib import oci
from hack.distlib.oci import ImageArchive
from hack.fleetlib import running
from hack.fleetlib.tools import binaries
from tests.dist.conftest import Artefacts

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="images are built and run by root")
_IMPORTS = (
    "import ssl, ctypes, OpenSSL, aiohttp, cryptography, msgspec, re2, yaml, scheduler_plugins, "
    "google._upb._message, vnode.telemetry.otlp"
)
_TRUSTED = "print(len(ssl.create_default_context().get_ca_certs()))"


@pytest.fixture(params=["", "distroless"], ids=["usual", "distroless"])
def file(artefacts: Artefacts, request: pytest.FixtureRequest) -> Path:
    """Return an image's archive, of this machine's architecture."""
    stage = f"-{request.param}" if request.param else ""
    architecture = binaries.system_and_machine()[1]
    name = f"vnode-image-{vnode.__version__}{stage}-linux-{architecture}.oci.tar"
    return artefacts.folder / name


def unpacked(image: ImageArchive, folder: Path) -> Path:
    """Write the files of an image into a folder, of a file system that follows Linux."""
    packed = folder.with_suffix(".tar")
    for layer in image.layers:
        packed.write_bytes(layer)
        running.output(["tar", "--extract", f"--file={packed}", f"--directory={folder}"])
    packed.unlink()
    folder.chmod(0o755)  # pytest's folders are for their owner only
    return folder


def test_digests_are_right_and_the_image_is_what_it_says(artefacts: Artefacts):
    archives = sorted(artefacts.folder.glob("*.oci.tar"))
    assert archives
    for each in archives:
        image = oci.read(each)  # checks each digest
        assert each.name.endswith(f"-linux-{image.config['architecture']}.oci.tar")
        assert image.config["os"] == "linux"
        assert image.config["config"]["User"] == "65532:65532"
        assert image.config["config"]["Entrypoint"] == ["python", "-m", "vnode"]


def test_the_agent_runs_in_it_as_nobody(file: Path, tmp_path: Path):
    root = unpacked(oci.read(file), tmp_path)
    inside: list[str | Path] = ["chroot", "--userspec=65532:65532", root, "/opt/vnode/bin/python"]
    version = running.output([*inside, "-m", "vnode", "--version"])
    assert version == f"vnode {vnode.__version__}\n"
    trusted = running.output([*inside, "-c", f"{_IMPORTS}; {_TRUSTED}"])
    assert int(trusted) > 50  # certificates of authorities
    assert "--advertise-address" in running.output([*inside, "-m", "vnode", "agent", "--help"])


def test_byte_code_is_used_as_it_is(file: Path, tmp_path: Path):
    """Agents may write nothing: without it each start would compile all modules."""
    root = unpacked(oci.read(file), tmp_path)
    [compiled] = root.glob("opt/vnode/lib/python3.*/site-packages/vnode/__pycache__/__init__.*.pyc")
    assert compiled.read_bytes()[4:8] == b"\x01\x00\x00\x00"  # by hash, unchecked: PEP 552


def test_what_is_not_needed_is_not_there(artefacts: Artefacts, tmp_path: Path):
    [file] = artefacts.folder.glob(f"*-distroless-linux-{binaries.system_and_machine()[1]}.oci.tar")
    root = unpacked(oci.read(file), tmp_path)
    programs = {path.name for path in (root / "usr" / "bin").iterdir()}
    assert all(name.startswith("python") for name in programs)
    for name in ("bin/sh", "usr/bin/apt-get", "usr/bin/dpkg", "usr/sbin"):
        assert not (root / name).exists()
    assert (root / "tmp").stat().st_mode & 0o7777 == 0o1777


def test_authorities_are_those_of_the_base_and_not_of_the_machine(
    artefacts: Artefacts, tmp_path: Path
):
    machine = binaries.system_and_machine()[1]
    found = []
    for number, file in enumerate(artefacts.folder.glob(f"*-{machine}.oci.tar")):
        folder = tmp_path / str(number)
        folder.mkdir()
        certificates = unpacked(oci.read(file), folder) / "etc" / "ssl" / "certs"
        assert (certificates / "ca-certificates.crt").stat().st_size > 100_000
        found.append({path.name for path in certificates.iterdir()})
    usual, distroless = found
    assert usual == distroless


def test_the_components_are_the_packages_of_the_image(file: Path):
    listed = json.loads(file.with_suffix("").with_suffix(".cdx.json").read_text())
    purls = {each["purl"].split("@")[0] for each in listed["components"]}
    assert {"pkg:deb/debian/libc6", "pkg:deb/debian/libssl3", "pkg:pypi/aiohttp"} <= purls
    assert "pkg:pypi/vnode-kubernetes" in purls
    assert ("pkg:deb/debian/apt" in purls) == ("distroless" not in file.name)
    [digest] = [each["value"] for each in listed["metadata"]["component"]["properties"]]
    assert digest == oci.read(file).digest
