import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { readGguf } from '../../../models/checkpoints/gguf.js';
import { openCheckpoint } from '../../../models/checkpoints/open-checkpoint.js';
import { readSafetensors } from '../../../models/checkpoints/safetensors.js';
import { TestEngines } from '../../../tools/support/test-engine.js';
import { freshFolders } from '../../support/fresh-folders.js';
import {
  type ChangeTensors,
  DOWN,
  EXPERTS,
  GATE_UP,
  HIDDEN,
  IN_EXPERTS,
  WIDTH,
  writeGptOss,
  writeMxfp4,
  writeMxfp4Gguf,
} from '../../support/gptoss-model.js';
import { MADE_GGUFS, MADE_MODELS, writeMadeGguf } from '../../support/made-models.js';

const fresh = freshFolders('skein-gptoss');
const engines = new TestEngines();
afterAll(() => engines.remove());

describe('the experts of a gpt-oss in MXFP4', () => {
  it('have the numbers of plain ones that transformers makes of them, gate and up apart', async () => {
    const plain = await engines.get(writeGptOss(fresh(), [GATE_UP.plain, DOWN.plain]), 'f32');
    const quantised = await engines.get(writeMxfp4(fresh()), 'f32');
    expect(quantised.plan).toEqual(plain.plan);
    expect(readFileSync(quantised.weightsFile).equals(readFileSync(plain.weightsFile))).toBe(true);
    const [own] = plain.manifest.tensors.filter(({ name }) => name === 'layers.0.experts.1.gateUp');
    const bytes = readFileSync(plain.weightsFile).subarray(own!.offset, own!.offset + own!.byteLength);
    const rows = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
    const all = new Float32Array(GATE_UP.plain.data.buffer);
    // Row `output` of an expert's stack is the column that a gate and a way up take turns at.
    for (const output of [0, 1, WIDTH - 1, WIDTH, 2 * WIDTH - 1]) {
      const column = output < WIDTH ? 2 * output : 2 * (output - WIDTH) + 1;
      const expected = Float32Array.from(
        { length: HIDDEN },
        (_, k) => all[(HIDDEN + k) * 2 * WIDTH + column]!,
      );
      expect(rows.subarray(output * HIDDEN, (output + 1) * HIDDEN)).toEqual(expected);
    }
  });

  it('are kept without loss', async () => {
    const { manifest } = await engines.get(writeMxfp4(fresh()), 'stored');
    const experts = manifest.tensors.filter(({ name, rows }) => /experts\.\d+\./.test(name) && rows > 1);
    expect(new Set(experts.map(({ dtype }) => dtype))).toEqual(new Set(['mxfp4']));
    expect(experts).toHaveLength(2 * EXPERTS);
  });
});

it('a GGUF of a gpt-oss has the same experts, kept without loss too', async () => {
  const file = writeMxfp4Gguf(join(fresh(), 'gpt-oss.gguf'));
  const [own, hub] = [await engines.get(file, 'f32'), await engines.get(writeMxfp4(fresh()), 'f32')];
  expect(readFileSync(own.weightsFile).equals(readFileSync(hub.weightsFile))).toBe(true);
  const { manifest } = await engines.get(file, 'stored');
  const experts = manifest.tensors.filter(({ name, rows }) => /experts\.\d+\./.test(name) && rows > 1);
  expect(new Set(experts.map(({ dtype }) => dtype))).toEqual(new Set(['mxfp4']));
});

const without =
  (name: string): ChangeTensors =>
  (tensors) => {
    tensors.delete(name);
  };
const shaped =
  (name: string, shape: number[]): ChangeTensors =>
  (tensors) => {
    const data = new Uint8Array(4 * shape.reduce((product, size) => product * size, 1));
    tensors.set(name, { name, shape, data });
  };
const SINKS = 'model.layers.0.self_attn.sinks';

