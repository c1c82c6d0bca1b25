"""Gives rights on API servers, asks what somebody may do, and waits until that is known."""

from __future__ import annotations

import asyncio

from vnode.api import kinds, objects
from vnode.kube.client import Client


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
    async with asyncio.timeout(30):
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
