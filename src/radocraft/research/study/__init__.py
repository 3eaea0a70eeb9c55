"""The paper's experiments: domains, scenarios, baselines, metrics, figures."""
