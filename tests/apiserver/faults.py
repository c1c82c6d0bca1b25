"""What goes wrong on request: errors, delays, lost answers, late requests, a server that hangs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.apiserver.requests import APIRequest
from vnode.api.clock import happens_within
from vnode.api.errors import VnodeError
from vnode.api.kinds import Kind


@dataclass(eq=False, slots=True)
class RequestFault:
    """What happens to requests of a verb, kind and subresource; None means all of them.

    It happens `times` times, or until `clear`. The request is delayed by `delay` seconds, which
    may be infinite, and then fails with `error` if there is one. With `after` the server carries
    it out first: only the answer is late, or lost. With `late` it fails at once, and the server
    carries it out after that many seconds, as what a network or a busy server held up.
    """

    error: VnodeError | None = None
    verb: str | None = None
    kind: Kind | None = None
    subresource: str | None = None
    when: Callable[[APIRequest], bool] = lambda _request: True
    times: int | None = 1
    after: bool = False
    delay: float = 0.0
    late: Callable[[], float] | None = None
    met: int = 0
    _cleared: asyncio.Event = field(default_factory=asyncio.Event)

    def matches(self, request: APIRequest) -> bool:
        """Tell whether it would happen to the request."""
        return (
            not self._cleared.is_set()
            and (self.times is None or self.met < self.times)
            and self.verb in (None, request.verb)
            and self.kind in (None, request.kind)
            and self.subresource in (None, request.subresource)
            and self.when(request)
        )

    async def happen(self) -> None:
        """Delay the request, or fail it."""
        if self.delay:
            await happens_within(self._cleared, self.delay if self.delay < _FOREVER else None)

        if self.error is not None:
            raise self.error

    def clear(self) -> None:
        """Let it not happen any more, and let go of the requests that it delays."""
        self._cleared.set()


_FOREVER = float("inf")


class Faults:
    """All faults of a server; the latest that matches a request happens to it."""

    def __init__(self) -> None:
        self._faults: list[RequestFault] = []

    def add(self, fault: RequestFault) -> RequestFault:
        """Have it happen from now on."""
        self._faults.append(fault)
        return fault

    def meet(self, request: APIRequest) -> RequestFault | None:
        """Return the fault that happens to a request, which counts as met."""
        for fault in reversed(self._faults):
            if fault.matches(request):
                fault.met += 1
                return fault

        return None

    def clear(self) -> None:
        """End all of them."""
        for fault in self._faults:
            fault.clear()

        self._faults.clear()
