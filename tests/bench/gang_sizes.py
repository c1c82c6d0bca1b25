"""What a gang costs by its size: `python tests/bench/gang_sizes.py [PODS ...]`.

From the first pod to all allowed, in the simulation, so without API servers: at how many members
the agent looks, and processor time, which has that of source, target and simulated API servers.
"""

from __future__ import annotations

import sys
import time

from tests.simulation import gang_work
from tests.simulation.gang_world import run

SECONDS = 30.0


def main(sizes: list[int]) -> None:
    for size in sizes:
        looks = sum(gang_work.work(size, size, room=size, seconds=SECONDS).values())
        world = gang_work.world(size, size, room=size)
        begun = time.process_time()
        run(world, SECONDS)
        took = time.process_time() - begun
        print(
            f"{size} pods: all run after {world.watcher.started['a']:.1f} s; {looks / size:.0f} "
            f"looks at members, and {took / size * 1000:.1f} ms of processor time, for each"
        )


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:]] or [500, 1000, 2000])
