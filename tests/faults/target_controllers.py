"""Controllers of the targets that know nothing of vnode: an injector, and who cleans up.

The injector is a policy of admission that adds a sidecar to each delegate, unless an annotation
says that it has one; it writes that annotation, as injectors of meshes and of secrets do. Whoever
cleans up deletes pods that have finished, as garbage collectors and people do.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from tests import kit
from tests.faults.harness import Harness
from tests.faults.plan import SOURCE, TARGETS
from tests.faults.snapshot import INJECTED, SIDECAR, FleetSnapshot, Violation, node_of
from tests.faults.targets import NAMESPACE
from vnode.api import keys, kinds, objects
from vnode.api.errors import VnodeError
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client

_POLICIES: Final = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingadmissionpolicies",
    "MutatingAdmissionPolicy",
    namespaced=False,
)
_BINDINGS: Final = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingadmissionpolicybindings",
    "MutatingAdmissionPolicyBinding",
    namespaced=False,
)
_NAME: Final = "injector"
_INJECT: Final = (
    f'Object{{metadata: Object.metadata{{annotations: {{"{INJECTED}": "injected"}}}}, '
    f'spec: Object.spec{{containers: [Object.spec.containers{{name: "{SIDECAR}", '
    'image: "busybox"}]}}'
)
_ON_DELEGATES: Final = (
    f"has(object.metadata.labels) && '{keys.PARENT_UID}' in object.metadata.labels && "
    f"!(has(object.metadata.annotations) && '{INJECTED}' in object.metadata.annotations)"
)
_PERIOD: Final = 1.0  # seconds between two looks of who cleans up
_CHANCE: Final = 0.3  # that it deletes a pod at a look


class TargetControllers:
    """Acts by dice of its own, so that the steps of a seed stay the same."""

    def __init__(self, harness: Harness, dice: random.Random) -> None:
        self.cleaned = 0
        self._harness = harness
        self._dice = dice

    async def begin(self) -> None:
        """Install the injector in the targets, and wait until it acts."""
        for target in TARGETS:
            client = self._harness.clients[target]
            for kind, body in ((_POLICIES, _policy()), (_BINDINGS, _binding())):
                await client.apply(kind, body, manager="faults")

            await _until_in_force(client)

    async def run(self) -> None:
        """Clean up until cancelled."""
        while True:
            for target in TARGETS:
                with suppress(VnodeError):
                    await self._clean(self._harness.clients[target])

            await asyncio.sleep(_PERIOD)

    async def _clean(self, client: Client) -> None:
        """Delete delegates that have finished, once their target's agent has told so.

        Before, the result may be lost if that agent is away (docs/limits.md).
        """
        selector = f"{keys.PARENT_CLUSTER_NAME}={SOURCE}"
        told = {
            objects.uid(chaperon)
            for chaperon in await client.list(
                kinds.POD_CHAPERONS, NAMESPACE, label_selector=selector
            )
            if objects.is_finished(chaperon)
        }
        for pod in await client.list(kinds.PODS, NAMESPACE, label_selector=selector):
            ended = objects.is_finished(pod) and not objects.is_terminating(pod)
            if ended and objects.controller_uid(pod) in told and self._dice.random() < _CHANCE:
                await client.discard(kinds.PODS, pod, grace=0)
                self.cleaned += 1


def not_injected(snapshot: FleetSnapshot) -> Iterator[Violation]:
    """Yield the delegates that the injector took for injected, and that have no sidecar."""
    for cluster, found in snapshot.delegates.items():
        for key, pod in found.items():
            names = [container["name"] for container in objects.spec(pod)["containers"]]
            if node_of(pod) and SIDECAR not in names:
                yield Violation("delegates have their sidecar", f"{key} in {cluster} has {names}")


async def _until_in_force(client: Client) -> None:
    """Wait until the policy acts; nothing tells when an API server has taken it up."""
    probe = kit.pod("probe", annotations={}, schedulerName="nobody")
    probe["metadata"]["labels"] = {keys.PARENT_UID: "none"}
    async with asyncio.timeout(kit.PATIENCE):
        while True:
            made = await client.create(kinds.PODS, probe, NAMESPACE)
            await client.discard(kinds.PODS, made, grace=0)
            if len(objects.spec(made)["containers"]) > 1:
                return

            await asyncio.sleep(0.2)


def _policy() -> Object:
    return {
        "metadata": {"name": _NAME},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["pods"],
                    }
                ]
            },
            "matchConditions": [{"name": "delegates", "expression": _ON_DELEGATES}],
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "mutations": [
                {
                    "patchType": "ApplyConfiguration",
                    "applyConfiguration": {"expression": _INJECT},
                }
            ],
        },
    }


def _binding() -> Object:
    return {"metadata": {"name": _NAME}, "spec": {"policyName": _NAME}}
