"""Kubeconfigs for tests, and what endpoint is made of them."""

from __future__ import annotations

import base64
from pathlib import Path

import trustme

from vnode.kube import endpoint
from vnode.kube.endpoint import Endpoint
from vnode.kube.kubeconfig import Kubeconfig

TOKEN = "s3cr3t-t0k3n"


def b64(data: bytes) -> str:
    """Encode bytes as kubeconfigs have them."""
    return base64.b64encode(data).decode()


def pair_of():
    """Make an authority, and a client's certificate with its key."""
    authority = trustme.CA()
    leaf = authority.issue_cert("someone@example.com")
    return (
        authority.cert_pem.bytes(),
        b"".join(blob.bytes() for blob in leaf.cert_chain_pems),
        leaf.private_key_pem.bytes(),
    )


def config(*, cluster=None, user=None, context=None, **top):
    """Build a kubeconfig of one context, with these changes."""
    return {
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "c", "user": "u", **(context or {})}}],
        "clusters": [
            {"name": "c", "cluster": {"server": "https://10.0.0.1:6443", **(cluster or {})}}
        ],
        "users": [{"name": "u", "user": user if user is not None else {"token": TOKEN}}],
        **top,
    }


def endpoint_of(text, context=None, *, base=Path(), **trust) -> Endpoint:
    """Return the endpoint of a kubeconfig that is a Target's, unless it has more `trust`."""
    return endpoint.from_kubeconfig(Kubeconfig.parse(text, context, base), **trust)
