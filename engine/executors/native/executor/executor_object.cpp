#include "executor/executor_object.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "coded_error.h"
#include "executor/executor.h"
#include "executor/float_control.h"
#include "executor/js_batch.h"
#include "executor/js_config.h"
#include "executor/js_values.h"
#include "executor/step_thread.h"

namespace skein {
namespace {

// Returns the one account that the executors of an environment share (a model and its draft model, in their worker).
std::shared_ptr<ComputeTurns::Account> accountOf(napi_env env) {
  static std::mutex mutex;
  static auto* accounts = new std::map<napi_env, std::weak_ptr<ComputeTurns::Account>>();
  const std::lock_guard<std::mutex> lock(mutex);
  std::weak_ptr<ComputeTurns::Account>& known = (*accounts)[env];
  std::shared_ptr<ComputeTurns::Account> account = known.lock();
  if (!account) known = account = std::make_shared<ComputeTurns::Account>();
  return account;
}

class ExecutorObject : public Napi::ObjectWrap<ExecutorObject> {
 public:
  // Memory that an executor of these options would take, without making it.
  static Napi::Value measure(const Napi::CallbackInfo& info) {
    return guarded(info, [&]() -> Napi::Value {
      if (!info[0].IsObject()) throw std::runtime_error("measureExecutor takes an object of options.");
      return asObject(info.Env(), Executor::measure(js::readConfig(info[0].As<Napi::Object>())));
    });
  }

  static Napi::Function define(Napi::Env env) {
    return DefineClass(env, "NativeExecutor",
                       {method<&ExecutorObject::step>("step"),
                        method<&ExecutorObject::forward>("forward"),
                        method<&ExecutorObject::sample>("sample"),
                        method<&ExecutorObject::begin>("begin"),
                        method<&ExecutorObject::finish>("finish"),
                        method<&ExecutorObject::copyBlocks>("copyBlocks"),
                        method<&ExecutorObject::copyStates>("copyStates"),
                        method<&ExecutorObject::areStatesFinite>("areStatesFinite"),
                        method<&ExecutorObject::putAdapter>("putAdapter"),
                        method<&ExecutorObject::clearAdapter>("clearAdapter"),
                        method<&ExecutorObject::areFinite>("areFinite"),
                        method<&ExecutorObject::memory>("memory"),
                        method<&ExecutorObject::expertReads>("expertReads"),
                        method<&ExecutorObject::packedChecksums>("packedChecksums"),
                        method<&ExecutorObject::profile>("profile"),
                        method<&ExecutorObject::turns>("turns"),
                        method<&ExecutorObject::follow>("follow"),
                        method<&ExecutorObject::close>("close"),
                        method<&ExecutorObject::beginForward>("beginForward"),
                        method<&ExecutorObject::finishForward>("finishForward"),
                        method<&ExecutorObject::complete>("complete"),
                        method<&ExecutorObject::bytesPerBlock>("bytesPerBlock"),
                        method<&ExecutorObject::readBlocks>("readBlocks"),
                        method<&ExecutorObject::writeBlocks>("writeBlocks"),
                        method<&ExecutorObject::bytesPerStateSlot>("bytesPerStateSlot"),
                        method<&ExecutorObject::readStates>("readStates"),
                        method<&ExecutorObject::writeStates>("writeStates")});
  }

  explicit ExecutorObject(const Napi::CallbackInfo& info) : Napi::ObjectWrap<ExecutorObject>(info) {
    guarded(info, [&]() -> Napi::Value {
      if (!info[0].IsObject()) throw std::runtime_error("createExecutor takes an object of options.");
      const Napi::Object options = info[0].As<Napi::Object>();
      executor_ = std::make_unique<Executor>(js::readConfig(options));
      joinTurns(options);
      return info.Env().Undefined();
    });
    // An environment that ends (worker.terminate()) must end the threads before its memory is freed.
    cleanup_ = info.Env().AddCleanupHook(+[](ExecutorObject* self) { self->endWithEnvironment(); }, this);
  }

