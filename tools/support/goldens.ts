import { readFileSync } from 'node:fs';

/** A prompt of test/goldens/tiny-*.json, with full logits. */
export interface TinyPrompt {
  promptIds: number[];
  /** Length for which length-dependent RoPE frequencies were computed. */
  ropeFinalLength: number;
  tokens: number[];
  /** Distance of the two greatest logits at each step. */
  gaps: number[];
  /** Log-probability of each token, of families whose layers keep states. */
  logProbs?: number[];
  logits: { position: number; values: number[] }[];
}

/** A prompt of test/goldens/windows.json, with full logits of tiny-gqa whose tokens attend to a window. */
export interface WindowPrompt extends Omit<TinyPrompt, 'ropeFinalLength'> {
  window: number;
  sinks: number;
}

/** A prompt of test/goldens/smollm2.json, with the greatest logits. */
export interface Smollm2Prompt {
  name: string;
  text?: string;
  promptIds: number[];
  tokens: number[];
  gaps: number[];
  logits: TopLogits[];
}

/** The greatest logits at a position, and log(sum(exp)) over the whole vocabulary. */
export interface TopLogits {
  position: number;
  tokens: number[];
  values: number[];
  logSumExp: number;
}

export const TINY_VARIANTS = [
  'gqa',
  'mha',
  'bias',
  'wide-head',
  'linear',
  'dynamic',
  'yarn',
  'llama3',
  'longrope',
  'gguf',
] as const;

export function readGolden<T>(name: string): T[] {
  const path = new URL(`../../test/goldens/${name}.json`, import.meta.url);
  return (JSON.parse(readFileSync(path, 'utf8')) as { prompts: T[] }).prompts;
}

/** Below this distance of the two greatest logits float32 rounding may choose either. */
export const GAP_MIN = 1e-3;

/**
 * The first step at which `actual` differs although the reference was sure of its token, or null. After a step that
 * differs within rounding the rest continues another text and is not comparable.
 */
export function firstWrongToken(
  actual: ArrayLike<number>,
  golden: { tokens: number[]; gaps: number[] },
): { step: number; expected: number; found: number | undefined; gap: number } | null {
  for (const [step, expected] of golden.tokens.entries()) {
    const found = actual[step];
    if (found === expected) continue;
    const gap = golden.gaps[step]!;
    return gap > GAP_MIN ? { step, expected, found, gap } : null;
  }
  return null;
}

/** KL(reference || ours) in nats from full logits, in float64. */
export function klDivergence(reference: ArrayLike<number>, ours: ArrayLike<number>): number {
  const normReference = logSumExp(reference);
  const normOurs = logSumExp(ours);
  let sum = 0;
  for (let i = 0; i < reference.length; i++) {
    const logP = reference[i]! - normReference;
    sum += Math.exp(logP) * (logP - (ours[i]! - normOurs));
  }
  return sum;
}

/**
 * KL(reference || ours) over the reference's top tokens and "all others" as one outcome, in nats: a lower bound of the
 * divergence over the whole vocabulary, which is what can be had from a golden that keeps 20 logits.
 */
export function klDivergenceOfTop(reference: TopLogits, ours: Float32Array): number {
  const normOurs = logSumExp(ours);
  let restReference = 1;
  let restOurs = 1;
  let sum = 0;
  for (const [i, token] of reference.tokens.entries()) {
    const logP = reference.values[i]! - reference.logSumExp;
    const logQ = ours[token]! - normOurs;
    sum += Math.exp(logP) * (logP - logQ);
    restReference -= Math.exp(logP);
    restOurs -= Math.exp(logQ);
  }
  if (restReference > 1e-9) sum += restReference * Math.log(restReference / Math.max(restOurs, 1e-12));
  return sum;
}

export function logSumExp(logits: ArrayLike<number>): number {
  let max = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < logits.length; i++) max = Math.max(max, logits[i]!);
  let sum = 0;
  for (let i = 0; i < logits.length; i++) sum += Math.exp(logits[i]! - max);
  return max + Math.log(sum);
}
