"""Writes the grids of GGML's IQ types for both converters: engine/executors/portable/convert/grids.ts and
engine/executors/native/convert/grids.h.

A row of a grid is one number of 16 bits: 8 places of 2 bits, or 4 of 4 bits, the first one lowest. A place is an index of the grid's
values. The grids are facts of the format, read from gguf-py.

    pip install gguf numpy
    python tools/reference/ggml-grids.py && npx biome check --write engine/executors/portable/convert/grids.ts
"""

import base64
from pathlib import Path

import numpy as np
from gguf import quants

GRIDS = ["IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_S"]
CONVERT = Path(__file__).parents[2] / "engine" / "executors"
WRITTEN = "Written by tools/reference/ggml-grids.py."


def rows_of(name: str) -> tuple[np.ndarray, list[int]]:
    kind = getattr(quants, name)
    kind.init_grid()
    rows, width = kind.grid_shape
    values = list(kind.grid_map)
    grid = kind.grid.reshape(rows, width)
    places = np.vectorize(values.index)(grid.astype(int)).astype(np.uint32)
    bits = 16 // width
    return (places << (np.arange(width, dtype=np.uint32) * bits)).sum(axis=1).astype("<u2"), values


def main() -> None:
    typescript = [f"// {WRITTEN} Rows of 16 bits, little endian, in base64.", ""]
    native = [f"// Grids of GGML's IQ types: rows of 16 bits. {WRITTEN}", "#pragma once", "#include <cstdint>", "", "namespace skein {", ""]
    for name in GRIDS:
        rows, values = rows_of(name)
        text = base64.b64encode(rows.tobytes()).decode()
        lines = "\n".join(f"    '{text[i : i + 120]}' +" for i in range(0, len(text), 120)).removesuffix(" +")
        typescript += [f"export const {name}_VALUES = {values};", f"export const {name}_ROWS =\n{lines};", ""]
        constant = "k" + "".join(part.capitalize() for part in name.split("_"))
        numbers = [f"{row:#06x}," for row in rows]
        native += [f"inline constexpr int8_t {constant}Values[] = {{{', '.join(map(str, values))}}};"]
        native += [f"inline constexpr uint16_t {constant}Rows[{len(rows)}] = {{"]
        native += ["    " + " ".join(numbers[i : i + 14]) for i in range(0, len(numbers), 14)]
        native += ["};", ""]
    native += ["}  // namespace skein"]
    (CONVERT / "portable" / "convert" / "grids.ts").write_text("\n".join(typescript))
    (CONVERT / "native" / "convert" / "grids.h").write_text("\n".join(native) + "\n")


if __name__ == "__main__":
    main()
