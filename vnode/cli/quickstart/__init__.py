"""`vnode quickstart`: from two clusters to a first pod, in one command."""
