"""Finds when the credentials of a kubeconfig expire, and builds the condition that warns in time.

A token or a certificate in a Secret names its own expiry; nobody renews it but its author, so the
Target warns a week ahead. Credentials that an exec plugin or a provider fetches have no such
expiry. Signatures are not checked: this serves to warn, not to trust.
"""

from __future__ import annotations

import base64
import binascii
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from vnode.api import documents, objects, status_conditions
from vnode.api.objects import Object
from vnode.kube.kubeconfig import Kubeconfig
from vnode.targets import conditions
from vnode.telemetry import metrics

AHEAD: Final = timedelta(days=7)
"""How long before their end the credentials of a Target are called ending."""

LONGEST: Final = 43200.0  # seconds
"""How long to wait at most for a moment of the wall clock, which may be set."""
NOT_RENEWED: Final = "NotRenewed"
"""The reason of a Target whose credentials the agent was told to renew, and cannot."""
_CURE: Final = "run vnode connect again, or put a new kubeconfig into the Secret"


@dataclass(frozen=True, slots=True)
class CredentialExpiry:
    """Credentials that expire: `what` is "token" or "client certificate".

    `subject` is who has them.
    """

    what: str
    at: datetime
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Renewal:
    """What becomes of the credentials of a managed Secret.

    They are renewed at `at`; `failure` says why they cannot be, with the cure, "" if they can.
    """

    at: datetime | None
    failure: str = ""


def claims(token: str) -> dict[str, Any]:
    """Return the claims of a JSON web token, unchecked; empty if it is none."""
    try:
        payload = token.split(".")[1]
        found = documents.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
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
    from cryptography import x509  # as long an import as many, and most kubeconfigs have a token

    try:
        certificate = x509.load_pem_x509_certificate(pem)
        names = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    except ValueError:
        return None

    subject = str(names[0].value) if names else ""
    return CredentialExpiry("client certificate", certificate.not_valid_after_utc, subject)


def of_kubeconfig(kubeconfig: Kubeconfig) -> CredentialExpiry | None:
    """Return the expiry of the credentials that a kubeconfig has inline; None if it has none."""
    if kubeconfig.token:
        return of_token(kubeconfig.token)

    if data := kubeconfig.user.get("client-certificate-data"):
        try:
            return of_certificate(base64.b64decode(str(data)))
        except (binascii.Error, ValueError):
            return None

    return None


def condition(
    target: Object, end: CredentialExpiry | None, renewal: Renewal | None, now: datetime
) -> Object | None:
    """Build the condition of a Target whose credentials end then; None if it needs none.

    It changes when credentials are replaced, AHEAD of their end if nobody renews them, and at their
    end; in between only when they can no longer be renewed, or can be again.
    """
    known = objects.condition(target, conditions.CREDENTIALS_LAST) is not None
    if end is None and renewal is None and not known:
        return None

    verdict = _verdict(end, renewal, now)
    return status_conditions.build(target, conditions.CREDENTIALS_LAST, *verdict, now)


def _verdict(
    end: CredentialExpiry | None, renewal: Renewal | None, now: datetime
) -> tuple[bool, str, str]:
    """Return status, reason and message of the condition."""
    failure = f"vnode cannot renew it: {renewal.failure}" if renewal and renewal.failure else ""
    if end is None:
        if renewal and failure:
            return False, NOT_RENEWED, renewal.failure

        return True, "NoEnd", "the credentials have no end of their own"

    moment = f"{end.at:%Y-%m-%d %H:%M} UTC"
    if now >= end.at:
        return False, "Ended", f"the {end.what} ended on {moment}: {failure or _CURE}"

    if failure:
        return False, NOT_RENEWED, f"the {end.what} ends on {moment}; {failure}"

    if renewal and renewal.at:
        when = f"{renewal.at:%Y-%m-%d %H:%M} UTC"
        return True, "Lasting", f"the {end.what} ends on {moment}; vnode renews it on {when}"

    if now >= end.at - AHEAD:
        return False, "EndingSoon", f"the {end.what} ends on {moment}: {_CURE}"

    return True, "Lasting", f"the {end.what} ends on {moment}"


def measure(target: str, end: CredentialExpiry | None, condition: Object | None) -> None:
    """Set the gauges of a target whose credentials end then, and say that."""
    lasts = None if condition is None else float(condition["status"] == "True")
    for gauge, value in (
        (metrics.TARGET_CREDENTIALS_EXPIRY, end.at.timestamp() if end else None),
        (metrics.TARGET_CREDENTIALS_LAST, lasts),
    ):
        if value is None:
            with suppress(KeyError):
                gauge.remove(target)
        else:
            gauge.labels(target).set(value)


def seconds_until_change(end: CredentialExpiry | None, now: datetime) -> float | None:
    """Return the seconds until the condition may change; None if it will not.

    Half a day at most, because wall clocks may be set.
    """
    if end is None:
        return None

    changes = [change for change in (end.at - AHEAD, end.at) if change > now]
    return min((changes[0] - now).total_seconds() + 1, LONGEST) if changes else None
