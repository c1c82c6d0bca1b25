"""Which words of a target's answer users are shown: those of an API server, and of a kubelet's few.

A target may be anybody's, and whoever wrote its kubeconfig may have put another server of the
agent's network in its place. Nobody is to read that by `kubectl exec` and `kubectl logs`.
"""

from __future__ import annotations

import re
from typing import Final

import aiohttp
import msgspec

from vnode.api.objects import Object
from vnode.kube import answers
from vnode.kubelet.refusal import Refused
from vnode.kubelet.streams import http_upgrade

_FIELDS: Final = (
    "kind",
    "apiVersion",
    "metadata",
    "status",
    "message",
    "reason",
    "details",
    "code",
)
_KUBELETS: Final = re.compile(
    r'container not found \("[a-z0-9.-]{1,253}"\)|pod does not exist|'
    r'pod not found \("[a-z0-9_.()-]{1,600}"\)'
)
_LOG: Final = "text/plain"


def refusal(cluster: str, answer: http_upgrade.Answer, body: bytes) -> Refused:
    """What the user is told when the target says no to an upgrade, with the target's status.

    A 401 concerns our credentials, not the user's, and a success is no upgrade: both are 502.
    """
    if answer.status == 401:
        return Refused(502, f"target {cluster} refuses the credentials of its kubeconfig")

    if not 400 <= answer.status < 600:
        return Refused(502, f"target {cluster} did not upgrade the connection ({answer.status})")

    if status := _status(body):
        return Refused(answer.status, msgspec.json.encode(status).decode(), "application/json")

    # An API server passes a kubelet's answer on as it is, so these are no Status.
    text = body.decode(errors="replace").strip()
    if _KUBELETS.fullmatch(text):
        return Refused(answer.status, text)

    return Refused(
        answer.status,
        f"target {cluster} did not open the stream (HTTP {answer.status}), and said why in other "
        "words than an API server's: see whether the container runs (kubectl describe pod)",
    )


def _status(body: bytes) -> Object | None:
    """The Status that a body is, with its own fields only; None if it is something else."""
    found = answers.status_of(body)
    if found is None or found.get("apiVersion") != "v1":
        return None

    return {field: found[field] for field in _FIELDS if field in found}


def check_log(cluster: str, answer: aiohttp.ClientResponse) -> None:
    """Raise Refused for what is no log: an API server gives logs the type of plain text, always."""
    if answer.content_type != _LOG:
        raise Refused(500, f"target {cluster} does not answer as an API server: no log is shown")
