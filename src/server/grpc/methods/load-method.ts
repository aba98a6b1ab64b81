import { InferError } from '../../../../callbacks/infer/infer-error.js';
import { LONGEST_NAME } from '../../../../callbacks/infer/request-limits.js';
import { malformed } from '../../../serving/infer-failure.js';
import type { LoadParameters } from '../../../serving/model-repository.js';
import { loadParametersOf } from '../../../serving/protocol/load-parameters.js';
import { requireAdmin } from '../../web/access/auth.js';
import { addParameter, type MessageParameter, REPOSITORY_KINDS } from '../infer/infer-message.js';
import { FieldBudget, WireReader } from '../infer/wire-reader.js';
import type { MethodTypes } from '../schema/message-types.js';
import { GrpcError } from '../wire/status.js';
import { checkRepository, type InferenceServices } from './inference-methods.js';
import { type Method, method } from './method.js';

/** RepositoryModelLoad, which may bring files: they stay where they lie in the message. */
export function loadMethod(types: MethodTypes, { platform, apiKeys }: InferenceServices): Method {
  return {
    ...method(types, { isWork: true }),
    answer: async ({ call, caller }) => {
      requireAdmin(caller, apiKeys);
      const { bytes, memory } = await call.only();
      try {
        const { model, parameters } = readLoad(bytes);
        const given = givenParameters(model, parameters, platform.allowsUpload);
        await platform.repository.load(model, given).catch((error: unknown) => asFailed(error));
        await call.reply([types.write({})]);
      } finally {
        memory.release();
      }
    },
  };
}

interface AskedLoad {
  model: string;
  parameters: ReadonlyMap<string, MessageParameter>;
}

/** @throws InferError, GrpcError */
function readLoad(bytes: Uint8Array): AskedLoad {
  const reader = new WireReader(bytes, new FieldBudget());
  const parameters = new Map<string, MessageParameter>();
  let [repository, model] = ['', ''];
  while (reader.next()) {
    if (reader.field === 1) repository = reader.text(LONGEST_NAME, 'repository_name');
    else if (reader.field === 2) model = reader.text(LONGEST_NAME, 'model_name');
    else if (reader.field === 3) addParameter(parameters, reader.message(), REPOSITORY_KINDS);
    else reader.skip();
  }
  checkRepository(repository);
  return { model, parameters };
}

/** The parameters as HTTP has them in JSON. @throws InferError, GrpcError */
function givenParameters(
  model: string,
  parameters: AskedLoad['parameters'],
  allowsUpload: boolean,
): LoadParameters {
  const values: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
  for (const [name, { kind, value }] of parameters) {
    const expected = name === 'config' ? 'string' : name.startsWith('file:') ? 'bytes' : null;
    if (expected !== null && kind !== expected) {
      throw malformed(`invalid value type for load parameter '${name}', expected ${expected}_param.`);
    }
    if (expected !== null && !allowsUpload) {
      throw malformed('this server takes no configuration and no files from clients (--allow-model-upload)');
    }
    values[name] = value;
  }
  try {
    return loadParametersOf({ parameters: values }, allowsUpload);
  } catch (error) {
    return asFailed(error, `failed to load '${model}', failed to poll from model repository: `);
  }
}

/** As Triton has it, whatever is wrong with the model is an error of the server. */
function asFailed(error: unknown, before = ''): never {
  if (!(error instanceof InferError) || error.kind !== 'invalid') throw error;
  throw new GrpcError('INTERNAL', before + error.message);
}
