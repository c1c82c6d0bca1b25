"""Real Kubernetes clusters as child processes, for the demo, the tests and the benchmark.

Begin with `fleetlib.fleet.Fleet`; `hack/fleet` is the same on the command line.
"""
