import {
  FINISH_CANCELLED,
  FINISH_LENGTH,
  FINISH_STOP_WORDS,
  FINISH_TIMED_OUT,
} from '../callbacks/response-batch.js';
import type { FinishReason, TokenPiece, TokenRequest } from '../callbacks/token-request.js';
import type { NamedTensor } from '../callbacks/types.js';
import { numKnownOutputs, streams } from './token-inputs.js';
import {
  numberOf,
  type PartOptions,
  partOptionsOf,
  readContext,
  readPart,
  readProgress,
  readTiming,
  slicePart,
  tensorsOf,
} from './token-parts.js';

/** A piece of one of a request's sequences. */
export interface SequencePiece {
  sequence: number;
  piece: TokenPiece;
}

const NO_TOKENS = new Int32Array(0);

/**
 * Reads the responses to one request as pieces of its sequences. Responses are distinguished by their
 * tensors:
 *
 *   sequence_index k        the response is of sequence k; the last one of it has random_seed
 *   output_ids [1, b, n]    b > 1: of all beams, and the only one
 *   context_progress        of the prompt: the first sequence reports it
 */
export class PieceReader {
  readonly #options: PartOptions;
  /** End tokens that run as stop words but, unlike these, are not returned. */
  readonly #hiddenStops: ReadonlySet<number>;
  /** Number of tokens in front of the new ones, by sequence, where a response has all of them; null: responses hold new tokens only. */
  readonly #numBefore: readonly number[] | null;

  constructor(request: TokenRequest, numSequences: number) {
    this.#options = partOptionsOf(request);
    this.#hiddenStops = new Set(request.endTokenIds?.slice(1));
    const { length } = request.promptTokens;
    this.#numBefore = streams(request)
      ? null
      : Array.from({ length: numSequences }, (_, i) => length + numKnownOutputs(request, i));
  }

  /** @param final no more responses follow */
  read(outputs: readonly NamedTensor[], final: boolean): SequencePiece[] {
    const contextProgress = readProgress(outputs);
    if (contextProgress !== null) {
      return [{ sequence: 0, piece: { tokens: NO_TOKENS, contextProgress, finishReason: null } }];
    }
    const width = outputs.find(({ name }) => name === 'output_ids')!.shape[1]!;
    if (width > 1) {
      return Array.from({ length: width }, (_, beam) => this.#read(tensorsOfBeam(outputs, beam), beam, true));
    }
    const index = outputs.find(({ name }) => name === 'sequence_index');
    if (index === undefined) return [this.#read(outputs, 0, final)];
    const isEnd = outputs.some(({ name }) => name === 'random_seed');
    return [this.#read(outputs, index.data[0] as number, isEnd)];
  }

  #read(outputs: readonly NamedTensor[], sequence: number, isEnd: boolean): SequencePiece {
    const tensors = tensorsOf(outputs);
    const code = tensors.get('finish_reasons')!.data[0] as number;
    const part = readPart(tensors, this.#numBefore?.[sequence] ?? null, this.#options);
    const endsHidden = code === FINISH_STOP_WORDS && this.#hiddenStops.has(part.tokens.at(-1) ?? -1);
    const shown = endsHidden ? slicePart(part, 0, part.tokens.length - 1) : part;
    const piece: TokenPiece = { ...shown, ...readContext(tensors), finishReason: null };
    if (!isEnd) return { sequence, piece };
    piece.finishReason = finishReasonOf(code);
    piece.seed = tensors.get('random_seed')!.data[0] as bigint;
    piece.timing = readTiming(tensors);
    const cumLogProb = tensors.has('beam') ? numberOf(tensors, 'cum_log_probs') : undefined;
    if (cumLogProb !== undefined) piece.cumLogProb = cumLogProb;
    return { sequence, piece };
  }
}

/** Finish reason given by a response. */
export function finishReasonIn(outputs: readonly NamedTensor[]): FinishReason {
  const code = outputs.find(({ name }) => name === 'finish_reasons')?.data[0];
  return finishReasonOf(Number(code ?? FINISH_CANCELLED));
}

function finishReasonOf(code: number): FinishReason {
  if (code === FINISH_LENGTH) return 'length';
  if (code === FINISH_TIMED_OUT) return 'timeout';
  return code === FINISH_CANCELLED ? 'cancelled' : 'stop';
}

/** Names of the tensors that have a part for each beam. */
const PER_BEAM = new Set([
  'output_ids',
  'sequence_length',
  'finish_reasons',
  'output_log_probs',
  'cum_log_probs',
  'top_token_ids',
  'top_log_probs',
  'generation_logits',
]);

/** Those of them that have values for each token. */
const PER_TOKEN = /^(output_log_probs|top_token_ids|top_log_probs|generation_logits)$/;

/** The response as a request with this beam alone would get it; tokens after the beam's end are left out. */
function tensorsOfBeam(outputs: readonly NamedTensor[], beam: number): NamedTensor[] {
  const byName = new Map(outputs.map((output) => [output.name, output]));
  // generation_logits that were not asked for are a dummy, of no beam.
  const isOfBeams = ({ name, shape }: NamedTensor) => PER_BEAM.has(name) && shape[1]! > 1;
  const own = outputs.map((output) => (isOfBeams(output) ? partOf(output, beam) : output));
  const ofTokens = outputs.filter((output) => PER_TOKEN.test(output.name) && isOfBeams(output));
  if (ofTokens.length > 0) {
    const numGenerated = generatedOf(byName, ofTokens[0]!.shape[2]!, beam);
    const names = new Set(ofTokens.map(({ name }) => name));
    for (const tensor of own) {
      if (!names.has(tensor.name)) continue;
      const width = tensor.shape[3] ?? 1;
      tensor.shape = [1, 1, numGenerated, ...tensor.shape.slice(3)];
      tensor.data = tensor.data.slice(0, numGenerated * width);
    }
  }
  return [...own, { name: 'beam', shape: [1], data: Int32Array.of(beam) }];
}

/** Number of tokens that a beam generated. @param most that of the longest beam, which its values show */
function generatedOf(outputs: ReadonlyMap<string, NamedTensor>, most: number, beam: number): number {
  const lengths = outputs.get('sequence_length')!.data as Int32Array;
  const longest = Math.max(...lengths);
  return most - (longest - lengths[beam]!);
}

function partOf({ name, shape, data }: NamedTensor, beam: number): NamedTensor {
  const size = data.length / shape[1]!;
  return { name, shape: [1, 1, ...shape.slice(2)], data: data.slice(beam * size, (beam + 1) * size) };
}
