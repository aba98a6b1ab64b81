"""A request of Dynamo as a body of Skein's /v1/completions: token ids in, token ids out."""

from __future__ import annotations

import hashlib
from typing import Any

#: Fields of Dynamo's sampling_options that Skein has under the same name.
_SAMPLING = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "logit_bias",
)


class UnsupportedRequest(ValueError):
    """Something of a request cannot be served."""


def body_of(request: dict[str, Any], request_id: str, model: str, context_length: int) -> dict[str, Any]:
    """The body for a request.

    Without a seed the request's id makes one: Dynamo keeps the id where it migrates a request, so that its next worker
    draws with the same random numbers.
    """
    tokens = request["token_ids"]
    sampling = {key: value for key, value in (request.get("sampling_options") or {}).items() if value is not None}
    stops = request.get("stop_conditions") or {}
    outputs = request.get("output_options") or {}
    if sampling.get("use_beam_search"):
        raise UnsupportedRequest("Skein searches with beams only where the answer is not streamed, and Dynamo asks for streams alone.")
    if sampling.get("n", 1) != 1 or sampling.get("best_of", 1) != 1:
        raise UnsupportedRequest("n is more than 1: Dynamo's worker ends its stream with the first choice that ends.")
    body: dict[str, Any] = {
        "model": request.get("model") or model,
        "prompt": tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_token_ids": True,
        "return_tokens_as_token_ids": True,
        "seed": seed_of(request_id),
        **{name: sampling[name] for name in _SAMPLING if name in sampling},
        **_guide(sampling.get("guided_decoding")),
        **_stops(stops, len(tokens), context_length),
        **_engine(request),
    }
    if outputs.get("logprobs") is not None:
        body["logprobs"] = int(outputs["logprobs"])
    if outputs.get("prompt_logprobs") is not None:
        raise UnsupportedRequest("Skein gives no prompt_logprobs in streams, and Dynamo asks for streams alone.")
    return body


def seed_of(request_id: str) -> int:
    """A seed of 53 bits, the same for the same id."""
    return int.from_bytes(hashlib.sha256(request_id.encode()).digest()[:7], "big") >> 3


def _stops(stops: dict[str, Any], prompt_length: int, context_length: int) -> dict[str, Any]:
    # Texts that end an answer (`stop`) are found by the frontend, which has the text.
    most = stops.get("max_tokens")
    names = ("stop_token_ids", "stop_token_ids_visible", "stop_token_ids_hidden")
    tokens = [token for name in names for token in stops.get(name) or []]
    fields: dict[str, Any] = {
        "max_tokens": max(1, context_length - prompt_length) if most is None else most,
        "min_tokens": stops.get("min_tokens"),
        "ignore_eos": stops.get("ignore_eos"),
        "stop_token_ids": sorted(set(tokens)) or None,
        "thinking_token_budget": stops.get("max_thinking_tokens"),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _engine(request: dict[str, Any]) -> dict[str, Any]:
    """Salt and priority. Dynamo's priorities are whole numbers, higher first; Skein's are 0 to 1."""
    fields: dict[str, Any] = {}
    routing = request.get("routing") or {}
    salt = _salt(request)
    if salt is not None:
        fields["cache_salt"] = salt
    priority = routing.get("priority")
    if priority:
        fields["priority"] = 0.5 + 0.5 * priority / (1 + abs(priority))
    return fields


def _salt(request: dict[str, Any]) -> str | None:
    extra = request.get("extra_args") or {}
    nvext = extra.get("nvext") or {}
    for source in (request, extra, nvext):
        if source.get("cache_salt"):
            return str(source["cache_salt"])
    return None


def _guide(guide: dict[str, Any] | None) -> dict[str, Any]:
    if not guide:
        return {}
    known = ("json", "regex", "choice", "grammar")
    given = {name: guide[name] for name in known if guide.get(name) is not None}
    others = [name for name, value in guide.items() if value is not None and name not in (*known, "backend", "whitespace_pattern")]
    if others:
        raise UnsupportedRequest(f"Skein has no guided_decoding.{others[0]}.")
    return {"structured_outputs": given} if given else {}
