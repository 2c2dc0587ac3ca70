"""Folds profiles into their effective form, and checks the teams that may change them."""
