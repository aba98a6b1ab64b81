// AVX2 with AVX-VNNI: dot products of four unsigned and four signed bytes, for quantised weights, and of two words, for a quantised
// cache.
#pragma once
#include "kernels/simd_avx2.h"

// The instructions are written as bytes, since GCC 10 and the assembler of its time do not know them: the number of a register is
// found by its name.
//
//   0xc4 | reg, a: their fourth bits | w, 256 bits | opcode | reg, a
asm(R"(
.macro skein_number_of_ymm symbol, register
.irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
.ifc \register, %ymm\number
.set \symbol, \number
.endif
.endr
.endm
.macro skein_vex_dot opcode, a, w, sum
skein_number_of_ymm .Lskein_a, \a
skein_number_of_ymm .Lskein_w, \w
skein_number_of_ymm .Lskein_sum, \sum
.byte 0xc4, 0xe2 - ((.Lskein_sum >> 3) << 7) - ((.Lskein_a >> 3) << 5), 0x7d - (.Lskein_w << 3)
.byte \opcode, 0xc0 + ((.Lskein_sum & 7) << 3) + (.Lskein_a & 7)
.endm
)");

namespace skein {
namespace {

// Signed weights become unsigned by adding 128, which flips their highest bit; the sum then begins with a value that
// cancels this.
struct AvxVnniSimd : FloatScales<Avx2Simd> {
  static int32_t startWord(int32_t sumOfQuants) { return -128 * sumOfQuants; }
  static I start8(int32_t word) { return set1I(word); }
  static I part8(I bytes, int) { return _mm256_xor_si256(bytes, _mm256_set1_epi8(-128)); }
  static I dot8(I sum, I w, I a) { return dot4(sum, w, a); }
  static I dotWords(I sum, I w, I a) {
    asm("skein_vex_dot 0x52, %2, %1, %0" : "+x"(sum) : "x"(w), "x"(a));  // vpdpwssd
    return sum;
  }
  static I dot4(I sum, I w, I a) {
    asm("skein_vex_dot 0x50, %2, %1, %0" : "+x"(sum) : "x"(w), "x"(a));  // vpdpbusd
    return sum;
  }
  static I dot6(I sum, I w, I a) { return dot4(sum, w, a); }
};

}  // namespace
}  // namespace skein
