export { CallbackError } from '../base/guarded-calls.js';
export { type CallName, type Name, type NamedText, worded } from '../base/named-text.js';
export { SkeinError } from '../base/skein-error.js';
export type { Formation, FormationListener, FormationRow } from '../callbacks/formation.js';
export type {
  ExecutorChoice,
  FunctionCallbacks,
  GptManagerOptions,
  IterationStats,
  KvCacheConfig,
  ManagerState,
  ModelType,
  ModuleCallbacks,
  OptionalParams,
  PinThreads,
  Speculate,
  StatsFormat,
} from '../callbacks/gpt-manager-options.js';
export type { Datatype } from '../callbacks/infer/datatypes.js';
export { InferError, type InferErrorKind } from '../callbacks/infer/infer-error.js';
export type { InferParameters } from '../callbacks/infer/infer-types.js';
export type {
  LogitsPostProcessor,
  LogitsPostProcessorBatched,
  LogitsPostProcessorModule,
  LogitsPostProcessors,
  LogitsStream,
} from '../callbacks/logits-post-processor.js';
export type { PieceListener, PieceSource } from '../callbacks/piece-source.js';
export type { MissingRanks, RanksOptions } from '../callbacks/ranks-options.js';
export { RequestIdError, type RequestIdProblem } from '../callbacks/request-id-error.js';
export type { WorkerRestartOptions } from '../callbacks/restart-policy.js';
export { ParameterError, type SamplingParams } from '../callbacks/sampling-params.js';
export {
  type FinishReason,
  HostClosedError,
  QueueFullError,
  RequestError,
  type TokenPiece,
  type TokenRequest,
  type TokenStream,
  type TokenTiming,
} from '../callbacks/token-request.js';
export type {
  CallbackModule,
  GetInferenceRequestsCallback,
  InferenceRequest,
  NamedTensor,
  OnKvCacheEventsCallback,
  PollStopSignalsCallback,
  ReturnBatchManagerStatsCallback,
  SendResponseCallback,
  Tensor,
  TensorData,
} from '../callbacks/types.js';
export type { EngineInfo } from '../callbacks/worker-messages.js';
export { EndpointError } from '../cluster/zeromq/endpoint.js';
export type {
  ModelModule,
  ModuleCall,
  ModuleCallResponse,
  ModuleCallResult,
  ModuleInput,
  ModuleOutput,
  ModuleRequest,
  ModuleResponse,
  ModuleResult,
  ModuleResults,
  ModuleSequence,
  ModuleSetup,
  ModuleStep,
} from '../engine/backends/module/model-module.js';
export { type BuildOptions, type BuildProgress, buildEngine } from '../engine/building/builder.js';
export { type Engine, EngineError, openEngine } from '../engine/building/engine.js';
export { type CachedEngineOptions, cachedEngine } from '../engine/building/engine-cache.js';
export { ExecutorUnavailableError } from '../engine/executors/executor-kind.js';
export { AddonError } from '../engine/executors/native/load-addon.js';
export type { VectorTransformer } from '../engine/service/vector-transformer.js';
export {
  SimulationError,
  type SimulationId,
  type SimulationIteration,
  type SimulationRequestResult,
  type SimulationResult,
  simulate,
} from '../engine/simulation/simulate.js';
export {
  type SimulationInput,
  SimulationInputError,
  type SimulationRequest,
} from '../engine/simulation/simulation-input.js';
export { EngineFailure } from '../host/engine-failure.js';
export { GptManager } from '../host/gpt-manager.js';
export { type CloseOptions, InProcessHost, type InProcessHostOptions } from '../host/in-process-host.js';
export { WorkerStuckError } from '../host/worker-supervisor.js';
export type { KvCacheEvent, KvCacheEventData, StoredBlock } from '../kvcache/cache-events.js';
export type { Retention, RetentionPriority } from '../kvcache/retention.js';
export type { AdapterLimits, AdapterWeights, ModuleLayer } from '../models/adapters/adapter-weights.js';
export { type ChatMessage, ChatTemplateError } from '../models/chat-template.js';
export { CheckpointError } from '../models/checkpoints/checkpoint.js';
export type { ModelConfig } from '../models/repository/model-config.js';
export { BatcherLimitError } from '../scheduler/tensors/batcher-presets.js';
export type { SchedulerPolicy } from '../scheduler/tokens/types.js';
export type { ClassifiedInput, ClassifyOptions, LabelScore } from './encoding/classify.js';
export type { EmbedOptions } from './encoding/embed.js';
export type { EncoderInput } from './encoding/encoder-codec.js';
export type { ScoreOptions } from './encoding/score.js';
export type { SparseEmbedding, TokenOptions } from './encoding/token-outputs.js';
export { VECTOR_TYPES, type VectorType, vectorOfType } from './encoding/vector-types.js';
export { ContextLengthError, InvalidRequestError } from './errors/request-errors.js';
export type { ReasoningOptions } from './generation/chat-options.js';
export type { ChatPiece, ToolCall, ToolCallPart } from './generation/chat-pieces.js';
export type { GuidedOptions } from './generation/guided.js';
export type { PromptLogProb } from './generation/returned-logits.js';
export type { OutputOf, StandardSchema } from './generation/standard-schema.js';
export type {
  SamplingOptions,
  TextLogProb,
  TextPiece,
  TokenLogProb,
} from './generation/text-generation.js';
export type { FunctionTool } from './generation/tools/types.js';
export type { PullProgress } from './hub/pull.js';
export type { Completion, GenerateOptions, InfillOptions, SeveralOptions } from './library/answers.js';
export { DEFAULT_MAX_TOKENS } from './library/asked-request.js';
export { BatchedService, type BatchedServiceOptions } from './library/batched-service.js';
export { ChatError, type ChatErrorReason } from './library/chat/chat-error.js';
export type { ChatSession } from './library/chat/chat-session.js';
export { type CallContext, type ChatTool, tool } from './library/chat/chat-tool.js';
export type {
  CallResult,
  ChatAnswer,
  ChatEvent,
  ChatInput,
  ChatSessionOptions,
  ChatSettings,
  FinishedCall,
  ObjectOf,
  PendingCall,
  SendOptions,
  WhenFull,
} from './library/chat/chat-types.js';
export type { SavedChat } from './library/chat/saved-chat.js';
export type { ManyOptions, ManyResult } from './library/complete-many.js';
export { type JsonForm, type JsonNumber, jsonFormOf } from './library/contracts/json-form.js';
export { tokenRequestOf } from './library/contracts/token-request.js';
export { Encoder, type RankedDocument } from './library/encoder.js';
export type { ImageInput } from './library/given-pictures.js';
export type { InferAnswer, InferCall, InferInput } from './library/inference/infer-call.js';
export { ModelServer, type ModelServerOptions } from './library/model-server.js';
export { openAdapter } from './library/open-adapter.js';
export type { LoadAdapterOptions } from './library/options/adapter-options.js';
export { Skein } from './library/skein.js';
export { type EncodeChatOptions, type TokenDecoder, Tokenizer } from './library/tokenizer.js';
export type { FetchInput, FetchOptions } from './server/app/program/program-request.js';
export { AdapterError, type AdapterErrorReason } from './serving/adapters/adapter-error.js';
export type { AdapterInfo } from './serving/adapters/adapter-info.js';
export type { EncoderOptions } from './serving/load-encoder-model.js';
export type { ModelOptions } from './serving/model-options.js';
export type { IndexRow, LoadParameters, VersionState } from './serving/model-repository.js';
export type { ModelMetadata, ModelStatistics, TensorMetadata } from './serving/protocol/describe-model.js';
export type { EncoderInfoOfModel, EngineCounts, ModelInfo } from './serving/running-model.js';
