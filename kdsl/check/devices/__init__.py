"""The checker of `device` blocks: kinds of accelerators."""
