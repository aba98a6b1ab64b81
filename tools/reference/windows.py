"""
What Hugging Face transformers answers where a token attends only to a window of the tokens before it.

    python tools/reference/windows.py

writes test/goldens/windows.json from test/fixtures/tiny-gqa in float32. Without sinks the weights are loaded as a Mistral
model, whose `sliding_window` is the window: transformers makes the mask. With sinks (StreamingLLM, but at the positions
of the whole sequence) a 4D mask is written out here: position q sees t <= q with t < sinks or q - t < window - sinks.
Both are computed uncached, so that nothing depends on how a cache drops tokens.
"""

import os

import torch
from transformers import AutoConfig, AutoModelForCausalLM, MistralConfig, MistralForCausalLM

from golden import row, significant, write_json

ROOT = os.path.join(os.path.dirname(__file__), "..", "..", "test")
MODEL = os.path.join(ROOT, "fixtures", "tiny-gqa")
# Inside a step of 32 positions, around blocks, and with sinks inside a block and beyond one.
CASES = [(20, 0), (64, 0), (40, 4), (75, 37)]
PROMPT_TOKENS = 160
KEPT = [19, 20, 97, 159]
NEW_TOKENS = 24


def mask(length, window, sinks):
    q = torch.arange(length)[:, None]
    t = torch.arange(length)[None, :]
    seen = (t <= q) & ((t < sinks) | (q - t < window - sinks))
    return torch.where(seen, 0.0, torch.finfo(torch.float32).min)[None, None]


def mistral(window):
    fields = AutoConfig.from_pretrained(MODEL).to_dict()
    for key in ("model_type", "architectures", "attention_bias", "mlp_bias"):
        fields.pop(key, None)
    config = MistralConfig(**fields, sliding_window=window)
    return MistralForCausalLM.from_pretrained(
        MODEL, config=config, dtype=torch.float32, attn_implementation="eager"
    ).eval()


@torch.no_grad()
def logits_of(model, ids, window, sinks):
    given = {} if sinks == 0 else {"attention_mask": mask(len(ids), window, sinks)}
    return model(input_ids=torch.tensor([ids]), use_cache=False, **given).logits[0].float()


def golden(window, sinks):
    model = mistral(window) if sinks == 0 else AutoModelForCausalLM.from_pretrained(
        MODEL, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    generator = torch.Generator().manual_seed(window)
    ids = torch.randint(3, model.config.vocab_size, (PROMPT_TOKENS,), generator=generator).tolist()
    logits = logits_of(model, ids, window, sinks)
    kept = [{"position": position, "values": row(logits[position])} for position in KEPT]
    tokens, gaps = [], []
    for _ in range(NEW_TOKENS):
        last = logits_of(model, ids + tokens, window, sinks)[-1]
        top = torch.topk(last, 2).values
        tokens.append(int((last == top[0]).nonzero()[0, 0]))
        gaps.append(significant(top[0] - top[1], 4))
    return {"window": window, "sinks": sinks, "promptIds": ids, "tokens": tokens, "gaps": gaps, "logits": kept}


def main():
    torch.set_num_threads(1)
    items = [golden(window, sinks) for window, sinks in CASES]
    header = {"model": "tiny-gqa", "madeBy": "tools/reference/windows.py, float32, greedy, end_id ignored"}
    write_json(os.path.join(ROOT, "goldens", "windows.json"), header, "prompts", items)
    for item in items:
        print(item["window"], item["sinks"], f"smallest gap {min(item['gaps'])}", item["tokens"][:12])


if __name__ == "__main__":
    main()
