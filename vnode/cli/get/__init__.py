"""`vnode get`: targets, virtual nodes, proxy pods and sources, in the formats of kubectl."""
