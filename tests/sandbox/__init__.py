"""Tests of the sandbox over its HTTP interface, as clients see it."""
