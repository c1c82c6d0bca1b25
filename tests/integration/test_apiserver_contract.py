"""The contract of every API server, held by a real one."""

from tests.apiserver.contract_deletes import *  # noqa: F403 - tests
from tests.apiserver.contract_pods import *  # noqa: F403 - tests
from tests.apiserver.contract_reads import *  # noqa: F403 - tests
from tests.apiserver.contract_writes import *  # noqa: F403 - tests
