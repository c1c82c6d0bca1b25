"""Reads from the stores what is known of a set: its Targets, and the profiles that it selects.

There may be thousands of either, and other sets, pods and probes do not wait for one set: so all of
them are gone through in slices. What may not be mixed is read at once: which profiles there are,
and whether they are served. What changes meanwhile has the set looked at again.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.api.slices import in_slices
from vnode.runtime.served_informer import ServedInformer
from vnode.targets.profiles.config import InventoryConfig
from vnode.targets.target_lister import TargetLister
from vnode.targetsets import made_targets, reporting, spec
from vnode.targetsets.deciding import SetFacts
from vnode.targetsets.spec import TargetSetSpec
from vnode.targetsets.writing import TargetWriter


class SetReader:
    """Reads for one term; `writer` knows which of its writes the stores do not show yet."""

    def __init__(
        self,
        targets: TargetLister,
        inventory: ServedInformer,
        config: InventoryConfig,
        writer: TargetWriter,
        clock: Clock,
    ) -> None:
        self._targets = targets
        self._inventory = inventory
        self._config = config
        self._writer = writer
        self._clock = clock

    async def made(self, obj: Object) -> dict[str, Object] | None:
        """Return the Targets that a set has made, by name; None if one is older than our write."""
        made: dict[str, Object] = {}
        there = self._targets.of_namespace(objects.namespace(obj))
        async for target in in_slices(there, self._clock):
            if made_targets.is_of(obj, target):
                made[objects.name(target)] = target
                if self._writer.pending(target):
                    return None

        return made

    async def facts(
        self,
        obj: Object,
        wanted: TargetSetSpec,
        made: Mapping[str, Object],
        noticed: Mapping[str, datetime],
    ) -> SetFacts:
        """Return what a decision about a set depends on; the profiles are those of this moment."""
        # At once: profiles that go with their kind are not gone.
        is_served, profiles = self._inventory.is_served, list(self._inventory.values())
        selection, selected, is_empty = wanted.selection, dict[str, Object](), True
        async for profile in in_slices(profiles, self._clock):
            if self._config.trusts(objects.namespace(profile)) and selection.in_scope(profile):
                is_empty = False
                if selection.matches(profile):
                    selected[objects.key(profile)] = profile

        known = {n: made_targets.read(t) async for n, t in in_slices(made.items(), self._clock)}
        taken: dict[str, str] = {}
        async for name in in_slices(map(objects.name, selected.values()), self._clock):
            if name not in made and (why := made_targets.why_taken(obj, name, self._targets)):
                taken[name] = why

        return SetFacts(
            wanted,
            selected if is_served else None,
            known,
            taken,
            noticed,
            self._clock.now(),
            is_empty=is_empty,
            removed=spec.removed(obj),
            held=reporting.is_held(obj),
            confirmed=spec.is_confirmed(obj),
        )
