"""The job queues, each with its own worker thread.

Separate queues let a visitor generate text or train a small model without waiting for another
visitor's measurement, which may take many minutes. All queues share the compute slots
(`serving.compute`). A clock runs only while its job holds a slot, so measured times exclude
waiting.
"""

from serving.jobs import JobQueue

# The cookie by which Streamlit recognizes a browser; all its tabs share it.
BROWSER_COOKIE = "_streamlit_xsrf"
GENERATIONS = JobQueue(name="generations")
MEASUREMENTS = JobQueue(name="measurements")
TRAININGS = JobQueue(name="trainings")
