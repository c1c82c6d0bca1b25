"""Devices that nodes offer without a driver: schedulers allocate from them all the same."""

from __future__ import annotations

from typing import Final

from vnode.api import objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object

CLASS: Final = "gpu.example.com"
KIND: Final = Kind("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", namespaced=False)


def device_class() -> Object:
    """Return the class of all these devices."""
    selector = {"cel": {"expression": f'device.driver == "{CLASS}"'}}
    return {"metadata": {"name": CLASS}, "spec": {"selectors": [selector]}}


def of_node(node: Object, devices: int) -> Object:
    """Return what a driver would publish of a node's devices, 128 at most."""
    name = objects.name(node)
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": objects.uid(node)}
    return {
        "metadata": {"name": f"{name}-gpus", "ownerReferences": [owner]},
        "spec": {
            "driver": CLASS,
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"gpu-{number}"} for number in range(devices)],
        },
    }
