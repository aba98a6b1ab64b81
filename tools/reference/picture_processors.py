"""Image processors of transformers with torchvision, and what they make of drawn pictures."""

import torch
from PIL import Image
from transformers.models.clip.image_processing_clip import CLIPImageProcessor
from transformers.models.gemma3.image_processing_gemma3 import Gemma3ImageProcessor
from transformers.models.gemma3.processing_gemma3 import Gemma3Processor
from transformers.models.gemma4.image_processing_gemma4 import Gemma4ImageProcessor
from transformers.models.got_ocr2.image_processing_got_ocr2 import GotOcr2ImageProcessor
from transformers.models.idefics3.image_processing_idefics3 import Idefics3ImageProcessor
from transformers.models.internvl.processing_internvl import InternVLProcessor
from transformers.models.llava.image_processing_llava import LlavaImageProcessor
from transformers.models.pixtral.image_processing_pixtral import PixtralImageProcessor
from transformers.models.pixtral.processing_pixtral import PixtralProcessor
from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor
from transformers.models.siglip.image_processing_siglip import SiglipImageProcessor
from transformers.models.smolvlm.image_processing_smolvlm import SmolVLMImageProcessor
from transformers.models.smolvlm.processing_smolvlm import get_image_prompt_string

HALF = [0.5, 0.5, 0.5]
GEMMA4_TOKENS = {"boi_token": "<begin>", "eoi_token": "<end>"}


def by_patch(pixels, size):
    """Rows of patches [tiles x patches, 3 x size x size] of pictures [tiles, 3, height, width], row by row."""
    tiles, channels, height, width = pixels.shape
    high, wide = height // size, width // size
    parts = pixels[:, :, : high * size, : wide * size].reshape(tiles, channels, high, size, wide, size)
    return parts.permute(0, 2, 4, 1, 3, 5).reshape(tiles * high * wide, channels * size * size)


class Part:
    """What a processor's method reads of itself, without a tokenizer."""

    def __init__(self, **fields):
        self.__dict__.update(fields)


def qwen(answer, case):
    grid = answer["image_grid_thw"][0].tolist()
    tokens = grid[0] * grid[1] * grid[2] // case["fields"].get("merge_size", 2) ** 2
    return answer["pixel_values"], "*" * tokens, [grid[1:]]


