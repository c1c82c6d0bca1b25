"""Override policies: what a delegate has differently in which target."""
