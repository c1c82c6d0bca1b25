"""Frees the proxy pods of a source that would wait for vnode when it has gone.

Admiralty sets the grace period of its proxies to 0, vnode leaves it; nothing can change that of a
pod that is there. So when Admiralty ends such a pod, the API server keeps it, for a kubelet to
delete it for good, and there is none. And a pod may have a scheduling gate that only vnode opens.
"""

from __future__ import annotations

import asyncio
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock, happens_within
from vnode.api.errors import Conflict, NotFound
from vnode.api.objects import Object
from vnode.cli.migration.signing import WAITING
from vnode.cli.remove.report import RemovalReport, counted
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.runtime.supervisor import supervise

_AGAIN: Final = 10.0  # seconds between looks at a pod whose grace period has yet to end


async def open_gates(client: Client, report: RemovalReport) -> None:
    """Take vnode's scheduling gate off pods that wait."""
    opened = 0
    for pod in await client.list(kinds.PODS, field_selector=WAITING):
        gates = objects.spec(pod).get("schedulingGates") or []
        left = [gate for gate in gates if gate.get("name") != keys.AWAITS_STATE]
        if left == gates or objects.is_terminating(pod):
            continue

        body = objects.if_unchanged({"spec": {"schedulingGates": left}}, pod)
        try:
            await client.patch(kinds.PODS, objects.name(pod), body, objects.namespace(pod))
        except NotFound:
            continue
        except Conflict:
            changed = f"pod/{objects.key(pod)} has changed meanwhile and waits: run this again"
            report.left.append(changed)
            continue

        opened += 1

    if opened:
        report.say(f"opened the scheduling gate of {counted(opened, 'pod')}")


def hangs(pod: Object, clock: Clock) -> bool:
    """Tell whether a pod should be gone: Admiralty has let it go, and its grace period is over."""
    if not _is_let_go(pod):
        return False

    end = objects.parse_timestamp(str(objects.metadata(pod)["deletionTimestamp"]))
    return end is not None and end <= clock.now()


def _is_let_go(pod: Object) -> bool:
    held = any(name.startswith(keys.PREFIX) for name in objects.finalizers(pod))
    return objects.is_terminating(pod) and bool(objects.node_name(pod)) and not held


def _is_ours(pod: Object) -> bool:
    """Tell whether a bound pod keeps its grace period: vnode's webhook has admitted it."""
    grace = objects.spec(pod).get("terminationGracePeriodSeconds")
    return bool(objects.node_name(pod)) and grace != 0


async def finish(client: Client, clock: Clock, report: RemovalReport) -> None:
    """Delete for good the proxies that hang now."""
    ended = 0
    for pod in await client.list(kinds.PODS, field_selector=keys.PROXY_PODS):
        if _is_ours(pod) and hangs(pod, clock):
            ended += await _delete(client, pod)

    if ended:
        report.say(f"deleted {counted(ended, 'pod')} that Admiralty had let go")


async def finish_all(client: Client, clock: Clock, report: RemovalReport) -> None:
    """Do so with each that hangs from now on, until vnode has admitted none that are left."""
    informer = Informer(client, kinds.PODS, field_selector=keys.PROXY_PODS)
    changed = asyncio.Event()
    informer.subscribe(lambda _old, _new: changed.set())
    async with supervise() as tasks:
        tasks.start(informer.run(), "proxy-pods")
        await informer.synced.wait()
        while left := list(filter(_is_ours, informer.store.values())):
            changed.clear()
            for pod in left:
                if hangs(pod, clock) and await _delete(client, pod):
                    report.say(f"pod/{objects.key(pod)} deleted")

            await happens_within(changed, _AGAIN if any(map(_is_let_go, left)) else None)


async def _delete(client: Client, pod: Object) -> bool:
    try:
        await client.delete(
            kinds.PODS, objects.name(pod), objects.namespace(pod), grace=0, uid=objects.uid(pod)
        )
    except NotFound:
        return False

    return True
