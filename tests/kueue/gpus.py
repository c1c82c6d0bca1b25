"""GPUs of targets, which tests give and take, and pods of others that use them."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, Final, Protocol

from tests import kit
from vnode.api import keys, kinds, names, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

GPU: Final = "nvidia.com/gpu"


class Rooms(Protocol):
    """Gives each of the two nodes of c2 and of c3 so many GPUs."""

    def __call__(
        self, first: tuple[int, int], second: tuple[int, int] = (0, 0)
    ) -> Awaitable[None]: ...


async def give(source: Client, targets: Mapping[str, tuple[Client, tuple[int, ...]]]) -> None:
    """Give each node of these targets so many GPUs, and wait until the virtual nodes say so."""
    for target, amounts in targets.values():
        await _install(target, amounts)

    for name, (_, amounts) in targets.items():
        await until_offered(source, name, sum(amounts))


async def until_offered(source: Client, target: str, amount: int) -> None:
    """Wait until a virtual node offers so many GPUs, which it says every ten seconds at most."""

    def offers_it(node: Object) -> bool:
        return bool(objects.status(node).get("allocatable", {}).get(GPU, "0") == str(amount))

    node = names.virtual_node("default", target)
    await kit.until_one(source, kinds.NODES, node, "", offers_it)


async def _install(target: Client, amounts: tuple[int, ...]) -> None:
    present = sorted(objects.name(node) for node in await target.list(kinds.NODES))
    for name, amount in zip(present, amounts, strict=True):
        quantity = str(amount) if amount else None
        status = {"capacity": {GPU: quantity}, "allocatable": {GPU: quantity}}
        await target.patch(kinds.NODES, name, {"status": status}, subresource="status")

    def says_so(summary: Object) -> bool:
        return bool(summary.get("allocatable", {}).get(GPU, "0") == str(sum(amounts)))

    await kit.until_one(target, kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME, "", says_so)


def spec(gpus: int = 1, **more: Any) -> Object:
    """Return the spec of a pod that asks for GPUs and nothing else."""
    container = {"name": "main", "image": "busybox", "resources": {"limits": {GPU: str(gpus)}}}
    return {"containers": [container], **more}


async def use(target: Client, *pods: int) -> list[Object]:
    """Have pods of the target's own users take so many GPUs each; return them as they run."""
    made = [
        {"metadata": {"name": f"other-{number}"}, "spec": spec(gpus)}
        for number, gpus in enumerate(pods)
    ]
    for pod in made:
        await target.create(kinds.PODS, pod, "default")

    return [await kit.until_running(target, objects.name(pod)) for pod in made]
