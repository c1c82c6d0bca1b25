"""The artefacts of a release, built once for all tests; and a machine that has nothing else.

The tests read the folder of artefacts and install from it: nothing of the checkout is used but what
says how things must be. If $VNODE_TEST_DIST names a folder that `make dist` wrote, that is tested.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import vnode
from hack.fleetlib import running
from hack.fleetlib.tools import binaries
from tests import kit

BASE_URL = "https://example.com/releases/v" + vnode.__version__


@dataclass(frozen=True)
class Artefacts:
    """A folder that `make dist` wrote."""

    folder: Path

    def one(self, pattern: str) -> Path:
        """Return the one file of that pattern."""
        [found] = self.folder.glob(pattern)
        return found

    @property
    def names(self) -> set[str]:
        return {file.name for file in self.folder.iterdir()}


def dist(folder: Path, images: str) -> Artefacts:
    """Build all artefacts, with images for these architectures."""
    words = ("--out", folder, "--images", images, "--base-url", BASE_URL)
    running.output([sys.executable, kit.ROOT / "hack" / "dist", *words])
    return Artefacts(folder)


@pytest.fixture(scope="session")
def artefacts(tmp_path_factory: pytest.TempPathFactory) -> Artefacts:
    """Return the artefacts, with images of this machine's architecture if root builds them."""
    if folder := os.environ.get("VNODE_TEST_DIST"):
        return Artefacts(Path(folder))

    images = binaries.system_and_machine()[1] if os.geteuid() == 0 else "none"
    return dist(tmp_path_factory.mktemp("artefacts") / "dist", images)


@pytest.fixture
def installed(tmp_path: Path) -> Callable[[Path], Path]:
    """Return what installs a package into a new environment, and returns its interpreter."""

    def install(package: Path) -> Path:
        folder = tmp_path / "environment"
        running.output([sys.executable, "-m", "venv", folder], folder=tmp_path)
        python = folder / "bin" / "python"
        running.output([python, "-m", "pip", "install", "--quiet", package], folder=tmp_path)
        return python

    return install
