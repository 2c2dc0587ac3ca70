"""Profiles folded into their effective form, and the teams that may change them."""
