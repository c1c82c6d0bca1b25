"""Who calls the kubelet API of a virtual node.

A client certificate of the cluster's client CA (TLS has verified it by the time a request is read)
says so by itself: common name and organisations are user and groups. A bearer token is worth what
the API server's TokenReview says. There is no anonymous caller.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from vnode.api import kinds
from vnode.api.clock import Clock, SystemClock
from vnode.api.errors import VnodeError
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kubelet.caching import ExpiringCache

ACCEPTED_FOR: Final = 120.0  # seconds, the kubelet's default
REFUSED_FOR: Final = 10.0  # seconds
_LIMIT: Final = 4096  # tokens
_AUTHENTICATED: Final = "system:authenticated"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller, in the terms of SubjectAccessReview."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class Authenticator:
    """Turns credentials into an Identity."""

    def __init__(self, client: Client, clock: Clock | None = None) -> None:
        self._client = client
        # Token digest -> whom it stands for, or False for nobody; never the token itself.
        self._reviews: ExpiringCache[bytes, Identity | bool] = ExpiringCache(
            _LIMIT, clock or SystemClock()
        )

    async def authenticate(
        self, certificate: Mapping[str, Any] | None, authorization: str | None
    ) -> Identity | None:
        """The caller behind a verified peer certificate or an Authorization header, else None.

        `certificate` is what `ssl` gives as `peercert`. A token that cannot be reviewed because
        the API server does not answer is refused, and asked about again next time.
        """
        if certificate and (identity := from_certificate(certificate)):
            return identity

        if token := bearer_token(authorization):
            return await self._from_token(token)

        return None

    async def _from_token(self, token: str) -> Identity | None:
        digest = hashlib.sha256(token.encode()).digest()
        known = self._reviews.get(digest)
        if known is None:
            try:
                known = await self._review(token)
            except VnodeError as error:
                log.warning("cannot review a token of the kubelet API: %s", error)
                return None

            self._reviews.put(digest, known, ACCEPTED_FOR if known else REFUSED_FOR)

        return known if isinstance(known, Identity) else None

    async def _review(self, token: str) -> Identity | bool:
        review = await self._client.create(
            kinds.TOKEN_REVIEWS,
            {
                "apiVersion": kinds.TOKEN_REVIEWS.api_version,
                "kind": kinds.TOKEN_REVIEWS.kind,
                "spec": {"token": token},
            },
        )
        return from_review(review) or False


def bearer_token(authorization: str | None) -> str:
    """The token of an Authorization header, "" if it holds none."""
    scheme, _space, token = (authorization or "").strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def from_certificate(certificate: Mapping[str, Any]) -> Identity | None:
    """CN is the user, each O a group; None for a certificate without a common name."""
    pairs = [pair for name in certificate.get("subject") or () for pair in name]
    user = next((value for field, value in pairs if field == "commonName"), "")
    groups = tuple(value for field, value in pairs if field == "organizationName")
    return Identity(user, _with_authenticated(groups)) if user else None


def from_review(review: Object) -> Identity | None:
    """Whom a TokenReview's status names, None if it authenticates nobody."""
    status = review.get("status") or {}
    user = status.get("user") or {}
    if not status.get("authenticated") or not user.get("username"):
        return None

    extra = user.get("extra") or {}
    return Identity(
        str(user["username"]),
        _with_authenticated(tuple(user.get("groups") or ())),
        str(user.get("uid") or ""),
        tuple(sorted((key, tuple(values or ())) for key, values in extra.items())),
    )


def _with_authenticated(groups: tuple[str, ...]) -> tuple[str, ...]:
    return groups if _AUTHENTICATED in groups else (*groups, _AUTHENTICATED)
