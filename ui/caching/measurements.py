"""The queue of measurements, which may take many minutes.

It is not that of `ui.generation`: whoever generates a sentence does not wait until a measurement
of another visitor has ended. The single passes of both take turns (`ui.turns`), and a clock runs
inside a turn, so that waiting for the other is in no time.
"""

from ui.jobs import JobQueue

QUEUE = JobQueue()
