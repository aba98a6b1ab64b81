import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../../models/checkpoints/open-checkpoint.js';
import { TestEngines } from '../../../tools/support/test-engine.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import {
  MADE_GGUFS,
  MADE_MODELS,
  type MadeGguf,
  type MadeModel,
  writeMadeGguf,
  writeMadeModel,
} from '../../support/made-models.js';

const folder = temporaryFolder('skein-gemma4');
const engines = new TestEngines();
afterAll(() => engines.remove());

const named = (name: string) => structuredClone(MADE_MODELS.find((made) => made.name === name)!);
let written = 0;
/** A model whose tensors or config `change` has changed. */
function changed(name: string, change: (made: MadeModel) => void): string {
  const made = named(name);
  change(made);
  return writeMadeModel(join(folder, `${name}-${written++}`), made);
}

describe('tensors of Gemma 4', () => {
  it('keys and values of layers that attend to those of others, which published files have, are left aside', async () => {
    const path = changed('gemma4', ({ tensors }) => {
      for (const [part, shape] of [
        ['k_proj', [16, 32]],
        ['v_proj', [16, 32]],
        ['k_norm', [8]],
      ] as const)
        tensors.push([`model.layers.3.self_attn.${part}.weight`, [...shape], 0, 0.3]);
    });
    expect(openCheckpoint(path).leftAside).toEqual([]);
    const one = await engines.get(path, 'f32');
    const other = await engines.get(writeMadeModel(join(folder, 'plain'), named('gemma4')), 'f32');
    expect(readFileSync(one.weightsFile).equals(readFileSync(other.weightsFile))).toBe(true);
  });

  it('the same of a layer that keeps its own is needed', () => {
    const without = (part: string) =>
      changed('gemma4', (made) => {
        made.tensors = made.tensors.filter(([name]) => name !== `model.layers.2.self_attn.${part}.weight`);
      });
    expect(() => openCheckpoint(without('k_norm'))).toThrow(
      /tensor model.layers.2.self_attn.k_norm.weight .*is missing/,
    );
  });

  it('factors of layers are read with the config, and are 1 where files have none', () => {
    const scales = (path: string) => openCheckpoint(path).config.layerScales;
    const usual = scales(writeMadeModel(join(folder, 'scales'), named('gemma4')))!;
    expect(usual).toHaveLength(5);
    expect(new Set(usual).size).toBe(5);
    const none = changed('gemma4', (made) => {
      made.tensors = made.tensors.filter(([name]) => !name.endsWith('layer_scalar'));
    });
    expect(scales(none)).toEqual([1, 1, 1, 1, 1]);
    const wide = changed('gemma4', ({ tensors }) => {
      tensors.find(([name]) => name === 'model.layers.1.layer_scalar')![1] = [2];
    });
    expect(() => openCheckpoint(wide)).toThrow(
      /layer_scalar should be F32, BF16 or F16 of shape \[1\], found F32 of shape \[2\]/,
    );
    const infinite = changed('gemma4', ({ tensors }) => {
      tensors.find(([name]) => name === 'model.layers.1.layer_scalar')![2] = Number.POSITIVE_INFINITY;
    });
    expect(() => openCheckpoint(infinite)).toThrow(/layer_scalar should be a finite number/);
  });

  it('a model that sees has its text model under another name, and towers that are left aside', () => {
    const path = changed('gemma4-mixture', (made) => {
      made.config = {
        architectures: ['Gemma4ForConditionalGeneration'],
        model_type: 'gemma4',
        text_config: { ...made.config, architectures: undefined },
      };
      for (const tensor of made.tensors) tensor[0] = tensor[0].replace('model.', 'model.language_model.');
      made.tensors.push(
        ['model.vision_tower.x.weight', [2], 0, 1],
        ['model.embed_vision.y.weight', [2], 0, 1],
      );
    });
    const { config, leftAside } = openCheckpoint(path);
    expect(config).toMatchObject({
      architecture: 'gemma4',
      experts: { count: 5, used: 2, shareScales: true },
    });
    expect(leftAside.map(({ part }) => part)).toEqual(['model.vision_tower', 'model.embed_vision']);
  });

  it.each([
    [
      'model.layers.0.experts.gate_up_proj',
      [5, 48, 31],
      /gate_up_proj should have the shape \[5, 48, 32\], found \[5, 48, 31\]/,
    ],
    ['model.layers.0.router.scale', [31], /router.scale should have the shape \[32\], found \[31\]/],
    [
      'model.layers.0.router.per_expert_scale',
      [4],
      /per_expert_scale should have the shape \[5\], found \[4\]/,
    ],
  ])('%s of another shape is refused', (name, shape, message) => {
    const path = changed('gemma4-mixture', ({ tensors }) => {
      tensors.find((tensor) => tensor[0] === name)![1] = shape as number[];
    });
    expect(() => openCheckpoint(path)).toThrow(message as RegExp);
  });

  it('a table of layer inputs of another width is refused', () => {
    const path = changed('gemma4', ({ tensors }) => {
      tensors.find(([name]) => name === 'model.embed_tokens_per_layer.weight')![1] = [128, 59];
    });
    expect(() => openCheckpoint(path)).toThrow(
      /embed_tokens_per_layer.weight should have the shape \[128, 60\], found \[128, 59\]/,
    );
  });
});

/** A GGUF whose keys or tensors `change` has changed. */
function changedGguf(name: string, change: (gguf: MadeGguf) => void): string {
  const gguf = structuredClone(MADE_GGUFS.find((made) => made.name === name)!);
  change(gguf);
  const sources = new Map(named(name).tensors.map((tensor) => [tensor[0], tensor]));
  return writeMadeGguf(join(folder, `${name}-${written++}.gguf`), sources, gguf);
}

it.each<[string, (gguf: MadeGguf) => void, RegExp]>([
  [
    'without factors of RoPE',
    (gguf) => {
      gguf.tensors = gguf.tensors.filter(([name]) => name !== 'rope_freqs.weight');
    },
    /tensor rope_freqs.weight, by which layers without a window turn a part of their heads, is missing/,
  ],
  [
    'without a window',
    (gguf) => {
      gguf.keys = gguf.keys.filter(([key]) => !key.endsWith('.sliding_window'));
    },
    /gemma4.attention.sliding_window should be a whole number from 0/,
  ],
  [
    'with layers that all share',
    (gguf) => {
      gguf.keys.find(([key]) => key.endsWith('shared_kv_layers'))![2] = 4;
    },
    /gemma4.attention.shared_kv_layers should be a number that leaves a layer of each kind/,
  ],
  [
    'with values of another width',
    (gguf) => {
      gguf.keys.find(([key]) => key.endsWith('value_length_swa'))![2] = 4;
    },
    /gemma4.attention.value_length_swa should be the key length 8, found 4/,
  ],
])('a GGUF of Gemma 4 %s is refused', (_, change, message) => {
  expect(() => openCheckpoint(changedGguf('gemma4', change))).toThrow(message);
});
