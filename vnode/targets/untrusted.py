"""Says what is wrong with the certificate that an API server shows, and what to do. Pure.

Only a certificate of an unknown authority is one of a new authority, or of somebody else. One that
has ended, has not begun, or is for another name is mended elsewhere.
"""

from __future__ import annotations

import re
from typing import Final

_VERIFIED: Final = re.compile(r"certificate verify failed: ([^()\]]+?)\.?(?: \(|[)\]]|$)")
"""What Python's TLS says of a certificate that does not stand the test, and why."""

_UNKNOWN: Final = (
    "the target's certificate is not one that the authority in its kubeconfig vouches for ({why}): "
    "if the target has a new authority, run vnode connect again or put it into the Secret; if not, "
    "see who answers at that address"
)
_TEXTS: Final = (
    (
        r"not yet valid",
        (
            "the target's certificate is not valid yet, by the clock of this agent: let NTP set "
            "the clocks of both clusters"
        ),
    ),
    (
        r"has expired",
        (
            "the target's certificate, or its authority's, has expired: renew it there (kubeadm: "
            "kubeadm certs renew apiserver, and restart the API server); if it is valid there, let "
            "NTP set the clock of this agent"
        ),
    ),
    (
        r"mismatch",
        (
            "the target's certificate is for another name ({why}): have the kubeconfig's server be "
            "one of the certificate's names (vnode connect --server https://HOST:PORT), or name "
            "one in its tls-server-name"
        ),
    ),
)


def reason_in(error: str) -> str:
    """Return why a certificate is not trusted, in the words of TLS; "" if that is not the error."""
    found = _VERIFIED.search(error)
    return found[1] if found is not None else ""


def explain(error: str) -> str:
    """Return why a target's certificate is not trusted, with the cure; "" likewise."""
    why = reason_in(error)
    if not why:
        return ""

    text = next((text for said, text in _TEXTS if re.search(said, why)), _UNKNOWN)
    return text.format(why=why)
