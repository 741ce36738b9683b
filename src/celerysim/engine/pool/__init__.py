"""The execution pools: what runs the tasks."""
