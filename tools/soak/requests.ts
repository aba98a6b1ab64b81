import type { InferenceRequest, Tensor } from 'skein';
import { MAX_BEAM_WIDTH } from './mixes.js';
import type { Random } from './random.js';

/** A request and what may become of it. */
export interface SoakRequest {
  request: InferenceRequest;
  promptLength: number;
  maxNewTokens: number;
  streaming: boolean;
  /** It has a time limit or may be stopped by a word or an end token. */
  timeLimited: boolean;
  mayStop: boolean;
  /** It has to be refused. */
  isBad: boolean;
  /** Side by side: drawn ones, or beams. */
  numSequences: number;
}

export interface RequestLimits {
  vocabSize: number;
  maxSeqLen: number;
  /** See Mix. */
  decodes: boolean;
}

const i32 = (...values: number[]): Tensor => ({ shape: [values.length], data: Int32Array.from(values) });
const f32 = (value: number): Tensor => ({ shape: [1], data: Float32Array.of(value) });
const u64 = (value: bigint): Tensor => ({ shape: [1], data: BigUint64Array.of(value) });
const text = (value: string): Tensor => {
  const data = new TextEncoder().encode(value);
  return { shape: [data.length], data };
};
const bool = (value: boolean): Tensor => ({ shape: [1], data: Uint8Array.of(Number(value)) });

/** Prompts that begin alike: a few stems, of which each request takes a part and continues by itself. */
const STEMS = 4;

/** Draws requests of every kind that there is. */
export class RequestFactory {
  readonly #random: Random;
  readonly #limits: RequestLimits;
  readonly #stems: number[][];
  /** Prompts with their answers, to continue from. */
  readonly #conversations: number[][] = [];
  #nextId = 1n;

  constructor(random: Random, limits: RequestLimits) {
    this.#random = random;
    this.#limits = limits;
    this.#stems = Array.from({ length: STEMS }, () => this.#tokens(limits.maxSeqLen));
  }

