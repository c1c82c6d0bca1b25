"""Keeps all gangs by the pods that name them; fed by the informer of proxy pods.

A pod in no gang costs a look at its labels and annotations when it changes, and the lookup of its
UID when it is scheduled, bound and allowed to run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from vnode.api import objects
from vnode.api.listeners import Listeners
from vnode.api.objects import Object
from vnode.gangs import deciding, earlier_steps, members, membership
from vnode.gangs.earlier_steps import EarlierSteps
from vnode.gangs.gang import Gang
from vnode.gangs.kept_room import KeptRoom
from vnode.gangs.members import GangMember
from vnode.gangs.membership import GangKey, GroupApi
from vnode.gangs.pod_groups import NO_GANG, GroupStanding

FindGroup = Callable[[GangKey], GroupStanding]
"""Returns what is known of a PodGroup; it may begin to watch for it."""


class Gangs:
    """All gangs that have pods; `find_group` tells of PodGroups."""

    def __init__(self, find_group: FindGroup) -> None:
        self._find_group = find_group
        self._gangs: dict[GangKey, Gang] = {}
        self._by_uid: dict[str, Gang] = {}
        self._earlier = EarlierSteps()
        self._changed: Listeners[Gang] = Listeners()
        self._started: Listeners[Gang] = Listeners()
        self._unplaced: Listeners[Gang] = Listeners()
        self.kept: KeptRoom | None = None
        """The room that is kept for a gang."""

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._by_uid)

    def subscribe(self, changed: Callable[[Gang], None]) -> None:
        """Call `changed` with each gang that has other members than before, or whose group is."""
        self._changed.add(changed)

    def on_start(self, started: Callable[[Gang], None]) -> None:
        """Call `started` with each gang of which enough are bound: all that are may run."""
        self._started.add(started)

    def on_unplaced(self, unplaced: Callable[[Gang], None]) -> None:
        """Call `unplaced` with each gang that no target takes, when that is found."""
        self._unplaced.add(unplaced)

    def values(self) -> list[Gang]:
        """Return all gangs."""
        return list(self._gangs.values())

    def keys_of(self, api: GroupApi) -> list[GangKey]:
        """Return the gangs whose groups are of that API."""
        return [key for key in self._gangs if key.api is api]

    def get(self, key: GangKey) -> Gang | None:
        """Return the gang of that key, if it has pods."""
        return self._gangs.get(key)

    def of(self, uid: str) -> Gang | None:
        """Return the gang of a pod; None for one in none, or whose group asks for nothing."""
        gang = self._by_uid.get(uid)
        return None if gang is None or self.minimum(gang) == NO_GANG else gang

    def standing(self, gang: Gang) -> GroupStanding:
        """Return how many pods of a gang start together, or why that is not known.

        Earlier steps do not count. Once some have done their work, it is as many as are left.
        """
        found = self._read(gang)
        if found.minimum and (steps := self._earlier.count(gang.key)):
            found = dataclasses.replace(found, minimum=max(1, found.minimum - steps))

        if not gang.is_spent or not found.minimum:
            return found

        return GroupStanding(max(1, min(found.minimum, gang.members.present)))

    def _read(self, gang: Gang) -> GroupStanding:
        if gang.key.api is GroupApi.ANNOTATION:
            if gang.said is None or gang.said[0] != gang.version:
                gang.said = gang.version, deciding.annotated(gang)

            return gang.said[1]

        return self._find_group(gang.key)

    def minimum(self, gang: Gang) -> int | None:
        """Return how many pods of a gang start together; None if that is not known."""
        return self.standing(gang).minimum

    def hold(self, pod: Object) -> str:
        """Return why a pod may not be tried yet, with the cure; "" if it may."""
        uid = objects.uid(pod)
        gang = self.of(uid)
        return "" if gang is None else deciding.hold(gang, gang.members[uid], self.standing(gang))

    def may_run(self, uid: str) -> bool:
        """Tell whether a pod that is bound may run: so many of its gang are as it takes."""
        gang = self.of(uid)
        return gang is None or self.is_started(gang)

    def is_started(self, gang: Gang) -> bool:
        """Tell whether enough pods of a gang could run at some time, and some are still bound."""
        if not gang.is_started:
            minimum = self.minimum(gang)
            if minimum is not None and gang.bound() and gang.members.placed >= minimum:
                self._start(gang)

        return gang.is_started

    def saw_reserved(self, uid: str, *, reserved: bool) -> None:
        """Note whether the target keeps a place for a pod that is bound and may not run yet.

        What was reserved when it was bound may be lost if the agent has ended meanwhile.
        """
        gang = self._by_uid.get(uid)
        if gang is not None and gang.members.reserve(uid, reserved=reserved) and reserved:
            self.is_started(gang)

    def saw_allowed(self, uid: str) -> None:
        """Note that a pod was allowed to run, perhaps by a former leader: its gang has started."""
        gang = self._by_uid.get(uid)
        if gang is not None and not gang.is_started and uid in gang.bound():
            gang.is_resumed = True
            self._start(gang)
            self._changed.call(gang)

    def spend(self, gang: Gang) -> None:
        """Let the pods that are left of a gang start without those that have done their work."""
        gang.is_spent = True
        self._changed.call(gang)

    def saw_unplaced(self, uid: str, why: str) -> None:
        """Note that no target takes a pod of a gang that has not started."""
        gang = self._by_uid.get(uid)
        if gang is not None and not gang.is_started:
            gang.unplaced = why
            self._unplaced.call(gang)

    def recheck(self, key: GangKey) -> None:
        """Look at a gang again whose group has changed."""
        if gang := self._gangs.get(key):
            self.is_started(gang)
            self._changed.call(gang)

    def on_pod(self, old: Object | None, new: Object | None) -> None:
        """Take the change of a proxy pod."""
        if new is None:
            if old is not None:
                self._forget(old)

            return

        uid, says = objects.uid(new), membership.of(new)
        if says is not None and (step := earlier_steps.step_of(new)):
            if self._earlier.put(says.key, uid, step):
                self.recheck(says.key)

            return

        known = self._by_uid.get(uid)
        if known is not None and (says is None or says.key != known.key):
            self._remove(uid)

        if says is not None:
            self._put(uid, members.member(new, says))

    def _put(self, uid: str, present: GangMember) -> None:
        key = present.says.key
        gang = self._gangs.get(key)
        if gang is None:
            gang = self._gangs[key] = Gang(key)

        before = gang.members.put(uid, present)
        self._by_uid[uid] = gang
        if before is not None and before.stands_as(present):
            if objects.spec(before.pod) == objects.spec(present.pod):
                present.shape = before.shape
            else:
                gang.version += 1

            return

        self._settle(gang, uid, is_waiting=present.is_waiting)

    def _forget(self, pod: Object) -> None:
        uid, says = objects.uid(pod), membership.of(pod)
        self._remove(uid)
        if says is not None:
            self._earlier.remove(says.key, uid)

    def _remove(self, uid: str) -> None:
        gang = self._by_uid.pop(uid, None)
        if gang is None:
            return

        gang.members.remove(uid)
        self._settle(gang, uid, is_waiting=False)
        if not gang.members:
            del self._gangs[gang.key]

    def _settle(self, gang: Gang, uid: str, *, is_waiting: bool) -> None:
        gang.version += 1
        if not is_waiting:
            gang.forget(uid)

        if not gang.bound():
            gang.is_started = gang.is_resumed = False  # those that come now are another gang

        self.is_started(gang)
        self._changed.call(gang)

    def _start(self, gang: Gang) -> None:
        gang.is_started = True
        gang.is_spent, gang.unplaced = False, ""
        self._started.call(gang)
