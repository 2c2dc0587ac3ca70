"""Devices: what a kind of accelerator is, checked."""
