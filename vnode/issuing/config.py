"""Defines the setting `issuing` of the agent's configuration."""

from __future__ import annotations

from typing import Final

import msgspec

from vnode.api.errors import ConfigError

SHORTEST: Final = 600
"""Seconds; API servers give no shorter token."""


class IssuingConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Whether AuthTokenRequests are carried out, and how."""

    enabled: bool = False
    max_expiration_seconds: int = 86400
    """The longest life of a token; requests for a longer one get this."""

    def check(self) -> None:
        """Raise ConfigError, with the cure, if a value is out of bounds."""
        if self.max_expiration_seconds < SHORTEST:
            raise ConfigError(f"issuing.maxExpirationSeconds must be at least {SHORTEST}")
