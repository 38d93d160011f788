"""How kernels become machine code, and where that code is cached. See `docs/explanation/compiling.md`."""
