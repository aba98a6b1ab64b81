"""
What the heads of tiny models of Qwen3.5 and Qwen3-Next guess, without their weights.

    python tools/reference/draft-heads.py

writes test/goldens/draft-heads.json. transformers reads models without such a head (tensors named mtp.*), so it is put together here of
transformers' own layer, norm and RoPE of the family, in float32: at a place the last normed row of the model and the token after it go
through a norm each and one product, then through a layer that attends, a norm and the model's output layer. Beyond the sequence the
head's own normed row takes the place of the model's, and its most probable token that of the next token.
"""

import importlib
import json
import os
import tempfile

import torch
import transformers
from safetensors.numpy import save_file

from families import load, measure, numbers, prompts, written_names
from family_models import MODELS

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "test", "goldens", "draft-heads.json")
# Model of families.py, module of transformers, and the beginning of its classes' names.
HEADS = {
    "qwen3.5": ("qwen3_5", "Qwen3_5"),
    "qwen3.5-moe": ("qwen3_5_moe", "Qwen3_5Moe"),
    "qwen3-next": ("qwen3_next", "Qwen3Next"),
}
KEPT = [0, 24, 58]
ROUNDS = 2


def made_model(spec, directory):
    """The model of a family with the numbers that its tensors have in families.json."""
    config = getattr(transformers, spec["config"])(**spec["fields"])
    model_class = getattr(transformers, spec["model"])
    shapes = written_names(model_class(config), directory)
    values = {key: numbers(key, shape, *measure(key, shape, True, **spec.get("measures", {}))) for key, shape in shapes.items()}
    save_file(values, f"{directory}/model.safetensors", {"format": "pt"})
    return load(model_class, directory)


class Head(torch.nn.Module):
    """A head under the names of its tensors."""

    def __init__(self, config, module, prefix):
        super().__init__()
        own = type(config)(**(config.to_dict() | {"layer_types": ["full_attention"], "num_hidden_layers": 1}))
        own._attn_implementation = "eager"
        size = config.hidden_size
        norm = getattr(module, f"{prefix}RMSNorm")
        self.pre_fc_norm_embedding = norm(size, eps=config.rms_norm_eps)
        self.pre_fc_norm_hidden = norm(size, eps=config.rms_norm_eps)
        self.fc = torch.nn.Linear(2 * size, size, bias=False)
        self.layers = torch.nn.ModuleList([getattr(module, f"{prefix}DecoderLayer")(own, 0)])
        self.norm = norm(size, eps=config.rms_norm_eps)

    def forward(self, model, tokens, rows):
        """Normed rows of the tokens [T], each next to a row [T, width]."""
        count = len(tokens)
        both = [self.pre_fc_norm_embedding(model.model.embed_tokens(tokens)), self.pre_fc_norm_hidden(rows)]
        x = self.fc(torch.cat(both, dim=-1))[None]
        positions = torch.arange(count)[None]
        mask = torch.full((count, count), torch.finfo(torch.float32).min).triu(1)[None, None]
        angles = model.model.rotary_emb(x, positions)
        out = self.layers[0](x, position_embeddings=angles, attention_mask=mask, position_ids=positions)
        return self.norm((out[0] if isinstance(out, tuple) else out)[0])


def stored(head):
    """Tensors of the head as checkpoints have them: experts one by one."""
    tensors = {}
    for name, value in head.state_dict().items():
        key, shape = f"mtp.{name}", list(value.shape)
        if name.endswith("experts.gate_up_proj"):
            for expert in range(shape[0]):
                for part, begin in (("gate_proj", 0), ("up_proj", shape[1] // 2)):
                    own = key.replace("gate_up_proj", f"{expert}.{part}.weight")
                    tensors[own] = ([shape[1] // 2, shape[2]], value[expert, begin : begin + shape[1] // 2])
        elif name.endswith("experts.down_proj"):
            for expert in range(shape[0]):
                tensors[key.replace("down_proj", f"{expert}.down_proj.weight")] = (shape[1:], value[expert])
        else:
            tensors[key] = (shape, value)
    return tensors


def fill(head):
    """Gives the head's tensors their numbers; returns what defines them."""
    told = []
    for name, (shape, place) in stored(head).items():
        tensor = [name, shape, *measure(name, shape, True)]
        told.append(tensor)
        with torch.no_grad():
            place.copy_(torch.from_numpy(numbers(*tensor).copy()))
    return told


def judged(name):
    module_name, prefix = HEADS[name]
    module = importlib.import_module(f"transformers.models.{module_name}.modeling_{module_name}")
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as directory, torch.no_grad():
        model = made_model(MODELS[name], directory)
        head = Head(model.config, module, prefix).eval()
        tensors = fill(head)
        ids = list(prompts())[1][0]
        tokens = torch.tensor(ids[1:])
        rows = model.model(torch.tensor([ids])).last_hidden_state[0][:-1]
        output = head(model, tokens, rows)
        logits = model.lm_head(output)
        kept = {place: logits[place].tolist() for place in KEPT}
        rounds = []
        for _ in range(ROUNDS):
            guess = logits[-1].argmax()
            tokens, rows = torch.cat([tokens, guess[None]]), torch.cat([rows, output[-1:]])
            output = head(model, tokens, rows)
            logits = model.lm_head(output)
            rounds.append({"token": int(guess), "logits": logits[-1].tolist()})
    print(f"{name}: std {logits[-1].std():.2f}, guesses {[one['token'] for one in rounds]}")
    rounded = lambda values: [float(f"{value:.7g}") for value in values]
    return {
        "name": name,
        "tensors": tensors,
        "ids": ids,
        "logits": [{"place": place, "values": rounded(values)} for place, values in kept.items()],
        "rounds": [{"token": one["token"], "logits": rounded(one["logits"])} for one in rounds],
    }


def main():
    torch.set_num_threads(1)
    made_by = f"tools/reference/draft-heads.py, transformers {transformers.__version__}, float32"
    lines = ",\n  ".join(json.dumps(judged(name), separators=(",", ":")) for name in HEADS)
    with open(FILE, "w", encoding="utf-8") as file:
        file.write(f'{{"madeBy": {json.dumps(made_by)},\n "heads": [\n  {lines}\n ]}}\n')


if __name__ == "__main__":
    main()
