// Storage types of GGML with 1 to 3 bits, in blocks of 256: rows of grids (IQ1, IQ2, IQ3) and ternary quants (TQ1_0, TQ2_0). Each function
// converts `blocks` blocks into floats.
#pragma once
#include <cstdint>

namespace skein {

void iq1sRow(const uint8_t* s, int64_t blocks, float* t);
void iq1mRow(const uint8_t* s, int64_t blocks, float* t);
void iq2xxsRow(const uint8_t* s, int64_t blocks, float* t);
void iq2xsRow(const uint8_t* s, int64_t blocks, float* t);
void iq2sRow(const uint8_t* s, int64_t blocks, float* t);
void iq3xxsRow(const uint8_t* s, int64_t blocks, float* t);
void iq3sRow(const uint8_t* s, int64_t blocks, float* t);
void tq1_0Row(const uint8_t* s, int64_t blocks, float* t);
void tq2_0Row(const uint8_t* s, int64_t blocks, float* t);

// Quant of element i of a block, 0 .. 2 for -d, 0 and d (TQ2_0: also 3, which no file has).
int tq1Quant(const uint8_t* block, int i);
int tq2Quant(const uint8_t* block, int i);

}  // namespace skein
