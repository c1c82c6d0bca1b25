"""Operators of frameworks whose pods talk to each other, as their own modules have them.

The first use on a machine builds the programs, which takes minutes each. JobSet is that of the
tests with Kueue.
"""

from __future__ import annotations

from typing import Final

from hack.fleetlib.tools import catalogue
from tests.frameworks.controllers import WebhookController
from vnode.api.objects import Object


def _lws_selectors(path: str) -> Object:
    """Return the pods that the own installation of LeaderWorkerSet looks at."""
    if not path.endswith("-pod"):
        return {}

    labelled = {"key": "leaderworkerset.sigs.k8s.io/name", "operator": "Exists"}
    return {"objectSelector": {"matchExpressions": [labelled]}}


LEADER_WORKER_SET: Final = WebhookController(
    program="lws",
    module=catalogue.LEADER_WORKER_SET_MODULE,
    configuration={"apiVersion": "config.lws.x-k8s.io/v1alpha1"},
    webhook_port=6305,
    health_port=6306,
    selectors=_lws_selectors,
)
