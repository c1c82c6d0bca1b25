"""What becomes of a chaperon whose delegate is gone before anything was reported of it."""

from __future__ import annotations

import asyncio

import pytest

from tests import background
from tests.apiserver import links
from tests.apiserver.server import APIServer
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.pods.target import chaperon_controller
from vnode.pods.target.chaperon_controller import ChaperonController

pytestmark = pytest.mark.looptime


async def test_a_delegate_that_finished_unreported_does_not_run_again(clock: Clock) -> None:
    target = APIServer("c2", clock)
    annotations, labels = {keys.IS_ALLOWED: "true"}, {keys.PARENT_UID: "u1"}
    metadata = {"name": "web-1", "labels": labels, "annotations": annotations}
    spec = {"containers": [{"name": "main", "image": "busybox"}], "restartPolicy": "Never"}
    target.add(kinds.POD_CHAPERONS, {"metadata": metadata, "spec": spec})
    client = target.client()
    informers = chaperon_controller.informers(client)
    controller = ChaperonController(client, *informers, goes_on=lambda _: False, clock=clock)
    async with links.following(*informers), background.running(controller.run()):
        await target.until(lambda: target.find(kinds.PODS, "web-1", "default") is not None)

        def finish(pod: objects.Object) -> None:
            pod["spec"]["nodeName"] = "n1"
            scheduled = {"type": "PodScheduled", "status": "True"}
            pod["status"] |= {"phase": "Succeeded", "conditions": [scheduled]}

        target.change(kinds.PODS, "web-1", "default", finish)
        target.remove(kinds.PODS, "web-1", "default")
        await asyncio.sleep(50)
        assert target.count("create", kinds.PODS) == 1
        reported = target.find(kinds.POD_CHAPERONS, "web-1", "default") or {}
        assert objects.status(reported)["phase"] == "Succeeded"
