// How sums of quantised products are multiplied by scales, for vectors of both kinds: traits derive from one of these, which adds
// to `Vectors` what quantized.h calls.
#pragma once
#include <cstdint>

namespace skein {
namespace {

// Sums of 16 bits, two in each 32, which productsOfWords multiplies by words of 16 bits and adds up: scales are whole numbers.
template <class Vectors>
struct WholeScales : Vectors {
  using F = typename Vectors::F;
  using I = typename Vectors::I;
  // Number of parts in which a step of four 8-bit weights is multiplied: even and odd elements, widened to 16 bits.
  static constexpr int kInt8Parts = 2;
  // Initial value of a group's sum: startWord goes into a block of activations, from the sum of its quants; start8
  // expands it.
  static int32_t startWord(int32_t) { return 0; }
  static I start8(int32_t) { return Vectors::set1I(0); }
  static I dot8(I sum, I w, I a) { return dotWords(sum, w, a); }
  // 16-bit sums over 16 elements: at most 4 x 2 x 31 x 127 = 31496 with 5 bits. With 6 bits they begin at -32 times the
  // sum of the activations and end at most 4 x 2 x 32 x 127 = 32512 from 0; they may pass 2^15 on the way and come back.
  static I dot6(I sum, I w, I a) { return Vectors::dot4(sum, w, a); }
  static int32_t startWords(int32_t low, int32_t high) {
    return int32_t(uint32_t(uint16_t(low)) | uint32_t(uint16_t(high)) << 16);
  }
  static I startOf(int32_t word) { return Vectors::set1I(word); }
  // Adds the products of two 16-bit words to each sum.
  static I dotWords(I sum, I w, I a) { return Vectors::kept(Vectors::addI(sum, Vectors::productsOfWords(w, a))); }

  // Scales of whole numbers, in the form that weigh() takes; both halves of a sum are multiplied and added.
  using Scale = I;
  static Scale byteScales(const uint8_t* p) { return Vectors::twice(Vectors::signedBytes(p)); }
  static Scale scalesOf(I numbers) { return Vectors::twice(numbers); }
  static Scale loadScale(const uint8_t* p) { return Vectors::loadI(p); }
  static void storeScale(uint8_t* p, Scale a) { Vectors::storeI(p, a); }
  static Scale weigh(I sum, Scale scale) { return Vectors::productsOfWords(sum, scale); }
  static Scale addWeighed(Scale total, I sum, Scale scale) { return Vectors::addI(total, weigh(sum, scale)); }
  static F floatOf(Scale total) { return Vectors::toFloat(total); }
  static F floatBytes(const uint8_t* p) { return Vectors::toFloat(Vectors::signedBytes(p)); }
  // Computes float(sum * multiple) over the two parts of each sum; the multiple appears twice, as words of 16 bits.
  static F scaled4(I sum, I multiples) { return Vectors::toFloat(Vectors::productsOfWords(sum, multiples)); }
  // Stored form of a multiple in a block of activations; multiplesOf expands it for scaled4.
  static int32_t multipleWord(int32_t multiple) { return multiple * 0x10001; }
  static I multiplesOf(int32_t word) { return Vectors::set1I(word); }
};

// Sums of 32 bits, of dot products of bytes, and scales in f32. All products and sums are whole numbers below 2^24, and so exact.
template <class Vectors>
struct FloatScales : Vectors {
  using F = typename Vectors::F;
  using I = typename Vectors::I;
  static constexpr int kInt8Parts = 1;
  static int32_t startWords(int32_t low, int32_t high) { return low + high; }
  static I startOf(int32_t word) { return Vectors::set1I(word); }
  using Scale = F;
  static Scale byteScales(const uint8_t* p) { return Vectors::floatBytes(p); }
  static Scale scalesOf(I numbers) { return Vectors::toFloat(numbers); }
  static Scale loadScale(const uint8_t* p) { return Vectors::load(reinterpret_cast<const float*>(p)); }
  static void storeScale(uint8_t* p, Scale a) { Vectors::store(reinterpret_cast<float*>(p), a); }
  static Scale weigh(I sum, Scale scale) { return Vectors::mul(Vectors::toFloat(sum), scale); }
  static Scale addWeighed(Scale total, I sum, Scale scale) { return Vectors::fma(Vectors::toFloat(sum), scale, total); }
  static F floatOf(Scale total) { return total; }
  // Both factors are exact in f32, so one multiplication rounds like a conversion of their whole product.
  static F scaled4(I sum, F multiples) { return weigh(sum, multiples); }
  static int32_t multipleWord(int32_t multiple) {
    const float value = float(multiple);
    int32_t word;
    __builtin_memcpy(&word, &value, 4);
    return word;
  }
  static F multiplesOf(int32_t word) {
    float value;
    __builtin_memcpy(&value, &word, 4);
    return Vectors::set1(value);
  }
};

}  // namespace
}  // namespace skein
