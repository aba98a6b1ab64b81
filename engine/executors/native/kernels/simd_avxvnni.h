// AVX2 with AVX-VNNI: dot products of four unsigned and four signed bytes, for quantised weights, and of two words, for a quantised
// cache.
#pragma once
#include "kernels/simd_avx2.h"

// sum += the products of w and a. GCC 10 and the assembler of its time do not know these instructions, so they are written as bytes; the
// number of a register is found by its name. `inline`: to the compiler this is one short instruction.
//
//   0xc4 | sum, a: their fourth bits | w, 256 bits | opcode | sum, a
#define SKEIN_VEX_DOT(opcode, sum, w, a)                                                \
  asm inline(                                                                           \
      ".irp number,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"                             \
      ".ifc %0,%%ymm\\number\n.set .Lskein_sum,\\number\n.endif\n"                      \
      ".ifc %1,%%ymm\\number\n.set .Lskein_w,\\number\n.endif\n"                        \
      ".ifc %2,%%ymm\\number\n.set .Lskein_a,\\number\n.endif\n"                        \
      ".endr\n"                                                                         \
      ".byte 0xc4,0xe2-((.Lskein_sum>>3)<<7)-((.Lskein_a>>3)<<5),0x7d-(.Lskein_w<<3)\n" \
      ".byte " opcode ",0xc0+((.Lskein_sum&7)<<3)+(.Lskein_a&7)"                        \
      : "+x"(sum)                                                                       \
      : "x"(w), "x"(a))

namespace skein {
namespace {

// Signed weights become unsigned by adding 128, which flips their highest bit; the sum then begins with a value that
// cancels this.
struct AvxVnniSimd : FloatScales<Avx2Simd> {
  static constexpr bool kSumsAlongRows = false;
  static int32_t startWord(int32_t sumOfQuants) { return -128 * sumOfQuants; }
  static I start8(int32_t word) { return set1I(word); }
  static I part8(I bytes, int) { return _mm256_xor_si256(bytes, _mm256_set1_epi8(-128)); }
  static I dot8(I sum, I w, I a) { return dot4(sum, w, a); }
  static I dotWords(I sum, I w, I a) {
    SKEIN_VEX_DOT("0x52", sum, w, a);  // vpdpwssd
    return sum;
  }
  static I dot4(I sum, I w, I a) {
    SKEIN_VEX_DOT("0x50", sum, w, a);  // vpdpbusd
    return sum;
  }
  static I dot6(I sum, I w, I a) { return dot4(sum, w, a); }
};

}  // namespace
}  // namespace skein
