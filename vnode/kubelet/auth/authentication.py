"""Who calls the kubelet API of a virtual node.

A client certificate that is believed (`vetting`) says so by itself: common name and organisations
are user and groups. A bearer token is worth what the API server's TokenReview says, also beside a
certificate that is not believed. There is no anonymous caller.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from typing import Final

from cryptography import x509
from cryptography.x509.oid import NameOID

from vnode.api import kinds
from vnode.api.clock import Clock, SystemClock
from vnode.api.errors import VnodeError
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kubelet.auth.cache import ExpiringCache

KEPT_FOR: Final = 120.0  # seconds, the kubelet's default, for good tokens and for bad ones
_LIMIT: Final = 4096  # tokens
_AUTHENTICATED: Final = "system:authenticated"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class UserInfo:
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
        self._reviews: ExpiringCache[bytes, UserInfo | bool] = ExpiringCache(
            _LIMIT, clock or SystemClock()
        )

    async def authenticate(
        self, certificate: x509.Certificate | None, authorization: str | None
    ) -> UserInfo | None:
        """The caller behind a vetted client certificate or an Authorization header, else None.

        A token that cannot be reviewed because
        the API server does not answer is refused, and asked about again next time.
        """
        if certificate is not None and (identity := from_certificate(certificate)):
            return identity

        if token := bearer_token(authorization):
            return await self._from_token(token)

        return None

    async def _from_token(self, token: str) -> UserInfo | None:
        digest = hashlib.sha256(token.encode()).digest()
        known = self._reviews.get(digest)
        if known is None:
            try:
                known = await self._review(token)
            except VnodeError as error:
                log.warning("cannot review a token of the kubelet API: %s", error)
                return None

            self._reviews.put(digest, known, KEPT_FOR)

        return known if isinstance(known, UserInfo) else None

    async def _review(self, token: str) -> UserInfo | bool:
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
    """The token of an Authorization header, "" if it holds none.

    No token has letters beyond ASCII; bytes that are no text could not even be asked about.
    """
    scheme, _space, token = (authorization or "").strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.isascii() else ""


def from_certificate(certificate: x509.Certificate) -> UserInfo | None:
    """CN is the user, each O a group; None for a certificate without a common name."""
    try:
        users = _words(certificate, NameOID.COMMON_NAME)
        groups = _words(certificate, NameOID.ORGANIZATION_NAME)
    except ValueError:  # a subject that cannot be decoded
        return None

    # Of several names the last one counts, as in Go.
    return UserInfo(users[-1], _with_authenticated(groups)) if users and users[-1] else None


def _words(certificate: x509.Certificate, kind: x509.ObjectIdentifier) -> tuple[str, ...]:
    found = certificate.subject.get_attributes_for_oid(kind)
    return tuple(word.value for word in found if isinstance(word.value, str))


def from_review(review: Object) -> UserInfo | None:
    """Whom a TokenReview's status names, None if it authenticates nobody."""
    status = review.get("status") or {}
    user = status.get("user") or {}
    if not status.get("authenticated") or not user.get("username"):
        return None

    extra = user.get("extra") or {}
    return UserInfo(
        str(user["username"]),
        _with_authenticated(tuple(user.get("groups") or ())),
        str(user.get("uid") or ""),
        tuple(sorted((key, tuple(values or ())) for key, values in extra.items())),
    )


def _with_authenticated(groups: tuple[str, ...]) -> tuple[str, ...]:
    return groups if _AUTHENTICATED in groups else (*groups, _AUTHENTICATED)
