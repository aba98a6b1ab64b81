import type { Engine } from '../../../engine/building/engine.js';
import type { NativeExecutor } from '../../../engine/executors/native/native-executor.js';
import { LlamaCpp } from '../../compare/llama-cpp.js';
import { median } from '../../support/statistics.js';
import { takeRounds } from '../../support/take-rounds.js';
import { loadKernels, tableOfSet } from '../kernel/hooks.js';
import { crowdStep, GENERATION, openCrowd, PROMPT, PROMPTS, type StepShape } from './crowd.js';
import { type AdapterKind, adapterBytes, randomAdapter } from './random-adapter.js';

const RANK = 16;
export const KINDS: readonly AdapterKind[] = [
  { name: 'all modules, saved in f32', rank: RANK, modules: null, saved: 'f32' },
  { name: 'all modules, saved in bf16', rank: RANK, modules: null, saved: 'bf16' },
  { name: 'q and v, saved in f32', rank: RANK, modules: ['q_proj', 'v_proj'], saved: 'f32' },
];
/** Shapes of steps, and over how many adapters their sequences are spread, in turns. */
const SHAPES: readonly { shape: StepShape; counts: readonly number[] }[] = [
  { shape: GENERATION, counts: [1, 8, 32] },
  { shape: PROMPTS, counts: [1, 8] },
  { shape: PROMPT, counts: [1] },
];
const SLOTS = 32;
/** Formats of llama.cpp that are compared with those of Skein. */
const LLAMA_TYPES: Readonly<Record<string, string>> = {
  int4: 'Q4_0',
  int8: 'Q8_0',
  bf16: 'BF16',
  f32: 'F32',
};
/** llama.cpp runs in one of this many rounds: it loads its model for each. */
const LLAMA_EVERY = 5;
const READ_BYTES = 256 * 2 ** 20;

export interface Peers {
  directory: string;
  /** A GGUF file. */
  model: string;
  /** An adapter for it. */
  adapter: string;
}

/** Some adapters in one shape of step. */
export interface Cell {
  shape: StepShape;
  /** Null: rows without an adapter in an executor with slots. */
  kind: AdapterKind | null;
  count: number;
  /** Median of the rounds: speed relative to the executor without slots, from 0. */
  share: number;
  /** Median of the rounds: milliseconds that the step takes longer. */
  extraMs: number;
  /** Of all A and B that the step reads. */
  bytes: number;
  ms: number;
}

/** Tokens per second without an adapter and with one. */
export interface PeerRates {
  without: number;
  with: number;
}

export interface MeasuredFormat {
  precision: string;
  instructionSet: string;
  cells: readonly Cell[];
  /** Plain reading by all threads, bytes per millisecond. */
  bytesPerMs: number;
  peer: { type: string; version: string; generation: PeerRates; prompt: PeerRates } | null;
}

interface Settings {
  threads: number;
  rounds: number;
  peers: Peers | null;
  progress(line: string): void;
}

interface Side {
  /** Milliseconds by round; other sides of the same shape are compared with the first. */
  ms: Map<number, number>;
  turn(round: number): void;
}

interface StepSide extends Side {
  shape: StepShape;
  /** Null: the executor without slots. */
  adapters: { kind: AdapterKind | null; count: number; bytes: number } | null;
}

/** Measures all cells of one format of the base model, and llama.cpp, in turns. */
export async function measureFormat(engine: Engine, settings: Settings): Promise<MeasuredFormat> {
  const { threads, rounds, peers } = settings;
  const plain = openCrowd(engine, threads, 0, RANK);
  const crowd = openCrowd(engine, threads, KINDS.length * SLOTS, RANK);
  try {
    const steps = stepSides(engine, plain, crowd);
    const reading = readingSide(plain.instructionSet, threads);
    const { precision } = engine.manifest;
    const peer = peers === null ? null : peerSides(peers, LLAMA_TYPES[precision]!, threads);
    const sides: Side[] = [...steps, reading, ...(peer?.sides ?? [])];
    for (const { turn } of [...steps, reading]) turn(-1);
    await takeRounds(sides, rounds, ({ turn }, round) => turn(round));
    return {
      precision,
      instructionSet: plain.instructionSet,
      cells: cellsOf(steps),
      bytesPerMs: READ_BYTES / Math.min(...reading.ms.values()),
      peer: peer === null ? null : peer.rates(),
    };
  } finally {
    plain.close();
    crowd.close();
  }
}

