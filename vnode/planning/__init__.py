"""How many pods of a workload go to which virtual node: policies, plans and moves. No I/O.

`policy` is what a placement policy says, `seats` the order in which clusters get pods by it, and
`workload` counts the pods that there are. `choosing` picks the clusters of one pod, `moving` the
pods that are moved, `placeholders` those that wait elsewhere, `deletion_cost` those that go first.
Everything is handed in, so that each of them is a function of what can be written down in a test.
"""
