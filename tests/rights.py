"""Gives rights on API servers, uses those of accounts, and waits until they are known."""

from __future__ import annotations

import asyncio
from typing import Final

from tests import kit
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.api.errors import Denied
from vnode.api.objects import Object
from vnode.cli import kubeconfigs
from vnode.kube import account_tokens, endpoint
from vnode.kube.client import MERGE_PATCH, Client
from vnode.kube.kubeconfig import Kubeconfig
from vnode.kube.transport import JSON

DRY_RUN: Final = {"dryRun": "All"}


async def holder(fleet: Fleet, cluster: str, admin: Client, namespace: str, name: str) -> Client:
    """Return a client with a token of a service account of that cluster."""
    granted = await account_tokens.request(admin, namespace, name, {"expirationSeconds": 3600})
    reach, _name = kubeconfigs.read(fleet.kubeconfig(cluster))
    text = kubeconfigs.build(reach, granted.text, namespace)
    return Client(endpoint.from_kubeconfig(Kubeconfig.parse(text)), name=cluster)


async def may(client: Client, user: str, question: str) -> bool:
    """Ask the API server: `VERB GROUP/RESOURCE[/SUBRESOURCE] [NAMESPACE] [NAME]`."""
    verb, what, *where = question.split()
    group, resource, *sub = what.split("/")
    namespace, name = [*where, "", ""][:2]
    attributes = {
        "verb": verb,
        "group": group,
        "resource": resource,
        "subresource": sub[0] if sub else "",
        "namespace": "" if namespace == "-" else namespace,
        "name": name,
    }
    review = {
        "apiVersion": kinds.SUBJECT_ACCESS_REVIEWS.api_version,
        "kind": kinds.SUBJECT_ACCESS_REVIEWS.kind,
        "spec": {
            "user": user,
            "groups": ["system:serviceaccounts", "system:authenticated"],
            "resourceAttributes": attributes,
        },
    }
    answer = await client.create(kinds.SUBJECT_ACCESS_REVIEWS, review)
    return bool(objects.status(answer)["allowed"])


async def until_may(client: Client, user: str, question: str) -> None:
    """Wait until the API server allows it: it reads roles and bindings with a delay."""
    async with asyncio.timeout(kit.PATIENCE):
        while not await may(client, user, question):  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.05)


async def bind(
    client: Client, name: str, role: str, namespace: str = "vnode", account: str = "vnode"
) -> None:
    """Bind a ClusterRole to a service account, which is the agent's unless one is named."""
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    subjects = [{"kind": "ServiceAccount", "name": account, "namespace": namespace}]
    body = {"metadata": {"name": name}, "roleRef": reference, "subjects": subjects}
    await client.create(kinds.CLUSTER_ROLE_BINDINGS, body)


async def policy_refusal(client: Client, method: str, path: str, body: Object | None = None) -> str:
    """Return why an admission policy refuses a request, of which nothing comes in any case.

    Policies hold with a delay.
    """
    given = MERGE_PATCH if method == "PATCH" else JSON
    async with asyncio.timeout(kit.PATIENCE):
        while True:
            try:
                await client.request(method, path, query=DRY_RUN, body=body, content_type=given)
            except Denied as error:
                if "ValidatingAdmissionPolicy" in error.message:
                    return error.message

                raise

            await asyncio.sleep(0.1)
