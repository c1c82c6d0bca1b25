"""Finds out which cluster a Target leads to, by the credentials that it has so far."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from vnode.api.errors import ConfigError, Denied, ServerError, Unreachable
from vnode.api.objects import Object
from vnode.cli import recognition
from vnode.insight.target_clients import TIMEOUT, Connect
from vnode.kube.client import Client

_DOES_NOT_SAY: Final = (
    "it answers, and does not say which cluster it is: see that it accepts the credentials in the "
    "Secret, and that its agent runs"
)


@dataclass(frozen=True, slots=True)
class ClusterAnswer:
    """What came of asking the cluster that a Target leads to.

    `uid` tells which cluster answered, "" if none did or it does not say. `why` is for people: why
    there is no UID.
    """

    answers: bool
    uid: str = ""
    why: str = ""


async def ask(client: Client, target: Object, connect: Connect) -> ClusterAnswer:
    """Ask the cluster that a Target leads to which one it is.

    Any answer that its certificate vouches for is one, also a refusal: then the cluster lives.
    """
    try:
        async with asyncio.timeout(TIMEOUT), connect(client, target) as there:
            return await _answer_of(there)
    except TimeoutError:
        return ClusterAnswer(False, why=f"no answer within {TIMEOUT:.0f} s")
    except Unreachable as error:
        return ClusterAnswer(False, why=str(error))
    except (ConfigError, Denied) as error:  # of the Secret
        return ClusterAnswer(False, why=f"its credentials cannot be used: {error}")


async def _answer_of(there: Client) -> ClusterAnswer:
    try:
        uid = await recognition.uid_of(there)
    except ServerError as error:
        return ClusterAnswer(True, why=error.message)

    return ClusterAnswer(True, uid, "" if uid else _DOES_NOT_SAY)
