"""Names the users that service accounts are to an API server."""

from __future__ import annotations

import re
from typing import Final

_PREFIX: Final = "system:serviceaccount"
_USER: Final = re.compile(rf"{_PREFIX}:([^:]+):([^:]+)")


def user_of(namespace: str, name: str) -> str:
    """Return the user name of a service account."""
    return f"{_PREFIX}:{namespace}:{name}"


def account_of(user: str) -> tuple[str, str] | None:
    """Return (namespace, name) of the service account with this user name; None if it is none."""
    match = _USER.fullmatch(user)
    return (match[1], match[2]) if match else None
