"""Scenarios: the schema, its distributions, and reading them from TOML."""

from celerysim.scenario.load import descriptions, load_scenario, make_scenario, override, shipped
from celerysim.scenario.schema import Scenario

__all__ = ["Scenario", "descriptions", "load_scenario", "make_scenario", "override", "shipped"]
