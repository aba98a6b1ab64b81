import { readFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import type { Rates } from './llama-cpp.js';

/** What was measured of one engine and weight type, one entry per round. */
export interface Measured {
  engine: 'skein' | 'llama.cpp';
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

/** Markdown: tokens per second, then Skein's over llama.cpp's of the same weights and over its best. */
export function markdown(all: Measured[], shown: Column[]): string {
  const row = (cells: string[]) => `| ${cells.join(' | ')} |`;
  const titles = shown.map((column) => column.title);
  const lines = [row(['engine, weights', ...titles]), row(['---', ...titles.map(() => '---:')])];
  const rates = new Map(all.map((measured) => [measured, medians(measured)]));
  for (const [measured, values] of rates) {
    const cells = shown.map((column) => column.value(values)?.toFixed(0) ?? '');
    lines.push(row([`${measured.engine} ${measured.weights}`, ...cells]));
  }
  const peers = all.filter((measured) => measured.engine === 'llama.cpp');
  for (const ours of all.filter((measured) => measured.engine === 'skein')) {
    const same = peers.filter((peer) => peer.weights === ours.weights);
    for (const [label, against] of [
      ['the same', same],
      ['its best', peers],
    ] as const) {
      if (against.length === 0) continue;
      const cells = shown.map((column) => {
        const best = Math.max(...against.map((peer) => column.value(rates.get(peer)!) ?? 0));
        const value = column.value(rates.get(ours)!);
        return value === undefined || best === 0 ? '' : `${(value / best).toFixed(2)}x`;
      });
      lines.push(row([`skein ${ours.weights} / llama.cpp, ${label}`, ...cells]));
    }
    if (ours.javascriptShare) lines.push(javascriptRow(ours, shown, row));
  }
  return lines.join('\n');
}

function javascriptRow(ours: Measured, shown: Column[], row: (cells: string[]) => string): string {
  const cells = shown.map((column) => {
    const sequences = /^generation (\d+)$/.exec(column.title)?.[1];
    const shares = sequences === undefined ? undefined : ours.javascriptShare?.[Number(sequences)];
    return shares === undefined || shares.length === 0 ? '' : `${(100 * median(shares)).toFixed(1)} %`;
  });
  return row([`skein ${ours.weights}: share of an iteration in JavaScript`, ...cells]);
}
