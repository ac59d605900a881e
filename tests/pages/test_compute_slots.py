"""Full forward passes of pages, run once for all users, wait for a compute slot."""

import threading
from collections.abc import Callable

import pytest

from pages.compare.heads import statistics
from pages.learn.two_networks import translation
from serving import compute
from serving.cache import CachedFunction
from tests.helpers.bundled_models import ENCODER
from tests.helpers.waiting import wait_until


@pytest.mark.usefixtures("bundled_weights")
@pytest.mark.parametrize(
    ("function", "ask"),
    [
        (statistics._repeated_scores, lambda: statistics.repeated_statistics(ENCODER)),
        (translation.held_out_results, translation.held_out_results),
        (translation.translate_date, lambda: translation.translate_date("may 3, 1998")),
    ],
    ids=["words said twice", "judged dates", "a translated date"],
)
def test_full_pass_waits_for_a_slot(function: CachedFunction, ask: Callable[[], object]):
    with function.disabled():
        page = threading.Thread(target=ask)
        with compute.slot(exclusive=True):
            page.start()
            wait_until(lambda: compute.n_requests() == 2, seconds=60, every=0.01)
        page.join(60)
    assert not page.is_alive()
    assert compute.n_requests() == 0
