// Readers of JavaScript values whose errors name the field.
#pragma once
#include <napi.h>

#include <stdexcept>
#include <string>
#include <type_traits>

#include "coded_error.h"
#include "executor/batch.h"

namespace skein::js {

Napi::Value property(const Napi::Object& object, const char* field);
int32_t integer(const Napi::Object& object, const char* field);
double number(const Napi::Object& object, const char* field);
std::string text(const Napi::Object& object, const char* field);
Napi::Object object(const Napi::Object& parent, const char* field);
Napi::Array array(const Napi::Object& parent, const char* field);

// Returns the memory of a typed array of exactly this element type.
template <typename T>
ArrayView<T> typedArray(const Napi::Value& value, const char* field);
template <typename T>
ArrayView<T> typedArray(const Napi::Object& parent, const char* field) {
  return typedArray<T>(property(parent, field), field);
}

// Runs the body, and turns C++ exceptions into JavaScript's.
template <typename Body>
Napi::Value guarded(const Napi::CallbackInfo& info, const Body& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    // This does nothing if an exception is pending or the environment is being terminated.
    napi_throw_error(info.Env(), CodedError::of(error), error.what());
    return Napi::Value();
  }
}

// Calls a method of an object; one without a result gives undefined.
template <auto Method, typename Object>
Napi::Value resultOf(Object& object, const Napi::CallbackInfo& info) {
  if constexpr (std::is_void_v<decltype((object.*Method)(info))>) {
    (object.*Method)(info);
    return info.Env().Undefined();
  } else {
    return (object.*Method)(info);
  }
}

// Values that must live for as long as a thread uses their memory.
class HeldValues {
 public:
  explicit HeldValues(Napi::Env env);
  void add(const Napi::Value& value);
  const Napi::Array& all() const { return values_; }

 private:
  Napi::Array values_;
  uint32_t count_ = 0;
};

}  // namespace skein::js
