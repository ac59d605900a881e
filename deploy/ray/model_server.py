"""The model server on Ray: replicas that grow with their queue, on shares of GPUs.

    python -m deploy.ray

ATTENTION_LAB_REPLICAS: the fewest and the most replicas, "1-4". ATTENTION_LAB_REPLICA_GPUS: the
share of a GPU that each one takes, 0 by default. Each replica keeps a few models; a question goes
where its model is loaded. `requirements-scale.txt` has what this needs.
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
from serving.limits import MAX_OPEN_ANSWERS

MODELS_OF_A_REPLICA = 3
WAITING_OF_A_REPLICA = 2  # questions for which another replica is started


class ModelServer:
    """One replica."""

    def __init__(self) -> None:
        self._loading: set[asyncio.Future[str]] = set()

    async def __call__(self, request: Request) -> Response:
        """Answer as `serving.backend.service`, which says at once that somebody is there.

        Beside it Ray's own task loads the model that the question names, so that Ray knows it is
        here; the answer waits for the same model.
        """
        name = serve.get_multiplexed_model_id()
        if name:
            task = asyncio.ensure_future(self.model(name))
            self._loading.add(task)  # nobody else holds it
            task.add_done_callback(self._loading.discard)
        if request.url.path == "/healthz":
            return await service.alive(request)
        return await service.answer(request)

    @serve.multiplexed(max_num_models_per_replica=MODELS_OF_A_REPLICA)  # type: ignore[untyped-decorator]
    async def model(self, name: str) -> str:
        """Load a model, so that Ray knows this replica has it; the answer tells what fails."""
        with contextlib.suppress(*models.LOAD_ERRORS):
            await asyncio.to_thread(models.get, name)
        return name


_fewest, _most = settings.REPLICAS.read()
_options: dict[str, Any] = {
    "autoscaling_config": {
        "min_replicas": _fewest,
        "max_replicas": _most,
        "target_ongoing_requests": WAITING_OF_A_REPLICA,
    },
    "ray_actor_options": {
        "num_cpus": 1,
        "num_gpus": settings.REPLICA_GPUS.read(),
    },
    # more than are answered, so that the replica itself says to the others that it is busy
    "max_ongoing_requests": 2 * MAX_OPEN_ANSWERS,
    "health_check_period_s": 2,
}
app = serve.deployment(name="models", **_options)(ModelServer).bind()
