import type { IterationStats } from '../../../callbacks/gpt-manager-options.js';
import type { TextRequest } from '../../../src/generation/text-generation.js';
import type { ModelOptions } from '../../../src/serving/model-options.js';
import type { RunningModel } from '../../../src/serving/running-model.js';
import { countOf, type FlagValues } from '../../compare/flags.js';
import { markdownTable, tableRow } from '../../support/markdown-table.js';
import { median } from '../../support/statistics.js';
import { takeRounds } from '../../support/take-rounds.js';
import { type BenchOutput, defineBench } from '../bench.js';
import { compiled } from '../compiled.js';
import { MODEL_FLAG, modelOf, roundsFlag } from '../flags.js';
import { compareFullBatch, type FullBatchPrompt } from './full-batch.js';
import { EDITS, SUMMARIES, type Task } from './prompts.js';

type LoadModelModule = typeof import('../../../src/serving/load-model.js') &
  typeof import('../../../src/serving/find-engines.js');
type GenerationModule = typeof import('../../../src/generation/text-generation.js');

const FULL_BATCH = 64;
const FLAGS = {
  ...MODEL_FLAG,
  weights: { argument: 'TYPE', default: 'auto', help: 'weights of the engine with lookup (default auto)' },
  'full-steps': { argument: 'N', default: '400', help: 'steps of each side of a full batch (default 400)' },
  threads: { argument: 'N', default: '', help: 'threads of the executor (default: as the server chooses)' },
  only: { argument: 'TEXT', default: '', help: 'workloads whose names hold this text' },
  ...roundsFlag(3),
} as const;
type Flags = FlagValues<typeof FLAGS>;

/** Requests that run side by side. */
interface Workload {
  name: string;
  /** Each runs to its end before the next begins. */
  batches: TextRequest[][];
}

/** Sequences that take all places of the batch from its first step to its last. */
interface FullBatch {
  name: string;
  prompts: FullBatchPrompt[];
}

/** A step without context: the time it took, and the tokens drawn in it. */
interface Step {
  ms: number;
  tokens: number;
}

interface Measured {
  steps: Step[];
  drafted: number;
  accepted: number;
  /** Tokens of all answers, for the comparison of both sides. */
  answers: string;
}

/** Texts that repeat in a full batch are the lookup's: a draft model would have to read all of them first. */
const isForDraftModels = ({ name }: { name: string }) => !name.includes('8 seq') && !name.startsWith('texts');

/** The part of the report on an engine with these options. */
async function part(
  { loadModel, findEngines }: LoadModelModule,
  options: Pick<ModelOptions, 'model' | 'weights' | 'speculate' | 'draftModel'>,
  includes: (workload: { name: string }) => boolean,
  flags: Flags,
  progress: BenchOutput['progress'],
): Promise<string> {
  const isAsked = ({ name }: { name: string }) => name.includes(flags.only);
  const threads = flags.threads === '' ? undefined : countOf('threads', flags.threads);
  const loaded = await loadModel({
    ...options,
    maxActiveRequests: FULL_BATCH,
    maxContextTokens: 1024,
    kvCacheTokens: FULL_BATCH * 1024,
    chunkedPrefill: true,
    prefixCaching: true, // the prompts are the same in each round, and of no interest
    ...(threads === undefined ? {} : { threads }),
  });
  const rows: string[][] = [];
  const full: FullBatch[] = [];
  try {
    full.push(...(await fullBatches(loaded)).filter((batch) => includes(batch) && isAsked(batch)));
    for (const workload of await workloads(loaded)) {
      if (!includes(workload) || !isAsked(workload)) continue;
      rows.push(await compare(loaded, workload, countOf('rounds', flags.rounds)));
      progress(tableRow(rows.at(-1)!));
    }
  } finally {
    await loaded.close();
  }
  const { model, weights, speculate, draftModel } = options;
  const { directory } = (await findEngines({ model, weights })).engine;
  for (const { name, prompts } of full) {
    const speculation = {
      ...(speculate === undefined ? {} : { speculate }),
      ...(draftModel === undefined ? {} : { draftEnginePath: draftModel }),
    };
    const steps = countOf('full-steps', flags['full-steps']);
    const result = await compareFullBatch(directory, speculation, prompts, { steps, threads });
    const { without, withDrafts, ratio, interval, drafted, accepted } = result;
    const shown = `${ratio.toFixed(3)} (${interval.map((end) => end.toFixed(3)).join(' to ')})`;
    rows.push(rowOf({ name, without, withDrafts, ratio: shown, drafted, accepted }));
    progress(tableRow(rows.at(-1)!));
  }
  return textOf(loaded, rows, flags);
}

