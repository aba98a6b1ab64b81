import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import { planNetwork } from '../../../models/architectures/index.js';
import { huggingFaceTensorName } from '../../../models/checkpoints/gguf-tensor-names.js';
import { openCheckpoint } from '../../../models/checkpoints/open-checkpoint.js';
import type { ModelConfig } from '../../../models/model-config.js';
import { ropeFrequencies } from '../../../network/rope.js';
import { TestEngines, tinyModelPath } from '../../../tools/support/test-engine.js';

const engines = new TestEngines();
afterAll(() => engines.remove());

/** Fields that the keys of a GGUF file cannot express; they have the values that llama.cpp takes. */
const NOT_IN_GGUF: Record<string, (keyof ModelConfig)[]> = {
  qwen2: ['layerWindows'],
  qwen3: [],
  qwen3moe: [],
  mixtral: ['slidingWindow'],
  phi3: [],
  gemma2: ['attentionScale'],
  gemma3: ['attentionScale', 'bothWaysInPictures'],
  gpt2: [],
};

/** GGUF's numbers are f32. */
const asF32 = (value: unknown) =>
  JSON.parse(JSON.stringify(value, (_, item) => (typeof item === 'number' ? Math.fround(item) : item)));

describe.each(Object.keys(NOT_IN_GGUF))('tiny %s as llama.cpp converts it', (architecture) => {
  it('is the same network with the same weights, byte for byte', async () => {
    const fromHub = await engines.get(tinyModelPath(architecture), 'f32');
    const fromGguf = await engines.get(tinyModelPath(`${architecture}-gguf`), 'f32');
    expect(readFileSync(fromGguf.weightsFile).equals(readFileSync(fromHub.weightsFile))).toBe(true);
    const [hub, gguf] = [fromHub.manifest.config, { ...fromGguf.manifest.config }];
    expect(gguf.architecture).toBe(architecture);
    for (const field of NOT_IN_GGUF[architecture]!) {
      expect(gguf[field]).not.toEqual(hub[field]);
      Object.assign(gguf, { [field]: hub[field] });
    }
    expect(asF32(planNetwork(gguf))).toEqual(asF32(planNetwork(hub)));
    expect(gguf.slidingWindow).toBe(hub.slidingWindow);
    expect(gguf.maxPositions).toBe(hub.maxPositions);
    expect([gguf.bosTokenId, gguf.eosTokenIds]).toEqual([hub.bosTokenId, hub.eosTokenIds]);
    for (const length of [1, 64, 65, 200]) {
      expect(ropeFrequencies(gguf.rope, length)).toEqual(ropeFrequencies(hub.rope, length));
    }
  });
});

describe('what GGUF leaves to the reader', () => {
  it('is the scale of a head in Gemma', () => {
    for (const name of ['gemma2-gguf', 'gemma3-gguf'])
      expect(openCheckpoint(tinyModelPath(name)).config.attentionScale).toBe(1 / 4);
  });

  it('is which layers have a window: all but every sixth in Gemma 3, every other one in Gemma 2', () => {
    const windows = (name: string) => openCheckpoint(tinyModelPath(name)).config.layerWindows;
    expect(windows('gemma3-gguf')).toEqual([20, 20, 20, 20, 20, null]);
    expect(windows('gemma2-gguf')).toEqual([20, null, 20]);
    expect(windows('qwen2-gguf')).toBeUndefined();
  });
});

it('names of tensors follow the architecture', () => {
  const cases = [
    ['blk.3.attn_qkv.bias', 'gpt2', 'h.3.attn.c_attn.bias'],
    ['position_embd.weight', 'gpt2', 'wpe.weight'],
    ['blk.0.ffn_up.weight', 'phi3', 'model.layers.0.mlp.gate_up_proj.weight'],
    ['blk.0.ffn_up.weight', 'llama', 'model.layers.0.mlp.up_proj.weight'],
    ['blk.1.ffn_norm.weight', 'gemma3', 'model.layers.1.pre_feedforward_layernorm.weight'],
    ['blk.1.post_ffw_norm.weight', 'gemma2', 'model.layers.1.post_feedforward_layernorm.weight'],
    ['blk.1.attn_q_norm.weight', 'qwen3', 'model.layers.1.self_attn.q_norm.weight'],
    ['blk.1.attn_q_norm.weight', 'llama', 'blk.1.attn_q_norm.weight'],
    ['blk.1.attn_q_norm.weight', 'qwen3moe', 'model.layers.1.self_attn.q_norm.weight'],
    ['blk.1.ffn_gate_inp.weight', 'qwen3moe', 'model.layers.1.mlp.gate.weight'],
    ['blk.1.ffn_gate_inp.weight', 'mixtral', 'model.layers.1.block_sparse_moe.gate.weight'],
    ['blk.1.ffn_gate.weight', 'mixtral', 'blk.1.ffn_gate.weight'],
    ['blk.1.ffn_gate_inp.weight', 'llama', 'blk.1.ffn_gate_inp.weight'],
    ['blk.1.constructor.weight', 'qwen2', 'blk.1.constructor.weight'],
  ] as const;
  for (const [name, architecture, expected] of cases)
    expect(huggingFaceTensorName(name, architecture)).toBe(expected);
});
