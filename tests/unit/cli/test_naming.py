"""What is said of a Target that a command does not find, or may not get."""

from __future__ import annotations

from http import HTTPStatus

import pytest

from tests.apiserver.faults import RequestFault
from tests.apiserver.server import APIServer
from vnode.api import errors, kinds
from vnode.api.clock import SystemClock
from vnode.api.errors import ConfigError, Denied
from vnode.api.kinds import Kind
from vnode.cli import naming

MAY_NOT = errors.from_status(HTTPStatus.FORBIDDEN, "Forbidden", 'User "jane" cannot get it')
EXPIRED = errors.from_status(HTTPStatus.UNAUTHORIZED, "Unauthorized", "Unauthorized")


def refusing(error: errors.ApiError, *refused: Kind) -> APIServer:
    server = APIServer("c1", SystemClock())
    for kind in refused:
        server.faults.add(RequestFault(error, "get", kind, times=None))

    return server


async def test_a_target_that_is_not_there_is_said_to_be_missing() -> None:
    text = "there is no Target 'gpu' in namespace 'team', and no ClusterTarget 'gpu': see vnode get"
    with pytest.raises(ConfigError, match=text):
        await naming.target(refusing(MAY_NOT).client(), "gpu", "team")


async def test_of_a_target_that_may_not_be_read_nobody_says_that_it_is_missing() -> None:
    text = "no Target 'gpu' in namespace 'team', and perhaps a ClusterTarget 'gpu', which .*jane"
    with pytest.raises(ConfigError, match=text):
        await naming.target(refusing(MAY_NOT, kinds.CLUSTER_TARGETS).client(), "gpu", "team")


async def test_credentials_that_have_expired_are_not_taken_for_a_missing_target() -> None:
    server = refusing(EXPIRED, kinds.TARGETS, kinds.CLUSTER_TARGETS)
    with pytest.raises(Denied, match="401"):
        await naming.target(server.client(), "gpu", "team")
