"""Writes test/fixtures/rope.json: inverse frequencies and scales of transformers for every RoPE scaling.

    pip install torch transformers
    python tools/reference/rope.py
"""

import json
from pathlib import Path

import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

HEAD_DIM = 64
MAX_POSITIONS = 8192
CASES = [
    ("none", 100_000.0, {"rope_type": "default"}, 0),
    ("linear", 10_000.0, {"rope_type": "linear", "factor": 2.5}, 0),
    ("dynamic within", 10_000.0, {"rope_type": "dynamic", "factor": 2.0}, 5000),
    ("dynamic beyond", 10_000.0, {"rope_type": "dynamic", "factor": 2.0}, 20_000),
    ("yarn", 10_000.0, {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048}, 0),
    (
        "yarn with everything",
        1_000_000.0,
        {
            "rope_type": "yarn", "factor": 16.0, "original_max_position_embeddings": 512, "beta_fast": 16.0,
            "beta_slow": 2.0, "mscale": 1.2, "mscale_all_dim": 0.8, "truncate": False,
        },
        0,
    ),
    (
        "llama3",
        500_000.0,
        {
            "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 2048,
        },
        0,
    ),
    ("longrope short", 10_000.0, {"rope_type": "longrope"}, 1024),
    ("longrope long", 10_000.0, {"rope_type": "longrope"}, 1025),
]  # fmt: skip


def main() -> None:
    cases = []
    for name, theta, parameters, length in CASES:
        parameters = dict(parameters, rope_theta=theta)
        if parameters["rope_type"] == "longrope":
            parameters["short_factor"] = [1 + i / 64 for i in range(HEAD_DIM // 2)]
            parameters["long_factor"] = [1 + i for i in range(HEAD_DIM // 2)]
            parameters["original_max_position_embeddings"] = 1024
        config = {
            "architectures": ["LlamaForCausalLM"], "hidden_size": 4 * HEAD_DIM, "num_attention_heads": 4,
            "num_hidden_layers": 1, "intermediate_size": 64, "vocab_size": 64, "rms_norm_eps": 1e-5,
            "max_position_embeddings": MAX_POSITIONS, "rope_parameters": parameters,
        }  # fmt: skip
        model = LlamaConfig(**json.loads(json.dumps(config)))
        embedding = LlamaRotaryEmbedding(model)
        if length:
            embedding(torch.zeros(1, 1, dtype=torch.float32), torch.tensor([[length - 1]]))
        cases.append(
            {
                "name": name,
                "config": config,
                "length": length,
                "inverseFrequencies": [float(value) for value in embedding.inv_freq],
                "scale": float(embedding.attention_scaling),
            }
        )
    target = Path(__file__).parents[2] / "test" / "fixtures" / "rope.json"
    target.write_text(json.dumps(cases, indent=1) + "\n")


if __name__ == "__main__":
    main()
