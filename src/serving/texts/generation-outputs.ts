import type { Datatype } from '../../../callbacks/infer/datatypes.js';
import type { InferTensor } from '../../../callbacks/infer/infer-types.js';
import { FINISH_CANCELLED } from '../../../callbacks/response-batch.js';
import type { TokenPiece, TokenTiming } from '../../../callbacks/token-request.js';
import type { Generation } from './read-generation.js';
import type { SequenceAnswer, SequencePart } from './sequence-answer.js';
import { floatTensor, textTensor } from './tensor-values.js';
import type { TokenOutputName } from './text-inputs.js';

/** Outputs of a model that generates text; `stop_words` are those of the request, for the detokenizer. */
export type OutputName = TokenOutputName | 'text_output' | 'finish_reason' | 'stop_words';

/** Facts of a request besides its sequences, as far as they are known. */
export interface RequestFacts {
  /** Values of the prompt, from the first piece; null: there are none, or they have been sent. */
  prompt: TokenPiece | null;
  cachedTokens: number | null;
  /** For the detokenizer, with the first response. */
  stopWords: readonly string[] | null;
  /** Of the last piece. */
  timing: TokenTiming | null;
  /** Nanoseconds since 1970 at which it came. */
  arrivalNs: bigint;
  /** All tokens that were generated. */
  numOutputTokens: number;
}

/** One response: the sequences that it covers, and what else it reports. */
export interface Told {
  answers: readonly SequenceAnswer[];
  /** Of each of them. */
  parts: readonly SequencePart[];
  /** Precedes each row of output_ids. */
  before: readonly Int32Array[];
  /** Number of the sequence, where a response covers one among several; null: it covers all. */
  sequenceIndex: number | null;
  facts: RequestFacts;
}

type Flag = keyof Generation['returns'];

/** Outputs that are there when the request asks for them by another input. */
const FLAGS: Readonly<Partial<Record<OutputName, Flag>>> = {
  cum_log_probs: 'logProbs',
  output_log_probs: 'logProbs',
  top_token_ids: 'topLogProbs',
  top_log_probs: 'topLogProbs',
  context_logits: 'contextLogits',
  generation_logits: 'generationLogits',
  context_log_probs: 'contextLogProbs',
  context_top_token_ids: 'topContextLogProbs',
  context_top_log_probs: 'topContextLogProbs',
  num_input_tokens: 'numInputTokens',
  num_output_tokens: 'numOutputTokens',
  kv_cache_reused_blocks: 'perfMetrics',
  kv_cache_missed_blocks: 'perfMetrics',
  arrival_time_ns: 'perfMetrics',
  first_scheduled_time_ns: 'perfMetrics',
  first_token_time_ns: 'perfMetrics',
  last_token_time_ns: 'perfMetrics',
};

/** Outputs of a request that names none, in addition to those that it asks for by an input. */
const OF_TEXTS: readonly OutputName[] = ['text_output', 'finish_reason'];
const OF_TOKENS: readonly OutputName[] = ['output_ids', 'sequence_length', 'finish_reasons'];

/** Outputs that a request wants. @param named by the request; null: it names none */
export function wantedOutputs(
  named: readonly string[] | null,
  {
    isOfTokens,
    isStreamed,
    count,
    returns,
  }: Pick<Generation, 'isOfTokens' | 'isStreamed' | 'count' | 'returns'>,
): ReadonlySet<OutputName> {
  const isAsked = (name: OutputName) => {
    const flag = FLAGS[name];
    return flag === undefined || Number(returns[flag]) > 0;
  };
  if (named !== null) return new Set((named as readonly OutputName[]).filter(isAsked));
  const flagged = (Object.keys(FLAGS) as OutputName[]).filter(isAsked);
  const isOfOne: OutputName[] = isStreamed && count > 1 ? ['sequence_index'] : [];
  return new Set([...(isOfTokens ? OF_TOKENS : OF_TEXTS), ...flagged, ...isOfOne]);
}

/** The answer to a request that ended another one: nothing, as of one that was cancelled. */
export function stoppedOutputs(
  named: readonly string[] | null,
  isOfTokens: boolean,
  isBatched: boolean,
): InferTensor[] {
  const shape = isBatched ? [1, 1] : [1];
  const empty: Partial<Record<string, InferTensor>> = {
    text_output: textTensor('text_output', [''], shape),
    finish_reason: textTensor('finish_reason', ['cancelled'], shape),
    output_ids: integers('output_ids', [], [1, 1, 0]),
    sequence_length: integers('sequence_length', [0], [1, 1]),
    finish_reasons: integers('finish_reasons', [FINISH_CANCELLED], [1, 1]),
  };
  return (named ?? (isOfTokens ? OF_TOKENS : OF_TEXTS)).flatMap((name) => empty[name] ?? []);
}

