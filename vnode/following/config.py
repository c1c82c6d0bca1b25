"""What the agent's configuration says about following."""

from __future__ import annotations

import msgspec


class FollowingConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What follows pods. What is turned off is not touched any more, also where it is already."""

    config_maps_and_secrets: bool = True
    services: bool = True
    """Services and Ingresses."""
