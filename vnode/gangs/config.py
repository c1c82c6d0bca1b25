"""The part of the agent's configuration that is about gangs."""

from __future__ import annotations

from typing import Final

import msgspec

from vnode.api.errors import ConfigError

_DAY: Final = 24 * 3600


class GangsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """How pods that start together are placed."""

    keep_room_after_seconds: int = 300
    """After how long without a place the oldest gang may keep the room of one target from younger
    pods of lower or equal priority; 0: never."""

    def check(self) -> None:
        """Raise ConfigError if a value is out of bounds."""
        if not 0 <= self.keep_room_after_seconds <= _DAY:
            raise ConfigError(
                f"gangs: keepRoomAfterSeconds must be from 0, which turns it off, to {_DAY}, a day"
            )
