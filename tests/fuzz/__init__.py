"""Broken inputs by the thousand: `python -m tests.fuzz --minutes 10 --seed 1`. Nothing but diagnostics may come out."""
