"""Holds pods for Permit plugins after a target was chosen: for gangs, quotas, other controllers.

Each plugin that returned WAIT has its own deadline. The pod goes on when all of them have allowed
it, and gives its target back when one rejects it or lets its deadline pass.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

from vnode.api.clock import Clock
from vnode.scheduling import status
from vnode.scheduling.status import SUCCESS, Status


class WaitingPod:
    """A held pod; plugins find it in `Handle.waiting` and decide on it."""

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
        """The plugins that have not decided yet."""
        return tuple(self._pending)

    def allow(self, plugin: str) -> None:
        """Record that the plugin holds the pod no longer."""
        self._pending.pop(plugin, None)
        if not self._pending:
            self._decide(SUCCESS)

    def reject(self, plugin: str, message: str) -> None:
        """Reject the pod for the plugin, whatever others decide later."""
        self._decide(status.unschedulable(message).with_plugin(plugin))

    async def wait(self, clock: Clock) -> Status:
        """Return the verdict as soon as there is one; a deadline that passes is a rejection."""
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
    """The held pods, by UID."""

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(tuple(self._pods.values()))

    def get(self, uid: str) -> WaitingPod | None:
        """Return the held pod; None if it is not held."""
        return self._pods.get(uid)

    def add(self, pod: WaitingPod) -> None:
        """Show the pod to plugins from now on."""
        self._pods[pod.uid] = pod

    def remove(self, uid: str) -> None:
        """Drop a pod that is no longer held."""
        self._pods.pop(uid, None)
