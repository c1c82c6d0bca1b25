"""Says in one line what keeps a command from its cluster, and what to do. Pure."""

from __future__ import annotations

import re
from typing import Final

from vnode.api.errors import Denied, Unreachable, VnodeError
from vnode.targets import untrusted

_NO_ANSWER: Final = re.compile(
    r"cannot connect to|timed out|no answer|[Dd]isconnected|reset by peer|Cannot connect to host"
)
_LACKS_RIGHT: Final = re.compile(r'User "[^"]*" cannot ')
_ADDRESS: Final = "see that its API server runs, and that the kubeconfig's server is its address"


def text_of(error: VnodeError) -> str:
    """Return what is told of an error that ends a command."""
    text = str(error)
    if isinstance(error, Denied) and error.status == 401:
        return (
            f"{text}: the cluster does not accept the credentials of the kubeconfig: log in again, "
            "or get a new one; kubectl auth whoami tries them"
        )

    if isinstance(error, Denied) and _LACKS_RIGHT.search(text):
        return (
            f"{text}: have an administrator of that cluster allow it, or use a kubeconfig that may"
        )

    if not isinstance(error, Unreachable):
        return text

    if why := untrusted.reason_in(text):
        name = text.partition(":")[0]
        return (
            f"{name}: the certificate of its API server is not trusted ({why}): see the "
            "certificate-authority and the server in the kubeconfig, and the clock of this machine"
        )

    return f"{text}: {_ADDRESS}" if _NO_ANSWER.search(text) else text
