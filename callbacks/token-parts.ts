import type { TokenPiece, TokenTiming } from './token-request.js';
import type { NamedTensor } from './types.js';

/** The tensors of a response by name. */
export type Tensors = ReadonlyMap<string, NamedTensor>;

/** What one response adds to its request's output: every array has as many entries as tokens, times a width. */
export interface Part {
  tokens: Int32Array;
  logProbs: Float32Array;
  topTokens: Int32Array;
  topLogProbs: Float32Array;
  logits: Float32Array;
}

/** What of a part a request asked for. */
export interface PartOptions {
  returnLogProbs: boolean;
  topLogProbs: number;
  returnGenerationLogits: boolean;
}

const NO_FLOATS = new Float32Array(0);

export function tensorsOf(outputs: readonly NamedTensor[]): Tensors {
  return new Map(outputs.map((output) => [output.name, output]));
}

export function numberOf(tensors: Tensors, name: string): number | undefined {
  return tensors.get(name)?.data[0] as number | undefined;
}

/** `promptLength`: of a request that does not stream, whose output_ids begin with its prompt; else null. */
export function readPart(
  tensors: Tensors,
  promptLength: number | null,
  { returnGenerationLogits }: PartOptions,
): Part {
  const ids = tensors.get('output_ids')!.data as Int32Array;
  const floats = (name: string) => (tensors.get(name)?.data as Float32Array | undefined) ?? NO_FLOATS;
  return {
    tokens: promptLength === null ? ids : ids.slice(promptLength, numberOf(tensors, 'sequence_length')),
    logProbs: floats('output_log_probs'),
    topTokens: (tensors.get('top_token_ids')?.data as Int32Array | undefined) ?? new Int32Array(0),
    topLogProbs: floats('top_log_probs'),
    logits: returnGenerationLogits ? floats('generation_logits') : NO_FLOATS,
  };
}

/** The part without its last token and all that belongs to it. */
export function withoutLast(part: Part): Part {
  const { length } = part.tokens;
  const kept = <T extends Int32Array | Float32Array>(array: T) =>
    array.slice(0, (array.length / length) * (length - 1)) as T;
  return {
    tokens: kept(part.tokens),
    logProbs: kept(part.logProbs),
    topTokens: kept(part.topTokens),
    topLogProbs: kept(part.topLogProbs),
    logits: kept(part.logits),
  };
}

/** Several parts as the beginning of one piece. */
export function joinParts(parts: readonly Part[], options: PartOptions): Omit<TokenPiece, 'finishReason'> {
  const floats = (pick: (part: Part) => Float32Array) => join(Float32Array, parts.map(pick));
  const integers = (pick: (part: Part) => Int32Array) => join(Int32Array, parts.map(pick));
  return {
    tokens: integers((part) => part.tokens),
    ...(options.returnLogProbs ? { logProbs: floats((part) => part.logProbs) } : {}),
    ...(options.topLogProbs > 0
      ? {
          topTokens: integers((part) => part.topTokens),
          topLogProbs: floats((part) => part.topLogProbs),
        }
      : {}),
    ...(options.returnGenerationLogits ? { generationLogits: floats((part) => part.logits) } : {}),
  };
}

/** What the first response of a request says of its prompt. */
export function readContext(tensors: Tensors): Partial<TokenPiece> {
  const context: Partial<TokenPiece> = {};
  const cachedTokens = numberOf(tensors, 'cached_tokens');
  if (cachedTokens === undefined) return context;
  context.cachedTokens = cachedTokens;
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

/** One array where there is one; a new one of all of them where there are several. */
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
