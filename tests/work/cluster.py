"""A Ray cluster of one head and two nodes of one core each on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

STORE_BYTES = 80_000_000
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # nodes talk by the loopback, whatever the machine's address is
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"


@contextmanager
def started(nodes: int = 2) -> Iterator[Any]:
    """A cluster of `ray.cluster_utils`. Its head has no core, so that tasks run on the nodes."""
    import ray
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE_BYTES}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        for _ in range(nodes):
            cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
        cluster.wait_for_nodes()
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()
