"""
Tiny models that see, and what Hugging Face transformers makes of pictures and answers to prompts with them, without their weights.

    python tools/reference/towers.py [NAME ...]

writes test/goldens/towers.json: for each model its config.json, the names and shapes of its tensors with the mean and the spread of their
numbers, the rows that its text model gets of each picture (float32), and its answer to a prompt with the pictures (greedy, end_id ignored,
log-probabilities float64). Weights and pictures are those of `numbers` in families.py. Names given replace their entries alone.
"""

import json
import os
import sys
import tempfile

import torch
import transformers
from safetensors.numpy import save_file

from families import load, measure, numbers, written_names
from family_models import DELTA, MIXTURE, decoder, wrapped
from golden import in_double, row, significant

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "test", "goldens", "towers.json")
NEW_TOKENS = 24
IMAGE = 100  # id of the token in whose place a row of a picture stands
CHANNELS, PATCH = 3, 2

QWEN = {
    "depth": 3,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_heads": 2,
    "out_hidden_size": 32,
    "patch_size": PATCH,
    "num_position_embeddings": 16,
}
SECTIONS = {"rope_type": "default", "rope_theta": 5000.0, "mrope_section": [4, 2, 2], "mrope_interleaved": True}
PLAIN_SECTIONS = {"rope_type": "default", "rope_theta": 5000.0, "mrope_section": [2, 1, 1]}
QWEN25 = {key: value for key, value in QWEN.items() if key != "num_position_embeddings"}
MOE = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 20}
SIGLIP = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 12,
    "patch_size": PATCH,
}


GEMMA4 = {
    "hidden_size": 32,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "patch_size": PATCH,
    "pooling_kernel_size": 2,
    "position_embedding_size": 8,
}
GEMMA4_TEXT = decoder(
    head_dim=8,
    global_head_dim=16,
    num_hidden_layers=3,
    sliding_window=64,
    layer_types=["sliding_attention", "full_attention", "full_attention"],
)


def qwen_input(rows, grids):
    grid = torch.tensor([[1, *grid] for grid in grids])
    return {"pixel_values": torch.cat(rows), "image_grid_thw": grid}


def pixels(rows, grids):
    """Patches, row by row, as pictures of one size."""
    pictures = []
    for patches, (height, width) in zip(rows, grids):
        parts = patches.reshape(height, width, CHANNELS, PATCH, PATCH).permute(2, 0, 3, 1, 4)
        pictures.append(parts.reshape(CHANNELS, height * PATCH, width * PATCH))
    return torch.stack(pictures)


def gemma4_input(rows, grids):
    """Patches with the numbers of a pixel side by side, empty ones after those of smaller pictures, and the column and row of each."""
    most = max(len(patches) for patches in rows)
    places = [torch.tensor([[x, y] for y in range(height) for x in range(width)]) for height, width in grids]
    pad = torch.nn.functional.pad
    return {
        "pixel_values": torch.stack([pad(patches, (0, 0, 0, most - len(patches))) for patches in rows]),
        "image_position_ids": torch.stack([pad(own, (0, 0, 0, most - len(own)), value=-1) for own in places]),
    }


def many(rows, grids):
    """Idefics 3 takes several pictures of a prompt as one more dimension."""
    return {"pixel_values": pixels(rows, grids)[None]}


def sees(spec, grids, inputs, frames=1, merge=1, types=None):
    """types: the argument that says which tokens are of pictures."""
    return spec | {"grids": grids, "inputs": inputs, "width": CHANNELS * frames * PATCH**2, "merge": merge, "types": types}


def padded(rows, grids):
    """Pictures of different sizes, which are made as large as the largest one."""
    parts = [pixels([one], [grid])[0] for one, grid in zip(rows, grids)]
    high, wide = (max(grid[side] for grid in grids) * PATCH for side in (0, 1))
    whole = [torch.nn.functional.pad(part, (0, wide - part.shape[2], 0, high - part.shape[1])) for part in parts]
    sizes = torch.tensor([[height * PATCH, width * PATCH] for height, width in grids])
    return {"pixel_values": torch.stack(whole), "image_sizes": sizes}


