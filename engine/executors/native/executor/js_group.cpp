#include "executor/js_group.h"

#include "coded_error.h"
#include "executor/js_values.h"

namespace skein {
namespace {

constexpr napi_type_tag kGroupTag = {0x6b8f1f0c52a94e37, 0x9d1c7a4e0b3f6582};

class GroupObject : public Napi::ObjectWrap<GroupObject> {
 public:
  static Napi::Function define(Napi::Env env) {
    return DefineClass(
        env, "RankGroup",
        {InstanceAccessor<&GroupObject::callBuffer>("call"), InstanceAccessor<&GroupObject::reason>("abortReason"),
         InstanceMethod<&GroupObject::ring>("ring"), InstanceMethod<&GroupObject::awaitAnswers>("awaitAnswers"),
         InstanceMethod<&GroupObject::awaitCall>("awaitCall"), InstanceMethod<&GroupObject::answer>("answer"),
         InstanceMethod<&GroupObject::abort>("abort"), InstanceMethod<&GroupObject::close>("close")});
  }

  explicit GroupObject(const Napi::CallbackInfo& info) : Napi::ObjectWrap<GroupObject>(info) {
    guarded(info, [&]() -> Napi::Value {
      if (!info[0].IsObject()) throw std::runtime_error("openGroup takes an object of options.");
      const Napi::Object options = info[0].As<Napi::Object>();
      memory_ = std::make_shared<GroupMemory>(js::text(options, "path"), js::integer(options, "rank"),
                                              js::integer(options, "size"), js::integer(options, "limitMs"));
      info.This().As<Napi::Object>().TypeTag(&kGroupTag);
      return info.Env().Undefined();
    });
  }

  std::shared_ptr<GroupMemory> open() const {
    if (!memory_) throw std::runtime_error("The memory of the ranks is closed.");
    return memory_;
  }

  template <typename Body>
  static Napi::Value guarded(const Napi::CallbackInfo& info, const Body& body) {
    try {
      return body();
    } catch (const std::exception& error) {
      napi_throw_error(info.Env(), CodedError::of(error), error.what());
      return Napi::Value();
    }
  }

 private:
  // The buffer keeps the memory mapped for as long as a view of it lives.
  Napi::Value callBuffer(const Napi::CallbackInfo& info) {
    return guarded(info, [&]() -> Napi::Value {
      if (!call_.IsEmpty()) return call_.Value();
      auto* owner = new std::shared_ptr<GroupMemory>(open());
      const Napi::ArrayBuffer buffer = Napi::ArrayBuffer::New(
          info.Env(), memory_->call(), kCallBytes,
          [](Napi::Env, void*, std::shared_ptr<GroupMemory>* held) { delete held; }, owner);
      call_ = Napi::Persistent(buffer);
      return buffer;
    });
  }

  Napi::Value reason(const Napi::CallbackInfo& info) {
    return guarded(info, [&]() -> Napi::Value {
      const std::string text = open()->abortReason();
      return text.empty() ? info.Env().Null() : Napi::String::New(info.Env(), text);
    });
  }

  Napi::Value ring(const Napi::CallbackInfo& info) {
    return guarded(info, [&]() -> Napi::Value {
      open()->ring();
      return info.Env().Undefined();
    });
  }

  Napi::Value awaitAnswers(const Napi::CallbackInfo& info) {
    return guarded(info, [&]() -> Napi::Value {
      const auto memory = open();
      const int64_t limitMs = info[0].IsUndefined() ? memory->limitMs() : numberOf(info, 0);
      return Napi::Number::New(info.Env(), memory->awaitAnswers(limitMs));
    });
  }

  Napi::Value awaitCall(const Napi::CallbackInfo& info) {
    return guarded(info, [&]() -> Napi::Value {
      return Napi::Number::New(info.Env(), open()->awaitCall(numberOf(info, 0), numberOf(info, 1)));
    });
  }

  // answer(call, result, error)
  Napi::Value answer(const Napi::CallbackInfo& info) {
    return guarded(info, [&]() -> Napi::Value {
      open()->answer(numberOf(info, 0), numberOf(info, 1), textOf(info, 2));
      return info.Env().Undefined();
    });
  }

  Napi::Value abort(const Napi::CallbackInfo& info) {
    return guarded(info, [&]() -> Napi::Value {
      open()->abort(textOf(info, 0));
      return info.Env().Undefined();
    });
  }

  // Lets the memory go, once no executor and no view has it.
  Napi::Value close(const Napi::CallbackInfo& info) {
    return guarded(info, [&]() -> Napi::Value {
      call_.Reset();
      memory_.reset();
      return info.Env().Undefined();
    });
  }

  static uint32_t numberOf(const Napi::CallbackInfo& info, size_t index) {
    if (!info[index].IsNumber()) throw std::runtime_error("A number is expected.");
    return info[index].As<Napi::Number>().Uint32Value();
  }

  static std::string textOf(const Napi::CallbackInfo& info, size_t index) {
    if (!info[index].IsString()) throw std::runtime_error("A text is expected.");
    return info[index].As<Napi::String>().Utf8Value();
  }

  std::shared_ptr<GroupMemory> memory_;
  Napi::Reference<Napi::ArrayBuffer> call_;
};

// createGroup(path, size)
Napi::Value createGroup(const Napi::CallbackInfo& info) {
  return GroupObject::guarded(info, [&]() -> Napi::Value {
    if (!info[0].IsString() || !info[1].IsNumber())
      throw std::runtime_error("createGroup takes a path and the number of ranks.");
    GroupMemory::create(info[0].As<Napi::String>().Utf8Value(), info[1].As<Napi::Number>().Int32Value());
    return info.Env().Undefined();
  });
}

}  // namespace

void registerGroup(Napi::Env env, Napi::Object exports) {
  exports.Set("RankGroup", GroupObject::define(env));
  exports.Set("createGroup", Napi::Function::New<createGroup>(env));
}

std::shared_ptr<GroupMemory> groupOf(const Napi::Value& value) {
  if (!value.IsObject() || !value.As<Napi::Object>().CheckTypeTag(&kGroupTag))
    throw std::runtime_error("group must be a RankGroup.");
  return GroupObject::Unwrap(value.As<Napi::Object>())->open();
}

}  // namespace skein
