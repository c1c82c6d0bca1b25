"""Verifies the chain of a client certificate as a kubelet does.

The handshake has proved that the peer has the certificate's key. Here, at each request, its chain
has to lead to one of the cluster's present client CAs: valid at this moment, made for clients, and
signed by certificates that may sign. So once a CA was removed or a certificate has expired, it
gives access to nothing, not even on connections that are open.

Anybody may show what they like, so next to nothing is computed of a chain that leads nowhere:
`cryptography` would try all ways through it, a hundred signatures for three certificates.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from cryptography import x509
from cryptography.x509 import verification
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import Criticality, ExtensionPolicy, Policy

from vnode.kube import key_bounds

MOST_ISSUERS: Final = 3
"""Certificates that may lead from a client's to its CA. In Kubernetes, there is none."""

_FOR_CLIENTS: Final = frozenset(
    {ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}
)


def verify(
    chain: Sequence[x509.Certificate], authorities: Sequence[x509.Certificate], now: datetime
) -> x509.Certificate | None:
    """Return the first certificate of a chain if it is valid; the others lead to its CA.

    None in all other cases: no certificate, no CA, a malformed certificate.
    """
    if not chain or not authorities:
        return None

    leaf = chain[0]
    try:
        issuers = _issuers(chain, {authority.subject for authority in authorities})
    except ValueError:  # a name that cannot be decoded
        return None

    if issuers is None:
        return None

    verifier = (
        verification.PolicyBuilder()
        .store(verification.Store(list(authorities)))
        .time(now)
        .max_chain_depth(MOST_ISSUERS)
        .extension_policies(ee_policy=_LEAF, ca_policy=_ISSUER)
        .build_client_verifier()
    )
    try:
        verifier.verify(leaf, issuers)
    except (verification.VerificationError, ValueError):
        return None

    return leaf


def _issuers(
    chain: Sequence[x509.Certificate], authorities: set[x509.Name]
) -> list[x509.Certificate] | None:
    """Return what may lead from the first certificate to an authority; None if nothing does.

    That is told by names and kinds of keys. What has the name of an authority, or its own for its
    issuer, leads nowhere, and of two of one name the second would only be tried as well.
    """
    if len(chain) > 1 + MOST_ISSUERS or any(key_bounds.wrong_with(each) for each in chain):
        return None

    leaf, *others = chain
    between: dict[x509.Name, x509.Certificate] = {}
    for issuer in others:
        if issuer.subject not in authorities and issuer.subject != issuer.issuer:
            between.setdefault(issuer.subject, issuer)

    found = list(between.values())
    return found if any(each.issuer in authorities for each in (leaf, *found)) else None


def _check_usage(
    _policy: Policy, _certificate: x509.Certificate, usage: x509.ExtendedKeyUsage | None
) -> None:
    """Raise ValueError for a certificate that is not for clients.

    Without the extension there is no restriction; installers of clusters make CAs like that.
    """
    if usage is not None and _FOR_CLIENTS.isdisjoint(usage):
        raise ValueError("not for clients")


def _check_may_sign(
    _policy: Policy, _certificate: x509.Certificate, usage: x509.KeyUsage | None
) -> None:
    if usage is not None and not usage.key_cert_sign:
        raise ValueError("must not sign certificates")


def _check_authority(
    _policy: Policy, _certificate: x509.Certificate, constraints: x509.BasicConstraints
) -> None:
    if not constraints.ca:
        raise ValueError("not an authority")


# The verifier itself checks signatures, validity, key sizes, lengths of paths, and critical
# extensions that it does not know. Its default, the profile of the public web, would require names
# and key identifiers that certificates of clusters do not have.
_LEAF: Final = ExtensionPolicy.permit_all().may_be_present(
    x509.ExtendedKeyUsage, Criticality.AGNOSTIC, _check_usage
)
_ISSUER: Final = (
    ExtensionPolicy.permit_all()
    .require_present(x509.BasicConstraints, Criticality.AGNOSTIC, _check_authority)
    .may_be_present(x509.KeyUsage, Criticality.AGNOSTIC, _check_may_sign)
    .may_be_present(x509.ExtendedKeyUsage, Criticality.AGNOSTIC, _check_usage)
)
