"""Real Kubernetes clusters as child processes, for the demo, the tests and the benchmark.

Begin with `fleetlib.fleet.LocalFleet`; `hack/fleet` is the same on the command line.
"""
