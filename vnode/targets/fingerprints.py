"""Tells what a changed Secret takes: a new connection, a move to another address, or neither.

A service account's token that is replaced by another one of the same account changes nothing but
what further requests send: informers, watches and the streams of users go on. Another address or
authority for the same user may still be the same cluster: a connection moves there once that is
shown. Another user may have other rights, and takes a new connection. So does another client
certificate.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from vnode.kube.kubeconfig import Kubeconfig
from vnode.targets import expiry
from vnode.targets.model import TargetSpec


class Fingerprint(NamedTuple):
    """Three digests: `connection` changes when a new connection must be made, `server` when the
    address or the authority may be another one, `token` when requests must be sent with another
    token."""

    connection: str
    server: str
    token: str


def of_self(spec: TargetSpec) -> Fingerprint:
    """Return the fingerprint of a Target that is this cluster itself."""
    return Fingerprint(_digest(repr(spec)), _digest(""), _digest(""))


def of_kubeconfig(spec: TargetSpec, kubeconfig: Kubeconfig) -> Fingerprint:
    """Return the fingerprint of a Target and its kubeconfig."""
    user, text, token = kubeconfig.user, kubeconfig.text, kubeconfig.token
    if holder := _holder(token):
        text = text.replace(token.encode(), holder.encode())
        user = {**user, "token": holder}

    return Fingerprint(_digest(repr((spec, user))), _digest(text), _digest(token))


def of_profile(
    spec: TargetSpec, plugin: object, server: object, certificate: str, token: str
) -> Fingerprint:
    """Return the fingerprint of a Target with a ClusterProfile, of which `plugin` is all that
    identifies the user, `server` all that identifies the API server.

    A plugin's token is one of the same holder: the plugin and what it is told are the same.
    """
    user = repr((spec, plugin, certificate))
    return Fingerprint(_digest(user), _digest(repr(server)), _digest(token))


def _holder(token: str) -> str:
    """Return issuer and subject of a JSON web token; "" if it does not name both.

    They are not verified: a token that names another holder than it has does no more than one that
    the target's administrator gives other rights.
    """
    claims = expiry.claims(token)
    issuer, subject = claims.get("iss"), claims.get("sub")
    named = isinstance(issuer, str) and isinstance(subject, str) and issuer and subject
    return f"{issuer}\0{subject}" if named else ""


def _digest(data: bytes | str) -> str:
    return hashlib.sha256(data if isinstance(data, bytes) else data.encode()).hexdigest()
