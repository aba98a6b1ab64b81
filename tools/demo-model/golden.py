"""Greedy answers of the demo model by Hugging Face transformers in float32, which the tests compare with.

    python3 tools/demo-model/golden.py models/demo/gosling test/goldens/gosling.json
"""

import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

sys.path.insert(0, str(Path(__file__).parents[1] / "reference"))
from golden import greedy, write_json

REQUESTS = ["Tell me a story about a cat", "hello", "what is your name", "Tell me a story about a dragon and a princess",
            "Tell me a story about a zorblat named Quinn"]
TOKENS = 96

if __name__ == "__main__":
    folder, path = sys.argv[1:]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ends = set(model.generation_config.eos_token_id)
    items = []
    for request in REQUESTS:
        messages = [{"role": "user", "content": request}]
        prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
        tokens, gaps, _ = greedy(model, prompt, TOKENS)
        length = next((i + 1 for i, token in enumerate(tokens) if token in ends), TOKENS)
        items.append({"request": request, "prompt": prompt, "tokens": tokens[:length], "gaps": gaps[:length],
                      "text": tokenizer.decode([t for t in tokens[:length] if t not in ends])})
    write_json(path, {"model": "models/demo/gosling", "dtype": "float32"}, "answers", items)
