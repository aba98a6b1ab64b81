"""
Goldens of SmolLM2-135M-Instruct: what Hugging Face transformers answers in float32 from the same GGUF.

    python tools/reference/smollm2.py MODEL_DIR test/goldens/smollm2.json

MODEL_DIR holds one GGUF and the original tokenizer.json. transformers dequantises the GGUF to float32; the tokens come
from tokenizer.json, because the tokenizer that transformers derives from the GGUF does not split digits one by one.

Per prompt: the greedy tokens, the distance of the two greatest logits at each step (tokens need to be equal only until a
step where that distance is within rounding), and at a few positions the 20 greatest logits with the log-sum-exp over
the whole vocabulary, from which a KL divergence over "top 20 and the rest" can be taken.
"""

import glob
import os
import sys

import gguf
import torch
from prompts import PROMPTS
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from golden import all_logits, greedy, row, significant, write_json

TOP = 20


def chat_template(path):
    field = gguf.GGUFReader(path).fields["tokenizer.chat_template"]
    return bytes(field.parts[field.data[0]]).decode("utf-8")


def top_logits(position, logits):
    values, tokens = torch.topk(logits, TOP)
    return {
        "position": position,
        "tokens": tokens.tolist(),
        "values": row(values),
        "logSumExp": significant(torch.logsumexp(logits.double(), 0), 8),
    }


def golden(model, tokenizer, prompt):
    if "messages" in prompt:
        text = tokenizer.apply_chat_template(prompt["messages"], tokenize=False, add_generation_prompt=True)
    else:
        text = prompt.get("text")
    ids = prompt.get("ids") or tokenizer(text, add_special_tokens=False)["input_ids"]
    count = prompt.get("count", 48)
    tokens, gaps, steps = greedy(model, ids, count)
    context = all_logits(model, ids)
    last = len(ids) - 1
    positions = sorted({0, last // 2, last})
    logits = [top_logits(position, context[position]) for position in positions]
    logits += [top_logits(last + step, steps[step]) for step in (count // 3, count - 1)]
    print(f"{prompt['name']}: {len(ids)} tokens, smallest gap {min(gaps)}: {tokenizer.decode(tokens)[:70]!r}", flush=True)
    item = {"name": prompt["name"]}
    if "messages" in prompt:
        item["messages"] = prompt["messages"]
    if "ids" not in prompt:
        item["text"] = text
    return item | {"promptIds": ids, "tokens": tokens, "gaps": gaps, "logits": logits}


def main():
    directory, target = sys.argv[1:3]
    torch.set_num_threads(1)
    path = glob.glob(os.path.join(directory, "*.gguf"))[0]
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=os.path.join(directory, "tokenizer.json"))
    tokenizer.chat_template = chat_template(path)
    model = AutoModelForCausalLM.from_pretrained(
        directory, gguf_file=os.path.basename(path), dtype=torch.float32, attn_implementation="eager"
    ).eval()
    assert next(model.parameters()).dtype == torch.float32
    items = [golden(model, tokenizer, prompt) for prompt in PROMPTS]
    header = {
        "model": os.path.basename(path),
        "madeBy": "tools/reference/smollm2.py, float32, greedy, end_id ignored",
    }
    write_json(target, header, "prompts", items)


if __name__ == "__main__":
    main()
