"""
nomic-embed v2 in plain torch, for embedders.py: transformers has no class for it. It computes what the model's own code says (NomicBertModel of
nomic-ai/nomic-bert-2048, with `moe_every_n_layers`), and names its tensors as the published files do.
"""

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads, self.base = config["n_head"], config["rotary_emb_base"]
        self.Wqkv = nn.Linear(config["n_embd"], 3 * config["n_embd"])
        self.out_proj = nn.Linear(config["n_embd"], config["n_embd"])

    def turned(self, x):
        """RoPE over pairs (i, i + half) of each head. x [tokens, heads, dim]."""
        tokens, _, dim = x.shape
        angles = torch.outer(torch.arange(tokens).float(), self.base ** (-torch.arange(0, dim, 2).float() / dim))
        cos, sin = angles.cos()[:, None], angles.sin()[:, None]
        a, b = x.chunk(2, dim=-1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)

    def forward(self, x):
        tokens, width = x.shape
        q, k, v = self.Wqkv(x).view(tokens, 3, self.heads, width // self.heads).unbind(1)
        q, k = self.turned(q).transpose(0, 1), self.turned(k).transpose(0, 1)
        scores = q @ k.transpose(1, 2) / (width // self.heads) ** 0.5
        return self.out_proj((scores.softmax(-1) @ v.transpose(0, 1)).transpose(0, 1).reshape(tokens, width))


class Mlp(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.fc1 = nn.Linear(config["n_embd"], config["n_inner"])
        self.fc2 = nn.Linear(config["n_inner"], config["n_embd"])

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class Stacked(nn.Module):
    """The matrices of all experts below each other, each [inner, width]."""

    def __init__(self, config):
        super().__init__()
        shape = (config["num_experts"] * config["n_inner"], config["n_embd"])
        self.w1, self.w2 = nn.Parameter(torch.empty(shape)), nn.Parameter(torch.empty(shape))


class Experts(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.mlp = Stacked(config)
        self.bias = nn.Parameter(torch.zeros(config["n_embd"]))


class Router(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.layer = nn.Linear(config["n_embd"], config["num_experts"], bias=False)


class Mixture(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.count, self.used = config["num_experts"], config["moe_top_k"]
        self.router = Router(config)
        self.experts = Experts(config)

    def forward(self, x):
        shares = self.router.layer(x).softmax(-1)
        w1, w2 = (w.view(self.count, -1, x.shape[-1]) for w in (self.experts.mlp.w1, self.experts.mlp.w2))
        # The shares of the experts that a token goes to stay those of the softmax over all.
        top, chosen = shares.topk(self.used, dim=-1)
        rows = []
        for token in range(x.shape[0]):
            parts = [top[token, i] * (F.gelu(x[token] @ w1[e].t()) @ w2[e]) for i, e in enumerate(chosen[token].tolist())]
            rows.append(torch.stack(parts).sum(0))
        return torch.stack(rows) + self.experts.bias


class Block(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.attn = Attention(config)
        self.mlp = Mixture(config) if layer % config["moe_every_n_layers"] == 1 else Mlp(config)
        self.norm1 = nn.LayerNorm(config["n_embd"], eps=config["layer_norm_epsilon"])
        self.norm2 = nn.LayerNorm(config["n_embd"], eps=config["layer_norm_epsilon"])

    def forward(self, x):
        x = self.norm1(self.attn(x) + x)
        return self.norm2(self.mlp(x) + x)


class NomicMoe(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embeddings = nn.ModuleDict(
            {
                "word_embeddings": nn.Embedding(config["vocab_size"], config["n_embd"]),
                "token_type_embeddings": nn.Embedding(config["type_vocab_size"], config["n_embd"]),
            }
        )
        self.emb_ln = nn.LayerNorm(config["n_embd"], eps=config["layer_norm_epsilon"])
        self.encoder = nn.ModuleDict({"layers": nn.ModuleList(Block(config, layer) for layer in range(config["n_layer"]))})

    @torch.no_grad()
    def forward(self, ids):
        """The embedding of a text: the mean of its rows, of length 1."""
        types = torch.zeros(len(ids), dtype=torch.long)
        x = self.embeddings["word_embeddings"](torch.tensor(ids)) + self.embeddings["token_type_embeddings"](types)
        x = self.emb_ln(x)
        for block in self.encoder["layers"]:
            x = block(x)
        return F.normalize(x.mean(0), dim=0)