  ~ExecutorObject() override {
    if (!cleanup_.IsEmpty()) cleanup_.Remove(Env());
  }

 private:
  static Napi::Object asObject(Napi::Env env, const MemoryReport& report) {
    Napi::Object object = Napi::Object::New(env);
    object.Set("weightBytes", static_cast<double>(report.weightBytes));
    object.Set("kvCacheBytes", static_cast<double>(report.kvCacheBytes));
    object.Set("workspaceBytes", static_cast<double>(report.workspaceBytes));
    Napi::Object experts = Napi::Object::New(env);
    experts.Set("bytes", static_cast<double>(report.experts.all));
    experts.Set("bytesOfLayer", static_cast<double>(report.experts.ofLayer));
    experts.Set("bytesPerToken", static_cast<double>(report.experts.perToken));
    object.Set("experts", experts);
    return object;
  }

  // Runs the body with the floating-point mode set.
  template <typename Body>
  static Napi::Value guarded(const Napi::CallbackInfo& info, const Body& body) {
    return js::guarded(info, [&] {
      const FloatControlScope floatControl;
      return body();
    });
  }

  template <auto Method>
  Napi::Value call(const Napi::CallbackInfo& info) {
    return guarded(info, [&] { return js::resultOf<Method>(*this, info); });
  }

  template <auto Method>
  static Napi::ClassPropertyDescriptor<ExecutorObject> method(const char* name) {
    return InstanceMethod<&ExecutorObject::call<Method>>(name);
  }

  // Reads computeWeight, processors and heartbeat, each of which may be absent.
  void joinTurns(const Napi::Object& options) {
    const Napi::Value weight = options.Get("computeWeight"), processors = options.Get("processors");
    const Napi::Value heartbeat = options.Get("heartbeat");
    std::shared_ptr<ComputeTurns::Account> account = accountOf(options.Env());
    executor_->turns().join(std::move(account), weight.IsNumber() ? weight.As<Napi::Number>().DoubleValue() : 1);
    if (processors.IsNumber()) ComputeTurns::provide(processors.As<Napi::Number>().Int32Value());
    if (!heartbeat.IsTypedArray()) return;
    Napi::Int32Array beats = heartbeat.As<Napi::Int32Array>();
    if (beats.TypedArrayType() != napi_int32_array || beats.ElementLength() < 1) {
      throw std::runtime_error("heartbeat must be an Int32Array with an element.");
    }
    heartbeat_ = Napi::Persistent(static_cast<const Napi::Object&>(beats));
    executor_->turns().setHeartbeat(beats.Data());
  }

  Executor& open() const {
    if (!executor_) throw std::runtime_error("The executor is closed.");
    return *executor_;
  }

  // Returns the executor if no step is begun.
  Executor& idle() const {
    Executor& executor = open();
    if (!begun_.empty()) throw std::runtime_error("A begun step is running; finish() must come first.");
    return executor;
  }

  // Returns the executor once its own thread computes nothing. If it runs all of a network there must be no begun step; a stage
  // may have several, which others compute.
  Executor& still() {
    if (!open().isStaged()) return idle();
    try {
      if (stepThread_.busy()) stepThread_.finish();
    } catch (...) {
      // The group is lost.
      begun_.clear();
      throw;
    }
    return *executor_;
  }

  static void requireLogits(const NetworkPlan& plan) {
    if (plan.logits < 0)
      throw std::runtime_error("Another rank has the network's output; follow() computes this one's part.");
    if (!plan.hasLogits())
      throw std::runtime_error(
          "This network has no logits over a vocabulary to sample from; forward() gives its rows.");
  }

  // Batch, sampling and output of a whole step, checked.
  struct StepViews {
    BatchView batch;
    SamplingView sampling;
    SamplingOutputView output;

    StepViews(const Napi::CallbackInfo& info, Executor& executor, js::HeldValues* held)
        : batch(js::readBatch(info[0], held)),
          sampling(js::readSampling(info[1], held)),
          output(js::readSamplingOutput(info[2], held)) {
      const ExecutorConfig& config = executor.config();
      checkBatch(batch, config);
      executor.adapters().check(batch);
      requireLogits(config.plan);
      checkSampling(sampling, output, batch.numLogitRows, config.plan.vocabSize);
    }

