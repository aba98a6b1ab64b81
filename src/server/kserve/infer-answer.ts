import { promisify } from 'node:util';
import { deflate, gzip } from 'node:zlib';
import type { InferResponse, InferTensor } from '../../../callbacks/infer/infer-types.js';
import { readLabels } from '../../../models/repository/read-labels.js';
import type { InferModel } from '../../serving/infer-model.js';
import { classified } from './classification.js';
import { jsonOfTensor } from './json-tensors.js';
import type { OutputWish, ReadInfer } from './read-infer.js';

/** An answer in bytes, and the headers that tell how to read them. */
export interface InferBody {
  /** A text where all of it is JSON. */
  bytes: Uint8Array | string;
  headers: Record<string, string>;
}

/** The answer to a request: JSON, with the tensors that were asked for as binary data behind it. @throws InferError */
export function inferBody(
  { config, version, modelDirectory }: InferModel,
  { request, wishes, isBinary }: ReadInfer,
  { outputs, parameters }: InferResponse,
): InferBody {
  const raw: Uint8Array[] = [];
  const texts = inOrder(outputs, wishes).map((output) => {
    const wish = wishes?.find(({ name }) => name === output.name);
    const tensor =
      wish === undefined || wish.classification === 0
        ? output
        : classified(
            output,
            wish.classification,
            config.max_batch_size > 0,
            labelsOf(config, output, modelDirectory),
          );
    const { name, datatype, shape, data } = tensor;
    const head = `{"name":${JSON.stringify(name)},"datatype":"${datatype}","shape":[${shape.join(',')}],`;
    if (!(wish?.isBinary ?? isBinary)) return `${head}"data":${jsonOfTensor(tensor)}}`;
    raw.push(data);
    return `${head}"parameters":{"binary_data_size":${data.length}}}`;
  });
  const id = request.id === '' ? '' : `"id":${JSON.stringify(request.id)},`;
  const extra = parameters === undefined ? '' : `"parameters":${parametersText(parameters)},`;
  const name = JSON.stringify(config.name);
  const text = `{${id}"model_name":${name},"model_version":"${version}",${extra}"outputs":[${texts.join(',')}]}`;
  if (raw.length === 0) return { bytes: text, headers: { 'content-type': 'application/json' } };
  const json = Buffer.from(text);
  const headers = {
    'content-type': 'application/octet-stream',
    'inference-header-content-length': String(json.length),
  };
  return { bytes: Buffer.concat([json, ...raw]), headers };
}

/** In the order in which they were asked for. */
function inOrder(
  outputs: readonly InferTensor[],
  wishes: readonly OutputWish[] | null,
): readonly InferTensor[] {
  if (wishes === null) return outputs;
  return wishes.flatMap(({ name }) => outputs.find((output) => output.name === name) ?? []);
}

function parametersText(parameters: NonNullable<InferResponse['parameters']>): string {
  const entries = Object.entries(parameters).map(
    ([name, value]) => `${JSON.stringify(name)}:${typeof value === 'bigint' ? value : JSON.stringify(value)}`,
  );
  return `{${entries.join(',')}}`;
}

function labelsOf(
  { output }: InferModel['config'],
  { name }: InferTensor,
  modelDirectory: string | null,
): readonly string[] {
  const filename = output.find((one) => one.name === name)?.label_filename ?? '';
  return filename === '' || modelDirectory === null ? [] : readLabels(modelDirectory, filename);
}

/** Answers shorter than this are not worth the time that it takes to compress them. */
const LEAST_COMPRESSED = 1024;
const COMPRESSORS = [
  ['gzip', promisify(gzip)],
  ['deflate', promisify(deflate)],
] as const;

/** The answer, compressed where its client reads that. */
export async function inferResponse(
  { bytes, headers }: InferBody,
  acceptEncoding: string,
): Promise<Response> {
  const found =
    bytes.length < LEAST_COMPRESSED ? undefined : COMPRESSORS.find(([name]) => acceptEncoding.includes(name));
  if (found === undefined) return new Response(bytes as Uint8Array<ArrayBuffer> | string, { headers });
  const [encoding, compress] = found;
  const compressed = await compress(bytes);
  return new Response(new Uint8Array(compressed), { headers: { ...headers, 'content-encoding': encoding } });
}
