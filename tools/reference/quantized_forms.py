"""
The forms of quantized.py. Each quantises a model and gives (tensors of its file, quantization_config, dequantised float32 matrices).

The scales are those of the greatest magnitude or of the range of a group; what is tested is how the numbers are stored and read, not
how they are chosen.
"""

import importlib.metadata
import importlib.util
import json
import os
import sys
import types

import torch
import transformers


def versions():
    names = ["transformers", "torch", "compressed-tensors", "gptqmodel", "autoawq"]
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)


def linears(model):
    return [(name, module) for name, module in model.named_modules() if isinstance(module, torch.nn.Linear) and name != "lm_head"]


def other_tensors(model):
    """All tensors but the matrices that are quantised, and the output layer, which is the embedding."""
    quantized = {f"{name}.weight" for name, _ in linears(model)}
    return {key: value for key, value in model.state_dict().items() if key not in quantized and key != "lm_head.weight"}


# FP8: transformers' own quantiser, whose operation runs on a CPU though its loader asks for a GPU.


def fp8(block, **changes):
    def quantize(model):
        from transformers.integrations.finegrained_fp8 import Fp8Dequantize, Fp8Quantize

        config = transformers.FineGrainedFP8Config(weight_block_size=block, **changes)
        quantizer = types.SimpleNamespace(quantization_config=config)
        tensors, dequantized = other_tensors(model), {}
        for name, module in linears(model):
            made = Fp8Quantize(quantizer).convert({f"{name}.weight": module.weight.data})
            weight, scales = made[f"{name}.weight"], made[f"{name}.weight_scale_inv"]
            if block is None:
                scales = scales.reshape(())
            dequantized[f"{name}.weight"] = Fp8Dequantize(quantizer)._dequantize_one(weight, scales, torch.float32)
            tensors |= made | {f"{name}.weight_scale_inv": scales}
        return tensors, config.to_dict(), dequantized

    return quantize


def fp8_experts(block):
    """
    All matrices in FP8, those of a layer's experts in one tensor, as transformers has them in memory and saves them if it is asked to.

    Its loader finds no place for the scales of such a file where it dequantises, and has the codes for the numbers; the operation is the
    reference.
    """

    def quantize(model):
        from transformers.integrations.finegrained_fp8 import Fp8Dequantize, Fp8Quantize

        tensors, written, dequantized = fp8(block)(model)
        quantizer = types.SimpleNamespace(quantization_config=transformers.FineGrainedFP8Config(weight_block_size=block))
        for name, module in model.named_modules():
            if not name.endswith(".experts"):
                continue
            for part in ("gate_up_proj", "down_proj"):
                key = f"{name}.{part}"
                made = Fp8Quantize(quantizer).convert({key: getattr(module, part).data})
                tensors |= made
                dequantized[key] = Fp8Dequantize(quantizer)._dequantize_one(made[key], made[f"{key}_scale_inv"], torch.float32)
        return tensors, written, dequantized

    return quantize


def loads_as_fp8(folder, dequantized):
    """transformers itself reads the file, and finds the same numbers."""
    config = transformers.FineGrainedFP8Config(dequantize=True)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, quantization_config=config, dtype=torch.float32)
    compare(model, dequantized, folder)


def compare(model, dequantized, folder):
    state = model.state_dict()
    for key, value in dequantized.items():
        assert torch.equal(state[key].float(), value), f"{folder}: transformers reads {key} otherwise"


# compressed-tensors.


