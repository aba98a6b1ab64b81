#include "register-convert.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "../coded_error.h"
#include "convert.h"
#include "source-rows.h"

namespace skein {
namespace {

constexpr double kMaxSafeInteger = 9007199254740991.0;

int64_t integerOf(const Napi::Object& object, const char* key) {
  const Napi::Value value = object.Get(key);
  const double number = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : std::nan("");
  if (!(number >= 0 && number <= kMaxSafeInteger) || number != std::floor(number)) {
    throw Napi::TypeError::New(object.Env(), std::string("convert: ") + key + " should be a whole number >= 0.");
  }
  return int64_t(number);
}

std::string stringOf(const Napi::Object& object, const char* key) {
  const Napi::Value value = object.Get(key);
  if (!value.IsString()) {
    throw Napi::TypeError::New(object.Env(), std::string("convert: ") + key + " should be a string.");
  }
  return value.As<Napi::String>().Utf8Value();
}

// The place in `names` of the word that a field has.
template <class Enum, size_t N>
Enum wordOf(const Napi::Object& object, const char* key, const char* const (&names)[N]) {
  const std::string word = stringOf(object, key);
  for (size_t i = 0; i < N; i++)
    if (word == names[i]) return Enum(i);
  throw Napi::TypeError::New(object.Env(), std::string("convert: ") + key + " has the unknown value " + word + ".");
}

FilePart partOf(const Napi::Object& object) {
  return {stringOf(object, "file"), integerOf(object, "offset"), integerOf(object, "byteLength")};
}

std::optional<Napi::Object> objectOf(const Napi::Object& object, const char* key) {
  const Napi::Value value = object.Get(key);
  if (!value.IsObject()) return std::nullopt;
  return value.As<Napi::Object>();
}

std::shared_ptr<const QuantizedSource> quantizedOf(const Napi::Object& object) {
  const auto scales = objectOf(object, "scales");
  if (!scales) throw Napi::TypeError::New(object.Env(), "convert: scales should be an object.");
  auto source = std::make_shared<QuantizedSource>();
  source->name = stringOf(object, "name");
  source->codes = wordOf<Codes>(object, "codes", {"u4", "u8", "i8", "e4m3", "e2m1"});
  source->order = wordOf<CodeOrder>(object, "order", {"rows", "gptq", "awq"});
  source->zero = int32_t(integerOf(object, "zero"));
  source->rowsEach = integerOf(object, "rowsEach");
  source->columnsEach = integerOf(object, "columnsEach");
  source->scales = {partOf(*scales), wordOf<ScaleType>(*scales, "type", {"F32", "F16", "BF16", "F8_E4M3", "F8_E8M0"}),
                    scales->Get("byColumns").ToBoolean()};
  if (const auto zeros = objectOf(object, "zeros")) {
    source->zeros = {partOf(*zeros), wordOf<ZeroOrder>(*zeros, "order", {"bytes", "packedRows", "gptq", "awq"}),
                     uint32_t(integerOf(*zeros, "add"))};
  }
  if (const auto groups = objectOf(object, "groups")) source->groups = partOf(*groups);
  if (const auto divisor = objectOf(object, "divisor")) source->divisor = partOf(*divisor);
  return source;
}

DType targetTypeOf(Napi::Env env, const std::string& name) {
  std::string names;
  for (const WeightFormat& format : kWeightFormats) {
    if (name == format.name) return format.dtype;
    const bool isLast = &format == std::end(kWeightFormats) - 1;
    names.append(names.empty() ? "" : isLast ? " or " : ", ").append(format.name);
  }
  throw Napi::TypeError::New(env, "convert: targetType should be " + names + ", found " + name + ".");
}

ConvertJob jobOf(const Napi::Value& value) {
  if (!value.IsObject()) throw Napi::TypeError::New(value.Env(), "convert: a job should be an object.");
  const Napi::Object object = value.As<Napi::Object>();
  ConvertJob job;
  job.source = stringOf(object, "source");
  job.sourceOffset = integerOf(object, "sourceOffset");
  job.sourceByteLength = integerOf(object, "sourceByteLength");
  const std::string type = stringOf(object, "type");
  job.type = tensorTypeOf(type);
  if (!job.type) throw Napi::TypeError::New(value.Env(), job.source + ": tensor type " + type + " is not known.");
  job.rows = integerOf(object, "rows");
  job.columns = integerOf(object, "columns");
  job.interleavedHeads = integerOf(object, "interleavedHeads");
  job.transposed = object.Get("transposed").ToBoolean();
  const Napi::Value addend = object.Get("addend");
  if (addend.IsNumber()) job.addend = addend.As<Napi::Number>().FloatValue();
  const Napi::Value factor = object.Get("factor");
  if (factor.IsNumber()) job.factor = factor.As<Napi::Number>().FloatValue();
  if (const auto quantized = objectOf(object, "quantized")) job.quantized = quantizedOf(*quantized);
  job.targetOffset = integerOf(object, "targetOffset");
  job.targetType = targetTypeOf(value.Env(), stringOf(object, "targetType"));
  return job;
}

int32_t threadsOf(const Napi::CallbackInfo& info, size_t at, const char* function) {
  const double threads = info[at].As<Napi::Number>().DoubleValue();
  if (!(threads >= 1 && threads <= 1024)) {
    throw Napi::RangeError::New(info.Env(), std::string(function) + ": threads should be from 1 to 1024.");
  }
  return int32_t(threads);
}

// convert(target: string, jobs: ConvertJob[], threads: number): void
Napi::Value convertBinding(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (info.Length() != 3 || !info[0].IsString() || !info[1].IsArray() || !info[2].IsNumber()) {
    throw Napi::TypeError::New(env, "convert takes a target path, an array of jobs and a number of threads.");
  }
  const std::string target = info[0].As<Napi::String>().Utf8Value();
  const int32_t threads = threadsOf(info, 2, "convert");
  const std::vector<ConvertJob> jobs = convertJobsOf(info[1].As<Napi::Array>());
  try {
    convert(target, jobs, threads);
  } catch (const std::exception& error) {
    napi_throw_error(env, CodedError::of(error), error.what());
  }
  return env.Undefined();
}

// checksums(file: string, ranges: { offset: number; byteLength: number }[], threads: number): Uint32Array
Napi::Value checksumsBinding(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (info.Length() != 3 || !info[0].IsString() || !info[1].IsArray() || !info[2].IsNumber()) {
    throw Napi::TypeError::New(env, "checksums takes a path, an array of ranges and a number of threads.");
  }
  const Napi::Array array = info[1].As<Napi::Array>();
  const int32_t threads = threadsOf(info, 2, "checksums");
  std::vector<FileRange> ranges;
  for (uint32_t i = 0; i < array.Length(); i++) {
    const Napi::HandleScope scope(env);
    const Napi::Value range = array.Get(i);
    if (!range.IsObject()) throw Napi::TypeError::New(env, "checksums: a range should be an object.");
    ranges.push_back(
        {integerOf(range.As<Napi::Object>(), "offset"), integerOf(range.As<Napi::Object>(), "byteLength")});
  }
  try {
    const std::vector<uint32_t> sums = checksums(info[0].As<Napi::String>().Utf8Value(), ranges, threads);
    Napi::Uint32Array result = Napi::Uint32Array::New(env, sums.size());
    std::copy(sums.begin(), sums.end(), result.Data());
    return result;
  } catch (const std::exception& error) {
    napi_throw_error(env, CodedError::of(error), error.what());
    return env.Undefined();
  }
}

// rowsChecksum(jobs: ConvertJob[], threads: number): number
Napi::Value rowsChecksumBinding(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (info.Length() != 2 || !info[0].IsArray() || !info[1].IsNumber()) {
    throw Napi::TypeError::New(env, "rowsChecksum takes an array of jobs and a number of threads.");
  }
  const int32_t threads = threadsOf(info, 1, "rowsChecksum");
  const std::vector<ConvertJob> jobs = convertJobsOf(info[0].As<Napi::Array>());
  if (jobs.empty()) throw Napi::RangeError::New(env, "rowsChecksum: there should be at least one job.");
  try {
    const auto file = std::make_shared<PositionedFile>(jobs.front().source, PositionedFile::Role::kSource);
    return Napi::Number::New(env, checksumOf(SourceRows(jobs, file), threads));
  } catch (const std::exception& error) {
    napi_throw_error(env, CodedError::of(error), error.what());
    return env.Undefined();
  }
}

}  // namespace

std::vector<ConvertJob> convertJobsOf(const Napi::Array& array) {
  std::vector<ConvertJob> jobs;
  jobs.reserve(array.Length());
  for (uint32_t i = 0; i < array.Length(); i++) {
    const Napi::HandleScope scope(array.Env());
    jobs.push_back(jobOf(array.Get(i)));
  }
  return jobs;
}

void registerConvert(Napi::Env env, Napi::Object exports) {
  exports.Set("checksums", Napi::Function::New(env, checksumsBinding, "checksums"));
  exports.Set("rowsChecksum", Napi::Function::New(env, rowsChecksumBinding, "rowsChecksum"));
  exports.Set("convert", Napi::Function::New(env, convertBinding, "convert"));
}

}  // namespace skein
