import { closeSync, ftruncateSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { layOutWeights } from '../../../engine/building/engine.js';
import type { EngineTensor, WeightPrecision } from '../../../engine/directory/engine-directory.js';
import type { NativeEngine } from '../../../engine/executors/native/native-executor.js';
import { planNetwork } from '../../../models/architectures/index.js';
import type { ModelConfig } from '../../../models/model-config.js';
import { modelShapeOf } from '../../compare/shape/model-shapes.js';

const {
  name: _name,
  architecture,
  ropeTheta,
  isTied,
  experts: _experts,
  ...sizes
} = modelShapeOf('llama-135m');

/** The dimensions of SmolLM2-135M. */
export const CONFIG: ModelConfig = {
  ...sizes,
  architecture,
  rmsNormEpsilon: 1e-5,
  activation: 'silu',
  attentionBias: false,
  mlpBias: false,
  tieWordEmbeddings: isTied,
  maxPositions: 8192,
  slidingWindow: null,
  rope: { theta: ropeTheta, rotaryDim: sizes.headDim, scaling: { type: 'none' } },
  bosTokenId: null,
  eosTokenIds: [],
  padTokenId: null,
};

export interface RandomEngine extends NativeEngine {
  inverseFrequencies: Float32Array;
  remove(): void;
}

/** An engine of SmolLM2's shape with random weights in a temporary folder: enough to measure an iteration. */
export function makeRandomEngine(precision: WeightPrecision): RandomEngine {
  const plan = planNetwork(CONFIG);
  const folder = mkdtempSync(join(tmpdir(), 'skein-bench-'));
  const weightsFile = join(folder, 'weights.bin');
  const file = openSync(weightsFile, 'w');
  const { tensors, byteLength } = layOutWeights(
    plan,
    precision,
    precision === 'int4' ? 'int8' : precision,
    () => [],
  );
  for (const tensor of tensors) {
    const { dtype, rows, columns, offset } = tensor;
    const bytes = rows === 1 ? ones(columns) : randomBytes(tensor, columns ** -0.5);
    if (bytes.byteLength !== tensor.byteLength)
      throw new Error(`${tensor.name}: ${rows} x ${columns} in ${dtype}`);
    writeSync(file, bytes, 0, tensor.byteLength, offset);
  }
  ftruncateSync(file, byteLength);
  closeSync(file);
  const half = CONFIG.rope.rotaryDim / 2;
  const inverseFrequencies = Float32Array.from({ length: half }, (_, i) => CONFIG.rope.theta ** (-i / half));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  return { plan, weightsFile, tensors, packedFolder: folder, inverseFrequencies, remove };
}

function ones(count: number): Uint8Array {
  return new Uint8Array(new Float32Array(count).fill(1).buffer);
}

/** Uniform values of the given spread; bf16 by dropping the low half of each float. */
function randomBytes({ dtype, rows, columns, byteLength }: EngineTensor, spread: number): Uint8Array {
  if (dtype === 'int8' || dtype === 'int4') return randomBlocks(dtype, byteLength, spread);
  const floats = Float32Array.from({ length: rows * columns }, () => (Math.random() - 0.5) * 3.4 * spread);
  if (dtype === 'f32') return new Uint8Array(floats.buffer);
  const bits = new Uint32Array(floats.buffer);
  return new Uint8Array(Uint16Array.from(bits, (word) => word >>> 16).buffer);
}

/** Random quants with one scale (int8) or scale and minimum (int4), which are powers of two. */
function randomBlocks(dtype: 'int8' | 'int4', byteLength: number, spread: number): Uint8Array {
  const bytes = Uint8Array.from({ length: byteLength }, () => Math.random() * 256);
  const view = new DataView(bytes.buffer);
  const exponent = Math.round(Math.log2((3.4 * spread) / (dtype === 'int8' ? 256 : 16)));
  const half = (power: number) => (power + 15) << 10;
  for (let at = 0; at < byteLength; at += dtype === 'int8' ? 34 : 20) {
    view.setUint16(at, half(exponent), true);
    if (dtype === 'int4') view.setUint16(at + 2, 0x8000 | half(exponent + 3), true);
  }
  return bytes;
}
