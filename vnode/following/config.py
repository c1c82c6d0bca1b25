"""The agent's configuration of what follows pods."""

from __future__ import annotations

import msgspec


class FollowingConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What follows pods. Turning a kind off stops updates; existing copies are left as they are."""

    config_maps_and_secrets: bool = True
    services: bool = True
    """Services and Ingresses."""
    network_policies: bool = True
    """Without them, those of the source hold for no pod in a target."""
