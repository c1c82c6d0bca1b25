"""Moves pods that run to where placement policies want them; one for each term of a leader.

`controller` finds the workloads that need it and looks at one at a time. What is known of one is
its `workload_moves`, with its moves `under_way` and the `demands` on it. `mover` takes a step: it
looks at the clusters (`policy_clusters`), asks `vnode.planning.moving` what to do, evicts, and says
so (`move_events`). `rebalances` asks for what each Rebalance names.
"""
