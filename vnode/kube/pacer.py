"""Has requests to one API server wait until its pace lets them go.

`vnode.kube.pace` decides how many may be under way, and since when; here are those who wait for it.
They take turns by namespace, so that whoever has a thousand requests waiting keeps another's one
from nothing; in each round of turns, what somebody waits for goes first (`vnode.kube.urgency`).
What is vital counts as under way, and waits for nothing.

While a server takes all it is sent, a request costs a comparison and two additions.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from http import HTTPStatus
from typing import Final, TypeAlias

from vnode.api.errors import TooManyRequests, Unreachable
from vnode.api.turns import Turns
from vnode.kube import urgency
from vnode.kube.pace import Pace
from vnode.kube.request_metrics import PaceMetrics
from vnode.kube.urgency import Urgency

PATIENCE: Final = 20.0
"""Seconds that a request waits for the pace at most: two thirds of what it has for its answer."""
_ROUND: Final = 4.0  # requests of one namespace and urgency until others have had as many
_SOONEST: Final = 1.0  # seconds after which whoever waited in vain is to try again
_NAMESPACES: Final = "/namespaces/"

_Line: TypeAlias = tuple[Urgency, str]
"""Those who wait in one line, first come, first served: of one urgency and namespace."""

log = logging.getLogger(__name__)


class Pacer:
    """Lets requests to one API server go; `name` is the cluster's in logs and metrics.

    Who sends calls `start`, or `admit` if that says None, and then `end` in any case.
    """

    def __init__(self, name: str) -> None:
        self.pace = Pace()
        self._name = name
        self._waits = PaceMetrics(name)
        self._under_way = 0
        self._is_open = True  # nobody waits, and nothing says that anybody has to
        self._turns: Turns[_Line] = Turns(_ROUND)
        self._lines: dict[_Line, deque[asyncio.Future[int]]] = {}  # no deque is empty
        self._alarm: asyncio.TimerHandle | None = None  # set for the end of a pause

    def start(self) -> int | None:
        """Begin a request at once, and return its era; None if it may have to wait."""
        if self._is_open and self._under_way < self.pace.limit:
            self._under_way += 1
            return self.pace.era

        return None

    async def admit(self, method: str, path: str) -> tuple[int, float]:
        """Begin a request when it may be sent; return its era, and the seconds that it has waited.

        Raises TooManyRequests if that takes too long because the server has said slow down;
        Unreachable if it does because the server answers nothing.
        """
        urgent = urgency.of(method, path)
        if urgent is Urgency.VITAL:
            self._under_way += 1
            return self.pace.era, 0.0

        loop = asyncio.get_running_loop()
        asked = loop.time()
        if self.pace.until - asked > PATIENCE:
            raise self._refusal(asked)

        line, turn = (urgent, _namespace(path)), loop.create_future()
        self._lines.setdefault(line, deque()).append(turn)
        self._turns.wait(line, urgent)
        self._is_open = False
        self._give()
        try:
            era = turn.result() if turn.done() else await self._wait(turn)
            return era, loop.time() - asked
        except asyncio.CancelledError:
            self._leave(line, turn)
            raise
        except TimeoutError:
            self._leave(line, turn)
            if self.pace.is_free:
                raise Unreachable(f"{self._name}: timed out") from None

            raise self._refusal(loop.time()) from None
        finally:
            self._waits.observe(loop.time() - asked)

    async def pause(self) -> None:
        """Wait until what is no short request may be sent: a watch.

        Raises TooManyRequests if that takes too long.
        """
        now = asyncio.get_running_loop().time()
        wait = self.pace.until - now
        if wait > PATIENCE:
            raise self._refusal(now)

        if wait > 0:
            await asyncio.sleep(wait)

    def end(self, era: int, *, answered: bool) -> None:
        """Note that a request of that era was answered, or that nobody waits for that any more."""
        if not self._is_open and answered:
            before = self.pace.limit
            self.pace.answered(asyncio.get_running_loop().time(), era, self._under_way)
            self._tell(before)

        self._under_way -= 1
        if not self._is_open:
            self._give()

    def refuse(self, era: int, error: TooManyRequests, method: str, path: str) -> None:
        """Note that the server has refused a request, in place of `end`.

        What is vital is sent in a pause, too, so it makes none longer: others would never be sent.
        """
        if _is_about_one(path):
            self.end(era, answered=True)
            return

        now, before = asyncio.get_running_loop().time(), self.pace.limit
        if urgency.of(method, path) is not Urgency.VITAL:
            self.pace.refused(now, era, self._under_way, error.retry_after)
            self._tell(before)
        elif now >= self.pace.until:
            self.pace.wait(now, error.retry_after)

        self._is_open = False
        self._under_way -= 1
        self._give()

    def push_back(self, error: TooManyRequests) -> None:
        """Note that the server has refused what is not counted as under way: a watch."""
        self.pace.wait(asyncio.get_running_loop().time(), error.retry_after)
        self._is_open = False
        self._give()

    def _tell(self, before: int) -> None:
        if (limit := self.pace.limit) == before:
            return

        self._waits.limit(limit)
        if self.pace.is_free:
            log.info("%s takes as many requests as before", self._name)
        elif limit < before:
            log.info("%s says slow down: %d requests at once from now on", self._name, limit)

    async def _wait(self, turn: asyncio.Future[int]) -> int:
        async with asyncio.timeout(PATIENCE):
            return await turn

    def _leave(self, line: _Line, turn: asyncio.Future[int]) -> None:
        """Give up a turn that is waited for, or was given a moment ago."""
        if turn.done() and not turn.cancelled():
            self._under_way -= 1
        elif turn in self._lines.get(line, ()):
            self._lines[line].remove(turn)
            self._forget_if_none(line)

        self._give()

    def _give(self) -> None:
        """Let go who may, and see to it that this is called when others may."""
        now = asyncio.get_running_loop().time()
        while self.pace.may_send(now, self._under_way):
            if (line := self._turns.next()) is None:
                self._is_open = self.pace.is_free
                return

            turn = self._lines[line].popleft()
            self._forget_if_none(line)
            if not turn.done():  # else whoever waited will be told in a moment
                self._turns.pay(line, 1.0)
                self._under_way += 1
                turn.set_result(self.pace.era)

        if self._alarm is None and now < self.pace.until:
            self._alarm = asyncio.get_running_loop().call_at(self.pace.until, self._on_alarm)

    def _on_alarm(self) -> None:
        self._alarm = None
        self._give()

    def _forget_if_none(self, line: _Line) -> None:
        if not self._lines[line]:
            del self._lines[line]
            self._turns.leave(line)

    def _refusal(self, now: float) -> TooManyRequests:
        error = TooManyRequests(
            HTTPStatus.TOO_MANY_REQUESTS,
            "TooManyRequests",
            f"the API server of {self._name} has told the agent to slow down, and this request's "
            f"turn does not come within {PATIENCE:.0f} s: see its flow control (API Priority and "
            "Fairness)",
        )
        error.retry_after = max(_SOONEST, self.pace.until - now)
        return error


def _is_about_one(path: str) -> bool:
    """Tell whether a 429 is about what is asked for: a budget says no to an eviction, a kubelet to
    what is asked of it."""
    return path.endswith("/eviction") or "/proxy/" in path


def _namespace(path: str) -> str:
    """Return the namespace in the path of a request; "" if it has none."""
    _, _, rest = path.partition(_NAMESPACES)
    return rest.partition("/")[0]
