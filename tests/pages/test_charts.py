"""What the tests of the pages refuse in a chart, wherever it is drawn."""

from typing import Any

import altair as alt
import pandas as pd
import pytest

ROWS = pd.DataFrame({"weight": [0.25, 0.75], "token": ["a", "b"]})
CONDITION = {"test": "datum.weight > 0.5", "value": "black"}


@pytest.mark.parametrize(
    "slow",
    [
        {"text": "token:N"},
        {"tooltip": [alt.Tooltip("token:N"), "weight:Q"]},
        {"x": alt.value(0)},
        {"color": alt.when("datum.weight > 0.5").then(alt.value("black"))},
    ],
)
def test_a_part_without_a_channel_is_refused(slow: dict[str, Any]):
    with pytest.raises(ValueError, match="needs a channel"):
        alt.Chart(ROWS).mark_text().encode(**slow)


def test_channels_are_taken():
    colour = alt.ColorValue("grey", condition=[CONDITION])
    tooltip = [alt.Tooltip("token:N"), alt.Tooltip("weight:Q")]
    text = alt.Chart(ROWS).mark_text()
    chart = text.encode(alt.Text("token:N"), colour, x=alt.PositionValueDef(0), tooltip=tooltip)
    assert chart.to_dict()["encoding"] == {
        "text": {"field": "token", "type": "nominal"},
        "color": {"value": "grey", "condition": [CONDITION]},
        "x": {"value": 0},
        "tooltip": [
            {"field": "token", "type": "nominal"},
            {"field": "weight", "type": "quantitative"},
        ],
    }