    void run(Executor& executor) const {
      const ComputeTurns::Hold turn(executor.turns());
      executor.run(batch);
      executor.sample(sampling, output);
    }
  };

  // A begun step, or a begun forward, which has no sampling.
  struct Begun {
    std::optional<StepViews> step;
    std::optional<BatchView> forward;
    Napi::ObjectReference held;
    // Of a stage: the output has been received, and sampled or put aside.
    bool isComplete = false;
    std::vector<float> logits;

    const BatchView& batch() const { return step ? step->batch : *forward; }
  };

  void step(const Napi::CallbackInfo& info) {
    Executor& executor = idle();
    const StepViews views(info, executor, nullptr);
    executor.announce();
    views.run(executor);
  }

  void begin(const Napi::CallbackInfo& info) {
    Executor& executor = still();
    js::HeldValues held(info.Env());
    Begun begun;
    begun.step.emplace(info, executor, &held);
    start(std::move(begun), held);
  }

  void beginForward(const Napi::CallbackInfo& info) {
    Executor& executor = still();
    requireStaged();
    js::HeldValues held(info.Env());
    Begun begun;
    begun.forward = js::readBatch(info[0], &held);
    checkBatch(*begun.forward, executor.config());
    executor.adapters().check(*begun.forward);
    start(std::move(begun), held);
  }

  // All JavaScript values have been read, and the arrays are held until the step is finished: the thread gets plain memory.
  void start(Begun begun, const js::HeldValues& held) {
    begun.held = Napi::Persistent(static_cast<const Napi::Object&>(held.all()));
    executor_->announce();
    begun_.push_back(std::move(begun));
    Begun& own = begun_.back();
    try {
      if (executor_->isStaged()) stepThread_.begin([this, &own] { executor_->runStage(own.batch()); });
      else stepThread_.begin([this, &own] { own.step->run(*executor_); });
    } catch (const std::exception& error) {
      begun_.pop_back();
      // The others expect a step that does not come.
      if (executor_->config().group) executor_->config().group->abort(error.what());
      throw;
    }
  }

  void finish(const Napi::CallbackInfo& info) {
    requireBegun();
    if (!begun_.front().step) throw std::runtime_error("A forward has been begun; finishForward() ends it.");
    ended([&] {
      if (!executor_->isStaged()) return stepThread_.finish();
      still();
      completeStep(begun_.front());
    });
  }

  // Waits for the logits of a begun forward; sample() may follow though other steps are begun.
  Napi::Value finishForward(const Napi::CallbackInfo& info) {
    requireStaged();
    requireBegun();
    if (begun_.front().step) throw std::runtime_error("A step has been begun; finish() ends it.");
    int64_t rows = 0;
    ended([&] {
      still();
      Begun& oldest = begun_.front();
      rows = oldest.batch().numLogitRows;
      if (oldest.isComplete) {
        std::copy(oldest.logits.begin(), oldest.logits.end(), executor_->logits());
        executor_->setLogitRows(rows);
      } else {
        executor_->receive();
      }
    });
    return logitsView(info.Env(), *executor_, rows);
  }

  // Waits for everything that is begun, before a call that all ranks have to be free for. The steps stay begun.
  void complete(const Napi::CallbackInfo& info) {
    still();
    for (Begun& begun : begun_) completeStep(begun);
  }

  // Of a stage: receives the output of the oldest step that has not got it, and samples, or keeps the logits.
  void completeStep(Begun& begun) {
    if (begun.isComplete) return;
    executor_->receive();
    if (begun.step) {
      executor_->sample(begun.step->sampling, begun.step->output);
    } else {
      const size_t rows = static_cast<size_t>(begun.batch().numLogitRows);
      const float* logits = executor_->logits();
      begun.logits.assign(logits, logits + rows * static_cast<size_t>(executor_->config().plan.outputWidth));
    }
    begun.isComplete = true;
  }

