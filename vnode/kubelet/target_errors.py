"""Filters a target's answer for users: only text of an API server or a kubelet passes.

A target may be anybody's, and the author of its kubeconfig may have named another server of the
agent's network. Nobody must be able to read that by `kubectl exec` and `kubectl logs`.
"""

from __future__ import annotations

import re
from typing import Final

import aiohttp
import msgspec

from vnode.api.objects import Object
from vnode.kube import answers
from vnode.kubelet.refusal import Refused

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


def refusal(cluster: str, code: int, body: bytes) -> Refused:
    """Return the refusal for a target that answered a request for an upgrade by an HTTP code.

    A 401 concerns our credentials, not the user's, and a success is no upgrade: both are 502.
    """
    if code == 401:
        return Refused(502, f"target {cluster} refuses the credentials of its kubeconfig")

    if not 400 <= code < 600:
        return Refused(502, f"target {cluster} did not upgrade the connection ({code})")

    if status := _status(body):
        return Refused(code, msgspec.json.encode(status).decode(), "application/json")

    # An API server passes a kubelet's answer on unchanged, so these are no Status.
    text = body.decode(errors="replace").strip()
    if _KUBELETS.fullmatch(text):
        return Refused(code, text)

    return Refused(
        code,
        f"target {cluster} did not open the stream (HTTP {code}), and its answer is no "
        "Kubernetes Status: check that the container runs (kubectl describe pod)",
    )


def _status(body: bytes) -> Object | None:
    """Return a body that is a Status, reduced to the fields of a Status, else None."""
    status = answers.status_of(body)
    if status is None or status.get("apiVersion") != "v1":
        return None

    return {field: status[field] for field in _FIELDS if field in status}


def check_log(cluster: str, answer: aiohttp.ClientResponse) -> None:
    """Raise Refused unless an answer is a log: API servers always send logs as plain text."""
    if answer.content_type != _LOG:
        raise Refused(500, f"target {cluster} does not answer as an API server: no log is shown")
