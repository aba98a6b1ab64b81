#include "executor/js_group.h"

#include <atomic>
#include <cstring>
#include <thread>

#include "executor/js_values.h"

namespace skein {
namespace {

constexpr napi_type_tag kGroupTag = {0x6b8f1f0c52a94e37, 0x9d1c7a4e0b3f6582};

// Milliseconds after which the watcher looks again whether it is to end.
constexpr int64_t kWatchMs = 50;

class GroupObject : public Napi::ObjectWrap<GroupObject> {
 public:
  ~GroupObject() override {
    endWatch();
    if (!cleanup_.IsEmpty()) cleanup_.Remove(Env());
  }

  static Napi::Function define(Napi::Env env) {
    return DefineClass(
        env, "RankGroup",
        {InstanceAccessor<&GroupObject::call<&GroupObject::callBuffer>>("call"),
         InstanceAccessor<&GroupObject::call<&GroupObject::reason>>("abortReason"), method<&GroupObject::ring>("ring"),
         method<&GroupObject::awaitAnswers>("awaitAnswers"), method<&GroupObject::answeredByAll>("answeredByAll"),
         method<&GroupObject::awaitCall>("awaitCall"), method<&GroupObject::answer>("answer"),
         method<&GroupObject::abort>("abort"), method<&GroupObject::callNumber>("callNumber"),
         method<&GroupObject::published>("published"), method<&GroupObject::taken>("taken"),
         method<&GroupObject::publication>("publication"), method<&GroupObject::answerOf>("answerOf"),
         method<&GroupObject::relayCall>("relayCall"), method<&GroupObject::relayPublication>("relayPublication"),
         method<&GroupObject::relayTaken>("relayTaken"), method<&GroupObject::relayAnswer>("relayAnswer"),
         method<&GroupObject::watch>("watch"), method<&GroupObject::close>("close")});
  }

