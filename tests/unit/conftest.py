"""What unit tests share.

Time passes only when everybody waits. Code of vnode that blocks the event loop raises an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from blockbuster import blockbuster_ctx

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)

MAY_BLOCK: Final = {
    # Read once, when nothing else runs yet.
    ("vnode/cli/access.py", "_read"),
    ("vnode/dashboard/site.py", "__init__"),
    ("vnode/kube/endpoint.py", "from_kubeconfig_file"),
    # The ssl module reads certificates from files only: a small one, in the folder for temporaries.
    ("vnode/kube/tls.py", "load_client_certificate"),
}
"""(end of a path, function): where reading or writing a file in the event loop is accepted."""


IDLE_PASSES: Final = 2
"""Passes of a loop in which nobody is ready before looptime moves its time on. Its default of 42 is
for I/O that may yet arrive, and took a third of the time of tests that have none."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have time pass soon in tests whose time looptime moves."""
    for item in items:
        if item.get_closest_marker("looptime") is not None:
            item.add_marker(pytest.mark.looptime(noop_cycles=IDLE_PASSES), append=False)


@pytest.fixture(scope="session", autouse=True)
def blocking_calls_fail() -> Iterator[None]:
    """Raise BlockingError where vnode sleeps, reads, writes or waits in the event loop.

    This looks at which function is called and not at how long it takes, so that a machine under
    load makes no difference. What tests themselves do is up to them.
    """
    with blockbuster_ctx(["vnode", "scheduler_plugins"]) as detector:
        for call in detector.functions.values():
            for path, function in MAY_BLOCK:
                call.can_block_in(path, function)
        yield


class LoopClock:
    """The clock of the event loop, which looptime moves on without waiting."""

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@pytest.fixture
def clock() -> LoopClock:
    return LoopClock()
