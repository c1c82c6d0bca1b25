"""`vnode disconnect` and `vnode uninstall`: taking away what `connect` and `install` made.

Both work with or without an agent, and with the other side out of reach: what cannot be removed is
said in plain words, with the command that removes it later. `source_side` and `target_side` are
their common steps.
"""
