import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { Engine } from '../../../engine/building/engine.js';
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
const OTHER_NAMES = ['granite4', 'gpt-oss'];
/** Families whose files have factors in their matrices in place of ops; answers are compared in test/reference. */
const OTHER_NETWORKS = ['falcon-h1'];
/** Families for which llama.cpp's converter writes a context of 2^20. */
const OTHER_CONTEXT = ['nemotron-h', 'nemotron-h-moe', 'granite4-h', 'granite4-h-moe'];
/** Weights that a file has as others: rates in place of their logarithms, and heads in another order. Answers are compared in test/reference. */
const OTHER_WEIGHTS = new Map<string, RegExp>([
  ...['mamba2', 'nemotron-h', 'nemotron-h-moe', 'granite4-h', 'granite4-h-moe'].map(
    (name) => [name, /\.scanDecay$/] as const,
  ),
  ['qwen3.5-vl', /\.deltaDecay$/],
  ['qwen3.5', /\.(delta(Input|Gate|Rates|Decay|DecayBias|Output)|conv)$/],
  ['qwen3.5-moe', /\.(delta(Input|Gate|Rates|Decay|DecayBias|Output)|conv)$/],
  ['qwen3-next', /\.deltaDecay$/],
]);
/** The plan without the fields that mark such weights in its ops. */
const asOfHub = (plan: NetworkPlan): NetworkPlan => ({
  ...plan,
  ops: plan.ops.map((op) => {
    if (op.op !== 'gatedDelta' && op.op !== 'selectiveScan') return op;
    const { rates: _, ...rest } = op;
    if (rest.op === 'gatedDelta') delete rest.tiled;
    return rest;
  }),
});
const withoutSources = ({ weights, ...plan }: NetworkPlan) => ({
  ...plan,
  weights: weights.map(({ sources: _, ...weight }) => weight),
});

/** Names of the weights whose bytes differ; the two engines have the same ones at the same places. */
function differingWeights(one: Engine, other: Engine): string[] {
  const [bytes, otherBytes] = [readFileSync(one.weightsFile), readFileSync(other.weightsFile)];
  const places = ({ manifest }: Engine) => manifest.tensors.map(({ checksum: _, ...place }) => place);
  expect(places(one)).toEqual(places(other));
  expect(bytes.length).toBe(otherBytes.length);
  if (bytes.equals(otherBytes)) return [];
  return places(one).flatMap(({ name, offset, byteLength }) => {
    const end = offset + byteLength;
    return bytes.subarray(offset, end).equals(otherBytes.subarray(offset, end)) ? [] : [name];
  });
}

describe.each(MADE_GGUFS.filter(({ name }) => !OTHER_NETWORKS.includes(name)))(
  "$name as llama.cpp's converter writes it",
  (gguf) => {
    it('is the same network with the same weights, byte for byte', async () => {
      const made = MADE_MODELS.find(({ name }) => name === gguf.name)!;
      const fromHub = await engines.get(writeMadeModel(join(folder, made.name), made), 'f32');
      const tensors = new Map(made.tensors.map((tensor) => [tensor[0], tensor]));
      const file = writeMadeGguf(join(folder, `${made.name}.gguf`), tensors, gguf);
      const fromGguf = await engines.get(file, 'f32');
      const [hub, own] = [fromHub.manifest.config, fromGguf.manifest.config];
      // Files of a Mistral say llama.
      const planOf = (config: ModelConfig) => {
        const plan = asOfHub(planNetwork(config));
        const compared = OTHER_NAMES.includes(made.name) ? withoutSources(plan) : plan;
        return asF32({ ...compared, architecture: null });
      };
      // Files of Gemma 4 do not say how tokens of a picture attend: as in the published models of their kind.
      const isAsPublished = made.name === 'gemma4-mixture';
      expect(own.bothWaysInPictures).toBe(isAsPublished ? 'windowed' : hub.bothWaysInPictures);
      expect(planOf(own)).toEqual(planOf(isAsPublished ? { ...hub, bothWaysInPictures: 'windowed' } : hub));
      const others = OTHER_WEIGHTS.get(made.name);
      const differing = differingWeights(fromGguf, fromHub);
      expect(differing.every((name) => others?.test(name))).toBe(true);
      expect(differing.length > 0).toBe(others !== undefined);
      const context = OTHER_CONTEXT.includes(made.name) ? 2 ** 20 : hub.maxPositions;
      expect([own.slidingWindow, own.maxPositions]).toEqual([hub.slidingWindow, context]);
      // A wrapper says in safetensors alone that it is one.
      const ofText = (remarks: readonly string[] = []) =>
        remarks.filter((text) => !text.includes(' runs as '));
      expect(ofText(fromGguf.manifest.remarks)).toEqual(ofText(fromHub.manifest.remarks));
      for (const length of [1, 200])
        expect(asF32(ropeFrequencies(own.rope, length))).toEqual(asF32(ropeFrequencies(hub.rope, length)));
    });
  },
);

