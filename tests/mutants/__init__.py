"""Breaks kdsl on purpose, one small change at a time, and tells which changes no test notices.

`python -m tests.mutants --seed 1 --count 40 --package cycle`; `CONTRIBUTING.md` says when, and what came of it.
"""
