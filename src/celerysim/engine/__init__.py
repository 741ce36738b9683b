"""The reference engine: a SimPy model with one room for each real component.

Read :mod:`celerysim.engine.simulation` first.
"""
