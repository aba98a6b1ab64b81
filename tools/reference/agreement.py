"""
What `npm run bench -- agreement` holds Skein against: 500 prompts and their greedy tokens by transformers in float32.

    python tools/reference/agreement.py MODEL_DIR test/goldens/agreement.json

MODEL_DIR holds one GGUF and the original tokenizer.json, as for smollm2.py. 450 prompts are windows of 8 to 200 tokens of files of
this repository, 50 are chats. The golden keeps the tokens of the prompts, since the files change.

Gaps are the distances of the two greatest logits at each step, in thousandths, rounded down: 0 is a near tie. Prompts of one
length are computed together, so that none is padded.
"""

import glob
import os
import sys

import gguf
import torch
from prompts import user
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from golden import write_json

COUNT = 32
WINDOWS = 450
LENGTHS = [8, 10, 12, 16, 20, 24, 32, 40, 50, 64, 80, 100, 128, 160, 200]
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
FILES = [
    "LICENSE",
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/models.md",
    "docs/queue.md",
    "docs/errors.md",
    "docs/kubernetes.md",
    "docs/lab/executors.md",
    "docs/lab/speculation.md",
    "package.json",
    "base/machine.ts",
    "host/gpt-manager.ts",
    "models/chat-template.ts",
    "scheduler/tokens/types.ts",
    "tools/reference/golden.py",
    "tools/reference/family_models.py",
    "engine/executors/native/kernels/gemm.h",
    "engine/executors/native/kernels/isa.cpp",
]
THINGS = [
    "a bridge",
    "the moon",
    "photosynthesis",
    "a linked list",
    "the French Revolution",
    "wild geese",
    "a sourdough bread",
    "the number pi",
    "a black hole",
    "an old library",
]
QUESTIONS = [
    "What is {}?",
    "Write a short poem about {}.",
    "Explain {} to a child of eight years.",
    "Name three facts about {}, one a line.",
    "Describe {} in one sentence, then in another language.",
]


def windows(tokenizer):
    texts = []
    for name in FILES:
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            texts.append(tokenizer(file.read(), add_special_tokens=False)["input_ids"])
    for i in range(WINDOWS):
        # 20 files and 15 lengths would meet in 60 pairs only.
        at = (i + i // 60) % len(FILES)
        ids, length = texts[at], LENGTHS[i % len(LENGTHS)]
        begin = (i * 7919) % (len(ids) - length)
        yield {"name": f"{FILES[at]} at {begin}", "promptIds": ids[begin : begin + length]}


def chats(tokenizer):
    for question in QUESTIONS:
        for thing in THINGS:
            content = question.format(thing)
            text = tokenizer.apply_chat_template(user(content), tokenize=False, add_generation_prompt=True)
            yield {"name": content, "promptIds": tokenizer(text, add_special_tokens=False)["input_ids"]}


@torch.no_grad()
def greedy_together(model, prompts):
    """Adds tokens and gaps to prompts of one length. end_id is ignored."""
    output = model(input_ids=torch.tensor([prompt["promptIds"] for prompt in prompts]), use_cache=True, logits_to_keep=1)
    for prompt in prompts:
        prompt["tokens"], prompt["gaps"] = [], []
    for _ in range(COUNT):
        logits = output.logits[:, -1].float()
        top = torch.topk(logits, 2).values
        # Ties go to the lowest token id, as in the engine.
        tokens = [int((row == best).nonzero()[0, 0]) for row, best in zip(logits, top[:, 0])]
        for prompt, token, (first, second) in zip(prompts, tokens, top.tolist()):
            prompt["tokens"].append(token)
            prompt["gaps"].append(int(1000 * (first - second)))
        if len(prompts[0]["tokens"]) < COUNT:
            output = model(
                input_ids=torch.tensor(tokens)[:, None], use_cache=True, past_key_values=output.past_key_values
            )


def main():
    directory, target = sys.argv[1:3]
    torch.set_num_threads(2)
    path = glob.glob(os.path.join(directory, "*.gguf"))[0]
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=os.path.join(directory, "tokenizer.json"))
    field = gguf.GGUFReader(path).fields["tokenizer.chat_template"]
    tokenizer.chat_template = bytes(field.parts[field.data[0]]).decode("utf-8")
    model = AutoModelForCausalLM.from_pretrained(
        directory, gguf_file=os.path.basename(path), dtype=torch.float32, attn_implementation="eager"
    ).eval()
    assert next(model.parameters()).dtype == torch.float32
    items = [*windows(tokenizer), *chats(tokenizer)]
    by_length = {}
    for item in items:
        by_length.setdefault(len(item["promptIds"]), []).append(item)
    for length, prompts in sorted(by_length.items()):
        greedy_together(model, prompts)
        print(f"{len(prompts)} prompts of {length} tokens: {tokenizer.decode(prompts[0]['tokens'])[:60]!r}", flush=True)
    header = {
        "model": os.path.basename(path),
        "madeBy": "tools/reference/agreement.py, float32, greedy, end_id ignored",
        "count": COUNT,
    }
    write_json(target, header, "prompts", items)


if __name__ == "__main__":
    main()
