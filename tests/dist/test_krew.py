"""krew installs `kubectl vnode` from the manifest and an archive, and it runs."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

import vnode
from hack.fleetlib import running
from hack.fleetlib.tools import binaries
from tests import kit
from tests.dist.conftest import BASE_URL, Artefacts


@pytest.fixture
def platforms(artefacts: Artefacts) -> dict[str, Any]:
    """Return what the manifest says, by architecture."""
    manifest = yaml.safe_load(artefacts.one("vnode.yaml").read_text())
    return {each["selector"]["matchLabels"]["arch"]: each for each in manifest["spec"]["platforms"]}


def archive(artefacts: Artefacts, platform: dict[str, Any]) -> Path:
    return artefacts.folder / platform["uri"].rpartition("/")[2]


def test_the_manifest_is_right_about_each_archive(artefacts: Artefacts, platforms: dict[str, Any]):
    assert platforms.keys() == {"amd64", "arm64"}
    for platform in platforms.values():
        file = archive(artefacts, platform)
        assert hashlib.sha256(file.read_bytes()).hexdigest() == platform["sha256"]
        with tarfile.open(file) as opened:
            assert opened.getmember(platform["bin"]).mode & 0o111
        if "VNODE_TEST_DIST" not in os.environ:
            assert platform["uri"] == f"{BASE_URL}/{file.name}"


def test_libraries_are_of_the_architecture(artefacts: Artefacts, platforms: dict[str, Any]):
    machines = {"amd64": 62, "arm64": 183}  # ELF's e_machine
    for architecture, platform in platforms.items():
        with tarfile.open(archive(artefacts, platform)) as opened:
            for header in opened:
                if header.name.endswith(".so"):
                    head = opened.extractfile(header).read(20)  # type: ignore[union-attr]
                    assert int.from_bytes(head[18:20], "little") == machines[architecture]


def test_krew_installs_it(artefacts: Artefacts, platforms: dict[str, Any], tmp_path: Path):
    own = platforms[binaries.system_and_machine()[1]]
    words = ("--manifest", artefacts.one("vnode.yaml"), "--archive", archive(artefacts, own))
    running.output(
        [kit.program("krew"), "install", *words],
        environment={"KREW_ROOT": str(tmp_path), "HOME": str(tmp_path)},
    )

    program = tmp_path / "bin" / "kubectl-vnode"
    printed = running.output([program, "version", "--client"], folder=tmp_path)
    assert printed == f"Client: {vnode.__version__}\n"
    done = subprocess.run([program, "get", "--help"], capture_output=True, text=True)
    assert done.stdout.startswith("Usage: kubectl vnode get")
