import { describe, expect, it } from 'vitest';
import { parseBatchedTable } from '../../../tools/compare/ik-llama-cpp.js';

const TABLE = `
main: n_kv_max = 1280, n_batch = 2048, n_ubatch = 512, flash_attn = 1, is_pp_shared = 1, n_gpu_layers = -1, n_threads = 2, n_threads_batch = 2

|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |
|-------|--------|------|--------|----------|----------|----------|----------|----------|----------|
|   128 |     32 |    1 |    160 |    1.000 |   128.00 |    2.000 |    16.00 |    3.000 |    53.33 |
|   128 |     32 |    1 |    160 |    0.500 |   256.00 |    1.000 |    32.00 |    1.500 |   106.67 |
|   128 |     32 |    8 |    384 |    0.500 |   256.00 |    4.000 |    64.00 |    4.500 |    85.33 |
`;

describe('parseBatchedTable', () => {
  it('takes the rows of the shape, without the first of several', () => {
    expect(parseBatchedTable(TABLE, { sequences: 1, promptTokens: 128, generate: 32 })).toEqual({
      prefillPerSecond: 256,
      generationPerSecond: 32,
    });
    expect(parseBatchedTable(TABLE, { sequences: 8, promptTokens: 128, generate: 32 })).toEqual({
      prefillPerSecond: 256,
      generationPerSecond: 64,
    });
  });

  it('names a shape that it left out', () => {
    expect(() => parseBatchedTable(TABLE, { sequences: 16, promptTokens: 128, generate: 32 })).toThrow(
      'expected a row for 16 sequences of 128 tokens, found 3 others',
    );
  });
});
