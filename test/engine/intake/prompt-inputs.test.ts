import { describe, expect, it } from 'vitest';
import type { Tensor } from '../../../callbacks/types.js';
import { cacheSaltOf, type PromptLimits, readPromptInputs } from '../../../engine/intake/prompt-inputs.js';
import { inferenceRequestOf } from '../../../host/token-inputs.js';

const LIMITS: PromptLimits = {
  vocabSize: 10,
  promptRowWidth: 2,
  turnsByGrid: false,
  maxSeqLen: 50,
  attendsToAll: true,
};
const i32 = (...values: number[]): Tensor => ({ shape: [1, values.length], data: Int32Array.from(values) });
const table = (...values: number[]): Tensor => ({
  shape: [values.length / 2, 2],
  data: Float32Array.from(values),
});
const size = (value: number): Tensor => ({ shape: [1], data: Int32Array.of(value) });

const read = (inputs: Record<string, Tensor>, limits = LIMITS) => readPromptInputs(inputs, limits, 5);

describe('a prompt table', () => {
  it('adds ids behind the vocabulary, one for each row', () => {
    const inputs = { input_ids: i32(11, 3, 10), prompt_embedding_table: table(1, 2, 3, 4) };
    expect(read(inputs)).toEqual({
      promptTokens: Int32Array.of(11, 3, 10),
      promptTable: { firstId: 10, values: Float32Array.of(1, 2, 3, 4), images: null },
      positions: null,
    });
  });

  it('has as many rows as prompt_vocab_size says', () => {
    const inputs = { prompt_embedding_table: table(1, 2, 3, 4), prompt_vocab_size: size(1) };
    expect(read({ ...inputs, input_ids: i32(10) }).promptTable!.values).toEqual(Float32Array.of(1, 2));
    expect(() => read({ ...inputs, input_ids: i32(1, 11) })).toThrow(
      'input_ids holds 11 at place 1; tokens are from 0 to 9, those of prompt_embedding_table from 10 to 10.',
    );
    expect(() => read({ ...inputs, input_ids: i32(1), prompt_vocab_size: size(3) })).toThrow(
      'prompt_vocab_size is 3; prompt_embedding_table has 2 rows, so it must be from 0 to 2.',
    );
  });

  it('that no token names is none', () => {
    expect(read({ input_ids: i32(1, 9), prompt_embedding_table: table(1, 2) }).promptTable).toBeNull();
    expect(() => read({ input_ids: i32(10), prompt_embedding_table: table() })).toThrow(
      'input_ids holds 10 at place 0; tokens are from 0 to 9.',
    );
  });
});

describe('pictures that attend both ways', () => {
  const inputs = {
    input_ids: i32(1, 10, 99, 2),
    prompt_embedding_table: table(1, 2, 3, 4),
    image_grids: { shape: [1, 3], data: Int32Array.of(1, 1, 2) },
  };
  const under = (limits: Partial<PromptLimits>) =>
    read(inputs, { ...LIMITS, ...limits }).promptTable!.bothWays;

  it('are so as the executor says, whatever a text has', () => {
    expect(under({})).toBeUndefined();
    expect(under({ pictureRule: 'bothWays' })).toBe(true);
    const text = read({ input_ids: i32(1) }, { ...LIMITS, pictureRule: 'unsupported', attendsToAll: false });
    expect(text.promptTable).toBeNull();
  });

  it('are refused by an executor that cannot, and in an attention window', () => {
    expect(() => under({ pictureRule: 'unsupported' })).toThrow(
      'image_grids is refused: this executor does not attend both ways within a picture, as this model does.',
    );
    expect(() => under({ pictureRule: 'bothWays', attendsToAll: false })).toThrow(
      'image_grids is refused: this model attends both ways within a picture, which an attention window (maxAttentionWindow) does not keep whole.',
    );
    expect(under({ attendsToAll: false })).toBeUndefined();
  });
});

