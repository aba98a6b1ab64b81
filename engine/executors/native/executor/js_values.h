// Readers of JavaScript values whose errors name the field.
#pragma once
#include <napi.h>

#include <stdexcept>
#include <string>

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
