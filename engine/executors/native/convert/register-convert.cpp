#include "register-convert.h"

#include <cmath>
#include <iterator>

#include "../coded_error.h"
#include "convert.h"

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
  job.targetOffset = integerOf(object, "targetOffset");
  job.targetType = targetTypeOf(value.Env(), stringOf(object, "targetType"));
  return job;
}

// convert(target: string, jobs: ConvertJob[], threads: number): void
Napi::Value convertBinding(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (info.Length() != 3 || !info[0].IsString() || !info[1].IsArray() || !info[2].IsNumber()) {
    throw Napi::TypeError::New(env, "convert takes a target path, an array of jobs and a number of threads.");
  }
  const std::string target = info[0].As<Napi::String>().Utf8Value();
  const Napi::Array array = info[1].As<Napi::Array>();
  const double threads = info[2].As<Napi::Number>().DoubleValue();
  if (!(threads >= 1 && threads <= 1024)) {
    throw Napi::RangeError::New(env, "convert: threads should be from 1 to 1024.");
  }
  std::vector<ConvertJob> jobs;
  jobs.reserve(array.Length());
  for (uint32_t i = 0; i < array.Length(); i++) {
    const Napi::HandleScope scope(env);
    jobs.push_back(jobOf(array.Get(i)));
  }
  try {
    convert(target, jobs, int32_t(threads));
  } catch (const std::exception& error) {
    napi_throw_error(env, CodedError::of(error), error.what());
  }
  return env.Undefined();
}

}  // namespace

void registerConvert(Napi::Env env, Napi::Object exports) {
  exports.Set("convert", Napi::Function::New(env, convertBinding, "convert"));
}

}  // namespace skein
