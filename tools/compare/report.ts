import { readFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import type { Peer, Rates } from './peer.js';

/** What was measured of one engine and weight type, one entry per round. */
export interface Measured {
  engine: 'skein' | Peer['name'];
  weights: string;
  rounds: Rates[][];
  /** Share of iteration time outside the executor, per sequences; skein only. */
  javascriptShare?: Record<number, number[]>;
}

export interface Machine {
  cpu: string;
  cores: number;
  memoryGiB: number;
  /** The vector extensions that decide which kernels run. */
  features: string[];
}

const FEATURES = [
  'avx2',
  'fma',
  'f16c',
  'avx512f',
  'avx512bw',
  'avx512_vnni',
  'avx512_bf16',
  'avx_vnni',
  'amx_bf16',
  'amx_int8',
];

export function describeMachine(): Machine {
  const flags = new Set(/^flags\s*: (.*)$/m.exec(readCpuInfo())?.[1]?.split(' ') ?? []);
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    features: FEATURES.filter((name) => flags.has(name)),
  };
}

function readCpuInfo(): string {
  try {
    return readFileSync('/proc/cpuinfo', 'utf8');
  } catch {
    return '';
  }
}

export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Medians over the rounds, by shape. */
export function medians(measured: Measured): Rates[] {
  const shapes = measured.rounds[0] ?? [];
  return shapes.map((shape, index) => ({
    ...shape,
    prefillPerSecond: median(measured.rounds.map((round) => round[index]!.prefillPerSecond)),
    generationPerSecond: median(measured.rounds.map((round) => round[index]!.generationPerSecond)),
  }));
}

/** One column of numbers of the report: generation at some sequences, or prefill of some length. */
interface Column {
  title: string;
  value: (rates: Rates[]) => number | undefined;
}

export function columns(sequences: number[], promptTokens: number, prefill: number[]): Column[] {
  const at = (rates: Rates[], n: number, prompt: number) =>
    rates.find((r) => r.sequences === n && r.promptTokens === prompt);
  return [
    ...sequences.map((n) => ({
      title: `generation ${n}`,
      value: (rates: Rates[]) => at(rates, n, promptTokens)?.generationPerSecond,
    })),
    ...prefill.map((length) => ({
      title: `prefill ${length}`,
      value: (rates: Rates[]) => at(rates, 1, length)?.prefillPerSecond,
    })),
  ];
}

/** llama.cpp's type of the same size as Skein's format, and OpenVINO's. */
const SAME: Record<string, string[]> = {
  F32: ['F32'],
  BF16: ['BF16', 'fp16'],
  INT8: ['Q8_0', 'int8'],
  INT4: ['Q4_0'],
};
/** Formats whose weights take at least the bytes of Skein's. */
const NOT_SMALLER: Record<string, string[]> = {
  F32: ['F32'],
  BF16: ['F32', 'BF16', 'fp16'],
  INT8: ['F32', 'BF16', 'Q8_0', 'fp16', 'int8'],
  INT4: ['F32', 'BF16', 'Q8_0', 'Q4_0', 'fp16', 'int8'],
};

/** Markdown: tokens per second, then Skein's over each peer's: same weights, weights no smaller, its best of all. */
export function markdown(all: Measured[], shown: Column[]): string {
  const titles = shown.map((column) => column.title);
  const lines = [row(['engine, weights', ...titles]), row(['---', ...titles.map(() => '---:')])];
  for (const measured of all) {
    const values = medians(measured);
    const cells = shown.map((column) => column.value(values)?.toFixed(0) ?? '');
    lines.push(row([`${measured.engine} ${measured.weights}`, ...cells]));
  }
  for (const ours of all.filter(({ engine }) => engine === 'skein')) {
    lines.push(...ratioRows(ours, all, shown));
    if (ours.javascriptShare) lines.push(javascriptRow(ours, shown));
  }
  return lines.join('\n');
}

function ratioRows(ours: Measured, all: Measured[], shown: Column[]): string[] {
  const lines: string[] = [];
  const values = medians(ours);
  const names = new Set(all.map(({ engine }) => engine).filter((engine) => engine !== 'skein'));
  for (const name of names) {
    const peers = all.filter(({ engine }) => engine === name);
    const same = peers.filter(({ weights }) => SAME[ours.weights]?.includes(weights));
    const notSmaller = peers.filter(({ weights }) => NOT_SMALLER[ours.weights]?.includes(weights));
    let counted = 0;
    for (const [label, against] of [
      ['the same', same],
      ['its best of no smaller weights', notSmaller],
      ['its best', peers],
    ] as const) {
      if (against.length <= counted) continue;
      counted = against.length;
      const rates = against.map(medians);
      const cells = shown.map((column) => {
        const best = Math.max(...rates.map((peer) => column.value(peer) ?? 0));
        const value = column.value(values);
        return value === undefined || best === 0 ? '' : `${(value / best).toFixed(2)}x`;
      });
      lines.push(row([`skein ${ours.weights} / ${name}, ${label}`, ...cells]));
    }
  }
  return lines;
}

function row(cells: string[]): string {
  return `| ${cells.join(' | ')} |`;
}

function javascriptRow(ours: Measured, shown: Column[]): string {
  const cells = shown.map((column) => {
    const sequences = /^generation (\d+)$/.exec(column.title)?.[1];
    const shares = sequences === undefined ? undefined : ours.javascriptShare?.[Number(sequences)];
    return shares === undefined || shares.length === 0 ? '' : `${(100 * median(shares)).toFixed(1)} %`;
  });
  return row([`skein ${ours.weights}: share of an iteration in JavaScript`, ...cells]);
}
