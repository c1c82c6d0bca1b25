"""Pods that Permit plugins hold after a target was chosen: gangs, quotas, an external word.

Each plugin that said WAIT has its own deadline. The pod goes on when all of them allowed it, and
gives its target back when one rejects it or lets its deadline pass.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

from vnode.api.clock import Clock
from vnode.scheduling import status
from vnode.scheduling.status import SUCCESS, Status


class WaitingPod:
    """One held pod; plugins find it in `Handle.waiting` and decide it."""

    def __init__(self, uid: str, node_name: str, timeouts: Mapping[str, float]) -> None:
        self.uid = uid
        self.node_name = node_name
        # Plugins that have not allowed it yet -> seconds that they may take. Empty: it may go.
        self._pending = dict(timeouts)
        # The verdict; SUCCESS is set when `_pending` has become empty.
        self._verdict: Status | None = None if timeouts else SUCCESS
        self._decided = asyncio.Event()
        if not timeouts:
            self._decided.set()

    @property
    def pending_plugins(self) -> tuple[str, ...]:
        """Those whose word is awaited."""
        return tuple(self._pending)

    def allow(self, plugin: str) -> None:
        """The plugin holds it no longer."""
        self._pending.pop(plugin, None)
        if not self._pending:
            self._decide(SUCCESS)

    def reject(self, plugin: str, message: str) -> None:
        """The plugin refuses it, whatever others say later."""
        self._decide(status.unschedulable(message).by(plugin))

    async def wait(self, clock: Clock) -> Status:
        """The verdict, as soon as there is one, or a rejection when a deadline passes."""
        async with asyncio.TaskGroup() as group:
            timers = [
                group.create_task(
                    self._expire(clock, plugin, seconds), name=f"permit of {plugin} for {self.uid}"
                )
                for plugin, seconds in self._pending.items()
            ]
            await self._decided.wait()
            for timer in timers:
                timer.cancel()

        return self._verdict or SUCCESS

    async def _expire(self, clock: Clock, plugin: str, seconds: float) -> None:
        await clock.sleep(seconds)
        if plugin in self._pending:
            self.reject(plugin, f"not permitted within {seconds:g} s")

    def _decide(self, verdict: Status) -> None:
        if self._verdict is None:
            self._verdict = verdict
            self._decided.set()


class WaitingPods:
    """The held pods by UID."""

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(tuple(self._pods.values()))

    def get(self, uid: str) -> WaitingPod | None:
        """The held pod, if it is one."""
        return self._pods.get(uid)

    def add(self, pod: WaitingPod) -> None:
        """From now on plugins see it."""
        self._pods[pod.uid] = pod

    def remove(self, uid: str) -> None:
        """It is no longer held."""
        self._pods.pop(uid, None)
