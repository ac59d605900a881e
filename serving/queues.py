"""The queues of long work, one worker thread each.

Whoever generates a sentence does not wait until a measurement of another visitor, which may take
many minutes, has ended, and whoever trains a small model waits for neither. All share the compute
slots (`serving.compute`). A clock runs only while its job holds a slot, so measured times exclude
waiting.
"""

from serving.jobs import JobQueue

# The cookie by which Streamlit knows a browser again: all its tabs have the same.
BROWSER_COOKIE = "_streamlit_xsrf"
GENERATIONS = JobQueue(name="generations")
MEASUREMENTS = JobQueue(name="measurements")
TRAININGS = JobQueue(name="trainings")
