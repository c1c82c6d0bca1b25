"""Tells by which Sources somebody may make PodChaperons in a namespace, for the audit log.

A PodChaperon says itself from which cluster it comes. Whom the API server let make it is known
there only, but that was by a binding which the agent has made for a Source. Where a namespace has
one Source, it was that one.
"""

from __future__ import annotations

from typing import Final

from vnode.api import kinds, objects
from vnode.api.objects import Object
from vnode.targets import source_rbac

MOST: Final = 5
"""Sources that are named."""

_EVERYWHERE: Final = ""  # in place of a namespace


class SourceGrants:
    """The Sources that have bindings, by namespace."""

    def __init__(self) -> None:
        # Namespace -> key of the binding -> what it was made for; none empty.
        self._bound: dict[str, dict[str, str]] = {}
        self._known: dict[str, tuple[str, ...]] = {}  # answers, until a binding changes

    def of(self, namespace: str) -> tuple[str, ...]:
        """Return the Sources and ClusterSources that hold in a namespace, `Kind key` each."""
        found = self._known.get(namespace)
        if found is None:
            named = set[str]()
            for place in (namespace, _EVERYWHERE):
                named.update(self._bound.get(place, {}).values())

            found = self._known[namespace] = tuple(sorted(named)[:MOST])

        return found

    def on_binding(self, old: Object | None, new: Object | None) -> None:
        """Note that a binding of Sources came, changed or went; a subscriber of informers."""
        binding = objects.latest(old, new)
        place, key = objects.namespace(binding), objects.key(binding)
        granted = _granted(new) if new is not None else ""
        if self._bound.get(place, {}).get(key, "") == granted:
            return

        self._known.clear()
        bound = self._bound.setdefault(place, {})
        if granted:
            bound[key] = granted
        else:
            del bound[key]
            if not bound:
                del self._bound[place]


def _granted(binding: Object) -> str:
    """Return for whom a binding lets PodChaperons be made, "" for nobody."""
    if (binding.get("roleRef") or {}).get("name") != source_rbac.SOURCE_ROLE:
        return ""

    for key in source_rbac.binding_source(binding):
        return f"{kinds.scoped(kinds.SOURCES, objects.key_namespace(key)).kind} {key}"

    return ""
