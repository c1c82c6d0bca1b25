"""What comes of the pod by which doctor and quickstart try whether pods are elected."""

from __future__ import annotations

from typing import Final

import pytest

from tests.apiserver.server import APIServer
from vnode.api import keys, kinds
from vnode.api.clock import Clock
from vnode.api.errors import ApiError, Denied, Invalid
from vnode.cli.doctor import trial_pods
from vnode.cli.doctor.trial_pods import Trial

pytestmark = pytest.mark.looptime

QUOTA: Final = Denied(403, "Forbidden", 'pods "x" is forbidden: exceeded quota: team')
POLICY: Final = Invalid(
    422, "Invalid", "ValidatingAdmissionPolicy 'no-latest' with binding 'all' denied request: no"
)
WEBHOOK: Final = Denied(403, "Forbidden", 'admission webhook "x.example" denied the request: no')
DEAD: Final = ApiError(500, "InternalError", 'failed calling webhook "x.example": refused')
NOT_CALLED: Final = Trial("the webhook was not called, or did not elect the pod")


def cluster(clock: Clock, *refusals: ApiError) -> APIServer:
    """Return a cluster of two namespaces that take part; requests are refused in that order."""
    server = APIServer("c1", clock)
    for name in ("a", "b"):
        metadata = {"name": name, "labels": dict([keys.WEBHOOK_NAMESPACE_LABEL])}
        server.add(kinds.NAMESPACES, {"metadata": metadata})

    for error in refusals:
        server.fail(error, verb="create", kind=kinds.PODS, times=1)

    return server


@pytest.mark.parametrize("refusal", [QUOTA, POLICY])
async def test_where_a_namespace_takes_no_pods_the_next_one_is_tried(
    refusal: ApiError, clock: Clock
) -> None:
    client = cluster(clock, refusal).client()
    assert await trial_pods.find(client, ()) == NOT_CALLED


async def test_what_refuses_them_in_all_namespaces_is_told_and_is_no_failure(clock: Clock) -> None:
    trial = await trial_pods.find(cluster(clock, QUOTA, QUOTA).client(), ())
    assert trial == Trial(refused=f"namespace b: {QUOTA.message}")


@pytest.mark.parametrize("failure", [WEBHOOK, DEAD])
async def test_webhooks_are_told_as_such(failure: ApiError, clock: Clock) -> None:
    trial = await trial_pods.find(cluster(clock, failure).client(), ())
    assert failure.message in (trial.failure or "")
    assert not trial.refused


async def test_only_named_namespaces_are_tried(clock: Clock) -> None:
    trial = await trial_pods.find(cluster(clock, QUOTA).client(), ("a",))
    assert trial.refused.startswith("namespace a: ")
    assert await trial_pods.find(cluster(clock).client(), ("c",)) == Trial()
