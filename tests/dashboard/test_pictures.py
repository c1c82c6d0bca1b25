"""The pictures of docs/dashboard.md: a scene on the fleet, in light and dark, wide and narrow.

`make dashboard-images` writes them into docs/images; the test itself keeps them in a folder of its
own and looks at their size only.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests import kit
from tests.dashboard.browser import BrowserTab
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

MOST = 150 * 1000  # bytes of one picture
HEIGHT = 1100  # pixels at most
DEPLOYMENTS = {
    "shop": (9, "4", "24Gi"),
    "search": (5, "6", "48Gi"),
    "encoder": (6, "3", "16Gi"),
}


def asking(name: str, cpu: str, memory: str, **more: str) -> Object:
    pod = kit.pod(name)
    requests = {"cpu": cpu, "memory": memory, **more}
    pod["spec"]["containers"][0]["resources"] = {"requests": requests, "limits": more}
    return pod


@pytest.fixture
async def scene(source: Client) -> AsyncIterator[Client]:
    """Make the scene of the pictures; yield the source's client.

    It has some work, a pod that fits nowhere, one that is held, and two clusters that send pods.
    """
    names = ("edge-berlin", "edge-lisbon")
    for name in names:
        user = {"metadata": {"name": name}, "spec": {"userName": f"{name}@example.com"}}
        await source.create(kinds.SOURCES, user, "default")

    for name, (count, cpu, memory) in DEPLOYMENTS.items():
        template = asking(name, cpu, memory)
        await source.create(kinds.DEPLOYMENTS, kit.deployment(name, count, template), "default")

    job = {
        "metadata": {"name": "nightly-report"},
        "spec": {
            "template": {
                "metadata": {"annotations": {keys.ELECT: ""}},
                "spec": {**kit.pod("report")["spec"], "restartPolicy": "Never"},
            }
        },
    }
    await source.create(kinds.JOBS, job, "default")
    pod = asking("training", "4", "16Gi", **{"nvidia.com/gpu": "8"})
    await source.create(kinds.PODS, pod, "default")
    held = kit.pod("held", schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])
    await source.create(kinds.PODS, held, "default")
    try:
        yield source
    finally:
        for name in names:
            await source.delete(kinds.SOURCES, name, "default")


async def _settled(source: Client) -> None:
    """Wait until every pod of the scene runs, or has its reason."""
    wanted = sum(count for count, _cpu, _memory in DEPLOYMENTS.values())

    def is_there(pods: dict[str, Object]) -> bool:
        phases = [kit.phase(pod) for pod in pods.values()]
        refused = objects.condition(pods.get("default/training", {}), "PodScheduled") or {}
        return (
            phases.count("Running") == wanted
            and "Succeeded" in phases
            and "targets" in str(refused.get("message"))
        )

    await kit.until(source, kinds.PODS, is_there, namespace="default")


async def test_pictures_for_the_documentation(
    scene: Client, address: str, page: BrowserTab, tmp_path: Path
) -> None:
    await _settled(scene)
    folder = Path(os.environ.get("VNODE_DASHBOARD_IMAGES") or tmp_path)
    taken = {}
    for scheme in ("light", "dark"):
        await page.prefer(scheme)
        for name, path, width in (
            ("overview", "", 1280),
            ("story", "pods/default/training", 1280),
            ("target", "targets/default/c2", 1280),
            ("phone", "", 400),
            ("phone-pods", "pods", 400),
        ):
            await page.width(width)
            await page.goto(address + path)
            await page.until("document.getElementById('pulse').dataset.state === 'live'")
            taken[name, scheme] = await page.picture(HEIGHT)
            (folder / f"dashboard-{name}-{scheme}.png").write_bytes(taken[name, scheme])

    assert all(len(picture) < MOST for picture in taken.values())
    assert all(picture.startswith(b"\x89PNG") for picture in taken.values())
    assert len(set(taken.values())) == len(taken)
