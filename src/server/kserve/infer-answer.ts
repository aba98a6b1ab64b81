import type { InferResponse } from '../../../callbacks/infer/infer-types.js';
import type { InferModel } from '../../serving/infer-model.js';
import { chosenOutputs, wishedOutput } from '../../serving/protocol/chosen-outputs.js';
import { nextTurn } from '../../serving/protocol/turns.js';
import { jsonOfTensor } from './json-tensors.js';
import { JsonText, lengthOf } from './json-text.js';
import type { ReadInfer } from './read-infer.js';

/** An answer, and the headers that describe how to read it. */
export interface InferBody {
  /** A text where all of it is JSON and short; else parts that follow each other: a long answer is nowhere in one piece. */
  content: string | readonly Uint8Array[];
  headers: Record<string, string>;
  /** To be called when all of it has been sent; see InferResponse. */
  release?: (() => void) | undefined;
}

/**
 * The answer to a request: JSON, with the tensors that were asked for as binary data after it.
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
  for (const [output, wish] of chosenOutputs(outputs, wishes)) {
    const tensor = await wishedOutput(model, output, wish, signal);
    const { name, datatype, shape, data } = tensor;
    json.add(
      `${separator}{"name":${JSON.stringify(name)},"datatype":"${datatype}","shape":[${shape.join(',')}]`,
    );
    separator = ',';
    if (wish?.region != null) json.add('}');
    else if (wish?.isBinary ?? isBinary) {
      raw.push(data);
      json.add(`,"parameters":{"binary_data_size":${data.length}}}`);
    } else {
      json.add(',"data":');
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

function parametersText(parameters: NonNullable<InferResponse['parameters']>): string {
  const entries = Object.entries(parameters).map(
    ([name, value]) => `${JSON.stringify(name)}:${typeof value === 'bigint' ? value : JSON.stringify(value)}`,
  );
  return `{${entries.join(',')}}`;
}
