"""
What Hugging Face transformers answers to prompts with embeddings or positions of their own.

    python tools/reference/prompt-inputs.py

writes test/goldens/prompt-inputs.json from test/fixtures/tiny-gqa in float32. A prompt with a table gives ids from the
vocabulary's size on, which stand for rows of the table: the model gets `inputs_embeds` of both kinds. A prompt with
`positionIds` gives the model these, and each token after it the position after the last one. Everything is computed
uncached.
"""

import os

import torch
from transformers import AutoModelForCausalLM

from golden import greedy_recomputed, row, significant, write_json

ROOT = os.path.join(os.path.dirname(__file__), "..", "..", "test")
MODEL = os.path.join(ROOT, "fixtures", "tiny-gqa")
NEW_TOKENS = 20


def prompts(vocab, hidden):
    generator = torch.Generator().manual_seed(33)

    def tokens(count):
        return torch.randint(3, vocab, (count,), generator=generator).tolist()

    def table(rows):
        values = 0.3 * torch.randn((rows, hidden), generator=generator)
        return [[significant(value, 5) for value in line.tolist()] for line in values]

    own = [vocab + i for i in range(5)]
    gapped = list(range(10)) + list(range(40, 60))
    back = list(range(30, 60)) + list(range(10))
    return [
        {"name": "own embeddings first", "promptIds": own + tokens(30), "table": table(5)},
        {"name": "own embeddings here and there", "promptIds": tokens(17) + own[3:] + tokens(20) + own[:2], "table": table(5)},
        {"name": "nothing but own embeddings", "promptIds": (own * 8)[:37], "table": table(5)},
        {"name": "positions with a gap", "promptIds": tokens(30), "positionIds": gapped},
        {"name": "positions that go back", "promptIds": tokens(40), "positionIds": back},
        {"name": "positions that stand still", "promptIds": tokens(24), "positionIds": [i // 3 for i in range(24)]},
        {"name": "both", "promptIds": own + tokens(20), "table": table(5), "positionIds": [7] * 5 + list(range(20, 40))},
    ]


@torch.no_grad()
def logits_of(model, prompt, new_tokens):
    vocab = model.config.vocab_size
    ids = torch.tensor([prompt["promptIds"] + new_tokens])
    embeds = model.get_input_embeddings()(ids.clamp(max=vocab - 1))
    if "table" in prompt:
        own = torch.tensor(prompt["table"])[(ids - vocab).clamp(min=0)]
        embeds = torch.where((ids >= vocab)[..., None], own, embeds)
    arguments = {}
    if "positionIds" in prompt:
        given = prompt["positionIds"]
        positions = given + [given[-1] + 1 + i for i in range(len(new_tokens))]
        arguments["position_ids"] = torch.tensor([positions])
    # Without a mask some versions take positions that go back for several packed sequences.
    arguments["attention_mask"] = torch.ones_like(ids)
    return model(inputs_embeds=embeds, use_cache=False, **arguments).logits[0].float()


def golden(model, prompt):
    logits = logits_of(model, prompt, [])
    positions = sorted({0, len(prompt["promptIds"]) // 2, len(prompt["promptIds"]) - 1})
    kept = [{"position": position, "values": row(logits[position])} for position in positions]
    tokens, gaps = greedy_recomputed(lambda tokens: logits_of(model, prompt, tokens)[-1], NEW_TOKENS)
    return prompt | {"tokens": tokens, "gaps": gaps, "logits": kept}


def main():
    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32, attn_implementation="eager").eval()
    items = [golden(model, prompt) for prompt in prompts(model.config.vocab_size, model.config.hidden_size)]
    header = {"model": "tiny-gqa", "madeBy": "tools/reference/prompt-inputs.py, float32, greedy, end_id ignored"}
    write_json(os.path.join(ROOT, "goldens", "prompt-inputs.json"), header, "prompts", items)
    for item in items:
        print(item["name"], f"smallest gap {min(item['gaps'])}", item["tokens"][:12])


if __name__ == "__main__":
    main()
