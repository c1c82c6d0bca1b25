"""Has pods run where their placement policies want them, and tells what came of it.

`policies` reads the objects PlacementPolicy and ClusterPlacementPolicy into `Policy`, the type that
the planner knows, finds the policy of a pod, and keeps those that are in force, for the scheduler.
`status` compares what each cluster has of a workload with its plan, and writes that into the status
of the policies. `moves` evicts pods that are to run elsewhere, `failover` those whose cluster is
lost; `placeholders` keeps candidates that wait for room, `deletion_costs` has workloads shrink by
their plan, and `decisions` follows and publishes what was decided for a policy. How a plan is made
is in `vnode.planning`, and what scheduling makes of it in the plugin PlacementPolicy.
"""
