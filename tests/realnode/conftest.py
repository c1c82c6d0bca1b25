"""A source and a target with a real kubelet: what kwok cannot show is shown here. Needs root."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fleets import clusters
from tests.kit import Fleet
from tests.realnode.cluster import SOURCE, TARGET, NodeCluster

_WORDS = [SOURCE, TARGET, "--nodes", "0", "--real-node", TARGET, "--agents"]


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Yield two clusters, connected in namespace default."""
    with clusters(tmp_path_factory, *_WORDS, "--connect", f"{SOURCE}:{TARGET}") as fleet:
        yield fleet


@pytest.fixture(scope="session")
def target(fleet: Fleet) -> NodeCluster:
    """Return the cluster whose node is real."""
    return NodeCluster(fleet, TARGET)


@pytest.fixture(scope="session")
def source(fleet: Fleet) -> NodeCluster:
    """Return the cluster that users talk to."""
    fleet.opt_in(SOURCE)
    return NodeCluster(fleet, SOURCE)


@pytest.fixture(scope="session")
def web(source: NodeCluster) -> Iterator[str]:
    """Yield the name of a pod that serves a page on port 8080.

    It is for tests that only look at the page.
    """
    source.start("web", "mkdir /www; echo hello > /www/index.html; exec httpd -f -p 8080 -h /www")
    yield "web"
    source.remove("web")
