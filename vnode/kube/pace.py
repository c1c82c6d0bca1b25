"""Decides how many requests one API server is sent at once, and when, by what it refuses with 429.

A server that says slow down says so to all that is sent to it, not to the request that happened to
be refused. So ordinary requests wait as long as it asks for (`until`), and then fewer are under way
at once (`limit`): half of those under way when it refused, and one more after each round of as many
answers, as TCP has it. That finds what a server grants, whatever that is, and follows it.

Each refusal costs a pause, mostly of a second, in which hundreds of requests could have been
answered. So a number that was refused is not tried again before ten such pauses have gone by
without one: at most a tenth of the time is spent on trying. No I/O; moments are of a monotonic
clock.
"""

from __future__ import annotations

import math
from typing import Final

MOST: Final = 48
"""Requests under way at once where a server has refused none."""
_LEAST: Final = 1
_PAUSES: Final = 10.0  # of the length asked for, until a number that was refused is tried again


class Pace:
    """What one API server grants.

    Requests carry the `era` in which they were sent: of those refused together, the first counts.
    """

    def __init__(self) -> None:
        self.limit = MOST  # requests that may be under way
        self.until = -math.inf  # none of the ordinary ones is sent before
        self.era = 0
        self._answers = 0  # since the limit was last another, while it was in use
        self._refused = math.inf  # as many were under way when one was refused
        self._again = -math.inf  # when so many may be tried again

    @property
    def is_free(self) -> bool:
        """Whether the server takes all that the agent has for it, as far as known."""
        return self.limit == MOST

    def may_send(self, now: float, under_way: int) -> bool:
        """Tell whether an ordinary request may be sent beside so many others."""
        return under_way < self.limit and now >= self.until

    def refused(self, now: float, era: int, under_way: int, seconds: float) -> None:
        """Note a 429 to one of so many requests under way, which asks to wait for some seconds."""
        self.wait(now, seconds)
        if era != self.era:
            return

        self.era += 1
        self._answers = 0
        count = min(self.limit, under_way)
        self.limit = max(_LEAST, count // 2)
        self._refused = max(count, self.limit + 1)
        self._again = now + _PAUSES * seconds

    def wait(self, now: float, seconds: float) -> None:
        """Have ordinary requests wait, of which none was refused: a watch was, for one."""
        self.until = max(self.until, now + seconds)

    def answered(self, now: float, era: int, under_way: int) -> None:
        """Note an answer to one of so many requests under way."""
        if self.is_free or era != self.era or under_way < self.limit:
            return  # what is not in use is not known to be granted

        self._answers += 1
        if self._answers < self.limit or (self.limit + 1 >= self._refused and now < self._again):
            return

        self.limit += 1
        self._answers = 0
        if self.limit >= self._refused:
            self._refused = math.inf  # it is tried now
