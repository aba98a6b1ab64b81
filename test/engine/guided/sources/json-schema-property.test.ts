import { expect, it } from 'vitest';
import { GuideError } from '../../../../engine/guided/grammar.js';
import type { GrammarMatcher } from '../../../../engine/guided/grammar-matcher.js';
import { randomSchema } from '../../../../tools/guided-soak/random-schema.js';
import { NO_TEXT, newValidator } from '../../../../tools/guided-soak/validator.js';
import { Random } from '../../../../tools/soak/random.js';
import { draws } from '../../../support/scale.js';
import { matcherOf } from '../follow.js';
import { randomText } from '../random-text.js';

/** Of many more: tools/guided-soak. */
const SCHEMAS = draws(30);

it(`every text that a schema leaves is valid, of ${SCHEMAS} random schemas`, () => {
  const ajv = newValidator();
  let numTexts = 0;
  for (let seed = 0; seed < SCHEMAS; seed++) {
    const random = new Random(seed);
    const schema = randomSchema(random) as object;
    let matcher: GrammarMatcher;
    try {
      matcher = matcherOf('json_schema', schema);
    } catch (error) {
      expect(error, JSON.stringify(schema)).toBeInstanceOf(GuideError);
      expect((error as Error).message).toMatch(NO_TEXT);
      continue;
    }
    const isValid = ajv.compile(schema);
    for (let k = 0; k < 5; k++) {
      const text = randomText(matcher, random, 1000);
      if (text === null) continue;
      numTexts++;
      const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(text));
      if (!isValid(value)) {
        expect({ schema, text: String(text), errors: isValid.errors }).toBe('valid');
      }
    }
  }
  expect(numTexts).toBeGreaterThan(4 * SCHEMAS);
});
