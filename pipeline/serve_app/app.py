"""The Serve application: the endpoint, and before it can answer, the engine pool.

    POST /v1/extract ─▶ Endpoint ⟨extract, in this process⟩ ─▶ Engine × n
    jobs with placement `serve` ────────────────────────────▶

`serve run serve_configs/online_sampler.yaml`, or `serve deploy` on a cluster. Paths are relative to the working
directory.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.compile.plans import plans_of
from pipeline.jobfile import read_work
from pipeline.runtime.bundles import bundles_of, own_gpus
from pipeline.runtime.served import DEPLOYMENT
from pipeline.schema.registry import available
from pipeline.serve_app.endpoint import EndpointDeployment
from pipeline.serve_app.engine import PROOF_SECONDS, EngineDeployment
from pipeline.serve_app.online import token_of
from pipeline.serve_app.settings import AppConfig

if TYPE_CHECKING:
    from ray.serve import Application, Deployment

ROUTER = "ray.serve.experimental.consistent_hash_router.ConsistentHashRouter"
HEALTH_SECONDS = 10.0
BEYOND = 500


def build(args: dict[str, Any]) -> Application:
    """The application of these settings (`AppConfig`), its plans compiled.

    Raises:
        GristmillError: the settings cannot be used, or none of the schemas can.
    """
    config = read_work(args, Path.cwd(), AppConfig, "args of the application")
    token_of(config.online)  # told here, and not by a replica that Serve starts twenty times
    planned = plans_of(config, config.serve or available(config.schemas))
    plans = list(planned.by_name.values())
    engine = engine_deployment(config).bind(config, [plan for plan in plans if not plan.refused])
    return endpoint_deployment(config).bind(config, plans, engine)


def engine_deployment(config: AppConfig) -> Deployment:
    """The pool. Its gates refuse what is too much, at once and with a time to come again, so Serve's own limits lie
    beyond theirs: requests that Serve's router holds back block others behind them."""
    from ray import serve
    from ray.serve.config import AutoscalingConfig, RequestRouterConfig

    pool, engine = config.pool, config.engine
    most = engine.max_num_seqs + 2 * pool.waiting + BEYOND
    bundles, strategy = bundles_of(config)
    placed = {"placement_group_bundles": bundles, "placement_group_strategy": strategy} if bundles else {}
    return serve.deployment(EngineDeployment).options(
        name=DEPLOYMENT,
        autoscaling_config=AutoscalingConfig(
            min_replicas=pool.min_replicas,
            max_replicas=pool.max_replicas,
            initial_replicas=pool.min_replicas,
            target_ongoing_requests=engine.max_num_seqs,
            upscale_delay_s=pool.grow_seconds,
            downscale_delay_s=pool.idle_seconds,
        ),
        max_ongoing_requests=most,
        max_queued_requests=most,
        request_router_config=RequestRouterConfig(request_router_class=ROUTER),
        health_check_period_s=HEALTH_SECONDS,
        health_check_timeout_s=PROOF_SECONDS + HEALTH_SECONDS,
        graceful_shutdown_wait_loop_s=1.0,
        graceful_shutdown_timeout_s=pool.drain_seconds,
        ray_actor_options={"num_cpus": 0, "num_gpus": own_gpus(config)},
        **placed,
    )


def endpoint_deployment(config: AppConfig) -> Deployment:
    """The endpoint. It refuses by itself what is too much, with 429; Serve's own limit lies beyond that."""
    from ray import serve

    most = 4 * config.online.in_flight + 100
    return serve.deployment(serve.ingress()(EndpointDeployment)).options(
        name="Endpoint",
        max_ongoing_requests=most,
        max_queued_requests=most,
        ray_actor_options={"num_cpus": 0},
        graceful_shutdown_timeout_s=config.pool.drain_seconds,
    )
