"""Artefacts on a machine that has nothing else: Debian with Python, no network, no checkout.

The root is the image's own without what vnode adds to it. What is installed there is copied in,
and the program's view ends at that root.
"""

from __future__ import annotations

import os
import shutil
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

import vnode
from hack.distlib import oci
from hack.fleetlib import running
from hack.fleetlib.tools import binaries
from tests.dist.conftest import Artefacts
from tests.dist.test_images import unpacked

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="images are built and run by root")
# Nothing of this machine's environment, which may name indexes or folders of Python.
_ENVIRONMENT = ("/usr/bin/env", "-i", "PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp")
_NO_NETWORK = ("unshare", "--net")
Program = Callable[..., str]


@pytest.fixture
def root(artefacts: Artefacts, tmp_path: Path) -> Path:
    """Return a root that never had vnode."""
    machine = binaries.system_and_machine()[1]
    name = f"vnode-image-{vnode.__version__}-linux-{machine}.oci.tar"
    folder = tmp_path / "root"
    folder.mkdir()
    unpacked(oci.read(artefacts.folder / name), folder)
    shutil.rmtree(folder / "opt" / "vnode")
    assert not list(folder.glob("**/site-packages/vnode"))
    return folder


@pytest.fixture
def inside(root: Path) -> Program:
    """Return what runs a program in that root, and returns what it prints."""

    def run(*words: str, user: str = "0:0") -> str:
        confined = (*_NO_NETWORK, "chroot", f"--userspec={user}", root, *_ENVIRONMENT)
        return running.output([*confined, *words])

    return run


def test_the_wheel_installs_with_its_libraries_beside_it(
    artefacts: Artefacts, root: Path, inside: Program
):
    wheel = artefacts.one("*.whl")
    python = inside("python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
    chosen = ("--python-version", python, "--only-binary=:all:", "--dest", root / "wheels")
    running.output([sys.executable, "-m", "pip", "download", "--quiet", *chosen, wheel])

    inside("python3", "-m", "venv", "/environment")
    pip = ("/environment/bin/python", "-m", "pip", "install", "--quiet", "--no-index")
    inside(*pip, "--find-links=/wheels", f"/wheels/{wheel.name}")

    as_nobody = {"user": "65532:65532"}
    printed = inside("/environment/bin/vnode", "version", "--client", **as_nobody)
    assert printed == f"Client: {vnode.__version__}\n"
    shown = inside(
        "/environment/bin/vnode", "install", "--dry-run", "--webhook-url", "https://a:9443"
    )
    assert "CustomResourceDefinition" in shown
    assert "--advertise-address" in inside("/environment/bin/vnode", "agent", "--help")


def test_the_archive_of_kubectl_vnode_runs_where_it_is_unpacked(
    artefacts: Artefacts, root: Path, inside: Program
):
    machine = binaries.system_and_machine()[1]
    with tarfile.open(artefacts.one(f"kubectl-vnode-*-linux-{machine}.tar.gz")) as opened:
        opened.extractall(root / "plugin", filter="data")

    as_nobody = {"user": "65532:65532"}
    printed = inside("/plugin/kubectl-vnode", "version", "--client", **as_nobody)
    assert printed == f"Client: {vnode.__version__}\n"
    assert inside("/plugin/kubectl-vnode", "get", "--help", **as_nobody).startswith("Usage:")
