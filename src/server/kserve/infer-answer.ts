import { setImmediate as nextTurn } from 'node:timers/promises';
import type { InferResponse, InferTensor } from '../../../callbacks/infer/infer-types.js';
import { readLabels } from '../../../models/repository/read-labels.js';
import type { InferModel } from '../../serving/infer-model.js';
import { codingFor, compressed } from './accept-encoding.js';
import { classified } from './classification.js';
import { jsonOfTensor } from './json-tensors.js';
import type { OutputWish, ReadInfer } from './read-infer.js';

/** An answer in bytes, and the headers that tell how to read them. */
export interface InferBody {
  bytes: Uint8Array<ArrayBuffer>;
  headers: Record<string, string>;
}

/**
 * The answer to a request: JSON, with the tensors that were asked for as binary data behind it.
 * @param hold called with bytes that the answer takes, before it takes more @throws InferError, and what `hold` throws
 */
export async function inferBody(
  model: InferModel,
  { request: { id }, wishes, isBinary }: ReadInfer,
  { outputs, parameters }: InferResponse,
  hold: (bytes: number) => void,
): Promise<InferBody> {
  const { config, version } = model;
  const raw: Uint8Array[] = [];
  const json = new JsonText(hold);
  if (id !== '') json.add(`{"id":${JSON.stringify(id)},`);
  const extra = parameters === undefined ? '' : `"parameters":${parametersText(parameters)},`;
  json.add(
    `${id === '' ? '{' : ''}"model_name":${JSON.stringify(config.name)},"model_version":"${version}",${extra}"outputs":[`,
  );
  let separator = '';
  for (const [output, wish] of inOrder(outputs, wishes)) {
    const tensor =
      wish === undefined || wish.classification === 0
        ? output
        : await classified(
            output,
            wish.classification,
            config.max_batch_size > 0,
            labelsOf(model, output.name),
          );
    const { name, datatype, shape, data } = tensor;
    json.add(
      `${separator}{"name":${JSON.stringify(name)},"datatype":"${datatype}","shape":[${shape.join(',')}],`,
    );
    separator = ',';
    if (wish?.isBinary ?? isBinary) {
      raw.push(data);
      json.add(`"parameters":{"binary_data_size":${data.length}}}`);
    } else {
      json.add('"data":');
      for (const piece of jsonOfTensor(tensor)) if (json.add(piece)) await nextTurn();
      json.add('}');
    }
  }
  return withTensors(json.end(']}'), raw, hold);
}

function withTensors(json: Buffer<ArrayBuffer>, raw: Uint8Array[], hold: (bytes: number) => void): InferBody {
  // As with Triton, tensors without a byte leave the answer JSON alone.
  if (raw.every(({ length }) => length === 0)) {
    return { bytes: json, headers: { 'content-type': 'application/json' } };
  }
  const headers = {
    'content-type': 'application/octet-stream',
    'inference-header-content-length': String(json.length),
  };
  const length = raw.reduce((sum, data) => sum + data.length, json.length);
  hold(length);
  return { bytes: Buffer.concat([json, ...raw], length), headers };
}

/** Characters of an answer that are gathered before they become bytes. */
const PIECE = 2 ** 16;

/** The JSON of an answer, of which no more than a piece is text at a time. */
class JsonText {
  readonly #parts: Buffer[] = [];
  readonly #hold: (bytes: number) => void;
  #text = '';

  constructor(hold: (bytes: number) => void) {
    this.#hold = hold;
  }

  /** True: it was long enough for others to have their turn. */
  add(text: string): boolean {
    this.#text += text;
    if (this.#text.length < PIECE) return false;
    this.#flush();
    return true;
  }

  #flush(): void {
    const part = Buffer.from(this.#text);
    // Once as it is, and once in the whole.
    this.#hold(2 * part.length);
    this.#parts.push(part);
    this.#text = '';
  }

  end(text: string): Buffer<ArrayBuffer> {
    this.#text += text;
    if (this.#parts.length === 0) {
      const whole = Buffer.from(this.#text);
      this.#hold(whole.length);
      return whole;
    }
    this.#flush();
    return Buffer.concat(this.#parts);
  }
}

/** Outputs with what is wished of them, in the order in which they were asked for. */
function inOrder(
  outputs: readonly InferTensor[],
  wishes: readonly OutputWish[] | null,
): [InferTensor, OutputWish | undefined][] {
  if (wishes === null) return outputs.map((output) => [output, undefined]);
  return wishes.flatMap((wish) => {
    const output = outputs.find(({ name }) => name === wish.name);
    return output === undefined ? [] : [[output, wish]];
  });
}

function parametersText(parameters: NonNullable<InferResponse['parameters']>): string {
  const entries = Object.entries(parameters).map(
    ([name, value]) => `${JSON.stringify(name)}:${typeof value === 'bigint' ? value : JSON.stringify(value)}`,
  );
  return `{${entries.join(',')}}`;
}

/** Labels by the file's name, of each version of a model: a version's files stay what they are. */
const labelsOfModels = new WeakMap<InferModel, Map<string, readonly string[]>>();

function labelsOf(model: InferModel, output: string): readonly string[] {
  const filename = model.config.output.find(({ name }) => name === output)?.label_filename ?? '';
  if (filename === '' || model.modelDirectory === null) return [];
  const known = labelsOfModels.get(model) ?? new Map<string, readonly string[]>();
  labelsOfModels.set(model, known);
  const labels = known.get(filename) ?? readLabels(model.modelDirectory, filename);
  known.set(filename, labels);
  return labels;
}

/** Answers shorter than this are not worth the time that it takes to compress them. */
const LEAST_COMPRESSED = 1024;

/** The answer, compressed where its client reads that. */
export async function inferResponse(
  { bytes, headers }: InferBody,
  acceptEncoding: string | undefined,
): Promise<Response> {
  const coding = bytes.length < LEAST_COMPRESSED ? null : codingFor(acceptEncoding);
  if (coding === null) return new Response(bytes, { headers });
  return new Response(await compressed(bytes, coding), {
    headers: { ...headers, 'content-encoding': coding },
  });
}
