import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { baseModules } from '../../../models/adapters/base-modules.js';
import { readGgufAdapter } from '../../../models/adapters/gguf-adapter.js';
import { LoraTensorsError } from '../../../models/adapters/lora-tensors.js';
import { MODULE_IDS } from '../../../models/adapters/module-ids.js';
import { readPeftCheckpoint } from '../../../models/adapters/peft-checkpoint.js';
import { CheckpointError } from '../../../models/checkpoints/checkpoint.js';
import { ggufBytes, type TestTensor } from '../../../tools/support/gguf-writer.js';
import { expertsConfig } from '../../support/experts-config.js';
import { freshFolders } from '../../support/fresh-folders.js';
import { readLoraTensors } from '../../support/read-lora-tensors.js';
import { floats, writeTinyAdapter } from '../../support/tiny-adapter.js';

const fresh = freshFolders('skein-expert-modules');
const ARCHITECTURES = ['qwen3moe', 'mixtral', 'gptoss', 'glm4moe', 'phimoe'];
/** Those that llama.cpp calls otherwise. */
const GGUF_NAMES = new Map([
  ['mixtral', 'llama'],
  ['gptoss', 'gpt-oss'],
]);
/** Hidden size 12, three heads of 6 over one. */
const baseOf = (architecture: string) => expertsConfig({ architecture });
const pair = (name: string, from: number, to: number, parts = ['lora_A.weight', 'lora_B.weight']) => [
  floats(`${name}.${parts[0]}`, [2, from]),
  floats(`${name}.${parts[1]}`, [to, 2]),
];
const ATTENTION = 'self_attn.q_proj, self_attn.k_proj, self_attn.v_proj, self_attn.o_proj';

describe.each(ARCHITECTURES)('an adapter of %s', (architecture) => {
  const base = baseOf(architecture);
  const layer = 'base_model.model.model.layers.1';
  const readPeft = (tensors: readonly TestTensor[], config: object = { target_modules: null }) =>
    readPeftCheckpoint(writeTinyAdapter(fresh(), { tensors, config }), base, { maxRank: 8 });

  it('changes the modules of attention', () => {
    const { moduleLayers } = readPeft([
      ...pair(`${layer}.self_attn.q_proj`, 12, 18),
      ...pair(`${layer}.self_attn.k_proj`, 12, 6),
      ...pair(`${layer}.self_attn.o_proj`, 18, 12),
    ]);
    expect(moduleLayers.map(({ module }) => module)).toEqual([
      MODULE_IDS.attn_q,
      MODULE_IDS.attn_k,
      MODULE_IDS.attn_dense,
    ]);
    expect([...baseModules(base).shapes.keys()]).toEqual([0, 1, 2, 3, 4]);
  });

  it.each([
    ['mlp.experts.3.gate_proj', 12, 8],
    ['mlp.experts.0.down_proj', 8, 12],
    ['block_sparse_moe.experts.1.w1', 12, 8],
    ['mlp.gate_proj', 12, 20],
    ['mlp.gate', 12, 4],
    ['mlp.router', 12, 4],
    ['mlp.experts', 12, 8],
    ['block_sparse_moe.gate', 12, 4],
  ])('cannot change %s, and names it', (module, from, to) => {
    const read = () => readPeft(pair(`${layer}.${module}`, from, to));
    expect(read).toThrow(CheckpointError);
    expect(read).toThrow(
      `tensor ${layer}.${module}.lora_A.weight belongs to no module of the base model that can have an adapter; its layers (model.layers) have ${ATTENTION}`,
    );
  });

  it('cannot change parameters of all experts', () => {
    const config = { target_modules: ['q_proj'], target_parameters: ['mlp.experts.gate_up_proj'] };
    expect(() => readPeft(pair(`${layer}.self_attn.q_proj`, 12, 18), config)).toThrow(
      /target_parameters should be absent or off/,
    );
  });

  it('from llama.cpp changes the modules of attention alone', () => {
    const file = join(fresh(), 'adapter.gguf');
    mkdirSync(join(file, '..'), { recursive: true });
    const metadata = {
      'general.type': { type: 'string', value: 'adapter' },
      'adapter.type': { type: 'string', value: 'lora' },
      'general.architecture': { type: 'string', value: GGUF_NAMES.get(architecture) ?? architecture },
      'adapter.lora.alpha': { type: 'f32', value: 2 },
    } as const;
    const read = (tensors: readonly TestTensor[]) => {
      writeFileSync(file, ggufBytes(metadata, tensors));
      return readGgufAdapter(file, base, { maxRank: 8 });
    };
    const parts = ['lora_a', 'lora_b'];
    const queries = pair('blk.0.attn_q.weight', 12, 18, parts);
    const { moduleLayers } = read(queries);
    expect(moduleLayers).toMatchObject([{ layer: 0, module: MODULE_IDS.attn_q, rank: 2 }]);
    // The rows of Mixtral's heads are interleaved, as in files of Llama.
    expect(moduleLayers[0]!.b[2]).toBe(architecture === 'mixtral' ? 1 : 0.75);
    for (const name of ['blk.0.ffn_gate_exps.weight', 'blk.0.ffn_gate.weight', 'blk.0.ffn_gate_inp.weight'])
      expect(() => read([...queries, ...pair(name, 12, 8, parts)])).toThrow(
        `tensor ${name}.lora_a belongs to no module of the base model that can have an adapter; those are ${ATTENTION}`,
      );
  });

  it('as tensors of a request cannot name modules of an MLP', () => {
    const read = (module: number) => () =>
      readLoraTensors(
        {
          weights: new Float32Array(100),
          weightsShape: [1, 100],
          config: Int32Array.of(module, 0, 1),
          configShape: [1, 3],
        },
        base,
        { maxRank: 8 },
      );
    expect(read(MODULE_IDS.attn_v)().modules).toEqual([MODULE_IDS.attn_v]);
    for (const name of ['mlp_h_to_4h', 'mlp_gate', 'mlp_4h_to_h', 'moe_h_to_4h', 'moe_router'] as const) {
      expect(read(MODULE_IDS[name])).toThrow(LoraTensorsError);
      expect(read(MODULE_IDS[name])).toThrow(
        `the module should be one that the model has, 0 (attn_qkv), 1 (attn_q), 2 (attn_k), 3 (attn_v), 4 (attn_dense), found ${MODULE_IDS[name]} (${name})`,
      );
    }
  });
});

describe('an adapter of a model with scans', () => {
  const modulesOf = (architecture: string) => {
    const { experts: _, ...config } = expertsConfig({ architecture });
    return [...baseModules(config).names.keys()];
  };

  it('changes attention where a layer has its usual names, and nothing elsewhere', () => {
    for (const architecture of ['granite4', 'falconh1'])
      expect(modulesOf(architecture).join(', ')).toBe(ATTENTION);
    for (const architecture of ['mamba2', 'nemotronh']) expect(modulesOf(architecture)).toEqual([]);
  });
});