  void requireBegun() const {
    open();
    if (begun_.empty()) throw std::runtime_error("No step has been begun; begin() must come before finish().");
  }

  void requireStaged() const {
    if (!open().isStaged()) throw std::runtime_error("This executor has no stages; only whole steps can be begun.");
  }

  // Ends the oldest begun step, whether or not the body throws; where the group is lost, all of them.
  template <typename Body>
  void ended(const Body& body) {
    try {
      body();
    } catch (const CodedError&) {
      begun_.clear();
      throw;
    } catch (...) {
      begun_.pop_front();
      throw;
    }
    begun_.pop_front();
  }

  Napi::Value forward(const Napi::CallbackInfo& info) {
    Executor& executor = idle();
    const BatchView batch = js::readBatch(info[0]);
    checkBatch(batch, executor.config());
    executor.adapters().check(batch);
    if (executor.config().plan.logits < 0) requireLogits(executor.config().plan);
    executor.forward(batch);
    return logitsView(info.Env(), executor, batch.numLogitRows);
  }

  Napi::Value logitsView(Napi::Env env, Executor& executor, int64_t rows) {
    const size_t length = static_cast<size_t>(rows) * static_cast<size_t>(executor.config().plan.outputWidth);
    napi_value view = nullptr;  // stays null in an environment that is being terminated
    napi_create_typedarray(env, napi_float32_array, length, logitsBuffer(env, executor), 0, &view);
    return Napi::Value(env, view);
  }

  // The forward of a rank whose output another one has.
  void follow(const Napi::CallbackInfo& info) {
    Executor& executor = idle();
    const BatchView batch = js::readBatch(info[0]);
    checkBatch(batch, executor.config());
    executor.adapters().check(batch);
    executor.forward(batch);
  }

  void sample(const Napi::CallbackInfo& info) {
    Executor& executor = still();
    requireLogits(executor.config().plan);
    const SamplingView sampling = js::readSampling(info[0]);
    const SamplingOutputView output = js::readSamplingOutput(info[1]);
    checkSampling(sampling, output, executor.logitRows(), executor.config().plan.vocabSize);
    executor.sample(sampling, output);
  }

  void copyBlocks(const Napi::CallbackInfo& info) {
    Executor& executor = still();
    const auto source = js::typedArray<const int32_t>(info[0], "source");
    const auto target = js::typedArray<const int32_t>(info[1], "target");
    checkCopy(source, target, executor.config().numBlocks, "blocks");
    executor.copyBlocks(source, target);
  }

  void copyStates(const Napi::CallbackInfo& info) {
    Executor& executor = still();
    const auto source = js::typedArray<const int32_t>(info[0], "source");
    const auto target = js::typedArray<const int32_t>(info[1], "target");
    checkCopy(source, target, executor.config().numStateSlots, "states");
    executor.copyStates(source, target);
  }

  Napi::Value areStatesFinite(const Napi::CallbackInfo& info) {
    Executor& executor = still();
    const auto slots = js::typedArray<const int32_t>(info[0], "slots");
    checkBlocks(slots, executor.config().numStateSlots, "slots");
    return Napi::Boolean::New(info.Env(), executor.areStatesFinite(slots));
  }

  // putAdapter(slot, parts): see AdapterPart.
  void putAdapter(const Napi::CallbackInfo& info) {
    Executor& executor = still();
    if (!info[1].IsArray()) throw std::runtime_error("putAdapter takes a slot and a list of parts.");
    executor.adapters().put(slotOf(info), js::readAdapterParts(info[1].As<Napi::Array>()));
  }

  void clearAdapter(const Napi::CallbackInfo& info) { still().adapters().clear(slotOf(info)); }

  static int32_t slotOf(const Napi::CallbackInfo& info) {
    return info[0].IsNumber() ? info[0].As<Napi::Number>().Int32Value() : -1;
  }

  Napi::Value areFinite(const Napi::CallbackInfo& info) {
    Executor& executor = open();
    const auto blocks = js::typedArray<const int32_t>(info[0], "blocks");
    checkBlocks(blocks, executor.config().numBlocks);
    return Napi::Boolean::New(info.Env(), executor.areFinite(blocks));
  }

