import type { Xielu } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { CheckpointError } from './checkpoint.js';
import type { GgufMetadata } from './gguf-metadata.js';
import { numberOf } from './one-number.js';
import type { RawTensor } from './raw-tensor.js';

/** The numbers of a layer as files have them: both alphas before softplus. */
interface Stored {
  alphaPositive: number;
  alphaNegative: number;
  beta: number;
  epsilon: number;
}

const NAMES: Readonly<Record<keyof Stored, string>> = {
  alphaPositive: 'alpha_p',
  alphaNegative: 'alpha_n',
  beta: 'beta',
  epsilon: 'eps',
};
/** Of files without the two that are not learned. */
const USUAL: Partial<Stored> = { beta: 0.5, epsilon: -1e-6 };
const FIELDS = Object.keys(NAMES) as (keyof Stored)[];

/** Whether the layers of a family have numbers of their activation. */
const hasNumbers = ({ architecture, activation }: ModelConfig) =>
  architecture === 'apertus' && activation === 'none';

/** The config with each layer's numbers, which safetensors have as tensors of one number. @param where names the files, for errors */
export function withXieluOfTensors(
  where: string,
  config: ModelConfig,
  tensors: ReadonlyMap<string, RawTensor>,
): ModelConfig {
  if (!hasNumbers(config)) return config;
  const xielu = Array.from({ length: config.numLayers }, (_, layer) =>
    xieluOf(where, (field) => {
      const tensor = tensors.get(`model.layers.${layer}.mlp.act_fn.${NAMES[field]}`);
      return tensor === undefined ? undefined : numberOf(tensor);
    }),
  );
  return { ...config, xielu };
}

/** The same of a GGUF, which has a list of each number. */
export function withXieluOfGguf(metadata: GgufMetadata, config: ModelConfig): ModelConfig {
  if (!hasNumbers(config)) return config;
  const lists = new Map(FIELDS.map((field) => [field, metadata.numbers(`xielu.${NAMES[field]}`)]));
  const xielu = Array.from({ length: config.numLayers }, (_, layer) =>
    xieluOf(metadata.file, (field) => lists.get(field)?.[layer]),
  );
  return { ...config, xielu };
}

function xieluOf(where: string, read: (field: keyof Stored) => number | undefined): Xielu {
  const number = (field: keyof Stored) => {
    const value = read(field) ?? USUAL[field];
    const isRight = value !== undefined && Number.isFinite(value) && (field !== 'epsilon' || value <= 0);
    if (isRight) return value;
    const expected = field === 'epsilon' ? 'a number of at most 0' : 'a number';
    throw new CheckpointError(
      `${where}: ${NAMES[field]} of each layer's xIELU should be ${expected}, found ${value ?? 'nothing'}.`,
    );
  };
  const f32 = Math.fround;
  const beta = number('beta');
  return {
    alphaPositive: softplus(number('alphaPositive')),
    alphaNegative: f32(f32(beta) + softplus(number('alphaNegative'))),
    beta,
    epsilon: number('epsilon'),
  };
}

/** As PyTorch: the number itself above 20. */
function softplus(x: number): number {
  return Math.fround(x > 20 ? x : Math.log1p(Math.exp(x)));
}
