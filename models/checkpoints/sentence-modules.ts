import { join } from 'node:path';
import type { Activation } from '../../network/plan.js';
import type { HeadLayer, Pooling } from '../encoder-config.js';
import { CheckpointError } from './checkpoint.js';
import { ConfigFields, LIMITS } from './config-fields.js';
import { readJsonObject } from './file-reading.js';
import type { RawTensor } from './raw-tensor.js';
import { readSafetensors } from './safetensors.js';

/** Tokens whose logits make a score: the first's less the second's; null: the first's alone. */
export type LogitScore = readonly [yes: number, no: number | null];

const MAX_BYTES = 1024 * 1024;

const POOLINGS: Readonly<Record<string, Pooling>> = {
  pooling_mode_mean_tokens: 'mean',
  pooling_mode_cls_token: 'cls',
  pooling_mode_lasttoken: 'last',
  pooling_mode_weightedmean_tokens: 'weighted',
};
/** The same by the one field that sentence-transformers 6 writes. */
const POOLING_NAMES: Readonly<Record<string, Pooling>> = {
  mean: 'mean',
  cls: 'cls',
  lasttoken: 'last',
  weightedmean: 'weighted',
};

const ACTIVATIONS: Readonly<Record<string, Activation>> = {
  'torch.nn.modules.linear.Identity': 'none',
  'torch.nn.modules.activation.Tanh': 'tanh',
  'torch.nn.modules.activation.ReLU': 'relu',
  'torch.nn.modules.activation.GELU': 'gelu',
  'torch.nn.modules.activation.SiLU': 'silu',
};

/** The config.json of a module's folder, and the modes of pooling that it turns on; `path`: its folder in the model's. */
export function moduleFields(directory: string, path: string): { fields: ConfigFields; modes: string[] } {
  const file = join(directory, path, 'config.json');
  const json = readJsonObject(file, MAX_BYTES);
  if (json === null) throw new CheckpointError(`${file}: is missing, though modules.json names its folder.`);
  const modes = Object.keys(json).filter((key) => key.startsWith('pooling_mode_') && json[key] === true);
  return { fields: new ConfigFields(file, json), modes };
}

/** How the model's rows of `hiddenSize` values become one. */
export function readPooling(fields: ConfigFields, modes: readonly string[], hiddenSize: number): Pooling {
  for (const key of ['word_embedding_dimension', 'embedding_dimension']) {
    if (fields.raw(key) !== undefined) fields.integer(key, hiddenSize, hiddenSize);
  }
  if (!fields.boolean('include_prompt', true)) throw fields.error('include_prompt', 'true');
  const named = fields.raw('pooling_mode');
  if (named !== undefined) {
    const pooling =
      typeof named === 'string' && Object.hasOwn(POOLING_NAMES, named) ? POOLING_NAMES[named] : null;
    if (!pooling) throw fields.error('pooling_mode', `one of ${Object.keys(POOLING_NAMES).join(', ')}`);
    return pooling;
  }
  const [mode = 'pooling_mode_mean_tokens'] = modes;
  if (modes.length <= 1 && Object.hasOwn(POOLINGS, mode)) return POOLINGS[mode]!;
  throw new CheckpointError(
    `${fields.where}: the pooling should be one of ${Object.keys(POOLINGS).join(', ')}; found ${modes.join(' and ')}.`,
  );
}

/** A Dense module over rows of `width` values. */
export function readDense(fields: ConfigFields, path: string, width: number): HeadLayer {
  const columns = fields.integer('in_features', 1, LIMITS.width);
  if (columns !== width) throw fields.error('in_features', `${width}, the width of what comes before it`);
  if (fields.boolean('use_residual', false)) throw fields.error('use_residual', 'false');
  for (const key of ['module_input_name', 'module_output_name']) {
    if ((fields.raw(key) ?? 'sentence_embedding') !== 'sentence_embedding')
      throw fields.error(key, 'sentence_embedding');
  }
  const named = fields.string('activation_function') ?? 'torch.nn.modules.activation.Tanh';
  const activation = Object.hasOwn(ACTIVATIONS, named) ? ACTIVATIONS[named] : undefined;
  if (activation === undefined) {
    throw fields.error('activation_function', `one of ${Object.keys(ACTIVATIONS).join(', ')}`);
  }
  return {
    tensors: [`${path}.linear`],
    width: fields.integer('out_features', 1, LIMITS.width),
    biased: fields.boolean('bias', true),
    activation,
  };
}

/** The tensors of Dense modules, under the names that their layers have for them. */
export function denseTensors(directory: string, layers: readonly HeadLayer[]): RawTensor[] {
  return layers.flatMap(({ tensors: [name] }) => {
    const [, path] = /^(.*)\.linear$/.exec(name!) ?? [];
    if (path === undefined) return [];
    const tensors = readSafetensors(join(directory, path, 'model.safetensors'));
    return tensors.map((tensor) => ({ ...tensor, name: `${path}.${tensor.name}` }));
  });
}

export function readLogitScore(fields: ConfigFields): LogitScore {
  const yes = fields.integer('true_token_id', 0, LIMITS.vocabSize);
  if (fields.raw('false_token_id') === undefined) return [yes, null];
  return [yes, fields.integer('false_token_id', 0, LIMITS.vocabSize)];
}