  Napi::Value bytesPerBlock(const Napi::CallbackInfo& info) {
    return Napi::Number::New(info.Env(), static_cast<double>(open().bytesPerBlock()));
  }

  // readBlocks(blocks, target): whole blocks into memory outside.
  void readBlocks(const Napi::CallbackInfo& info) {
    Executor& executor = idle();
    const auto blocks = js::typedArray<const int32_t>(info[0], "blocks");
    const auto target = js::typedArray<uint8_t>(info[1], "target");
    checkBlocks(blocks, executor.config().numBlocks);
    checkBlockBytes(blocks, target.length, executor.bytesPerBlock(), "target");
    executor.readBlocks(blocks, target.data);
  }

  // writeBlocks(blocks, source): what readBlocks of an executor of the same network, options and instruction set gave.
  void writeBlocks(const Napi::CallbackInfo& info) {
    Executor& executor = idle();
    const auto blocks = js::typedArray<const int32_t>(info[0], "blocks");
    const auto source = js::typedArray<const uint8_t>(info[1], "source");
    checkBlocks(blocks, executor.config().numBlocks);
    checkBlockBytes(blocks, source.length, executor.bytesPerBlock(), "source");
    executor.writeBlocks(blocks, source.data);
  }

  Napi::Value bytesPerStateSlot(const Napi::CallbackInfo& info) {
    return Napi::Number::New(info.Env(), static_cast<double>(open().bytesPerStateSlot()));
  }

  // readStates(slots, target): the states of whole slots into memory outside.
  void readStates(const Napi::CallbackInfo& info) {
    Executor& executor = idle();
    const auto slots = js::typedArray<const int32_t>(info[0], "slots");
    const auto target = js::typedArray<uint8_t>(info[1], "target");
    checkStateBytes(executor, slots, target.length, "target");
    executor.readStates(slots, target.data);
  }

  // writeStates(slots, source): what readStates of an executor of the same network and instruction set gave.
  void writeStates(const Napi::CallbackInfo& info) {
    Executor& executor = idle();
    const auto slots = js::typedArray<const int32_t>(info[0], "slots");
    const auto source = js::typedArray<const uint8_t>(info[1], "source");
    checkStateBytes(executor, slots, source.length, "source");
    executor.writeStates(slots, source.data);
  }

  static void checkStateBytes(const Executor& executor, const ArrayView<const int32_t>& slots, int64_t length,
                              const char* field) {
    const bool hasStates = executor.bytesPerStateSlot() > 0;
    checkBlocks(slots, hasStates ? executor.config().numStateSlots : 0, "slots");
    checkBlockBytes(slots, length, executor.bytesPerStateSlot(), field, "slots");
  }

  Napi::Value memory(const Napi::CallbackInfo& info) { return asObject(info.Env(), open().memory()); }

  // { bytes: read since the start, bytesPerSecond: as measured, 0 where nothing had to be read }
  Napi::Value expertReads(const Napi::CallbackInfo& info) {
    const ExpertReads& reads = open().expertReads();
    Napi::Object object = Napi::Object::New(info.Env());
    object.Set("bytes", static_cast<double>(reads.bytesRead()));
    object.Set("bytesPerSecond", reads.bytesPerSecond());
    return object;
  }

  // [{ tensor: index, checksum }] of tensors in a checkpoint's file that this executor has packed.
  Napi::Value packedChecksums(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    const std::vector<PackedSum>& sums = open().packedSums();
    Napi::Array array = Napi::Array::New(env, sums.size());
    for (uint32_t i = 0; i < sums.size(); ++i) {
      Napi::Object item = Napi::Object::New(env);
      item.Set("tensor", Napi::Number::New(env, double(sums[i].tensor)));
      item.Set("checksum", Napi::Number::New(env, sums[i].sum));
      array.Set(i, item);
    }
    return array;
  }

