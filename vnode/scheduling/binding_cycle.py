"""Runs the plugins of a profile after a pod has won a place: the binding cycle.

Unlike the scheduling cycle it may wait, and runs for many pods at once. Whoever calls it undoes by
`unreserve` what `reserve` has done, if the pod is not bound after all.
"""

from __future__ import annotations

from collections.abc import Iterable

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.scheduling import plugin_calls
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.plugin import (
    BindPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PreBindPlugin,
    ReservePlugin,
)
from vnode.scheduling.status import SKIP, SUCCESS, Status
from vnode.scheduling.waiting_pods import WaitingPod, WaitingPods
from vnode.telemetry.metrics import extension_point


class BindingCycle:
    """Holds the plugins of the binding cycle's extension points, in the profile's order."""

    def __init__(self, plugins: Iterable[Plugin], waiting: WaitingPods, clock: Clock) -> None:
        plugins = tuple(plugins)
        self._waiting = waiting
        self._clock = clock
        self._reserve = tuple(p for p in plugins if isinstance(p, ReservePlugin))
        self._permit = tuple(p for p in plugins if isinstance(p, PermitPlugin))
        self._pre_bind = tuple(p for p in plugins if isinstance(p, PreBindPlugin))
        self._bind = tuple(p for p in plugins if isinstance(p, BindPlugin))
        self._post_bind = tuple(p for p in plugins if isinstance(p, PostBindPlugin))

    def reserve(self, state: CycleState, pod: Object, node_name: str) -> Status:
        """Run all Reserve plugins until one rejects the pod, which undoes all of them."""
        with extension_point("Reserve"):
            for plugin in self._reserve:
                status = plugin_calls.call(plugin, plugin.reserve, state, pod, node_name)
                if not status.is_success:
                    self.unreserve(state, pod, node_name)
                    return status

            return SUCCESS

    def unreserve(self, state: CycleState, pod: Object, node_name: str) -> None:
        """Undo `reserve`, last plugin first."""
        for plugin in reversed(self._reserve):
            plugin_calls.notify(plugin, plugin.unreserve, state, pod, node_name)

    async def permit(self, state: CycleState, pod: Object, node_name: str) -> Status:
        """Run all Permit plugins; if some return WAIT, hold the pod until it is decided."""
        timeouts: dict[str, float] = {}
        for plugin in self._permit:
            try:
                status, seconds = plugin.permit(state, pod, node_name)
            except Exception as failure:  # noqa: BLE001 - a plugin's bug is that plugin's status
                return plugin_calls.failed(plugin, failure)

            if status.is_wait:
                timeouts[plugin.NAME] = seconds
            elif not status.is_success:
                return status.with_plugin(plugin.NAME)

        if not timeouts:
            return SUCCESS

        with extension_point("Permit"):
            return await self._hold(objects.uid(pod), node_name, timeouts)

    async def pre_bind(self, state: CycleState, pod: Object, node_name: str) -> Status:
        """Run all PreBind plugins until one rejects the pod."""
        with extension_point("PreBind"):
            for plugin in self._pre_bind:
                status = await plugin_calls.awaited(plugin, plugin.pre_bind, state, pod, node_name)
                if not status.is_success:
                    return status

            return SUCCESS

    async def bind(self, state: CycleState, pod: Object, node_name: str) -> Status:
        """Run Bind plugins until one does not SKIP; SKIP if the caller is to bind the pod."""
        with extension_point("Bind"):
            for plugin in self._bind:
                status = await plugin_calls.awaited(plugin, plugin.bind, state, pod, node_name)
                if not status.is_skip:
                    return status

            return SKIP

    def post_bind(self, state: CycleState, pod: Object, node_name: str) -> None:
        """Notify the PostBind plugins."""
        for plugin in self._post_bind:
            plugin_calls.notify(plugin, plugin.post_bind, state, pod, node_name)

    async def _hold(self, uid: str, node_name: str, timeouts: dict[str, float]) -> Status:
        held = WaitingPod(uid, node_name, timeouts)
        self._waiting.add(held)
        try:
            return await held.wait(self._clock)
        finally:
            self._waiting.remove(uid)
