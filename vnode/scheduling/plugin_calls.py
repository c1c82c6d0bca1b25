"""Calls plugins: whatever one raises becomes a Status that names it.

A plugin may be anybody's. Its bug costs the pod at hand an attempt, and never the scheduler. Each
status is stamped with the plugin's name, by which users and the queue tell who rejected the pod.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence

from vnode.api.objects import Object
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.plugin import MAX_SCORE, FilterPlugin, Plugin, ScorePlugin
from vnode.scheduling.snapshot import VirtualNodeInfo
from vnode.scheduling.status import SUCCESS, Status, error

_log = logging.getLogger(__name__)


def first_rejection(
    filters: Sequence[FilterPlugin],
    state: CycleState,
    pod: Object,
    node: VirtualNodeInfo,
    guesses: Sequence[FilterPlugin] = (),
) -> Status | None:
    """Return the first status that is no success, with its plugin; None if the node passes.

    One that is pending counts only if no other of `filters` rejects the node, and then `guesses`
    are not asked.
    """
    plugin: FilterPlugin | None = None
    pending = None
    try:
        for plugin in filters:
            status = plugin.filter(state, pod, node)
            if status is SUCCESS or status.is_success:
                continue

            if not status.is_pending:
                return status.with_plugin(plugin.NAME)

            pending = pending or status.with_plugin(plugin.NAME)

        for plugin in () if pending is not None else guesses:
            status = plugin.filter(state, pod, node)
            if status is not SUCCESS and not status.is_success:
                return status.with_plugin(plugin.NAME)
    except Exception as failure:  # noqa: BLE001 - a plugin's bug is that plugin's status
        assert plugin is not None
        return failed(plugin, failure)

    return pending


class NodeRejections:
    """Runs filters for one pod, once for each node."""

    def __init__(self, filters: Sequence[FilterPlugin], state: CycleState, pod: Object) -> None:
        self.filters = filters
        self._state = state
        self._pod = pod
        self._found: dict[str, Status | None] = {}

    def __call__(self, node: VirtualNodeInfo) -> Status | None:
        """Return the first rejection of a node; None if it passes."""
        if node.name not in self._found:
            self._found[node.name] = first_rejection(self.filters, self._state, self._pod, node)

        return self._found[node.name]


def scores(
    plugin: ScorePlugin, state: CycleState, pod: Object, nodes: list[VirtualNodeInfo]
) -> dict[str, int]:
    """Return the plugin's normalised scores; ValueError if one is out of range."""
    scores = {node.name: plugin.score(state, pod, node) for node in nodes}
    plugin.normalize_score(state, pod, scores)
    for name, score in scores.items():
        if not 0 <= score <= MAX_SCORE:
            raise ValueError(f"score {score} of {name} is not within 0..{MAX_SCORE}")

    return scores


def call(plugin: Plugin, method: Callable[..., Status], *args: object) -> Status:
    """Return the plugin's status at one extension point."""
    try:
        return method(*args).with_plugin(plugin.NAME)
    except Exception as failure:  # noqa: BLE001 - a plugin's bug is that plugin's status
        return failed(plugin, failure)


async def awaited(
    plugin: Plugin, method: Callable[..., Awaitable[Status]], *args: object
) -> Status:
    """Return the plugin's status at one extension point that may wait."""
    try:
        return (await method(*args)).with_plugin(plugin.NAME)
    except Exception as failure:  # noqa: BLE001 - a plugin's bug is that plugin's status
        return failed(plugin, failure)


def notify(plugin: Plugin, method: Callable[..., None], *args: object) -> None:
    """Call a method that must not fail; if it does, log it and go on."""
    try:
        method(*args)
    except Exception:  # noqa: BLE001 - see above
        _log.exception("plugin %s failed in %s", plugin.NAME, method.__name__)


def failed(plugin: Plugin, failure: Exception) -> Status:
    """Return the status of a plugin that raised."""
    return error(f"plugin {plugin.NAME} failed: {failure!r}").with_plugin(plugin.NAME)