def compressed(preset=None, targets=("Linear",), **weights):
    def quantize(model):
        from compressed_tensors.compressors import BaseCompressor, ModelCompressor
        from compressed_tensors.quantization import QuantizationArgs, QuantizationConfig, QuantizationScheme
        from compressed_tensors.quantization import apply_quantization_config, preset_name_to_scheme

        targets_of = list(targets)
        if preset is not None:
            scheme = preset_name_to_scheme(preset, targets_of)
        else:
            activations = QuantizationArgs(num_bits=8, dynamic=True, strategy="token") if weights.pop("activations", False) else None
            scheme = QuantizationScheme(targets=targets_of, weights=QuantizationArgs(**weights), input_activations=activations)
        config = QuantizationConfig(config_groups={"group_0": scheme}, ignore=["lm_head"])
        apply_quantization_config(model, config)
        dequantized = {}
        originals = {name: module.weight.data.clone() for name, module in linears(model)}
        for name, module in linears(model):
            if hasattr(module, "quantization_scheme"):
                set_scales(module, originals[name], module.quantization_scheme.weights)
        compressor = ModelCompressor.from_pretrained_model(model)
        compressor.compress_model(model)
        tensors = {key: value for key, value in model.state_dict().items() if key != "lm_head.weight"}
        for name, module in model.named_modules():
            if getattr(module, "quantization_scheme", None) is None:
                continue
            scheme = module.quantization_scheme
            state = {key: value.data for key, value in module.named_parameters()}
            own = BaseCompressor.get_value_from_registry(scheme.format.value)
            dequantized[f"{name}.weight"] = decompressed(own, state, scheme)
        written = compressor.quantization_config.model_dump()
        return tensors, json.loads(json.dumps(written, default=str)), dequantized

    return quantize


def decompressed(own, state, scheme):
    """What the library's decompress gives, without the rounding of each product to the type of the scales."""
    from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
    from compressed_tensors.quantization.lifecycle.forward import dequantize

    if scheme.weights.strategy == "tensor_group":
        packed = state["weight_packed"]
        codes = unpack_fp4_from_uint8(packed, packed.shape[0], 2 * packed.shape[1], dtype=torch.float32)
        divisor = state["weight_global_scale"]
        return dequantize(codes, state["weight_scale"].float(), args=scheme.weights, global_scale=divisor, dtype=torch.float32)
    scale = state["weight_scale"]
    if scale.dtype in (torch.float16, torch.bfloat16):
        state = state | {"weight_scale": scale.float()}
    return own.decompress(state, scheme)["weight"].float()


