"""Tries whether pods are elected: creates one with `dryRun`, which goes through admission only.

Nothing else shows whether the API server can call the webhook. The pod is as modest as pods can be,
and where a namespace takes none all the same, for its quota or a policy, the next one is tried.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final, NamedTuple

from vnode.api import keys, kinds, objects
from vnode.api.errors import ApiError, Denied, Unreachable
from vnode.api.objects import Object
from vnode.kube.client import Client

_MOST: Final = 8  # namespaces that are tried
_MODEST: Final = {"cpu": "1m", "memory": "1Mi"}
_BY_WEBHOOK: Final = re.compile(r"\bwebhook\b")
_BY_POLICY: Final = re.compile(r"ValidatingAdmissionPolicy '[^']+' with binding")
_TRIAL: Final[Object] = {
    "metadata": {"generateName": "vnode-doctor-", "annotations": {keys.ELECT: ""}},
    "spec": {
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65534,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "trial",
                "image": "trial",
                "resources": {"requests": _MODEST, "limits": _MODEST},
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                },
            }
        ],
    },
    "apiVersion": "v1",
    "kind": "Pod",
}


class Trial(NamedTuple):
    """What came of a trial pod.

    `failure` says why it was not elected, "" if it was; None if none could be created, and then
    `refused` says why, "" where there is no namespace to try it in.
    """

    failure: str | None = None
    refused: str = ""


async def find(client: Client, named: tuple[str, ...]) -> Trial:
    """Try a pod in a namespace that has the webhook, of those that are named if any are."""
    label, value = keys.WEBHOOK_NAMESPACE_LABEL
    try:
        labelled = await client.list(kinds.NAMESPACES, label_selector=f"{label}={value}")
    except ApiError:
        return Trial()

    # In one that is being deleted nothing can be created.
    lasting = (objects.name(each) for each in labelled if not objects.is_terminating(each))
    trial = Trial()
    for name in islice((each for each in lasting if not named or each in named), _MOST):
        trial = await create(client, name)
        if trial.failure is not None:
            return trial

    return trial


async def create(client: Client, namespace: str) -> Trial:
    """Try a pod in that namespace."""
    path = kinds.PODS.path(namespace)
    try:
        pod = await client.request("POST", path, query={"dryRun": "All"}, body=_TRIAL)
    except (ApiError, Unreachable) as error:
        said = error.message if isinstance(error, Denied) else str(error)
        is_refused = isinstance(error, Denied) and not _BY_WEBHOOK.search(said)
        if is_refused or _BY_POLICY.search(said):
            return Trial(refused=f"namespace {namespace}: {said}")

        return Trial(said)

    if objects.spec(pod).get("schedulerName") == keys.PROXY_SCHEDULER:
        return Trial("")

    return Trial("the webhook was not called, or did not elect the pod")
