import { failure } from '../../callbacks/request-failure.js';
import { RequestError } from '../../callbacks/token-request.js';
import { countFingerprints } from '../../cluster/gateway/card-fingerprint.js';
import type { QueueGateway } from '../../cluster/gateway/queue-gateway.js';
import type { ModelCard } from '../../cluster/nats/beat.js';
import type { RosterPool, Share } from '../../cluster/nats/roster-pool.js';
import { readEngineFacts } from '../../engine/building/engine.js';
import { batchManagerStatsJson, statsWithoutIterations } from '../../engine/loop/loop-statistics.js';
import type { CloseOptions } from '../../host/in-process-host.js';
import { blocksToCompletion } from '../../scheduler/tokens/block-needs.js';
import { ModelCodec } from '../generation/model-codec.js';
import { knownDefaults } from '../generation/sampling-defaults.js';
import type { TextModel } from '../generation/text-model.js';
import { factsOfEngine } from '../serving/model-facts.js';
import { ModelState } from '../serving/model-state.js';
import type { PictureCounts } from '../serving/pictures/model-sight.js';
import type { EngineCounts, ModelInfo, RunningModel } from '../serving/running-model.js';
import { LearnedAdapters } from './learned-adapters.js';
import type { LoadingWorkers } from './loading-workers.js';

export interface LearnedOptions {
  gateway: QueueGateway;
  /** Name under which the gateway knows it; two models may follow each other under one name for clients. */
  key: string;
  card: ModelCard;
  /** Folder with the files of the card. */
  folder: string;
  /** What workers report until they take requests. */
  loading: Pick<LoadingWorkers, 'of'>;
}

/**
 * A model whose engine is elsewhere, as one that runs here: everything above asks it as it asks any other.
 * @throws TokenizerError, ChatTemplateError
 */
export async function learnedModel({
  gateway,
  key,
  card,
  folder,
  loading,
}: LearnedOptions): Promise<RunningModel<'generator'>> {
  const codec = await ModelCodec.open(folder);
  const pools = () => gateway.poolsOf(key);
  const state = new ModelState();
  const info = infoOf(card, folder);
  state.executor = { name: info.executor, fallback: null };
  const { vocabSize, endTokenIds: endTokens } = card.engine;
  const most = longest(card, pools);
  const { files, ...sight } = await sightOf(card, folder, codec);
  const model: TextModel = {
    codec,
    engine: {
      submit: (request) => gateway.submit(key, request)[0]!,
      submitSeveral: (request) => gateway.submit(key, request),
      checkRoom: (queueKey) => gateway.checkRoom(key, queueKey),
      checkEngine: (engine, adapterName) => gateway.checkEngine(key, engine, adapterName),
    },
    vocabSize,
    // Workers with other limits come and go.
    get maxInputLen() {
      return most('maxInputLen');
    },
    get maxSeqLen() {
      return most('maxSeqLen');
    },
    endTokens,
    ...sight,
    sampling: info.sampling,
    fitsTogether: (count, prompt, maxTokens) => fitTogether(card, pools(), count, prompt, maxTokens),
  };
  const counts = (): EngineCounts => {
    const sum = (of: keyof Share) => pools().reduce((all, { sums }) => all + sums[of], 0);
    return { ...gateway.countsOf(key), maxBlocks: sum('maxBlocks'), usedBlocks: sum('usedBlocks') };
  };
  const cards = () => pools().map((one) => one.model);
  const adapters = new LearnedAdapters(model, cards);
  return {
    kind: 'generator',
    info,
    engines: (adapter) => countFingerprints(pools(), adapter),
    model,
    adapters,
    // Events of caches are those of workers.
    kvEvents: null,
    state,
    facts: () => factsOfEngine(readEngineFacts(folder)),
    // A gateway has no iterations.
    statistics: {
      counts,
      routing: () => gateway.routingOf(key),
      unusedPrefillers: () => gateway.numUnusedPrefillersOf(key),
      shares: () => gateway.sharesOf(key),
      workers: () => ({ ready: gateway.numWorkersOf(key), ...loading.of(card.name) }),
      ...(files && { pictures: () => ({ files: files() }) }),
      onStats: () => () => {},
    },
    statsJson: () => statsJson(counts(), card),
    watchFormation: () => () => {},
    resetCache: () =>
      Promise.reject(
        RequestError.of(
          failure('unsupported', 'A gateway cannot reset the caches of its workers; restart them.'),
        ),
      ),
    onError: () => {},
    isStuck: () => false,
    close: async (options: CloseOptions = {}) => {
      await ended(gateway, key, options);
      await codec.close();
    },
  };
}

