"""The tiny models of families.py: classes of transformers, and their configurations."""

import openelm

VOCABULARY = 128
# Of families whose layers keep states of the sequence: their greedy tokens come with log-probabilities.
LONG = {"new_tokens": 32}
# Delta rules of which float32 makes less by itself than is judged.
CALM = {"decay": 0.0, "final_norm": 1.0}
WINDOW = 20


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
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 0,
    } | changes


def wrapped(kind, text, vision, layouts, norms_less_1=False, **changes):
    return {
        "norms_less_1": norms_less_1,
        "config": f"{kind}Config",
        "model": f"{kind}ForConditionalGeneration",
        "fields": {"text_config": text, "vision_config": vision} | changes,
        "layouts": layouts,
    }


QWEN_TOWER = {"depth": 1, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2, "out_hidden_size": 32, "patch_size": 2}
SIGLIP_TOWER = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "image_size": 8,
    "patch_size": 4,
}
# What save_pretrained writes are the names of the first transformers 4; later ones wrote these.
QWEN_LAYOUT = [["model.", "model.language_model."], ["visual.", "model.visual."]]
LLAVA_LAYOUT = [
    ["language_model.model.", "model.language_model."],
    ["language_model.lm_head.", "lm_head."],
    ["vision_tower.", "model.vision_tower."],
    ["multi_modal_projector.", "model.multi_modal_projector."],
]

# Heads of values are wider than a vector of eight, and not whole vectors of it.
DELTA = decoder(
    head_dim=16,
    linear_conv_kernel_dim=4,
    linear_key_head_dim=8,
    linear_value_head_dim=12,
    linear_num_key_heads=2,
    linear_num_value_heads=6,
    rope_parameters={
        "rope_type": "default",
        "rope_theta": 5000.0,
        "partial_rotary_factor": 0.5,
        "mrope_section": [2, 1, 1],
        "mrope_interleaved": True,
    },
)

MIXTURE = DELTA | {
    "layer_types": ["linear_attention", "full_attention"],
    "num_experts": 5,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 24,
    "shared_expert_intermediate_size": 16,
}

# Yarn whose range begins between two frequencies, and a window in every other layer.
GPT_OSS = decoder(
    head_dim=16,
    intermediate_size=24,
    num_local_experts=5,
    num_experts_per_tok=2,
    sliding_window=WINDOW,
    rope_parameters={
        "rope_type": "yarn",
        "rope_theta": 5000.0,
        "factor": 4.0,
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "truncate": False,
        "original_max_position_embeddings": 64,
    },
)

# Longrope whose factor on cos and sin is that which llama.cpp's converter finds, sqrt(1 + log(256 / 128) / log(128)).
PHI_MOE = decoder(
    intermediate_size=24,
    num_local_experts=6,
    attention_bias=True,
    lm_head_bias=True,
    rope_parameters={
        "rope_type": "longrope",
        "rope_theta": 5000.0,
        "short_factor": [1.0, 1.1, 1.5, 2.0],
        "long_factor": [1.0, 1.5, 3.0, 4.0],
        "short_mscale": 1.0690449676496976,
        "long_mscale": 1.0690449676496976,
        "original_max_position_embeddings": 128,
    },
)

# Layers with and without a window, of which the last two attend to what earlier ones keep.
GEMMA4 = decoder(
    num_hidden_layers=5,
    layer_types=[f"{kind}_attention" for kind in ("sliding", "full", "sliding", "sliding", "full")],
    head_dim=8,
    global_head_dim=16,
    sliding_window=WINDOW,
    hidden_size_per_layer_input=12,
    vocab_size_per_layer_input=VOCABULARY,
    num_kv_shared_layers=2,
    use_double_wide_mlp=True,
    final_logit_softcapping=6.0,
)
# Values that are keys in layers without a window, and experts next to each MLP.
GEMMA4_MIXTURE = GEMMA4 | {
    "num_hidden_layers": 3,
    "layer_types": ["sliding_attention", "full_attention", "full_attention"],
    "hidden_size_per_layer_input": 0,
    "num_kv_shared_layers": 0,
    "use_double_wide_mlp": False,
    "num_global_key_value_heads": 1,
    "attention_k_eq_v": True,
    "enable_moe_block": True,
    "num_experts": 5,
    "top_k_experts": 2,
    "moe_intermediate_size": 24,
}

FALCON_H1 = decoder(
    head_dim=16,
    mamba_d_ssm=60,
    mamba_n_heads=6,
    mamba_d_head=10,
    mamba_n_groups=2,
    mamba_d_state=12,
    mamba_chunk_size=16,
    rope_parameters={"rope_type": "default", "rope_theta": 5000.0},
)

