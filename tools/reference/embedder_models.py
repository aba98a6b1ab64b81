"""
The tiny models of embedders.py: classes of transformers, their configurations, and the files of sentence-transformers next to them.

`tokenizer` names a folder of test/fixtures, `around` the tokens that its post-processor puts around a text, and `between` those between two;
`published` is the config.json of a model whose own code came before that of transformers, `changes` what its tokenizer.json has in the place
of the fixture's, and `lengths` those of its lists of tokens.
"""

import json
import math
import os

VOCABULARY = 288
WORDS = 150
WINDOW = 20

IDENTITY = "torch.nn.modules.linear.Identity"
TANH = "torch.nn.modules.activation.Tanh"


def decoder(**changes):
    """32 wide, 4 heads of 8 over 2 KV heads, 2 layers."""
    return {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
        "head_dim": 8,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 0,
    } | changes


def encoder(**changes):
    return {
        "vocab_size": WORDS,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 128,
        "pad_token_id": 0,
    } | changes


def modules(pooling, *dense, normalize=True, width=32):
    """modules.json and the configs of the modules. A Dense module is (width, biased, activation)."""
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling")]
    modes = {"mean": "mean_tokens", "cls": "cls_token", "last": "lasttoken", "weighted": "weightedmean_tokens"}
    files = {
        "1_Pooling/config.json": {
            "word_embedding_dimension": width,
            **{f"pooling_mode_{name}": mode == pooling for mode, name in modes.items()},
        }
    }
    for number, (out, biased, activation) in enumerate(dense, 2):
        kinds.append((f"{number}_Dense", "Dense"))
        files[f"{number}_Dense/config.json"] = {
            "in_features": width,
            "out_features": out,
            "bias": biased,
            "activation_function": activation,
        }
        width = out
    if normalize:
        kinds.append((f"{len(kinds)}_Normalize", "Normalize"))
    files["modules.json"] = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds)
    ]
    return files


def prompts(default=None, **texts):
    return {"config_sentence_transformers.json": {"prompts": texts, "default_prompt_name": default, "similarity_fn_name": "cosine"}}


def bpe(before=(), behind=(), between=()):
    return {"tokenizer": "tiny-qwen3", "around": [list(before), list(behind)], "between": list(between)}


BERT = {"tokenizer": "tiny-bert-mean"}

def special(text, number):
    return {"id": number, "content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}


def bert_vocabulary():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "test", "fixtures", BERT["tokenizer"], "tokenizer.json")
    with open(path, encoding="utf-8") as file:
        return json.load(file)["model"]


def mpnet_tokenizer(post_processor):
    """WordPiece with RoBERTa's special tokens, as MPNet has it."""
    model = bert_vocabulary()
    words = sorted(model["vocab"], key=model["vocab"].get)[4:]
    specials = ["<s>", "<pad>", "</s>", "[UNK]"]
    model["vocab"] = {text: number for number, text in enumerate([*specials, *words])}
    return {"added_tokens": [special(text, number) for number, text in enumerate(specials)], "model": model, "post_processor": post_processor}


def deberta_tokenizer():
    """SentencePiece's Unigram with BERT's special tokens, as the tokenizer.json of DeBERTa v3 has it."""
    words = sorted(bert_vocabulary()["vocab"].items(), key=lambda one: one[1])
    specials = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
    pieces = ["\u2581"] + [word.removeprefix("##") if word.startswith("##") else f"\u2581{word}" for word, _ in words[4:]]
    pieces = list(dict.fromkeys(pieces))[: WORDS - len(specials)]
    vocab = [[text, 0.0] for text in specials] + [[text, round(-2 - math.log(2 + i), 4)] for i, text in enumerate(pieces)]
    template = lambda text, kind: {"SpecialToken": {"id": text, "type_id": kind}}
    sequence = lambda name, kind: {"Sequence": {"id": name, "type_id": kind}}
    single = [template("[CLS]", 0), sequence("A", 0), template("[SEP]", 0)]
    return {
        "added_tokens": [special(text, number) for number, text in enumerate(specials)],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "Strip", "strip_left": True, "strip_right": True}, {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}]},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": single,
            "pair": [*single, sequence("B", 1), template("[SEP]", 1)],
            "special_tokens": {text: {"id": text, "ids": [specials.index(text)], "tokens": [text]} for text in ("[CLS]", "[SEP]")},
        },
        "decoder": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True},
        "model": {"type": "Unigram", "unk_id": 3, "vocab": vocab, "byte_fallback": False},
    }