TOWERS = {
    "qwen2-vl": sees(
        wrapped(
            "Qwen2VL",
            decoder(rope_parameters=PLAIN_SECTIONS),
            {"depth": 2, "embed_dim": 16, "hidden_size": 32, "mlp_ratio": 2, "num_heads": 2, "patch_size": PATCH},
            [],
            image_token_id=IMAGE,
        ),
        [[4, 6], [2, 2]],
        qwen_input,
        frames=2,
        merge=2,
    ),
    "qwen2.5-vl": sees(
        wrapped(
            "Qwen2_5_VL",
            decoder(rope_parameters=PLAIN_SECTIONS),
            # Windows of 4 x 4 patches: those at the right and at the bottom are smaller, or there are as many as fit.
            QWEN25 | {"depth": 3, "window_size": 8, "fullatt_block_indexes": [1]},
            [],
            image_token_id=IMAGE,
        ),
        [[6, 10], [8, 2]],
        qwen_input,
        frames=2,
        merge=2,
    ),
    "qwen3-vl": sees(
        wrapped(
            "Qwen3VL",
            decoder(head_dim=16, num_hidden_layers=3, rope_parameters=SECTIONS),
            QWEN | {"deepstack_visual_indexes": [0, 1]},
            [],
            image_token_id=IMAGE,
        ),
        [[4, 6], [2, 2]],
        qwen_input,
        frames=2,
        merge=2,
        types="mm_token_type_ids",
    ),
    "qwen3-vl-moe": sees(
        wrapped(
            "Qwen3VLMoe",
            decoder(head_dim=16, rope_parameters=SECTIONS, **MOE),
            QWEN | {"depth": 2, "deepstack_visual_indexes": [0]},
            [],
            image_token_id=IMAGE,
        ),
        [[6, 2]],
        qwen_input,
        frames=2,
        merge=2,
        types="mm_token_type_ids",
    ),
    "qwen3.5": sees(
        wrapped(
            "Qwen3_5",
            DELTA
            | {
                "num_hidden_layers": 4,
                "layer_types": ["linear_attention", "linear_attention", "linear_attention", "full_attention"],
                "linear_num_value_heads": 2,
            },
            QWEN | {"depth": 2},
            [],
            norms_less_1=True,
            image_token_id=IMAGE,
        ),
        [[2, 4], [4, 4]],
        qwen_input,
        frames=2,
        merge=2,
        types="mm_token_type_ids",
    ),
    "qwen3.5-moe": sees(
        wrapped("Qwen3_5Moe", MIXTURE, QWEN | {"depth": 2}, [], norms_less_1=True, image_token_id=IMAGE),
        [[4, 2], [2, 2]],
        qwen_input,
        frames=2,
        merge=2,
    ),
    "smolvlm": sees(
        wrapped("SmolVLM", decoder(model_type="llama"), SIGLIP, [], image_token_id=IMAGE, scale_factor=3),
        [[6, 6], [6, 6]],
        many,
        merge=3,
    ),
    "idefics3": sees(
        wrapped("Idefics3", decoder(model_type="llama", mlp_bias=True), SIGLIP | {"image_size": 8}, [], image_token_id=IMAGE),
        [[4, 4]],
        many,
        merge=2,
    ),
    "gemma3": sees(
        wrapped(
            "Gemma3",
            # A window that is shorter than a picture.
            decoder(
                num_key_value_heads=1,
                head_dim=8,
                query_pre_attn_scalar=12,
                num_hidden_layers=3,
                sliding_window=3,
                layer_types=["sliding_attention", "full_attention", "sliding_attention"],
            ),
            # Heads of 72 numbers, as those of the published towers.
            SIGLIP | {"image_size": 8, "hidden_size": 144},
            [],
            mm_tokens_per_image=4,
            image_token_index=IMAGE,
        ),
        [[4, 4], [4, 4]],
        lambda rows, grids: {"pixel_values": pixels(rows, grids)},
        merge=2,
        types="token_type_ids",
    ),
    "gemma4": sees(
        wrapped(
            "Gemma4",
            GEMMA4_TEXT | {"hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 128, "pad_token_id": 0},
            GEMMA4 | {"use_clipped_linears": True},
            [],
            image_token_id=IMAGE,
            audio_config=None,
        ),
        [[4, 6], [2, 4]],
        gemma4_input,
        merge=2,
    ),
    "gemma4-vision": sees(
        wrapped(
            "Gemma4",
            GEMMA4_TEXT
            | {"hidden_size_per_layer_input": 0, "use_bidirectional_attention": "vision", "sliding_window": 4, "intermediate_size": 56},
            GEMMA4 | {"standardize": True},
            [],
            image_token_id=IMAGE,
            audio_config=None,
        ),
        [[6, 4], [4, 6]],
        gemma4_input,
        merge=2,
        types="mm_token_type_ids",
    ),
    "llava": sees(
        wrapped(
            "Llava",
            decoder(model_type="llama"),
            SIGLIP | {"model_type": "clip_vision_model", "num_hidden_layers": 3, "image_size": 6},
            [],
            image_token_index=IMAGE,
        ),
        [[3, 3], [3, 3]],
        lambda rows, grids: {"pixel_values": pixels(rows, grids)},
    ),
    "internvl": sees(
        wrapped(
            "InternVL",
            decoder(model_type="qwen2"),
            SIGLIP | {"image_size": [8, 8], "patch_size": [PATCH, PATCH], "attention_bias": True},
            [],
            image_token_id=IMAGE,
            tie_word_embeddings=False,
        ),
        [[4, 4], [4, 4], [4, 4]],
        lambda rows, grids: {"pixel_values": pixels(rows, grids)},
        merge=2,
    ),
    # As the largest one: norms of queries and keys, RMS norms, no biases; and a norm after the last layer.
    "internvl-rms": sees(
        wrapped(
            "InternVL",
            decoder(model_type="qwen3", head_dim=8),
            SIGLIP
            | {
                "image_size": 16,
                "use_qk_norm": True,
                "norm_type": "rms_norm",
                "use_mean_pooling": False,
                "hidden_act": "gelu_pytorch_tanh",
            },
            [],
            image_token_id=IMAGE,
            downsample_ratio=0.25,
            tie_word_embeddings=False,
        ),
        [[8, 8], [8, 8]],
        lambda rows, grids: {"pixel_values": pixels(rows, grids)},
        merge=4,
    ),
    "mistral3": sees(
        wrapped(
            "Mistral3",
            decoder(model_type="mistral", head_dim=16, sliding_window=None, rms_norm_eps=1e-3),
            SIGLIP | {"model_type": "pixtral", "head_dim": 8, "hidden_act": "silu"},
            [],
            image_token_index=IMAGE,
            spatial_merge_size=2,
            tie_word_embeddings=False,
        ),
        [[4, 6], [2, 4]],
        padded,
        merge=2,
    ),
    "pixtral": sees(
        wrapped(
            "Llava",
            decoder(model_type="mistral", head_dim=16, sliding_window=None),
            SIGLIP | {"model_type": "pixtral", "head_dim": 8, "hidden_act": "silu"},
            [],
            image_token_index=IMAGE,
            vision_feature_layer=-1,
            vision_feature_select_strategy="full",
        ),
        [[3, 5], [3, 5]],
        lambda rows, grids: {"pixel_values": pixels(rows, grids)},
    ),
}


def picture_rows(model, inputs):
    """Rows of all pictures: embeddings, and what later layers add."""
    with torch.no_grad():
        output = model.model.get_image_features(**inputs)
    levels = getattr(output, "deepstack_features", None) or []
    parts = [part if isinstance(part, torch.Tensor) else torch.cat(list(part)) for part in [output.pooler_output, *levels]]
    return torch.cat([part.reshape(-1, part.shape[-1]) for part in parts], -1)


@torch.no_grad()
def answer(model, prompt, inputs, named):
    """Greedy tokens with the least distance between two logits, and their log-probabilities. named: see sees."""
    ids, gaps, found = list(prompt), [], []
    for _ in range(NEW_TOKENS):
        types = torch.tensor([[int(token == IMAGE and place < len(prompt)) for place, token in enumerate(ids)]])
        more = {} if named is None else {named: types}
        logits = model(input_ids=torch.tensor([ids]), use_cache=False, **inputs, **more).logits[0, -1]
        logits = logits.clone()
        top = torch.topk(logits, 2)
        gaps.append(float(top.values[0] - top.values[1]))
        found.append(float(torch.log_softmax(logits, -1)[top.indices[0]]))
        ids.append(int(top.indices[0]))
        assert ids[-1] != IMAGE, "the token of pictures is no answer"
    return ids[len(prompt) :], found, min(gaps)


def prompt_of(counts):
    """Texts around pictures of the given numbers of rows, and where each begins."""
    generator = torch.Generator().manual_seed(29)
    text = lambda length: torch.randint(3, IMAGE, (length,), generator=generator).tolist()
    prompt, places = text(5), []
    for count in counts:
        places.append(len(prompt))
        prompt += [IMAGE] * count + text(3)
    return prompt, places


def tower(name):
    spec = TOWERS[name]
    config = getattr(transformers, spec["config"])(**spec["fields"])
    model_class = getattr(transformers, spec["model"])
    grids, merge = spec["grids"], spec["merge"]
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as directory:
        shapes = written_names(model_class(config), directory)
        gemma = spec["config"].startswith("Gemma3") or spec["norms_less_1"]
        # Gemma 4 does not scale the products of queries and keys.
        measures = {"head_norms": 0.8} if spec["config"].startswith("Gemma4") else {}
        seen = ("visual", "vision", "connector", "projector")
        tensors = [[key, shape, *measure(key, shape, gemma and not any(part in key for part in seen), **measures)] for key, shape in shapes.items()]
        values = {key: numbers(*tensor) for key, tensor in zip(shapes, tensors)}
        save_file(values, f"{directory}/model.safetensors", {"format": "pt"})
        model = load(model_class, directory)
        pictures = [["picture.%d" % i, [h * w, spec["width"]], 0.0, 0.5] for i, (h, w) in enumerate(grids)]
        rows = [torch.from_numpy(numbers(*picture)) for picture in pictures]
        made = picture_rows(model, spec["inputs"](rows, grids))
        item = {"name": name, "tensors": tensors, "pictures": pictures, "grids": grids, "width": made.shape[-1]}
        item["rows"] = [row(one) for one in made]
        model.double()
        if hasattr(model, "set_experts_implementation"):
            model.set_experts_implementation("eager")
        with in_double():
            inputs = spec["inputs"]([one.double() for one in rows], grids)
            error = float((picture_rows(model, inputs) - made).abs().max())
            prompt, places = prompt_of([h * w // merge**2 for h, w in grids])
            tokens, found, gap = answer(model, prompt, inputs, spec["types"])
            item |= {"prompt": prompt, "places": places, "tokens": tokens, "logProbs": [significant(one) for one in found]}
            print(f"{name}: smallest gap {gap:.3g}, {len(set(tokens))} tokens")
        with open(f"{directory}/config.json", encoding="utf-8") as file:
            item["config"] = json.load(file)
    for key in ("transformers_version", "dtype"):
        item["config"].pop(key, None)
    print(f"{name}: rows of {made.shape[-1]}, std {made.std():.2f}, float32 within {error:.2g} of float64")
    return item


def main():
    torch.set_num_threads(1)
    known = {}
    if sys.argv[1:] and os.path.exists(FILE):
        with open(FILE, encoding="utf-8") as file:
            known = {item["name"]: item for item in json.load(file)["towers"]}
    for name in TOWERS:
        if name not in known or name in sys.argv[1:]:
            known[name] = tower(name)
    made_by = f"tools/reference/towers.py, transformers {transformers.__version__}, rows float32, log-probabilities float64"
    lines = ",\n  ".join(json.dumps(known[name], separators=(",", ":")) for name in TOWERS)
    with open(FILE, "w", encoding="utf-8") as file:
        file.write(f'{{"madeBy": {json.dumps(made_by)},\n "towers": [\n  {lines}\n ]}}\n')


if __name__ == "__main__":
    main()
