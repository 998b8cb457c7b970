"""Decisions: values in, a verdict out. No clock, no dice, no I/O."""
