"""Keeps the key by which the webhook signs saved manifests, in a Secret that all replicas share.

The first replica creates the Secret; the others find it. Whoever deletes it revokes all signatures:
the agents make another key, and pods that wait go nowhere until they are created again.

The Secret says, too, since when signatures of authors have a time (`vnode.api.authors`): when the
first agent that writes one found it, or made it.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from datetime import datetime
from typing import Final

from vnode.api import authors, kinds, objects
from vnode.api.errors import AlreadyExists, ConfigError, Conflict, NotFound, VnodeError
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.runtime.certs import authority, renewal
from vnode.telemetry import audit

SECRET: Final = "vnode-manifest-key"  # noqa: S105 - its name
_FIELD: Final = "key"
_SINCE: Final = "authorsTimedSince"
_BYTES: Final = 32  # as many as SHA-256 gives
_RETRY: Final = 5.0  # seconds

log = logging.getLogger(__name__)


def random_key() -> bytes:
    """Return a new key."""
    return secrets.token_bytes(_BYTES)


class ManifestKey:
    """Holds the key. Call `load` first, then `run`.

    `now` returns the API server's time, for an agent, which signs authors.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        *,
        make: Callable[[], bytes] = random_key,
        now: Callable[[], datetime] | None = None,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._make = make
        self._now = now
        self._key = b""
        self.authors_timed_since = authors.NEVER

    @property
    def key(self) -> bytes:
        """The key that signs, and that signatures are checked with."""
        assert self._key, "load the key first"
        return self._key

    async def load(self) -> None:
        """Read the key, or make it if there is none.

        ConfigError if the Secret holds something else.
        """
        try:
            secret = await self._client.get(kinds.SECRETS, SECRET, self._namespace)
        except NotFound:
            secret = await self._create()

        self._key = _parse(secret)
        since = _timed_since(secret)
        if since is None and self._now is not None:
            since = await self._begin(secret, self._now())

        self.authors_timed_since = since or authors.NEVER

    async def run(self) -> None:
        """Follow the Secret, and make it again if it is deleted."""
        informer = Informer.of_object(self._client, kinds.SECRETS, SECRET, self._namespace)
        await renewal.keep_object(informer, self._reconcile)

    async def _reconcile(self) -> float | None:
        try:
            await self.load()
        except VnodeError as error:
            log.warning("the key in Secret %s/%s: %s", self._namespace, SECRET, error)
            return _RETRY

        return None

    async def _begin(self, secret: Object, now: datetime) -> datetime:
        """Write that signatures of authors have a time from now on; return since when they do."""
        data = authority.secret_of("", "", {_SINCE: _written(now)})["data"]
        try:
            body = objects.if_unchanged({"data": data}, secret)
            with audit.on_behalf_of(audit.AGENT):
                secret = await self._client.patch(kinds.SECRETS, SECRET, body, self._namespace)
        except Conflict:  # another replica has
            secret = await self._client.get(kinds.SECRETS, SECRET, self._namespace)

        return _timed_since(secret) or now

    async def _create(self) -> Object:
        data = {_FIELD: self._make()}
        if self._now is not None:
            data[_SINCE] = _written(self._now())

        secret = authority.secret_of(self._namespace, SECRET, data, kind="Opaque")
        try:
            with audit.on_behalf_of(audit.AGENT):
                created = await self._client.create(kinds.SECRETS, secret)
        except AlreadyExists:
            return await self._client.get(kinds.SECRETS, SECRET, self._namespace)

        log.info("created a new key in Secret %s/%s", self._namespace, SECRET)
        return created


def _written(time: datetime) -> bytes:
    return objects.timestamp(time).encode()


def _timed_since(secret: Object) -> datetime | None:
    time = objects.parse_timestamp(authority.data_of(secret, _SINCE).decode(errors="replace"))
    return time if time is not None and time.tzinfo is not None else None


def _parse(secret: Object) -> bytes:
    key = authority.data_of(secret, _FIELD)
    if len(key) != _BYTES:
        raise ConfigError(
            f"Secret {objects.key(secret)} holds no key of {_BYTES} bytes: delete it, and the "
            "agent creates another"
        )

    return key
