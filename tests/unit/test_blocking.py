"""Check that the detector of blocking calls detects them.

It replaces functions of the interpreter, in `conftest.py`. If a new version of either made it
replace nothing, no other test would notice.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from blockbuster import BlockingError

from vnode.runtime.certs import keypairs


async def test_vnode_may_not_write_a_file_in_the_event_loop(tmp_path: Path) -> None:
    with pytest.raises(BlockingError):
        keypairs.write_private(tmp_path / "key", b"key")


async def test_vnode_may_write_a_file_in_a_thread(tmp_path: Path) -> None:
    await asyncio.to_thread(keypairs.write_private, tmp_path / "key", b"key")
    assert (tmp_path / "key").read_bytes() == b"key"
