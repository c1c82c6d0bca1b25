"""Plays kube-scheduler and the kubelet of the honest target, for the pods that are well formed.

The candidate scheduler's calls go to the agent's extender as the real one's do.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final

import aiohttp

from tests.apiserver.server import APIServer
from tests.apiserver.status import StatusError
from tests.apiserver.store import Change
from vnode.api import kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object

NODE: Final = "real-0"
_AGAIN: Final = 1.0  # seconds
_CALL: Final = aiohttp.ClientTimeout(total=20)


@dataclass(slots=True)
class TargetPlayers:
    """Schedules and runs delegates; `addresses` are those that pods have had, by UID."""

    server: APIServer
    session: aiohttp.ClientSession
    extender: str
    addresses: dict[str, str] = field(default_factory=dict)
    _number: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _stopped: bool = False

    def follow(self) -> None:
        """Hear of all changes from now on."""
        self.server.store.changed.add(self._on_change)

    async def stop(self) -> None:
        """Schedule nothing more."""
        self._stopped = True
        for task in self._tasks:
            task.cancel()

        if self._tasks:
            await asyncio.wait(self._tasks)

    def _on_change(self, kind: Kind, change: Change) -> None:
        pod = change.new
        if self._stopped:
            return

        if kind is kinds.POD_CHAPERONS and pod is None:
            self._collect(objects.uid(change.old or {}))

        if kind is not kinds.PODS or pod is None:
            return

        if objects.is_terminating(pod):
            self._later(lambda: self._end(pod))
        elif change.old is None:
            self._collect_orphan(pod)
            task = asyncio.create_task(self._schedule(pod), name=objects.key(pod))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif objects.spec(pod).get("nodeName") and not objects.spec(change.old).get("nodeName"):
            self._later(lambda: self._run(pod))

    def _later(self, act: object) -> None:
        asyncio.get_running_loop().call_soon(_attempt, act)

    async def _schedule(self, pod: Object) -> None:
        while self._is_there(pod):
            body = {
                "PodName": objects.name(pod),
                "PodNamespace": objects.namespace(pod),
                "PodUID": objects.uid(pod),
                "Node": NODE,
            }
            try:
                async with self.session.post(self.extender, json=body, timeout=_CALL) as answer:
                    if answer.status == 200 and not (await answer.json()).get("error"):
                        return
            except (aiohttp.ClientError, TimeoutError):
                pass

            await asyncio.sleep(_AGAIN)

    def _is_there(self, pod: Object) -> bool:
        found = self.server.store.get(kinds.PODS, objects.key(pod))
        same = found is not None and objects.uid(found) == objects.uid(pod)
        return same and not objects.is_terminating(found or {})

    def _run(self, pod: Object) -> None:
        self._number += 1
        address = f"10.1.{self._number // 250 % 250}.{self._number % 250 + 1}"
        self.addresses[objects.uid(pod)] = address
        now = self.server.writer.now()
        status = {
            "phase": "Running",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "startTime": now,
            "conditions": [
                {"type": each, "status": "True", "lastTransitionTime": now}
                for each in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
            ],
            "containerStatuses": [
                {
                    "name": container["name"],
                    "image": "",
                    "imageID": "",
                    "ready": True,
                    "restartCount": 0,
                    "state": {"running": {"startedAt": now}},
                }
                for container in objects.spec(pod).get("containers") or ()
            ],
        }
        self.server.writer.update(
            kinds.PODS,
            objects.key(pod),
            lambda old: {**old, "status": {**objects.status(old), **status}},
            subresource="status",
        )

    def _end(self, pod: Object) -> None:
        if objects.metadata(pod).get("deletionGracePeriodSeconds"):
            self.server.writer.delete(kinds.PODS, objects.key(pod), {"gracePeriodSeconds": 0})

    def _collect_orphan(self, pod: Object) -> None:
        """Delete a pod that was created after its owner had gone, as the collector does."""
        owner, chaperons = objects.controller_uid(pod), self.server.store.all(kinds.POD_CHAPERONS)
        if owner and not any(objects.uid(chaperon) == owner for chaperon in chaperons):
            self._collect(owner)

    def _collect(self, owner: str) -> None:
        for pod in self.server.store.all(kinds.PODS):
            if owner and objects.controller_uid(pod) == owner:
                key = objects.key(pod)
                self._later(lambda key=key: self.server.writer.delete(kinds.PODS, key))


def _attempt(act: object) -> None:
    assert callable(act)
    try:
        act()
    except StatusError as error:
        if error.code not in (404, 409, 422):
            raise