/** What pictures become for its workers; the code for them is imported with the first model that sees. */
async function sightOf(
  { sight, whyBlind, engine: { vocabSize } }: ModelCard,
  folder: string,
  codec: ModelCodec,
): Promise<Pick<TextModel, 'sight' | 'whyBlind'> & { files?: () => PictureCounts['files'] }> {
  if (sight === undefined) return whyBlind === undefined ? {} : { whyBlind };
  const { openSendingSight } = await import('../serving/pictures/open-sending-sight.js');
  const opened = openSendingSight(folder, sight, { codec, vocabSize });
  return typeof opened === 'string' ? { whyBlind: opened } : { sight: opened, files: () => opened.files };
}

/** Lets a model's requests end, or ends them. */
async function ended(
  gateway: QueueGateway,
  key: string,
  { abort = false, timeoutMs }: CloseOptions,
): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  if (abort) gateway.closeModel(key);
  else if (timeoutMs !== undefined) timer = setTimeout(() => gateway.closeModel(key), timeoutMs);
  await gateway.whenEmpty(key);
  clearTimeout(timer);
  gateway.closeModel(key);
}

function infoOf({ info, engine, sampling }: ModelCard, enginePath: string): ModelInfo {
  const { maxInputLen, maxSeqLen, tokensPerBlock } = engine;
  const told = info as unknown as Omit<
    ModelInfo,
    'enginePath' | 'executorFallback' | 'loweredContext' | 'expertReading' | 'samplingLeftOut' | 'remarks'
  >;
  return {
    ...told,
    enginePath,
    executorFallback: null,
    maxInputLen,
    maxSeqLen,
    tokensPerBlock,
    loweredContext: null,
    expertReading: null,
    sampling: knownDefaults(sampling),
    samplingLeftOut: [],
    remarks: [],
  };
}

/** Reads the longest that any worker takes; while there is none, what the last ones took. */
function longest(
  { engine }: ModelCard,
  pools: () => readonly RosterPool[],
): (limit: 'maxInputLen' | 'maxSeqLen') => number {
  const last = { maxInputLen: engine.maxInputLen, maxSeqLen: engine.maxSeqLen };
  return (limit) => {
    const taken = pools().map(({ model }) => model.engine[limit]);
    if (taken.length > 0) last[limit] = Math.max(...taken);
    return last[limit];
  };
}

/**
 * True where `count` sequences fit together into one iteration, and into the pool of blocks, of every worker.
 */
function fitTogether(
  { engine }: ModelCard,
  pools: readonly RosterPool[],
  count: number,
  promptLength: number,
  maxNewTokens: number,
): boolean {
  const sequences = { promptLength, maxNewTokens, beamWidth: count, blocksHeld: 0 };
  const fits = (limits: ModelCard['engine'], maxBlocks: number) => {
    const { maxSequences, maxNumTokens, maxAttentionWindow, tokensPerBlock } = limits;
    if (count > Math.min(maxSequences, maxNumTokens)) return false;
    if (maxAttentionWindow !== null && promptLength + maxNewTokens > maxAttentionWindow) return false;
    const pool = { tokensPerBlock, maxAttentionWindow: Number.POSITIVE_INFINITY };
    return blocksToCompletion(sequences, pool) <= maxBlocks;
  };
  if (pools.length === 0) return fits(engine, Number.POSITIVE_INFINITY);
  return pools.every(({ model, fewestBlocks }) => fits(model.engine, fewestBlocks));
}

/** The batch manager's statistics, as far as a gateway knows them: sums over the workers. */
function statsJson({ running, waiting, maxBlocks, usedBlocks }: EngineCounts, { engine }: ModelCard): string {
  const { tokensPerBlock, maxSequences } = engine;
  const blocks = { maxBlocks, usedBlocks, freeBlocks: maxBlocks - usedBlocks, tokensPerBlock };
  const stats = statsWithoutIterations(maxSequences, blocks);
  const now = { ...stats, activeRequests: running + waiting, scheduledRequests: running };
  return batchManagerStatsJson('InflightFusedBatching', now, 0, new Date());
}
