import { performance } from 'node:perf_hooks';
import { worded } from '../../../base/named-text.js';
import type { IterationStats, OptionalParams } from '../../../callbacks/gpt-manager-options.js';
import type { InferenceRequest, Tensor } from '../../../callbacks/types.js';
import type { GenerationLoop } from '../../../engine/generation-loop.js';
import type { IterationReport, LoopCallbacks } from '../../../engine/intake/loop-callbacks.js';
import type { DraftModel, DraftModelParts } from '../../../engine/speculation/draft-model.js';
import { createLoop } from '../../../engine/worker/create-loop.js';
import { loadExecutor } from '../../../engine/worker/load-executor.js';
import { KnownDrafts } from '../../support/known-drafts.js';
import { Random } from '../../support/random.js';
import { median, percentile } from '../../support/statistics.js';

/** A sequence of the batch. */
export interface FullBatchPrompt {
  tokens: Int32Array;
  /** 0: greedy. */
  temperature: number;
}

export interface FullBatchResult {
  /** Tokens per second of an engine without any speculation, and of one with it. */
  without: number;
  withDrafts: number;
  ratio: number;
  /** The interval that holds the ratio in 95 of 100 resamplings. */
  interval: [number, number];
  steps: number;
  drafted: number;
  accepted: number;
}

export interface FullBatchOptions {
  steps: number;
  threads: number | undefined;
  /** Tokens that are known to come take the place of those drawn, a share of them, `rate`, the right ones. Absent: those drawn count. */
  known?: { answers: Answers; rate: number };
}

/** The tokens of each request, by its id. */
export type Answers = ReadonlyMap<bigint, readonly number[]>;

/** Steps of each side that are compared with one another: long enough to hold the few that have drafts. */
const WINDOW = 10;
const RESAMPLES = 2000;
/** Room for this many tokens of a sequence in a step: accepted drafts bring more than one. */
const MAX_TOKENS_A_STEP = 4;
const TOKENS_PER_BLOCK = 32;

/**
 * Two engines in one thread, one without speculation, take turns step by step, so that whatever else the machine does
 * meets both. Only steps in which every sequence of the batch draws are counted, and none ends in them.
 *
 *   without   |context|s1|  |s2|  |s3|  ...       every second pair the other one begins
 *   with      |context|  |s1|  |s2|  |s3| ...
 */
export async function compareFullBatch(
  enginePath: string,
  speculation: Pick<OptionalParams, 'speculate' | 'draftEnginePath'>,
  prompts: readonly FullBatchPrompt[],
  options: FullBatchOptions,
): Promise<FullBatchResult> {
  const { steps, known } = options;
  const params = paramsFor(prompts, options);
  const without = await Side.open(enginePath, params, prompts);
  const withDrafts = await Side.open(
    enginePath,
    { ...params, ...speculation },
    prompts,
    known && ((parts) => knownDrafts(parts, known)),
  );
  for (const side of [without, withDrafts]) side.readPrompts();
  for (let pair = 0; pair < steps && !without.hasEnded && !withDrafts.hasEnded; pair++) {
    const order = pair % 2 === 0 ? [without, withDrafts] : [withDrafts, without];
    for (const side of order) side.step();
  }
  for (const side of [without, withDrafts]) side.close();
  return compared(without, withDrafts);
}

/** What an engine without speculation answers to the requests of a comparison. */
export async function answersTo(
  enginePath: string,
  prompts: readonly FullBatchPrompt[],
  options: Omit<FullBatchOptions, 'known'>,
): Promise<Answers> {
  const side = await Side.open(enginePath, paramsFor(prompts, options), prompts);
  side.readPrompts();
  while (!side.hasEnded) side.step();
  side.close();
  return side.answers;
}

function knownDrafts(
  parts: DraftModelParts,
  { answers, rate }: { answers: Answers; rate: number },
): DraftModel {
  const random = new Random(1);
  return new KnownDrafts(
    parts,
    ({ requestId }) => answers.get(requestId),
    rate,
    () => random.below(2 ** 20) / 2 ** 20,
  );
}

function paramsFor(
  prompts: readonly FullBatchPrompt[],
  { steps, threads }: FullBatchOptions,
): OptionalParams {
  const longest = Math.max(...prompts.map(({ tokens }) => tokens.length));
  const maxSeqLen = TOKENS_PER_BLOCK * Math.ceil((longest + MAX_TOKENS_A_STEP * steps) / TOKENS_PER_BLOCK);
  return {
    maxNumSequences: prompts.length,
    maxSeqLen,
    enableChunkedContext: true,
    tokensPerBlock: TOKENS_PER_BLOCK,
    kvCacheConfig: { maxTokens: prompts.length * maxSeqLen },
    ...(threads === undefined ? {} : { threads }),
  };
}

interface Step {
  ms: number;
  tokens: number;
}

