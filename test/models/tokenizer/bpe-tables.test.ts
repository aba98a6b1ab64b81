import { describe, expect, it } from 'vitest';
import { BpeTables, bytesOf } from '../../../models/tokenizer/bpe-tables.js';
import { NONE } from '../../../models/tokenizer/slot-table.js';
import { Random } from '../../../tools/soak/random.js';
import { ALPHABETS, randomModel } from './library-tokenizer.js';

interface Model {
  vocab: Record<string, number>;
  merges: [string, string][];
}

const tablesOf = (model: Model) => new BpeTables(BpeTables.make({ type: 'BPE', ...model }));
const symbolOf = (tables: BpeTables, text: string) => tables.symbolAt(text, 0, text.length);

describe('tables of a BPE', () => {
  it('find each text and each merge of random models, and no others', () => {
    const random = new Random(5);
    for (let i = 0; i < 40; i++) {
      const alphabet = random.pick(ALPHABETS);
      const model = randomModel(random, alphabet) as Model;
      const tables = tablesOf(model);
      // Of equal merges the last one counts.
      const ranks = new Map(model.merges.map((merge, rank) => [JSON.stringify(merge), rank]));
      const sides = [...new Set([...Object.keys(model.vocab), ...model.merges.flat(), 'no text', ''])];
      for (const left of sides) {
        expect(tables.idOf(left)).toBe(model.vocab[left]);
        for (const right of sides.slice(0, 12)) {
          const symbols = [symbolOf(tables, left), symbolOf(tables, right)] as const;
          const rank = symbols.includes(NONE) ? NONE : tables.rankOf(...symbols);
          expect(rank).toBe(ranks.get(JSON.stringify([left, right])) ?? NONE);
          if (rank !== NONE) expect(tables.resultOf(rank)).toBe(symbolOf(tables, left + right));
        }
      }
    }
  });

  it('hold a vocabulary with gaps, with two texts for an id, and with halves of characters', () => {
    const vocab = { a: 0, gap: 9, b: 2, again: 2, '': 3, '\ud83d': 4, '\0': 5, ['long'.repeat(50_000)]: 6 };
    const tables = tablesOf({ vocab, merges: [] });
    expect(tables.size).toBe(10);
    expect(tables.longest).toBe(200_000);
    for (const [text, id] of Object.entries(vocab)) expect(tables.idOf(text)).toBe(id);
    expect(Array.from({ length: 6 }, (_, id) => tables.textOf(id))).toEqual([
      ...['a', undefined, 'again', '', '\ud83d', '\0'],
    ]);
    for (const outside of [-1, 1, 8, 10, 0.5, 2 ** 31]) expect(tables.textOf(outside)).toBeUndefined();
  });

  it('can be empty', () => {
    const tables = tablesOf({ vocab: {}, merges: [] });
    expect([tables.size, tables.longest, tables.idOf('a'), tables.textOf(0)]).toEqual([
      0,
      0,
      undefined,
      undefined,
    ]);
  });

  it('have the bytes that their sizes say, and are the same every time', () => {
    const model = randomModel(new Random(2), ALPHABETS[2]!) as Model;
    const { sizes, bytes } = BpeTables.make({ type: 'BPE', ...model });
    expect(bytes.length).toBe(bytesOf(sizes));
    expect(BpeTables.make({ type: 'BPE', ...model })).toEqual({ sizes, bytes });
  });
});
