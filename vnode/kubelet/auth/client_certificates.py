"""Whether a client certificate is to be believed: the chain behind it, checked as a kubelet does.

The handshake has shown that the peer has the certificate's key. Here, at each request, it has to
lead to one of the cluster's client authorities as they are now: valid at this moment, made for
clients, and signed by certificates that may sign. So an authority that was taken away, or a
certificate that has ended, opens nothing from then on, not even on connections that are open.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from cryptography import x509
from cryptography.x509 import verification
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import Criticality, ExtensionPolicy, Policy

_FOR_CLIENTS: Final = frozenset(
    {ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}
)


def verified(
    shown: Sequence[x509.Certificate], authorities: Sequence[x509.Certificate], now: datetime
) -> x509.Certificate | None:
    """The first of the shown certificates if it can be believed; the others lead to its authority.

    None for whatever else: no certificate, no authorities, one that is malformed.
    """
    if not shown or not authorities:
        return None

    leaf, *issuers = shown
    verifier = (
        verification.PolicyBuilder()
        .store(verification.Store(list(authorities)))
        .time(now)
        .extension_policies(ee_policy=_LEAF, ca_policy=_ISSUER)
        .build_client_verifier()
    )
    try:
        verifier.verify(leaf, issuers)
    except (verification.VerificationError, ValueError):
        return None

    return leaf


def _made_for_clients(
    _policy: Policy, _certificate: x509.Certificate, usage: x509.ExtendedKeyUsage | None
) -> None:
    """Without the extension there is no restriction; that is how cluster installers make CAs."""
    if usage is not None and _FOR_CLIENTS.isdisjoint(usage):
        raise ValueError("not for clients")


def _may_sign(_policy: Policy, _certificate: x509.Certificate, usage: x509.KeyUsage | None) -> None:
    if usage is not None and not usage.key_cert_sign:
        raise ValueError("must not sign certificates")


def _is_authority(
    _policy: Policy, _certificate: x509.Certificate, constraints: x509.BasicConstraints
) -> None:
    if not constraints.ca:
        raise ValueError("not an authority")


# Beyond these, signatures, validity, key sizes, lengths of paths and extensions that are critical
# and not understood are looked at by the verifier itself. The profile of the public web, its
# default, would ask for names and key identifiers that certificates of clusters do not have.
_LEAF: Final = ExtensionPolicy.permit_all().may_be_present(
    x509.ExtendedKeyUsage, Criticality.AGNOSTIC, _made_for_clients
)
_ISSUER: Final = (
    ExtensionPolicy.permit_all()
    .require_present(x509.BasicConstraints, Criticality.AGNOSTIC, _is_authority)
    .may_be_present(x509.KeyUsage, Criticality.AGNOSTIC, _may_sign)
    .may_be_present(x509.ExtendedKeyUsage, Criticality.AGNOSTIC, _made_for_clients)
)
