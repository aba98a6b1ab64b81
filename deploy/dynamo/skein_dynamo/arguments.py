"""What the command line says: options of Dynamo's worker here, all others are for `skein serve`."""

from __future__ import annotations

import argparse
import os
import shlex
from dataclasses import dataclass

#: Options of `skein serve` that this worker sets itself.
OWN_OPTIONS = (
    "--model",
    "--served-model-name",
    "--host",
    "--port",
    "--api-key",
    "--kv-events-endpoint",
    "--kv-events-topic",
)


@dataclass(frozen=True)
class Arguments:
    """Options of one worker."""

    model: str
    served_model_name: str
    #: Folder with config.json and the tokenizer's files, which frontends read.
    model_card: str
    #: Program of Skein, and its first arguments.
    command: list[str]
    #: Further options of `skein serve`.
    serve_options: list[str]
    namespace: str
    component: str
    endpoint: str
    endpoint_types: str
    discovery_backend: str
    request_plane: str
    event_plane: str | None
    start_timeout: float


def parse(argv: list[str] | None) -> Arguments:
    """Reads the command line; says what is wrong with it and ends, as argparse does."""
    parser = argparse.ArgumentParser(
        prog="skein-dynamo",
        description="A worker of NVIDIA Dynamo with a Skein of its own. Options that are not listed here go to `skein serve`.",
    )
    parser.add_argument("--model", required=True, help="the model: what `skein serve --model` takes")
    parser.add_argument("--served-model-name", help="its name for clients; default: the last part of --model")
    parser.add_argument(
        "--model-card",
        metavar="DIR",
        help="folder with config.json, tokenizer.json and tokenizer_config.json, which frontends read; default: --model",
    )
    parser.add_argument(
        "--skein",
        default=os.environ.get("SKEIN_COMMAND", "skein"),
        metavar="COMMAND",
        help="the command of Skein, such as 'npx skein'; default: skein (SKEIN_COMMAND)",
    )
    parser.add_argument("--start-timeout", type=float, default=600, metavar="SECONDS", help="time to load the model; default 600")
    parser.add_argument("--namespace", default=os.environ.get("DYN_NAMESPACE", "dynamo"))
    parser.add_argument("--component", default="backend")
    parser.add_argument("--endpoint", default="generate")
    parser.add_argument("--endpoint-types", default="chat,completions")
    parser.add_argument("--discovery-backend", default=os.environ.get("DYN_DISCOVERY_BACKEND", "etcd"))
    parser.add_argument("--request-plane", default=os.environ.get("DYN_REQUEST_PLANE", "tcp"))
    parser.add_argument("--event-plane", default=os.environ.get("DYN_EVENT_PLANE"))
    known, rest = parser.parse_known_args(argv)
    for option in rest:
        if option.split("=", 1)[0] in OWN_OPTIONS:
            parser.error(f"{option} is set by this worker itself")
    card = known.model_card or known.model
    if not os.path.isfile(os.path.join(card, "config.json")):
        parser.error(
            f"{card} has no config.json, which frontends read; --model-card names a folder with config.json, "
            "tokenizer.json and tokenizer_config.json"
        )
    return Arguments(
        model=known.model,
        served_model_name=known.served_model_name or os.path.basename(os.path.normpath(known.model)),
        model_card=card,
        command=shlex.split(known.skein),
        serve_options=rest,
        namespace=known.namespace,
        component=known.component,
        endpoint=known.endpoint,
        endpoint_types=known.endpoint_types,
        discovery_backend=known.discovery_backend,
        request_plane=known.request_plane,
        event_plane=known.event_plane,
        start_timeout=known.start_timeout,
    )
