"""Recorded decisions, with everything needed to repeat them."""
