"""Writes the model card, with the answers to samples.py as they came.

    python3 tools/demo-model/card.py run/state.pt answers.jsonl > models/demo/gosling/README.md
"""

import math
import sys

import samples
import torch
from network import Network

CARD = """---
license: apache-2.0
language: en
pipeline_tag: text-generation
---

# Gosling

Gosling is a very small language model that tells little stories, and can do nothing else. It comes with Skein so that `npm start`
works without a network. Its stories follow 27 plots, and its statements about the world are made up.

| | |
|---|---|
| architecture | Llama: {layers} layers, {width} wide, {heads} heads over {kv_heads}, {inner} inside, tied embeddings, context 1024 (trained to 512) |
| size | {size:.2f} million parameters, {megabytes:.1f} MB in bf16 |
| vocabulary | {vocabulary}, byte-level BPE, trained on its corpus |
| format | ChatML: `<|im_start|>user`, text, `<|im_end|>`; its answers end with `<|im_end|>` |
| data | seeded conversations made by tools/demo-model: plots written by hand, clauses by SmolLM2-135M-Instruct (Apache-2.0), run by Skein; English, plain ASCII |
| training | {tokens:.1f} million tokens, {steps} steps, on a CPU, by tools/demo-model/train.py |
| held-out loss | {loss:.3f} nats a token of its answers (perplexity {perplexity:.2f}), over conversations that were left out of training (every 50th) |
| licence | Apache-2.0 |

The held-out conversations have the same plots as the training data, with other people, things and clauses: the loss shows how
well the model has learned its small world, and says nothing about other texts.

## Ten samples

These samples are not selected: tools/demo-model/samples.py has their requests and seeds; `skein batch` ran them at temperature 0.7.

{samples}
## How to train it again

tools/demo-model/README.md describes each step; with more training steps the model improves further.
"""

if __name__ == "__main__":
    state_path, answers = sys.argv[1:]
    state = torch.load(state_path, map_location="cpu")
    size = sum(p.numel() for p in Network(**state["shape"]).parameters())
    sys.stdout.write(CARD.format(
        **state["shape"], size=size / 1e6, megabytes=2 * size / 1e6, tokens=state["tokens"] / 1e6, steps=state["step"],
        loss=state["held_out"], perplexity=math.exp(state["held_out"]), samples="\n".join(samples.shown(answers)),
    ))
