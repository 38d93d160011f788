"""Compiled functions that several algorithms share; `kernels.compile` holds the compiler."""
