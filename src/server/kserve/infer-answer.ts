import type { InferResponse, InferTensor } from '../../../callbacks/infer/infer-types.js';
import { readLabels } from '../../../models/repository/read-labels.js';
import type { InferModel } from '../../serving/infer-model.js';
import { classified } from './classification.js';
import { jsonOfTensor } from './json-tensors.js';
import { JsonText, lengthOf } from './json-text.js';
import type { OutputWish, ReadInfer } from './read-infer.js';
import { nextTurn } from './turns.js';

/** An answer, and the headers that tell how to read it. */
export interface InferBody {
  /** A text where all of it is JSON and short; else parts that follow each other: a long answer is nowhere in one piece. */
  content: string | readonly Uint8Array[];
  headers: Record<string, string>;
  /** To be called when all of it has been sent; see InferResponse. */
  release?: (() => void) | undefined;
}

/**
 * The answer to a request: JSON, with the tensors that were asked for as binary data behind it.
 * @param hold called with bytes that the answer takes, before it takes more @throws InferError, and what `hold` throws
 */
export async function inferBody(
  model: InferModel,
  { request: { id, signal }, wishes, isBinary }: ReadInfer,
  { outputs, parameters, release }: InferResponse,
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
            signal,
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
      for (const piece of jsonOfTensor(tensor)) if (json.add(piece)) await nextTurn(signal);
      json.add('}');
    }
  }
  json.add(']}');
  hold(lengthOf(raw));
  return { ...withTensors(json, raw), release };
}

function withTensors(json: JsonText, raw: readonly Uint8Array[]): InferBody {
  // As with Triton, tensors without a byte leave the answer JSON alone.
  if (raw.every(({ length }) => length === 0)) {
    return { content: json.content(), headers: { 'content-type': 'application/json' } };
  }
  const parts = json.parts();
  const headers = {
    'content-type': 'application/octet-stream',
    'inference-header-content-length': String(lengthOf(parts)),
  };
  return { content: [...parts, ...raw], headers };
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
