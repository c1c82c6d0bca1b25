"""`make golden`: writes the golden logs of placement anew, for a look at what has changed in them.

python -m tests.unit.placement.golden
"""

from __future__ import annotations

import logging

from tests.unit.placement.golden.scenario import FOLDER
from tests.unit.placement.golden.scenarios import SCENARIOS


def main() -> None:
    """Write the log of each scenario, and remove those of scenarios that are no more."""
    logging.disable()
    for path in FOLDER.glob("*.log"):
        path.unlink()

    for scenario in SCENARIOS.values():
        scenario.path.write_text(scenario.record())


if __name__ == "__main__":
    main()