describe('scales of experts that make weights no numbers', () => {
  const PRECISIONS = ['f32', 'stored'] as const;
  const NAME = `${IN_EXPERTS}.down_proj`;
  // The third row of the second expert; its only group.
  const PLACE = HIDDEN + 2;

  it.each([253, 254, 255])('are refused in safetensors: %i', async (exponent) => {
    const folder = writeMxfp4(fresh(), (tensors) => {
      const scales = tensors.get(`${NAME}_scales`)!;
      const data = Uint8Array.from(scales.data);
      data[PLACE] = exponent;
      tensors.set(scales.name, { ...scales, data });
    });
    const { offset, file } = readSafetensors(join(folder, 'model.safetensors')).find(
      ({ name }) => name === `${NAME}_scales`,
    )!;
    for (const precision of PRECISIONS)
      await expect(engines.get(folder, precision)).rejects.toThrow(
        `${file}: the scale of ${NAME}_blocks at byte ${offset + PLACE} should be an exponent from 0 to 252, with which weights are numbers, found ${exponent}.`,
      );
  });

  it('are refused in a GGUF', async () => {
    const file = writeMxfp4Gguf(join(fresh(), 'gpt-oss.gguf'), (experts) => {
      experts.get('blk.0.ffn_down_exps.weight')![17 * PLACE] = 255;
    });
    const { offset } = readGguf(file).tensors.find(({ name }) => name === 'blk.0.ffn_down_exps.weight')!;
    for (const precision of PRECISIONS)
      await expect(engines.get(file, precision)).rejects.toThrow(
        `${file}: the scale of a tensor in MXFP4 at byte ${offset + 17 * PLACE} should be an exponent from 0 to 252, with which weights are numbers, found 255.`,
      );
  });

  it('are read up to the greatest', async () => {
    const folder = writeMxfp4(fresh(), (tensors) => {
      const scales = tensors.get(`${NAME}_scales`)!;
      tensors.set(scales.name, {
        ...scales,
        data: scales.data.map((one, i) => (i === PLACE ? 252 : i === 0 ? 0 : one)),
      });
    });
    const { manifest, weightsFile } = await engines.get(folder, 'f32');
    const { offset, byteLength } = manifest.tensors.find(({ name }) => name === 'layers.0.experts.1.down')!;
    const bytes = readFileSync(weightsFile).subarray(offset, offset + byteLength);
    const weights = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + byteLength));
    expect(weights.every(Number.isFinite)).toBe(true);
    expect(Math.max(...weights.subarray(2 * WIDTH, 3 * WIDTH).map(Math.abs))).toBeGreaterThanOrEqual(
      2 ** 124,
    );
  });
});

it('a GGUF with a score without a value that is not finite is refused', () => {
  const gguf = MADE_GGUFS.find(({ name }) => name === 'gpt-oss')!;
  const sources = new Map(
    MADE_MODELS.find(({ name }) => name === 'gpt-oss')!.tensors.map((tensor) => [tensor[0], tensor]),
  );
  const data = new Uint8Array(Float32Array.of(0, 1, Number.NEGATIVE_INFINITY, 2).buffer);
  const file = writeMadeGguf(join(fresh(), 'gpt-oss.gguf'), sources, gguf, (tensor) =>
    tensor.name === 'blk.1.attn_sinks.weight' ? { ...tensor, data } : tensor,
  );
  expect(() => openCheckpoint(file)).toThrow(
    /tensor model\.layers\.1\.self_attn\.sinks should hold a finite number for each head, found -Infinity for head 2\.$/,
  );
});

