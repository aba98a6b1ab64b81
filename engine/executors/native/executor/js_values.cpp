#include "executor/js_values.h"

#include <cmath>
#include <type_traits>

namespace skein::js {
namespace {

[[noreturn]] void fail(const char* field, const char* expected) {
  throw std::runtime_error(std::string(field) + " must be " + expected + ".");
}

template <typename T>
constexpr napi_typedarray_type typeOf() {
  if constexpr (std::is_same_v<T, float>) return napi_float32_array;
  if constexpr (std::is_same_v<T, double>) return napi_float64_array;
  if constexpr (std::is_same_v<T, uint64_t>) return napi_biguint64_array;
  if constexpr (std::is_same_v<T, uint8_t>) return napi_uint8_array;
  return napi_int32_array;
}

const char* nameOf(napi_typedarray_type type) {
  return type == napi_float32_array     ? "a Float32Array"
         : type == napi_float64_array   ? "a Float64Array"
         : type == napi_biguint64_array ? "a BigUint64Array"
         : type == napi_uint8_array     ? "a Uint8Array"
                                        : "an Int32Array";
}

}  // namespace

// Uses the plain C call: in an environment that is being terminated the C++ wrapper would end the process.
Napi::Value property(const Napi::Object& object, const char* field) {
  napi_value value = nullptr;
  if (napi_get_named_property(object.Env(), object, field, &value) != napi_ok) fail(field, "readable");
  return Napi::Value(object.Env(), value);
}

double number(const Napi::Object& object, const char* field) {
  const Napi::Value value = property(object, field);
  if (!value.IsNumber()) fail(field, "a number");
  return value.As<Napi::Number>().DoubleValue();
}

int32_t integer(const Napi::Object& object, const char* field) {
  const double value = number(object, field);
  if (!(value >= INT32_MIN && value <= INT32_MAX) || value != std::floor(value))
    fail(field, "a whole number of 32 bits");
  return static_cast<int32_t>(value);
}

std::string text(const Napi::Object& object, const char* field) {
  const Napi::Value value = property(object, field);
  if (!value.IsString()) fail(field, "a string");
  return value.As<Napi::String>().Utf8Value();
}

Napi::Object object(const Napi::Object& parent, const char* field) {
  const Napi::Value value = property(parent, field);
  if (!value.IsObject()) fail(field, "an object");
  return value.As<Napi::Object>();
}

Napi::Array array(const Napi::Object& parent, const char* field) {
  const Napi::Value value = property(parent, field);
  if (!value.IsArray()) fail(field, "an array");
  return value.As<Napi::Array>();
}

template <typename T>
ArrayView<T> typedArray(const Napi::Value& value, const char* field) {
  constexpr napi_typedarray_type type = typeOf<std::remove_const_t<T>>();
  if (!value.IsTypedArray()) fail(field, nameOf(type));
  napi_typedarray_type found;
  size_t length = 0;
  void* data = nullptr;
  if (napi_get_typedarray_info(value.Env(), value, &found, &length, &data, nullptr, nullptr) != napi_ok ||
      found != type) {
    fail(field, nameOf(type));
  }
  return {static_cast<T*>(data), static_cast<int64_t>(length)};
}

// Uses plain C calls, as in property().
HeldValues::HeldValues(Napi::Env env) {
  napi_value array = nullptr;
  if (napi_create_array(env, &array) != napi_ok) throw std::runtime_error("The environment makes no more values.");
  values_ = Napi::Array(env, array);
}

void HeldValues::add(const Napi::Value& value) {
  if (napi_set_element(values_.Env(), values_, count_++, value) != napi_ok) {
    throw std::runtime_error("The environment keeps no more values.");
  }
}

template ArrayView<int32_t> typedArray(const Napi::Value&, const char*);
template ArrayView<const int32_t> typedArray(const Napi::Value&, const char*);
template ArrayView<float> typedArray(const Napi::Value&, const char*);
template ArrayView<const float> typedArray(const Napi::Value&, const char*);
template ArrayView<double> typedArray(const Napi::Value&, const char*);
template ArrayView<const uint64_t> typedArray(const Napi::Value&, const char*);
template ArrayView<uint8_t> typedArray(const Napi::Value&, const char*);
template ArrayView<const uint8_t> typedArray(const Napi::Value&, const char*);

}  // namespace skein::js
