"""Finds when the credentials of a kubeconfig expire, and builds the condition that warns in time.

A token or a certificate in a Secret names its own expiry; nobody renews it but its author, so the
Target warns a week ahead. Credentials that an exec plugin or a provider fetches have no such
expiry. Signatures are not checked: this serves to warn, not to trust.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
from cryptography import x509

from vnode.api import documents, objects, status_conditions
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.kube import endpoint
from vnode.targets import conditions

AHEAD: Final = timedelta(days=7)
"""How long before their end the credentials of a Target are called ending."""

_LONGEST: Final = 43200.0  # seconds
_CURE: Final = "run vnode connect again, or put a new kubeconfig into the Secret"


@dataclass(frozen=True, slots=True)
class CredentialExpiry:
    """Credentials that expire: `what` is "token" or "client certificate".

    `subject` is who has them.
    """

    what: str
    at: datetime
    subject: str = ""


def claims(token: str) -> dict[str, Any]:
    """Return the claims of a JSON web token, unchecked; empty if it is none."""
    try:
        payload = token.split(".")[1]
        found = msgspec.json.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (IndexError, ValueError, *documents.NO_JSON):
        return {}

    return found if isinstance(found, dict) else {}


def of_token(token: str) -> CredentialExpiry | None:
    """Return the expiry of a JSON web token; None if it is none, or has no expiry."""
    found = claims(token)
    try:
        at = datetime.fromtimestamp(float(found["exp"]), UTC)
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        return None

    return CredentialExpiry("token", at, str(found.get("sub", "")))


def of_certificate(pem: bytes) -> CredentialExpiry | None:
    """Return the expiry of a PEM certificate; None if it is none."""
    try:
        certificate = x509.load_pem_x509_certificate(pem)
        names = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    except ValueError:
        return None

    subject = str(names[0].value) if names else ""
    return CredentialExpiry("client certificate", certificate.not_valid_after_utc, subject)


def of_kubeconfig(text: bytes, context: str = "") -> CredentialExpiry | None:
    """Return the expiry of the credentials that a kubeconfig has inline; None if it has none."""
    try:
        user = endpoint.user_of(text, context)
    except ConfigError:
        return None

    if token := user.get("token"):
        return of_token(str(token))

    if data := user.get("client-certificate-data"):
        try:
            return of_certificate(base64.b64decode(str(data)))
        except (binascii.Error, ValueError):
            return None

    return None


def condition(target: Object, end: CredentialExpiry | None, now: datetime) -> Object | None:
    """Build the condition of a Target whose credentials end then; None if it needs none.

    It changes when credentials are replaced, AHEAD of their end, and at their end: never between.
    """
    if end is None:
        if objects.condition(target, conditions.CREDENTIALS_LAST) is None:
            return None

        verdict = (True, "NoEnd", "the credentials have no end of their own")
        return status_conditions.build(target, conditions.CREDENTIALS_LAST, *verdict, now)

    moment = f"{end.at:%Y-%m-%d %H:%M} UTC"
    if now >= end.at:
        verdict = (False, "Ended", f"the {end.what} ended on {moment}: {_CURE}")
    elif now >= end.at - AHEAD:
        verdict = (False, "EndingSoon", f"the {end.what} ends on {moment}: {_CURE}")
    else:
        verdict = (True, "Lasting", f"the {end.what} ends on {moment}")

    return status_conditions.build(target, conditions.CREDENTIALS_LAST, *verdict, now)


def seconds_until_change(end: CredentialExpiry | None, now: datetime) -> float | None:
    """Return the seconds until the condition may change; None if it will not.

    Half a day at most, because wall clocks may be set.
    """
    if end is None:
        return None

    changes = [change for change in (end.at - AHEAD, end.at) if change > now]
    return min((changes[0] - now).total_seconds() + 1, _LONGEST) if changes else None
