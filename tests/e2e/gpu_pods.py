"""Pods that ask for GPUs on fleets, and pods of a target's own users that have them already."""

from __future__ import annotations

from typing import Final

from tests import kit
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

GPU: Final = "nvidia.com/gpu"
MODEL: Final = "nvidia.com/gpu.product"


def gpu_pod(name: str, gpus: int, model: str = "") -> Object:
    """Return an elected pod with so many GPUs, of that model if it is named."""
    selector = {"nodeSelector": {MODEL: model}} if model else {}
    return _with_gpus(kit.pod(name, annotations={keys.ELECT: ""}, **selector), gpus)


def _with_gpus(pod: Object, gpus: int) -> Object:
    resources = objects.spec(pod)["containers"][0]["resources"]
    resources["requests"][GPU] = str(gpus)
    resources["limits"] = {GPU: str(gpus)}
    return pod


async def occupy(target: Client, node: str, gpus: int) -> None:
    """Have a pod of the target's own users run on that node, with so many of its GPUs."""
    made = kit.pod(f"own-{node}", annotations={}, nodeName=node)
    await target.create(kinds.PODS, _with_gpus(made, gpus), "default")


async def vacate(target: Client) -> None:
    """End what has occupied nodes of a target."""
    for pod in await target.list(kinds.PODS, "default"):
        if objects.name(pod).startswith("own-"):
            await target.discard(kinds.PODS, pod)