/** Makes the tensors of responses to one request. */
export class GenerationOutputs {
  readonly #wanted: ReadonlySet<OutputName>;
  readonly #generation: Generation;
  readonly #vocabSize: number;
  readonly #isBatched: boolean;

  /** @param isBatched tensors have a batch dimension, of 1, where those of the engine have none */
  constructor(
    wanted: ReadonlySet<OutputName>,
    generation: Generation,
    vocabSize: number,
    isBatched: boolean,
  ) {
    this.#wanted = wanted;
    this.#generation = generation;
    this.#vocabSize = vocabSize;
    this.#isBatched = isBatched;
  }

  get wantsText(): boolean {
    return this.#wanted.has('text_output');
  }

  /** True where tensors report each token. */
  get tellsTokens(): boolean {
    return OF_EACH_TOKEN.some((name) => this.#wanted.has(name));
  }

  /** The tensors of a response, in the order in which they were asked for. */
  of(told: Told): InferTensor[] {
    return Array.from(this.#wanted).flatMap((name) => this.#tensor(name, told) ?? []);
  }

  #tensor(name: OutputName, told: Told): InferTensor | null {
    const { answers, parts, facts } = told;
    switch (name) {
      case 'text_output':
        return this.#texts(
          name,
          parts.map(({ text }) => text),
        );
      case 'finish_reason':
        return answers.every(({ finishReason }) => finishReason === null)
          ? null
          : this.#texts(
              name,
              answers.map(({ finishReason }) => finishReason ?? ''),
            );
      case 'stop_words':
        return facts.stopWords === null ? null : this.#texts(name, facts.stopWords);
      case 'output_ids':
        return this.#outputIds(told);
      case 'sequence_length':
        return integers(
          name,
          answers.map((answer) => this.#lengthOf(answer)),
          [1, answers.length],
        );
      case 'finish_reasons':
        return integers(
          name,
          answers.map(({ finishCode }) => finishCode),
          [1, answers.length],
        );
      case 'cum_log_probs':
        return floats(
          name,
          Float32Array.from(answers, ({ cumLogProb }) => cumLogProb),
          [1, answers.length],
        );
      case 'random_seed':
        return answers.some(({ finishReason }) => finishReason !== null)
          ? this.#big(name, BigInt(this.#generation.request.seed!), 'UINT64')
          : null;
      case 'sequence_index':
        return told.sequenceIndex === null ? null : this.#one(name, told.sequenceIndex);
      case 'num_input_tokens':
        return this.#one(name, this.#generation.request.promptTokens.length);
      case 'num_output_tokens':
        return this.#one(name, facts.numOutputTokens);
      default:
        return ofTokens(name, parts, this.#generation, this.#vocabSize) ?? this.#ofFacts(name, facts);
    }
  }

  #lengthOf({ numTokens }: SequenceAnswer): number {
    const { excludesInput, request } = this.#generation;
    return numTokens + (excludesInput ? 0 : request.promptTokens.length);
  }

  #outputIds({ parts, before }: Told): InferTensor {
    const length = Math.max(0, ...parts.map(({ tokens }, i) => before[i]!.length + tokens.length));
    const ids = new Int32Array(parts.length * length).fill(this.#generation.padId);
    for (const [i, { tokens }] of parts.entries()) {
      ids.set(before[i]!, i * length);
      ids.set(tokens, i * length + before[i]!.length);
    }
    return integers('output_ids', ids, [1, parts.length, length]);
  }

