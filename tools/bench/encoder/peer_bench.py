"""Embeds texts with Hugging Face transformers on torch, as sentence-transformers does: sorted by length,
in batches of 32 that are padded to their longest text, mean pooling, normalised.

    python peer_bench.py MODEL_DIR WORKLOADS.json --side torch-f32|torch-bf16 --threads 2 --rounds 3

Prints one JSON line per workload: {"name", "seconds": [one per round], "tokens"}.
"""

import argparse
import json
import time

import torch
from transformers import AutoModel, AutoTokenizer


def forward_of(model_dir, side, threads):
    torch.set_num_threads(threads)
    dtype = torch.bfloat16 if side == "torch-bf16" else torch.float32
    model = AutoModel.from_pretrained(model_dir, dtype=dtype).eval()
    return lambda inputs: model(**inputs).last_hidden_state.float()


@torch.inference_mode()
def embed(forward, tokenizer, texts, limit):
    order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
    rows = [None] * len(texts)
    tokens = 0
    for begin in range(0, len(order), 32):
        batch = order[begin : begin + 32]
        inputs = tokenizer([texts[i] for i in batch], padding=True, truncation=True, max_length=limit, return_tensors="pt")
        inputs = {name: inputs[name] for name in ("input_ids", "attention_mask", "token_type_ids")}
        states = forward(inputs)
        mask = inputs["attention_mask"].unsqueeze(-1).float()
        pooled = torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=1)
        tokens += int(mask.sum())
        for i, row in zip(batch, pooled):
            rows[i] = row
    return rows, tokens


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("workloads")
    parser.add_argument("--side", choices=["torch-f32", "torch-bf16"], required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(arguments.model)
    forward = forward_of(arguments.model, arguments.side, arguments.threads)
    with open(arguments.workloads) as file:
        workloads = json.load(file)
    for workload in workloads:
        embed(forward, tokenizer, workload["texts"][:64], 256)
        seconds = []
        for _ in range(arguments.rounds):
            start = time.perf_counter()
            rows, tokens = embed(forward, tokenizer, workload["texts"], 256)
            seconds.append(time.perf_counter() - start)
        first = [float(value) for value in rows[0]]
        print(json.dumps({"name": workload["name"], "seconds": seconds, "tokens": tokens, "first": first}), flush=True)


if __name__ == "__main__":
    main()
