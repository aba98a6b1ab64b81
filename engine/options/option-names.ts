import { closestName } from '../../base/did-you-mean.js';
import type {
  GptManagerOptions,
  KvCacheConfig,
  OptionalParams,
} from '../../callbacks/gpt-manager-options.js';
import { ParameterError } from '../../callbacks/sampling-params.js';

/** A name for each field: one that an interface gets or loses does not compile until it is here or gone. */
type Names<Options> = Record<keyof Required<Options>, true>;

const MANAGER = {
  enginePath: true,
  modelType: true,
  maxBeamWidth: true,
  schedulerPolicy: true,
  optionalParams: true,
  terminateReqId: true,
  getInferenceRequests: true,
  sendResponse: true,
  pollStopSignals: true,
  returnBatchManagerStats: true,
  callbackModule: true,
  onStateChange: true,
  onError: true,
  onIterationStats: true,
  onKvCacheEvents: true,
} satisfies Names<GptManagerOptions>;

const OPTIONAL = {
  kvCacheConfig: true,
  enableChunkedContext: true,
  chunkingPolicy: true,
  enableTrtOverlap: true,
  minMicroBatchSize: true,
  maxNumSequences: true,
  maxBatchSize: true,
  maxNumTokens: true,
  availableMemory: true,
  maxInputLen: true,
  maxSeqLen: true,
  threads: true,
  computeWeight: true,
  kvDtype: true,
  tokensPerBlock: true,
  instructionSet: true,
  maxTopLogProbs: true,
  maxReturnedLogitsBytes: true,
  idlePollIntervalMs: true,
  maxWaitIterations: true,
  maxWaitingRequests: true,
  startHorizon: true,
  maxInterTokenLatencyMs: true,
  maxChunkMs: true,
  speculate: true,
  draftEnginePath: true,
  maxDraftLen: true,
  statsFormat: true,
  watchdogTimeoutMs: true,
  terminateTimeoutMs: true,
  workerRestart: true,
  checkIntegrity: true,
  executor: true,
  executorModule: true,
  logitsPostProcessorModule: true,
  logitsPostProcessorTimeoutMs: true,
} satisfies Names<OptionalParams>;

const KV_CACHE = {
  maxTokens: true,
  maxAttentionWindow: true,
  sinkTokenLength: true,
  freeGpuMemoryFraction: true,
  enableBlockReuse: true,
  enablePartialReuse: true,
  copyOnPartialReuse: true,
  hostCacheSize: true,
  secondaryOffloadMinPriority: true,
  eventBufferMaxSize: true,
} satisfies Names<KvCacheConfig>;

/** Refuses what is no option of a GptManager: ignored, it would be a wrong answer. @throws ParameterError */
export function checkOptionNames(options: GptManagerOptions): void {
  checkNames('', options, MANAGER);
  // An executor of one's own may have parameters of its own.
  const own = options.optionalParams?.executorModule === undefined ? {} : options.optionalParams;
  checkNames('optionalParams', options.optionalParams, { ...own, ...OPTIONAL });
  checkNames('optionalParams.kvCacheConfig', options.optionalParams?.kvCacheConfig, KV_CACHE);
}

function checkNames(path: string, given: unknown, known: object): void {
  if (given === undefined && path !== '') return;
  if (typeof given !== 'object' || given === null) {
    const what = path === '' ? 'GptManager needs an object of options' : `${path} must be an object`;
    throw new ParameterError(path === '' ? 'options' : path, `${what}; it was given ${String(given)}.`);
  }
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(known, name)) continue;
    const names = Object.keys(known);
    const meant = closestName(name, names);
    const hint = meant === null ? `there are ${names.join(', ')}.` : `did you mean ${meant}?`;
    const full = path === '' ? name : `${path}.${name}`;
    throw new ParameterError(full, `${full} is not an option of GptManager; ${hint}`);
  }
}
