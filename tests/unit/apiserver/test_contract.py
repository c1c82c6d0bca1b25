"""The contract of every API server, held by the one in memory."""

from __future__ import annotations

import pytest

from tests.apiserver.client import MemoryClient
from tests.apiserver.contract_deletes import *  # noqa: F403 - tests
from tests.apiserver.contract_pods import *  # noqa: F403 - tests
from tests.apiserver.contract_reads import *  # noqa: F403 - tests
from tests.apiserver.contract_writes import *  # noqa: F403 - tests
from tests.apiserver.server import APIServer
from vnode.api import kinds
from vnode.api.clock import Clock

pytestmark = pytest.mark.looptime


@pytest.fixture
async def client(clock: Clock) -> MemoryClient:
    return APIServer("c1", clock).client()


@pytest.fixture
async def pod_namespace(client: MemoryClient) -> str:
    account = {"metadata": {"name": "default", "namespace": "test"}}
    client.server.add(kinds.SERVICE_ACCOUNTS, account)
    return "test"
