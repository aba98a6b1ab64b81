import { readFileSync } from 'node:fs';
import { DEFAULT_MAX_NUM_SEQUENCES } from '../../callbacks/options/optional-params.js';
import type { TextModel } from '../generation/text-model.js';
import { type ModelFacts, readModelFacts } from './model-facts.js';
import type { RunningModel } from './running-model.js';
import type { ServedModel } from './served-model.js';

/** Tokens of a chat answer without a limit of its own. */
const DEFAULT_MAX_TOKENS = 1024;

/** How a running model is served. */
export interface ServedSettings extends Required<Pick<TextModel, 'toolCallParser' | 'reasoningParser'>> {
  /** Name that clients ask for. */
  id: string;
  /** Further ones. */
  aliases: readonly string[];
  /** Name of the file or folder that it was loaded from. */
  fileName: string;
  /** Requests that it computes at once; undefined: the engine's default. */
  maxActiveRequests: number | undefined;
  /** Requests that may wait. */
  maxQueueSize: number;
  /** Tokens of a chat answer whose request names no limit; undefined: what the model recommends, else DEFAULT_MAX_TOKENS. */
  defaultMaxTokens: number | undefined;
  /** Log-probs in addition to that of each token; below 0: the whole vocabulary. */
  maxLogProbs: number;
}

/** A running model under its name. */
export function servedModel(loaded: RunningModel, settings: ServedSettings): ServedModel {
  const { id, aliases, fileName, maxQueueSize, maxLogProbs, defaultMaxTokens, ...rest } = settings;
  const { maxActiveRequests = DEFAULT_MAX_NUM_SEQUENCES, toolCallParser, reasoningParser } = rest;
  const { state } = loaded;
  const processMemory = () => {
    const pid = state.pid();
    return pid === null ? null : residentBytes(pid);
  };
  let read: ModelFacts | null = null;
  const facts = () => {
    read ??=
      (loaded.kind === 'generator' ? loaded.facts?.() : undefined) ?? readModelFacts(loaded.info.enginePath);
    return read;
  };
  const created = Math.floor(Date.now() / 1000);
  const cacheBytes = 'kvCacheBytes' in loaded.info ? loaded.info.kvCacheBytes : 0;
  const served = { id, aliases, created, state, maxQueueSize, processMemory, facts, cacheBytes };
  if (loaded.kind === 'encoder') {
    return { kind: 'encoder', ...loaded.model, ...served, statistics: loaded.statistics };
  }
  const { model, info, engines, adapters, statistics, resetCache, statsJson, watchFormation } = loaded;
  return {
    kind: 'generator',
    ...model,
    // They change where workers elsewhere run the model.
    get maxInputLen() {
      return model.maxInputLen;
    },
    get maxSeqLen() {
      return model.maxSeqLen;
    },
    ...served,
    get fingerprint() {
      return loaded.info.fingerprint;
    },
    ...(engines === undefined ? {} : { engines }),
    statistics,
    kvCache: info,
    adapters,
    resetCache,
    watch: { onStats: statistics.onStats, statsJson, watchFormation },
    maxActiveRequests,
    fileName,
    defaultMaxTokens: defaultMaxTokens ?? model.sampling?.maxTokens ?? DEFAULT_MAX_TOKENS,
    toolCallParser,
    reasoningParser,
    maxLogProbs: maxLogProbs < 0 ? model.vocabSize : maxLogProbs,
  };
}

/**
 * Resident bytes of a process, mapped files included; null where the system does not report them, or the
 * process has ended.
 */
function residentBytes(pid: number): number | null {
  try {
    const kibibytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
    return kibibytes === undefined ? null : 1024 * Number(kibibytes);
  } catch {
    return null;
  }
}