function stepSides(engine: Engine, plain: NativeExecutor, crowd: NativeExecutor): StepSide[] {
  const bytesOf = KINDS.map((kind, k) => {
    const adapters = Array.from({ length: SLOTS }, (_, i) =>
      randomAdapter(engine.manifest.config, kind, SLOTS * k + i),
    );
    for (const [i, adapter] of adapters.entries()) crowd.adapters!.put(SLOTS * k + i, adapter);
    return adapterBytes(adapters[0]!, kind);
  });
  const sides: StepSide[] = [];
  const add = (
    executor: NativeExecutor,
    shape: StepShape,
    adapters: StepSide['adapters'],
    slotOf: (sequence: number) => number | undefined = () => undefined,
  ) => {
    const ms = new Map<number, number>();
    const run = crowdStep(executor, engine, shape, slotOf);
    const turn = (round: number) => {
      const begin = performance.now();
      run();
      ms.set(round, performance.now() - begin);
    };
    sides.push({ shape, adapters, ms, turn });
  };
  for (const { shape, counts } of SHAPES) {
    add(plain, shape, null);
    add(crowd, shape, { kind: null, count: 0, bytes: 0 });
    for (const [k, kind] of KINDS.entries())
      for (const count of counts)
        add(crowd, shape, { kind, count, bytes: count * bytesOf[k]! }, (s) => SLOTS * k + (s % count));
  }
  return sides;
}

function cellsOf(sides: readonly StepSide[]): Cell[] {
  return sides.flatMap(({ shape, adapters, ms }) => {
    if (adapters === null) return [];
    const base = sides.find((side) => side.shape === shape && side.adapters === null)!.ms;
    const all = [...ms].filter(([round]) => round >= 0);
    const share = median(all.map(([round, time]) => base.get(round)! / time));
    const extraMs = median(all.map(([round, time]) => time - base.get(round)!));
    return [{ shape, ...adapters, share, extraMs, ms: median(all.map(([, time]) => time)) }];
  });
}

function readingSide(isa: string, threads: number): Side {
  const kernels = loadKernels();
  const table = tableOfSet(kernels, isa);
  const data = new Uint8Array(READ_BYTES).fill(1);
  const ms = new Map<number, number>();
  const turn = (round: number) => {
    const begin = performance.now();
    kernels.read(table, { data, bytes: READ_BYTES, ahead: 2048, threads });
    ms.set(round, performance.now() - begin);
  };
  return { ms, turn };
}

function peerSides({ directory, model, adapter }: Peers, type: string, threads: number) {
  const llamas = { without: new LlamaCpp(directory), with: new LlamaCpp(directory, 0, adapter) };
  const found = {
    without: { generation: [] as number[], prompt: [] as number[] },
    with: { generation: [] as number[], prompt: [] as number[] },
  };
  const sides = (['without', 'with'] as const).map((which): Side => {
    const turn = (round: number) => {
      if (round % LLAMA_EVERY !== 0) return;
      const measure = (sequences: number, promptTokens: number, generate: number) =>
        llamas[which].measure(model, type, { sequences, promptTokens, generate }, threads);
      found[which].generation.push(measure(32, 128, 32).generationPerSecond);
      found[which].prompt.push(measure(1, 512, 2).prefillPerSecond);
    };
    return { ms: new Map(), turn };
  });
  const rates = () => {
    const both = (what: 'generation' | 'prompt'): PeerRates => ({
      without: median(found.without[what]),
      with: median(found.with[what]),
    });
    return { type, version: llamas.with.version(), generation: both('generation'), prompt: both('prompt') };
  };
  return { sides, rates };
}
