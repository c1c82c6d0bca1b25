"""Real Kubernetes clusters as child processes, for the demo, the tests and the benchmark.

`fleetlib.fleet.Fleet` is the library's front door; `hack/fleet` is the same on the command line.
"""
