"""A proxy pod goes only when its delegate has, also where chaperons lose their finalizers.

`vnode uninstall --delegates keep` takes them off, in the target and at any moment.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests import kit
from tests.fleets import SOURCE
from tests.integration.delegates import chaperon, delegate, free, make_link, release
from tests.kit import Fleet
from vnode.api import keys, kinds, objects
from vnode.api.clock import SystemClock
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.cli.remove import target_side
from vnode.cli.remove.report import RemovalReport
from vnode.cli.remove.source_side import Ends
from vnode.kube import endpoint
from vnode.kube.client import Client
from vnode.pods.source.status_writer import StatusWriter
from vnode.pods.source.termination import Termination
from vnode.runtime.link import Link
from vnode.runtime.link_health import UNREACHABLE, LinkHealth

C2 = TargetKey("", "c2")
KEPT = "example.com/kept"  # as a Job keeps its pods, to see how they end


def ending(client: Client, link: Link) -> Termination:
    links: Any = SimpleNamespace(get=lambda _node: link)
    mirror: Any = StatusWriter(client, SimpleNamespace(), SystemClock())  # type: ignore[arg-type]
    moved_none: Any = SimpleNamespace(
        mark=lambda _proxy: {}, waits=lambda _proxy, _chaperon: (False, None)
    )
    return Termination(client, links, mirror, lambda _node: True, SystemClock(), moved_none)


async def ending_pod(client: Client, namespace: str) -> Object:
    """Return a proxy pod that was deleted, and waits for us: no other scheduler looks at it."""
    body = kit.pod("web", annotations={}, schedulerName=keys.PROXY_SCHEDULER)
    body["metadata"]["finalizers"] = [keys.PREFIX + "any"]
    await client.create(kinds.PODS, body, namespace)
    await client.delete(kinds.PODS, "web", namespace)
    return await client.get(kinds.PODS, "web", namespace)


async def test_a_chaperon_that_has_lost_its_finalizer_does_not_speak_for_its_delegate(
    client: Client, pod_namespace: str
) -> None:
    """Our copy of it is older than that."""
    proxy = await ending_pod(client, pod_namespace)
    link = make_link(client, C2)
    lets_go = ending(client, link)
    known = await chaperon(client, pod_namespace, "web-abcde", objects.uid(proxy))
    link.chaperons.store.put(known)
    running = await delegate(client, known, objects.uid(proxy))
    await free(client, known)

    await lets_go.end(proxy, "n1")
    await kit.until_gone(client, kinds.POD_CHAPERONS, pod_namespace)
    link.chaperons.store.pop(objects.key(known))
    proxy = await client.get(kinds.PODS, "web", pod_namespace)  # others may have changed it
    assert await lets_go.end(proxy, "n1") is not None
    assert objects.finalizers(await client.get(kinds.PODS, "web", pod_namespace))

    await release(client, running)
    proxy = await client.get(kinds.PODS, "web", pod_namespace)
    assert await lets_go.end(proxy, "n1") is None
    await kit.until_gone(client, kinds.PODS, pod_namespace)


async def test_a_chaperon_of_which_no_event_has_come_ends_before_its_pod(
    client: Client, pod_namespace: str
) -> None:
    """A target's API server that was restored, or lags, shows less than there is."""
    proxy = await ending_pod(client, pod_namespace)
    lets_go = ending(client, make_link(client, C2))
    unseen = await chaperon(client, pod_namespace, "web-abcde", objects.uid(proxy))
    for _ in range(2):
        assert await lets_go.end(proxy, "n1") is not None
        there = await client.get(kinds.POD_CHAPERONS, "web-abcde", pod_namespace)
        assert objects.is_terminating(there)
        assert objects.finalizers(await client.get(kinds.PODS, "web", pod_namespace))

    await free(client, unseen)
    await kit.until_gone(client, kinds.POD_CHAPERONS, pod_namespace)
    proxy = await client.get(kinds.PODS, "web", pod_namespace)  # others may have changed it
    assert await lets_go.end(proxy, "n1") is None
    await kit.until_gone(client, kinds.PODS, pod_namespace)


async def held_pod(client: Client, namespace: str, **spec: Any) -> Object:
    """Return a bound pod that runs and was not deleted yet.

    A finalizer of others keeps it, so that a test can look at its end.
    """
    body = kit.pod("web", annotations={}, nodeName="n1", restartPolicy="Never", **spec)
    body["metadata"]["finalizers"] = [keys.PREFIX + "any", KEPT]
    await client.create(kinds.PODS, body, namespace)
    status = {"status": {"phase": "Running"}}
    return await client.patch(kinds.PODS, "web", status, namespace, subresource="status")


