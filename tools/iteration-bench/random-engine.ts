import { closeSync, ftruncateSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EngineTensor } from '../../engine/engine-directory.js';
import type { WeightPrecision } from '../../engine/executor.js';
import type { NativeEngine } from '../../engine/native/native-executor.js';
import { planNetwork } from '../../models/architectures/index.js';
import type { ModelConfig } from '../../models/model-config.js';

/** The dimensions of SmolLM2-135M. */
const CONFIG: ModelConfig = {
  architecture: 'llama',
  vocabSize: 49152,
  hiddenSize: 576,
  intermediateSize: 1536,
  numLayers: 30,
  numHeads: 9,
  numKvHeads: 3,
  headDim: 64,
  rmsNormEpsilon: 1e-5,
  activation: 'silu',
  attentionBias: false,
  mlpBias: false,
  tieWordEmbeddings: true,
  maxPositions: 8192,
  rope: { theta: 100000, rotaryDim: 64, scaling: { type: 'none' } },
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
  const tensors: EngineTensor[] = [];
  let offset = 0;
  for (const { name, kind, rows, columns } of plan.weights) {
    const dtype = kind === 'vector' ? 'f32' : precision;
    const byteLength = rows * columns * (dtype === 'f32' ? 4 : 2);
    const bytes = kind === 'vector' ? ones(columns) : randomBytes(rows * columns, dtype, columns ** -0.5);
    writeSync(file, bytes, 0, byteLength, offset);
    tensors.push({ name, dtype, rows, columns, offset, byteLength });
    offset = Math.ceil((offset + byteLength) / 64) * 64;
  }
  ftruncateSync(file, offset);
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
function randomBytes(count: number, dtype: WeightPrecision, spread: number): Uint8Array {
  const floats = Float32Array.from({ length: count }, () => (Math.random() - 0.5) * 3.4 * spread);
  if (dtype === 'f32') return new Uint8Array(floats.buffer);
  const bits = new Uint32Array(floats.buffer);
  return new Uint8Array(Uint16Array.from(bits, (word) => word >>> 16).buffer);
}
