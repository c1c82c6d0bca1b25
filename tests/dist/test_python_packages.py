"""Wheel and sdist install by themselves, and what they need is in the list of components."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import vnode
from hack.fleetlib import running
from tests import kit
from tests.dist.conftest import Artefacts

_NEEDED = """
import json
from importlib import metadata
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

found, waiting = {}, ["vnode-kubernetes"]
while waiting:
    one = metadata.distribution(waiting.pop())
    if canonicalize_name(one.name) not in found:
        found[canonicalize_name(one.name)] = one.version
        for needed in map(Requirement, one.requires or ()):
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                waiting.append(needed.name)
print(json.dumps(found))
"""


@pytest.mark.parametrize("pattern", ["*.whl", "vnode_kubernetes-*.tar.gz"])
def test_it_installs_and_its_commands_run(
    artefacts: Artefacts, installed: Callable[[Path], Path], tmp_path: Path, pattern: str
):
    python = installed(artefacts.one(pattern))

    for name in ("vnode", "kubectl-vnode"):
        command = python.with_name(name)
        printed = running.output([command, "version", "--client"], folder=tmp_path)
        assert printed == f"Client: {vnode.__version__}\n"
    assert "Virtual nodes" in running.output([python.with_name("vnode"), "--help"])
    # Manifests are files of the package, which an installation without them would lack.
    shown = running.output(
        [python.with_name("vnode"), "install", "--dry-run", "--webhook-url", "https://a:9443"],
        folder=tmp_path,
    )
    assert "CustomResourceDefinition" in shown


def test_the_components_are_what_the_wheel_depends_on(
    artefacts: Artefacts, installed: Callable[[Path], Path], tmp_path: Path
):
    python = installed(artefacts.one("*.whl"))
    running.output([python, "-m", "pip", "install", "--quiet", "packaging"])
    needed = json.loads(running.output([python, "-c", _NEEDED], folder=tmp_path))
    listed = json.loads(artefacts.one(f"vnode-{vnode.__version__}.cdx.json").read_text())

    assert listed["bomFormat"] == "CycloneDX"
    own = listed["metadata"]["component"]
    assert (own["name"], own["version"]) == ("vnode-kubernetes", needed.pop("vnode-kubernetes"))
    components = {each["purl"].split("/")[-1].split("@")[0] for each in listed["components"]}
    assert needed.keys() <= components
    pinned = (kit.ROOT / "constraints.txt").read_text().lower().replace("_", "-")
    for each in listed["components"]:
        assert f"{each['name'].lower().replace('_', '-')}=={each['version']} " in pinned
        assert each["licenses"], each["name"]
    assert str(kit.ROOT) not in json.dumps(listed)


def test_nothing_but_the_package_is_in_the_wheel(artefacts: Artefacts):
    command = ["python3", "-m", "zipfile", "-l", str(artefacts.one("*.whl"))]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    tops = {line.split("/")[0] for line in lines[1:]}
    assert tops == {
        "vnode",
        "scheduler_plugins",
        f"vnode_kubernetes-{vnode.__version__}.dist-info",
    }
