#include "executor/checksums.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace skein {
namespace {

constexpr size_t kPieceBytes = 1 << 20;

// CRCs are polynomials over bits, the highest power lowest in a word; all products are modulo this one.
constexpr uint32_t kPolynomial = 0xEDB88320u, kOne = 0x80000000u;

constexpr uint32_t timesX(uint32_t a) { return (a >> 1) ^ ((a & 1) != 0 ? kPolynomial : 0); }

constexpr uint32_t product(uint32_t a, uint32_t b) {
  uint32_t sum = 0;
  for (uint32_t bit = kOne; bit != 0; bit >>= 1, a = timesX(a))
    if ((b & bit) != 0) sum ^= a;
  return sum;
}

// x to the power of n.
constexpr uint32_t powerOfX(uint64_t n) {
  uint32_t result = kOne;
  for (uint32_t square = kOne >> 1; n != 0; n >>= 1, square = product(square, square))
    if ((n & 1) != 0) result = product(result, square);
  return result;
}

// Entry [t][byte]: what a byte becomes t bytes later.
constexpr auto kTables = [] {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = timesX(value);
    for (auto& table : tables) {
      table[byte] = value;
      for (int bit = 0; bit < 8; ++bit) value = timesX(value);
    }
  }
  return tables;
}();

// Goes on from `sum`, without what begins and ends a CRC; eight bytes at a time.
uint32_t throughTables(uint32_t sum, const uint8_t* data, size_t bytes) {
  size_t at = 0;
  for (; at + 8 <= bytes; at += 8) {
    uint32_t low, high;
    std::memcpy(&low, data + at, 4);
    std::memcpy(&high, data + at + 4, 4);
    low ^= sum;
    sum = 0;
    for (int i = 0; i < 4; ++i) {
      sum ^= kTables[size_t(7 - i)][low >> (8 * i) & 0xFF] ^ kTables[size_t(3 - i)][high >> (8 * i) & 0xFF];
    }
  }
  for (; at < bytes; ++at) sum = (sum >> 8) ^ kTables[0][(sum ^ data[at]) & 0xFF];
  return sum;
}

#if defined(__x86_64__)

// Factors that move the low and the high half of a vector `bits` further: a carry-less product of reflected words ends one bit too
// low, and its 64 bits begin 32 above where a word's product does.
template <uint64_t bits>
struct Fold {
  static constexpr uint64_t kLow = uint64_t(powerOfX(bits + 32)) << 1, kHigh = uint64_t(powerOfX(bits - 32)) << 1;
};

template <class F>
__attribute__((target("pclmul,sse4.1"))) inline __m128i folded(__m128i from, __m128i onto) {
  const __m128i factors = _mm_set_epi64x(int64_t(F::kHigh), int64_t(F::kLow));
  const __m128i low = _mm_clmulepi64_si128(from, factors, 0x00), high = _mm_clmulepi64_si128(from, factors, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), onto);
}

// Four vectors side by side are folded onto those that follow, then onto one another; what is left are 16 bytes with the CRC of
// all. bytes >= 64.
__attribute__((target("pclmul,sse4.1"))) uint32_t byProducts(const uint8_t* data, size_t bytes) {
  const auto* vectors = reinterpret_cast<const __m128i*>(data);
  __m128i lanes[4];
  for (int i = 0; i < 4; ++i) lanes[i] = _mm_loadu_si128(vectors + i);
  lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi32_si128(-1));
  size_t at = 4;
  for (; (at + 4) * 16 <= bytes; at += 4)
    for (size_t i = 0; i < 4; ++i) lanes[i] = folded<Fold<512>>(lanes[i], _mm_loadu_si128(vectors + at + i));
  __m128i last = lanes[0];
  for (int i = 1; i < 4; ++i) last = folded<Fold<128>>(last, lanes[i]);
  for (; (at + 1) * 16 <= bytes; ++at) last = folded<Fold<128>>(last, _mm_loadu_si128(vectors + at));
  uint8_t rest[16];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(rest), last);
  return ~throughTables(throughTables(0, rest, sizeof rest), data + at * 16, bytes - at * 16);
}

bool hasProducts() {
  static const bool has = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  return has;
}

#endif

// Checksum of one piece: 64-bit words in eight lanes, which the processor multiplies side by side. Each step is a bijection of
// the lane, so a word that differs always changes the sum. bytes is a multiple of a page.
uint64_t pieceChecksum(const uint8_t* data, size_t bytes) {
  constexpr uint64_t kPrime = 0x9E3779B185EBCA87u;
  uint64_t lanes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  for (size_t at = 0; at < bytes; at += sizeof lanes) {
    uint64_t words[8];
    std::memcpy(words, data + at, sizeof words);
    for (size_t lane = 0; lane < 8; ++lane) lanes[lane] = (lanes[lane] ^ words[lane]) * kPrime;
  }
  uint64_t sum = bytes;
  for (const uint64_t lane : lanes) sum = (sum ^ lane ^ (lane >> 29)) * kPrime;
  return sum;
}

// Calls fn(piece, data, bytes) for each piece of a range, on all threads.
template <class Fn>
void eachPiece(const uint8_t* data, size_t bytes, ThreadPool& pool, const Fn& fn) {
  pool.run(static_cast<int32_t>((bytes + kPieceBytes - 1) / kPieceBytes), [&](int32_t piece, int32_t) {
    const size_t begin = static_cast<size_t>(piece) * kPieceBytes;
    fn(static_cast<size_t>(piece), data + begin, std::min(kPieceBytes, bytes - begin));
  });
}

}  // namespace

uint32_t crc32Of(const uint8_t* data, size_t bytes) {
#if defined(__x86_64__)
  if (bytes >= 64 && hasProducts()) return byProducts(data, bytes);
#endif
  return ~throughTables(0xFFFFFFFFu, data, bytes);
}

uint32_t crc32Joined(uint32_t first, uint32_t second, uint64_t secondBytes) {
  return product(first, powerOfX(8 * secondBytes)) ^ second;
}

uint32_t crc32Of(const uint8_t* data, size_t bytes, ThreadPool& pool) {
  std::vector<uint32_t> sums((bytes + kPieceBytes - 1) / kPieceBytes);
  eachPiece(data, bytes, pool, [&](size_t piece, const uint8_t* from, size_t size) { sums[piece] = crc32Of(from, size); });
  uint32_t sum = 0;
  for (size_t piece = 0; piece < sums.size(); ++piece)
    sum = crc32Joined(sum, sums[piece], std::min(kPieceBytes, bytes - piece * kPieceBytes));
  return sum;
}

uint64_t pagesChecksum(const uint8_t* data, size_t bytes, ThreadPool& pool) {
  std::vector<uint64_t> sums((bytes + kPieceBytes - 1) / kPieceBytes);
  eachPiece(data, bytes, pool,
            [&](size_t piece, const uint8_t* from, size_t size) { sums[piece] = pieceChecksum(from, size); });
  Fingerprint print;
  for (const uint64_t sum : sums) print.add(static_cast<int64_t>(sum));
  return print.value();
}

}  // namespace skein
