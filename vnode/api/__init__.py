"""Names, keys, quantities, selectors, and readers of objects. No I/O."""
