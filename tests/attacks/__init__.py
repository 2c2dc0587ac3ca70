"""Attacks by somebody who may write into one folder: each is tried, and must be noticed."""
