"""Placement policies as users write them, and what came of them.

`decoding` reads the objects PlacementPolicy and ClusterPlacementPolicy into `Policy`, the type that
the scheduler knows; `matching` finds the policy of a pod; `collection` keeps those that are in
force, for the scheduler. `counting` counts the pods of each workload, `accounts` compares them with
its plan, and `status_controller` writes that into the status of the policies. How a plan is made,
and what scheduling makes of it, is in `vnode.scheduling.placement` and the plugins.
"""
