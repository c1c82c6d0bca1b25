"""The contract of every API server, held by a real one."""

from tests.apiserver.contract import *  # noqa: F403 - tests
from tests.apiserver.contract_reading import *  # noqa: F403 - tests
