"""Runs agents as processes of their own, whole, with a meter of their event loop.

What is wrong with one is read from outside: that it ended, what it logged, how long a callback
took, how much memory it has.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp
import yaml

from tests import certificates
from tests.fuzz import measuring

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_CREDENTIALS: Final = ("tls.crt", "tls.key")  # of the candidate scheduler
_START: Final = 90.0  # seconds
_GUARDS: Final = (": unexpected ",)
"""Marks of tracebacks of what is caught and becomes an error, since nobody can list it."""


@dataclass(frozen=True, slots=True)
class FuzzFinding:
    """Something that must not be; `rule` says what."""

    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"


class AgentProcess:
    """The agent of one cluster, which listens on a loopback address of its own."""

    def __init__(
        self,
        name: str,
        url: str,
        token: str,
        address: str,
        folder: Path,
        *,
        callback_limit: float = measuring.LIMIT,
    ) -> None:
        self.name = name
        self.address = address
        self.callback_limit = callback_limit  # seconds of CPU time, garbage collections aside
        self.guarded = 0  # tracebacks of errors that were caught as such
        self.longest = 0.0  # seconds of CPU time that a callback took
        self._folder = folder / name
        self._folder.mkdir(parents=True)
        self._kubeconfig = self._folder / "kubeconfig"
        self._kubeconfig.write_text(json.dumps(kubeconfig(url, token)))
        self._credentials = self._folder / "credentials"
        self._log = self._folder / "agent.log"
        self._report = self._folder / "callbacks.json"
        self._read: dict[Path, int] = {}
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the process, and wait until it is ready, and its candidate scheduler could be."""
        arguments = ["--log-format", "json", "agent", "--kubeconfig", str(self._kubeconfig)]
        arguments += ["--cluster-name", self.name, "--advertise-address", self.address]
        arguments += ["--credentials-dir", str(self._credentials)]
        meter = [measuring.__name__, str(self._report), str(self.callback_limit)]
        command = [sys.executable, "-m", *meter, *arguments]
        with self._log.open("w") as log:
            self._process = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log)

        async with asyncio.timeout(_START), aiohttp.ClientSession() as session:
            while not await self._is_ready(session):
                if self._process.returncode is not None:
                    raise RuntimeError(f"{self.name} ended: {self._log.read_text()[-2000:]}")

                await asyncio.sleep(0.2)

    async def stop(self) -> None:
        """End the process."""
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            try:
                async with asyncio.timeout(20):
                    await self._process.wait()
            except TimeoutError:
                self._process.kill()
                await self._process.wait()

    async def _is_ready(self, session: aiohttp.ClientSession) -> bool:
        try:
            async with session.get(f"http://{self.address}:8080/readyz") as response:
                ready = response.status == 200
        except aiohttp.ClientError:
            return False

        return ready and all((self._credentials / name).exists() for name in _CREDENTIALS)

    def client(self, *, certificate: bool) -> aiohttp.ClientSession:
        """Open connections to the agent's TLS ports, with the candidate scheduler's certificate."""
        context = certificates.unverified()
        if certificate:
            certificate_file, key_file = (self._credentials / name for name in _CREDENTIALS)
            context.load_cert_chain(certificate_file, key_file)

        return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context))

    @property
    def pid(self) -> int:
        """The process, once it is started."""
        assert self._process is not None, "start it first"
        return self._process.pid

    def memory(self) -> int:
        """Return the bytes of memory that the process has."""
        statm = Path(f"/proc/{self.pid}/statm").read_text()
        return int(statm.split()[1]) * _PAGE

    async def series(self) -> int:
        """Return how many lines the agent's metrics have."""
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://{self.address}:8080/metrics") as response,
        ):
            text = await response.read()

        (self._folder / "metrics").write_bytes(text)
        return text.count(b"\n")

    def findings(self) -> list[FuzzFinding]:
        """Tell what was wrong since the last time."""
        found = [self._judge(line) for line in self._new(self._log)]
        found += [self._block(callback) for callback in self.callbacks()]
        if self._process is not None and self._process.returncode is not None:
            found.append(
                FuzzFinding("no agent ends", f"{self.name}: {self._log.read_text()[-2000:]}")
            )

        return [each for each in found if each is not None]

    def callbacks(self) -> list[dict[str, Any]]:
        """Return what the meter has written about callbacks since the last time."""
        reports = (self._report, self._report.with_name(self._report.name + measuring.ADMISSION))
        return [json.loads(line) for report in reports for line in self._new(report)]

    def _new(self, path: Path) -> list[str]:
        if not path.exists():
            return []

        with path.open() as file:
            file.seek(self._read.get(path, 0))
            text = file.read()
            whole = text.rpartition("\n")[0]
            self._read[path] = self._read.get(path, 0) + len(whole.encode()) + bool(whole)

        return whole.splitlines()

    def _block(self, line: dict[str, Any]) -> FuzzFinding | None:
        self.longest = max(self.longest, line["seconds"])
        own = line["seconds"] - line["collecting"]
        limit = self.callback_limit
        if own <= limit and line["seconds"] <= limit + measuring.COLLECTING:
            return None

        took = f"{line['seconds']:.3f} s, {line['collecting']:.3f} s of it garbage collection"
        text = f"{self.name}: {took}, in {line['what']}\n{line['stack']}"
        return FuzzFinding("the event loop is never blocked", text)

    def _judge(self, line: str) -> FuzzFinding | None:
        try:
            record = json.loads(line)
        except ValueError:
            return FuzzFinding("nothing unexpected is logged", f"{self.name}: {line[:1000]}")

        message = str(record.get("msg", ""))
        if "error" not in record and record.get("level") not in ("error", "critical"):
            return None

        if record.get("level") == "warning" and any(mark in message for mark in _GUARDS):
            self.guarded += 1
            return None

        text = f"{self.name}: {message[:500]}\n{str(record.get('error', ''))[-1500:]}"
        return FuzzFinding("nothing unexpected is logged", text)


def kubeconfig(url: str, token: str) -> dict[str, Any]:
    """Build a kubeconfig for an API server without TLS."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }


def written(config: dict[str, Any]) -> bytes:
    """Write a kubeconfig as YAML."""
    return yaml.safe_dump(config).encode()