async def test_the_last_status_comes_home_before_the_finalizer_goes(
    client: Client, pod_namespace: str
) -> None:
    """Nothing was reconciled between what the chaperon said last, and its end."""
    proxy = await held_pod(client, pod_namespace)
    lets_go = ending(client, make_link(client, C2))
    ended = await chaperon(client, pod_namespace, "web-abcde", objects.uid(proxy))
    ended = {**ended, "status": {"phase": "Failed", "reason": "Ended"}}
    lets_go.saw_last(objects.key(proxy), ended)
    await free(client, ended)
    await client.discard(kinds.POD_CHAPERONS, ended)
    await client.delete(kinds.PODS, "web", pod_namespace)
    for _ in range(2):  # its status first, and when that is seen, its finalizers
        proxy = await client.get(kinds.PODS, "web", pod_namespace)
        assert keys.PREFIX + "any" in objects.finalizers(proxy)
        assert await lets_go.end(proxy, "n1") is None

    left = await client.get(kinds.PODS, "web", pod_namespace)
    assert objects.status(left)["phase"] == "Failed"
    assert objects.status(left)["reason"] == "Ended"
    assert objects.finalizers(left) == [KEPT]
    await client.patch(kinds.PODS, "web", {"metadata": {"finalizers": None}}, pod_namespace)
    await kit.until_gone(client, kinds.PODS, pod_namespace)


async def test_a_pod_that_nobody_will_finish_any_more_is_failed(
    client: Client, pod_namespace: str
) -> None:
    """Its Job waits for that, and would not replace it before."""
    await held_pod(client, pod_namespace)
    lets_go = ending(client, make_link(client, C2))
    await client.delete(kinds.PODS, "web", pod_namespace)
    for _ in range(2):  # its status first, and when that is seen, its finalizers
        proxy = await client.get(kinds.PODS, "web", pod_namespace)
        assert keys.PREFIX + "any" in objects.finalizers(proxy)
        assert await lets_go.end(proxy, "n1") is None

    left = await client.get(kinds.PODS, "web", pod_namespace)
    assert objects.status(left)["phase"] == "Failed"
    assert (objects.condition(left, "DisruptionTarget") or {})["status"] == "True"
    assert objects.finalizers(left) == [KEPT]
    await client.patch(kinds.PODS, "web", {"metadata": {"finalizers": None}}, pod_namespace)
    await kit.until_gone(client, kinds.PODS, pod_namespace)


@pytest.mark.parametrize(("asked", "passed"), [(None, None), (5, "5"), (0, "0")])
async def test_the_grace_period_of_a_deletion_is_passed_on(
    client: Client, pod_namespace: str, asked: int | None, passed: str | None
) -> None:
    proxy = await held_pod(client, pod_namespace, terminationGracePeriodSeconds=600)
    link = make_link(client, C2)
    summary = {"metadata": {"name": "singleton", "annotations": {keys.AGENT_VERSION: "1"}}}
    link.summaries.store.put(summary)
    ended = await chaperon(client, pod_namespace, "web-abcde", objects.uid(proxy))
    link.chaperons.store.put(ended)
    await client.delete(kinds.PODS, "web", pod_namespace, grace=asked)
    proxy = await client.get(kinds.PODS, "web", pod_namespace)
    assert await ending(client, link).end(proxy, "n1") is None

    there = await client.get(kinds.POD_CHAPERONS, "web-abcde", pod_namespace)
    assert objects.is_terminating(there)
    assert objects.annotations(there).get(keys.GRACE_PERIOD) == passed
    await free(client, ended)
    await client.patch(kinds.PODS, "web", {"metadata": {"finalizers": None}}, pod_namespace)
    await client.discard(kinds.PODS, proxy, grace=0)


async def test_a_target_that_does_not_answer_is_asked_nothing(
    client: Client, pod_namespace: str
) -> None:
    proxy = await held_pod(client, pod_namespace)
    link = make_link(client, C2)
    ended = await chaperon(client, pod_namespace, "web-abcde", objects.uid(proxy))
    link.chaperons.store.put(ended)
    link.set_health(LinkHealth(False, UNREACHABLE, "no answer", SystemClock().now()))
    await client.delete(kinds.PODS, "web", pod_namespace)
    proxy = await client.get(kinds.PODS, "web", pod_namespace)
    assert await ending(client, link).end(proxy, "n1") is None
    there = await client.get(kinds.POD_CHAPERONS, "web-abcde", pod_namespace)
    assert not objects.is_terminating(there)
    assert keys.PREFIX + "any" in objects.finalizers(proxy)

    await free(client, ended)
    await client.discard(kinds.POD_CHAPERONS, ended)
    await client.patch(kinds.PODS, "web", {"metadata": {"finalizers": None}}, pod_namespace)
    await client.discard(kinds.PODS, proxy, grace=0)