class Side implements LoopCallbacks {
  readonly wantsStatsJson = false;
  readonly steps: Step[] = [];
  drafted = 0;
  accepted = 0;
  hasEnded = false;
  readonly answers = new Map<bigint, number[]>();
  #requests: InferenceRequest[];
  #stats: IterationStats | null = null;
  #loop: GenerationLoop | null = null;
  #close: () => void = () => {};

  private constructor(prompts: readonly FullBatchPrompt[], maxSeqLen: number) {
    this.#requests = prompts.map((prompt, i) => requestOf(prompt, i, maxSeqLen));
  }

  static async open(
    enginePath: string,
    params: OptionalParams,
    prompts: readonly FullBatchPrompt[],
    newDraftModel?: (parts: DraftModelParts) => DraftModel,
  ): Promise<Side> {
    const modelType = 'InflightFusedBatching';
    const side = new Side(prompts, params.maxSeqLen!);
    const loaded = await loadExecutor({ enginePath, params, modelType });
    side.#loop = createLoop(
      loaded,
      { callbacks: side },
      {
        modelType,
        schedulerPolicy: 'GUARANTEED_NO_EVICT',
        maxBeamWidth: 1,
        terminateReqId: null,
        params,
      },
      null,
      newDraftModel,
    );
    side.#close = () => {
      loaded.draft?.executor.close();
      loaded.executor.close();
    };
    return side;
  }

  readPrompts(): void {
    const numSequences = this.#requests.length;
    do this.#loop!.iterate();
    while (this.#stats?.generationRequests !== numSequences);
  }

  step(): void {
    const startMs = performance.now();
    this.#loop!.iterate();
    const ms = performance.now() - startMs;
    const { generatedTokens, draftedTokens, acceptedDraftTokens, completedRequests } = this.#stats!;
    if (completedRequests > 0) this.hasEnded = true;
    this.steps.push({ ms, tokens: generatedTokens });
    this.drafted += draftedTokens;
    this.accepted += acceptedDraftTokens;
  }

  close(): void {
    this.#close();
  }

  getInferenceRequests(): InferenceRequest[] {
    const requests = this.#requests;
    this.#requests = [];
    return requests;
  }

  pollStopSignals(): Iterable<bigint> {
    return [];
  }

  endIteration({ responses, stats }: IterationReport): void {
    for (const { text } of responses.errors) throw new Error(worded(text));
    for (let i = 0; i < responses.count; i++) this.#keepTokens(responses, i);
    if (stats !== null) this.#stats = stats;
  }

  #keepTokens({ requestIds, tokens, tokenStart }: IterationReport['responses'], i: number): void {
    const answer = this.answers.get(requestIds[i]!) ?? [];
    answer.push(...tokens.subarray(tokenStart[i]!, tokenStart[i + 1]!));
    this.answers.set(requestIds[i]!, answer);
  }

  reportError(error: Error): void {
    throw error;
  }
}

function requestOf(
  { tokens, temperature }: FullBatchPrompt,
  index: number,
  maxSeqLen: number,
): InferenceRequest {
  const one = (data: Tensor['data']): Tensor => ({ shape: [1], data });
  return {
    requestId: BigInt(index + 1),
    inputs: {
      input_ids: { shape: [1, tokens.length], data: tokens },
      request_output_len: one(Int32Array.of(maxSeqLen - tokens.length)),
      temperature: one(Float32Array.of(temperature)),
      random_seed: one(BigUint64Array.of(BigInt(index + 1))),
      streaming: one(Uint8Array.of(1)),
      end_id: one(Int32Array.of(-1)),
    },
  };
}

function compared(without: Side, withDrafts: Side): FullBatchResult {
  const windows = Math.floor(Math.min(without.steps.length, withDrafts.steps.length) / WINDOW);
  const ratesOf = ({ steps }: Side) =>
    Array.from({ length: windows }, (_, i) => rateOf(steps.slice(i * WINDOW, (i + 1) * WINDOW)));
  const [rates, ratesWith] = [ratesOf(without), ratesOf(withDrafts)];
  const ratios = rates.map((rate, i) => ratesWith[i]! / rate);
  return {
    without: median(rates),
    withDrafts: median(ratesWith),
    ratio: median(ratios),
    interval: intervalOfMedian(ratios),
    steps: windows * WINDOW,
    drafted: withDrafts.drafted,
    accepted: withDrafts.accepted,
  };
}

const rateOf = (steps: readonly Step[]) =>
  (1000 * steps.reduce((sum, { tokens }) => sum + tokens, 0)) / steps.reduce((sum, { ms }) => sum + ms, 0);

/** The interval of the median, found by drawing as many of the values again and again. */
function intervalOfMedian(values: readonly number[]): [number, number] {
  let state = 1;
  const draw = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return values[(state >>> 8) % values.length]!;
  };
  const medians = Array.from({ length: RESAMPLES }, () => median(values.map(draw)));
  return [percentile(medians, 0.025), percentile(medians, 0.975)];
}
