// A table whose products with quantised weights are those of tiles in plain C++; all else is another table's.
#pragma once
#include "kernels/emulated_tiles.h"
#include "kernels/products.h"
#include "kernels/stored_products.h"
#include "kernels/tile_products.h"

namespace skein {
namespace {

// All numbers of rows go through tiles.
template <class V>
KernelTable withEmulatedTiles(const char* name, const KernelTable& others) {
  KernelTable table = others;
  table.name = name;
  table.roundedBytes = roundedBytes<V>;
  table.roundRow = roundRow<V>;
  table.gemm = tileGemm<V, EmulatedTiles>;
  table.gatedGemm = tileGatedGemm<V, EmulatedTiles>;
  table.storedGemm = storedGemm<V>;
  table.storedGatedGemm = storedGatedGemm<V>;
  return table;
}

}  // namespace
}  // namespace skein
