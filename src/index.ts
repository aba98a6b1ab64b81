export { InProcessHost, type InProcessHostOptions } from '../callbacks/in-process-host.js';
export {
  type FinishReason,
  HostClosedError,
  QueueFullError,
  RequestError,
  type TokenPiece,
  type TokenRequest,
  type TokenStream,
} from '../callbacks/token-request.js';
export type {
  CallbackModule,
  GetInferenceRequestsCallback,
  InferenceRequest,
  NamedTensor,
  PollStopSignalsCallback,
  ReturnBatchManagerStatsCallback,
  SendResponseCallback,
  Tensor,
  TensorData,
} from '../callbacks/types.js';
export type { EngineInfo } from '../callbacks/worker-messages.js';
export { ParameterError, type SamplingParams } from '../engine/decoding/sampling-params.js';
export { GptManager, type ManagerState } from '../engine/gpt-manager.js';
export type {
  FunctionCallbacks,
  GptManagerOptions,
  IterationStats,
  KvCacheConfig,
  ModuleCallbacks,
  OptionalParams,
} from '../engine/gpt-manager-options.js';
