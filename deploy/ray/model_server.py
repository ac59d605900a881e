"""The model server on Ray: as many replicas as requests need.

    python -m deploy.ray

ATTENTION_LAB_REPLICAS: the fewest and the most replicas, "1-4". ATTENTION_LAB_REPLICA_GPUS: the
share of a GPU that each one takes, 0 by default. Each replica holds a few models, and a request
goes to a replica that has its model. `requirements-scale.txt` lists the dependencies.
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
REQUESTS_PER_REPLICA = 2  # beyond this number another replica is started


class ModelServer:
    """One replica."""

    def __init__(self) -> None:
        self._loading: set[asyncio.Future[str]] = set()

    async def __call__(self, request: Request) -> Response:
        """Answer as `serving.backend.service` does, which sends heartbeats while a model loads.

        In parallel, Ray's own task loads the same model, so that Ray knows that it is here.
        """
        name = serve.get_multiplexed_model_id()
        if name:
            task = asyncio.ensure_future(self.model(name))
            self._loading.add(task)  # the event loop alone holds tasks weakly
            task.add_done_callback(self._loading.discard)
        if request.url.path == "/healthz":
            return await service.healthz(request)
        return await service.answer(request)

    @serve.multiplexed(max_num_models_per_replica=MODELS_PER_REPLICA)  # type: ignore[untyped-decorator]
    async def model(self, name: str) -> str:
        """Load a model; the answer reports what fails."""
        with contextlib.suppress(*models.LOAD_ERRORS):
            await asyncio.to_thread(models.get, name)
        return name


_fewest, _most = settings.REPLICAS.read()
_options: dict[str, Any] = {
    "autoscaling_config": {
        "min_replicas": _fewest,
        "max_replicas": _most,
        "target_ongoing_requests": REQUESTS_PER_REPLICA,
    },
    "ray_actor_options": {
        "num_cpus": 1,
        "num_gpus": settings.REPLICA_GPUS.read(),
    },
    # more than are answered, so that the replica itself answers that it is busy
    "max_ongoing_requests": 2 * MAX_CONCURRENT_REQUESTS,
    "health_check_period_s": 2,
}
app = serve.deployment(name="models", **_options)(ModelServer).bind()
