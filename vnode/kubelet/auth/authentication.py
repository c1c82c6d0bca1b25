"""Authenticates callers of the kubelet API of a virtual node.

A verified client certificate (`client_certificates`) identifies its holder: common name and
organisations are user and groups. A bearer token is judged by the API server's TokenReview, also
beside a certificate that cannot be verified. There is no anonymous caller.

Bad tokens are remembered apart from good ones: callers make up as many as they like.
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
from vnode.runtime.reviews_in_flight import ReviewsInFlight

KEPT_FOR: Final = 120.0  # seconds, the kubelet's default, for good tokens and for bad ones
_LIMIT: Final = 4096  # tokens
_AUTHENTICATED: Final = "system:authenticated"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class UserInfo:
    """Describes a caller, in the terms of SubjectAccessReview."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class Authenticator:
    """Turns credentials into a UserInfo."""

    def __init__(self, client: Client, clock: Clock | None = None) -> None:
        self._client = client
        self._in_flight = ReviewsInFlight()
        clock = clock or SystemClock()
        # By the digest of a token, never the token itself.
        self._users: ExpiringCache[bytes, UserInfo] = ExpiringCache(_LIMIT, clock)
        self._bad: ExpiringCache[bytes, bool] = ExpiringCache(_LIMIT, clock)

    async def authenticate(
        self,
        certificate: x509.Certificate | None,
        authorization: str | None,
        node: str = "",
    ) -> UserInfo | None:
        """Return the caller by a verified client certificate or an Authorization header, else None.

        A token that cannot be reviewed because the API server does not answer is refused, and
        reviewed at the next request. Only so many tokens are reviewed at once for each `node`, the
        virtual node that is called.
        """
        if certificate is not None and (identity := from_certificate(certificate)):
            return identity

        if token := bearer_token(authorization):
            return await self._from_token(token, node)

        return None

    async def _from_token(self, token: str, node: str) -> UserInfo | None:
        digest = hashlib.sha256(token.encode()).digest()
        if self._is_known(digest):
            return self._users.get(digest)

        async with self._in_flight.one_more(node):
            if self._is_known(digest):  # by a review that was under way
                return self._users.get(digest)

            try:
                user = await self._review(token)
            except VnodeError as error:
                log.warning("cannot review a token of the kubelet API: %s", error)
                return None

        if user is None:
            self._bad.put(digest, True, KEPT_FOR)
        else:
            self._users.put(digest, user, KEPT_FOR)

        return user

    def _is_known(self, digest: bytes) -> bool:
        return self._users.get(digest) is not None or self._bad.get(digest) is not None

    async def _review(self, token: str) -> UserInfo | None:
        review = await self._client.create(
            kinds.TOKEN_REVIEWS,
            {
                "apiVersion": kinds.TOKEN_REVIEWS.api_version,
                "kind": kinds.TOKEN_REVIEWS.kind,
                "spec": {"token": token},
            },
        )
        return from_review(review)


def bearer_token(authorization: str | None) -> str:
    """Return the token of an Authorization header, "" if there is none.

    Tokens are ASCII; bytes that are no text could not even be put into a TokenReview.
    """
    scheme, _space, token = (authorization or "").strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.isascii() else ""


def from_certificate(certificate: x509.Certificate) -> UserInfo | None:
    """Return the user (CN) and groups (each O); None for a certificate without a common name."""
    try:
        users = _attributes(certificate, NameOID.COMMON_NAME)
        groups = _attributes(certificate, NameOID.ORGANIZATION_NAME)
    except ValueError:  # a subject that cannot be decoded
        return None

    # Of several names the last one counts, as in Go.
    return UserInfo(users[-1], _with_authenticated(groups)) if users and users[-1] else None


def _attributes(certificate: x509.Certificate, kind: x509.ObjectIdentifier) -> tuple[str, ...]:
    attributes = certificate.subject.get_attributes_for_oid(kind)
    return tuple(name.value for name in attributes if isinstance(name.value, str))


def from_review(review: Object) -> UserInfo | None:
    """Return the user in a TokenReview's status, None if it authenticates nobody."""
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
