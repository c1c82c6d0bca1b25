"""Does several things at once, in threads. Standard library only."""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")


def each(items: Sequence[T], action: Callable[[T], object]) -> None:
    """Call `action` for all `items` at once, in threads; raise the first failure at once.

    Threads of daemon kind, so that Ctrl-C and a failure do not wait for the others.
    """
    outcomes: SimpleQueue[BaseException | None] = SimpleQueue()

    def act(item: T) -> None:
        try:
            action(item)
        except BaseException as error:  # noqa: BLE001 - raised again in the main thread
            outcomes.put(error)
        else:
            outcomes.put(None)

    for item in items:
        threading.Thread(target=act, args=(item,), daemon=True).start()
    for _ in items:
        if (error := outcomes.get()) is not None:
            raise error
