"""A cluster that grows by itself counts for what it may become, and not only for what it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from pipeline.errors import ResourceError
from pipeline.flow import extract
from pipeline.runtime.cluster import check_gpus, has_choice, room
from pipeline.runtime.setup import Setup
from pipeline.runtime.store import open_store
from tests.integration.conftest import MakeJob

pytestmark = pytest.mark.usefixtures("ray_cluster")


@contextmanager
def may_grow_by(**resources: int) -> Iterator[None]:
    """What Ray's autoscaler tells the cluster of its groups: here one, of two nodes at most, and none there yet."""
    from ray import _raylet
    from ray.core.generated.autoscaler_pb2 import ClusterConfig, NodeGroupConfig
    from ray.experimental.internal_kv import _internal_kv_del, _internal_kv_put

    key, space = _raylet.GCS_AUTOSCALER_CLUSTER_CONFIG_KEY, _raylet.GCS_AUTOSCALER_STATE_NAMESPACE
    group = NodeGroupConfig(name="gpus", resources=resources, min_count=0, max_count=2)
    _internal_kv_put(key, ClusterConfig(node_group_configs=[group]).SerializeToString(), namespace=space)
    try:
        yield
    finally:
        _internal_kv_del(key, namespace=space)


@pytest.fixture
def setup(make_job: MakeJob) -> Callable[[int], Setup]:
    def made(engines: int) -> Setup:
        job = make_job([], engine={"num_gpus": 1}, placement={"kind": "local", "actors": engines})
        return Setup(job, {}, open_store(job.output), "run", None, extract)

    return made


def test_gpus_that_an_autoscaler_can_bring_are_waited_for(setup: Callable[[int], Setup]) -> None:
    with pytest.raises(ResourceError, match="need 1, and the cluster has 0"):
        check_gpus(setup(1))
    with may_grow_by(CPU=4, GPU=1):
        check_gpus(setup(2))
        with pytest.raises(ResourceError, match="need 3, and the cluster has 2"):
            check_gpus(setup(3))


def test_one_machine_leaves_no_choice_unless_it_may_grow() -> None:
    there = room("CPU")
    assert not has_choice() and there > 0
    with may_grow_by(CPU=1000):
        assert has_choice() and room("CPU") == 2000
    assert (has_choice(), room("CPU"), room("GPU")) == (False, there, 0)
