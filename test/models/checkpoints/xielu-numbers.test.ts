import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { GgufMetadata } from '../../../models/checkpoints/gguf-metadata.js';
import type { RawTensor } from '../../../models/checkpoints/raw-tensor.js';
import { withXieluOfGguf, withXieluOfTensors } from '../../../models/checkpoints/xielu-numbers.js';
import type { ModelConfig } from '../../../models/model-config.js';
import { temporaryFolder } from '../../support/fresh-folders.js';

const folder = temporaryFolder('skein-xielu');
const config = { architecture: 'apertus', activation: 'none', numLayers: 1 } as ModelConfig;

/** The tensors of a layer in a file of their own: each with its bytes. */
function tensorsOf(
  numbers: Record<string, Buffer>,
  changes: Partial<RawTensor> = {},
): ReadonlyMap<string, RawTensor> {
  const file = join(folder, 'model.safetensors');
  writeFileSync(file, Buffer.concat(Object.values(numbers)));
  let offset = 0;
  return new Map(
    Object.entries(numbers).map(([name, bytes]): [string, RawTensor] => {
      const own = `model.layers.0.mlp.act_fn.${name}`;
      const type = bytes.length === 4 ? 'F32' : 'BF16';
      const tensor = { name: own, file, offset, type, shape: [1], byteLength: bytes.length, ...changes };
      offset += bytes.length;
      return [own, tensor];
    }),
  );
}

const f32 = (value: number) => Buffer.from(Float32Array.of(value).buffer);
/** 1.5 and -2 as bf16. */
const [ONE_AND_A_HALF, MINUS_TWO] = [Buffer.of(0xc0, 0x3f), Buffer.of(0, 0xc0)];
const softplus = (x: number) => Math.log1p(Math.exp(x));

describe('the numbers of an xIELU', () => {
  it('are read from tensors of one number, of 32 bits or of 16', () => {
    const wide = tensorsOf({ alpha_p: f32(0.25), alpha_n: f32(-1), beta: f32(0.75), eps: f32(-1e-3) });
    const [xielu] = withXieluOfTensors('folder', config, wide).xielu!;
    expect(xielu!.alphaPositive).toBeCloseTo(softplus(0.25), 6);
    expect(xielu!.alphaNegative).toBeCloseTo(0.75 + softplus(-1), 6);
    expect([xielu!.beta, xielu!.epsilon]).toEqual([0.75, Math.fround(-1e-3)]);
    const short = tensorsOf({ alpha_p: ONE_AND_A_HALF, alpha_n: MINUS_TWO });
    const [usual] = withXieluOfTensors('folder', config, short).xielu!;
    expect(usual!.alphaPositive).toBeCloseTo(softplus(1.5), 6);
    expect(usual!.alphaNegative).toBeCloseTo(0.5 + softplus(-2), 6);
    expect([usual!.beta, usual!.epsilon]).toEqual([0.5, -1e-6]);
  });

  it('are read from the lists of a GGUF', () => {
    const lists: [string, Float32Array][] = [
      ['xielu.alpha_p', Float32Array.of(25)],
      ['xielu.alpha_n', Float32Array.of(0)],
    ];
    const [xielu] = withXieluOfGguf(new GgufMetadata('f', lists), config).xielu!;
    expect(xielu).toEqual({
      alphaPositive: 25,
      alphaNegative: Math.fround(0.5 + Math.fround(Math.log(2))),
      beta: 0.5,
      epsilon: -1e-6,
    });
  });

  it.each<[string, () => ModelConfig, RegExp]>([
    [
      'that is missing',
      () => withXieluOfTensors('folder', config, tensorsOf({ alpha_p: f32(1) })),
      /^folder: alpha_n of each layer's xIELU should be a number, found nothing\.$/,
    ],
    [
      'that is none',
      () => withXieluOfTensors('folder', config, tensorsOf({ alpha_p: f32(Number.NaN), alpha_n: f32(1) })),
      /alpha_p of each layer's xIELU should be a number, found NaN\.$/,
    ],
    [
      'above 0',
      () =>
        withXieluOfTensors('folder', config, tensorsOf({ alpha_p: f32(1), alpha_n: f32(1), eps: f32(0.5) })),
      /eps of each layer's xIELU should be a number of at most 0, found 0\.5\.$/,
    ],
    [
      'of several numbers',
      () => withXieluOfTensors('folder', config, tensorsOf({ alpha_p: f32(1) }, { shape: [2] })),
      /act_fn\.alpha_p should be F32, BF16 or F16 of shape \[1\], found F32 of shape \[2\]\.$/,
    ],
    [
      'of a GGUF that has too few',
      () => withXieluOfGguf(new GgufMetadata('f'), config),
      /^f: beta|^f: alpha_\w of each layer's xIELU should be a number, found nothing\.$/,
    ],
  ])('are refused: one %s', (_, read, message) => {
    expect(read).toThrow(message);
  });

  it('are not looked for where the activation is another one', () => {
    const silu = { ...config, activation: 'silu' } as ModelConfig;
    expect(withXieluOfTensors('folder', silu, new Map())).toBe(silu);
  });
});
