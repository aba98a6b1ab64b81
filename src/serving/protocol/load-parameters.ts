import { malformed } from '../infer-failure.js';
import type { LoadParameters } from '../model-repository.js';
import { knownFields, objectOf } from './known-fields.js';

const FILE = 'file:';
const MAX_VALUES = 256;
/** Bytes of a part of a path that a file system takes. */
const LONGEST_PART = 255;

/**
 * The body of a load: `config`, and files under `file:PATH`, as bytes or in base64, take the place of the repository's; `share` and any
 * other value are load-time parameters of the AMD Inference Server. @throws InferError
 */
export function loadParametersOf(body: unknown, allowsUpload: boolean): LoadParameters {
  const { parameters } = knownFields(body, 'the request', ['parameters']);
  const { config, share, ...rest } = objectOf(parameters ?? {}, "'parameters'");
  const files = new Map<string, Uint8Array>();
  const values: Record<string, string | number | boolean> = {};
  for (const [name, value] of Object.entries(rest)) {
    if (name.startsWith(FILE)) files.set(name.slice(FILE.length), contentOf(name, value));
    else values[name] = parameterOf(name, value);
  }
  if (config !== undefined && typeof config !== 'string')
    throw malformed("'config' is not a string: the JSON of a configuration is expected");
  if (share !== undefined && typeof share !== 'boolean') throw malformed("'share' is not true or false");
  if (Object.keys(values).length > MAX_VALUES) throw malformed(`at most ${MAX_VALUES} parameters are taken`);
  if ((config !== undefined || files.size > 0) && !allowsUpload) {
    throw malformed('this server takes no configuration and no files from clients (--allow-model-upload)');
  }
  if (files.size > 0 && config === undefined) {
    throw malformed("files of a model need its 'config' next to them");
  }
  return {
    ...(config === undefined ? {} : { config }),
    ...(files.size === 0 ? {} : { files }),
    ...(Object.keys(values).length === 0 ? {} : { values }),
    ...(share === undefined ? {} : { share }),
  };
}

/** A path within the model's folder, and nothing that leads out of it. */
function contentOf(name: string, value: unknown): Uint8Array {
  const path = name.slice(FILE.length);
  const isName = (part: string) =>
    part !== '' && part !== '.' && part !== '..' && Buffer.byteLength(part) <= LONGEST_PART;
  if (!path.split('/').every(isName) || /[\\\0]/.test(path))
    throw malformed(`'${name}' names no file of the model's folder`);
  if (value instanceof Uint8Array) return value;
  if (typeof value !== 'string' || !/^[A-Za-z0-9+/]*={0,2}$/.test(value)) {
    throw malformed(`'${name}' is not a file in base64`);
  }
  return Buffer.from(value, 'base64');
}

function parameterOf(name: string, value: unknown): string | number | boolean {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value;
  throw malformed(`parameter '${name}' is no string, number or boolean`);
}
