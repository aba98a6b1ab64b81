import type { Executor, ExecutorOptions } from '../../../engine/executors/executor.js';
import type { NativeEngine } from '../../../engine/executors/native/native-executor.js';
import { countOf, type FlagValues } from '../../compare/flags.js';
import { markdownTable } from '../../support/markdown-table.js';
import { makeSamplingBatch, makeSamplingOutput } from '../../support/sampling-rows.js';
import { median } from '../../support/statistics.js';
import { makeStepBatch } from '../../support/step-batch.js';
import { makeTinyNetwork } from '../../support/tiny-network.js';
import { type BenchOutput, defineBench } from '../bench.js';
import { positiveOf, roundsFlag, secondsFlag } from '../flags.js';
import { makeRandomEngine, type RandomEngine } from '../iteration/random-engine.js';
import { CANDIDATES, type Candidate, type Profile } from './candidates.js';

const FLAGS = {
  only: {
    argument: 'A,B',
    default: '',
    help: 'executors whose names begin so (default: all that run on this machine)',
  },
  ...secondsFlag(1.5),
  ...roundsFlag(3),
} as const;
type Flags = FlagValues<typeof FLAGS>;

const COUNTS = [1, 8, 32, 64];
const PROMPT = 128;
const GENERATED = 64;
const TOKENS_PER_BLOCK = 32;
const BLOCKS = (PROMPT + GENERATED) / TOKENS_PER_BLOCK;
const OPTIONS: ExecutorOptions = {
  threads: 1,
  maxNumTokens: 1024,
  maxNumSequences: 64,
  maxLogitRows: 64,
  maxSeqLen: PROMPT + GENERATED,
  numBlocks: 64 * BLOCKS,
  tokensPerBlock: TOKENS_PER_BLOCK,
  kvDtype: 'f32',
};

type Step = (executor: Executor, split?: (ms: { forward: number; sample: number }) => void) => void;

/** @param cached tokens in the cache of each sequence; the rest of its `length` comes in this step */
function makeStep(
  { inverseFrequencies }: { inverseFrequencies: Float32Array },
  count: number,
  vocabSize: number,
  cached: number,
  length: number,
): Step {
  const sequences = Array.from({ length: count }, (_, s) => ({
    tokens: Array.from({ length }, (_, i) => (i * 7919 + s * 31) % vocabSize),
    cached,
    blocks: Array.from({ length: BLOCKS }, (_, b) => s * BLOCKS + b),
  }));
  const batch = makeStepBatch(sequences, { tokensPerBlock: TOKENS_PER_BLOCK, inverseFrequencies });
  const sampling = makeSamplingBatch(sequences.map(() => ({})));
  const output = makeSamplingOutput(count);
  return (executor, split) => {
    if (split === undefined) {
      executor.step(batch, sampling, output);
      return;
    }
    const begin = performance.now();
    executor.forward(batch);
    const middle = performance.now();
    executor.sample(sampling, output);
    split({ forward: middle - begin, sample: performance.now() - middle });
  };
}

/** Milliseconds of a step: the mean over the steps that fit into `seconds`. */
function timed(executor: Executor, steps: readonly Step[], seconds: number): number {
  steps[0]!(executor);
  const begin = performance.now();
  let done = 0;
  do steps[done++ % steps.length]!(executor);
  while (performance.now() - begin < 1000 * seconds);
  return (performance.now() - begin) / done;
}

/** Milliseconds of a step with 8 sequences, by the work they are spent on. */
interface Split {
  all: number;
  /** Time of drawing the tokens; null where it cannot be separated from the rest. */
  sample: number | null;
  kinds: Record<string, number>;
  /** Time that reading back the logits adds to a forward. */
  transfer: number;
  /** Time of a step of a network with the same ops and next to nothing to compute. */
  overhead: number;
}

interface Measured {
  /** Milliseconds of a generation step, by count of sequences. */
  steps: number[][];
  /** Milliseconds of a prompt of 8 times 128 tokens. */
  prompts: number[];
  split: Split | null;
}

interface Opened {
  candidate: Candidate;
  executor: Executor;
  profile?: Profile;
  loadMs: number;
  measured: Measured;
}

async function open(candidate: Candidate, engine: NativeEngine): Promise<Opened> {
  const begin = performance.now();
  const opened = await candidate.open(engine, OPTIONS);
  const loadMs = performance.now() - begin;
  return {
    candidate,
    ...opened,
    loadMs,
    measured: { steps: COUNTS.map(() => []), prompts: [], split: null },
  };
}

/** Milliseconds of a step of 8 sequences of a network with as many layers and ops, 8 wide: what calling them costs. */
async function overheadOf(candidate: Candidate): Promise<number> {
  const shape = { numLayers: 30, hiddenSize: 8, intermediateSize: 8, headDim: 8, numHeads: 1, numKvHeads: 1 };
  const tiny = makeTinyNetwork({ ...shape, vocabSize: 8 });
  const { executor } = await candidate.open(tiny, OPTIONS);
  const ms = timed(executor, [makeStep(tiny, 8, 8, 0, 1)], 0.5);
  executor.close();
  tiny.remove();
  return ms;
}

