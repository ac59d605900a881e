"""Routes for probes: /healthz (the process is alive) and /readyz (it's ready for visitors)."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from serving import compute, warmup
from serving.limits import STUCK_SECONDS
from serving.queues import GENERATIONS, MEASUREMENTS, TRAININGS

QUEUES = (GENERATIONS, MEASUREMENTS, TRAININGS)
NO_STORE = {"Cache-Control": "no-store"}


def routes(*modules: str) -> list[Route]:
    """The two routes; modules: names that the warm-up imports before the site is ready."""

    def readyz(_: Request) -> Response:
        reason = not_ready(*modules)
        content = {"ready": True} if reason is None else {"ready": False, "reason": reason}
        return JSONResponse(content, 200 if reason is None else 503, NO_STORE)

    return [Route("/healthz", _healthz), Route("/readyz", readyz)]


async def _healthz(_: Request) -> Response:
    """Respond without using a thread, so that it also works while models load."""
    return PlainTextResponse("ok", headers=NO_STORE)


def not_ready(*modules: str) -> str | None:
    """The reason why the site isn't ready for visitors; None if it is."""
    held = compute.held_seconds()
    if held > STUCK_SECONDS:
        return f"A forward pass has blocked a compute slot for {held:.0f} s."
    for queue in QUEUES:
        if queue.stuck_seconds > STUCK_SECONDS:
            return f"The queue of {queue.name} is stuck."
    return warmup.not_ready_reason(*modules)
