"""Opens the dashboard in a browser without showing its address to other users of the machine.

They can read the arguments of every process. So the browser is given the name of a file, which only
the user can read, and which leads to the address.
"""

from __future__ import annotations

import asyncio
import html
import tempfile
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

_PAGE: Final = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}">
<title>vnode</title>
<a href="{address}">vnode dashboard</a>
"""


@asynccontextmanager
async def opened(address: str) -> AsyncIterator[None]:
    """Open a browser; the file is there as long as the block runs."""
    folder = await asyncio.to_thread(tempfile.TemporaryDirectory, prefix="vnode-dashboard-")
    try:
        await asyncio.to_thread(_open, Path(folder.name), address)
        yield
    finally:
        await asyncio.to_thread(folder.cleanup)


def _open(folder: Path, address: str) -> None:
    file = folder / "dashboard.html"  # its folder is the user's alone
    file.write_text(_PAGE.format(address=html.escape(address)))
    webbrowser.open(file.as_uri())
