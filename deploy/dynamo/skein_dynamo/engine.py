"""The engine that Dynamo's worker drives."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncGenerator
from typing import Any

import aiohttp
from dynamo._core import Context
from dynamo.common.backend.engine import EngineConfig, LLMEngine, LlmRegistration
from dynamo.common.backend.health_check import build_health_check_payload
from dynamo.common.backend.publisher import KvEventSource, ZmqSource
from dynamo.common.backend.worker import WorkerConfig
from dynamo.common.utils.token_ids import normalize_request_token_ids
from dynamo.llm.exceptions import (
    CannotConnect,
    DynamoException,
    EngineShutdown,
    InvalidArgument,
    StreamIncomplete,
    Unknown,
    WorkerUnavailable,
)

from . import arguments, chunks
from .load import Load
from .process import SkeinProcess
from .request import UnsupportedRequest, body_of

logger = logging.getLogger(__name__)


class SkeinEngine(LLMEngine):
    """A worker of Dynamo whose tokens come from a Skein of its own.

        frontend -> generate(token_ids) -> POST /v1/completions, streamed -> {"token_ids", "index"}, ...
        router  <- ZmqSource            <- events of the KV cache over ZeroMQ
        router  <- ComponentSnapshot    <- /stats

    Dynamo migrates what has not ended where this worker dies, and where it says that its stream is incomplete.
    """

    def __init__(self, args: arguments.Arguments) -> None:
        self._args = args
        self._skein: SkeinProcess | None = None
        self._session: aiohttp.ClientSession | None = None
        self._load: Load | None = None
        self._publisher: Any = None
        self._context_length = 0
        #: Answers under way, by the ids of their requests.
        self._answers: dict[str, aiohttp.ClientResponse] = {}

    @classmethod
    async def from_args(cls, argv: list[str] | None = None) -> tuple[SkeinEngine, WorkerConfig]:
        args = arguments.parse(argv)
        config = WorkerConfig(
            namespace=args.namespace,
            component=args.component,
            endpoint=args.endpoint,
            model_name=args.model_card,
            served_model_name=args.served_model_name,
            endpoint_types=args.endpoint_types,
            discovery_backend=args.discovery_backend,
            request_plane=args.request_plane,
            event_plane=args.event_plane,
        )
        return cls(args), config

    async def start(self, worker_id: int) -> EngineConfig:
        del worker_id
        self._skein = SkeinProcess(self._args, _end_worker)
        await self._skein.started(self._args.start_timeout)
        self._session = aiohttp.ClientSession(
            headers={"Authorization": f"Bearer {self._skein.api_key}"},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
            connector=aiohttp.TCPConnector(limit=0),
            # An event is as long as its log-probs.
            read_bufsize=2**20,
        )
        async with self._session.get(f"{self._skein.url}/get_server_info") as response:
            response.raise_for_status()
            info = await response.json()
        self._context_length = info["context_length"]
        self._load = Load(self._session, self._skein.url)
        self._load.attach(self._publisher)
        self._load.start()
        tokens_per_block = info["page_size"]
        return EngineConfig(
            model=self._args.model_card,
            served_model_name=self._args.served_model_name,
            llm=LlmRegistration(
                context_length=info["context_length"],
                kv_cache_block_size=tokens_per_block,
                total_kv_blocks=info["max_total_num_tokens"] // tokens_per_block,
                max_num_seqs=info.get("max_running_requests"),
            ),
        )

    async def kv_event_sources(self) -> list[KvEventSource]:
        assert self._skein is not None
        return [ZmqSource(endpoint=self._skein.events)]

    def component_metrics_dp_ranks(self) -> list[int]:
        return [0]

    def attach_snapshot_publisher(self, publisher: Any) -> None:
        self._publisher = publisher
        if self._load is not None:
            self._load.attach(publisher)

    async def health_check_payload(self) -> dict[str, Any]:
        return build_health_check_payload(bos_token_id=0)

    async def generate(self, request: dict[str, Any], context: Context) -> AsyncGenerator[dict[str, Any], None]:
        normalize_request_token_ids(request)
        try:
            body = body_of(request, context.id(), self._args.served_model_name, self._context_length)
        except UnsupportedRequest as error:
            raise InvalidArgument(str(error)) from error
        wants_top = bool(body.get("logprobs"))
        try:
            async with self._post(body) as response:
                await _raise_for(response)
                self._answers[context.id()] = response
                async for chunk in _chunks(response, wants_top):
                    yield chunk
        except (aiohttp.ClientConnectorError, aiohttp.ServerDisconnectedError) as error:
            if not context.is_stopped():
                raise CannotConnect(f"Skein does not answer: {error}") from error
        except (aiohttp.ClientError, EOFError, ConnectionError) as error:
            if not context.is_stopped():
                raise StreamIncomplete(f"Skein's answer broke off: {error}") from error
        finally:
            self._answers.pop(context.id(), None)

    async def abort(self, context: Context) -> None:
        answer = self._answers.pop(context.id(), None)
        # Skein frees what belongs to a request whose client leaves, within one iteration.
        if answer is not None:
            answer.close()

    async def cleanup(self) -> None:
        if self._load is not None:
            await self._load.stop()
            self._load = None
        if self._session is not None:
            await self._session.close()
            self._session = None
        if self._skein is not None:
            await self._skein.end()
            self._skein = None

    def _post(self, body: dict[str, Any]) -> Any:
        if self._session is None or self._skein is None:
            raise EngineShutdown("This worker is ending.")
        return self._session.post(f"{self._skein.url}/v1/completions", json=body)


async def _chunks(response: aiohttp.ClientResponse, wants_top: bool) -> AsyncGenerator[dict[str, Any], None]:
    """Chunks of an answer. The usage comes last, and belongs to the chunk that ends the answer: those that end are held back."""
    ending: list[dict[str, Any]] = []
    async for event in chunks.events_of(response.content):
        if "error" in event:
            raise StreamIncomplete(f"Skein's answer broke off: {event['error'].get('message', event['error'])}")
        for choice in event["choices"]:
            chunk = chunks.chunk_of(choice, wants_top)
            if "finish_reason" in chunk:
                ending.append(chunk)
            elif chunk["token_ids"]:
                yield chunk
        if not event["choices"] and event.get("usage"):
            for chunk in ending:
                chunk["completion_usage"] = chunks.usage_of(event["usage"])
    for chunk in ending:
        yield chunk


async def _raise_for(response: aiohttp.ClientResponse) -> None:
    """Raises Dynamo's error for a status: those of the request stay, those of the worker let another one try."""
    if response.status == 200:
        return
    try:
        message = (await response.json())["error"]["message"]
    except (aiohttp.ClientError, ValueError, KeyError, TypeError):
        message = f"Skein answered with {response.status}."
    raise _error_of(response.status)(message)


def _error_of(status: int) -> type[DynamoException]:
    if status in (429, 503):
        return WorkerUnavailable
    return InvalidArgument if 400 <= status < 500 else Unknown


def _end_worker(code: int) -> None:
    """Ends the worker whose Skein has died: what it did goes to others."""
    logger.error("skein serve ended with %s; this worker ends too", code)
    os.kill(os.getpid(), signal.SIGTERM)