def idefics3(answer, case):
    rows, columns = answer["rows"][0][0], answer["cols"][0][0]
    pixels = answer["pixel_values"][0]
    tile, size = case["fields"]["max_image_size"]["longest_edge"], case["config"]["vision_config"]["patch_size"]
    text = get_image_prompt_string(
        rows, columns, case["processor"]["image_seq_len"], "<fake_token_around_image>", "*", "<global-img>"
    )
    return by_patch(pixels, size), text, [[tile // size, tile // size]] * len(pixels)


def gemma3(answer, case):
    count = case["processor"]["image_seq_length"]
    whole = f"\n\n<start_of_image>{'*' * count}<end_of_image>\n\n"
    text = Gemma3Processor.replace_image_token(Part(full_image_sequence=whole), answer, 0)
    return fixed(answer, case)[0], text, fixed(answer, case)[2]


def gemma4(answer, case):
    positions = answer["image_position_ids"][0]
    real = positions[:, 0] >= 0
    count = answer["num_soft_tokens_per_image"][0]
    width, height = positions[real].max(0).values.tolist()
    return answer["pixel_values"][0][real], f"<begin>{'*' * int(count)}<end>", [[height + 1, width + 1]]


def fixed(answer, case):
    pixels, size = answer["pixel_values"], case["config"]["vision_config"]["patch_size"]
    grid = [pixels.shape[2] // size, pixels.shape[3] // size]
    return by_patch(pixels, size), "", [grid] * len(pixels)


def llava(answer, case):
    rows, _, grids = fixed(answer, case)
    return rows, "*" * len(rows), grids


def internvl(answer, case):
    count = case["processor"]["image_seq_length"]
    part = Part(start_image_token="<img>", end_image_token="</img>", image_token="*", image_seq_length=count)
    text = InternVLProcessor.replace_image_token(part, answer, 0)
    return fixed(answer, case)[0], text, fixed(answer, case)[2]


def pixtral(answer, case):
    merge = case["processor"]["spatial_merge_size"]
    size = case["config"]["vision_config"]["patch_size"]
    part = Part(patch_size=size, spatial_merge_size=merge, image_token="*", image_break_token="[IMG_BREAK]", image_end_token="[IMG_END]")
    text = PixtralProcessor.replace_image_token(part, answer, 0)
    return fixed(answer, case)[0], text, fixed(answer, case)[2]


def case(name, make, read, sizes, fields, config=None, processor=None, tokenizer=None, call=None):
    return {
        "name": name,
        "make": make,
        "read": read,
        "sizes": sizes,
        "fields": fields,
        "config": config or {},
        "processor": processor or {},
        "tokenizer": tokenizer or {},
        "call": call or {},
    }


def tower(size):
    return {"vision_config": {"patch_size": size}}


SIZES = [(61, 47), (40, 90), (17, 16)]
SMOL = {"size": {"longest_edge": 160}, "max_image_size": {"longest_edge": 64}}
ROWS = {"return_row_col_info": True}

CASES = [
    case("Qwen2-VL", Qwen2VLImageProcessor, qwen, [*SIZES, (300, 20), (5, 3), (98, 42)], {}),
    case(
        "Qwen3-VL",
        Qwen2VLImageProcessor,
        qwen,
        [*SIZES, (222, 333)],
        {"patch_size": 16, "size": {"shortest_edge": 4096, "longest_edge": 16384}, "image_mean": HALF, "image_std": HALF},
    ),
    case("Qwen2-VL with old names", Qwen2VLImageProcessor, qwen, SIZES, {"min_pixels": 1568, "max_pixels": 3136}),
    case("SmolVLM", SmolVLMImageProcessor, idefics3, [*SIZES, (200, 7), (64, 64)], SMOL, tower(16), {"image_seq_len": 4}, call=ROWS),
    case(
        "Idefics3 in one tile",
        Idefics3ImageProcessor,
        idefics3,
        SIZES,
        {**SMOL, "do_image_splitting": False},
        tower(16),
        {"image_seq_len": 4},
        call=ROWS,
    ),
    case("SmolVLM of one tile", SmolVLMImageProcessor, idefics3, [(50, 50)], {**SMOL, "size": {"longest_edge": 64}}, tower(14), {"image_seq_len": 5}, call=ROWS),
    case("Gemma 3", Gemma3ImageProcessor, gemma3, SIZES, {"size": {"height": 56, "width": 56}}, tower(14), {"image_seq_length": 4}),
    case(
        "Gemma 3 with parts",
        Gemma3ImageProcessor,
        gemma3,
        [*SIZES, (150, 50), (30, 200)],
        {
            "size": {"height": 28, "width": 28},
            "do_pan_and_scan": True,
            "pan_and_scan_min_crop_size": 24,
            "pan_and_scan_max_num_crops": 4,
            "pan_and_scan_min_ratio_to_activate": 1.2,
        },
        tower(14),
        {"image_seq_length": 4},
    ),
    case("Gemma 4", Gemma4ImageProcessor, gemma4, [*SIZES, (400, 5), (5, 700)], {"max_soft_tokens": 70, "patch_size": 8}, tokenizer=GEMMA4_TOKENS),
    case("SigLIP", SiglipImageProcessor, fixed, SIZES, {"size": {"height": 56, "width": 56}}, tower(14)),
    case("CLIP", CLIPImageProcessor, fixed, [*SIZES, (120, 33)], {"size": {"shortest_edge": 42}, "crop_size": {"height": 42, "width": 42}}, tower(14)),
    case("CLIP with a wide crop", CLIPImageProcessor, fixed, SIZES, {"size": {"shortest_edge": 30}, "crop_size": {"height": 48, "width": 65}}, tower(8)),
    case("LLaVA", LlavaImageProcessor, llava, SIZES, {"size": {"shortest_edge": 42}, "crop_size": {"height": 42, "width": 42}}, tower(14)),
    case(
        "LLaVA made square",
        LlavaImageProcessor,
        llava,
        SIZES,
        {"do_pad": True, "size": {"shortest_edge": 42}, "crop_size": {"height": 42, "width": 42}},
        tower(14),
    ),
    case(
        "Pixtral",
        PixtralImageProcessor,
        pixtral,
        [*SIZES, (333, 100)],
        {"size": {"longest_edge": 128}},
        tower(8),
        {"spatial_merge_size": 2},
        call={"patch_size": {"height": 16, "width": 16}},
    ),
    case(
        "InternVL",
        GotOcr2ImageProcessor,
        internvl,
        [*SIZES, (200, 50), (56, 56), (112, 112), (30, 200)],
        {"size": {"height": 28, "width": 28}},
        tower(14),
        {"image_seq_length": 3},
        call={"crop_to_patches": True},
    ),
    case(
        "InternVL with few tiles",
        GotOcr2ImageProcessor,
        internvl,
        [*SIZES, (60, 29)],
        {"size": {"height": 28, "width": 56}, "min_patches": 2, "max_patches": 4},
        tower(14),
        {"image_seq_length": 3},
        call={"crop_to_patches": True},
    ),
    case("without the deviation", SiglipImageProcessor, fixed, [(17, 16)], {"size": {"height": 28, "width": 28}, "do_normalize": False}, tower(14)),
    case("without the factor", SiglipImageProcessor, fixed, [(17, 16)], {"size": {"height": 28, "width": 28}, "do_rescale": False}, tower(14)),
]


def processors(formula, digest):
    for one in CASES:
        maker = one["make"](**one["fields"])
        pictures = []
        for width, height in one["sizes"]:
            answer = maker(images=[Image.fromarray(formula(width, height))], return_tensors="pt", **one["call"])
            rows, text, grids = one["read"](answer, one)
            pictures.append(
                {
                    "size": [width, height],
                    "rows": list(rows.shape),
                    "grids": grids,
                    "text": text,
                    "first": rows[0, :4].tolist(),
                    "sha256": digest(rows.to(torch.float32).numpy()),
                }
            )
        fields = {**maker.to_dict(), "image_processor_type": type(maker).__name__}
        yield {key: one[key] for key in ("name", "config", "processor", "tokenizer")} | {
            "imageProcessor": {**one["fields"], "image_processor_type": type(maker).__name__},
            "whole": fields,
            "pictures": pictures,
        }