  explicit GroupObject(const Napi::CallbackInfo& info) : Napi::ObjectWrap<GroupObject>(info) {
    js::guarded(info, [&]() -> Napi::Value {
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

 private:
  template <auto Method>
  Napi::Value call(const Napi::CallbackInfo& info) {
    return js::guarded(info, [&] { return js::resultOf<Method>(*this, info); });
  }

  template <auto Method>
  static Napi::ClassPropertyDescriptor<GroupObject> method(const char* name) {
    return InstanceMethod<&GroupObject::call<Method>>(name);
  }

  // The buffer keeps the memory mapped for as long as a view of it lives.
  Napi::Value callBuffer(const Napi::CallbackInfo& info) {
    if (!call_.IsEmpty()) return call_.Value();
    auto* owner = new std::shared_ptr<GroupMemory>(open());
    const Napi::ArrayBuffer buffer = Napi::ArrayBuffer::New(
        info.Env(), memory_->call(), kCallBytes,
        [](Napi::Env, void*, std::shared_ptr<GroupMemory>* held) { delete held; }, owner);
    call_ = Napi::Persistent(buffer);
    return buffer;
  }

  Napi::Value reason(const Napi::CallbackInfo& info) {
    const std::string text = open()->abortReason();
    return text.empty() ? info.Env().Null() : Napi::String::New(info.Env(), text);
  }

  void ring(const Napi::CallbackInfo& info) { open()->ring(); }

  Napi::Value awaitAnswers(const Napi::CallbackInfo& info) {
    const auto memory = open();
    const int64_t limitMs = info[0].IsUndefined() ? memory->limitMs() : numberOf(info, 0);
    return Napi::Number::New(info.Env(), memory->awaitAnswers(limitMs));
  }

  Napi::Value answeredByAll(const Napi::CallbackInfo& info) {
    return Napi::Number::New(info.Env(), open()->answeredByAll());
  }

  Napi::Value awaitCall(const Napi::CallbackInfo& info) {
    return Napi::Number::New(info.Env(), open()->awaitCall(numberOf(info, 0), numberOf(info, 1)));
  }

  // answer(call, result, error)
  void answer(const Napi::CallbackInfo& info) { open()->answer(numberOf(info, 0), numberOf(info, 1), textOf(info, 2)); }

  void abort(const Napi::CallbackInfo& info) { open()->abort(textOf(info, 0)); }

  Napi::Value callNumber(const Napi::CallbackInfo& info) { return Napi::Number::New(info.Env(), open()->callNumber()); }

  // published(writer, channel)
  Napi::Value published(const Napi::CallbackInfo& info) {
    const auto memory = open();
    return Napi::Number::New(info.Env(), memory->published(rankOf(info, 0), channelOf(info, 1)));
  }

  // taken(reader, writer, channel)
  Napi::Value taken(const Napi::CallbackInfo& info) {
    const auto memory = open();
    return Napi::Number::New(info.Env(), memory->taken(rankOf(info, 0), rankOf(info, 1), channelOf(info, 2)));
  }

  // publication(channel, number): a copy of what this rank has published.
  Napi::Value publication(const Napi::CallbackInfo& info) {
    const auto memory = open();
    const int32_t channel = channelOf(info, 0);
    const uint32_t number = numberOf(info, 1);
    const size_t bytes = memory->bytesOf(memory->rank(), channel, number);
    if (bytes > kSlotBytes) throw std::runtime_error("A publication has more bytes than its slot.");
    const uint8_t* from = memory->slot(memory->rank(), channel, number);
    return Napi::Buffer<uint8_t>::Copy(info.Env(), from, bytes);
  }

  Napi::Value answerOf(const Napi::CallbackInfo& info) {
    const auto memory = open();
    const GroupMemory::Answer answer = memory->answerOf(rankOf(info, 0));
    Napi::Object object = Napi::Object::New(info.Env());
    object.Set("call", answer.call);
    object.Set("result", answer.result);
    object.Set("error", answer.error);
    return object;
  }

  // relayCall(number): its bytes lie in `call`.
  void relayCall(const Napi::CallbackInfo& info) { open()->relayCall(numberOf(info, 0)); }

  // relayPublication(writer, channel, number, bytes)
  void relayPublication(const Napi::CallbackInfo& info) {
    const auto memory = open();
    const int32_t writer = rankOf(info, 0), channel = channelOf(info, 1);
    const uint32_t number = numberOf(info, 2);
    if (!info[3].IsTypedArray()) throw std::runtime_error("bytes must be a Uint8Array.");
    const auto bytes = info[3].As<Napi::Uint8Array>();
    if (bytes.ByteLength() > kSlotBytes) throw std::runtime_error("A publication has more bytes than its slot.");
    std::memcpy(memory->slot(writer, channel, number), bytes.Data(), bytes.ByteLength());
    memory->relayPublication(writer, channel, number, static_cast<uint32_t>(bytes.ByteLength()));
  }

  // relayTaken(reader, writer, channel, number)
  void relayTaken(const Napi::CallbackInfo& info) {
    const auto memory = open();
    memory->relayTaken(rankOf(info, 0), rankOf(info, 1), channelOf(info, 2), numberOf(info, 3));
  }

  // relayAnswer(rank, call, result, error)
  void relayAnswer(const Napi::CallbackInfo& info) {
    const auto memory = open();
    memory->relayAnswer(rankOf(info, 0), {numberOf(info, 1), numberOf(info, 2), textOf(info, 3)});
  }

  // watch(callback): calls it, from a thread of its own, when this rank has done something; until close().
  void watch(const Napi::CallbackInfo& info) {
    if (!info[0].IsFunction()) throw std::runtime_error("watch takes a function.");
    if (watcher_.joinable()) throw std::runtime_error("The memory of the ranks is watched already.");
    auto memory = open();
    auto call = Napi::ThreadSafeFunction::New(info.Env(), info[0].As<Napi::Function>(), "skein ranks", 0, 1);
    stops_ = std::make_shared<std::atomic<bool>>(false);
    watcher_ = std::thread([memory, call, stops = stops_]() mutable {
      uint32_t seen = 0;
      while (!stops->load()) {
        const uint32_t now = memory->awaitActivity(seen, kWatchMs);
        // Looks after a while without activity too: an abort makes none.
        seen = now;
        if (!stops->load() && call.NonBlockingCall() == napi_closing) break;
      }
      call.Release();
    });
    cleanup_ = info.Env().AddCleanupHook(
        +[](GroupObject* self) {
          self->endWatch();
          self->cleanup_ = {};
        },
        this);
  }

  void endWatch() {
    if (!watcher_.joinable()) return;
    stops_->store(true);
    watcher_.join();
  }

  // Lets the memory go, once no executor and no view has it.
  void close(const Napi::CallbackInfo& info) {
    if (watcher_.joinable()) {
      endWatch();
      if (!cleanup_.IsEmpty()) cleanup_.Remove(info.Env());
      cleanup_ = {};
    }
    call_.Reset();
    memory_.reset();
  }

  int32_t rankOf(const Napi::CallbackInfo& info, size_t index) const {
    const uint32_t rank = numberOf(info, index);
    if (rank >= static_cast<uint32_t>(memory_->size())) throw std::runtime_error("There is no such rank.");
    return static_cast<int32_t>(rank);
  }

  static int32_t channelOf(const Napi::CallbackInfo& info, size_t index) {
    const uint32_t channel = numberOf(info, index);
    if (channel >= static_cast<uint32_t>(kChannels)) throw std::runtime_error("There is no such channel.");
    return static_cast<int32_t>(channel);
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
  std::thread watcher_;
  std::shared_ptr<std::atomic<bool>> stops_;
  Napi::Env::CleanupHook<void (*)(GroupObject*), GroupObject> cleanup_;
};

// createGroup(path, size)
Napi::Value createGroup(const Napi::CallbackInfo& info) {
  return js::guarded(info, [&]() -> Napi::Value {
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
