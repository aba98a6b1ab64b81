import { expect, it } from 'vitest';
import { tokenMask } from '../../../engine/guided/token-mask.js';
import { TokenTrie } from '../../../engine/guided/token-trie.js';
import { Random } from '../../../tools/soak/random.js';
import { matcherOf } from './follow.js';

/** A random regular expression over a, b and é, and the same for JavaScript. */
function randomRegex(random: Random, depth: number): string {
  if (depth === 0) return random.pick(['a', 'b', '[ab]', '\u00e9', '[^a]', '.']);
  const part = () => randomRegex(random, depth - 1);
  switch (random.integer(0, 4)) {
    case 0:
      return `${part()}${part()}`;
    case 1:
      return `(${part()}|${part()})`;
    case 2:
      return `(${part()})${random.pick(['*', '+', '?'])}`;
    case 3: {
      const least = random.integer(0, 3);
      return `(${part()}){${least},${least + random.integer(0, 4)}}`;
    }
    default:
      return part();
  }
}

const WORDS = ['a', 'b', '\u00e9', 'ab', 'ba', 'a\u00e9', 'bbb', 'aab', '\u00e9b\u00e9', 'aaaa'];
/** Texts of up to five words: after some of them, a text that matches goes on. */
const MAX_WORDS = 3;

function textsOf(count: number): string[] {
  if (count === 0) return [''];
  return textsOf(count - 1).flatMap((text) => ['', 'a', 'b', '\u00e9'].map((more) => text + more));
}

const LETTERS = [...new Set(textsOf(6))];

it('masks are those of a naive oracle: a token fits where some text that begins with it matches', () => {
  const bytesOf = WORDS.map((word) => Uint8Array.from(Buffer.from(word)));
  const trie = new TokenTrie(bytesOf);
  let numMasks = 0;
  for (let seed = 0; seed < 150; seed++) {
    const random = new Random(seed);
    const pattern = randomRegex(random, 3);
    const matcher = matcherOf('regex', pattern);
    const whole = new RegExp(`^(?:${pattern})$`, 'u');
    const matching = LETTERS.filter((text) => whole.test(text));
    let text = '';
    for (let i = 0; i < MAX_WORDS; i++) {
      // Forgetting changes nothing.
      if (random.chance(0.2)) matcher.forget();
      const places = matcher.follow(matcher.start, Buffer.from(text));
      if (places === null) break;
      const mask = tokenMask(matcher, trie, places);
      expect(places.isAccepting, `${pattern} ${text}`).toBe(whole.test(text));
      for (const [token, word] of WORDS.entries()) {
        const fits = ((mask[0]! >> token) & 1) === 1;
        const isSeen = matching.some((one) => one.startsWith(text + word));
        // A word that the oracle finds must fit. One that fits may lead to a text longer than any the oracle has.
        if (isSeen) expect(fits, `${pattern} ${text}|${word}`).toBe(true);
        else if (fits)
          expect(canEnd(matcher.follow(places, bytesOf[token]!)), `${pattern} ${text}|${word}`).toBe(true);
      }
      numMasks++;
      const next = WORDS.filter((_, token) => (mask[0]! >> token) & 1);
      if (next.length === 0) break;
      text += random.pick(next);
      if (text.length > 3) break;
    }

    function canEnd(from: ReturnType<typeof matcher.follow>): boolean {
      const seen = new Set([from]);
      for (const places of seen) {
        if (places === null) continue;
        if (places.isAccepting) return true;
        for (let byte = 0; byte < 256; byte++) {
          const step = matcher.step(places, byte);
          if (step !== null) seen.add(step.places);
        }
      }
      return false;
    }
  }
  expect(numMasks).toBeGreaterThan(250);
});
