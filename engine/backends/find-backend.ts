import { closestName } from '../../base/did-you-mean.js';
import type { ModelConfig } from '../../models/repository/model-config.js';
import { ModelConfigError } from '../../models/repository/model-config-error.js';
import type { Backend } from './backend.js';
import { namesThere, orList } from './model-file.js';
import { moduleBackend } from './module/module-backend.js';
import { onnxBackend } from './onnx/onnx-backend.js';
import { GRAPHDEF_REFUSED, tensorflowBackend } from './tensorflow/tensorflow-backend.js';

const BACKENDS: readonly Backend[] = [moduleBackend, onnxBackend, tensorflowBackend];

/** Files whose names tell the backend of a model without a configuration. */
const BY_FILENAME: ReadonlyMap<string, Backend> = new Map([
  ['model.onnx', onnxBackend],
  ['model.savedmodel', tensorflowBackend],
  ['model.mjs', moduleBackend],
  ['model.js', moduleBackend],
  ['model.ts', moduleBackend],
]);

/** `skein` of a configuration: models that generate text, and encoders, which have engines of their own. */
export const ENGINE_BACKEND = 'skein';

/**
 * The backend that a configuration names, or that a version's files tell; null: it is a model of an engine.
 * @param filenames of the version's folder @throws ModelConfigError with its field for one that there is not
 */
export function findBackend(
  { backend = '', platform = '' }: Partial<ModelConfig>,
  filenames: readonly string[],
): Backend | null {
  if (backend === ENGINE_BACKEND) return null;
  const found =
    backend !== ''
      ? BACKENDS.find(({ name }) => name === backend)
      : platform !== ''
        ? BACKENDS.find(({ platforms }) => platforms.includes(platform))
        : filenames.map((name) => BY_FILENAME.get(name)).find((one) => one !== undefined);
  if (found !== undefined) return found;
  const isGraphDef = platform === 'tensorflow_graphdef' || filenames.includes('model.graphdef');
  if (isGraphDef && backend === '') throw new ModelConfigError(GRAPHDEF_REFUSED);
  const names = [...BACKENDS.map(({ name }) => name), ENGINE_BACKEND];
  if (backend !== '') throw unknown('backend', backend, names);
  if (platform !== '') {
    const platforms = BACKENDS.flatMap((one) => one.platforms);
    throw unknown('platform', platform, platforms, `; backend may be ${orList(names)}`);
  }
  throw new ModelConfigError(
    `its configuration names no backend (${orList(names)}), and the version's files tell none: ${orList([...BY_FILENAME.keys()])} is expected; ${namesThere(filenames)}`,
  );
}

function unknown(field: string, value: string, known: readonly string[], more = ''): ModelConfigError {
  const meant = closestName(value, known);
  const hint = meant === null ? '' : `${meant} may be meant: `;
  return new ModelConfigError(`is '${value}'; ${hint}${orList(known)} is expected${more}.`, {
    path: [field],
  });
}