async function workloads(loaded: RunningModel<'generator'>): Promise<Workload[]> {
  const edits = await Promise.all(EDITS.map((task) => requestOf(loaded, task)));
  const summaries = await Promise.all(SUMMARIES.map((task) => requestOf(loaded, task)));
  const all = [...edits, ...summaries];
  const eight = Array.from({ length: 8 }, (_, i) => ({
    ...all[i % all.length]!,
    maxTokens: 96,
    ignoreEos: true,
  }));
  return [
    { name: 'code editing, 1 sequence', batches: edits.map((request) => [request]) },
    { name: 'summaries that quote, 1 sequence', batches: summaries.map((request) => [request]) },
    { name: 'random tokens, 1 sequence', batches: [1, 2, 3].map((seed) => [randomRequest(loaded, seed)]) },
    { name: `editing and summaries, 8 sequences`, batches: [eight] },
  ];
}

/** None of them ends: greedy answers repeat themselves after a while, which is what a lookup is looking for. */
async function fullBatches(loaded: RunningModel<'generator'>): Promise<FullBatch[]> {
  const tasks = await Promise.all([...EDITS, ...SUMMARIES].map((task) => requestOf(loaded, task)));
  const places = Array.from({ length: FULL_BATCH }, (_, i) => i);
  const greedy = places.map((i) => ({
    tokens: Int32Array.from(tasks[i % tasks.length]!.promptTokens),
    temperature: 0,
  }));
  const random = places.map((i) => ({
    tokens: Int32Array.from(randomRequest(loaded, i + 1).promptTokens),
    temperature: 2,
  }));
  const all = tasks.flatMap(({ promptTokens }) => [...promptTokens]);
  const repeating = (count: number, length: number): FullBatch => ({
    name: `texts of ${length} tokens that repeat, ${count} sequences`,
    prompts: places.slice(0, count).map((i) => ({ tokens: repeatedText(all, i, length), temperature: 0 })),
  });
  return [
    { name: `editing and summaries, ${FULL_BATCH} sequences`, prompts: greedy },
    { name: `random tokens, ${FULL_BATCH} sequences`, prompts: random },
    repeating(FULL_BATCH / 2, 1024),
    repeating(FULL_BATCH, 1024),
    repeating(FULL_BATCH / 2, 2048),
    repeating(FULL_BATCH, 2048),
  ];
}

/**
 * A text whose second half copies its first one, as an answer does that edits or quotes a document; each begins elsewhere in `text`,
 * which is shorter, so that no two sequences share a beginning.
 */
function repeatedText(text: readonly number[], index: number, length: number): Int32Array {
  const half = Math.ceil(length / 2);
  return Int32Array.from({ length }, (_, i) => text[((i % half) + index * 29) % text.length]!);
}

async function requestOf(
  { model }: RunningModel<'generator'>,
  { messages, maxTokens }: Task,
): Promise<TextRequest> {
  const continues = messages.at(-1)!.content !== '';
  const shown = continues ? messages : messages.slice(0, -1);
  const promptTokens = await model.codec.encodeChat(shown, {
    addGenerationPrompt: !continues,
    continueFinalMessage: continues,
  });
  return { promptTokens, maxTokens, temperature: 0 };
}

/** Nothing of it comes a second time but by chance, in the prompt or, drawn at a high temperature, in the answer. */
function randomRequest({ model }: RunningModel<'generator'>, seed: number): TextRequest {
  let state = seed;
  const promptTokens = Int32Array.from({ length: 200 }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state % model.vocabSize;
  });
  return { promptTokens, maxTokens: 128, temperature: 2, seed: BigInt(seed), ignoreEos: true };
}

async function compare(
  loaded: RunningModel<'generator'>,
  workload: Workload,
  rounds: number,
): Promise<string[]> {
  const sides = { without: [] as Measured[], with: [] as Measured[] };
  const { generateText } = await compiled<GenerationModule>('src/generation/text-generation.js');
  const tokensOf = (request: TextRequest) => tokensOfAnswer(generateText, loaded, request);
  await measure(loaded, workload, true, tokensOf);
  await takeRounds(['without', 'with'] as const, rounds, async (side) => {
    sides[side].push(await measure(loaded, workload, side === 'with', tokensOf));
  });
  const same = new Set([...sides.without, ...sides.with].map(({ answers }) => answers)).size === 1;
  if (!same) throw new Error(`${workload.name}: the answers differ.`);
  const [without, withDrafts] = [rateOfRuns(sides.without), rateOfRuns(sides.with)];
  const { drafted, accepted } = sides.with.at(-1)!;
  const ratio = (withDrafts / without).toFixed(2);
  return rowOf({ name: workload.name, without, withDrafts, ratio, drafted, accepted });
}

