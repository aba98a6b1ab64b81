// Tables of the functions that compute tiles, by the tiles' rows: each height is a function of its own, whose sums have names as
// registers have. Heights that nothing asks for are not compiled.
#pragma once
#include <utility>

namespace skein {
namespace {

template <int M>
struct TileRows {};

template <class Fn, int kTallest>
struct Tiles {
  Fn of[kTallest + 1] = {};
};

// make(TileRows<M>()) is the function of M rows, for M = kLeast .. kMost.
template <class Fn, int kLeast, int kMost, int kTallest = kMost, class Make>
constexpr Tiles<Fn, kTallest> tilesOf(Make make) {
  Tiles<Fn, kTallest> tiles;
  [&]<int... kAbove>(std::integer_sequence<int, kAbove...>) {
    ((tiles.of[kLeast + kAbove] = make(TileRows<kLeast + kAbove>())), ...);
  }(std::make_integer_sequence<int, kMost - kLeast + 1>());
  return tiles;
}

}  // namespace
}  // namespace skein
