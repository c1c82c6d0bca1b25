"""Does what a plan says users do: objects to create, pods to end, Targets to change.

A request that fails because something is broken is tried again, as people do, until the time is up.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable

from tests import kit
from tests.faults import things
from tests.faults.leaving import Leaver
from tests.faults.plan import LEAVING, SOURCE, Action, Kind, Verb, Workload
from tests.faults.rig import Rig
from tests.faults.world import APP, VERSION, World, node_of, phase
from vnode.api import keys, kinds, objects
from vnode.api.errors import AlreadyExists, Conflict, Invalid, NotFound, VnodeError
from vnode.api.kinds import Kind as Resource
from vnode.api.objects import Object
from vnode.cli import kubeconfigs
from vnode.kube.client import Client

NAMESPACE = "default"
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
EVICTIONS = Resource("policy", "v1", "evictions", "Eviction")
RESOURCES = {
    Kind.POD: kinds.PODS,
    Kind.DEPLOYMENT: kinds.DEPLOYMENTS,
    Kind.STATEFUL_SET: STATEFUL_SETS,
    Kind.JOB: kinds.JOBS,
}
PERSISTENCE = 90.0  # seconds for which a user tries
_AGAIN = 0.5


def build(workload: Workload) -> Object:
    """The object that a user applies."""
    template = _template(workload)
    if workload.kind is Kind.POD:
        return {**template, "metadata": {"name": workload.name, **template["metadata"]}}

    spec: Object = {"template": template}
    if workload.kind is Kind.JOB:
        template["spec"]["restartPolicy"] = "Never"
        spec |= {"completions": workload.replicas, "parallelism": workload.replicas}
        spec["backoffLimit"] = 1000
    else:
        spec |= {"replicas": workload.replicas, "selector": {"matchLabels": {APP: workload.name}}}

    if workload.kind is Kind.STATEFUL_SET:
        spec |= {"serviceName": workload.name, "podManagementPolicy": "Parallel"}

    return {"metadata": {"name": workload.name}, "spec": spec}


def _template(workload: Workload) -> Object:
    notes = {keys.ELECT: "", VERSION: str(workload.version)}
    constraints: list[str] = []
    if workload.hopeless:
        constraints.append("nodeSelector: {example.com/no: where}")

    if workload.patience:
        constraints.append(f"tolerations: {_tolerations(workload.patience)}")

    if constraints:
        notes[keys.PROXY_CONSTRAINTS] = "\n".join(constraints)

    if workload.farewell:
        notes["pod-delete.stage.kwok.x-k8s.io/delay"] = f"{workload.farewell}s"

    pod = kit.pod(workload.name, annotations=notes)
    spec = {**pod["spec"], "volumes": things.volumes(workload.uses)}
    return {"metadata": {"labels": {APP: workload.name}, "annotations": notes}, "spec": spec}


def _tolerations(seconds: int) -> str:
    kinds_ = ("not-ready", "unreachable")
    each = ", ".join(
        f"{{key: node.kubernetes.io/{kind}, operator: Exists, effect: NoExecute, "
        f"tolerationSeconds: {seconds}}}"
        for kind in kinds_
    )
    own = f"{{key: {keys.PROVIDER_LABEL}, operator: Exists}}"
    return f"[{own}, {each}]"


class Actor:
    """Acts on the clusters of a rig; `world` gives what they show now."""

    def __init__(self, rig: Rig, world: Callable[[], World]) -> None:
        self._rig = rig
        self._world = world
        self._targets: dict[str, Object] = {}  # that were removed, to be put back
        self.leaver = Leaver(rig)

    async def act(self, action: Action) -> None:
        """Do it; gives up, silently, when what it is about is gone."""
        if action.verb in LEAVING:
            await self.leaver.leave(action)
            return

        async with asyncio.timeout(PERSISTENCE):
            while True:
                try:
                    await self._once(action)
                except (NotFound, AlreadyExists):
                    return
                except Invalid:
                    raise  # the harness is wrong, not the world
                except VnodeError:
                    await asyncio.sleep(_AGAIN)
                else:
                    return

    async def put_targets_back(self) -> None:
        """Make removed Targets anew."""
        while self._targets:
            name, spec = next(iter(self._targets.items()))
            body = {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}
            await self._rig.source.apply(kinds.TARGETS, body, manager="faults")
            del self._targets[name]

    async def _once(self, action: Action) -> None:
        verbs: dict[Verb, Callable[[Action], Awaitable[None]]] = {
            Verb.CREATE: self._apply,
            Verb.CHANGE: self._apply,
            Verb.REMOVE: self._remove,
            Verb.EDIT_TARGET: self._edit_target,
            Verb.ROTATE_TOKEN: self._rotate_token,
            Verb.REMOVE_TARGET: self._remove_target,
            Verb.PUT_THING: self._put_thing,
            Verb.REMOVE_THING: self._remove_thing,
        }
        await verbs.get(action.verb, self._end_pod)(action)

    async def _apply(self, action: Action) -> None:
        assert action.workload is not None
        body = build(action.workload)
        body["metadata"]["namespace"] = NAMESPACE
        await self._rig.source.apply(RESOURCES[action.workload.kind], body, manager="faults")

    async def _remove(self, action: Action) -> None:
        assert action.workload is not None
        await self._rig.source.delete(
            RESOURCES[action.workload.kind],
            action.workload.name,
            NAMESPACE,
            propagation="Background",
        )

    async def _put_thing(self, action: Action) -> None:
        assert action.thing is not None
        body = things.build(action.thing)
        body["metadata"]["namespace"] = NAMESPACE
        kind = things.RESOURCES[action.thing.kind]
        await self._rig.source.apply(kind, body, manager="faults")

    async def _remove_thing(self, action: Action) -> None:
        assert action.thing is not None
        kind, name = things.RESOURCES[action.thing.kind], things.name_of(action.thing)
        await self._rig.source.delete(kind, name, NAMESPACE)

    async def _end_pod(self, action: Action) -> None:
        assert action.workload is not None
        pods = [p for p in self._world().of(action.workload) if not objects.is_terminating(p)]
        if not pods:
            return

        pod, source = pods[action.number % len(pods)], self._rig.source
        match action.verb:
            case Verb.DELETE_POD:
                await source.discard(kinds.PODS, pod)
            case Verb.FORCE_DELETE_POD:
                await source.discard(kinds.PODS, pod, grace=0)
            case Verb.EVICT_POD:
                await _evict(source, pod)
            case _:
                await self._end_there(action, pod)

    async def _end_there(self, action: Action, proxy: Object) -> None:
        for cluster, chaperon in self._world().chaperons_of(objects.uid(proxy)):
            client, name = self._rig.clients[cluster], objects.name(chaperon)
            if action.verb is Verb.DELETE_CHAPERON:
                await client.discard(kinds.POD_CHAPERONS, chaperon)
                return

            pod = await client.get(kinds.PODS, name, NAMESPACE)
            if action.verb is Verb.EVICT_DELEGATE:
                await _evict(client, pod)
            else:
                await client.discard(kinds.PODS, pod)

            return

        if phase(proxy) == "Pending":  # nothing is anywhere yet; the user ends what there is
            await self._rig.source.discard(kinds.PODS, proxy)
        elif node_of(proxy):
            raise Conflict(409, "Conflict", "its chaperon has not been seen yet")

    async def _edit_target(self, action: Action) -> None:
        spec = {"excludedLabelsRegexp": f"^edited-{action.at}="}
        await self._rig.source.patch(kinds.TARGETS, action.target, {"spec": spec}, NAMESPACE)

    async def _rotate_token(self, action: Action) -> None:
        """As `vnode connect` does when the old one ends."""
        client, secret = self._rig.clients[action.target], f"vnode-target-{action.target}"
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 24 * 3600},
        }
        answer = await client.create(
            kinds.SERVICE_ACCOUNTS, request, NAMESPACE, name=SOURCE, subresource="token"
        )
        reach, _name = kubeconfigs.read(self._rig.fleet.kubeconfig(action.target))
        reach = reach.at(self._rig.urls[f"{SOURCE}>{action.target}"])
        made = kubeconfigs.build(reach, str(objects.status(answer)["token"]), NAMESPACE)
        data = {"data": {"config": base64.b64encode(made).decode()}}
        await self._rig.source.patch(kinds.SECRETS, secret, data, NAMESPACE)

    async def _remove_target(self, action: Action) -> None:
        target = await self._rig.source.get(kinds.TARGETS, action.target, NAMESPACE)
        self._targets[action.target] = objects.spec(target)
        await self._rig.source.discard(kinds.TARGETS, target)


async def remove_all(client: Client) -> None:
    """Have everything of earlier runs deleted."""
    for resource in RESOURCES.values():
        query = {"propagationPolicy": "Background"}
        await client.request("DELETE", resource.path(NAMESPACE), query=query)

    for resource in things.RESOURCES.values():
        for thing in await client.list(resource, NAMESPACE, label_selector=things.SELECTOR):
            await client.discard(resource, thing)


async def _evict(client: Client, pod: Object) -> None:
    eviction = {
        "apiVersion": EVICTIONS.api_version,
        "kind": EVICTIONS.kind,
        "metadata": {"name": objects.name(pod), "namespace": NAMESPACE},
        "deleteOptions": {"preconditions": {"uid": objects.uid(pod)}},
    }
    await client.create(
        kinds.PODS, eviction, NAMESPACE, name=objects.name(pod), subresource="eviction"
    )
