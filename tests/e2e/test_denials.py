"""Webhooks and policies of a target: what they change lets a pod run, what they deny is told."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests import kit
from tests.e2e.gateways import gateway
from tests.e2e.test_quotas import set_quota
from tests.fleets import vnode
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.runtime.certs import keypairs
from vnode.runtime.certs.keypairs import CertificateRequest

CODES: Final = ("404", "406", "409", "412", "429", "503")
CODE: Final = "example.com/code"
FILL: Final = "example.com/requests"
_GROUP: Final = "admissionregistration.k8s.io"


def cluster_kind(plural: str, name: str) -> Kind:
    return Kind(_GROUP, "v1", plural, name, namespaced=False)


WEBHOOKS: Final = cluster_kind("validatingwebhookconfigurations", "ValidatingWebhookConfiguration")
POLICIES: Final = cluster_kind("mutatingadmissionpolicies", "MutatingAdmissionPolicy")
BINDINGS: Final = cluster_kind("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding")
ON_PODS: Final = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["pods"],
}


def message(pod: Object) -> str:
    return str((objects.condition(pod, "PodScheduled") or {}).get("message"))


@asynccontextmanager
async def denying(fleet: Fleet, folder: Path, *targets: Client) -> AsyncIterator[None]:
    """Have a webhook of the targets deny each pod that asks for it, with the code that it names."""

    async def review(request: web.Request) -> web.Response:
        asked = (await request.json())["request"]
        code = objects.annotations(asked["object"]).get(CODE)
        answer: Object = {"uid": asked["uid"], "allowed": code is None}
        if code is not None:
            answer["status"] = {"code": int(code), "message": f"policy says {code}"}

        head = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        return web.json_response({**head, "response": answer})

    now, host = datetime.now(UTC), gateway(fleet)
    authority = keypairs.make_authority(now)
    pair = keypairs.issue(authority, CertificateRequest("webhook", (host,)), now)
    file = folder / "webhook.pem"
    file.write_bytes(pair.certificate + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    app = web.Application()
    app.add_routes([web.post("/", review)])
    server = TestServer(app, host=host, scheme="https")
    await server.start_server(ssl=context)
    bundle = base64.b64encode(authority.certificate).decode()
    webhook = {
        "name": "deny.example.com",
        "clientConfig": {"url": str(server.make_url("/")), "caBundle": bundle},
        "rules": [ON_PODS],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 5,
    }
    body = {"metadata": {"name": "denying"}, "webhooks": [webhook]}
    try:
        for target in targets:
            await target.create(WEBHOOKS, body)

        yield
    finally:
        for target in targets:
            await target.delete(WEBHOOKS, "denying")

        await server.close()


async def test_a_denial_of_any_code_is_told_in_its_words(
    fleet: Fleet, source: Client, c2: Client, c3: Client, tmp_path: Path
) -> None:
    async with denying(fleet, tmp_path, c2, c3):
        for target in (c2, c3):
            await until_denied(target)

        for code in CODES:
            await source.create(
                kinds.PODS, kit.pod(f"denied-{code}", annotations=elected({CODE: code})), "default"
            )

        await source.create(kinds.PODS, kit.pod("bystander"), "default")
        for code in CODES:
            found = await kit.until_one(
                source,
                kinds.PODS,
                f"denied-{code}",
                "default",
                lambda p, c=code: message(p).count(f"policy says {c}") >= 1,
            )
            assert "no answer" not in message(found)

        await kit.until_running(source, "bystander")
        shown = vnode("explain", "denied-412", "--kubeconfig", fleet.kubeconfig("c1")).out
        story = " ".join(shown.split())
        assert "the text names what refuses it" in story, story
        assert "no answer" not in story


def elected(annotations: dict[str, str]) -> dict[str, str]:
    return {**objects.annotations(kit.pod("any")), **annotations}


async def until_denied(target: Client) -> None:
    """Wait until the API server asks the webhook, of which it learns by a watch."""
    body = kit.pod("probe", annotations={CODE: "412"})
    path = kinds.PODS.path("default")
    for _ in range(100):
        try:
            await target.request("POST", path, body=body, query={"dryRun": "All"})
        except Exception as error:  # noqa: BLE001 - of whatever kind it is made
            if "policy says" in str(error):
                return


@asynccontextmanager
async def filling(*targets: Client) -> AsyncIterator[None]:
    """Have a policy of the targets set the requests of pods that ask for it."""
    expression = (
        '[JSONPatch{op: "add", path: "/spec/containers/0/resources", value: '
        'Object.spec.containers.resources{requests: {"cpu": "10m", "memory": "10Mi"}}}]'
    )
    asks = f"has(object.metadata.annotations) && '{FILL}' in object.metadata.annotations"
    policy: Object = {
        "metadata": {"name": "filling"},
        "spec": {
            "matchConstraints": {"resourceRules": [ON_PODS]},
            "matchConditions": [{"name": "asks", "expression": asks}],
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
        },
    }
    binding = {"metadata": {"name": "filling"}, "spec": {"policyName": "filling"}}
    try:
        for target in targets:
            await target.create(POLICIES, policy)
            await target.create(BINDINGS, binding)

        for target in targets:
            await until_in_force(target)

        yield
    finally:
        for target in targets:
            await target.delete(BINDINGS, "filling")
            await target.delete(POLICIES, "filling")
            for left in await target.list(kinds.RESOURCE_QUOTAS, "default"):
                await target.discard(kinds.RESOURCE_QUOTAS, left)


async def until_in_force(target: Client) -> None:
    """Wait until the policy acts; nothing tells when an API server has taken it up."""
    probe = kit.pod("probe", annotations={FILL: ""}, schedulerName="nobody")
    probe["spec"]["containers"][0].pop("resources", None)
    async with asyncio.timeout(kit.PATIENCE):
        while True:
            made = await target.create(kinds.PODS, probe, "default")
            await target.delete(kinds.PODS, "probe", "default", grace=0)
            if objects.spec(made)["containers"][0].get("resources"):
                return

            await asyncio.sleep(0.2)


async def test_pods_that_the_targets_own_admission_makes_fit_run(
    source: Client, c2: Client, c3: Client
) -> None:
    async with filling(c2, c3):
        await set_quota(c2, "compute", {"requests.cpu": "1", "requests.memory": "1Gi"})
        await set_quota(c3, "compute", {"pods": "0"})
        large = kit.pod("lowered", annotations=elected({FILL: ""}))
        large["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "5", "memory": "9Gi"}}
        whole = kit.pod("whole", resources={"requests": {"cpu": "100m"}})
        template, bare = kit.pod("filled", annotations=elected({FILL: ""})), kit.pod("bare")
        for pod in (template, bare, whole):
            pod["spec"]["containers"][0].pop("resources", None)

        await source.create(kinds.DEPLOYMENTS, kit.deployment("filled", 6, template), "default")
        for pod in (large, whole):
            await source.create(kinds.PODS, pod, "default")

        await kit.until(source, kinds.PODS, lambda pods: kit.running(pods, 8), namespace="default")
        # What it does not make fit is refused, in the words of the API server.
        await source.create(kinds.PODS, bare, "default")
        wanted = "failed quota: compute: must specify requests.cpu"
        await kit.until_one(source, kinds.PODS, "bare", "default", lambda p: wanted in message(p))


@pytest.mark.parametrize("field", ["podAffinity", "podAntiAffinity"])
async def test_a_pod_that_others_bound_may_match_its_own_labels(
    source: Client, c2: Client, field: str
) -> None:
    term: dict[str, Any] = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "mlk"}},
        "matchLabelKeys": ["pod-template-hash"],
    }
    spread = {**term, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
    pod = kit.pod("matching", annotations={}, nodeName="admiralty-default-c2")
    pod["metadata"]["labels"] = {"app": "mlk", "pod-template-hash": "x1"}
    pod["spec"] |= {
        "affinity": {field: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
        "topologySpreadConstraints": [spread],
    }
    await source.create(kinds.PODS, pod, "default")
    await kit.until_running(source, "matching")
    (delegate,) = await c2.list(kinds.PODS, "default")
    (constraint,) = objects.spec(delegate)["topologySpreadConstraints"]
    assert len(constraint["labelSelector"]["matchExpressions"]) == 1


async def test_a_pod_that_is_not_sent_is_not_called_starting(fleet: Fleet, source: Client) -> None:
    pod = kit.pod("lured", annotations={}, nodeName="admiralty-default-c2")
    await source.create(kinds.PODS, pod, "kube-system")
    try:
        about = "involvedObject.name=lured,reason=DelegateRefused"
        await kit.until_event(source, "kube-system", about, "is not for pods of namespace")
        words = ("explain", "lured", "--namespace", "kube-system")
        shown = vnode(*words, "--kubeconfig", fleet.kubeconfig("c1")).out
        assert "NotStarting: the pod is not sent: node admiralty-default-c2 is not" in shown, shown
    finally:
        await source.delete(kinds.PODS, "lured", "kube-system", grace=0)
