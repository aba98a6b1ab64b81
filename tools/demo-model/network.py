"""The Llama architecture as small as it gets, for training: fused projections, and attention as plain products, which on a
CPU cost half of what torch's own attention costs here. `hugging_face` gives the weights under their usual names."""

import math

import torch
import torch.nn.functional as F
from torch import nn

EPSILON = 1e-5
ROPE_THETA = 10000.0


class Layer(nn.Module):
    def __init__(self, width, heads, kv_heads, inner):
        super().__init__()
        self.heads, self.kv_heads, self.head = heads, kv_heads, width // heads
        self.qkv = nn.Linear(width, (heads + 2 * kv_heads) * self.head, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate_up = nn.Linear(width, 2 * inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)
        self.norm1 = nn.Parameter(torch.ones(width))
        self.norm2 = nn.Parameter(torch.ones(width))

    def forward(self, x, cos, sin, mask):
        """x [B, T, width]; mask [heads / kv_heads * T, T] is added to the scores."""
        rows, length, width = x.shape
        parts = self.qkv(F.rms_norm(x, (width,), self.norm1, EPSILON)).view(rows, length, -1, self.head).transpose(1, 2)
        q, k, v = parts.split([self.heads, self.kv_heads, self.kv_heads], 1)
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        # The queries that share keys are one product's rows.
        q = q.reshape(rows * self.kv_heads, -1, self.head)
        k = k.reshape(rows * self.kv_heads, length, self.head)
        v = v.reshape(rows * self.kv_heads, length, self.head)
        scores = torch.baddbmm(mask, q, k.transpose(1, 2), alpha=1 / math.sqrt(self.head))
        attended = torch.bmm(scores.softmax(-1), v).view(rows, self.heads, length, self.head)
        x = x + self.out(attended.transpose(1, 2).reshape(rows, length, width))
        gate, up = self.gate_up(F.rms_norm(x, (width,), self.norm2, EPSILON)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


def rotated(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Network(nn.Module):
    def __init__(self, vocabulary, width, layers, heads, kv_heads, inner):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Layer(width, heads, kv_heads, inner) for _ in range(layers))
        self.norm = nn.Parameter(torch.ones(width))
        for weight in self.parameters():
            if weight.ndim == 2:
                nn.init.normal_(weight, 0.0, 0.02)
        for layer in self.layers:
            for weight in (layer.out.weight, layer.down.weight):
                nn.init.normal_(weight, 0.0, 0.02 / math.sqrt(2 * layers))

    def forward(self, ids):
        """Hidden states [B, T, width] of ids [B, T]; what the embedding is multiplied with for logits."""
        first, length = self.layers[0], ids.shape[1]
        frequencies = ROPE_THETA ** (-torch.arange(0, first.head, 2, device=ids.device) / first.head)
        angles = torch.arange(length, device=ids.device)[:, None] * frequencies
        x = self.embedding(ids)
        mask = torch.full((length, length), -1e4, device=ids.device).triu(1).repeat(first.heads // first.kv_heads, 1)
        if torch.is_autocast_enabled(ids.device.type):
            mask = mask.to(torch.get_autocast_dtype(ids.device.type))
        for layer in self.layers:
            x = layer(x, angles.cos().to(mask.dtype), angles.sin().to(mask.dtype), mask)
        return F.rms_norm(x, (x.shape[-1],), self.norm, EPSILON)

    def hugging_face(self):
        """(config.json's fields, {name: weight}) of LlamaForCausalLM."""
        first, width = self.layers[0], self.embedding.weight.shape[1]
        inner = first.down.weight.shape[1]
        kv = first.kv_heads * first.head
        weights = {"model.embed_tokens.weight": self.embedding.weight, "model.norm.weight": self.norm}
        for index, layer in enumerate(self.layers):
            q, k, v = layer.qkv.weight.split([width, kv, kv])
            gate, up = layer.gate_up.weight.split([inner, inner])
            own = {"self_attn.q_proj": q, "self_attn.k_proj": k, "self_attn.v_proj": v, "self_attn.o_proj": layer.out.weight,
                   "mlp.gate_proj": gate, "mlp.up_proj": up, "mlp.down_proj": layer.down.weight,
                   "input_layernorm": layer.norm1, "post_attention_layernorm": layer.norm2}
            weights.update({f"model.layers.{index}.{name}.weight": weight for name, weight in own.items()})
        config = {
            "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": self.embedding.weight.shape[0],
            "hidden_size": width, "intermediate_size": inner, "num_hidden_layers": len(self.layers),
            "num_attention_heads": first.heads, "num_key_value_heads": first.kv_heads, "head_dim": first.head, "hidden_act": "silu",
            "max_position_embeddings": 1024, "rms_norm_eps": EPSILON, "rope_theta": ROPE_THETA, "tie_word_embeddings": True,
            "attention_bias": False, "mlp_bias": False,
        }
        return config, weights
