"""Knows when all pods of a target have to be looked at: not at each change of its link's health.

A target that connects says what it is about, which is a change each time, and may have thousands of
pods. Before our chaperons there are all known nothing is concluded about any.
"""

from __future__ import annotations

from vnode.runtime.link import Link


class TargetLooks:
    """Keeps account of one link."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._seen: object = None

    def is_due(self) -> bool:
        """Tell whether its pods are to be looked at now; to be called at each change of health."""
        link = self._link
        seen = (link.synced, link.health.healthy, link.answers, link.runs_vnode)
        changed, self._seen = seen != self._seen, seen
        return changed and link.synced and link.answers
