// What prompt lookup brings, and what it costs where there is nothing to find:
// `npm run build:ts && npx tsx tools/speculation-bench/main.ts --model DIR_OR_GGUF [--weights int4] [--rounds 3] [--full-steps 400] [--write]`.
// One engine with --speculate ngram, and one with bf16 weights and, as draft model, the same model with int4 weights; requests with
// and without `max_draft_len: 0` take turns in each. A full batch is compared by two engines that take turns step by step.
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import type { IterationStats } from '../../callbacks/gpt-manager-options.js';
import type { TextRequest } from '../../src/generation/text-generation.js';
import type { LoadedModel, ModelOptions } from '../../src/load-model.js';
import { writeSection } from '../document-section.js';
import { median } from '../support/statistics.js';
import { compareFullBatch, type FullBatchPrompt } from './full-batch.js';
import { EDITS, SUMMARIES, type Task } from './prompts.js';

// The engine's thread runs what tsc wrote.
const { findEngines, loadModel }: typeof import('../../src/load-model.js') = await import(
  '../../dist/src/load-model.js' as string
);
const { generateText }: typeof import('../../src/generation/text-generation.js') = await import(
  '../../dist/src/generation/text-generation.js' as string
);

const FULL_BATCH = 64;
const { values: flags } = parseArgs({
  options: {
    model: { type: 'string' },
    weights: { type: 'string', default: 'auto' },
    rounds: { type: 'string', default: '3' },
    'full-steps': { type: 'string', default: '400' },
    threads: { type: 'string' },
    only: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
});

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

async function main(): Promise<void> {
  const { model } = flags;
  if (model === undefined) throw new Error('Give --model DIR_OR_GGUF.');
  const weights = flags.weights as 'auto';
  const lookup = await table({ model, weights, speculate: 'ngram' }, () => true);
  // What the repository has of real models is one; its own coarser weights are what can draft for it.
  const draftModel = (await findEngines({ model, weights: 'int4' })).engine.directory;
  const drawn = await table({ model, weights: 'bf16', draftModel }, isForDraftModels);
  const text = [lookup, 'With a draft model, the same one with int4 weights:', drawn].join('\n\n');
  if (flags.write) writeSection('BENCHMARKS.md', 'speculation', text);
  else console.log(text);
}

const isForDraftModels = ({ name }: Workload) => !name.includes('8 seq');

/** The table of an engine with these options. */
async function table(
  options: Pick<ModelOptions, 'model' | 'weights' | 'speculate' | 'draftModel'>,
  includes: (workload: Workload) => boolean,
): Promise<string> {
  const isAsked = ({ name }: { name: string }) => flags.only === undefined || name.includes(flags.only);
  const loaded = await loadModel({
    ...options,
    maxNumSequences: FULL_BATCH,
    maxSeqLen: 1024,
    maxTokens: FULL_BATCH * 1024,
    enableChunkedContext: true,
    enableBlockReuse: true, // the prompts are the same in each round, and of no interest
    ...(flags.threads === undefined ? {} : { threads: Number(flags.threads) }),
  });
  const rows: string[] = [];
  const full: FullBatch[] = [];
  try {
    full.push(...(await fullBatches(loaded)).filter(isAsked));
    for (const workload of await workloads(loaded)) {
      if (!includes(workload) || !isAsked(workload)) continue;
      rows.push(await compare(loaded, workload));
      console.log(rows.at(-1));
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
    const steps = Number(flags['full-steps']);
    const threads = flags.threads === undefined ? undefined : Number(flags.threads);
    const result = await compareFullBatch(directory, speculation, prompts, { steps, threads });
    const { without, withDrafts, ratio, interval, drafted, accepted } = result;
    const shown = `${ratio.toFixed(3)} (${interval.map((end) => end.toFixed(3)).join(' to ')})`;
    rows.push(rowOf({ name, without, withDrafts, ratio: shown, drafted, accepted }));
    console.log(rows.at(-1));
  }
  return report(loaded, rows);
}

async function workloads(loaded: LoadedModel): Promise<Workload[]> {
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
async function fullBatches(loaded: LoadedModel): Promise<FullBatch[]> {
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
  return [
    { name: `editing and summaries, ${FULL_BATCH} sequences`, prompts: greedy },
    { name: `random tokens, ${FULL_BATCH} sequences`, prompts: random },
  ];
}

async function requestOf({ model }: LoadedModel, { messages, maxTokens }: Task): Promise<TextRequest> {
  const continues = messages.at(-1)!.content !== '';
  const shown = continues ? messages : messages.slice(0, -1);
  const promptTokens = await model.codec.encodeChat(shown, {
    addGenerationPrompt: !continues,
    continueFinalMessage: continues,
  });
  return { promptTokens, maxTokens, temperature: 0 };
}

/** Nothing of it comes a second time but by chance, in the prompt or, drawn at a high temperature, in the answer. */
function randomRequest({ model }: LoadedModel, seed: number): TextRequest {
  let state = seed;
  const promptTokens = Int32Array.from({ length: 200 }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state % model.vocabSize;
  });
  return { promptTokens, maxTokens: 128, temperature: 2, seed: BigInt(seed), ignoreEos: true };
}

async function compare(loaded: LoadedModel, workload: Workload): Promise<string> {
  const sides = { without: [] as Measured[], with: [] as Measured[] };
  await measure(loaded, workload, true);
  for (let round = 0; round < Number(flags.rounds); round++) {
    const order = round % 2 === 0 ? (['without', 'with'] as const) : (['with', 'without'] as const);
    for (const side of order) sides[side].push(await measure(loaded, workload, side === 'with'));
  }
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

function rowOf({ name, without, withDrafts, ratio, drafted, accepted }: Row): string {
  const share = drafted === 0 ? '-' : `${((100 * accepted) / drafted).toFixed(0)} %`;
  return `| ${[name, without.toFixed(0), withDrafts.toFixed(0), ratio, drafted, share].join(' | ')} |`;
}

const tokensPerSecond = (steps: readonly Step[]) =>
  (1000 * steps.reduce((sum, { tokens }) => sum + tokens, 0)) / steps.reduce((sum, { ms }) => sum + ms, 0);

const rateOfRuns = (all: readonly Measured[]) => median(all.map(({ steps }) => tokensPerSecond(steps)));

/** Contexts are the same on both sides and not counted. */
async function measure(loaded: LoadedModel, { batches }: Workload, drafts: boolean): Promise<Measured> {
  const seen = { steps: [] as Step[], drafted: 0, accepted: 0 };
  const stop = loaded.onStats((stats: IterationStats) => {
    seen.drafted += stats.draftedTokens;
    seen.accepted += stats.acceptedDraftTokens;
    if (stats.contextTokens > 0) return;
    seen.steps.push({ ms: stats.iterationMs, tokens: stats.generatedTokens });
  });
  const answers: string[] = [];
  for (const batch of batches) {
    const of = (request: TextRequest) => ({ ...request, ...(drafts ? {} : { maxDraftLen: 0 }) });
    answers.push(...(await Promise.all(batch.map((request) => tokensOf(loaded, of(request))))));
  }
  stop();
  return { ...seen, answers: answers.join(' ') };
}

async function tokensOf({ model }: LoadedModel, request: TextRequest): Promise<string> {
  const tokens: number[] = [];
  for await (const piece of generateText(model, request)) tokens.push(...piece.tokens);
  return tokens.join(',');
}

function report({ info }: LoadedModel, rows: readonly string[]): string {
  return [
    `${cpus()[0]!.model.trim()}, ${cpus().length} cores, ${info.instructionSet}; ${info.threads} threads, ${info.weights} weights; ` +
      `medians of ${flags.rounds} alternations in one engine. ${FULL_BATCH} sequences: ${flags['full-steps']} steps of an engine with speculation and ` +
      `one without, in turns, none of which ends; the median of ratios over ten steps each, and the interval that holds it in 95 of 100 resamplings.`,
    '',
    '| workload | tokens/s without | with drafts | ratio | draft tokens | accepted |',
    '|---|---:|---:|---:|---:|---:|',
    ...rows,
  ].join('\n');
}

await main();
