"""Real API servers for integration tests: started once a session, shared by all.

Two clusters without agents: c1 has vnode installed, c2 is bare until a test asks for `target`.
A test that makes objects does so in a namespace of its own. `VNODE_TEST_FLEET=DIR` takes a fleet
that runs already, and leaves it running.
"""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import kit
from tests.kit import Fleet, new_namespace
from vnode.api import kinds, objects
from vnode.kube.client import Client

SOURCE = "c1"
TARGET = "c2"


@dataclass(frozen=True)
class Result:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


def vnode(*words: str | Path) -> Result:
    """Run `vnode WORDS` as a user does, but without the authorities that the machine trusts.

    aiohttp loads them twice when it is imported, a sixth of what a command takes. No cluster of
    tests has a certificate of one.
    """
    without_kubeconfig = {k: v for k, v in os.environ.items() if k != "KUBECONFIG"}
    done = subprocess.run(
        [sys.executable, "-m", "vnode", *map(str, words)],
        stdin=subprocess.DEVNULL,  # or it would ask whoever runs the tests
        capture_output=True,
        text=True,
        env={**without_kubeconfig, "SSL_CERT_FILE": os.devnull},
    )
    return Result(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="session")
def bare_fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Yield a fleet of two clusters in which nothing of vnode is installed."""
    with clusters(tmp_path_factory, SOURCE, TARGET) as fleet:
        yield fleet


@pytest.fixture(scope="session")
def kubelet_fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Yield a fleet of two clusters with a kwok node each, for pods with logs and exec."""
    with clusters(tmp_path_factory, SOURCE, TARGET, "--nodes", "1") as fleet:
        yield fleet


@contextmanager
def clusters(
    folders: pytest.TempPathFactory,
    *words: str,
    prepare: Callable[[Fleet], None] = lambda _fleet: None,
) -> Iterator[Fleet]:
    """Yield a fleet started for the session, or the running one in the folder $VNODE_TEST_FLEET.

    `words` say which clusters, by the options of `hack/fleet up`. `prepare` gets one that was
    started; the other is taken to be prepared, and runs on.
    """
    if running := os.environ.get("VNODE_TEST_FLEET"):
        yield Fleet(Path(running))
        return

    with started(folders, *words, sources=()) as fleet:
        prepare(fleet)
        yield fleet


@contextmanager
def started(
    folders: pytest.TempPathFactory, *words: str, sources: Iterable[str] = ("c1",)
) -> Iterator[Fleet]:
    """Run a fleet; the webhook looks at namespace default of each of the `sources`.

    `words` say which clusters, by the options of `hack/fleet up`.
    """
    fleet = Fleet(folders.mktemp("fleet"))
    try:
        fleet.run("up", *words)
        for name in sources:
            fleet.opt_in(name)

        yield fleet
    finally:
        fleet.run("down")


@pytest.fixture(scope="session")
def installation(bare_fleet: Fleet) -> Result:
    """Return the result of the first `vnode install` in c1."""
    return vnode("install", "--kubeconfig", bare_fleet.kubeconfig(SOURCE))


@pytest.fixture(scope="session")
def fleet(bare_fleet: Fleet, installation: Result) -> Fleet:
    """Return the fleet of two clusters, with vnode installed in c1."""
    assert installation.code == 0, installation.err
    return bare_fleet


@pytest.fixture
async def client(fleet: Fleet) -> AsyncIterator[Client]:
    """Yield an administrator's client of c1."""
    async with fleet.client(SOURCE) as client:
        yield client


@pytest.fixture
async def namespace(client: Client) -> str:
    """Return the name of a fresh namespace in c1."""
    return await new_namespace(client, f"test-{uuid.uuid4().hex[:10]}")


@pytest.fixture
async def pod_namespace(client: Client) -> str:
    """Return the name of a fresh namespace in c1 that takes pods, as no webhook looks at it."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    await client.create(kinds.NAMESPACES, {"metadata": {"name": name}})
    await kit.until_one(client, kinds.SERVICE_ACCOUNTS, "default", name, objects.uid)
    return name
