import type { ContextProgress, TokenPiece, TokenRequest, TokenTiming } from '../callbacks/token-request.js';
import type { NamedTensor } from '../callbacks/types.js';

/** Tensors of a response by name. */
export type Tensors = ReadonlyMap<string, NamedTensor>;

/**
 * Tokens and their values that one response adds to a request's output; each array has as many entries as tokens, times
 * a width.
 */
export type Part = Pick<TokenPiece, 'tokens' | 'logProbs' | 'topTokens' | 'topLogProbs' | 'generationLogits'>;

/** The token part of a piece, without its other reports. */
export function partOf({ tokens, logProbs, topTokens, topLogProbs, generationLogits }: Part): Part {
  const part: Part = { tokens };
  if (logProbs !== undefined) part.logProbs = logProbs;
  if (topTokens !== undefined) part.topTokens = topTokens;
  if (topLogProbs !== undefined) part.topLogProbs = topLogProbs;
  if (generationLogits !== undefined) part.generationLogits = generationLogits;
  return part;
}

/** Options of a request that decide what a part contains. */
export interface PartOptions {
  returnLogProbs: boolean;
  topLogProbs: number;
  returnGenerationLogits: boolean;
}

export function partOptionsOf(request: TokenRequest): PartOptions {
  const { returnLogProbs = false, topLogProbs = 0, returnGenerationLogits = false } = request;
  return { returnLogProbs, topLogProbs, returnGenerationLogits };
}

export function tensorsOf(outputs: readonly NamedTensor[]): Tensors {
  return new Map(outputs.map((output) => [output.name, output]));
}

export function numberOf(tensors: Tensors, name: string): number | undefined {
  return tensors.get(name)?.data[0] as number | undefined;
}

/**
 * Reads the part in a response. @param numBefore tokens in front of the new ones in output_ids, for a request that does
 * not stream; else null
 */
export function readPart(tensors: Tensors, numBefore: number | null, options: PartOptions): Part {
  const ids = tensors.get('output_ids')!.data as Int32Array;
  const tokens = numBefore === null ? ids : ids.slice(numBefore, numberOf(tensors, 'sequence_length'));
  const part: Part = { tokens };
  if (options.returnLogProbs) part.logProbs = floats(tensors, 'output_log_probs');
  if (options.topLogProbs > 0) {
    part.topTokens = (tensors.get('top_token_ids')?.data as Int32Array | undefined) ?? new Int32Array(0);
    part.topLogProbs = floats(tensors, 'top_log_probs');
  }
  if (options.returnGenerationLogits) part.generationLogits = floats(tensors, 'generation_logits');
  return part;
}

function floats(tensors: Tensors, name: string): Float32Array {
  return (tensors.get(name)?.data as Float32Array | undefined) ?? new Float32Array(0);
}

/** The tokens from `start` up to `end` of a part with all their values, in the same memory. */
export function slicePart(part: Part, start: number, end: number): Part {
  const { length } = part.tokens;
  const kept = <T extends Int32Array | Float32Array>(array: T) => {
    const width = array.length / length;
    return array.subarray(start * width, end * width) as T;
  };
  const slice: Part = { tokens: kept(part.tokens) };
  if (part.logProbs !== undefined) slice.logProbs = kept(part.logProbs);
  if (part.topTokens !== undefined) slice.topTokens = kept(part.topTokens);
  if (part.topLogProbs !== undefined) slice.topLogProbs = kept(part.topLogProbs);
  if (part.generationLogits !== undefined) slice.generationLogits = kept(part.generationLogits);
  return slice;
}

/** Joins several parts, or none, as the beginning of one piece. */
export function joinParts(parts: readonly Part[], options: PartOptions): Part {
  if (parts.length === 1) return { ...parts[0]! };
  const floats = (pick: (part: Part) => Float32Array | undefined) =>
    join(
      Float32Array,
      parts.map((part) => pick(part)!),
    );
  const integers = (pick: (part: Part) => Int32Array | undefined) =>
    join(
      Int32Array,
      parts.map((part) => pick(part)!),
    );
  const whole: Part = { tokens: integers((part) => part.tokens) };
  if (options.returnLogProbs) whole.logProbs = floats((part) => part.logProbs);
  if (options.topLogProbs > 0) {
    whole.topTokens = integers((part) => part.topTokens);
    whole.topLogProbs = floats((part) => part.topLogProbs);
  }
  if (options.returnGenerationLogits) whole.generationLogits = floats((part) => part.generationLogits);
  return whole;
}

/** Reads what the first response of a request reports about its prompt; null: it is a later response. */
export function readContext(tensors: Tensors): Partial<TokenPiece> | null {
  const cachedTokens = numberOf(tensors, 'cached_tokens');
  if (cachedTokens === undefined) return null;
  const context: Partial<TokenPiece> = { cachedTokens };
  const logits = tensors.get('context_logits')!;
  // [1, 1, 1] is the dummy: a vocabulary has more than one token.
  if (logits.shape[2]! > 1) context.contextLogits = logits.data as Float32Array;
  const logProbs = tensors.get('context_log_probs');
  if (logProbs) context.contextLogProbs = logProbs.data as Float32Array;
  const topTokens = tensors.get('context_top_token_ids');
  if (topTokens) {
    context.contextTopTokens = topTokens.data as Int32Array;
    context.contextTopLogProbs = tensors.get('context_top_log_probs')!.data as Float32Array;
  }
  return context;
}

/** Reads a response that reports how far the prompt is; null: it is another one. */
export function readProgress(outputs: readonly NamedTensor[]): ContextProgress | null {
  const [first] = outputs;
  if (first?.name !== 'context_progress') return null;
  const [done, cached, ms] = first.data as Int32Array;
  return { done: done!, cached: cached!, ms: ms! };
}

export function readTiming(tensors: Tensors): TokenTiming {
  const times = tensors.get('request_times_ms')!.data as Float32Array;
  const [firstScheduledMs, firstTokenMs, lastTokenMs] = Array.from(times, (ms) => (ms < 0 ? null : ms));
  return {
    firstScheduledMs: firstScheduledMs!,
    firstTokenMs: firstTokenMs!,
    lastTokenMs: lastTokenMs!,
    numIterations: numberOf(tensors, 'num_iterations')!,
    numPauses: numberOf(tensors, 'num_pauses')!,
    reusedBlocks: numberOf(tensors, 'reused_blocks')!,
    missedBlocks: numberOf(tensors, 'missed_blocks')!,
  };
}

/** Joins arrays: a single one is returned as it is, several are copied into a new one. */
function join<T extends Int32Array | Float32Array>(Type: new (length: number) => T, arrays: readonly T[]): T {
  if (arrays.length === 1) return arrays[0]!;
  const joined = new Type(arrays.reduce((sum, array) => sum + array.length, 0));
  let offset = 0;
  for (const array of arrays) {
    joined.set(array, offset);
    offset += array.length;
  }
  return joined;
}
