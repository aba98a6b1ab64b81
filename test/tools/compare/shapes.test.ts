import { describe, expect, it } from 'vitest';
import { parseBatchedBench } from '../../../tools/compare/llama-cpp.js';
import { hasCopiedContexts, parseShapes, shapeName } from '../../../tools/compare/shapes.js';
import { selectOnly } from '../../../tools/compare/side.js';

describe('parseShapes', () => {
  it('reads what shapeName writes', () => {
    const names = ['1x128+128', '64x2048+16', '64x2048+16s'];
    const shapes = parseShapes(names);
    expect(shapes[1]).toEqual({ sequences: 64, promptTokens: 2048, generate: 16 });
    expect(shapes[2]).toEqual({ sequences: 64, promptTokens: 2048, generate: 16, shared: true });
    expect(shapes.map(shapeName)).toEqual(names);
  });

  it('refuses what is no shape, or generates too little', () => {
    for (const text of ['64', '64x128', '0x128+4', '8x128+1', '8x128+4k', '8x128+4ss', ' 8x128+4'])
      expect(() => parseShapes([text])).toThrow(`found '${text}'`);
  });
});

describe('hasCopiedContexts', () => {
  it('spares many sequences their long prompts, never one its own', () => {
    const [many, one, short] = parseShapes(['64x2048+16', '1x40000+16', '64x128+16']);
    expect([many, one, short].map((shape) => hasCopiedContexts(shape!))).toEqual([true, false, false]);
  });
});

describe('parseBatchedBench', () => {
  const line = (pp: number, pl: number) =>
    JSON.stringify({ n_kv_max: 512, pp, tg: 8, pl, speed_pp: 300.5, speed_tg: 40.25 });
  const shape = { sequences: 4, promptTokens: 16, generate: 8 };

  it('finds the line of the shape among other output', () => {
    const output = ['', 'main: n_kv_max = 512', line(16, 1), line(16, 4), 'llama_perf: done'].join('\n');
    expect(parseBatchedBench(output, shape)).toEqual({ prefillPerSecond: 300.5, generationPerSecond: 40.25 });
  });

  it('says so where the bench has left the shape out', () => {
    expect(() => parseBatchedBench(line(16, 1), shape)).toThrow(
      'a line for 4 sequences of 16 tokens, found 1',
    );
  });
});

describe('selectOnly', () => {
  const sides = [
    { engine: 'llama.cpp', format: 'F32' },
    { engine: 'llama.cpp', format: 'Q4_1' },
    { engine: 'skein', format: 'int4' },
  ];
  const columns = [{ name: '1x128+128' }, { name: '64x128+32' }];
  const only = (...items: string[]) => {
    const chosen = selectOnly(items, sides, columns);
    return [chosen.sides.map(({ format }) => format).join(), chosen.columns.map(({ name }) => name).join()];
  };

  it('keeps all of what no item names', () => {
    expect(only()).toEqual(['F32,Q4_1,int4', '1x128+128,64x128+32']);
    expect(only('64x128')).toEqual(['F32,Q4_1,int4', '64x128+32']);
    expect(only('skein')).toEqual(['int4', '1x128+128,64x128+32']);
  });

  it('takes engines, one format of an engine, and columns together', () => {
    expect(only('skein', 'llama.cpp:q4_1', '1x128+128')).toEqual(['Q4_1,int4', '1x128+128']);
  });

  it('refuses what names nothing, and says what there is', () => {
    expect(() => only('skein', 'llama')).toThrow("nothing here is named 'llama'; there are llama.cpp:F32,");
  });
});
