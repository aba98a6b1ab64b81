"""
What Hugging Face transformers answers where a token attends only to a window of the tokens before it.

    python tools/reference/windows.py

writes test/goldens/windows.json from test/fixtures/tiny-gqa in float32. Without sinks the weights are loaded as a Mistral
model, whose `sliding_window` is the window: transformers makes the mask. With sinks (StreamingLLM)
an attention of its own is given to transformers: position q sees t <= q with t < sinks or q - t < window - sinks, and
counts as its position in the cache, min(q, window - 1), so that its distance to a sink s is min(q, window - 1) - s.
Both are computed uncached, so that nothing depends on how a cache drops tokens.
"""

import os

import torch
from transformers import AttentionInterface, AutoConfig, AutoModelForCausalLM, MistralConfig, MistralForCausalLM

from golden import greedy_recomputed, row, write_json

ROOT = os.path.join(os.path.dirname(__file__), "..", "..", "test")
MODEL = os.path.join(ROOT, "fixtures", "tiny-gqa")
# Inside a step of 32 positions, around blocks, and with sinks inside a block and beyond one.
CASES = [(20, 0), (64, 0), (40, 4), (75, 37)]
PROMPT_TOKENS = 160
KEPT = [19, 20, 97, 159]
NEW_TOKENS = 24


def turned_back(x, steps, theta):
    """Takes `steps` positions back from RoPE's rotation of x [batch, heads, length, dim]."""
    half = x.shape[-1] // 2
    angle = steps[:, None] / theta ** (torch.arange(half, dtype=torch.float64) / half)
    cos, sin = angle.cos().float(), angle.sin().float()
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos + b * sin, b * cos - a * sin], -1)


def with_sinks(window, sinks, theta):
    """An attention as transformers calls it: queries and keys come rotated at the positions of the whole sequence."""

    def attention(module, query, key, value, attention_mask, scaling, **_):
        key = key.repeat_interleave(module.num_key_value_groups, 1)
        value = value.repeat_interleave(module.num_key_value_groups, 1)
        q = torch.arange(query.shape[2])
        t = torch.arange(key.shape[2])
        beyond = (q - (window - 1)).clamp(min=0).double()
        to_sinks = turned_back(query, beyond, theta) @ key.transpose(2, 3)
        scores = torch.where(t < sinks, to_sinks, query @ key.transpose(2, 3)) * scaling
        seen = (t <= q[:, None]) & ((t < sinks) | (q[:, None] - t < window - sinks))
        weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
        return (weights @ value).transpose(1, 2), weights

    return attention


def mistral(window):
    fields = AutoConfig.from_pretrained(MODEL).to_dict()
    for key in ("model_type", "architectures", "attention_bias", "mlp_bias"):
        fields.pop(key, None)
    config = MistralConfig(**fields, sliding_window=window)
    return MistralForCausalLM.from_pretrained(
        MODEL, config=config, dtype=torch.float32, attn_implementation="eager"
    ).eval()


def streaming(window, sinks):
    config = AutoConfig.from_pretrained(MODEL)
    theta = config.rope_parameters["rope_theta"]
    name = f"sinks-{window}-{sinks}"
    AttentionInterface.register(name, with_sinks(window, sinks, theta))
    return AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32, attn_implementation=name).eval()


@torch.no_grad()
def logits_of(model, ids):
    return model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].float()


def golden(window, sinks):
    model = mistral(window) if sinks == 0 else streaming(window, sinks)
    generator = torch.Generator().manual_seed(window)
    ids = torch.randint(3, model.config.vocab_size, (PROMPT_TOKENS,), generator=generator).tolist()
    logits = logits_of(model, ids)
    kept = [{"position": position, "values": row(logits[position])} for position in KEPT]
    tokens, gaps = greedy_recomputed(lambda tokens: logits_of(model, ids + tokens)[-1], NEW_TOKENS)
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
