"""All scenarios of golden logs, by name."""

from __future__ import annotations

from typing import Final

from tests.unit.placement.golden import moving, placing
from tests.unit.placement.golden.scenario import Scenario

SCENARIOS: Final = {
    each.name: each
    for module in (placing, moving)
    for each in vars(module).values()
    if isinstance(each, Scenario)
}
