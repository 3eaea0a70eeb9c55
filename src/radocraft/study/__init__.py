"""The paper's experiments, rerun and carried on: domains, scenarios, baselines, metrics, figures."""
