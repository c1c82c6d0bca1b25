"""Calling plugins: whatever one raises becomes a Status that names it.

A plugin may be anybody's. Its bug costs the pod at hand an attempt, and never the scheduler. Each
answer is stamped with the plugin's name, by which users and the queue tell whose no it was.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from vnode.api.objects import Object
from vnode.scheduling import status
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.plugin import MAX_SCORE, FilterPlugin, Plugin, ScorePlugin
from vnode.scheduling.snapshot import VirtualNodeInfo
from vnode.scheduling.status import SUCCESS, Status

_log = logging.getLogger(__name__)


def first_no(
    filters: list[FilterPlugin], state: CycleState, pod: Object, node: VirtualNodeInfo
) -> Status | None:
    """The first plugin's no, stamped with its name; None if the node passes them all."""
    for plugin in filters:
        try:
            said = plugin.filter(state, pod, node)
        except Exception as failure:  # noqa: BLE001 - a plugin's bug is that plugin's status
            return broke(plugin, failure)

        if said is not SUCCESS and not said.is_success:
            return said.by(plugin.NAME)

    return None


def scores(
    plugin: ScorePlugin, state: CycleState, pod: Object, nodes: list[VirtualNodeInfo]
) -> dict[str, int]:
    """The plugin's normalised scores; ValueError if one is out of range."""
    scores = {node.name: plugin.score(state, pod, node) for node in nodes}
    plugin.normalize_score(state, pod, scores)
    for name, score in scores.items():
        if not 0 <= score <= MAX_SCORE:
            raise ValueError(f"score {score} of {name} is not within 0..{MAX_SCORE}")

    return scores


def ask(plugin: Plugin, method: Callable[..., Status], *args: object) -> Status:
    """The plugin's answer at one extension point."""
    try:
        return method(*args).by(plugin.NAME)
    except Exception as failure:  # noqa: BLE001 - a plugin's bug is that plugin's status
        return broke(plugin, failure)


def tell(plugin: Plugin, method: Callable[..., None], *args: object) -> None:
    """For points that must not fail: if they do, the others are told all the same."""
    try:
        method(*args)
    except Exception:  # noqa: BLE001 - see above
        _log.exception("plugin %s broke in %s", plugin.NAME, method.__name__)


def broke(plugin: Plugin, failure: Exception) -> Status:
    """The status of a plugin that raised."""
    return status.error(f"plugin {plugin.NAME} broke: {failure!r}").by(plugin.NAME)