interface Row {
  name: string;
  without: number;
  withDrafts: number;
  ratio: string;
  drafted: number;
  accepted: number;
}

function rowOf({ name, without, withDrafts, ratio, drafted, accepted }: Row): string[] {
  const share = drafted === 0 ? '-' : `${((100 * accepted) / drafted).toFixed(0)} %`;
  return [name, without.toFixed(0), withDrafts.toFixed(0), ratio, String(drafted), share];
}

const tokensPerSecond = (steps: readonly Step[]) =>
  (1000 * steps.reduce((sum, { tokens }) => sum + tokens, 0)) / steps.reduce((sum, { ms }) => sum + ms, 0);

const rateOfRuns = (all: readonly Measured[]) => median(all.map(({ steps }) => tokensPerSecond(steps)));

/** Runs the workload once. Steps with context are the same on both sides, and are not counted. */
async function measure(
  loaded: RunningModel<'generator'>,
  { batches }: Workload,
  drafts: boolean,
  tokensOf: (request: TextRequest) => Promise<string>,
): Promise<Measured> {
  const seen = { steps: [] as Step[], drafted: 0, accepted: 0 };
  const stop = loaded.statistics.onStats((stats: IterationStats) => {
    seen.drafted += stats.draftedTokens;
    seen.accepted += stats.acceptedDraftTokens;
    if (stats.contextTokens > 0) return;
    seen.steps.push({ ms: stats.iterationMs, tokens: stats.generatedTokens });
  });
  const answers: string[] = [];
  for (const batch of batches) {
    const of = (request: TextRequest) => ({ ...request, ...(drafts ? {} : { maxDraftLen: 0 }) });
    answers.push(...(await Promise.all(batch.map((request) => tokensOf(of(request))))));
  }
  stop();
  return { ...seen, answers: answers.join(' ') };
}

async function tokensOfAnswer(
  generateText: GenerationModule['generateText'],
  { model }: RunningModel<'generator'>,
  request: TextRequest,
): Promise<string> {
  const tokens: number[] = [];
  for await (const piece of generateText(model, request)) tokens.push(...piece.tokens);
  return tokens.join(',');
}

function textOf({ info }: RunningModel<'generator'>, rows: readonly string[][], flags: Flags): string {
  const head = ['workload', 'tokens/s without', 'with drafts', 'ratio', 'draft tokens', 'accepted'];
  return [
    `${info.instructionSet}; ${info.threads} threads, ${info.weights} weights; medians of ${flags.rounds} alternations in one engine. ` +
      `${FULL_BATCH} sequences: ${flags['full-steps']} steps of an engine with speculation and one without, in turns, none of which ends; ` +
      'the median of ratios over ten steps each, and the interval that holds it in 95 of 100 resamplings.',
    '',
    markdownTable(head, rows),
  ].join('\n');
}

/**
 * Gain by prompt lookup, and its cost where there is nothing to find. There is an engine with --speculate ngram, and one with
 * bf16 weights and, as draft model, the same model with int4 weights; requests with and without `max_draft_len: 0` take
 * turns in each. A full batch is compared by two engines that take turns step by step.
 */
export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/speculation.md',
  sections: ['speculation'],
  async run(flags, { progress, report }) {
    const model = modelOf(flags);
    const loader = {
      ...(await compiled<LoadModelModule>('src/serving/load-model.js')),
      ...(await compiled<LoadModelModule>('src/serving/find-engines.js')),
    };
    const weights = flags.weights as 'auto';
    const lookup = await part(loader, { model, weights, speculate: 'ngram' }, () => true, flags, progress);
    // There is one real model to measure with: the same model with coarser weights is what can draft for it.
    const draftModel = (await loader.findEngines({ model, weights: 'int4' })).engine.directory;
    const drafting = { model, weights: 'bf16', draftModel } as const;
    const drawn = await part(loader, drafting, isForDraftModels, flags, progress);
    const lines = [lookup, '', 'With a draft model, the same one with int4 weights:', '', drawn];
    report({ section: 'speculation', conditions: '', lines });
  },
});
