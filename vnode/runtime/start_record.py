"""Remembers what candidates have shown of a target: whether a pod would start there.

That a target's API server answers does not say so: its agent, its candidate scheduler or a webhook
may be dead. The source sees that by its candidates alone, and only while pods want to go there. So
what they have shown counts for a while, and until one of them shows the opposite. It never changes
the health of the link: pods that run there have nothing to do with it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from vnode.api.errors import MESSAGE_LIMIT
from vnode.api.listeners import Listeners

LASTING: Final = 150.0
"""Seconds for which it counts, as a pod that waits is tried again each minute.

Once none waits any more, nothing is known of it.
"""
WEBHOOK: Final = "failed calling webhook"
"""In what an API server says where a webhook does not answer, whatever the pod."""


class StartObstacle(NamedTuple):
    """Why no pod would start in a target: the reason and message of a condition."""

    reason: str
    message: str


class StartRecord:
    """What one target's candidates have shown; times are monotonic.

    `changed` is called when there is an obstacle, or none any more.
    """

    def __init__(self) -> None:
        self.changed: Listeners[[]] = Listeners()
        self._obstacle: StartObstacle | None = None
        self._until = float("-inf")
        self._placed_at = float("-inf")  # when a scheduler there last said something of a pod
        self.is_shown = False  # a scheduler there has worked since it, or the agent, fell silent

    def on_decision(self, now: float) -> None:
        """Note that the target's scheduler has found a place for a pod, or found none."""
        self._placed_at = now
        was_shown, self.is_shown = self.is_shown, True
        if self._obstacle is not None or not was_shown:
            self._obstacle = None
            self.changed.call()

    def on_silence(self, since: float, now: float) -> None:
        """Note that a candidate of that moment has had no answer, and was given up."""
        if self._placed_at < since:
            self._set(
                "NoAnswer",
                (
                    f"a pod has had no answer for {now - since:.0f} s, nor has any since: see that "
                    "the agent and the candidate scheduler of the target run (vnode doctor "
                    "--target FILE); pods that run there are not affected"
                ),
                now,
            )

    def on_refusal(self, message: str, now: float) -> None:
        """Note that the target's API server has refused a pod; a dead webhook refuses all."""
        if WEBHOOK in message:
            text = f"the target takes no pods: {message}; see why that webhook does not answer"
            self._set("WebhookFailing", text[:MESSAGE_LIMIT], now)

    def fell_silent(self) -> None:
        """Forget what was shown before: whether anybody works there has to be seen anew."""
        self.is_shown = False

    def obstacle(self, now: float) -> StartObstacle | None:
        """Return why no pod would start there; None if nothing shows that."""
        return self._obstacle if now < self._until else None

    def seconds_left(self, now: float) -> float | None:
        """Return for how long the obstacle counts; None if there is none."""
        return self._until - now if self.obstacle(now) else None

    def _set(self, reason: str, message: str, now: float) -> None:
        before = self.obstacle(now)
        self._until = now + LASTING
        if before is None or before.reason != reason:
            self._obstacle = StartObstacle(reason, message)
            self.changed.call()
