import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { MODULE_IDS } from '../../../models/adapters/module-ids.js';
import { readPeftCheckpoint } from '../../../models/adapters/peft-checkpoint.js';
import { CheckpointError } from '../../../models/checkpoints/checkpoint.js';
import type { ModelConfig } from '../../../models/model-config.js';
import type { TestTensor } from '../../../tools/support/gguf-writer.js';
import { freshFolders } from '../../support/fresh-folders.js';
import { floats, Q, TINY_BASE, tinyAdapterTensors, writeTinyAdapter } from '../../support/tiny-adapter.js';

const fresh = freshFolders('skein-peft');

type Change = Parameters<typeof writeTinyAdapter>[1];
const read = (change: Change, base: ModelConfig = TINY_BASE, limits = { maxRank: 64 }) =>
  readPeftCheckpoint(writeTinyAdapter(fresh(), change), base, limits);
const shapes = ({ moduleLayers }: ReturnType<typeof read>) =>
  moduleLayers.map(({ layer, module, rank }) => [layer, module, rank]);

describe('readPeftCheckpoint', () => {
  it('reads tensors, the scaling in B', () => {
    const adapter = read({});
    expect(adapter).toMatchObject({ baseModel: 'tiny', maxRank: 2, modules: [1, 6] });
    expect(shapes(adapter)).toEqual([
      [0, MODULE_IDS.attn_q, 2],
      [1, MODULE_IDS.mlp_4h_to_h, 2],
    ]);
    expect([...adapter.moduleLayers[0]!.a]).toEqual(Array.from({ length: 16 }, (_, i) => 0.5 + i / 8));
    expect([...adapter.moduleLayers[0]!.b]).toEqual(Array.from({ length: 16 }, (_, i) => 2 * (-1 + i / 8)));
  });

  it('rounds the scaled B once', () => {
    const { moduleLayers } = read({ config: { lora_alpha: 3, use_rslora: true } });
    const expected = Array.from({ length: 16 }, (_, i) => Math.fround((-1 + i / 8) * (3 / Math.sqrt(2))));
    expect([...moduleLayers[0]!.b]).toEqual(expected);
  });

  it("takes PEFT's defaults where the configuration does not say", () => {
    const tensors = [floats(`${Q}.lora_A.weight`, [8, 8]), floats(`${Q}.lora_B.weight`, [8, 8])];
    const { maxRank, moduleLayers } = read({ tensors, config: { r: null, lora_alpha: undefined } });
    expect(maxRank).toBe(8);
    expect(moduleLayers[0]!.b[0]).toBe(0.5);
  });

  const renamed = (change: (name: string) => string) =>
    tinyAdapterTensors().map((tensor) => ({ ...tensor, name: change(tensor.name) }));

  it.each([
    ['with the name of an adapter', (name: string) => name.replace(/\.weight$/, '.default.weight')],
    ['without a head', (name: string) => name.replace('model.model.model.', 'model.model.')],
    ["without PEFT's prefix", (name: string) => name.replace('base_model.model.', '')],
  ])('reads names %s', (_, change) => {
    expect(shapes(read({ tensors: renamed(change) }))).toEqual(shapes(read({})));
  });

  const HALVES = [1, -2.5, 0.0999755859375, 2 ** -14, 2 ** -24, 65504];
  const stored = (type: 'F16' | 'BF16', bits: number[]): TestTensor => ({
    name: `${Q}.lora_B.weight`,
    shape: [8, 2],
    type,
    data: new Uint8Array(Uint16Array.from({ length: 16 }, (_, i) => bits[i % bits.length]!).buffer),
  });
  it.each([
    ['F16', [0x3c00, 0xc100, 0x2e66, 0x0400, 0x0001, 0x7bff], HALVES],
    ['BF16', [0x3f80, 0xc020, 0x3dcd], [1, -2.5, 0.10009765625]],
  ] as const)('reads %s', (type, bits, values) => {
    const tensors = [floats(`${Q}.lora_A.weight`, [2, 8]), stored(type, [...bits])];
    const { b } = read({ tensors, config: { lora_alpha: 2 } }).moduleLayers[0]!;
    expect([...b.subarray(0, values.length)]).toEqual(values);
  });

  it('compares tensors with the modules that the configuration names', () => {
    const targets = [
      { target_modules: 'all-linear' },
      { target_modules: null },
      { target_modules: String.raw`model\.layers\.\d\..*_proj` },
      { target_modules: ['model.layers.0.self_attn.q_proj', 'mlp.down_proj'] },
      { exclude_modules: ['k_proj'] },
      { layers_to_transform: [0, 1], layers_pattern: ['h', 'layers'] },
    ];
    for (const config of targets) expect(shapes(read({ config }))).toHaveLength(2);
    const left = (config: object) => () => read({ config });
    expect(left({ target_modules: ['q_proj'] })).toThrow(
      /down_proj\.lora_A\.weight .*target_modules of .* leaves out/,
    );
    expect(left({ target_modules: 'q_proj' })).toThrow(/target_modules/);
    expect(left({ exclude_modules: String.raw`.*\.0\..*` })).toThrow(/exclude_modules/);
    expect(left({ layers_to_transform: 0 })).toThrow(/down_proj.*layers_to_transform/);
    expect(left({ layers_to_transform: [0, 1], layers_pattern: 'blocks' })).toThrow(/layers_to_transform/);
  });
});

