"""Renews the tokens in Secrets that are managed, ahead of their end.

One for each term of a leader. A Target, or its Secret, changes, or its token is due; its key is
reconciled: the token is sent to the server that the Secret names, and to no other, to ask for a new
one for the same account. That goes back into the same version of the Secret: if somebody has
changed it since, perhaps to lead elsewhere, the new token is dropped. The connection then takes it
over from the Secret, in every replica (`connection.py`).
"""

from __future__ import annotations

import asyncio
import base64
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from vnode.api import kinds
from vnode.api.clock import Clock
from vnode.api.durations import TICK
from vnode.api.errors import (
    ApiError,
    ConfigError,
    Denied,
    Invalid,
    NotFound,
    Unreachable,
    VnodeError,
)
from vnode.api.target_key import TargetKey
from vnode.kube import account_tokens
from vnode.kube.client import Client
from vnode.kube.endpoint import Endpoint
from vnode.runtime.controller import Controller
from vnode.runtime.expectations import Expectations
from vnode.targets import renewal_rights, token_renewal
from vnode.targets.accesses import StoredKubeconfig
from vnode.targets.token_renewal import ManagedToken
from vnode.telemetry import audit, logs

_LIMIT: Final = 30.0  # seconds for one attempt
_REHEARSE: Final = 300.0  # seconds until missing rights are looked for again
_LEAST: Final = 60.0  # seconds between two tokens of a Target, whatever life its server gives

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Attempts:
    """What came of the last attempts to renew a Target's token; floats are monotonic moments."""

    token: str = field(default="", repr=False)
    seen: datetime | None = None  # when the token was first seen
    failures: int = 0  # in a row
    again: float = 0.0  # not to be tried before
    rehearsal: float = 0.0  # nor to be rehearsed
    rehearsed: float = -math.inf  # the last time
    failure: str = ""  # why the last one failed, if the Target is to say so