ROBERTA_PROCESSING = {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0], "trim_offsets": True, "add_prefix_space": False}
MPNET = BERT | {
    "config": "MPNetConfig",
    "fields": encoder(max_position_embeddings=258, pad_token_id=1),
    "lengths": [1, 2, 33, 200],
    "changes": mpnet_tokenizer(ROBERTA_PROCESSING),
    "special": {"bos_token": "<s>", "eos_token": "</s>", "cls_token": "<s>", "sep_token": "</s>", "pad_token": "<pad>"},
}
DEBERTA = BERT | {
    "config": "DebertaV2Config",
    "model": "DebertaV2Model",
    "changes": deberta_tokenizer(),
    "special": {"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "unk_token": "[UNK]"},
    "types": True,
}
# As DeBERTa v3 is published, with fewer buckets for fewer tokens.
DEBERTA_V3 = encoder(
    relative_attention=True,
    max_relative_positions=-1,
    position_buckets=8,
    norm_rel_ebd="layer_norm",
    share_att_key=True,
    pos_att_type=["p2c", "c2p"],
    position_biased_input=False,
    type_vocab_size=0,
    layer_norm_eps=1e-7,
    max_position_embeddings=80,
)

DECODERS = {
    "qwen3-embedding": {
        "config": "Qwen3Config",
        "model": "Qwen3Model",
        "fields": decoder(),
        # As it is published: the class in config.json is that of the model with logits.
        "architecture": "Qwen3ForCausalLM",
        "files": modules("last") | prompts(query="Instruct: find it\nQuery:", document=""),
        **bpe(behind=["<|endoftext|>"]),
    },
    "e5-mistral": {
        "config": "MistralConfig",
        "model": "MistralModel",
        "fields": decoder(sliding_window=WINDOW),
        "files": modules("last"),
        **bpe(before=["<|im_start|>"], behind=["<|im_end|>"]),
    },
    "llama-plain": {"config": "LlamaConfig", "model": "LlamaModel", "fields": decoder(), "files": {}, **bpe()},
    "qwen2-weighted": {
        "config": "Qwen2Config",
        "model": "Qwen2Model",
        "fields": decoder(),
        "files": modules("weighted", (12, True, TANH), normalize=False),
        **bpe(),
    },
    "gemma2-embedding": {
        "config": "Gemma2Config",
        "model": "Gemma2Model",
        "fields": decoder(num_hidden_layers=3, sliding_window=WINDOW, query_pre_attn_scalar=8),
        "files": modules("last", normalize=False),
        **bpe(),
    },
    "embeddinggemma": {
        "config": "Gemma3TextConfig",
        "model": "Gemma3TextModel",
        "fields": decoder(vocab_size=272, num_hidden_layers=6, sliding_window=2 * WINDOW, query_pre_attn_scalar=8, use_bidirectional_attention=True),
        "files": modules("mean", (40, False, IDENTITY), (32, False, IDENTITY)) | prompts(query="task: search result | query: ", document="title: none | text: "),
        **bpe(before=["<|im_start|>"], behind=["<|im_end|>"]),
    },
}

RERANKER_TEMPLATE = (
    "<|im_start|>system\nJudge.<|im_end|>\n<|im_start|>user\n"
    "<Instruct>: {{ messages | selectattr('role', 'eq', 'system') | map(attribute='content') | first | default('find it') }}\n"
    "<Query>: {{ messages | selectattr('role', 'eq', 'query') | map(attribute='content') | first }}\n"
    "<Document>: {{ messages | selectattr('role', 'eq', 'document') | map(attribute='content') | first }}<|im_end|>\n"
    "<|im_start|>assistant\n"
)

RERANKERS = {
    "qwen3-reranker": {
        "config": "Qwen3Config",
        "model": "Qwen3ForCausalLM",
        "fields": decoder(tie_word_embeddings=True),
        "files": {},
        "scores": True,
        "tokens": [70, 75],
        "template": RERANKER_TEMPLATE,
        **bpe(),
    },
    "qwen3-pairs": {
        "config": "Qwen3Config",
        "model": "Qwen3ForSequenceClassification",
        "fields": decoder(num_labels=1),
        "files": {},
        "scores": True,
        **bpe(behind=["<|im_end|>"]),
    },
    # transformers scores the last token that is not padding, which <|endoftext|> is here.
    "qwen3-pairs-padding": {
        "config": "Qwen3Config",
        "model": "Qwen3ForSequenceClassification",
        "fields": decoder(num_labels=1),
        "files": {},
        "scores": True,
        **bpe(behind=["<|im_end|>", "<|endoftext|>"]),
    },
}

MODERNBERT = {
    "config": "ModernBertConfig",
    "fields": encoder(num_hidden_layers=4, local_attention=2 * WINDOW, max_position_embeddings=256, cls_token_id=2, sep_token_id=3, bos_token_id=2, eos_token_id=3),
    **BERT,
}

ENCODERS = {
    "bert": BERT | {"config": "BertConfig", "model": "BertModel", "fields": encoder(), "files": modules("cls")},
    # Layers over the rows of tokens lie in files of their own.
    "bge-m3": BERT
    | {
        "config": "XLMRobertaConfig",
        "model": "XLMRobertaModel",
        "fields": encoder(type_vocab_size=1),
        "files": modules("cls"),
        "special": {"eos_token": "[SEP]"},
        "layers": {
            "colbert_linear.safetensors": {"weight": [24, 32], "bias": [24]},
            "sparse_linear.safetensors": {"weight": [1, 32], "bias": [1]},
        },
    },
    "roberta-score": {
        "config": "RobertaConfig",
        "model": "RobertaForSequenceClassification",
        "fields": encoder(vocab_size=VOCABULARY, num_hidden_layers=1, num_labels=1, max_position_embeddings=129, type_vocab_size=1),
        "files": {},
        "scores": True,
        **bpe(before=["<|im_start|>"], behind=["<|im_end|>"], between=["<|im_end|>", "<|im_end|>"]),
    },
    "modernbert": MODERNBERT | {"model": "ModernBertModel", "files": modules("mean")},
    # As the first files have it, with the layer types and both thetas by their old names, and with all biases.
    "modernbert-old": MODERNBERT
    | {
        "model": "ModernBertModel",
        "fields": MODERNBERT["fields"] | {"attention_bias": True, "mlp_bias": True, "norm_bias": True, "global_attn_every_n_layers": 2},
        "json": {"global_rope_theta": 160000.0, "local_rope_theta": 10000.0},
        "without": ["rope_parameters", "layer_types"],
        "files": modules("cls"),
    },
    "distilbert": BERT
    | {
        "config": "DistilBertConfig",
        "model": "DistilBertModel",
        "fields": {"vocab_size": WORDS, "dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 128},
        "files": modules("mean"),
    },
    "distilbert-score": BERT
    | {
        "config": "DistilBertConfig",
        "model": "DistilBertForSequenceClassification",
        "fields": {"vocab_size": WORDS, "dim": 32, "hidden_dim": 48, "n_layers": 1, "n_heads": 4, "max_position_embeddings": 128, "num_labels": 1},
        "files": {},
        "scores": True,
    },
    "electra": BERT
    | {
        "config": "ElectraConfig",
        "model": "ElectraModel",
        "fields": encoder(embedding_size=24),
        "files": modules("mean"),
    },
    "electra-score": BERT
    | {
        "config": "ElectraConfig",
        "model": "ElectraForSequenceClassification",
        "fields": encoder(embedding_size=32, num_hidden_layers=1, num_labels=1),
        "files": {},
        "scores": True,
        "types": True,
    },
    "albert": BERT
    | {
        "config": "AlbertConfig",
        "model": "AlbertModel",
        "fields": encoder(embedding_size=24, num_hidden_layers=3),
        "files": modules("mean"),
    },
    "albert-score": BERT
    | {
        "config": "AlbertConfig",
        "model": "AlbertForSequenceClassification",
        "fields": encoder(embedding_size=16, num_labels=1),
        "files": {},
        "scores": True,
        "types": True,
    },
    # As all-mpnet-base-v2 is published: the class in config.json is that of the model with logits.
    "mpnet": MPNET | {"model": "MPNetModel", "architecture": "MPNetForMaskedLM", "files": modules("mean")},
    "mpnet-score": MPNET
    | {
        "model": "MPNetForSequenceClassification",
        "fields": MPNET["fields"] | {"num_hidden_layers": 1, "num_labels": 1},
        "files": {},
        "scores": True,
    },
    "deberta-v3": DEBERTA | {"fields": DEBERTA_V3, "files": modules("mean")},
    "deberta-v3-score": DEBERTA
    | {
        "model": "DebertaV2ForSequenceClassification",
        "fields": DEBERTA_V3 | {"num_labels": 1, "pooler_hidden_act": "gelu", "pooler_dropout": 0},
        "files": {},
        "scores": True,
    },
    # What the configuration may say besides: positions and types that are added, projections of their own, a row for each distance.
    "deberta-v2": DEBERTA
    | {
        "fields": DEBERTA_V3
        | {"embedding_size": 24, "type_vocab_size": 2, "position_biased_input": True, "share_att_key": False, "norm_rel_ebd": "none", "position_buckets": -1, "max_relative_positions": 20, "pos_att_type": "c2p|p2c"},
        "files": modules("cls", normalize=False),
    },
    "deberta-keys": DEBERTA
    | {"fields": DEBERTA_V3 | {"share_att_key": False, "pos_att_type": ["c2p"], "num_hidden_layers": 1}, "files": modules("mean")},
    "deberta-queries": DEBERTA
    | {"fields": DEBERTA_V3 | {"pos_att_type": ["p2c"], "num_hidden_layers": 1}, "files": modules("mean")},
    "nomic-embed": BERT
    | {
        "config": "NomicBertConfig",
        "model": "NomicBertModel",
        "fields": encoder(),
        "files": modules("mean") | prompts(query="search_query: "),
        "published": {
            "architectures": ["NomicBertModel"],
            "model_type": "nomic_bert",
            "auto_map": {"AutoModel": "nomic-ai/nomic-bert-2048--modeling_hf_nomic_bert.NomicBertModel"},
            "activation_function": "swiglu",
            "causal": False,
            "layer_norm_epsilon": 1e-12,
            "max_trained_positions": 2048,
            "mlp_fc1_bias": False,
            "mlp_fc2_bias": False,
            "n_embd": 32,
            "n_head": 4,
            "n_inner": 48,
            "n_layer": 2,
            "n_positions": 8192,
            "prenorm": False,
            "qkv_proj_bias": False,
            "rotary_emb_base": 1000,
            "rotary_emb_fraction": 1.0,
            "rotary_emb_interleaved": False,
            "rotary_emb_scale_base": None,
            "rotary_scaling_factor": None,
            "type_vocab_size": 2,
            "use_rms_norm": False,
            "vocab_size": WORDS,
        },
    },
    "nomic-embed-moe": BERT
    | {
        "plain": True,
        "files": modules("mean") | prompts(query="search_query: "),
        "published": {
            "architectures": ["NomicBertModel"],
            "model_type": "nomic_bert",
            "activation_function": "gelu",
            "causal": False,
            "expert_choice_router": False,
            "ffn_div": 1,
            "layer_norm_epsilon": 1e-05,
            "max_trained_positions": 2048,
            "mlp_fc1_bias": True,
            "mlp_fc2_bias": True,
            "moe_every_n_layers": 2,
            "moe_normalize_expert_weights": False,
            "moe_top_k": 2,
            "n_embd": 32,
            "n_head": 4,
            "n_inner": 48,
            "n_layer": 4,
            "n_positions": 2048,
            "num_experts": 4,
            "num_shared_experts": 0,
            "prenorm": False,
            "qkv_proj_bias": True,
            "rotary_emb_base": 10000,
            "rotary_emb_fraction": 1.0,
            "rotary_emb_interleaved": False,
            "rotary_emb_scale_base": None,
            "rotary_scaling_factor": None,
            "type_vocab_size": 1,
            "use_rms_norm": False,
            "vocab_size": WORDS,
        },
    },
    "gte": BERT | {"config": "GteConfig", "model": "GteModel", "fields": encoder(type_vocab_size=0), "files": modules("cls")},
    "gte-score": BERT
    | {
        "config": "GteConfig",
        "model": "GteForSequenceClassification",
        "fields": encoder(num_hidden_layers=1, num_labels=1, rope_parameters={"rope_type": "default", "rope_theta": 500.0}),
        "files": {},
        "scores": True,
        "published": {
            "architectures": ["NewForSequenceClassification"],
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 1,
            "num_attention_heads": 4,
            "hidden_act": "gelu",
            "layer_norm_type": "layer_norm",
            "layer_norm_eps": 1e-12,
            "logn_attention_scale": False,
            "max_position_embeddings": 128,
            "position_embedding_type": "rope",
            "rope_theta": 500.0,
            "rope_scaling": None,
            "type_vocab_size": 1,
            "vocab_size": WORDS,
            "id2label": {"0": "LABEL_0"},
        },
    },
    "modernbert-score": MODERNBERT
    | {
        "model": "ModernBertForSequenceClassification",
        "fields": MODERNBERT["fields"] | {"num_labels": 1, "classifier_pooling": "mean"},
        "files": {},
        "scores": True,
    },
}

EMOTIONS = {"id2label": {0: "joy", 1: "anger", 2: "neutral"}, "label2id": {"joy": 0, "anger": 1, "neutral": 2}}

CLASSIFIERS = {
    "bert-classes": BERT
    | {
        "config": "BertConfig",
        "model": "BertForSequenceClassification",
        "fields": encoder(num_hidden_layers=1) | EMOTIONS,
        "files": {},
        "classes": True,
        "types": True,
    },
    "distilbert-labels": BERT
    | {
        "config": "DistilBertConfig",
        "model": "DistilBertForSequenceClassification",
        "fields": {"vocab_size": WORDS, "dim": 32, "hidden_dim": 48, "n_layers": 1, "n_heads": 4, "max_position_embeddings": 128}
        | EMOTIONS
        | {"problem_type": "multi_label_classification"},
        "files": {},
        "classes": True,
    },
    "qwen3-classes": {
        "config": "Qwen3Config",
        "model": "Qwen3ForSequenceClassification",
        "fields": decoder(num_hidden_layers=1, num_labels=4),
        "files": {},
        "classes": True,
        **bpe(behind=["<|im_end|>"]),
    },
    "mpnet-classes": MPNET
    | {
        "model": "MPNetForSequenceClassification",
        "fields": MPNET["fields"] | {"num_hidden_layers": 1} | EMOTIONS,
        "files": {},
        "classes": True,
    },
    # As nli-deberta-v3 has it.
    "deberta-v3-classes": DEBERTA
    | {
        "model": "DebertaV2ForSequenceClassification",
        "fields": DEBERTA_V3
        | {"pooler_dropout": 0, "id2label": {0: "contradiction", 1: "entailment", 2: "neutral"}, "label2id": {"contradiction": 0, "entailment": 1, "neutral": 2}},
        "files": {},
        "classes": True,
    },
    "modernbert-regression": MODERNBERT
    | {
        "model": "ModernBertForSequenceClassification",
        "fields": MODERNBERT["fields"] | {"num_hidden_layers": 1, "layer_types": ["full_attention"], "num_labels": 2, "problem_type": "regression"},
        "files": {},
        "classes": True,
    },
}
