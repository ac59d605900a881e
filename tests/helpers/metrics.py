"""What /metrics says at this moment."""

from serving.metrics import REGISTRY


def counter_value(name: str, **labels: str) -> float:
    """A number of the site by its name and labels; 0 where nothing was counted yet."""
    return REGISTRY.get_sample_value(f"attention_lab_{name}", labels) or 0.0
