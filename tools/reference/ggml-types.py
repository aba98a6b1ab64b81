"""Writes test/fixtures/ggml-types.json: blocks of every GGML storage type with the float32 values they stand for.

The blocks are random bytes (scales kept finite and small), the values are gguf-py's dequantisation of them.

    pip install gguf numpy
    python tools/reference/ggml-types.py
"""

import base64
import json
from pathlib import Path

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

ROWS = 2
TYPES = [
    "F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K",
    "IQ4_NL", "IQ4_XS", "MXFP4", "NVFP4", "IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "TQ1_0", "TQ2_0",
]  # fmt: skip
# Byte offsets of the half-precision scales in a block.
SCALES = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0],
    "IQ1_S": [0], "IQ2_XXS": [0], "IQ2_XS": [0], "IQ2_S": [0], "IQ3_XXS": [0], "IQ3_S": [0], "TQ1_0": [52], "TQ2_0": [64],
}  # fmt: skip


def random_rows(name: str, random: np.random.Generator) -> tuple[np.ndarray, int]:
    block, size = GGML_QUANT_SIZES[GGMLQuantizationType[name]]
    if name in SCALES:
        blocks = random.integers(0, 256, (ROWS * 2, size), dtype=np.uint8)
        for offset in SCALES[name]:
            scale = random.normal(0, 0.01, (ROWS * 2, 1)).astype(np.float16)
            scale[0] = np.float16(3e-7)  # a subnormal half
            blocks[:, offset : offset + 2] = scale.view(np.uint8)
        return blocks.reshape(ROWS, -1), block * 2
    if name == "MXFP4":
        blocks = random.integers(0, 256, (ROWS * 2, size), dtype=np.uint8)
        blocks[:, 0] = [0, 1, 122, 250]  # exponents: two subnormal scales, a common one, a great one
        return blocks.reshape(ROWS, -1), block * 2
    if name == "IQ1_M":
        blocks = random.integers(0, 256, (ROWS * 2, size), dtype=np.uint8)
        for i, digit in enumerate([0x5, 0x3, 0x1, 0x2]):  # the half 0x2135 in the upper nibbles of four numbers
            blocks[:, 49 + 2 * i] = (blocks[:, 49 + 2 * i] & 15) | digit << 4
        return blocks.reshape(ROWS, -1), block * 2
    if name == "NVFP4":
        blocks = random.integers(0, 256, (ROWS * 2, size), dtype=np.uint8)
        blocks[:, :4] &= 127
        blocks[0, :4] = [0, 0x7F, 1, 0x7E]
        return blocks.reshape(ROWS, -1), block * 2
    columns = 40
    values = random.normal(0, 1, (ROWS, columns)).astype(np.float32)
    values[0, :8] = [0.0, -0.0, np.inf, -np.inf, 65504, 6e-8, 1.00390625, -1e-38]
    if name == "F32":
        return values.view(np.uint8), columns
    if name == "F16":
        return values.astype(np.float16).view(np.uint8), columns
    return (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8), columns


def encode(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()


def main() -> None:
    random = np.random.default_rng(20240229)
    fixtures = []
    for name in TYPES:
        raw, columns = random_rows(name, random)
        values = dequantize(raw, GGMLQuantizationType[name]).astype(np.float32).reshape(ROWS, columns)
        bf16 = rounded(values)
        fixtures.append(
            {"type": name, "rows": ROWS, "columns": columns, "raw": encode(raw), "f32": encode(values), "bf16": encode(bf16)}
        )
    target = Path(__file__).parents[2] / "test" / "fixtures" / "ggml-types.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(fixtures, indent=1) + "\n")


def rounded(values: np.ndarray) -> np.ndarray:
    """float32 -> bfloat16, to nearest, ties to even."""
    bits = values.view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


if __name__ == "__main__":
    main()
