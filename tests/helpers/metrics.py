"""Read current values from /metrics."""

from serving.metrics import REGISTRY


def counter_value(name: str, **labels: str) -> float:
    """Return a metric's value by name and labels, or 0 if nothing has been counted."""
    return REGISTRY.get_sample_value(f"attention_lab_{name}", labels) or 0.0
