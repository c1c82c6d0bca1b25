"""Two clusters of real nodes, with the chart and its images: as an operator has it. Needs root.

Values are the chart's own but for the cluster's name: the nodes pull images of the chart's names
from what `hack/image` has built. If $VNODE_TEST_DIST names a folder that `make dist` wrote, vnode's
image is the archive that is there, and the chart is the package beside it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import kit
from tests.chart import releases
from tests.fleets import started
from tests.image import operating
from tests.kit import Fleet
from tests.realnode.cluster import SOURCE, TARGET, NodeCluster
from vnode.api import names

_WORDS = [SOURCE, TARGET, "--nodes", "0", "--real-node", f"{SOURCE},{TARGET}", "--services"]


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Yield both clusters, without vnode.

    If $VNODE_TEST_FLEET names the folder of a fleet, yield that one instead, and leave it as it is.
    """
    if folder := os.environ.get("VNODE_TEST_FLEET"):
        yield Fleet(Path(folder))
        return

    images = tmp_path_factory.mktemp("images")
    given = ["--from", str(archive)] if (archive := operating.released_image()) else []
    kit.run([sys.executable, str(kit.ROOT / "hack" / "image"), str(images), *given])
    with started(tmp_path_factory, *_WORDS, "--images", str(images), sources=()) as fleet:
        yield fleet


@pytest.fixture(scope="session")
def fleet(bare: Fleet) -> Fleet:
    """Return both clusters, with a release each, connected in namespace default."""
    operating.install(bare)
    releases.connect(bare, SOURCE, TARGET)
    node = f"node/{names.virtual_node('default', TARGET)}"
    for what in ("create", "condition=Ready"):
        bare.kubectl(SOURCE, "wait", node, f"--for={what}", kit.TIMEOUT)
    return bare


@pytest.fixture(scope="session")
def source(fleet: Fleet) -> NodeCluster:
    """Return the cluster that users talk to."""
    return NodeCluster(fleet, SOURCE)


@pytest.fixture(scope="session")
def target(fleet: Fleet) -> NodeCluster:
    """Return the cluster in which pods run."""
    return NodeCluster(fleet, TARGET)