def set_scales(module, weight, args):
    from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam

    weight = weight.float()
    rows, columns = weight.shape
    strategy = args.strategy
    if strategy == "tensor":
        parts = weight.reshape(1, -1)
    elif strategy == "channel":
        parts = weight.reshape(rows, 1, columns)
    elif strategy == "block":
        down, across = args.block_structure
        parts = weight.reshape(rows // down, down, columns // across, across).transpose(1, 2).reshape(rows // down, columns // across, -1)
    else:
        parts = weight.reshape(rows, columns // args.group_size, args.group_size)
    least, most = parts.amin(-1), parts.amax(-1)
    global_scale = None
    if strategy == "tensor_group":
        global_scale = generate_gparam(weight.min(), weight.max())
        module.weight_global_scale.data = global_scale
    scale, zero = calculate_qparams(least, most, args, global_scale=global_scale)
    module.weight_scale.data = scale.to(module.weight_scale.dtype).reshape(module.weight_scale.shape)
    if getattr(module, "weight_zero_point", None) is not None:
        module.weight_zero_point.data = zero.to(module.weight_zero_point.dtype).reshape(module.weight_zero_point.shape)


def loads_as_compressed(folder, dequantized):
    """transformers finds the same numbers, each rounded to the type of the scales."""
    config = transformers.CompressedTensorsConfig(run_compressed=False)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, quantization_config=config, dtype=torch.float32)
    compare(model, {key: value.bfloat16().float() for key, value in dequantized.items()}, folder)


# GPTQ: GPTQModel's packing, and its dequantisation with scales in float32.


def gptq(bits, group_size, sym, desc_act=False, checkpoint_format="gptq"):
    def quantize(model):
        os.environ["GPTQMODEL_DISABLE_PACK_EXT"] = "1"
        from gptqmodel.nn_modules.qlinear.torch import TorchLinear
        from gptqmodel.utils.model import convert_gptq_v2_to_v1_format_module
        from gptqmodel.quantization import QuantizeConfig

        config = QuantizeConfig(bits=bits, group_size=group_size, sym=sym, desc_act=desc_act, format=checkpoint_format)
        tensors, dequantized = other_tensors(model), {}
        for number, (name, module) in enumerate(linears(model)):
            rows, columns = module.weight.shape
            size = columns if group_size == -1 else group_size
            g_idx = torch.arange(columns, dtype=torch.int32) // size
            if desc_act:
                order = torch.randperm(columns, generator=torch.Generator().manual_seed(number))
                g_idx[order] = g_idx.clone()
            scales, zeros = ranges(module.weight.data.float(), g_idx, bits, sym)
            packed = TorchLinear(bits=bits, group_size=group_size, sym=sym, desc_act=desc_act, in_features=columns, out_features=rows, bias=False, register_buffers=False)
            packed.pack_block(module, scales, zeros, g_idx)
            packed.register_buffer("scales", scales.T.contiguous())
            half = packed.scales.half()
            packed.scales = half.float()
            packed.post_init()
            dequantized[f"{name}.weight"] = packed.dequantize_weight().T.contiguous().float()
            if checkpoint_format == "gptq":
                convert_gptq_v2_to_v1_format_module(module=packed, quantize_config=config)
            tensors |= {f"{name}.{part}": getattr(packed, part) for part in ("qweight", "qzeros", "g_idx")}
            tensors[f"{name}.scales"] = half
        written = json.loads(json.dumps(config.to_dict(), default=str))
        written.pop("meta", None)
        return tensors, written, dequantized

    return quantize


def ranges(weight, groups, bits, sym):
    """Scales and zero points [rows, groups], the scales as half-precision numbers."""
    count = int(groups.max()) + 1
    most = 2**bits - 1
    scales, zeros = torch.empty(weight.shape[0], count), torch.empty(weight.shape[0], count)
    for group in range(count):
        part = weight[:, groups == group]
        if sym:
            scale = (part.abs().amax(1) / (2 ** (bits - 1) - 1)).half().float()
            zero = torch.full_like(scale, 2 ** (bits - 1))
        else:
            least, greatest = part.amin(1).clamp(max=0), part.amax(1).clamp(min=0)
            scale = ((greatest - least) / most).half().float()
            zero = torch.round(-least / scale).clamp(0, most)
        scales[:, group], zeros[:, group] = scale, zero
    return scales, zeros


# AWQ: AutoAWQ's packing and dequantize_gemm. The package itself asks for a transformers of its time, its two files do not.


def awq(group_size):
    def quantize(model):
        package = types.ModuleType("awq")
        package.__path__ = list(importlib.util.find_spec("awq").submodule_search_locations)
        sys.modules["awq"] = package
        from awq.modules.linear.gemm import WQLinear_GEMM
        from awq.utils.packing_utils import dequantize_gemm

        tensors, dequantized = other_tensors(model), {}
        for name, module in linears(model):
            columns = module.weight.shape[1]
            scales, zeros = ranges(module.weight.data.float(), torch.arange(columns) // group_size, 4, False)
            packed = WQLinear_GEMM.from_linear(module, 4, group_size, scales=scales.T.contiguous(), zeros=zeros.T.contiguous())
            tensors |= {f"{name}.{part}": getattr(packed, part) for part in ("qweight", "qzeros", "scales")}
            dequantized[f"{name}.weight"] = dequantize_gemm(packed.qweight, packed.qzeros, packed.scales.float(), 4, group_size).T.contiguous()
        config = {"quant_method": "awq", "version": "gemm", "bits": 4, "group_size": group_size, "zero_point": True, "modules_to_not_convert": None}
        return tensors, config, dequantized

    return quantize


# MXFP4 as gpt-oss stores experts. transformers' quantiser for it runs on GPUs alone, so the file is written by the rule that its
# convert_moe_packed_tensors reads: two codes of compressed-tensors' packing in a byte, exponents plus 127.


def mxfp4_experts(model):
    from compressed_tensors.compressors.nvfp4.helpers import pack_fp4_to_uint8
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors

    values = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    tensors, dequantized = {}, {}
    for key, value in model.state_dict().items():
        if key == "lm_head.weight":
            continue
        if not key.endswith(("gate_up_proj", "down_proj")):
            tensors[key] = value
            continue
        groups = value.float().reshape(*value.shape[:-1], -1, 32)
        exponents = torch.floor(torch.log2(groups.abs().amax(-1))) - 2
        scaled = groups / torch.exp2(exponents)[..., None]
        nearest = values[(scaled.abs()[..., None] - values).abs().argmin(-1)] * scaled.sign()
        packed = pack_fp4_to_uint8(nearest.reshape(-1, 32))
        tensors[f"{key}_blocks"] = packed.reshape(*groups.shape[:-1], 16)
        tensors[f"{key}_scales"] = (exponents + 127).to(torch.uint8)
        blocks, scales = tensors[f"{key}_blocks"], tensors[f"{key}_scales"]
        dequantized[key] = convert_moe_packed_tensors(blocks, scales, dtype=torch.float32).transpose(1, 2).contiguous()
    return tensors, {"quant_method": "mxfp4"}, dequantized


def expert_matrices(dequantized):
    """The matrices of each expert, which a stack has one after another, and all others."""
    matrices = {}
    for key, value in dequantized.items():
        layer, stack = key.rsplit(".", 1)
        if value.ndim == 2:
            matrices[key] = value
            continue
        for number, expert in enumerate(value):
            if stack == "down_proj":
                matrices[f"{layer}.{number}.down_proj.weight"] = expert
            else:
                matrices[f"{layer}.{number}.gate_proj.weight"], matrices[f"{layer}.{number}.up_proj.weight"] = expert.chunk(2)
    return matrices


QWEN3_MOE = {
    "config": "Qwen3MoeConfig",
    "model": "Qwen3MoeForCausalLM",
    "fields": {"head_dim": 16, "moe_intermediate_size": 32, "num_experts": 4, "num_experts_per_tok": 2, "norm_topk_prob": True},
}

FORMS = {
    "fp8-blocks": {"dtype": torch.bfloat16, "quantize": fp8((32, 32)), "check": loads_as_fp8},
    "fp8-tensor": {"dtype": torch.bfloat16, "quantize": fp8(None), "check": loads_as_fp8},
    "fp8-experts": QWEN3_MOE | {"dtype": torch.bfloat16, "quantize": fp8_experts((32, 32)), "matrices": expert_matrices},
    "fp8-powers": {"dtype": torch.bfloat16, "quantize": fp8((32, 64), scale_fmt="ue8m0")},
    "ct-fp8-channel": {
        "dtype": torch.bfloat16,
        "quantize": compressed(preset="FP8_DYNAMIC"),
        "check": loads_as_compressed,
    },
    "ct-int8": {"dtype": torch.bfloat16, "quantize": compressed(preset="W8A8"), "check": loads_as_compressed},
    "ct-int4": {"dtype": torch.bfloat16, "quantize": compressed(num_bits=4, strategy="group", group_size=64), "check": loads_as_compressed},
    "ct-int4-zeros": {
        "dtype": torch.bfloat16,
        "quantize": compressed(targets=[r"re:.*(attn|mlp).*"], num_bits=4, strategy="group", group_size=32, symmetric=False),
        "check": loads_as_compressed,
    },
    "ct-int8-zeros": {
        "dtype": torch.bfloat16,
        "quantize": compressed(num_bits=8, strategy="channel", symmetric=False, activations=True),
        "check": loads_as_compressed,
    },
    "ct-nvfp4": {"dtype": torch.bfloat16, "quantize": compressed(preset="NVFP4A16"), "check": loads_as_compressed},
    "ct-mxfp4": {"dtype": torch.bfloat16, "quantize": compressed(preset="MXFP4A16"), "check": loads_as_compressed},
    "mxfp4": QWEN3_MOE | {"dtype": torch.bfloat16, "quantize": mxfp4_experts, "matrices": expert_matrices},
    "gptq": {"dtype": torch.float16, "quantize": gptq(4, 64, True)},
    "gptq-order": {"dtype": torch.float16, "quantize": gptq(4, 32, False, desc_act=True)},
    "gptq-v2": {"dtype": torch.float16, "quantize": gptq(4, 32, False, checkpoint_format="gptq_v2")},
    "gptq-8": {"dtype": torch.float16, "quantize": gptq(8, -1, True)},
    "awq": {"dtype": torch.float16, "quantize": awq(32)},
}