  /** Keeps the tokens of a request and its answer, for a later request to continue from. */
  remember(tokens: readonly number[]): void {
    if (tokens.length < this.#limits.maxSeqLen / 2) this.#conversations.push([...tokens]);
    if (this.#conversations.length > 16) this.#conversations.shift();
  }

  next(): SoakRequest {
    const random = this.#random;
    const prompt = this.#prompt();
    const maxNewTokens = random.integer(1, Math.min(80, this.#limits.maxSeqLen - prompt.length));
    const streaming = random.chance(0.7);
    const timeLimited = random.chance(0.04);
    const ends = this.#ends();
    const inputs: Record<string, Tensor> = {
      input_ids: { shape: [1, prompt.length], data: Int32Array.from(prompt) },
      request_output_len: { shape: [1, 1], data: Int32Array.of(maxNewTokens) },
      streaming: bool(streaming),
      random_seed: u64(BigInt(random.integer(0, 2 ** 32))),
      ...this.#sampling(),
      ...ends,
      ...this.#extras(),
      ...(timeLimited ? { time_limit_ms: i32(random.integer(1, 200)) } : {}),
    };
    const numSequences = this.#limits.decodes ? this.#decoding(inputs) : 1;
    const request: InferenceRequest = { requestId: this.#nextId++, inputs };
    if (random.chance(0.3)) request.priority = random.pick([0, 0.25, 0.5, 0.75, 1]);
    const isBad = random.chance(0.03);
    if (isBad) this.#spoil(request);
    const mayStop = inputs.end_id !== undefined;
    const isStreaming = inputs.streaming!.data[0] === 1;
    return {
      ...{ request, promptLength: prompt.length, maxNewTokens, streaming: isStreaming, timeLimited },
      ...{ mayStop, isBad, numSequences },
    };
  }

  /** Makes it one of several sequences, of beams, with a guide, or with a draft. Returns how many sequences it has. */
  #decoding(inputs: Record<string, Tensor>): number {
    const random = this.#random;
    const kind = random.next();
    const without = (...names: string[]) => {
      for (const name of names) delete inputs[name];
    };
    if (kind < 0.15) {
      without('return_generation_logits');
      inputs.num_return_sequences = i32(random.integer(2, 3));
      return inputs.num_return_sequences.data[0] as number;
    }
    if (kind < 0.3) {
      without('return_generation_logits', 'temperature', 'runtime_top_k', 'runtime_top_p', 'runtime_min_p');
      inputs.streaming = bool(false);
      inputs.beam_width = i32(random.integer(2, MAX_BEAM_WIDTH));
      return inputs.beam_width.data[0] as number;
    }
    if (kind < 0.5) {
      without('min_length', 'stop_words_list');
      inputs.end_id ??= i32(2);
      inputs.guided_decoding_guide_type = text('regex');
      inputs.guided_decoding_guide = text(random.pick(['[ -~]{1,150}', '([a-z]{1,9}, )*[a-z]+']));
    } else if (kind < 0.75) {
      without('return_generation_logits');
      const draft = this.#tokens(random.integer(1, 12));
      inputs.draft_input_ids = i32(...draft);
    }
    return 1;
  }

  #tokens(count: number): number[] {
    return Array.from({ length: count }, () => this.#random.integer(3, this.#limits.vocabSize - 1));
  }

  #prompt(): number[] {
    const random = this.#random;
    const longest = this.#limits.maxSeqLen - 1;
    const kind = random.next();
    if (kind < 0.3) return this.#tokens(random.integer(1, 60));
    const from = kind < 0.7 ? random.pick(this.#stems) : this.#conversation();
    const shared = from.slice(0, random.integer(1, Math.min(from.length, 140)));
    return [...shared, ...this.#tokens(random.integer(0, 30))].slice(0, longest);
  }

  #conversation(): number[] {
    return this.#conversations.length > 0
      ? this.#random.pick(this.#conversations)
      : this.#random.pick(this.#stems);
  }

  #sampling(): Record<string, Tensor> {
    const random = this.#random;
    if (random.chance(0.3)) return {};
    const inputs: Record<string, Tensor> = { temperature: f32(0.3 + 1.2 * random.next()) };
    if (random.chance(0.3)) inputs.runtime_top_k = i32(random.integer(1, 50));
    if (random.chance(0.3)) inputs.runtime_top_p = f32(0.3 + 0.7 * random.next());
    if (random.chance(0.2)) inputs.runtime_min_p = f32(0.1 * random.next());
    if (random.chance(0.2)) inputs.repetition_penalty = f32(1 + 0.5 * random.next());
    if (random.chance(0.2)) inputs.presence_penalty = f32(random.next());
    if (random.chance(0.2)) inputs.frequency_penalty = f32(random.next() - 0.5);
    return inputs;
  }

  /** Tokens and words that end some of the requests early, though not before min_length. */
  #ends(): Record<string, Tensor> {
    const random = this.#random;
    if (random.chance(0.6)) return {};
    const [end, ...words] = this.#tokens(12);
    const inputs: Record<string, Tensor> = { end_id: i32(end!) };
    if (random.chance(0.5)) {
      const offsets = words.map((_, index) => index + 1);
      const data = Int32Array.from([...words, ...offsets]);
      inputs.stop_words_list = { shape: [1, 2, words.length], data };
    }
    if (random.chance(0.3)) inputs.min_length = i32(random.integer(1, 20));
    return inputs;
  }

  #extras(): Record<string, Tensor> {
    const random = this.#random;
    const inputs: Record<string, Tensor> = {};
    if (random.chance(0.5)) inputs.return_log_probs = bool(true);
    if (random.chance(0.15)) inputs.top_log_probs = i32(random.integer(1, 5));
    if (random.chance(0.05)) inputs.return_context_logits = bool(true);
    if (random.chance(0.05)) inputs.return_generation_logits = bool(true);
    if (random.chance(0.05)) inputs.return_context_log_probs = bool(true);
    if (random.chance(0.15)) inputs.cache_salt = u64(BigInt(random.integer(1, 3)));
    return inputs;
  }

  /** Makes it wrong in one of several ways. */
  #spoil({ inputs }: InferenceRequest): void {
    const ways = [
      () => {
        inputs.request_output_len = { shape: [1, 1], data: Int32Array.of(this.#limits.maxSeqLen) };
      },
      () => {
        inputs.input_ids!.data[0] = this.#limits.vocabSize;
      },
      () => {
        inputs.no_such_tensor = f32(1);
      },
      () => {
        inputs.temperature = f32(-1);
      },
      () => {
        inputs.beam_width = i32(MAX_BEAM_WIDTH + 1);
      },
      () => {
        delete inputs.request_output_len;
      },
    ];
    this.#random.pick(ways)();
  }
}
