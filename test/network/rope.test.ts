import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { configOfHuggingFace } from '../../models/checkpoints/huggingface-config.js';
import { ropeDependsOnLength, ropeFrequencies } from '../../network/rope.js';

interface Case {
  name: string;
  config: Record<string, unknown>;
  length: number;
  inverseFrequencies: number[];
  scale: number;
}
const cases = JSON.parse(readFileSync(new URL('../fixtures/rope.json', import.meta.url), 'utf8')) as Case[];

describe('ropeFrequencies', () => {
  for (const { name, config, length, inverseFrequencies, scale } of cases) {
    it(`gives what transformers gives: ${name}`, () => {
      const { rope } = configOfHuggingFace('config.json', config, null);
      const found = ropeFrequencies(rope, length);
      expect(ropeDependsOnLength(rope)).toBe(length > 0);
      expect(found.inverseFrequencies.length).toBe(inverseFrequencies.length);
      for (const [i, expected] of inverseFrequencies.entries()) {
        // Two units in the last place of float32: torch's pow is not the correctly rounded one.
        expect(Math.abs(found.inverseFrequencies[i]! - expected)).toBeLessThanOrEqual(expected * 2 ** -22);
      }
      expect(found.scale).toBeCloseTo(scale, 6);
    });
  }

  it('reads the scaling under its old names too', () => {
    const [linear] = cases.filter(({ name }) => name === 'linear');
    const { rope_parameters: _, ...rest } = linear!.config;
    const old = { ...rest, rope_theta: 10_000, rope_scaling: { type: 'linear', factor: 2.5 } };
    const { rope } = configOfHuggingFace('config.json', old, null);
    expect(rope).toEqual(configOfHuggingFace('config.json', linear!.config, null).rope);
  });

  it('divides by given factors', () => {
    const factors = [1, 2, 4, 32];
    const rope = { theta: 10_000, rotaryDim: 8 };
    const plain = ropeFrequencies({ ...rope, scaling: { type: 'none' } }).inverseFrequencies;
    const { inverseFrequencies } = ropeFrequencies({ ...rope, scaling: { type: 'factors', factors } });
    expect([...inverseFrequencies]).toEqual(factors.map((factor, i) => plain[i]! / factor));
  });
});