async def test_delegates_that_are_kept_lose_their_finalizer_and_those_that_end_do_not(
    client: Client, pod_namespace: str
) -> None:
    pods = []
    for name in ("kept", "ends"):
        made = await chaperon(client, pod_namespace, name)
        pods.append(await delegate(client, made, f"uid-of-{name}"))

    await client.delete(kinds.POD_CHAPERONS, "ends", pod_namespace)
    report = RemovalReport(say=lambda _text: None)
    one: dict[str, Any] = {
        "detach": False,
        "led": False,
        "ends": Ends(1.0, keep=True),
        "report": report,
    }
    assert await target_side.keep_delegates(client, **one) == 1
    kept = await client.get(kinds.POD_CHAPERONS, "kept", pod_namespace)
    assert not objects.finalizers(kept)
    assert not objects.is_terminating(kept)
    ends = await client.get(kinds.POD_CHAPERONS, "ends", pod_namespace)
    assert objects.finalizers(ends) == [keys.DELEGATE_FINALIZER]

    for pod in pods:
        await release(client, pod)

    assert await target_side.keep_delegates(client, **one) == 0


async def test_delegates_whose_chaperon_went_before_them_are_awaited_too(
    client: Client, pod_namespace: str
) -> None:
    """The chaperon was kept by an earlier uninstall, or comes from a source with Admiralty."""
    report, ends = RemovalReport(say=lambda _text: None), Ends(1.0, keep=False)
    of_others = await target_side.end_pods_of_absent_owners(client, ends, report)
    made = await chaperon(client, pod_namespace, "orphaned")
    pod = await delegate(client, made, "uid-of-orphaned")
    await client.delete(kinds.POD_CHAPERONS, "orphaned", pod_namespace)
    await free(client, made)
    owned = await delegate(client, await chaperon(client, pod_namespace, "owned"), "uid-of-owned")
    assert await target_side.end_pods_of_absent_owners(client, ends, report) == of_others + 1
    assert "did not terminate within 1 s" in report.left[-1]
    found = await client.list(kinds.PODS, pod_namespace)
    ending = {objects.name(pod) for pod in found if objects.is_terminating(pod)}
    assert ending == {"orphaned"}

    await release(client, pod)
    assert await target_side.end_pods_of_absent_owners(client, ends, report) == of_others
    await release(client, owned)


class Overtaken(Client):
    """Of who keeps delegates: something happens before the chaperon `first` is let go."""

    def __init__(self, fleet: Fleet, happens: Callable[[], Awaitable[object]]) -> None:
        super().__init__(endpoint.from_kubeconfig_file(fleet.kubeconfig(SOURCE)), name=SOURCE)
        self._happens: Callable[[], Awaitable[object]] | None = happens

    async def patch(
        self, kind: Kind, name: str, body: Object, namespace: str | None = None, **more: Any
    ) -> Object:
        if (name, kind) == ("first", kinds.POD_CHAPERONS) and self._happens:
            happens, self._happens = self._happens, None
            await happens()

        return await super().patch(kind, name, body, namespace, **more)


async def keep(
    fleet: Fleet, happens: Callable[[], Awaitable[object]], *, detach: bool, seconds: float
) -> int:
    """Have delegates kept, and something happen meanwhile."""
    ends, report = Ends(seconds, keep=True), RemovalReport(say=lambda _text: None)
    async with Overtaken(fleet, happens) as overtaken:
        return await target_side.keep_delegates(
            overtaken, detach=detach, led=False, ends=ends, report=report
        )


@pytest.mark.parametrize("detach", [False, True])
async def test_what_comes_while_delegates_are_kept_is_kept_as_they_are(
    fleet: Fleet, client: Client, pod_namespace: str, detach: bool
) -> None:
    async def send(name: str) -> None:
        """Create a chaperon, as a source does, and its delegate, as the target's agent does."""
        made = await chaperon(client, pod_namespace, name)
        await delegate(client, made, f"uid-of-{name}")

    await send("first")
    assert await keep(fleet, lambda: send("late"), detach=detach, seconds=30) == 0
    chaperons = await client.list(kinds.POD_CHAPERONS, pod_namespace)
    pods = await client.list(kinds.PODS, pod_namespace)
    for found in (chaperons, pods):
        assert {objects.name(obj) for obj in found} == {"first", "late"}
        assert not any(map(objects.is_terminating, found))

    assert not any(map(objects.finalizers, chaperons))
    assert {bool(objects.controller_uid(pod)) for pod in pods} == {not detach}
    for pod in pods:
        await release(client, pod)


async def test_a_delegate_is_not_detached_from_a_chaperon_that_is_deleted_just_then(
    fleet: Fleet, client: Client, pod_namespace: str
) -> None:
    """It would run on, and its source would take it for ended."""
    first = await chaperon(client, pod_namespace, "first")
    pod = await delegate(client, first, "uid-of-first")

    async def end() -> None:
        await client.delete(kinds.POD_CHAPERONS, "first", pod_namespace)

    assert await keep(fleet, end, detach=True, seconds=1) == 1
    pod = await client.get(kinds.PODS, "first", pod_namespace)
    assert objects.controller_uid(pod) == objects.uid(first)
    held = await client.get(kinds.POD_CHAPERONS, "first", pod_namespace)
    assert objects.finalizers(held) == [keys.DELEGATE_FINALIZER]

    await release(client, pod)
    await free(client, first)
