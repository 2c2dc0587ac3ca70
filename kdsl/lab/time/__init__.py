"""Runs over time: pods arrive, wait, run, end and come back; nodes come and go. All times are simulated."""