describe('readPeftCheckpoint refuses', () => {
  const with_ = (...extra: TestTensor[]) => ({ tensors: [...tinyAdapterTensors(), ...extra] });
  const without = (name: string) => ({
    tensors: tinyAdapterTensors().filter((tensor) => tensor.name !== name),
  });
  const replaced = (name: string, change: Partial<TestTensor>) => ({
    tensors: tinyAdapterTensors().map((tensor) => (tensor.name === name ? { ...tensor, ...change } : tensor)),
  });
  const A = `${Q}.lora_A.weight`;
  const B = `${Q}.lora_B.weight`;
  const bad = (value: number) => floats(B, [8, 2], value).data;

  const wrong: [string, Change, RegExp][] = [
    [
      'another method',
      { config: { peft_type: 'IA3' } },
      /adapter_config\.json: peft_type should be "LORA", found "IA3"/,
    ],
    ['no method', { config: { peft_type: undefined } }, /peft_type should be "LORA", found nothing/],
    [
      'DoRA',
      { config: { use_dora: true } },
      /use_dora should be absent or off: DoRA is not supported, found true/,
    ],
    [
      'whole modules',
      { config: { modules_to_save: ['lm_head'] } },
      /modules_to_save should be .*found \["lm_head"\]/,
    ],
    ['biases', { config: { bias: 'lora_only' } }, /bias should be "none".*found "lora_only"/],
    ['a bias of B', { config: { lora_bias: true } }, /lora_bias should be absent or off/],
    ['aLoRA', { config: { alora_invocation_tokens: [1, 2] } }, /alora_invocation_tokens/],
    ['repeated layers', { config: { layer_replication: [[0, 2]] } }, /layer_replication/],
    [
      'PiSSA',
      { config: { init_lora_weights: 'pissa_niter_4' } },
      /init_lora_weights should be .*change the base model/,
    ],
    ['a rank of 0', { config: { r: 0 } }, /: r should be a whole number from 1/],
    ['a rank as text', { config: { r: '8' } }, /: r should be a whole number.*found "8"/],
    ['alpha as text', { config: { lora_alpha: '8' } }, /lora_alpha should be a number, found "8"/],
    [
      'a broken pattern of ranks',
      { config: { rank_pattern: { q_proj: 1.5 } } },
      /rank_pattern should be an object/,
    ],
    ['a list as pattern', { config: { rank_pattern: [1] } }, /rank_pattern should be an object, found \[1\]/],
    [
      'alphas that are no numbers',
      { config: { alpha_pattern: { q: null } } },
      /alpha_pattern should be an object with/,
    ],
    [
      'a broken key',
      { config: { alpha_pattern: { '(q': 1 } } },
      /alpha_pattern: the pattern "\(q" has an unclosed/,
    ],
    [
      'broken targets',
      { config: { target_modules: 7 } },
      /target_modules should be a list of names, or a pattern/,
    ],
    [
      'a broken target',
      { config: { target_modules: '[' } },
      /target_modules: the pattern "\[" has an unclosed/,
    ],
    ['broken layers', { config: { layers_to_transform: [-1] } }, /layers_to_transform should be/],
    ['a broken layers_pattern', { config: { layers_pattern: [1] } }, /layers_pattern should be/],
    [
      'fan_in_fan_out as text',
      { config: { fan_in_fan_out: 'no' } },
      /fan_in_fan_out should be true or false/,
    ],
    ['no tensors', { tensors: [] }, /adapter_model\.safetensors: holds no tensors/],
    ['A without B', without(B), /q_proj\.lora_A\.weight has no lora_B to go with it/],
    ['B without A', without(A), /q_proj\.lora_B\.weight has no lora_A to go with it/],
    [
      'another rank in A',
      replaced(A, floats(A, [4, 8])),
      /q_proj\.lora_A\.weight should have the shape \[2, 8\] \(2 is its rank by .*adapter_config\.json\), found \[4, 8\]/,
    ],
    [
      'another rank in B',
      replaced(B, floats(B, [8, 4])),
      /lora_B\.weight .*\[8, 2\] \(2 is its rank .*found \[8, 4\]/,
    ],
    [
      'another width',
      replaced(A, floats(A, [2, 16])),
      /should have the shape \[2, 8\] \(8 is the base model's\), found \[2, 16\]/,
    ],
    [
      'another output',
      replaced(B, floats(B, [12, 2])),
      /\[8, 2\] \(8 is the base model's\), found \[12, 2\]/,
    ],
    ['a vector', replaced(A, floats(A, [16])), /should have the shape \[2, 8\].*found \[16\]/],
    [
      'a layer that is not there',
      with_(
        floats(Q.replace('.0.', '.2.').concat('.lora_A.weight'), [2, 8]),
        floats(Q.replace('.0.', '.2.').concat('.lora_B.weight'), [8, 2]),
      ),
      /layers\.2\..* belongs to layer 2, but the base model has layers 0 to 1/,
    ],
    [
      'an unknown module',
      with_(floats(`${Q.replace('q_proj', 'qkv_proj')}.lora_A.weight`, [2, 8])),
      /qkv_proj\.lora_A\.weight belongs to no module .*\(model\.layers\) have self_attn\.q_proj, /,
    ],
    [
      'a module outside of layers',
      with_(floats('base_model.model.score.lora_A.weight', [2, 8])),
      /no module of the base/,
    ],
    [
      'a router',
      with_(floats(Q.replace('layers', 'blocks').concat('.lora_A.weight'), [2, 8])),
      /no module of the base/,
    ],
    [
      'embeddings',
      with_(floats('base_model.model.model.embed_tokens.lora_embedding_A', [2, 8])),
      /adapter of an embedding/,
    ],
    [
      'trained embeddings',
      with_(floats('base_model.model.model.embed_tokens.weight', [6, 8])),
      /is of an embedding/,
    ],
    [
      'the output layer',
      with_(floats('base_model.model.lm_head.lora_A.weight', [2, 8])),
      /is of the output layer/,
    ],
    ['a magnitude', with_(floats(`${Q}.lora_magnitude_vector.weight`, [8])), /is the magnitude of DoRA/],
    ['a bias', with_(floats(`${Q}.lora_B.bias`, [8])), /is a bias of an adapter/],
    [
      'a saved module',
      with_(floats('base_model.model.score.modules_to_save.weight', [8])),
      /modules_to_save/,
    ],
    ['anything else', with_(floats('vision.weight', [8])), /is neither lora_A nor lora_B/],
    [
      'a long name',
      with_(floats('x'.repeat(1000), [8])),
      /tensor x{200}\.\.\. has a name of 1000 characters/,
    ],
    [
      'two adapters',
      with_(floats(`${Q}.lora_A.other.weight`, [2, 8])),
      /another adapter than those before it \(other, /,
    ],
    [
      'a tensor twice',
      with_(floats(A.replace('base_model.model.', ''), [2, 8])),
      /is there twice, also as base_model/,
    ],
    ['whole numbers', replaced(A, { type: 'I32' }), /should have one of the types F32, F16, BF16, found I32/],
    ['doubles', replaced(A, { type: 'F64', shape: [2, 4] }), /shape/],
    [
      'infinity',
      replaced(B, { data: bad(Number.POSITIVE_INFINITY) }),
      /finite numbers, found Infinity at element 0/,
    ],
    ['no number', replaced(A, { data: bad(Number.NaN) }), /finite numbers, found NaN at element 0/],
    [
      'an overflow',
      { ...replaced(B, { data: bad(3e38) }), config: { lora_alpha: 40 } },
      /found Infinity, 3\.\d+e\+38 times its scaling 20/,
    ],
  ];
  it.each(wrong)('%s', (_, change, message) => {
    expect(() => read(change)).toThrow(CheckpointError);
    expect(() => read(change)).toThrow(message);
  });

  it('a rank above the limit, and more bytes than the limit', () => {
    expect(() => read({}, TINY_BASE, { maxRank: 1 })).toThrow(
      /q_proj\.lora_A\.weight has rank 2; at most 1 is accepted \(maxRank\)\.$/,
    );
    const limits = { maxRank: 2, maxBytes: 100 };
    expect(() => read({}, TINY_BASE, limits)).toThrow(
      /takes 272 bytes in float32; at most 100 are accepted \(maxBytes\)\.$/,
    );
  });

  it('an encoder as base', () => {
    const encoder = {
      ...TINY_BASE,
      architecture: 'bert',
      encoder: {} as ModelConfig['encoder'],
    } as ModelConfig;
    expect(() => read({}, encoder)).toThrow(/an encoder \(bert\) cannot have adapters/);
  });

  it('folders without the files', () => {
    const open = (path: string) => () => readPeftCheckpoint(path, TINY_BASE, { maxRank: 8 });
    const path = fresh();
    expect(open(join(path, 'nowhere'))).toThrow(/nowhere: no such folder/);
    mkdirSync(path, { recursive: true });
    expect(open(path)).toThrow(
      /holds no adapter_model\.safetensors; an adapter of PEFT has its weights there/,
    );
    writeFileSync(join(path, 'adapter_model.bin'), '');
    expect(open(path)).toThrow(/holds no adapter_model\.safetensors; adapter_model\.bin may run code/);
    expect(open(join(path, 'adapter_model.bin'))).toThrow(/an adapter of PEFT is a folder/);
    writeTinyAdapter(join(path, 'sql'));
    rmSync(join(path, 'adapter_model.bin'));
    expect(open(path)).toThrow(
      /holds no adapter_model\.safetensors; its folder sql does, and is the one to name\.$/,
    );
    for (let i = 0; i < 12; i++) writeTinyAdapter(join(path, `a${i}`));
    expect(open(path)).toThrow(
      /; 13 folders in it do \(a0, a1, (a\d+, ){7}a\d+, \.\.\.\), of which one is to be named\.$/,
    );
    writeTinyAdapter(path);
    rmSync(join(path, 'adapter_config.json'));
    expect(open(path)).toThrow(/adapter_config\.json: no such file/);
    writeFileSync(join(path, 'adapter_config.json'), '{');
    expect(open(path)).toThrow(/adapter_config\.json: is not valid JSON/);
  });
});
