import { fromHalf, load16 } from '../../base/half.js';
import type { Xielu } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { CheckpointError } from './checkpoint.js';
import { readExactly, withFile } from './file-reading.js';
import type { GgufMetadata } from './gguf-metadata.js';
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

/** @throws CheckpointError for a tensor of more numbers, or of another type */
function numberOf({ file, name, type, shape, offset }: RawTensor): number {
  const isOne = shape.length <= 1 && (shape[0] ?? 1) === 1;
  if (!isOne || (type !== 'F32' && type !== 'BF16' && type !== 'F16')) {
    throw new CheckpointError(
      `${file}: tensor ${name} should be F32, BF16 or F16 of shape [1], found ${type} of shape [${shape.join(', ')}].`,
    );
  }
  const bytes = new Uint8Array(4);
  // The upper half of a float32 is a bf16.
  const own = type === 'F32' ? bytes : type === 'BF16' ? bytes.subarray(2) : bytes.subarray(0, 2);
  withFile(file, (fd) => readExactly(file, fd, own, offset));
  return type === 'F16' ? fromHalf(load16(bytes, 0)) : new DataView(bytes.buffer).getFloat32(0, true);
}
