import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { drawWords } from '../../../../loadgen/data/words.js';
import { Random as LoadRandom } from '../../../../loadgen/random.js';
import { openCheckpoint } from '../../../../models/checkpoints/open-checkpoint.js';
import { Tokenizer } from '../../../../models/tokenizer/tokenizer.js';
import { openTower } from '../../../../models/towers/open-tower.js';
import type { ModelShape } from '../../../../tools/compare/shape/model-shapes.js';
import {
  checkRoom,
  writeRandomGguf,
  writeRandomMmproj,
} from '../../../../tools/compare/shape/random-gguf.js';
import { blockValues } from '../../../../tools/support/block-values.js';
import { fromHalf } from '../../../../tools/support/quantized.js';
import { freshFolders } from '../../../support/fresh-folders.js';

const freshFolder = freshFolders('random-gguf');
const SMALL: ModelShape = {
  name: 'small',
  architecture: 'qwen3',
  vocabSize: 4000,
  hiddenSize: 512,
  intermediateSize: 768,
  numLayers: 2,
  numHeads: 4,
  numKvHeads: 2,
  headDim: 64,
  ropeTheta: 10_000,
  isTied: true,
};

describe('writeRandomGguf', () => {
  const file = join(freshFolder(), 'small.Q4_K_M.gguf');
  const bytes = writeRandomGguf(file, SMALL, 'Q4_K_M');
  const checkpoint = openCheckpoint(file);

  it('writes a checkpoint of that shape', () => {
    expect(checkpoint.config).toMatchObject({
      architecture: 'qwen3',
      vocabSize: 4000,
      hiddenSize: 512,
      intermediateSize: 768,
      numLayers: 2,
      numHeads: 4,
      numKvHeads: 2,
      headDim: 64,
      tieWordEmbeddings: true,
    });
    expect(bytes).toBe(readFileSync(file).length);
    expect(checkpoint.tensors.get('model.layers.1.mlp.up_proj.weight')?.type).toBe('Q4_K');
  });

  it('writes a model that sees, with its tower in a file of its own', () => {
    const tower = {
      ...{ hiddenSize: 64, intermediateSize: 96, numLayers: 3, numHeads: 2 },
      ...{ patch: 16, image: 64, merge: 2, levels: [0, 1] },
    };
    const shape: ModelShape = { ...SMALL, architecture: 'qwen3vl', headDim: 128, tower };
    const path = join(freshFolder(), 'seeing.Q8_0.gguf');
    writeRandomGguf(path, shape, 'Q8_0');
    writeRandomMmproj(join(dirname(path), 'mmproj.gguf'), shape, 'Q8_0');
    const text = openCheckpoint(path);
    expect(text.config.promptLevels).toBe(2);
    const seen = openTower(text)!;
    expect(seen.config).toMatchObject({ kind: 'qwen', numLayers: 3, textWidth: 512, positionSide: 4 });
    const tokens = new Tokenizer(text.tokenizer).encode('<|vision_start|><|image_pad|><|vision_end|>');
    expect(tokens[1]).toBe(seen.pictures!.config.image_token_id);
    expect(tokens).toHaveLength(3);
  });

  it('writes a gpt-oss with experts in MXFP4, whose spread is about that of others', () => {
    const gptOss: ModelShape = { ...SMALL, architecture: 'gpt-oss', experts: { count: 4, used: 2 } };
    const path = join(freshFolder(), 'gpt-oss.Q8_0.gguf');
    writeRandomGguf(path, gptOss, 'Q8_0');
    const { config, tensors } = openCheckpoint(path);
    expect(config).toMatchObject({ architecture: 'gptoss', layerWindows: [128, null], sinkLogits: true });
    const up = tensors.get('model.layers.1.mlp.experts.2.up_proj.weight')!;
    expect(up.type).toBe('MXFP4');
    // 2^(exponent - 127) times 2.9, of 512 columns.
    const exponent = readFileSync(path)[up.offset]!;
    expect(2.9 * 2 ** (exponent - 127) * 512 ** 0.5).toBeCloseTo(1, 0);
  });

  it('gives matrices a spread of one over the root of their columns, and norms ones', () => {
    const stored = (name: string) => {
      const { offset, byteLength } = checkpoint.tensors.get(name)!;
      return readFileSync(file).subarray(offset, offset + byteLength);
    };
    const spreadOf = (name: string, type: 'q4_k' | 'q6_k', blockBytes: number) => {
      const data = stored(name);
      const values: number[] = [];
      for (let at = 0; at < 100 * blockBytes; at += blockBytes)
        values.push(...blockValues(type, data.subarray(at, at + blockBytes)));
      const mean = values.reduce((sum, x) => sum + x, 0) / values.length;
      const variance = values.reduce((sum, x) => sum + (x - mean) ** 2, 0) / values.length;
      return { mean: mean * 512 ** 0.5, spread: (variance * 512) ** 0.5 };
    };
    for (const { mean, spread } of [
      spreadOf('model.layers.0.self_attn.q_proj.weight', 'q4_k', 144),
      spreadOf('model.embed_tokens.weight', 'q6_k', 210),
    ]) {
      expect(Math.abs(mean)).toBeLessThan(0.15);
      expect(spread).toBeGreaterThan(0.7);
      expect(spread).toBeLessThan(1.4);
    }
    const norm = stored('model.norm.weight');
    expect(new Float32Array(norm.buffer.slice(norm.byteOffset, norm.byteOffset + 8))).toEqual(
      Float32Array.of(1, 1),
    );
    expect(fromHalf(0x3c00)).toBe(1);
  });

  it('writes the same bytes each time', () => {
    const again = join(freshFolder(), 'again.gguf');
    writeRandomGguf(again, SMALL, 'Q4_K_M');
    expect(readFileSync(again).equals(readFileSync(file))).toBe(true);
  });

  it('has a vocabulary in which a word of the load generator is one token', () => {
    const tokenizer = new Tokenizer(checkpoint.tokenizer);
    const text = ` ${drawWords(50, new LoadRandom(3))}`;
    const tokens = tokenizer.encode(text);
    expect(tokens).toHaveLength(50);
    expect(tokenizer.decode(tokens)).toBe(text);
    expect(tokenizer.decode(tokenizer.encode('Zoë, 12!'))).toBe('Zoë, 12!');
  });
});

