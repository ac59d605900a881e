"""A thread that computes alone leaves the others as they are."""

import threading

import torch

from serving.threads import compute_alone


def test_only_the_calling_thread_computes_alone():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        counts = {}

        def alone() -> None:
            compute_alone()
            counts["alone"] = torch.get_num_threads()

        def later() -> None:
            counts["later"] = torch.get_num_threads()

        for work in (alone, later):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        assert counts == {"alone": 1, "later": 2}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