GRANITE4_H = decoder(
    num_hidden_layers=3,
    embedding_multiplier=12.0,
    residual_multiplier=0.25,
    attention_multiplier=0.3125,
    logits_scaling=0.75,
    shared_intermediate_size=40,
    intermediate_size=40,
    mamba_n_heads=8,
    mamba_d_head=8,
    mamba_n_groups=1,
    mamba_d_state=12,
    mamba_chunk_size=16,
    rms_norm_eps=1e-2,
)


def nemotron_h(written):
    """As its own code has it, with a pattern; what it would have of experts is left out where it has none."""
    letters = {"linear_attention": "M", "full_attention": "*", "mlp": "-", "moe": "E"}
    kinds = written.get("layers_block_type") or written["layer_types"]
    left_out = ["mtp", "nextn"] + ([] if "moe" in kinds else ["moe", "expert", "routed", "n_group", "topk"])
    kept = {key: value for key, value in written.items() if key == "n_groups" or not any(part in key for part in left_out)}
    kept.pop("layers_block_type", None)
    kept.pop("layer_types", None)
    return kept | {"num_hidden_layers": len(kinds), "hybrid_override_pattern": "".join(letters[kind] for kind in kinds)}


WRAPPERS = {
    "qwen2-vl": wrapped(
        "Qwen2VL",
        decoder(rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [1, 1, 2]}),
        {"depth": 1, "embed_dim": 16, "hidden_size": 32, "num_heads": 2, "patch_size": 2},
        [QWEN_LAYOUT],
    ),
    "qwen2.5-vl": wrapped(
        "Qwen2_5_VL",
        decoder(tie_word_embeddings=True, rope_parameters={"rope_type": "default", "rope_theta": 5000.0, "mrope_section": [1, 1, 2]}),
        QWEN_TOWER | {"fullatt_block_indexes": [0]},
        [QWEN_LAYOUT],
    ),
    "qwen3-vl": wrapped(
        "Qwen3VL",
        decoder(
            head_dim=16,
            rope_parameters={
                "rope_type": "default",
                "rope_theta": 5000.0,
                "mrope_section": [4, 2, 2],
                "mrope_interleaved": True,
            },
        ),
        QWEN_TOWER | {"num_position_embeddings": 16, "deepstack_visual_indexes": [0]},
        [],
    ),
    "qwen3.5-vl": wrapped(
        "Qwen3_5",
        DELTA | {"layer_types": ["linear_attention", "full_attention"], "linear_num_value_heads": 2},
        QWEN_TOWER | {"num_position_embeddings": 16},
        [],
        norms_less_1=True,
    )
    | LONG,
    "gemma3-vision": wrapped(
        "Gemma3",
        decoder(
            num_hidden_layers=6,
            num_key_value_heads=1,
            head_dim=8,
            query_pre_attn_scalar=12,
            sliding_window=WINDOW,
            rope_parameters={
                "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 100000.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 500.0},
            },
        ),
        SIGLIP_TOWER,
        [LLAVA_LAYOUT],
        mm_tokens_per_image=4,
        image_token_index=127,
        boi_token_index=126,
        eoi_token_index=125,
    ),
    "mistral-small3": wrapped(
        "Mistral3",
        decoder(model_type="mistral", head_dim=16, sliding_window=None),
        SIGLIP_TOWER | {"model_type": "pixtral", "head_dim": 8},
        [LLAVA_LAYOUT],
        tie_word_embeddings=False,
    ),
    "pixtral": wrapped(
        "Llava",
        decoder(model_type="mistral", head_dim=16, sliding_window=None),
        SIGLIP_TOWER | {"model_type": "pixtral", "head_dim": 8},
        [LLAVA_LAYOUT],
        image_token_index=10,
    ),
    "internvl": wrapped(
        "InternVL",
        decoder(model_type="qwen2"),
        SIGLIP_TOWER,
        [LLAVA_LAYOUT],
        tie_word_embeddings=False,
    ),
    "smolvlm": wrapped("SmolVLM", decoder(model_type="llama"), SIGLIP_TOWER, [], image_token_id=100),
    "idefics3": wrapped("Idefics3", decoder(model_type="llama", mlp_bias=True), SIGLIP_TOWER, [], image_token_id=100),
}



def family(kind, fields, **more):
    return {"config": f"{kind}Config", "model": f"{kind}ForCausalLM", "fields": fields, **more}


