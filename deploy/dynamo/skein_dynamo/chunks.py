"""Skein's stream of a completion as chunks of Dynamo."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

#: Dynamo's words for why an answer ended, by Skein's. What was cancelled has the reason `length` there.
_FINISHED = {"stop": "stop", "length": "length", "content_filter": "content_filter"}


async def events_of(lines: AsyncIterator[bytes]) -> AsyncIterator[dict[str, Any]]:
    """The JSON of each server-sent event, up to [DONE]. Raises EOFError where the stream ends before."""
    async for line in lines:
        if not line.startswith(b"data: "):
            continue
        data = line[len(b"data: ") :].strip()
        if data == b"[DONE]":
            return
        yield json.loads(data)
    raise EOFError("Skein's answer ended before it was whole")


def chunk_of(choice: dict[str, Any], wants_top: bool) -> dict[str, Any]:
    """A chunk of Dynamo for a choice of one event, without its usage."""
    chunk: dict[str, Any] = {"token_ids": choice.get("token_ids") or [], "index": choice["index"]}
    log_probs = choice.get("logprobs")
    if log_probs:
        chunk["log_probs"] = log_probs["token_logprobs"]
        if wants_top:
            chunk["top_logprobs"] = [_ranked(top) for top in log_probs["top_logprobs"]]
    reason = choice.get("finish_reason")
    if reason is not None:
        is_cancelled = choice.get("stop_reason") == "cancelled"
        chunk["finish_reason"] = "cancelled" if is_cancelled else _FINISHED.get(reason, "stop")
    return chunk


def _ranked(top: dict[str, float]) -> list[dict[str, Any]]:
    """The most probable tokens of a place, which come as {"token_id:42": log-prob}."""
    ranked = sorted(top.items(), key=lambda one: -one[1])
    return [
        {"rank": rank, "token_id": int(name.removeprefix("token_id:")), "token": None, "logprob": log_prob}
        for rank, (name, log_prob) in enumerate(ranked, 1)
    ]


def usage_of(usage: dict[str, Any]) -> dict[str, Any]:
    """completion_usage of Dynamo: Skein has the same fields."""
    fields = ("prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details")
    return {name: usage[name] for name in fields if usage.get(name) is not None}
