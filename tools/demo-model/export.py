"""Writes the model that train.py saved as what Skein, transformers and others load: safetensors in bf16, config, tokenizer.

    python3 tools/demo-model/export.py RUN_FOLDER TOKENIZER_FOLDER models/demo/gosling
"""

import argparse
import json
import shutil
from pathlib import Path

import torch
from network import Network
from safetensors.torch import save_file
from tokenizer import END_OF_TEXT, END_OF_TURN
from tokenizers import Tokenizer

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("run", type=Path)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("folder", type=Path)
    flags = parser.parse_args()
    state = torch.load(flags.run / "state.pt", map_location="cpu")
    model = Network(**state["shape"])
    model.load_state_dict(state["model"])
    config, weights = model.hugging_face()
    ids = Tokenizer.from_file(str(flags.tokenizer / "tokenizer.json"))
    end_of_turn, end_of_text = ids.token_to_id(END_OF_TURN), ids.token_to_id(END_OF_TEXT)
    config |= {"eos_token_id": end_of_turn, "pad_token_id": end_of_text, "torch_dtype": "bfloat16"}
    flags.folder.mkdir(parents=True, exist_ok=True)
    save_file({name: weight.detach().bfloat16().contiguous() for name, weight in weights.items()},
              flags.folder / "model.safetensors", metadata={"format": "pt"})
    (flags.folder / "model.safetensors").chmod(0o644)
    (flags.folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    generation = {"eos_token_id": [end_of_turn, end_of_text], "pad_token_id": end_of_text}
    (flags.folder / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(flags.tokenizer / name, flags.folder / name)
    size = sum(p.numel() for p in model.parameters())
    print(f"{size} parameters, step {state['step']}, {state['tokens']} tokens seen, held-out loss {state['held_out']:.4f}")