class TokenRenewer:
    """Renews tokens of Targets; `lookup` returns what a Target's Secret holds, None if nothing.

    `changed` is called with the key of a Target whose `failure` has changed.
    """

    def __init__(
        self,
        local: Client,
        lookup: Callable[[TargetKey], StoredKubeconfig | None],
        changed: Callable[[TargetKey], None],
        clock: Clock,
        *,
        connect: Callable[[Endpoint, str], Client] = lambda endpoint, name: Client(
            endpoint, name=name
        ),
    ) -> None:
        self._local = local
        self._lookup = lookup
        self._changed = changed
        self._clock = clock
        self._connect = connect
        self._attempts: dict[TargetKey, _Attempts] = {}
        self._expectations = Expectations(self.wake)
        self._controller: Controller[TargetKey] = Controller(
            "token-renewals",
            self._reconcile,
            subject=audit.of_target,
            workers=2,
            lane=lambda key: key.namespace,
            total=8,
        )

    def wake(self, key: TargetKey) -> None:
        """Reconcile that Target: its Secret may have changed."""
        self._controller.add(key)

    def failure(self, key: TargetKey) -> str:
        """Return why the token of a Target cannot be renewed, with the cure; "" if it can."""
        attempts = self._attempts.get(key)
        return attempts.failure if attempts else ""

    async def run(self) -> None:
        """Renew until cancelled."""
        await self._controller.run()

    async def _reconcile(self, key: TargetKey) -> float | None:
        stored = self._lookup(key)
        if stored is None:
            self._expectations.forget(key)
            self._attempts.pop(key, None)
            return None

        attempts, now = self._attempts.setdefault(key, _Attempts()), self._clock.now()
        token = _managed(stored)
        if token is None:
            attempts.failure = ""  # what is wrong now, the Target says by itself
            return None

        if self._expectations.pending(key, stored.secret):
            return None  # our last write is not in the informer yet; its event wakes this key

        if attempts.token != token.text:
            attempts.token, attempts.seen = token.text, now
            attempts.rehearsal = attempts.rehearsed + _LEAST

        due = token.renew_at(token_renewal.chance(token.text), attempts.seen)
        if now < due:
            attempts.failures = 0
            await self._rehearse(key, stored, token, attempts)
            ahead = max(attempts.rehearsal - self._clock.monotonic(), TICK)
            return min(token_renewal.until(due, now), ahead)

        if (wait := attempts.again - self._clock.monotonic()) > TICK:
            return wait

        with logs.context(target=str(key)):
            await self._attempt(key, stored, token, attempts)

        return max(attempts.again - self._clock.monotonic(), TICK)

    async def _attempt(
        self, key: TargetKey, stored: StoredKubeconfig, token: ManagedToken, attempts: _Attempts
    ) -> None:
        try:
            async with asyncio.timeout(_LIMIT):
                await self._renew(key, stored, token)
        except TimeoutError:
            self._failed(key, token, attempts, Unreachable(f"no answer within {_LIMIT:.0f} s"))
        except VnodeError as error:
            self._failed(key, token, attempts, error)
        else:
            attempts.again = self._clock.monotonic() + _LEAST
            self._succeeded(key, attempts)

    async def _rehearse(
        self, key: TargetKey, stored: StoredKubeconfig, token: ManagedToken, attempts: _Attempts
    ) -> None:
        """See whether the rights are there that the token will take when it is due."""
        if attempts.rehearsal - self._clock.monotonic() > TICK:
            return

        attempts.rehearsed = self._clock.monotonic()
        attempts.rehearsal = attempts.rehearsed + _REHEARSE
        try:
            async with asyncio.timeout(_LIMIT), self._connect(stored.endpoint, str(key)) as client:
                missing = await renewal_rights.missing(self._local, client, stored, token)
        except (VnodeError, TimeoutError) as error:
            log.debug("whether the token of %s can be renewed is not known: %s", key, error)
            return

        if not missing:
            attempts.rehearsal = math.inf  # for this token
            self._succeeded(key, attempts)
        elif attempts.failure != missing:
            log.warning("the token of %s cannot be renewed: %s", key, missing)
            attempts.failure = missing
            self._changed(key)

    async def _renew(self, key: TargetKey, stored: StoredKubeconfig, token: ManagedToken) -> None:
        """Put a new token into the Secret as it was read, or raise why there is none."""
        async with self._connect(stored.endpoint, str(key)) as client:
            try:
                spec = {"expirationSeconds": token.wanted}
                granted = await account_tokens.request(client, *token.account, spec)
            except (Denied, Invalid, NotFound) as error:
                raise ConfigError(_refusal(error, token)) from error

        token_renewal.check_granted(token, granted.text, self._clock.now())
        text = token_renewal.replaced(stored.kubeconfig, token.text, granted.text)
        body = {"data": {stored.reference.key: base64.b64encode(text).decode()}}
        try:
            after = await self._expectations.patch(
                self._local, kinds.SECRETS, stored.secret, body, key=key, if_unchanged=True
            )
        except Denied as error:
            where = stored.reference.object_key
            raise ConfigError(renewal_rights.refused_by_source(where, error.message)) from error
        except Invalid as error:
            raise ConfigError(f"the Secret takes no new token: {error.message}") from error

        if after is not None:
            account = "/".join(token.account)
            log.info("the token of %s was renewed; it ends at %s", account, granted.ends)

    def _failed(
        self, key: TargetKey, token: ManagedToken, attempts: _Attempts, error: VnodeError
    ) -> None:
        now = self._clock.now()
        attempts.failures += 1
        wait = token.retry_in(attempts.failures, now)
        attempts.again = self._clock.monotonic() + wait
        log.warning("the token was not renewed, next attempt in %.0f s: %s", wait, error)
        failure = str(error) if token.is_worth_reporting(error, now) else attempts.failure
        if failure != attempts.failure:
            attempts.failure = failure
            self._changed(key)

    def _succeeded(self, key: TargetKey, attempts: _Attempts) -> None:
        attempts.failures = 0
        if attempts.failure:
            attempts.failure = ""
            self._changed(key)


def _managed(stored: StoredKubeconfig) -> ManagedToken | None:
    """Return the token to renew; None also if that is impossible, as the Target says by itself."""
    try:
        return token_renewal.managed(stored.secret, stored.kubeconfig)
    except ConfigError:
        return None


def _refusal(error: ApiError, token: ManagedToken) -> str:
    """Tell why the target gives no token, and what to do."""
    if error.status == 401:
        return "the target does not accept it any more: run vnode connect again"

    if isinstance(error, Denied):
        return renewal_rights.refused_by_target(token, error.message)

    return f"the target gives no token: {error.message}"
