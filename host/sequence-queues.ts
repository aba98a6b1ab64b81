import type { TokenPiece } from '../callbacks/token-request.js';
import type { NamedTensor } from '../callbacks/types.js';
import type { PieceQueue } from './token-stream.js';

/**
 * The pieces of one request: of its one sequence, of several, or of beams. Responses are told apart by their tensors.
 *
 *   sequence_index k        the response is of sequence k; the last one of it has random_seed
 *   output_ids [1, b, n]    b > 1: of all beams, and the only one
 */
export class SequenceQueues {
  readonly #queues: readonly PieceQueue[];
  readonly #promptLength: number;
  /** Of each sequence or beam, as far as responses have told. */
  readonly #generated: Int32Array;
  #cachedTokens = 0;
  #hasBegun = false;

  constructor(queues: readonly PieceQueue[], promptLength: number) {
    this.#queues = queues;
    this.#promptLength = promptLength;
    this.#generated = new Int32Array(queues.length);
  }

  /** Tokens that were computed for the request: of its prompt those that the cache did not have. */
  get usedTokens(): number {
    if (!this.#hasBegun) return 0;
    return this.#generated.reduce((sum, count) => sum + count, this.#promptLength - this.#cachedTokens);
  }

  /** Of all its sequences. */
  get generatedTokens(): number {
    return this.#generated.reduce((sum, count) => sum + count, 0);
  }

  /** Tokens of its prompt that the cache had. */
  get cachedTokens(): number {
    return this.#cachedTokens;
  }

  /** Takes the tensors of a response. */
  push(outputs: readonly NamedTensor[], final: boolean): void {
    const width = outputs.find(({ name }) => name === 'output_ids')!.shape[1]!;
    const index = outputs.find(({ name }) => name === 'sequence_index');
    this.#count(outputs, (index?.data[0] as number | undefined) ?? 0);
    if (width > 1) this.#pushBeams(outputs);
    else if (index === undefined) this.#queues[0]!.push(outputs, final);
    else {
      const isEnd = outputs.some(({ name }) => name === 'random_seed');
      this.#queues[index.data[0] as number]!.push(outputs, isEnd);
    }
  }

  /** Takes new tokens of a sequence, which the response with its first ones has told of. */
  pushTokens(sequence: number, piece: TokenPiece): void {
    this.#generated[sequence]! += piece.tokens.length;
    this.#queues[sequence]!.pushTokens(piece);
  }

  /** Ends what has not ended, without a response of the engine. */
  finish(reason: 'cancelled' | 'timeout'): void {
    for (const queue of this.#queues) if (!queue.isEnded) queue.finish(reason);
  }

  fail(error: Error): void {
    for (const queue of this.#queues) if (!queue.isEnded) queue.fail(error);
  }

  #count(outputs: readonly NamedTensor[], first: number): void {
    this.#hasBegun = true;
    const cached = outputs.find(({ name }) => name === 'cached_tokens');
    if (cached !== undefined) this.#cachedTokens = cached.data[0] as number;
    const lengths = outputs.find(({ name }) => name === 'sequence_length')?.data as Int32Array | undefined;
    for (const [place, length] of (lengths ?? []).entries()) {
      this.#generated[first + place] = length - this.#promptLength;
    }
  }

  #pushBeams(outputs: readonly NamedTensor[]): void {
    for (const [beam, queue] of this.#queues.entries()) queue.push(tensorsOfBeam(outputs, beam), true);
  }
}

/** Tensors that have a part for each beam. */
const PER_BEAM = new Set([
  'output_ids',
  'sequence_length',
  'finish_reasons',
  'output_log_probs',
  'cum_log_probs',
  'top_token_ids',
  'top_log_probs',
]);

/** The response as it would be of a request with this beam alone; what stands behind its end is left out. */
function tensorsOfBeam(outputs: readonly NamedTensor[], beam: number): NamedTensor[] {
  const byName = new Map(outputs.map((output) => [output.name, output]));
  const own = outputs.map((output) => (PER_BEAM.has(output.name) ? partOf(output, beam) : output));
  if (byName.has('output_log_probs')) {
    const numGenerated = generatedOf(byName, beam);
    for (const tensor of own) {
      if (!/^(output_log_probs|top_token_ids|top_log_probs)$/.test(tensor.name)) continue;
      const width = tensor.shape[3] ?? 1;
      tensor.shape = [1, 1, numGenerated, ...tensor.shape.slice(3)];
      tensor.data = tensor.data.slice(0, numGenerated * width);
    }
  }
  return [...own, { name: 'beam', shape: [1], data: Int32Array.of(beam) }];
}

/** The longest of the beams has as many log-probs as there are. */
function generatedOf(outputs: ReadonlyMap<string, NamedTensor>, beam: number): number {
  const lengths = outputs.get('sequence_length')!.data as Int32Array;
  const most = outputs.get('output_log_probs')!.shape[2]!;
  const longest = Math.max(...lengths);
  return most - (longest - lengths[beam]!);
}

function partOf({ name, shape, data }: NamedTensor, beam: number): NamedTensor {
  const size = data.length / shape[1]!;
  return { name, shape: [1, 1, ...shape.slice(2)], data: data.slice(beam * size, (beam + 1) * size) };
}