  #ofFacts(name: OutputName, { prompt, cachedTokens, timing, arrivalNs }: RequestFacts): InferTensor | null {
    const afterMs = (ms: number | null | undefined) =>
      ms === null || ms === undefined
        ? null
        : this.#big(name, arrivalNs + BigInt(Math.round(1e6 * ms)), 'INT64');
    switch (name) {
      case 'cached_tokens':
        return cachedTokens === null ? null : this.#one(name, cachedTokens);
      case 'kv_cache_reused_blocks':
        return timing === null ? null : this.#one(name, timing.reusedBlocks);
      case 'kv_cache_missed_blocks':
        return timing === null ? null : this.#one(name, timing.missedBlocks);
      case 'arrival_time_ns':
        return timing === null ? null : this.#big(name, arrivalNs, 'INT64');
      case 'first_scheduled_time_ns':
        return afterMs(timing?.firstScheduledMs);
      case 'first_token_time_ns':
        return afterMs(timing?.firstTokenMs);
      case 'last_token_time_ns':
        return afterMs(timing?.lastTokenMs);
      default:
        return prompt === null ? null : ofPrompt(name, prompt, this.#generation, this.#vocabSize);
    }
  }

  #texts(name: string, texts: readonly string[]): InferTensor {
    return textTensor(name, texts, this.#shapeOf([texts.length]));
  }

  #one(name: string, value: number): InferTensor {
    return integers(name, [value], this.#shapeOf([1]));
  }

  #big(name: string, value: bigint, datatype: 'INT64' | 'UINT64'): InferTensor {
    return bytes(name, datatype, BigInt64Array.of(BigInt.asIntN(64, value)), this.#shapeOf([1]));
  }

  #shapeOf(shape: readonly number[]): readonly number[] {
    return this.#isBatched ? [1, ...shape] : shape;
  }
}

const OF_EACH_TOKEN: readonly OutputName[] = [
  'output_ids',
  'sequence_length',
  'output_log_probs',
  'cum_log_probs',
  'top_token_ids',
  'generation_logits',
];

/** Tensors with values for each token, with zeros after the shorter sequences. */
function ofTokens(
  name: OutputName,
  parts: readonly SequencePart[],
  { returns }: Generation,
  vocabSize: number,
): InferTensor | null {
  const length = Math.max(0, ...parts.map(({ tokens }) => tokens.length));
  const rows = (values: (part: SequencePart) => Float32Array, width: number) => {
    const all = parts.length === 1 ? values(parts[0]!) : new Float32Array(parts.length * length * width);
    if (parts.length > 1) for (const [i, part] of parts.entries()) all.set(values(part), i * length * width);
    return all;
  };
  const { topLogProbs: top } = returns;
  switch (name) {
    case 'output_log_probs':
      return floats(
        name,
        rows(({ logProbs }) => logProbs, 1),
        [1, parts.length, length],
      );
    case 'top_log_probs':
      return floats(
        name,
        rows(({ topLogProbs }) => topLogProbs, top),
        [1, parts.length, length, top],
      );
    case 'generation_logits':
      return floats(
        name,
        rows(({ logits }) => logits, vocabSize),
        [1, parts.length, length, vocabSize],
      );
    case 'top_token_ids': {
      const ids = new Int32Array(parts.length * length * top).fill(-1);
      for (const [i, { topTokens }] of parts.entries()) ids.set(topTokens, i * length * top);
      return integers(name, ids, [1, parts.length, length, top]);
    }
    default:
      return null;
  }
}

function ofPrompt(
  name: OutputName,
  { contextLogits, contextLogProbs, contextTopTokens, contextTopLogProbs }: TokenPiece,
  { returns: { topContextLogProbs: top } }: Generation,
  vocabSize: number,
): InferTensor | null {
  const count = contextLogProbs?.length ?? 0;
  switch (name) {
    case 'context_logits':
      return contextLogits === undefined
        ? null
        : floats(name, contextLogits, [1, contextLogits.length / vocabSize, vocabSize]);
    case 'context_log_probs':
      return contextLogProbs === undefined ? null : floats(name, contextLogProbs, [1, count]);
    case 'context_top_token_ids':
      return contextTopTokens === undefined ? null : integers(name, contextTopTokens, [1, count, top]);
    case 'context_top_log_probs':
      return contextTopLogProbs === undefined ? null : floats(name, contextTopLogProbs, [1, count, top]);
    default:
      return null;
  }
}

/** The values are not copied. */
function bytes(
  name: string,
  datatype: Datatype,
  { buffer, byteOffset, byteLength }: Int32Array | BigInt64Array,
  shape: readonly number[],
): InferTensor {
  return { name, datatype, shape, data: new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength) };
}

function integers(
  name: string,
  values: Int32Array | readonly number[],
  shape: readonly number[],
): InferTensor {
  return bytes(name, 'INT32', values instanceof Int32Array ? values : Int32Array.from(values), shape);
}

const floats = floatTensor;