describe('writeRandomGguf of a mixture of experts', () => {
  it('writes the keys and tensors by which it is read', () => {
    const file = join(freshFolder(), 'experts.Q4_K_M.gguf');
    const experts = { count: 8, used: 3 };
    writeRandomGguf(file, { ...SMALL, architecture: 'qwen3moe', isTied: false, experts }, 'Q4_K_M');
    const { config, tensors } = openCheckpoint(file);
    expect(config).toMatchObject({
      architecture: 'qwen3moe',
      intermediateSize: 768,
      tieWordEmbeddings: false,
      experts: { count: 8, used: 3, width: 768, normalize: true },
    });
    const typeOf = (name: string) => tensors.get(`model.layers.1.mlp.${name}.weight`)?.type;
    expect(['gate', 'experts.7.gate_proj', 'experts.7.down_proj'].map(typeOf)).toEqual([
      'F32',
      'Q4_K',
      'Q6_K',
    ]);
  });
});

describe('writeRandomGguf of layers with states', () => {
  it('writes the keys and tensors by which it is read, and rates of decay below 0', () => {
    const file = join(freshFolder(), 'states.Q8_0.gguf');
    const delta = { keyHeads: 2, valueHeads: 4, keyDim: 32, valueDim: 32 };
    writeRandomGguf(file, { ...SMALL, architecture: 'qwen35', numLayers: 4, delta }, 'Q8_0');
    const { config, tensors } = openCheckpoint(file);
    expect(config).toMatchObject({
      architecture: 'qwen35',
      attendingLayers: [false, false, false, true],
      shortConv: { taps: 4 },
      delta: { ...delta, rates: true },
      rope: { rotaryDim: 16 },
    });
    const { offset, byteLength } = tensors.get('model.layers.0.linear_attn.A_log')!;
    const { buffer, byteOffset } = readFileSync(file).subarray(offset, offset + byteLength);
    const rates = new Float32Array(buffer.slice(byteOffset, byteOffset + byteLength));
    expect([...rates].every((rate) => rate < 0)).toBe(true);
    expect(tensors.get('model.layers.3.mlp.up_proj.weight')?.type).toBe('Q8_0');
  });

  it('writes the head that guesses tokens where it is asked for', () => {
    const file = join(freshFolder(), 'head.gguf');
    const delta = { keyHeads: 2, valueHeads: 4, keyDim: 32, valueDim: 32 };
    const shape: ModelShape = { ...SMALL, architecture: 'qwen35', numLayers: 4, delta, draftHead: true };
    writeRandomGguf(file, shape, 'Q8_0');
    expect(openCheckpoint(file).config.numLayers).toBe(4);
    const { config, tensors } = openCheckpoint(file, { wantsHead: true });
    expect(config).toMatchObject({ numLayers: 4, draftHead: true });
    expect(tensors.get('mtp.fc.weight')?.shape).toEqual([512, 1024]);
    expect(tensors.get('model.layers.4.self_attn.k_proj.weight')?.type).toBe('Q8_0');
  });
});

describe('checkRoom', () => {
  it('says what a file takes and what the disk has', () => {
    const folder = freshFolder();
    expect(() => checkRoom(folder, 'a model', 1)).not.toThrow();
    expect(() => checkRoom(folder, 'a model', 1e18)).toThrow(
      /a model takes 1000000000\.0 GB, and the disk has \d/,
    );
  });
});