async function splitOf({ candidate, executor, profile }: Opened, step: Step): Promise<Split> {
  const times: { forward: number; sample: number }[] = [];
  profile?.(true);
  for (let i = 0; i < 20; i++) step(executor, (ms) => times.push(ms));
  const seconds = profile?.(false) ?? {};
  const kinds = Object.fromEntries(
    Object.entries(seconds).map(([kind, value]) => [kind, (1000 * value) / 20]),
  );
  const sample = median(times.map((time) => time.sample));
  const forward = median(times.map((time) => time.forward));
  const overhead = await overheadOf(candidate);
  if (!candidate.drawsOnDevice) return { all: forward + sample, sample, kinds, transfer: 0, overhead };
  const all = timed(executor, [step], 1);
  return { all, sample: null, kinds, transfer: Math.max(0, forward - all), overhead };
}

function rateTable(opened: readonly Opened[]): string {
  const [reference] = opened;
  const perSecond = (tokens: number, times: readonly number[]) => (1000 * tokens) / median(times);
  const cell = (tokens: number, ours: readonly number[], theirs: readonly number[]) => {
    const rate = perSecond(tokens, ours);
    return `${rate.toFixed(0)} (${((100 * rate) / perSecond(tokens, theirs)).toFixed(0)} %)`;
  };
  const rows = opened.map(({ candidate, executor, loadMs, measured }) => [
    `${candidate.name} (${executor.instructionSet})`,
    ...COUNTS.map((count, i) => cell(count, measured.steps[i]!, reference!.measured.steps[i]!)),
    cell(8 * PROMPT, measured.prompts, reference!.measured.prompts),
    `${(loadMs / 1000).toFixed(1)} s`,
  ]);
  const head = ['executor, f32', ...COUNTS.map((count) => `${count} seq.`), 'prompts', 'opened in'];
  return markdownTable(head, rows);
}

/** Matrix products, attention, and what is left of an iteration. */
function splitTable(opened: readonly Opened[]): string {
  const rows = opened.flatMap(({ candidate, measured: { split } }) => {
    if (split === null) return [];
    const { all, sample, kinds, transfer, overhead } = split;
    const products = (kinds.linear ?? 0) + (kinds.gatedLinear ?? 0) + (kinds.experts ?? 0);
    const attention = (kinds.attention ?? 0) + (kinds.ropeAndCache ?? 0);
    const rest = all - (sample ?? 0) - products - attention;
    const parts = products > 0 ? [products, attention, rest] : [null, null, null];
    const cells = [all, ...parts, sample, transfer, overhead].map((ms) => ms?.toFixed(2) ?? '-');
    return [[candidate.name, ...cells]];
  });
  const head = [
    'ms of a step, 8 sequences',
    'all',
    'products',
    'attention, RoPE, cache',
    'the rest',
    'drawing',
    'reading logits back',
    'calling ops',
  ];
  return markdownTable(head, rows);
}

/** Fills `measured` of each executor, in rounds, so that a machine that drifts drifts for all of them. */
async function measure(
  opened: readonly Opened[],
  engine: RandomEngine,
  flags: Flags,
  progress: BenchOutput['progress'],
): Promise<void> {
  const { vocabSize } = engine.plan;
  const seconds = positiveOf('seconds', flags.seconds);
  const rounds = countOf('rounds', flags.rounds);
  // Steps at the beginning, the middle and the end of an answer.
  const at = [PROMPT + 1, PROMPT + GENERATED / 2, PROMPT + GENERATED];
  const generation = COUNTS.map((count) =>
    at.map((length) => makeStep(engine, count, vocabSize, length - 1, length)),
  );
  const prompt = makeStep(engine, 8, vocabSize, 0, PROMPT);
  for (let round = 0; round < rounds; round++) {
    for (const [i, steps] of generation.entries()) {
      for (const { executor, measured } of opened) measured.steps[i]!.push(timed(executor, steps, seconds));
    }
    for (const { executor, measured } of opened) measured.prompts.push(timed(executor, [prompt], 0));
    progress(`round ${round + 1} of ${rounds}`);
  }
  for (const one of opened) one.measured.split = await splitOf(one, generation[1]![1]!);
}

/**
 * All executors that run on this machine, compared with the native one in f32: tokens/s, and on what an
 * iteration is spent. Random weights of SmolLM2-135M's shape in f32, K and V in f32; the executor alone,
 * greedy sampling included.
 */
export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/executors.md',
  sections: ['executors'],
  async run(flags, { progress, report }) {
    const only = flags.only === '' ? [''] : flags.only.split(',');
    const engine = makeRandomEngine('f32');
    try {
      const opened: Opened[] = [];
      for (const candidate of CANDIDATES.filter(({ name }) => only.some((begin) => name.startsWith(begin)))) {
        opened.push(await open(candidate, engine));
      }
      await measure(opened, engine, flags, progress);
      report({
        section: 'executors',
        conditions: `${process.version}, medians of ${flags.rounds} rounds`,
        lines: [rateTable(opened), '', splitTable(opened)],
      });
    } finally {
      engine.remove();
    }
  },
});
