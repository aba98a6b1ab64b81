#include "convert/convert.h"

#include <cstdio>
#include <string>
#include <vector>

#include "files.h"
#include "scenarios.h"

namespace skein {

void convertRound(Random& random) {
  const TemporaryFolder folder;
  const int64_t rows = random.integer(1, 40), columns = 32 * random.integer(1, 300);
  std::vector<float> values(static_cast<size_t>(rows * columns));
  for (float& value : values) value = static_cast<float>(random.integer(-1000, 1000)) / 256;
  const std::string source = folder.write("source.bin", values.data(), values.size() * sizeof(float));
  const DType types[] = {DType::kF32, DType::kBf16, DType::kInt8, DType::kInt4};
  std::vector<ConvertJob> jobs;
  int64_t targetBytes = 0;
  for (int32_t i = random.integer(1, 8); i > 0; --i) {
    ConvertJob job{};
    job.source = source;
    job.sourceByteLength = rows * columns * 4;
    job.type = tensorTypeOf("F32");
    job.rows = rows, job.columns = columns;
    job.addend = random.chance(30) ? 1.0f : 0.0f;
    job.targetType = types[random.integer(0, 3)];
    job.targetOffset = targetBytes;
    targetBytes += rows * static_cast<int64_t>(rowBytes(job.targetType, columns));
    jobs.push_back(job);
  }
  const std::vector<char> zeros(static_cast<size_t>(targetBytes));
  const std::string target = folder.write("target.bin", zeros.data(), zeros.size());
  const bool lies = random.chance(20);
  if (lies) jobs.back().sourceOffset = 1;  // beyond the file's end
  bool refused = false;
  try {
    convert(target, jobs, random.integer(1, 6));
  } catch (const std::runtime_error&) {
    refused = true;
  }
  expect(refused == lies, "A conversion was refused, or was not.");
}

}  // namespace skein