  // Seconds per kind of op since the last call; counting goes on if the argument is true.
  Napi::Value profile(const Napi::CallbackInfo& info) {
    Executor& executor = idle();
    const Profile& profile = executor.profile();
    Napi::Object object = Napi::Object::New(info.Env());
    for (int32_t kind = 0; kind < kOpKinds; ++kind) {
      object.Set(opName(static_cast<OpKind>(kind)), profile.ops[static_cast<size_t>(kind)]);
    }
    object.Set("logits", profile.logits);
    object.Set("sampling", profile.sampling);
    object.Set("prepare", profile.prepare);
    object.Set("waiting", profile.waiting);
    executor.setProfiling(info[0].ToBoolean().Value());
    return object;
  }

  // Seconds that the executors of this environment have computed, and have waited for others; and how often a step of
  // theirs was interrupted for another.
  Napi::Value turns(const Napi::CallbackInfo& info) {
    const ComputeTurns::Account account = open().turns().used();
    Napi::Object object = Napi::Object::New(info.Env());
    object.Set("heldSeconds", account.heldSeconds);
    object.Set("waitedSeconds", account.waitedSeconds);
    object.Set("partings", static_cast<double>(account.partings));
    return object;
  }

  void close(const Napi::CallbackInfo& info) {
    if (!begun_.empty()) {
      throw std::runtime_error(
          "The executor cannot be closed while a begun step is running; finish() must come first.");
    }
    if (!logits_.IsEmpty()) {
      // Detaches the buffer, so that views of the logits become empty instead of dangling.
      napi_detach_arraybuffer(info.Env(), logits_.Value());
      logits_.Reset();
    }
    executor_.reset();
  }

  // Returns one buffer over the logits' memory for all views. It keeps the workspace alive, so a view may outlive the
  // executor.
  Napi::ArrayBuffer logitsBuffer(Napi::Env env, Executor& executor) {
    if (!logits_.IsEmpty()) return logits_.Value();
    const size_t bytes = static_cast<size_t>(executor.config().maxLogitRows) *
                         static_cast<size_t>(executor.config().plan.outputWidth) * sizeof(float);
    auto* owner = new std::shared_ptr<Mapping>(executor.workspace());
    const Napi::ArrayBuffer buffer = Napi::ArrayBuffer::New(
        env, executor.logits(), bytes, [](Napi::Env, void*, std::shared_ptr<Mapping>* held) { delete held; }, owner);
    logits_ = Napi::Persistent(buffer);
    return buffer;
  }

  void endWithEnvironment() {
    stepThread_.end();
    executor_.reset();
    cleanup_ = {};
  }

  std::unique_ptr<Executor> executor_;
  // Steps that have been begun and not finished; a stage has several. A deque, since the thread holds references.
  std::deque<Begun> begun_;
  Napi::ObjectReference heartbeat_;
  Napi::Reference<Napi::ArrayBuffer> logits_;
  Napi::Env::CleanupHook<void (*)(ExecutorObject*), ExecutorObject> cleanup_;
  // The last member, so that it is destroyed first: it waits for a step that still runs.
  StepThread stepThread_;
};

Napi::Value supportedInstructionSets(const Napi::CallbackInfo& info) {
  Napi::Array names = Napi::Array::New(info.Env());
  for (const Isa isa : kInstructionSets) {
    if (isaSupported(isa) && isaProblem(isa) == nullptr) names.Set(names.Length(), js::instructionSetName(isa));
  }
  return names;
}

}  // namespace

void registerExecutor(Napi::Env env, Napi::Object exports) {
  // The class lives as long as the function that creates it, in this environment only.
  auto constructor = std::make_shared<Napi::FunctionReference>(Napi::Persistent(ExecutorObject::define(env)));
  exports.Set(
      "createExecutor",
      Napi::Function::New(
          env, [constructor](const Napi::CallbackInfo& info) -> Napi::Value { return constructor->New({info[0]}); },
          "createExecutor"));
  exports.Set("measureExecutor", Napi::Function::New(env, ExecutorObject::measure, "measureExecutor"));
  exports.Set("supportedInstructionSets",
              Napi::Function::New(env, supportedInstructionSets, "supportedInstructionSets"));
}

}  // namespace skein
