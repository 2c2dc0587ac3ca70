"""Racks for kdsl."""
