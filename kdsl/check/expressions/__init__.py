"""Converts one expression to a typed tree: overloads, members, macros, guards, dynamic types, depth."""
