import { callback, isObject, NAME, oneOf, rule, type Values, wholeNumber } from '../../base/option-values.js';
import { SCHEDULER_POLICIES } from '../../scheduler/tokens/types.js';
import type { IterationStats } from '../iteration-stats.js';
import {
  BATCHED_POST_PROCESSOR,
  type LogitsPostProcessorBatched,
  type LogitsPostProcessors,
} from '../logits-post-processor.js';
import type { RanksOptions } from '../ranks-options.js';
import type { OnKvCacheEventsCallback } from '../types.js';
import { ofGptManager, ofPrograms, ofServe } from './option.js';
import type { ManagerState, ModelType } from './words.js';

const isObjectOfFunctions = (value: unknown) =>
  isObject(value) &&
  !Object.hasOwn(value, BATCHED_POST_PROCESSOR) &&
  Object.values(value).every((entry) => typeof entry === 'function');

/** Options that a GptManager requires. */
export const MANAGER_OPTIONS = {
  /** Path of the engine directory. */
  enginePath: ofGptManager(
    { ...NAME, expected: 'the path of an engine directory' },
    { seedName: 'trtEnginePath', default: 'required', help: 'Path of the engine directory.' },
  ),
  modelType: ofServe(oneOf('InflightFusedBatching', 'InflightBatching', 'V1') satisfies Values<ModelType>, {
    name: 'batchingScheme',
    seedName: 'modelType',
    default: 'required',
    flag: {
      group: 'Batching',
      metavar: 'SCHEME',
      formerly: 'modelType',
      default: 'InflightFusedBatching',
      help: 'Batching scheme. V1 runs batches in lockstep, without chunked prefill or prefix caching; for comparison only.',
    },
  }),
  /** Greatest beam width of any request (>= 1). */
  maxBeamWidth: ofServe(wholeNumber(1, 1024), {
    name: 'maxBeamWidth',
    seedName: 'maxBeamWidth',
    default: 'required',
    flag: {
      group: 'Batching',
      unit: 'beams',
      metavar: 'N',
      default: 1,
      help: 'Most beams per request (use_beam_search). Memory for this many sequences is reserved per request.',
    },
  }),
  schedulerPolicy: ofServe(oneOf(...SCHEDULER_POLICIES), {
    name: 'schedulerPolicy',
    seedName: 'schedulerPolicy',
    default: 'required',
    flag: {
      group: 'Batching',
      metavar: 'POLICY',
      default: 'GUARANTEED_NO_EVICT',
      help: 'Whether a running request may be paused for another. GUARANTEED_NO_EVICT: never; MAX_UTILIZATION: yes, for higher throughput.',
    },
  }),
};

/** Options that a GptManager accepts in addition to the callbacks and optionalParams. */
export const MANAGER_EVENTS = {
  /**
   * Id of a request that is not run but shuts the manager down: once every active request has ended the
   * manager stops, and later requests are refused. The request is not answered, takes no place, and may be
   * sent more than once.
   */
  terminateReqId: ofGptManager(
    rule<bigint>('a bigint', (value) => typeof value === 'bigint'),
    {
      seedName: 'terminateReqId',
      default: 'none',
      help: 'Id of a request that shuts the manager down instead of being run.',
    },
  ),
  /** The manager's place in a group that runs one model in several processes: see RanksOptions. */
  ranks: ofGptManager(rule<RanksOptions>('an object of rank, size and address', isObject), {
    default: 'none',
    help: "The manager's place in a group of processes that run one model together.",
  }),
  /**
   * Logits post-processors as functions of this thread, which requests name (logits_post_processor_name). The loop waits for
   * them, once in an iteration that has such requests: logitsPostProcessorModule costs less. Not with isolate or V1.
   */
  logitsPostProcessors: ofPrograms(
    rule<LogitsPostProcessors>(
      `an object of functions by name, none of them ${BATCHED_POST_PROCESSOR}`,
      isObjectOfFunctions,
    ),
    {
      name: 'logitsPostProcessors',
      default: 'none',
      help: 'Logits post-processors as functions of your own thread, by the names that requests give.',
    },
  ),
  /** The same, in one call for all requests of an iteration that name `batched`. */
  logitsPostProcessorBatched: ofPrograms(callback<LogitsPostProcessorBatched>(), {
    name: 'logitsPostProcessorBatched',
    default: 'none',
    help: 'The same for the name batched: one call for all requests of an iteration.',
  }),
  /** Called with each change of the manager's state; `failure` is the reason for 'restarting' and 'failed', else null. */
  onStateChange: ofGptManager(callback<(state: ManagerState, failure: Error | null) => void>(), {
    default: 'none',
    help: "Called with each change of the manager's state.",
  }),
  /**
   * Called for failures that belong to no request's answer: a callback that threw, or whose promise was rejected (a
   * CallbackError, which names it), a request with the id of another or with none (a RequestIdError), a worker that
   * died. Not given: each becomes a warning of the process
   * (SkeinWarning), as does what onError itself throws or is rejected with. No failure of a callback ends the process,
   * or another callback's work.
   */
  onError: ofGptManager(callback<(error: Error) => void>(), {
    default: 'a warning of the process',
    help: 'Called for failures that belong to no request.',
  }),
  /** Called in this thread after each iteration with the richer statistics, also where the callbacks are a module. */
  onIterationStats: ofGptManager(callback<(stats: IterationStats) => void>(), {
    default: 'none',
    help: 'Called after each iteration with the richer statistics.',
  }),
  /**
   * Called in this thread after each iteration that stored, removed or changed cached blocks, also where the
   * callbacks are a module, which may export one of its own as well. There are such events with
   * kvCacheConfig.enableBlockReuse.
   */
  onKvCacheEvents: ofGptManager(callback<OnKvCacheEventsCallback>(), {
    default: 'none',
    help: 'Called after each iteration that stored, removed or changed cached blocks.',
  }),
};
