"""What names in rule files mean: declarations, functions, parameters, and what plugins bring."""
