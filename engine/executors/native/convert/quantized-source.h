// A quantised matrix of safetensors, whose numbers lie in several tensors: weight = (code - zero) * scale / divisor. What the fields mean
// is explained in models/checkpoints/quantized/quantized-source.ts.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace skein {

enum class Codes { kU4, kU8, kI8, kE4m3, kE2m1 };
enum class CodeOrder { kRows, kGptq, kAwq };
enum class ScaleType { kF32, kF16, kBf16, kE4m3, kE8m0 };
enum class ZeroOrder { kBytes, kPackedRows, kGptq, kAwq };

struct FilePart {
  std::string file;
  int64_t offset;
  int64_t bytes;
};

struct QuantizedScales : FilePart {
  ScaleType type;
  bool byColumns;
};

struct QuantizedZeros : FilePart {
  ZeroOrder order;
  uint32_t add;
};

struct QuantizedSource {
  std::string name;
  Codes codes;
  CodeOrder order;
  int32_t zero;
  int64_t rowsEach;
  int64_t columnsEach;
  QuantizedScales scales;
  std::optional<QuantizedZeros> zeros;
  std::optional<FilePart> groups;
  std::optional<FilePart> divisor;
};

inline int32_t codeBits(Codes codes) { return codes == Codes::kU4 || codes == Codes::kE2m1 ? 4 : 8; }

}  // namespace skein
