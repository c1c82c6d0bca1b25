"""Builds the Secret of a request, and reads the token that it holds. No I/O.

It has the keys `kubeconfig`, `token` and `ca.crt`, and belongs to the request: it goes with it.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.issuing.request import IssueSpec
from vnode.kube import kubeconfig_text
from vnode.kube.endpoint import Endpoint
from vnode.kube.kubeconfig_text import ClusterEndpoint
from vnode.targets import token_renewal
from vnode.targets.token_renewal import ManagedToken

TYPE: Final = "Opaque"


@dataclass(frozen=True, slots=True)
class TokenPlace:
    """Where a token is good: the API server as the Target has it, and the UID of its cluster."""

    server: ClusterEndpoint
    cluster_uid: str

    @classmethod
    def of(cls, endpoint: Endpoint, cluster_uid: str) -> TokenPlace:
        """Return the place that an endpoint leads to."""
        insecure = endpoint.ssl is not None and not endpoint.ssl.check_hostname
        server = ClusterEndpoint(
            endpoint.url, endpoint.authority, endpoint.server_name, insecure=insecure
        )
        return cls(server, cluster_uid)


def data(place: TokenPlace, spec: IssueSpec, token: str) -> dict[str, str]:
    """Return the data of the Secret, with this token."""
    found = {
        "kubeconfig": kubeconfig_text.build(place.server, token, spec.account[0]),
        "token": token.encode(),
    }
    if place.server.authority:
        found["ca.crt"] = place.server.authority

    return {key: base64.b64encode(value).decode() for key, value in found.items()}


def build(request: Object, place: TokenPlace, spec: IssueSpec, token: str) -> Object:
    """Build the Secret of a request."""
    kind = kinds.AUTH_TOKEN_REQUESTS
    owner = objects.reference(request, kind.kind, kind.api_version)
    return {
        "metadata": {
            "name": objects.name(request),
            "namespace": objects.namespace(request),
            "labels": {keys.ISSUED: spec.uid},
            "annotations": {keys.ISSUED_IN: place.cluster_uid},
            "ownerReferences": [
                {
                    "apiVersion": owner["apiVersion"],
                    "kind": owner["kind"],
                    "name": objects.name(request),
                    "uid": spec.uid,
                    "controller": True,
                }
            ],
        },
        "type": TYPE,
        "data": data(place, spec, token),
    }


def is_of(secret: Object, request: Object) -> bool:
    """Tell whether a Secret is the one that was made for a request."""
    labelled = objects.labels(secret).get(keys.ISSUED) == objects.uid(request)
    is_owned = objects.controller_uid(secret) == objects.uid(request)
    return labelled and is_owned and secret.get("type") == TYPE


def token_of(secret: Object | None, place: TokenPlace, spec: IssueSpec) -> ManagedToken | None:
    """Return the token that a Secret holds; None if there is none for this account and cluster."""
    if secret is None:
        return None

    held = objects.annotations(secret).get(keys.ISSUED_IN, "")
    if held and place.cluster_uid and held != place.cluster_uid:
        return None  # another cluster has taken the place of the one that gave it

    return stored_token(secret, spec)


def stored_token(secret: Object, spec: IssueSpec) -> ManagedToken | None:
    """Return the token for the account of a request that a Secret holds, wherever it is good."""
    try:
        text = base64.b64decode((secret.get("data") or {}).get("token") or "").decode()
    except (binascii.Error, UnicodeDecodeError):
        return None

    token = token_renewal.read(text, spec.life)
    return token if token is not None and token.account == spec.account else None
