import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, it } from 'vitest';
import { GuideError } from '../../../../engine/guided/grammar.js';
import type { GrammarMatcher } from '../../../../engine/guided/grammar-matcher.js';
import { STRING_FORMATS } from '../../../../engine/guided/sources/string-formats.js';
import { randomSchema } from '../../../../tools/guided-soak/random-schema.js';
import { Random } from '../../../../tools/soak/random.js';
import { matcherOf, nextOf } from '../follow.js';

const ajv = new Ajv2020({ strict: false });
for (const [name, pattern] of Object.entries(STRING_FORMATS))
  ajv.addFormat(name, new RegExp(`^(${pattern})$`));

/** Walks at random wherever the guide lets it; null where that takes it nowhere within `limit` bytes. */
function randomText(matcher: GrammarMatcher, random: Random, limit: number): Buffer | null {
  const bytes: number[] = [];
  let places = matcher.start;
  while (bytes.length < limit) {
    const next = nextOf(matcher, places);
    const fitting = [...next.keys()].filter((byte) => next[byte] !== null);
    if (places.isAccepting && (fitting.length === 0 || random.chance(0.3))) return Buffer.from(bytes);
    // Towards an end: quotes and brackets that close.
    const closing = [0x22, 0x5d, 0x7d].filter((byte) => next[byte] !== null);
    const byte = random.pick(closing.length > 0 && random.chance(0.5) ? closing : fitting);
    bytes.push(byte);
    places = next[byte]!;
  }
  return null;
}

it('every text that a schema leaves is valid, of 100 random schemas', () => {
  let numTexts = 0;
  for (let seed = 0; seed < 100; seed++) {
    const random = new Random(seed);
    const schema = randomSchema(random) as object;
    let matcher: GrammarMatcher;
    try {
      matcher = matcherOf('json_schema', schema);
    } catch (error) {
      expect(error, JSON.stringify(schema)).toBeInstanceOf(GuideError);
      expect((error as Error).message).toContain('No text matches');
      continue;
    }
    const isValid = ajv.compile(schema);
    for (let k = 0; k < 5; k++) {
      const text = randomText(matcher, random, 3000);
      if (text === null) continue;
      numTexts++;
      const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(text));
      if (!isValid(value)) {
        expect({ schema, text: String(text), errors: isValid.errors }).toBe('valid');
      }
    }
  }
  expect(numTexts).toBeGreaterThan(400);
});
