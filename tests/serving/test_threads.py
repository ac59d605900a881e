"""A thread that computes alone leaves the others, and its own later work, as they are."""

import threading

import torch

from serving.threads import computing_alone


def test_only_the_calling_thread_computes_alone():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        counts = {}

        def alone() -> None:
            for time in ("alone", "alone again"):  # a worker takes one job after another
                with computing_alone():
                    counts[time] = torch.get_num_threads()
                counts["after"] = torch.get_num_threads()

        def later() -> None:
            counts["later"] = torch.get_num_threads()

        for work in (alone, later):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        assert counts == {"alone": 1, "alone again": 1, "after": 2, "later": 2}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
