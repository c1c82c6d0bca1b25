"""Remembers which chains of client certificates are believed, and bounds what judging them costs.

A chain is judged once for each connection and set of authorities, not at each request. Those that
are believed are remembered beyond, apart from others: strangers make up as many as they like. What
chains that are not believed have cost, the address that they come from has to wait for, so that
its next ones are judged later; those that are known to be good do not wait.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from weakref import WeakKeyDictionary

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes

from vnode.api.clock import Clock
from vnode.api.token_bucket import TokenBuckets
from vnode.kubelet.auth import client_certificates
from vnode.runtime.certs.asked_clients import peer_certificates

SHARE: Final = 0.01
"""Of the time, for chains of one address that are not believed."""
AT_ONCE: Final = 0.1  # seconds of it
_USUAL: Final = 0.002  # seconds that are had of it until the cost of a chain is known
_PATIENCE: Final = 5.0  # seconds that a request waits for its chain to be judged, at most
_KEPT: Final = 256  # chains that are believed, first the one that was judged first
_NEVER: Final = datetime.max.replace(tzinfo=UTC)

Authorities = Sequence[x509.Certificate]


@dataclass(frozen=True, slots=True)
class _Verdict:
    authorities: Authorities
    since: datetime
    until: datetime  # when one of the certificates begins or ends to be valid
    believed: x509.Certificate | None

    def holds(self, authorities: Authorities, now: datetime) -> bool:
        return self.authorities is authorities and self.since <= now < self.until


class Verdicts:
    """Returns the certificate of a request's caller, if it is believed.

    `authorities` returns the present client CAs: the same object until they change.
    """

    def __init__(self, authorities: Callable[[], Authorities], clock: Clock) -> None:
        self._authorities = authorities
        self._clock = clock
        self._of_connections: WeakKeyDictionary[asyncio.BaseTransport, _Verdict] = (
            WeakKeyDictionary()
        )
        self._good: OrderedDict[bytes, _Verdict] = OrderedDict()
        self._costs: TokenBuckets[str] = TokenBuckets(AT_ONCE)

    async def certificate(self, request: web.Request) -> x509.Certificate | None:
        """Return the caller's certificate; None if there is none that the authorities vouch for.

        None, too, if so many of the address were judged in vain that it would have to wait long.
        """
        transport = request.transport
        known = self._of_connections.get(transport) if transport is not None else None
        if known is not None and known.holds(self._authorities(), self._clock.now()):
            return known.believed

        chain = peer_certificates(request.get_extra_info("ssl_object"))
        if not chain:
            return None

        verdict = self._remembered(chain) or await self._judge(chain, _address(request))
        if verdict is None:
            return None

        if transport is not None:
            self._of_connections[transport] = verdict

        return verdict.believed

    def _remembered(self, chain: Sequence[x509.Certificate]) -> _Verdict | None:
        known = self._good.get(_digest(chain))
        return known if known and known.holds(self._authorities(), self._clock.now()) else None

    async def _judge(self, chain: Sequence[x509.Certificate], address: str) -> _Verdict | None:
        bucket = self._costs.of(address, SHARE, self._clock.monotonic())
        wait = bucket.reserve(self._clock.monotonic(), _USUAL)
        if wait > _PATIENCE:
            bucket.reserve(self._clock.monotonic(), -_USUAL)
            return None

        if wait > 0:
            await self._clock.sleep(wait)

        authorities, now = self._authorities(), self._clock.now()
        began = time.thread_time()
        believed = client_certificates.verify(chain, authorities, now)
        cost = time.thread_time() - began if believed is None else 0.0
        bucket.reserve(self._clock.monotonic(), cost - _USUAL)
        verdict = _Verdict(authorities, now, _change((*chain, *authorities), now), believed)
        if believed is not None:
            self._good[_digest(chain)] = verdict
            self._good.move_to_end(_digest(chain))
            if len(self._good) > _KEPT:
                self._good.popitem(last=False)

        return verdict


def _digest(chain: Sequence[x509.Certificate]) -> bytes:
    each = [certificate.fingerprint(hashes.SHA256()) for certificate in chain]
    return hashlib.sha256(b"".join(each)).digest()


def _address(request: web.Request) -> str:
    peer = request.get_extra_info("peername")
    return str(peer[0]) if peer else ""


def _change(certificates: Sequence[x509.Certificate], now: datetime) -> datetime:
    """Return when the first of the certificates begins or ends to be valid."""
    moments: list[datetime] = []
    for certificate in certificates:
        try:
            moments += certificate.not_valid_before_utc, certificate.not_valid_after_utc
        except ValueError:  # a date that is none
            continue

    return min((moment for moment in moments if moment > now), default=_NEVER)
