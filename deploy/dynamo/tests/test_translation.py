"""python -m unittest discover deploy/dynamo/tests, with deploy/dynamo in PYTHONPATH: what needs no engine."""

import asyncio
import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path

from skein_dynamo import arguments, chunks
from skein_dynamo.load import hit_rate_of
from skein_dynamo.request import UnsupportedRequest, body_of, seed_of


def body(request, request_id="a"):
    return body_of({"token_ids": [1, 2, 3], **request}, request_id, "goose", 100)


class Requests(unittest.TestCase):
    def test_plain(self):
        self.assertEqual(
            body({}),
            {
                "model": "goose",
                "prompt": [1, 2, 3],
                "stream": True,
                "stream_options": {"include_usage": True},
                "return_token_ids": True,
                "return_tokens_as_token_ids": True,
                "seed": seed_of("a"),
                "max_tokens": 97,
            },
        )

    def test_all_fields(self):
        made = body(
            {
                "model": "poet",
                "sampling_options": {"temperature": 0.5, "top_p": None, "top_k": 5, "seed": 7, "n": 1, "length_penalty": 1.0},
                "stop_conditions": {
                    "max_tokens": 4,
                    "min_tokens": 2,
                    "ignore_eos": True,
                    "stop": ["x"],
                    "stop_token_ids_hidden": [9, 8],
                    "stop_token_ids_visible": [8],
                    "max_thinking_tokens": 3,
                },
                "output_options": {"logprobs": 2},
                "routing": {"priority": 1},
                "extra_args": {"nvext": {"cache_salt": "me"}},
            }
        )
        del made["stream"], made["stream_options"], made["return_token_ids"], made["return_tokens_as_token_ids"]
        self.assertEqual(
            made,
            {
                "model": "poet",
                "prompt": [1, 2, 3],
                "temperature": 0.5,
                "top_k": 5,
                "seed": 7,
                "max_tokens": 4,
                "min_tokens": 2,
                "ignore_eos": True,
                "stop_token_ids": [8, 9],
                "thinking_token_budget": 3,
                "logprobs": 2,
                "priority": 0.75,
                "cache_salt": "me",
            },
        )

    def test_seeds(self):
        self.assertEqual(seed_of("a"), seed_of("a"))
        self.assertNotEqual(seed_of("a"), seed_of("b"))
        self.assertLess(seed_of("b"), 2**53)

    def test_guides(self):
        made = body({"sampling_options": {"guided_decoding": {"regex": "a+", "json": None, "backend": "x"}}})
        self.assertEqual(made["structured_outputs"], {"regex": "a+"})

    def test_refusals(self):
        for options in (
            {"sampling_options": {"n": 2}},
            {"sampling_options": {"best_of": 2}},
            {"sampling_options": {"use_beam_search": True}},
            {"sampling_options": {"guided_decoding": {"structural_tag": {}}}},
            {"output_options": {"prompt_logprobs": 1}},
        ):
            with self.assertRaises(UnsupportedRequest):
                body(options)


async def _lines(*lines):
    for line in lines:
        yield line


class Chunks(unittest.TestCase):
    def read(self, *lines):
        async def gather():
            return [event async for event in chunks.events_of(_lines(*lines))]

        return asyncio.run(gather())

    def test_events(self):
        self.assertEqual(self.read(b'data: {"a": 1}\n', b"\n", b": beat\n", b"data: [DONE]\n"), [{"a": 1}])
        with self.assertRaises(EOFError):
            self.read(b'data: {"a": 1}\n')

    def test_chunk(self):
        choice = {
            "index": 0,
            "token_ids": [5],
            "finish_reason": "length",
            "stop_reason": "cancelled",
            "logprobs": {"token_logprobs": [-1.0], "top_logprobs": [{"token_id:7": -2.0, "token_id:5": -1.0}]},
        }
        self.assertEqual(
            chunks.chunk_of(choice, True),
            {
                "token_ids": [5],
                "index": 0,
                "finish_reason": "cancelled",
                "log_probs": [-1.0],
                "top_logprobs": [
                    [
                        {"rank": 1, "token_id": 5, "token": None, "logprob": -1.0},
                        {"rank": 2, "token_id": 7, "token": None, "logprob": -2.0},
                    ]
                ],
            },
        )
        self.assertEqual(chunks.chunk_of({"index": 0, "token_ids": [5]}, False), {"token_ids": [5], "index": 0})

    def test_hit_rate(self):
        metrics = 'vllm:prefix_cache_queries_total{a="b"} 8\nvllm:prefix_cache_hits_total{a="b"} 2\nother 5\n'
        self.assertEqual(hit_rate_of(metrics), 0.25)
        self.assertIsNone(hit_rate_of(""))


class Arguments(unittest.TestCase):
    def refused(self, *argv):
        words = io.StringIO()
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(words):
            arguments.parse(list(argv))
        return words.getvalue()

    def test_arguments(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "config.json").write_text(json.dumps({}))
            given = arguments.parse(
                ["--model", folder, "--skein", "node 'a b/skein.js'", "--discovery-backend", "file", "--threads", "2"]
            )
            self.assertEqual(given.command, ["node", "a b/skein.js"])
            self.assertEqual(given.serve_options, ["--threads", "2"])
            self.assertEqual(given.served_model_name, Path(folder).name)
            self.assertEqual(given.discovery_backend, "file")
            self.assertIn("set by this worker itself", self.refused("--model", folder, "--port=1"))
        self.assertIn("has no config.json", self.refused("--model", "model.gguf"))
        self.assertIn("--model", self.refused())


if __name__ == "__main__":
    unittest.main()
