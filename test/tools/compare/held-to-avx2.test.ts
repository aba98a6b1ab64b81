import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  comparedMachine,
  ggmlBuild,
  isHeldToAvx2,
  oneDnnEnvironment,
} from '../../../tools/compare/held-to-avx2.js';
import { sectionOf } from '../../../tools/support/machine-words.js';

afterEach(() => vi.unstubAllEnvs());

describe('a comparison held to AVX2', () => {
  it('is one of a machine without AVX-512, for all sides', () => {
    vi.stubEnv('SKEIN_ISA', 'avx2');
    expect(isHeldToAvx2()).toBe(true);
    const machine = comparedMachine();
    expect(machine.features.join(' ')).not.toMatch(/avx512|vnni|amx/);
    expect(sectionOf('compare', machine)).toBe('compare-avx2');
    expect(ggmlBuild()).toEqual({
      folder: 'build-avx2',
      options: expect.arrayContaining(['-DGGML_NATIVE=OFF']),
    });
    expect(ggmlBuild().options.join(' ')).not.toMatch(/AVX512|VNNI|AMX/);
    expect(oneDnnEnvironment().ONEDNN_MAX_CPU_ISA).toBe('AVX2');
  });

  it('leaves all sides what the processor has where nothing is asked for', () => {
    vi.stubEnv('SKEIN_ISA', '');
    expect(isHeldToAvx2()).toBe(false);
    expect(comparedMachine().cpu).not.toContain('held');
    expect(ggmlBuild()).toEqual({ folder: 'build', options: ['-DGGML_NATIVE=ON'] });
    expect(oneDnnEnvironment()).toBe(process.env);
  });

  it('is refused for a set to which the others cannot be held', () => {
    vi.stubEnv('SKEIN_ISA', 'avx512');
    expect(() => comparedMachine()).toThrow(
      "SKEIN_ISA: a comparison can be held to avx2 and nothing else, found 'avx512'.",
    );
  });
});
