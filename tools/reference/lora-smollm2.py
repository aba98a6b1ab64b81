"""
LoRA adapters of SmolLM2-135M-Instruct, and what PEFT and Hugging Face transformers compute with them in float32.

    python tools/reference/lora-smollm2.py MODEL_DIR

MODEL_DIR holds the GGUF of smollm2.py, which transformers dequantises to float32. Writes test/fixtures/lora-smollm2-NAME
(a folder as PEFT saves it; three of other ranks, modules and layers) and test/goldens/lora-smollm2.json, which has for
each adapter some prompts of smollm2.json in the form of that golden, and of each greedy token its log-prob:

    adapter next to the weights, not merged   h = W x + scaling * B (A x)

The golden comes from the stored files, read back. The random weights are as large as it takes to lead each prompt to
another text; less would prove little, and much more would leave nothing of the model's certainty.
"""

import glob
import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from golden import all_logits, greedy, significant, write_json
from lora import ROOT, fill, save_adapter
from smollm2 import top_logits

NAMES = ["plain story", "python", "chat capital"]
NEW_TOKENS = 32
ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]

# name -> (stored type, factor of B's random numbers, LoraConfig)
ADAPTERS = {
    "attention": (
        torch.float16,
        0.2,
        {"r": 8, "lora_alpha": 16, "target_modules": ["q_proj", "v_proj"], "layers_to_transform": [2, 9, 16, 23]},
    ),
    "all": (
        torch.bfloat16,
        0.6,
        {"r": 2, "lora_alpha": 4, "target_modules": ALL, "layers_to_transform": [4, 25]},
    ),
    "outputs": (
        torch.float16,
        0.8,
        {
            "r": 16,
            "lora_alpha": 8,
            "use_rslora": True,
            "target_modules": ["o_proj", "down_proj"],
            "layers_to_transform": [12],
        },
    ),
}


def base_model(directory):
    path = glob.glob(os.path.join(directory, "*.gguf"))[0]
    model = AutoModelForCausalLM.from_pretrained(
        directory, gguf_file=os.path.basename(path), dtype=torch.float32, attn_implementation="eager"
    ).eval()
    model.name_or_path = model.config._name_or_path = "HuggingFaceTB/SmolLM2-135M-Instruct"
    return model


def judged(model, tokenizer, base_prompt):
    """The prompt with the adapter's answer; `base_prompt` has the one without it."""
    ids = base_prompt["promptIds"]
    tokens, gaps, steps = greedy(model, ids, NEW_TOKENS)
    same = [token == other for token, other in zip(tokens, base_prompt["tokens"])]
    assert not all(same), f"{base_prompt['name']}: the adapter changes no token"
    log_probs = torch.log_softmax(steps.double(), 1)
    context = all_logits(model, ids)
    last = len(ids) - 1
    logits = [top_logits(position, context[position]) for position in (last // 2, last)]
    logits += [top_logits(last + step, steps[step]) for step in (NEW_TOKENS // 2, NEW_TOKENS - 1)]
    text = tokenizer.decode(tokens)
    print(f"{base_prompt['name']}: {sum(same)} tokens as without it, smallest gap {min(gaps)}: {text!r}", flush=True)
    return {
        "name": base_prompt["name"],
        "promptIds": ids,
        "tokens": tokens,
        "gaps": gaps,
        "logProbs": [significant(row[token]) for row, token in zip(log_probs, tokens)],
        "logits": logits,
    }


def main():
    directory = sys.argv[1]
    torch.set_num_threads(1)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=os.path.join(directory, "tokenizer.json"))
    with open(os.path.join(ROOT, "goldens", "smollm2.json"), encoding="utf-8") as file:
        prompts = [prompt for prompt in json.load(file)["prompts"] if prompt["name"] in NAMES]
    base = base_model(directory)
    items = []
    for index, (name, (storage, scale, options)) in enumerate(ADAPTERS.items()):
        stored = f"lora-smollm2-{name}"
        path = os.path.join(ROOT, "fixtures", stored)
        config = LoraConfig(task_type="CAUSAL_LM", layers_pattern="layers", **options)
        model = get_peft_model(base, config)
        fill(model, 3000 + index, scale)
        save_adapter(model, path, storage)
        model = PeftModel.from_pretrained(model.unload(), path).eval().float()
        print(stored)
        items.append({"adapter": stored, "prompts": [judged(model, tokenizer, prompt) for prompt in prompts]})
        base = model.unload()
    header = {"madeBy": "tools/reference/lora-smollm2.py, float32, greedy, end_id ignored"}
    write_json(os.path.join(ROOT, "goldens", "lora-smollm2.json"), header, "adapters", items)


if __name__ == "__main__":
    main()
