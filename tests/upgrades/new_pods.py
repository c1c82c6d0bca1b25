"""Pods that users make while versions are replaced: each runs, once, and ends."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from tests import kit
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

_EACH = 3  # pods for each target that are on their way while an agent is replaced


async def create(
    source: Client, target: Client, count: int = 1, marks: Mapping[str, str] | None = None
) -> list[Object]:
    """Create pods for one target, annotated with `marks`; their names are new."""
    made = []
    for _ in range(count):
        pod = kit.pod_in(target.name, f"new-{uuid.uuid4().hex[:6]}")
        pod["metadata"]["annotations"].update(marks or {})
        made.append(await source.create(kinds.PODS, pod, "default"))

    return made


async def create_gang(source: Client, target: Client) -> list[Object]:
    """Create two pods that start together; a version that knows no gangs starts each for itself."""
    marks = {keys.GANG: f"gang-{uuid.uuid4().hex[:6]}", keys.GANG_MINIMUM: "2"}
    return await create(source, target, 2, marks)


async def until_running(source: Client, target: Client, pods: Sequence[Object]) -> None:
    """Wait until pods run, and fail if one was sent more than once."""
    for pod in pods:
        await kit.until_running(source, objects.name(pod))
        sent = await target.list(kinds.POD_CHAPERONS, "default", label_selector=_of(pod))
        assert len(sent) == 1, f"{objects.name(pod)} has {len(sent)} chaperons in {target.name}"


async def end(source: Client, target: Client, pods: Sequence[Object]) -> None:
    """Delete pods, and wait until nothing of them is left."""
    for pod in pods:
        await source.delete(kinds.PODS, objects.name(pod), "default")

    for pod in pods:
        fields = f"metadata.name={objects.name(pod)}"
        await kit.until_gone(source, kinds.PODS, "default", field_selector=fields)
        await kit.until_gone(target, kinds.POD_CHAPERONS, "default", label_selector=_of(pod))


@asynccontextmanager
async def on_their_way(source: Client, targets: Sequence[Client]) -> AsyncIterator[None]:
    """Have pods of each target created just before the block; they run after it, and end."""
    pods = [(target, await create(source, target, _EACH)) for target in targets]
    yield
    for target, its in pods:
        await until_running(source, target, its)
        await end(source, target, its)


def _of(pod: Object) -> str:
    return f"{keys.PARENT_UID}={objects.uid(pod)}"
