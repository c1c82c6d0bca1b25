"""`vnode cordon`, `uncordon` and `drain`: kubectl's commands for nodes, by the name of a Target."""
