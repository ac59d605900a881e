"""The two queues of long work, one worker thread each.

Whoever generates a sentence does not wait until a measurement of another visitor, which may take
many minutes, has ended. The single passes of both take turns (`serving.turns`), and a clock runs
inside a turn, so that the time spent waiting for the other is in no measured time.
"""

from serving.jobs import JobQueue

GENERATIONS = JobQueue(name="generations")
MEASUREMENTS = JobQueue(name="measurements")
