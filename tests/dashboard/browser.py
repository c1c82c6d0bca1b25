"""A headless Chromium, driven by its DevTools protocol: a WebSocket and JSON.

What goes wrong in a page is kept: exceptions, messages of the console, and every request.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tests import kit

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
)
_KEYS = {
    "Tab": {"key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9},
    "Enter": {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"},
}
_START = 30.0  # seconds


class BrowserTab:
    """One tab."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._loaded = asyncio.Event()

    async def listen(self) -> None:
        """Take what the browser says, until it closes."""
        async for message in self._socket:
            frame = json.loads(message.data)
            if "id" in frame:
                answer = self._answers.pop(frame["id"])
                if "error" in frame:
                    answer.set_exception(AssertionError(str(frame["error"])))
                else:
                    answer.set_result(frame["result"])
            else:
                self._hear(frame["method"], frame["params"])

    def _hear(self, method: str, params: dict[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self._loaded.set()
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(str(params["args"]))
        elif method == "Log.entryAdded":
            self.complaints.append(params["entry"]["text"])

    async def call(self, method: str, **params: Any) -> Any:
        """Send a command of the DevTools protocol, and return its result."""
        number = next(self._numbers)
        self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": params})
        async with asyncio.timeout(kit.PATIENCE + 5):
            return await self._answers[number]

    async def goto(self, address: str) -> None:
        """Load a page, and wait until it is there."""
        self._loaded.clear()
        await self.call("Page.navigate", url=address)
        await self.loaded()

    def forget_load(self) -> None:
        """Make the next `loaded` wait for a load that is still to come."""
        self._loaded.clear()

    async def loaded(self) -> None:
        """Wait for a page that is being loaded."""
        async with asyncio.timeout(kit.PATIENCE):
            await self._loaded.wait()

    async def evaluate(self, script: str) -> Any:
        """Return the value of an expression, awaited if it is a promise."""
        result = await self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    async def until(self, condition: str) -> None:
        """Wait for the page to change until an expression is true of it."""
        milliseconds = int(kit.PATIENCE * 1000)
        found = await self.evaluate(
            f"""new Promise((resolve) => {{
              const look = () => ({condition}) && (watch.disconnect(), resolve(true));
              const watch = new MutationObserver(look);
              watch.observe(document, {{subtree: true, childList: true, attributes: true}});
              look();
              setTimeout(() => resolve(false), {milliseconds});
            }})"""
        )
        assert found, f"never so: {condition}; the page: {await self.text()}"

    async def text(self) -> str:
        """Return what is to be read on the page."""
        return str(await self.evaluate("document.body.innerText"))

    async def press(self, key: str) -> None:
        """Send a key to the page, down and up."""
        if key == "Enter":
            self._loaded.clear()

        await self.call("Input.dispatchKeyEvent", type="keyDown", **_KEYS[key])
        await self.call("Input.dispatchKeyEvent", type="keyUp", **_KEYS[key])

    async def prefer(self, scheme: str) -> None:
        """Set the colour scheme that the user prefers: `light` or `dark`."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        await self.call("Emulation.setEmulatedMedia", features=features)

    async def width(self, pixels: int) -> None:
        """Set the width of the window; a narrow one is that of a phone."""
        size = {"width": pixels, "height": 800, "deviceScaleFactor": 1, "mobile": pixels < 500}
        await self.call("Emulation.setDeviceMetricsOverride", **size)

    async def script(self, *, on: bool) -> None:
        """Set whether pages may run scripts from the next load on."""
        await self.call("Emulation.setScriptExecutionDisabled", value=not on)

    async def picture(self, most: int) -> bytes:
        """Return the page as PNG, down to at most so many pixels."""
        size = (await self.call("Page.getLayoutMetrics"))["cssContentSize"]
        clip = {
            "x": 0,
            "y": 0,
            "width": size["width"],
            "height": min(size["height"], most),
            "scale": 1,
        }
        shot = await self.call(
            "Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True
        )
        return base64.b64decode(shot["data"])


@asynccontextmanager
async def browser(folder: Path) -> AsyncIterator[BrowserTab]:
    """Yield a tab of a browser with a new profile in `folder`; the browser ends with the block."""
    program = shutil.which("chromium")
    assert program, "chromium is not installed: hack/browser-packages installs it"
    process = await asyncio.create_subprocess_exec(
        program,
        *_FLAGS,
        f"--user-data-dir={folder}",
        "about:blank",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        port = await _port(process)
        draining = asyncio.create_task(_drain(process), name="chromium-stderr")
        async with aiohttp.ClientSession() as session, _tab(session, port) as page:
            yield page

        draining.cancel()
    finally:
        if process.returncode is None:
            process.terminate()

        await process.wait()


async def _port(process: asyncio.subprocess.Process) -> int:
    assert process.stderr is not None
    output = b""
    async with asyncio.timeout(_START):
        while line := await process.stderr.readline():
            output += line
            if found := re.search(rb"DevTools listening on ws://127\.0\.0\.1:(\d+)/", line):
                return int(found[1])

    raise AssertionError(f"chromium did not start: {output.decode(errors='replace')}")


async def _drain(process: asyncio.subprocess.Process) -> None:
    assert process.stderr is not None
    while await process.stderr.readline():
        pass


@asynccontextmanager
async def _tab(session: aiohttp.ClientSession, port: int) -> AsyncIterator[BrowserTab]:
    async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
        [target] = [one for one in await answer.json() if one["type"] == "page"]

    async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
        page = BrowserTab(socket)
        async with asyncio.TaskGroup() as group:
            listening = group.create_task(page.listen(), name="devtools")
            for domain in ("Page", "Runtime", "Network", "Log"):
                await page.call(f"{domain}.enable")

            await page.width(1280)
            yield page
            listening.cancel()