describe('positions', () => {
  it('that are the places are none', () => {
    const input_ids = i32(1, 2, 3);
    expect(read({ input_ids, position_ids: i32(0, 1, 2) }).positions).toBeNull();
    expect(read({ input_ids, position_ids: i32(0, 1, 1) }).positions!.time).toEqual(Int32Array.of(0, 1, 1));
  });

  it('of its own cannot be had in an attention window', () => {
    const windowed = { ...LIMITS, attendsToAll: false };
    const input_ids = i32(1, 2, 3);
    expect(() => read({ input_ids, position_ids: i32(0, 1, 3) }, windowed)).toThrow(
      'position_ids is refused: with an attention window (maxAttentionWindow) a token counts as its place in the cache',
    );
    expect(read({ input_ids, position_ids: i32(0, 1, 2) }, windowed).positions).toBeNull();
  });

  it('end where the longest sequence does', () => {
    const input_ids = i32(1, 2, 3);
    expect(read({ input_ids, position_ids: i32(0, 1, 44) }).positions).not.toBeNull();
    expect(() => read({ input_ids, position_ids: i32(0, 1, 45) })).toThrow(
      'position_ids ends with 45, and request_output_len is 5; that goes on to position 50, the last one is 49.',
    );
  });
});

describe('a token request', () => {
  const request = { promptTokens: [10, 1], maxNewTokens: 5 };
  const rows = [Float32Array.of(1, 2), Float32Array.of(3, 4)];

  it('brings both as tensors', () => {
    const { inputs } = inferenceRequestOf(1n, { ...request, promptEmbeddings: rows, positionIds: [3, 4] });
    expect(inputs.prompt_embedding_table).toEqual(table(1, 2, 3, 4));
    expect(inputs.position_ids).toEqual(i32(3, 4));
    expect(inferenceRequestOf(1n, { ...request, promptEmbeddings: [] }).inputs).not.toHaveProperty(
      'prompt_embedding_table',
    );
  });

  it('brings pictures as grids', () => {
    const { inputs } = inferenceRequestOf(1n, {
      ...request,
      promptEmbeddings: rows,
      imageGrids: [
        [0, 1, 1],
        [1, 1, 1],
      ],
    });
    expect(inputs.image_grids).toEqual({ shape: [2, 3], data: Int32Array.of(0, 1, 1, 1, 1, 1) });
  });

  it('is refused where rows differ in length, or a position is no whole number', () => {
    const uneven = [...rows, new Float32Array(3)];
    expect(() => inferenceRequestOf(1n, { ...request, promptEmbeddings: uneven })).toThrow(
      'promptEmbeddings has 3 values in row 2 and 2 in row 0; all rows have the same length.',
    );
    expect(() => inferenceRequestOf(1n, { ...request, positionIds: [0.5, 1] })).toThrow(
      'positionIds holds 0.5 at place 0; whole numbers are expected.',
    );
  });
});

describe('the salt of cached blocks', () => {
  const input_ids = i32(10, 2, 3);
  const salt = (inputs: Record<string, Tensor>, own = 0n) => cacheSaltOf(own, read({ input_ids, ...inputs }));
  const rows = { prompt_embedding_table: table(1, 2) };

  it("is the client's where neither table nor positions are given", () => {
    expect(cacheSaltOf(0n, read({ input_ids: i32(1) }))).toBe(0n);
    expect(cacheSaltOf(7n, read({ input_ids: i32(1), ...rows }))).toBe(7n);
  });

  it('tells salts, tables and positions apart, and nothing else', () => {
    const different = [
      salt(rows),
      salt(rows, 1n),
      salt({ prompt_embedding_table: table(1, 3) }),
      salt({ prompt_embedding_table: table(1, 2, 0, 0) }),
      salt({ ...rows, position_ids: i32(4, 5, 6) }),
      salt({ ...rows, position_ids: i32(4, 5, 7) }),
      cacheSaltOf(0n, read({ input_ids: i32(1, 2, 3), position_ids: i32(4, 5, 6) })),
    ];
    expect(new Set(different).size).toBe(different.length);
    expect(salt({ prompt_embedding_table: table(1, 2), position_ids: i32(0, 1, 2) })).toBe(salt(rows));
  });
});
