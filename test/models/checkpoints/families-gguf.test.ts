import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { planNetwork } from '../../../models/architectures/index.js';
import { openCheckpoint } from '../../../models/checkpoints/open-checkpoint.js';
import type { ModelConfig } from '../../../models/model-config.js';
import type { NetworkPlan } from '../../../network/plan.js';
import { ropeFrequencies } from '../../../network/rope.js';
import { TestEngines } from '../../../tools/support/test-engine.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import {
  MADE_GGUFS,
  MADE_MODELS,
  type MadeGguf,
  writeMadeGguf,
  writeMadeModel,
} from '../../support/made-models.js';

const folder = temporaryFolder('skein-families-gguf');
const engines = new TestEngines();
afterAll(() => engines.remove());

/** GGUF's numbers are f32. */
const asF32 = (value: unknown) =>
  JSON.parse(JSON.stringify(value, (_, item) => (typeof item === 'number' ? Math.fround(item) : item)));
/** Families whose class in safetensors has other names for the same tensors; their bytes are compared as those of all others. */
const OTHER_NAMES = ['granite4'];
const withoutSources = ({ weights, ...plan }: NetworkPlan) => ({
  ...plan,
  weights: weights.map(({ sources: _, ...weight }) => weight),
});

describe.each(MADE_GGUFS)("$name as llama.cpp's converter writes it", (gguf) => {
  it('is the same network with the same weights, byte for byte', async () => {
    const made = MADE_MODELS.find(({ name }) => name === gguf.name)!;
    const fromHub = await engines.get(writeMadeModel(join(folder, made.name), made), 'f32');
    const tensors = new Map(made.tensors.map((tensor) => [tensor[0], tensor]));
    const file = writeMadeGguf(join(folder, `${made.name}.gguf`), tensors, gguf);
    const fromGguf = await engines.get(file, 'f32');
    const [hub, own] = [fromHub.manifest.config, fromGguf.manifest.config];
    // Files of a Mistral say llama.
    const planOf = (config: ModelConfig) => {
      const plan = planNetwork(config);
      const compared = OTHER_NAMES.includes(made.name) ? withoutSources(plan) : plan;
      return asF32({ ...compared, architecture: null });
    };
    expect(planOf(own)).toEqual(planOf(hub));
    expect(readFileSync(fromGguf.weightsFile).equals(readFileSync(fromHub.weightsFile))).toBe(true);
    expect([own.slidingWindow, own.maxPositions]).toEqual([hub.slidingWindow, hub.maxPositions]);
    // A wrapper says in safetensors alone that it is one.
    const ofText = (remarks: readonly string[] = []) => remarks.filter((text) => !text.includes(' runs as '));
    expect(ofText(fromGguf.manifest.remarks)).toEqual(ofText(fromHub.manifest.remarks));
    for (const length of [1, 200])
      expect(asF32(ropeFrequencies(own.rope, length))).toEqual(asF32(ropeFrequencies(hub.rope, length)));
  });
});

describe('what files of these families may have besides', () => {
  const fileOf = (name: string, change: (gguf: MadeGguf) => Partial<MadeGguf>) => {
    const gguf = MADE_GGUFS.find((one) => one.name === name)!;
    const { tensors } = MADE_MODELS.find((one) => one.name === name)!;
    const sources = new Map(tensors.map((tensor) => [tensor[0], tensor]));
    return writeMadeGguf(join(folder, 'changed.gguf'), sources, { ...gguf, ...change(gguf) });
  };
  const withKey = (name: string, key: string, value: MadeGguf['keys'][number][2]) =>
    fileOf(name, ({ keys }) => ({
      keys: keys.map((one): MadeGguf['keys'][number] => (one[0] === key ? [key, one[1], value] : one)),
    }));

  it('is that Granite has no RoPE', () => {
    const { config } = openCheckpoint(withKey('granite4', 'granite.rope.scaling.finetuned', false));
    expect(config.layersWithoutRope).toEqual([true, true]);
  });

  it.each([
    [
      [2, 4],
      /head_count_kv should be a whole number from 1 to \d+, or 2 times one and the same, found a list of 2: 2, 4\.$/,
    ],
    [[2], /found a list of 1: 2\.$/],
    [[0, 0], /found a list of 2: 0, 0\.$/],
    [[], /found a list of 0: \.$/],
  ])('is a number of heads for each layer, which has to be one: %j', (value, message) => {
    const file = withKey('granite4', 'granite.attention.head_count_kv', value);
    expect(() => openCheckpoint(file)).toThrow(message);
  });

  /** As files of ChatGLM's code have them: heads of queries, then of keys, then of values. */
  const fused = ({ tensors }: MadeGguf, rows: (sum: number) => number = (sum) => sum) => {
    const isPart = (name: string) => /attn_[qkv]\./.test(name);
    const merged = ['weight', 'bias'].flatMap((kind) =>
      [0, 1].map((layer): MadeGguf['tensors'][number] => {
        const parts = ['q', 'k', 'v'].map(
          (one) => tensors.find(([name]) => name === `blk.${layer}.attn_${one}.${kind}`)!,
        );
        const sum = parts.reduce((all, [, shape]) => all + shape[0]!, 0);
        const shape = [rows(sum), ...parts[0]![1].slice(1)];
        return [`blk.${layer}.attn_qkv.${kind}`, shape, '', { joined: parts.map(([, , source]) => source) }];
      }),
    );
    return { tensors: [...tensors.filter(([name]) => !isPart(name)), ...merged] };
  };

  it('is one tensor for queries, keys and values of GLM-4', async () => {
    const made = MADE_MODELS.find(({ name }) => name === 'glm-4-9b')!;
    const fromHub = await engines.get(writeMadeModel(join(folder, made.name), made), 'f32');
    const own = await engines.get(
      fileOf('glm-4-9b', (gguf) => fused(gguf)),
      'f32',
    );
    expect(readFileSync(own.weightsFile).equals(readFileSync(fromHub.weightsFile))).toBe(true);
    expect(own.manifest.remarks).toEqual(fromHub.manifest.remarks);
  });

  it('is such a tensor of another shape, which is refused by its name', () => {
    const file = fileOf('glm-4-9b', (gguf) => fused(gguf, (sum) => sum - 8));
    expect(() => openCheckpoint(file)).toThrow(/blk\.0\.attn_qkv\.weight.*\[64, 32\].*\[56, 32\]/);
  });
});
