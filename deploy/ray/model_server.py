"""The model server on Ray, which adds and removes replicas as the load changes.

    python -m deploy.ray

ATTENTION_LAB_REPLICAS: the minimum and maximum number of replicas, for example "1-4".
ATTENTION_LAB_REPLICA_GPUS: the share of a GPU for each replica, 0 by default. Each replica has a
few models loaded, and a request goes to a replica that has its model. `requirements-scale.txt`
lists the dependencies.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from ray import serve
from starlette.requests import Request
from starlette.responses import Response

from pretrained import settings
from serving import models
from serving.backend import service
from serving.limits import MAX_CONCURRENT_REQUESTS

MODELS_PER_REPLICA = 3
REQUESTS_PER_REPLICA = 2  # with more, Ray starts another replica


class ModelServer:
    """One replica."""

    def __init__(self) -> None:
        self._loading: set[asyncio.Future[str]] = set()

    async def __call__(self, request: Request) -> Response:
        """Respond like `serving.backend.service`, which sends heartbeats while a model loads.

        In parallel, a task loads the same model through Ray, so that Ray knows this replica has it.
        """
        name = serve.get_multiplexed_model_id()
        if name:
            task = asyncio.ensure_future(self.model(name))
            self._loading.add(task)  # the event loop itself has only weak references to tasks
            task.add_done_callback(self._loading.discard)
        if request.url.path == "/healthz":
            return await service.healthz(request)
        return await service.handle(request)

    @serve.multiplexed(max_num_models_per_replica=MODELS_PER_REPLICA)  # type: ignore[untyped-decorator]
    async def model(self, name: str) -> str:
        """Load a model; the response to the request reports any error."""
        with contextlib.suppress(*models.LOAD_ERRORS):
            await asyncio.to_thread(models.get, name)
        return name


_min_replicas, _max_replicas = settings.REPLICAS.read()
_options: dict[str, Any] = {
    "autoscaling_config": {
        "min_replicas": _min_replicas,
        "max_replicas": _max_replicas,
        "target_ongoing_requests": REQUESTS_PER_REPLICA,
    },
    "ray_actor_options": {
        "num_cpus": 1,
        "num_gpus": settings.REPLICA_GPUS.read(),
    },
    # more than it can serve, so that the replica itself can respond that it's busy
    "max_ongoing_requests": 2 * MAX_CONCURRENT_REQUESTS,
    "health_check_period_s": 2,
}
app = serve.deployment(name="models", **_options)(ModelServer).bind()
