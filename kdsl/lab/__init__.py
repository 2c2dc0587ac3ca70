"""The lab: policies compared on traces. A run is a plain function of a trace, a profile, a seed and
parameters.
"""
