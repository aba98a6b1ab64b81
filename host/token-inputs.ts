import {
  type FieldKind,
  type FieldName,
  NAMED_FIELDS,
  type RequestField,
  tensorsOfField,
} from '../callbacks/request/fields.js';
import type { ParameterKind } from '../callbacks/request/parameter.js';
import { NAMED_PARAMETERS } from '../callbacks/request/parameters.js';
import { retentionInputs } from '../callbacks/retention-inputs.js';
import type { SamplingParams } from '../callbacks/sampling-params.js';
import { SharedTensors } from '../callbacks/shared-tensors.js';
import { encodeWordList } from '../callbacks/stop-words.js';
import type { TokenRequest } from '../callbacks/token-request.js';
import type { InferenceRequest, Tensor } from '../callbacks/types.js';
import type { AdapterWeights } from '../models/adapters/adapter-weights.js';
import { type LoraTensors, writeLoraTensors } from '../models/adapters/lora-tensors.js';
import { sharedTensorsOf } from '../models/adapters/shared-adapter.js';
import { checkTokenValues } from './token-values.js';

type Inputs = Record<string, Tensor>;
type Shared = Pick<SharedTensors, 'of'>;

/** Makes the tensors of a token request. Throws ParameterError for values that a tensor could not carry unchanged. */
export function inferenceRequestOf(requestId: bigint, request: TokenRequest): InferenceRequest {
  const sampling = checkTokenValues(request);
  const { shared = new SharedTensors(), priority } = request;
  const inputs: Inputs = {
    ...samplingInputs(sampling),
    ...endInputs(request),
    streaming: bool(streams(request)),
  };
  for (const write of WRITERS) write(inputs, request, shared);
  return { requestId, inputs, ...(priority === undefined ? {} : { priority }) };
}

/** Tensors of the parameters that are not their defaults, and of the temperature: without one a request is greedy. */
function samplingInputs(sampling: SamplingParams): Inputs {
  const inputs: Inputs = {};
  for (const { name, tensor, parameter } of NAMED_PARAMETERS) {
    const value = sampling[name];
    if (name === 'temperature' || value !== parameter.default)
      inputs[tensor] = OF_PARAMETER[parameter.kind](value as never);
  }
  return inputs;
}

/** The tensor has one end token: the others run as stop words. */
function endInputs({ endTokenIds = [], stopWords = [] }: TokenRequest): Inputs {
  const [endId = -1, ...others] = endTokenIds;
  const words = [...others.map((token) => [token]), ...stopWords.map((word) => [...word])];
  return {
    end_id: i32(endId),
    ...(words.length === 0 ? {} : { stop_words_list: encodeWordList(words) }),
  };
}

/** True where pieces are streamed; beams are reported only at their end. */
export function streams({ streaming = true, beams }: TokenRequest): boolean {
  return streaming && (beams?.width ?? 1) === 1;
}

/** Number of known output tokens of a sequence, without an end token at their end. */
export function numKnownOutputs({ knownOutputIds, endTokenIds }: TokenRequest, sequence: number): number {
  const list = Array.isArray(knownOutputIds) ? (knownOutputIds[sequence] ?? []) : [];
  // A value that is no list of tokens is refused where the tensors are made.
  if (!Array.isArray(list) && !(list instanceof Int32Array)) return 0;
  const endsWithEndId = list.length > 0 && list.at(-1) === endTokenIds?.[0];
  return list.length - (endsWithEndId ? 1 : 0);
}

const i32 = (value: number): Tensor => ({ shape: [1], data: Int32Array.of(value) });
const f32 = (value: number): Tensor => ({ shape: [1], data: Float32Array.of(value) });
const u64 = (value: bigint): Tensor => ({ shape: [1], data: BigUint64Array.of(value) });
const bool = (value: boolean): Tensor => ({ shape: [1], data: Uint8Array.of(value ? 1 : 0) });

function text(value: string): Tensor {
  const data = new TextEncoder().encode(value);
  return { shape: [data.length], data };
}

/** Tensors of parameters, whose values have been checked. */
const OF_PARAMETER: Readonly<Record<ParameterKind, (value: never) => Tensor>> = {
  number: f32,
  integer: i32,
  flag: bool,
  key: u64,
};

type Lists = readonly (Int32Array | readonly number[])[];

/** Tensor of a checked value of a kind; null: it asks for nothing. Those of lists are shared. */
const OF_KIND: Partial<Record<FieldKind, (value: never, field: RequestField) => Tensor | null>> = {
  number: i32,
  count: i32,
  milliseconds: (value: number) => i32(Math.ceil(value)),
  flag: bool,
  text,
  key: u64,
  tokens: (tokens: ArrayLike<number>, { shape }) => ({
    shape: shape === '[d]' ? [tokens.length] : [1, tokens.length],
    data: new Int32Array(tokens),
  }),
  words: (words: Lists) => (words.length === 0 ? null : encodeWordList(words.map((word) => [...word]))),
  lists: tableOf,
  floats: (values: Float32Array) => ({ shape: [1, values.length], data: values.slice() }),
  rows: rowsTensor,
};

const SHARED: ReadonlySet<FieldKind> = new Set(['tokens', 'words', 'floats']);

