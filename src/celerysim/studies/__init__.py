"""Studies: questions with an answer of their own, each made of many simulated runs.

- :mod:`~celerysim.studies.tables`: the 24 published cells, simulated beside published.
- :mod:`~celerysim.studies.losses`: how often a run loses a task at scale-down.
- :mod:`~celerysim.studies.ack_lag`: what waiting acknowledgements cost a scenario;
  :mod:`~celerysim.studies.published_ack_lag`: the published cells.
- :mod:`~celerysim.studies.pools`: one scenario on several pools and sizes.
- :mod:`~celerysim.studies.shares`: the same with the tasks' share of CPU varied.
"""