describe('a gpt-oss that does not fit together is refused', () => {
  it.each<[string, ChangeTensors, RegExp]>([
    [
      'scales that are missing',
      without(`${IN_EXPERTS}.down_proj_scales`),
      /down_proj_scales is missing, which model\.layers\.0\.mlp\.experts\.down_proj_blocks needs/,
    ],
    [
      'blocks that are missing',
      without(`${IN_EXPERTS}.down_proj_blocks`),
      /down_proj_scales belongs to quantised weights that are not there \(blocks\)/,
    ],
    [
      'blocks of other experts',
      (tensors) => {
        const name = `${IN_EXPERTS}.down_proj_blocks`;
        tensors.set(name, { ...tensors.get(name)!, shape: [1, EXPERTS * HIDDEN, 1, 16] });
        const scales = `${IN_EXPERTS}.down_proj_scales`;
        tensors.set(scales, { ...tensors.get(scales)!, shape: [1, EXPERTS * HIDDEN, 1] });
      },
      /down_proj should have the shape \[3, 64, 32\], found \[1, 192, 32\]/,
    ],
    [
      'a bias of other experts',
      shaped(`${IN_EXPERTS}.gate_up_proj_bias`, [EXPERTS + 1, 2 * WIDTH]),
      /gate_up_proj_bias should have the shape \[3, 64\], found \[4, 64\]/,
    ],
    [
      'a bias of another width',
      shaped(`${IN_EXPERTS}.down_proj_bias`, [EXPERTS, WIDTH]),
      /down_proj_bias should have the shape \[3, 64\], found \[3, 32\]/,
    ],
    [
      'a bias that is missing',
      without(`${IN_EXPERTS}.down_proj_bias`),
      /experts\.0\.down_proj\.bias and 2 more that the configuration calls for is missing/,
    ],
    [
      'scales of another type',
      (tensors) => {
        const name = `${IN_EXPERTS}.down_proj_scales`;
        const { shape, data } = tensors.get(name)!;
        tensors.set(name, { name, shape, type: 'F16', data: new Uint8Array(2 * data.length) });
      },
      /down_proj_scales should have the type U8 or F8_E8M0, found F16/,
    ],
    [
      'scales of other groups',
      (tensors) => {
        const name = `${IN_EXPERTS}.gate_up_proj_scales`;
        tensors.set(name, { ...tensors.get(name)!, shape: [EXPERTS, 2, 2 * WIDTH] });
      },
      /gate_up_proj_scales should have the shape \[3, 64, 2\], found \[3, 2, 64\]/,
    ],
    [
      'blocks that lie turned',
      (tensors) => {
        for (const [part, tail] of [
          ['blocks', [16]],
          ['scales', []],
        ] as const) {
          const name = `${IN_EXPERTS}.down_proj_${part}`;
          tensors.set(name, { ...tensors.get(name)!, shape: [EXPERTS, 1, HIDDEN, ...tail] });
        }
      },
      /down_proj should have the shape \[3, 64, 32\], found \[3, 1, 2048\]/,
    ],
    [
      'plain matrices beside quantised ones of another shape',
      (tensors) => {
        for (const part of ['blocks', 'scales']) tensors.delete(`${IN_EXPERTS}.down_proj_${part}`);
        const data = new Uint8Array(DOWN.plain.data);
        const name = `${IN_EXPERTS}.down_proj`;
        tensors.set(name, { name, shape: [EXPERTS, HIDDEN, WIDTH], data });
      },
      /down_proj should have the shape \[3, 32, 64\], found \[3, 64, 32\]/,
    ],
    [
      'scores without values for other heads',
      shaped(SINKS, [5]),
      /tensor model\.layers\.0\.self_attn\.sinks should have the shape \[4\], found \[5\]/,
    ],
    ...[Number.NaN, Number.POSITIVE_INFINITY].map((value): [string, ChangeTensors, RegExp] => [
      `a score without a value that is ${value}`,
      (tensors) => {
        const data = new Uint8Array(Float32Array.of(0, 1, value, 2).buffer);
        tensors.set(SINKS, { name: SINKS, shape: [4], data });
      },
      new RegExp(
        `tensor model\\.layers\\.0\\.self_attn\\.sinks should hold a finite number for each head, found ${value} for head 2\\.$`,
      ),
    ]),
    [
      'one in 16 bits',
      (tensors) =>
        tensors.set(SINKS, {
          name: SINKS,
          shape: [4],
          type: 'BF16',
          data: new Uint8Array(Uint16Array.of(0, 0xff80, 0, 0).buffer),
        }),
      /found -Infinity for head 1\.$/,
    ],
  ])('with %s', (_, change, message) => {
    const folder = writeMxfp4(fresh(), change);
    expect(() => openCheckpoint(folder)).toThrow(message);
  });

  it.each([
    ['swiglu_limit', 'seven'],
    ['swiglu_limit', 0],
    ['swiglu_limit', 1e39],
    ['swiglu_alpha', 1e38],
    ['swiglu_alpha', 1e308],
    ['swiglu_alpha', -1],
    ['layer_types', ['chunked_attention']],
    ['num_experts_per_tok', 4],
  ])('with %s %j', (key, value) => {
    const folder = writeMxfp4(fresh(), undefined, { [key]: value });
    expect(() => openCheckpoint(folder)).toThrow(new RegExp(`config\\.json: ${key} should be `));
  });
});