type Write = (inputs: Inputs, request: TokenRequest, shared: Shared) => void;

/** Fields that endInputs and inferenceRequestOf write. */
const WRITTEN_APART: ReadonlySet<FieldName> = new Set(['endTokenIds', 'stopWords', 'streaming']);

/** Fields of several tensors. */
const OWN: Partial<Record<FieldName, (request: Required<TokenRequest>, shared: Shared) => Inputs>> = {
  beams: ({ beams: { width, lengthPenalty = 1, earlyStopping = false } }) => ({
    beam_width: i32(width),
    len_penalty: f32(lengthPenalty),
    early_stopping: i32(earlyStopping === 'never' ? 2 : Number(earlyStopping)),
  }),
  logitBias: ({ logitBias }, shared) => biasInputs(logitBias, shared),
  adapter: ({ adapter }, shared) => adapterTensors(adapter, shared),
  // Those that are joined become a tensor where the engine takes the request.
  promptEmbeddings: ({ promptEmbeddings, joinedEmbeddings }) =>
    joinedEmbeddings === undefined ? tableInputs(promptEmbeddings) : {},
  retention: ({ retention }) => retentionInputs(retention),
  reasoningBudget: ({ reasoningBudget: { tokens, endToken, beginToken = -1 } }) => ({
    reasoning_budget: { shape: [1, 3], data: Int32Array.of(tokens, endToken, beginToken) },
  }),
  guide: ({ guide }, shared) => ({
    guided_decoding_guide_type: text(guide.type),
    guided_decoding_guide: shared.of(guide, () => text(guide.guide)),
  }),
};

/** What writes the tensors of a field; null: it has none. @throws Error for a kind that no code writes */
export function writerOf(name: FieldName, field: RequestField): Write | null {
  const [first] = tensorsOfField(field);
  if (first === undefined || WRITTEN_APART.has(name)) return null;
  const own = OWN[name];
  if (own !== undefined) {
    return (inputs, request, shared) => {
      if (request[name] !== undefined) Object.assign(inputs, own(request as Required<TokenRequest>, shared));
    };
  }
  const [tensor] = first;
  const make = OF_KIND[field.kind] as ((value: unknown, field: RequestField) => Tensor | null) | undefined;
  if (make === undefined) throw new Error(`There is no tensor of the kind ${field.kind} of ${name}.`);
  return (inputs, request, shared) => {
    const value = request[name];
    if (value === undefined) return;
    const made = SHARED.has(field.kind)
      ? shared.of(value as object, () => make(value, field)!, name)
      : make(value, field);
    if (made != null) inputs[tensor] = made;
  };
}

const WRITERS: readonly Write[] = NAMED_FIELDS.flatMap(([name, field]) => writerOf(name, field) ?? []);

/** Table of lists, as wide as the longest of them; null: all of them are empty. */
function tableOf(lists: Lists): Tensor | null {
  const width = lists.reduce((most, { length }) => Math.max(most, length), 0);
  if (width === 0) return null;
  const data = new Int32Array(lists.length * width).fill(-1);
  for (const [i, list] of lists.entries()) data.set(list, i * width);
  return { shape: [lists.length, width], data };
}

/** The inputs of a request that continues after these tokens, a list for each sequence. */
export function withKnownOutputs(inputs: Inputs, known: readonly Int32Array[]): Inputs {
  const table = tableOf(known);
  return table === null ? inputs : { ...inputs, known_output_ids: table };
}

/** A tensor of rows of one length. */
function rowsTensor(rows: readonly Float32Array[]): Tensor | null {
  if (rows.length === 0) return null;
  const width = rows[0]!.length;
  const data = new Float32Array(rows.length * width);
  for (const [i, row] of rows.entries()) data.set(row, i * width);
  return { shape: [rows.length, width], data };
}

/** The embeddings of a prompt. @param joined the same in one array, where there is one */
export function tableInputs(
  rows: readonly Float32Array[],
  joined: Float32Array<ArrayBuffer> | null = null,
): Inputs {
  const [first] = rows;
  const table =
    joined === null || first === undefined
      ? rowsTensor(rows)
      : { shape: [rows.length, first.length], data: joined };
  return table === null ? {} : { prompt_embedding_table: table };
}

function biasInputs(biases: ReadonlyMap<number, number>, shared: Shared): Inputs {
  if (biases.size === 0) return {};
  const shape = [1, biases.size];
  return {
    logit_bias_tokens: shared.of(biases, () => ({ shape, data: Int32Array.from(biases.keys()) })),
    logit_bias: shared.of(biases, () => ({ shape, data: Float32Array.from(biases.values()) }), 'values'),
  };
}

/** Tensors of an adapter's weights, in float32. The engine refuses weights without an id. */
export function adapterTensors(
  adapter: AdapterWeights,
  shared: Shared,
): Record<'lora_weights' | 'lora_config', Tensor> {
  let written: LoraTensors | undefined;
  const write = () => (written ??= sharedTensorsOf(adapter) ?? writeLoraTensors(adapter));
  const weights = () => ({ shape: [...write().weightsShape], data: write().weights });
  const config = () => ({ shape: [...write().configShape], data: write().config });
  return { lora_weights: shared.of(adapter, weights), lora_config: shared.of(adapter, config, 'config') };
}
