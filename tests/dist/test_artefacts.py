"""All artefacts together: there, the same each time, and vouched for by sums and provenance."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

import vnode
from hack.fleetlib import running
from tests import kit
from tests.dist.conftest import Artefacts, dist

VERSION = vnode.__version__


def test_everything_is_there(artefacts: Artefacts):
    assert artefacts.names >= {
        "SHA256SUMS",
        "release-notes.md",
        "vnode.yaml",
        f"kubectl-vnode-{VERSION}-linux-amd64.tar.gz",
        f"kubectl-vnode-{VERSION}-linux-arm64.tar.gz",
        f"vnode-{VERSION}.cdx.json",
        f"vnode-{VERSION}.provenance.json",
        f"vnode-{VERSION}.tgz",
        f"vnode-alerts-{VERSION}.yaml",
        f"vnode-crds-{VERSION}.yaml",
        f"vnode-dashboard-{VERSION}.json",
        f"vnode_kubernetes-{VERSION}-py3-none-any.whl",
        f"vnode_kubernetes-{VERSION}.tar.gz",
    }


def test_sums_are_right_and_of_all_files(artefacts: Artefacts):
    running.output(["sha256sum", "--check", "--strict", "SHA256SUMS"], folder=artefacts.folder)
    lines = (artefacts.folder / "SHA256SUMS").read_text().splitlines()
    assert {line.split("  ")[1] for line in lines} == artefacts.names - {"SHA256SUMS"}


def test_provenance_names_each_artefact_and_the_commit(artefacts: Artefacts):
    stated = json.loads(artefacts.one("*.provenance.json").read_text())

    assert stated["_type"] == "https://in-toto.io/Statement/v1"
    assert stated["predicateType"] == "https://slsa.dev/provenance/v1"
    subjects = {each["name"]: each["digest"]["sha256"] for each in stated["subject"]}
    about = {"SHA256SUMS", f"vnode-{VERSION}.provenance.json"}
    assert subjects.keys() == artefacts.names - about
    for name, digest in subjects.items():
        content = (artefacts.folder / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == digest, name
    source, *libraries = stated["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert len(source["digest"]["gitCommit"]) == 40
    assert any(each["uri"].startswith("pkg:pypi/aiohttp@") for each in libraries)


def test_notes_are_those_of_the_version(artefacts: Artefacts):
    text = artefacts.one("release-notes.md").read_text()
    assert text.strip()
    assert text in (kit.ROOT / "CHANGELOG.md").read_text()


def test_a_second_build_gives_the_same_bytes(artefacts: Artefacts, tmp_path: Path):
    again = dist(tmp_path / "dist", "none")

    different = [
        name
        for name in sorted(again.names)
        if (again.folder / name).read_bytes() != (artefacts.folder / name).read_bytes()
    ]

    # What sums up the others has images in it, too, if the first build had.
    assert set(different) <= {"SHA256SUMS", f"vnode-{VERSION}.provenance.json"}


def test_a_tag_of_another_version_is_refused(tmp_path: Path):
    from hack.fleetlib.errors import FleetError

    words = ("--tag", "v9.9.9", "--images", "none", "--out", tmp_path / "dist")
    with pytest.raises(FleetError, match=r"the tag v9.9.9 is not of version|commit or remove"):
        running.output(["python3", kit.ROOT / "hack" / "dist", *words])
    assert list(tmp_path.iterdir()) == []
