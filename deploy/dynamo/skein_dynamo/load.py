"""A worker's load, as routers of Dynamo read it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import aiohttp
from dynamo.common.backend.publisher import ComponentSnapshot

logger = logging.getLogger(__name__)

#: Seconds between two looks at the load.
_INTERVAL = 0.25


class Load:
    """Publishes how full the cache is, again and again.

    /stats            blocks in use, and all of them
    /metrics          prompt tokens looked for in the cache, and found
    """

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url
        self._publisher: Any = None
        self._task: asyncio.Task[None] | None = None

    def attach(self, publisher: Any) -> None:
        self._publisher = publisher

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        rounds = 0
        hit_rate: float | None = None
        while True:
            try:
                # The rate changes slowly, and its text is long.
                if rounds % 8 == 0:
                    hit_rate = hit_rate_of(await self._text("/metrics"))
                rounds += 1
                await self._publish(hit_rate)
            except (aiohttp.ClientError, asyncio.TimeoutError, ValueError, KeyError) as error:
                logger.debug("the load of Skein cannot be read: %s", error)
            await asyncio.sleep(_INTERVAL)

    async def _publish(self, hit_rate: float | None) -> None:
        if self._publisher is None:
            return
        async with self._session.get(f"{self._url}/stats") as response:
            response.raise_for_status()
            stats = await response.json()
        used, total = stats["Used KV cache blocks"], stats["Max KV cache blocks"]
        snapshot = ComponentSnapshot(
            kv_used_blocks=used,
            kv_total_blocks=total,
            gpu_cache_usage=used / total if total else 0.0,
            kv_cache_hit_rate=hit_rate,
            dp_rank=0,
        )
        self._publisher.publish(0, snapshot)

    async def _text(self, path: str) -> str:
        async with self._session.get(self._url + path) as response:
            response.raise_for_status()
            return await response.text()


def hit_rate_of(metrics: str) -> float | None:
    """Share of prompt tokens that were found in the cache; None: none was looked for, or there are no metrics."""
    values = {"vllm:prefix_cache_queries_total": 0.0, "vllm:prefix_cache_hits_total": 0.0}
    for line in metrics.splitlines():
        name = line.split("{", 1)[0]
        if name in values:
            values[name] += float(line.rsplit(" ", 1)[1])
    queries, hits = values.values()
    return hits / queries if queries else None
