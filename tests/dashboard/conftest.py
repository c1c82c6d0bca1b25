"""One fleet, one dashboard and one browser for all tests of the pages."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests import kit
from tests.dashboard.browser import BrowserTab, browser
from tests.e2e.conftest import _clean, c1, fleet, source
from tests.kit import Fleet

__all__ = ["_clean", "c1", "fleet", "source"]


@asynccontextmanager
async def running(fleet: Fleet, *words: str, kubeconfig: Path | None = None) -> AsyncIterator[str]:
    """Run `vnode dashboard` as a user starts it; yield its address."""
    command = [sys.executable, "-m", "vnode", "dashboard"]
    process = await asyncio.create_subprocess_exec(
        *command,
        *("--kubeconfig", str(kubeconfig or fleet.kubeconfig("c1"))),
        *words,
        stdout=asyncio.subprocess.PIPE,
        env={k: v for k, v in os.environ.items() if k != "KUBECONFIG"},
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(kit.PATIENCE):
            address = (await process.stdout.readline()).decode().strip()

        assert address.startswith("http://127.0.0.1:"), address
        yield address
    finally:
        process.terminate()
        await process.communicate()


@pytest.fixture
async def address(fleet: Fleet) -> AsyncIterator[str]:
    """Yield the address at which a dashboard of c1 listens."""
    async with running(fleet) as address:
        yield address


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[BrowserTab]:
    """Yield a tab; a complaint in it fails the test, and so does a request to another machine."""
    async with browser(tmp_path / "profile") as page:
        yield page
        assert page.complaints == []
        elsewhere = [one for one in page.requests if not one.startswith("http://127.0.0.1:")]
        assert elsewhere == []
