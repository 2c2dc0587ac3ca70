"""The meaning of names in rule files: declarations, functions, parameters, and names from plugins."""
