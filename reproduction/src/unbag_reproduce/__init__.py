"""The paper's experiments, and ours, compared with the published figures."""
