"""Keeps the credentials of one exec plugin: run ahead of their end, and once more after a 401.

Every request calls it for its header, so all of them wait for the same run, and none starts another
one while the plugin is left alone after a failure. What a plugin gave is used until its end, also
while the plugin fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from vnode.api.clock import Clock, SystemClock
from vnode.api.durations import TICK
from vnode.api.errors import ConfigError, Unreachable
from vnode.kube import exec_credentials, exec_runs
from vnode.kube.credentials import DEFAULT_LIFE, EARLY, LIMIT
from vnode.kube.exec_credentials import ExecCredential, ExecSpec
from vnode.kube.exec_runs import ExecRunner, Lane
from vnode.telemetry import metrics

_RETRY_FIRST: Final = 1.0  # seconds after a failure
_RETRY_LIMIT: Final = 300.0  # seconds
_REJECTED_FIRST: Final = (
    10.0  # seconds between two runs after a 401; doubled while they do not help
)
_LEAST: Final = 5.0  # seconds between two runs, whatever life a plugin gives


class PluginCredentials:
    """Returns the Authorization header by the credential of a plugin; an `authorization`.

    `changed` is called when a run has changed `credential` or `failure`. With `certificates` the
    caller presents the client certificates that a plugin gives. If they are `kept`, a task calls
    `refresh` in time, and no request runs the plugin that has credentials to use.
    """

    def __init__(
        self,
        spec: ExecSpec,
        runner: ExecRunner | None = None,
        *,
        clock: Clock | None = None,
        changed: Callable[[], None] = lambda: None,
        certificates: bool = False,
        kept: bool = False,
    ) -> None:
        self.spec = spec
        self.credential: ExecCredential | None = None  # the last one, which may have ended
        self.wanted = asyncio.Event()  # set when the plugin is due sooner than `wait` has said
        self.failure = ""  # why the last run gave none; "" after a success
        self._runner = runner  # the process has one, else
        self._clock: Clock = clock or SystemClock()
        self._changed = changed
        self._certificates = certificates
        self._kept = kept
        self._lock = asyncio.Lock()  # held during a run
        self._due = float("-inf")  # monotonic; no run before it, but after a 401
        self._failures = 0  # in a row
        self._rejection = float("-inf")  # monotonic; no run after a 401 before it
        self._patience = _REJECTED_FIRST  # seconds that the next run after a 401 adds to it

    async def __call__(self) -> str | None:
        """Return the header; Unreachable if there is no credential that lasts, TimeoutError
        after LIMIT, ConfigError if there is nothing that a header can have."""
        # What lasts is used while another task runs the plugin, which may take long.
        if self.lasting is None or not (self._kept or self._lock.locked()):
            async with asyncio.timeout(LIMIT):
                await self.refresh()

        credential = self.lasting
        if credential is None:
            raise Unreachable(self.failure or f"exec plugin {self.spec.command!r} was not run yet")

        if not credential.token and self._certificates:
            return None

        if not credential.token:
            raise ConfigError(
                "the exec plugin gave no token; use one that gives a token, not a certificate"
            )

        return f"Bearer {credential.token}"

    @property
    def lasting(self) -> ExecCredential | None:
        """The credential, None if there is none or it has ended."""
        found = self.credential
        ended = found is None or (found.ends is not None and found.ends <= self._clock.now())
        return None if ended else found

    @property
    def wait(self) -> float:
        """Seconds until the plugin is due to run."""
        return max(self._due - self._clock.monotonic(), TICK)

    async def refresh(self) -> None:
        """Run the plugin if it is due; a failure is kept."""
        if self._clock.monotonic() < self._due:
            return

        async with self._lock:
            if self._clock.monotonic() >= self._due:
                await self._run()

    async def rejected(self, header: str | None) -> bool:
        """Run the plugin after a 401, at a bounded rate; tell whether to try with another header.

        `header` is the one that was refused.
        """
        async with self._lock:
            if self._header == header:
                now = self._clock.monotonic()
                if now < self._rejection:
                    return False

                self._rejection = now + self._patience  # also if the run is broken off
                self._patience = min(self._patience * 2, _RETRY_LIMIT)
                await self._run_whole()
                if self._header != header:
                    self._patience = _REJECTED_FIRST

            return self._header not in (None, header)

    @property
    def _header(self) -> str | None:
        return (
            f"Bearer {self.credential.token}" if self.credential and self.credential.token else None
        )

    async def _run_whole(self) -> None:
        """Run the plugin; have others do so if the caller has no time for it, as a probe."""
        try:
            await self._run()
        except asyncio.CancelledError:
            self._due = self._clock.monotonic()
            self.wanted.set()
            raise

    async def _run(self) -> None:
        before, begun = (self.credential, self.failure), self._clock.monotonic()
        try:
            runner = self._runner or exec_runs.shared()
            found = await exec_credentials.ask(self.spec, runner, lane=self._lane)
            life = self._life(found)
        except Unreachable as error:
            self._failures += 1
            self.failure = str(error)
            delay = min(_RETRY_FIRST * 2 ** min(self._failures - 1, 10), _RETRY_LIMIT)
        else:
            self.credential, self.failure, self._failures = found, "", 0
            delay = max(life - EARLY, life / 2, _LEAST)

        now = self._clock.monotonic()
        if self.spec.provider:
            outcome = "failed" if self.failure else "succeeded"
            metrics.EXEC_PLUGIN_SECONDS.labels(self.spec.provider, outcome).observe(now - begun)

        self._due = now + delay
        if before != (self.credential, self.failure):
            self._changed()

    @property
    def _lane(self) -> Lane:
        """Where the plugin waits for its turn: what works is held up by nothing that does not."""
        if self._failures:
            return Lane.FAILING

        return Lane.FIRST if self.credential is None else Lane.RENEWING

    def _life(self, found: ExecCredential) -> float:
        if found.ends is None:
            return DEFAULT_LIFE

        life = (found.ends - self._clock.now()).total_seconds()
        if life <= 0:
            raise Unreachable(
                f"exec plugin {self.spec.command!r} gave credentials that have ended already, on "
                f"{found.ends:%Y-%m-%d %H:%M} UTC"
            )

        return life
