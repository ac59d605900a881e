"""Run the model server on Ray: `python -m deploy.ray --port 8600`.

RAY_ADDRESS names a running cluster; without it, one is started on this machine.
"""

# ruff: noqa: E402
from __future__ import annotations

from pretrained import settings

settings.check_or_exit()  # before other imports: some modules read variables when imported

import argparse
import sys
from collections.abc import Sequence

from ray import serve

from deploy.ray.model_server import app


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until Ctrl+C."""
    parser = argparse.ArgumentParser(prog="python -m deploy.ray")
    parser.add_argument("--host", default="127.0.0.1", help="0.0.0.0 inside a private network")
    parser.add_argument("--port", type=int, default=8600)
    options = parser.parse_args(arguments)
    serve.start(http_options={"host": options.host, "port": options.port})
    serve.run(app, name="models", route_prefix="/", blocking=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
