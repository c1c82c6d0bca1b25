"""Decides when the token in a Target's Secret is renewed, and what may be put in its place: pure.

Only a Secret with the annotation `vnode.dev/renew-token` is managed; it names the life to ask for.
When a token is due follows from its own claims, since an API server may give less than was asked
for. Signatures are not checked: who wrote the Secret wrote the server and the token.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from vnode.api import account_users, durations, keys, objects
from vnode.api.errors import ConfigError, VnodeError
from vnode.api.objects import Object
from vnode.kube.kubeconfig import Kubeconfig
from vnode.targets import expiry
from vnode.targets.expiry import Renewal

RENEW_AT: Final = 0.8  # of the life that was granted
_SPREAD: Final = 0.05  # of the life: tokens that were made together are not renewed together
_TELL_AT: Final = 0.9  # of the life: what may pass by itself is told from then on
_RETRY_FIRST: Final = 10.0  # seconds
_RETRY_LIMIT: Final = 300.0  # seconds
_LAST_CHANCES: Final = 4.0  # what is left of the life is good for so many attempts, at least
SHORTEST: Final = 600  # seconds; API servers give no shorter token
_LARGEST: Final = 16_384  # characters of a token; those of API servers have a thousand
_TOKEN: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.=-]+")


@dataclass(frozen=True, slots=True)
class ManagedToken:
    """A token that the agent renews: whose it is, how long it lives, and the life to ask for.

    `account` is (namespace, name) of the service account, `wanted` is in seconds.
    """

    text: str = field(repr=False)
    account: tuple[str, str]
    issued: datetime
    ends: datetime
    wanted: int

    def renew_at(self, chance: float, seen: datetime | None = None) -> datetime:
        """Return when to renew it; `chance` (0 to 1) spreads that.

        It has lived since it was first `seen` at the latest, though its API server's clock may be
        ahead of ours.
        """
        share = RENEW_AT - _SPREAD * chance
        issued = self.issued if seen is None else min(self.issued, seen)
        return issued + share * (self.ends - self.issued)

    def is_worth_reporting(self, error: VnodeError, now: datetime) -> bool:
        """Tell whether the Target has to say that it could not be renewed for that reason."""
        return isinstance(error, ConfigError) or now >= self._at(_TELL_AT)

    def retry_in(self, failures: int, now: datetime) -> float:
        """Return the seconds from so many failures in a row to the next attempt."""
        left = (self.ends - now).total_seconds()
        delay = retry_delay(failures)
        return max(min(delay, left / _LAST_CHANCES), _RETRY_FIRST) if left > 0 else delay

    def _at(self, share: float) -> datetime:
        return self.issued + share * (self.ends - self.issued)


def chance(token: str) -> float:
    """Return a number from 0 to 1 that is always the same for a token, so for every replica."""
    return int.from_bytes(hashlib.sha256(token.encode()).digest()[:4]) / 2**32


def parse_lifetime(text: str, setting: str) -> int:
    """Parse `90m`, `24h` or `365d` to seconds; ConfigError, which names the setting, for all else.

    API servers give no token for less than ten minutes.
    """
    with suppress(ConfigError):
        if (found := int(durations.seconds(text, setting, days=True))) >= SHORTEST:
            return found

    raise ConfigError(f"{setting} {text[:40]!r} must be at least 10m, e.g. 24h or 365d")


def managed(secret: Object, kubeconfig: Kubeconfig) -> ManagedToken | None:
    """Return the token of a Secret that is to be renewed; None if the Secret is not managed.

    ConfigError says why the token cannot be renewed, and what to do.
    """
    lifetime = objects.annotations(secret).get(keys.RENEW_TOKEN)
    if lifetime is None:
        return None

    wanted = parse_lifetime(lifetime, f"annotation {keys.RENEW_TOKEN}")
    claims = expiry.claims(kubeconfig.token)
    account = account_users.account_of(str(claims.get("sub")))
    if account is None:
        raise ConfigError(
            "the kubeconfig has no token of a service account: renew it yourself, and remove "
            f"annotation {keys.RENEW_TOKEN} of the Secret"
        )

    issued, ends = _moment(claims, "iat"), _moment(claims, "exp")
    if issued is None or ends is None or issued >= ends:
        raise ConfigError(
            "the token does not say how long it lives: put one that ends into the Secret (kubectl "
            f"create token), or remove annotation {keys.RENEW_TOKEN}"
        )

    _check_place(kubeconfig)
    return ManagedToken(kubeconfig.token, account, issued, ends, wanted)


def read(text: str, wanted: int) -> ManagedToken | None:
    """Return a token as it says of itself; None if it does not say whose it is, and its life."""
    claims = expiry.claims(text)
    account = account_users.account_of(str(claims.get("sub")))
    issued, ends = _moment(claims, "iat"), _moment(claims, "exp")
    if account is None or issued is None or ends is None or issued >= ends:
        return None

    return ManagedToken(text, account, issued, ends, wanted)


def retry_delay(failures: int) -> float:
    """Return the seconds to the next attempt after so many failures in a row."""
    return min(_RETRY_FIRST * 2.0 ** min(failures - 1, 16), _RETRY_LIMIT)


def plan(secret: Object, kubeconfig: Kubeconfig) -> Renewal | None:
    """Return what becomes of the credentials as far as the Secret says; None if not managed."""
    try:
        token = managed(secret, kubeconfig)
    except ConfigError as error:
        return Renewal(None, str(error))

    return Renewal(token.renew_at(chance(token.text))) if token else None


def check_granted(token: ManagedToken, granted: str, now: datetime) -> None:
    """Raise ConfigError unless that can take the place of a token: whoever sent it chose it."""
    claims = expiry.claims(granted)
    ends, issued = _moment(claims, "exp"), _moment(claims, "iat")
    if len(granted) > _LARGEST or not _TOKEN.fullmatch(granted):
        problem = "it has characters, or a length, that no token has"
    elif account_users.account_of(str(claims.get("sub"))) != token.account:
        problem = "it is for another account"
    elif ends is None or issued is None or ends <= now:
        problem = "it has no end, or has ended already; are the clocks of both clusters right?"
    else:
        return

    raise ConfigError(f"the target's new token is not used: {problem}")


def replaced(kubeconfig: Kubeconfig, token: str, granted: str) -> bytes:
    """Return a kubeconfig's text with the new token in the place of the old one."""
    return kubeconfig.text.replace(token.encode(), granted.encode())


def _check_place(kubeconfig: Kubeconfig) -> None:
    """Raise ConfigError unless the token can be replaced, and goes to no other server then."""
    if kubeconfig.text.count(kubeconfig.token.encode()) != 1:
        raise ConfigError(
            "the kubeconfig must have the token once, on a line of its own, for vnode to replace "
            "it: write one user with that token, as kubectl config does"
        )

    own = kubeconfig.context
    for other, entry in kubeconfig.contexts:
        if entry.get("user") == own.get("user") and entry.get("cluster") != own.get("cluster"):
            raise ConfigError(
                f"context {other!r} of the kubeconfig sends the same user's token to another "
                "cluster, which a new token must not reach: give each context a user of its own"
            )


def _moment(claims: Mapping[str, Any], claim: str) -> datetime | None:
    try:
        return datetime.fromtimestamp(float(claims[claim]), UTC)
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        return None


def until(moment: datetime, now: datetime) -> float:
    """Return the seconds until that is past, half a day at most: wall clocks may be set."""
    return min((moment - now) / timedelta(seconds=1) + 1, expiry.LONGEST)