describe('what files of these families may have besides', () => {
  const fileOf = (name: string, change: (gguf: MadeGguf) => Partial<MadeGguf>) => {
    const gguf = MADE_GGUFS.find((one) => one.name === name)!;
    const { tensors } = MADE_MODELS.find((one) => one.name === name)!;
    const sources = new Map(tensors.map((tensor) => [tensor[0], tensor]));
    return writeMadeGguf(join(folder, `changed-${changed++}.gguf`), sources, { ...gguf, ...change(gguf) });
  };
  let changed = 0;
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

  it.each([
    ['qwen3.5', 'qwen35', 4],
    ['qwen3.5-moe', 'qwen35moe', 2],
    ['qwen3-next', 'qwen3next', 3],
  ])(
    'is a layer that guesses further tokens, which is left aside: %s',
    async (name, architecture, layers) => {
      const guessing = fileOf(name, ({ keys, tensors }) => ({
        keys: [
          ...keys
            .filter(([key]) => key !== `${architecture}.full_attention_interval`)
            .map(([key, type, value]): MadeGguf['keys'][number] => {
              if (key === `${architecture}.block_count`) return [key, type, layers + 1];
              return [
                key,
                type,
                Array.isArray(value) && key.endsWith('layers') ? [...(value as boolean[]), false] : value,
              ];
            }),
          [`${architecture}.nextn_predict_layers`, 'UINT32', 1],
        ],
        tensors: [
          ...tensors,
          ...tensors
            .filter(([name]) => name.startsWith(`blk.${layers - 1}.`))
            .map(([name, ...rest]): MadeGguf['tensors'][number] => [
              name.replace(`blk.${layers - 1}.`, `blk.${layers}.`),
              ...rest,
            ]),
          [`blk.${layers}.nextn.enorm.weight`, [32], 'model.norm.weight', {}],
        ],
      }));
      const [own, plain] = [openCheckpoint(guessing), openCheckpoint(fileOf(name, () => ({})))];
      expect(own.config).toEqual(plain.config);
      const places = ({ tensors }: typeof own) =>
        [...tensors].filter(([name]) => !name.startsWith(`model.layers.${layers}.`));
      expect(places(own).map(([name, { shape }]) => [name, shape])).toEqual(
        places(plain).map(([name, { shape }]) => [name, shape]),
      );
    },
  );

  it('is the interval of layers that attend, or neither it nor a list', () => {
    for (const leftOut of [/recurrent_layers$/, /recurrent_layers$|full_attention_interval$/]) {
      const file = fileOf('qwen3.5', ({ keys }) => ({ keys: keys.filter(([key]) => !leftOut.test(key)) }));
      expect(openCheckpoint(file).config.attendingLayers).toEqual([false, false, false, true]);
    }
  });

  it.each([
    [
      'lfm2',
      'lfm2.attention.head_count_kv',
      [0, 2, 0],
      /should be 4 times one number from 1 to \d+, or 0 .*found a list of 3: 0, 2, 0\.$/,
    ],
    ['lfm2', 'lfm2.attention.head_count_kv', [0, 2, 4, 0], /found a list of 4: 0, 2, 4, 0\.$/],
    ['lfm2', 'lfm2.attention.head_count_kv', [0, 0, 0, 0], /found a list of 4: 0, 0, 0, 0\.$/],
    ['lfm2', 'lfm2.shortconv.l_cache', 1, /l_cache should be a whole number from 2 to 64, found 1\.$/],
    [
      'qwen3.5',
      'qwen35.ssm.group_count',
      4,
      /time_step_rank should be a multiple of the 4 heads of keys, found 6\.$/,
    ],
    [
      'qwen3.5',
      'qwen35.ssm.inner_size',
      73,
      /inner_size should be a multiple of the 6 heads of values, found 73\.$/,
    ],
    [
      'qwen3.5',
      'qwen35.attention.recurrent_layers',
      [true, true, true],
      /recurrent_layers should be a list of 4, found one of 3\.$/,
    ],
    [
      'qwen3.5',
      'qwen35.attention.recurrent_layers',
      [true, true, true, true],
      /at least one layer that attends, found none\.$/,
    ],
  ] as const)('is refused where %s has %s %j', (name, key, value, message) => {
    const file = withKey(name, key, typeof value === 'number' ? value : ([...value] as number[]));
    expect(() => openCheckpoint(file)).toThrow(message);
  });

  it.each([
    [
      'glm4.5',
      'glm4moe.expert_group_count',
      3,
      /expert_group_count should be a number that parts the 8 experts into equal groups of at least 2, found 3\.$/,
    ],
    [
      'glm4.5',
      'glm4moe.expert_group_used_count',
      5,
      /expert_group_used_count should be .* from 1 to 4, found 5/,
    ],
    [
      'glm4.5',
      'glm4moe.expert_used_count',
      5,
      /expert_used_count should be a whole number from 1 to 4, found 5/,
    ],
    ['glm4.5', 'glm4moe.leading_dense_block_count', 3, /leading_dense_block_count should be .* from 0 to 2/],
    ['glm4.5', 'glm4moe.expert_gating_func', 1, /expert_gating_func should be 2 \(sigmoid: .*found 1/],
    ['phi-moe', 'phimoe.expert_used_count', 1, /expert_used_count should be .* from 2 to 2, found 1/],
    ['lfm2-moe', 'lfm2moe.expert_gating_func', 3, /expert_gating_func should be 2 \(sigmoid: .*found 3/],
  ] as const)('of experts is refused where %s has %s %j', (name, key, value, message) => {
    expect(() => openCheckpoint(withKey(name, key, value))).toThrow(message);
  });

  it('is a bias of the choice that has another length, which is refused', () => {
    const file = fileOf('lfm2-moe', ({ tensors }) => ({
      tensors: tensors.map(([name, ...rest]): MadeGguf['tensors'][number] =>
        name === 'blk.2.exp_probs_b.bias' ? [name, [5], '', { values: [0, 0, 0, 0, 0] }] : [name, ...rest],
      ),
    }));
    expect(() => openCheckpoint(file)).toThrow(
      /blk\.2\.exp_probs_b\.bias should have the shape \[6\], found \[5\]/,
    );
  });

  it('is that shares are as they are, or times a factor, in a file of GLM-4.5', () => {
    const { config } = openCheckpoint(withKey('glm4.5', 'glm4moe.expert_weights_norm', false));
    expect(config.experts).toMatchObject({ normalize: false, factor: 1.5 });
    expect(config.experts!.sumEpsilon).toBeUndefined();
  });

  it('is one projection of queries, keys, values and gates, in files of Qwen3-Next that were made at first', async () => {
    const made = MADE_MODELS.find(({ name }) => name === 'qwen3-next')!;
    const older = fileOf('qwen3-next', ({ tensors }) => ({
      tensors: [
        ...tensors.filter(([name]) => !/attn_(qkv|gate)\.weight$/.test(name)),
        ...made.tensors
          .filter(([name]) => name.endsWith('in_proj_qkvz.weight'))
          .map(([name, shape]): MadeGguf['tensors'][number] => [
            `blk.${name.split('.')[2]}.ssm_in.weight`,
            shape,
            name,
            {},
          ]),
      ],
    }));
    const [one, other] = [
      await engines.get(older, 'f32'),
      await engines.get(
        fileOf('qwen3-next', () => ({})),
        'f32',
      ),
    ];
    expect(differingWeights(one, other)).toEqual([]);
  });

  it('is that LFM2 reads to both sides, which is refused', () => {
    const file = fileOf('lfm2', ({ keys }) => ({
      keys: [...keys, ['lfm2.attention.causal', 'BOOL', false]],
    }));
    expect(() => openCheckpoint(file)).toThrow(
      /attention\.causal should be true: convolutions of both sides/,
    );
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