def minicpm(written):
    """
    The config of MiniCPM's own code for a Granite with its factors: embeddings times scale_emb, what a layer adds times scale_depth over the
    root of the number of layers, and logits of rows that are divided by hidden_size / dim_model_base.
    """
    left_out = ("embedding_multiplier", "residual_multiplier", "attention_multiplier", "logits_scaling", "architectures", "model_type")
    factors = {"scale_emb": 1.5, "scale_depth": 1.0, "dim_model_base": 16}
    names = {"architectures": ["MiniCPMForCausalLM"], "model_type": "minicpm"}
    return {key: value for key, value in written.items() if key not in left_out} | factors | names


YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 8.0, "original_max_position_embeddings": 128, "beta_fast": 32.0, "beta_slow": 1.0}
FAMILIES = {
    "gemma": family("Gemma", decoder(head_dim=16, num_key_value_heads=1)),
    "smollm3": family("SmolLM3", decoder(num_hidden_layers=4)),
    "olmo2": family("Olmo2", decoder()),
    "olmo3": family(
        "Olmo3",
        decoder(
            num_hidden_layers=4,
            sliding_window=WINDOW,
            rope_parameters={
                "full_attention": YARN | {"attention_factor": 1.2},
                "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
            },
        ),
    ),
    "exaone4": family("Exaone4", decoder(num_hidden_layers=4, sliding_window=WINDOW)),
    "exaone4-full": family("Exaone4", decoder(sliding_window=None, layer_types=["full_attention"] * 2)),
    "granite": family(
        "Granite",
        decoder(
            embedding_multiplier=12.0,
            residual_multiplier=0.25,
            attention_multiplier=0.3125,
            logits_scaling=0.75,
            attention_bias=True,
            rms_norm_eps=1e-2,
        ),
    ),
    "cohere": family("Cohere", decoder(logit_scale=1.25)),
    "cohere2": family("Cohere2", decoder(num_hidden_layers=4, sliding_window=WINDOW, logit_scale=0.75)),
    "glm": family("Glm", decoder(head_dim=16)),
    # What llama.cpp's converter asks of a GLM-4 are the names of its first code.
    "glm-4-9b": family("Glm", decoder(head_dim=8, rms_norm_eps=1e-6, layernorm_epsilon=1e-6, seq_length=256, tie_word_embeddings=False)),
    "glm4": family("Glm4", decoder(head_dim=16)),
    "seed-oss": family("SeedOss", decoder(head_dim=16)),
    "ernie4.5": family("Ernie4_5", decoder(head_dim=16)),
    "ernie4.5-bias": family("Ernie4_5", decoder(head_dim=16, use_bias=True, tie_word_embeddings=False)),
    "ministral": family(
        "Ministral",
        decoder(head_dim=16, sliding_window=WINDOW, layer_types=["full_attention", "sliding_attention"]),
    ),
    "ministral3": wrapped(
        "Mistral3",
        decoder(
            model_type="ministral3",
            head_dim=16,
            rope_parameters=YARN | {"mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1},
        ),
        SIGLIP_TOWER | {"model_type": "pixtral", "head_dim": 8},
        [],
        tie_word_embeddings=False,
    ),
    "arcee": family("Arcee", decoder(head_dim=16, mlp_bias=True)),
    "nemotron": family("Nemotron", decoder(partial_rotary_factor=0.5), norms_less_1=True),
    "nemotron-bias": family("Nemotron", decoder(attention_bias=True, mlp_bias=True, partial_rotary_factor=1.0), norms_less_1=True),
    "apertus": family(
        "Apertus",
        decoder(head_dim=16, rope_parameters={"rope_type": "default", "rope_theta": 500.0}),
    ),
    "command-r-plus": family("Cohere", decoder(head_dim=16, use_qk_norm=True, logit_scale=0.83)),
    "hunyuan": family(
        "HunYuanDenseV1",
        decoder(
            head_dim=16,
            max_position_embeddings=256 * 1024,
            rope_parameters={"rope_type": "dynamic", "rope_theta": 10000.0, "alpha": 50.0, "factor": 1.0},
        ),
    ),
    "minicpm": family(
        "Granite",
        decoder(
            num_hidden_layers=4,
            tie_word_embeddings=False,
            embedding_multiplier=1.5,
            residual_multiplier=1.0 / 4**0.5,
            attention_multiplier=8**-0.5,
            logits_scaling=32 / 16,
        ),
        published=minicpm,
    ),
    "granite4": family(
        "GraniteMoeHybrid",
        decoder(
            embedding_multiplier=12.0,
            residual_multiplier=0.25,
            attention_multiplier=0.3125,
            logits_scaling=0.75,
            num_local_experts=0,
            num_experts_per_tok=0,
            intermediate_size=40,
            shared_intermediate_size=40,
            mamba_n_heads=8,
            position_embedding_type="rope",
            layer_types=["full_attention"] * 2,
            rms_norm_eps=1e-2,
        ),
        # As transformers 4 wrote it, and llama.cpp's converter reads it.
        published=lambda written: written | {"layer_types": ["attention"] * 2},
    ),
    "openelm": {"fields": openelm.FIELDS, "tensors": openelm.tensors(), "make": openelm.make},
    "phi4-mini": family(
        "Phi3",
        decoder(
            num_attention_heads=2,
            num_key_value_heads=1,
            partial_rotary_factor=0.75,
            original_max_position_embeddings=32,
            rope_parameters={
                "rope_type": "longrope",
                "rope_theta": 10000.0,
                "short_factor": [1.0, 1.1, 1.2, 1.5, 2.0, 2.5],
                "long_factor": [1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
                "original_max_position_embeddings": 32,
                "partial_rotary_factor": 0.75,
            },
            tie_word_embeddings=True,
        ),
    ),
    "lfm2": family(
        "Lfm2",
        decoder(
            num_hidden_layers=4,
            layer_types=["conv", "full_attention", "conv", "conv"],
            block_auto_adjust_ff_dim=True,
            block_ffn_dim_multiplier=1.25,
            block_multiple_of=8,
        ),
        **LONG,
    ),
    "lfm2-moe": family(
        "Lfm2Moe",
        decoder(
            num_hidden_layers=4,
            layer_types=["conv", "full_attention", "conv", "conv"],
            num_dense_layers=2,
            num_experts=6,
            num_experts_per_tok=2,
            moe_intermediate_size=24,
        ),
        **LONG,
    ),
    "lfm2-moe-shares": family(
        "Lfm2Moe",
        decoder(
            layer_types=["conv", "full_attention"],
            num_dense_layers=0,
            num_experts=5,
            num_experts_per_tok=3,
            moe_intermediate_size=24,
            use_expert_bias=False,
            norm_topk_prob=False,
            routed_scaling_factor=1.5,
            tie_word_embeddings=False,
        ),
        **LONG,
    ),
    "lfm2-bias": family(
        "Lfm2",
        decoder(
            layer_types=["full_attention", "conv"],
            conv_bias=True,
            conv_L_cache=4,
            block_auto_adjust_ff_dim=False,
            tie_word_embeddings=False,
        ),
        **LONG,
    ),
    "qwen3.5": family(
        "Qwen3_5",
        DELTA | {"num_hidden_layers": 4},
        config="Qwen3_5TextConfig",
        norms_less_1=True,
        measures=CALM,
        **LONG,
    ),
    "qwen3.5-moe": family("Qwen3_5Moe", MIXTURE, config="Qwen3_5MoeTextConfig", norms_less_1=True, **LONG),
    "qwen3-next": family("Qwen3Next", MIXTURE | {"layer_types": ["linear_attention", "linear_attention", "full_attention"], "num_hidden_layers": 3}, norms_less_1=True, measures={"final_norm": 1.1}, **LONG),
    "qwen2-moe": family(
        "Qwen2Moe",
        decoder(num_experts=6, num_experts_per_tok=3, moe_intermediate_size=24, shared_expert_intermediate_size=40, norm_topk_prob=False),
    ),
    "qwen2-moe-steps": family(
        "Qwen2Moe",
        decoder(
            num_hidden_layers=4,
            num_experts=5,
            num_experts_per_tok=2,
            moe_intermediate_size=24,
            shared_expert_intermediate_size=16,
            norm_topk_prob=True,
            decoder_sparse_step=2,
            mlp_only_layers=[1],
            qkv_bias=False,
        ),
    ),
    "gemma4": family("Gemma4", GEMMA4, config="Gemma4TextConfig", measures={"head_norms": 0.8}, **LONG),
    "gemma4-mixture": family("Gemma4", GEMMA4_MIXTURE, config="Gemma4TextConfig", measures={"head_norms": 0.8}, **LONG),
    "gpt-oss": family("GptOss", GPT_OSS | {"num_hidden_layers": 3}, measures={"gain": 1.3}, **LONG),
    # Gates and ways up are beyond the limit.
    "gpt-oss-clamped": family("GptOss", GPT_OSS | {"swiglu_limit": 0.6, "attention_bias": False}, **LONG),
    "olmoe": family("Olmoe", decoder(num_experts=6, num_experts_per_tok=3, intermediate_size=24)),
    # The model's own code has another name for its class.
    "phi-moe": family("Phimoe", PHI_MOE, published=lambda written: written | {"architectures": ["PhiMoEForCausalLM"]}, **LONG),
    # Most scores are near others.
    "phi-moe-near": family("Phimoe", decoder(intermediate_size=24, num_local_experts=8, router_jitter_noise=0.3), **LONG),
    "glm4.5": family(
        "Glm4Moe",
        decoder(
            head_dim=16,
            num_hidden_layers=3,
            n_routed_experts=8,
            num_experts_per_tok=3,
            n_group=4,
            topk_group=2,
            n_shared_experts=2,
            moe_intermediate_size=24,
            routed_scaling_factor=1.5,
            first_k_dense_replace=1,
            attention_bias=True,
            use_qk_norm=True,
        ),
    ),
    "glm4.5-air": family(
        "Glm4Moe",
        decoder(n_routed_experts=6, num_experts_per_tok=2, moe_intermediate_size=24, first_k_dense_replace=1, attention_bias=True),
    ),
    # Heads of a scan are no whole vectors of eight, and share groups.
    "mamba2": family(
        "Mamba2",
        {
            "vocab_size": VOCABULARY,
            "hidden_size": 30,
            "num_hidden_layers": 3,
            "num_heads": 6,
            "head_dim": 10,
            "n_groups": 2,
            "state_size": 12,
            "chunk_size": 16,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "pad_token_id": 0,
        },
        **LONG,
    ),
    "falcon-h1": family(
        "FalconH1",
        FALCON_H1
        | {
            "mamba_rms_norm": False,
            "key_multiplier": 0.55,
            "attention_in_multiplier": 1.3,
            "attention_out_multiplier": 0.85,
            "ssm_in_multiplier": 1.25,
            "ssm_out_multiplier": 0.7,
            "ssm_multipliers": [0.9, 1.1, 0.8, 1.2, 0.75],
            "mlp_multipliers": [0.8, 1.3],
            "embedding_multiplier": 2.5,
            "lm_head_multiplier": 0.6,
        },
        **LONG,
    ),
    "falcon-h1-norm": family("FalconH1", FALCON_H1 | {"mamba_rms_norm": True, "tie_word_embeddings": True}, **LONG),
    "nemotron-h": family(
        "NemotronH",
        decoder(
            head_dim=16,
            layers_block_type=["linear_attention", "mlp", "full_attention", "linear_attention", "mlp"],
            # llama.cpp's converter takes multiples of 64 together.
            mamba_num_heads=16,
            mamba_head_dim=4,
            n_groups=2,
            ssm_state_size=12,
            chunk_size=16,
        ),
        **LONG,
        published=nemotron_h,
    ),
    # Groups of experts, of which each token goes to one of two.
    "nemotron-h-moe": family(
        "NemotronH",
        decoder(
            head_dim=16,
            layers_block_type=["linear_attention", "moe", "full_attention", "moe", "linear_attention"],
            mamba_num_heads=16,
            mamba_head_dim=4,
            n_groups=2,
            ssm_state_size=12,
            chunk_size=16,
            n_routed_experts=6,
            n_group=2,
            topk_group=1,
            num_experts_per_tok=2,
            routed_scaling_factor=2.5,
            moe_intermediate_size=24,
            moe_shared_expert_intermediate_size=20,
        ),
        new_tokens=32,
        published=nemotron_h,
    ),
    "granite4-h": family(
        "GraniteMoeHybrid",
        GRANITE4_H | {"num_local_experts": 0, "num_experts_per_tok": 0, "layer_types": ["linear_attention", "full_attention", "linear_attention"]},
        **LONG,
        published=lambda written: written | {"layer_types": ["mamba", "attention", "mamba"]},
    ),
    "granite4-h-moe": family(
        "GraniteMoeHybrid",
        GRANITE4_H
        | {
            "num_local_experts": 5,
            "num_experts_per_tok": 2,
            "intermediate_size": 24,
            "layer_types": ["linear_attention", "linear_attention", "full_attention"],
        },
        **LONG,
        published=lambda written: written | {"layer_types": ["mamba", "mamba", "attention"]},
    ),
    # Llama ignores the factor.
    "llama-partial": family("Llama", decoder(head_dim=16, partial_rotary_factor=0.5)),
}

MODELS = WRAPPERS | FAMILIES
