"""What a candidate of a gang tells its target: which gang it is of, and what that takes. Pure.

Targets see candidates of several sources, which know nothing of each other. So candidates carry
what decides between two gangs that keep each other from being complete (`conflicts`).
"""

from __future__ import annotations

from typing import Final

import msgspec

from vnode.api import documents, keys, objects
from vnode.api.objects import Object
from vnode.gangs.gang import Gang

_LIMIT: Final = 1024  # characters


class GangMark(msgspec.Struct, frozen=True, order=True):
    """The mark; `id` is that of the gang in its source."""

    id: str
    minimum: int
    since: str
    priority: int = 0


def text(gang: Gang, minimum: int) -> str:
    """Return the annotation for candidates of a gang."""
    name = "/".join((gang.key.api.value, gang.key.namespace, gang.key.name))
    mark = GangMark(name, minimum, gang.members.since, gang.members.priority)
    return msgspec.json.encode(mark).decode()


def read(chaperon: Object) -> GangMark | None:
    """Return the mark of a chaperon; None if it has none that can be read."""
    found = objects.annotations(chaperon).get(keys.GANG_MARK)
    return documents.read_note(found, GangMark) if found and len(found) <= _LIMIT else None
