import { readdirSync, readFileSync } from 'node:fs';
import type { Tokenizer } from '../../models/tokenizer/index.js';
import type { Random } from '../support/random.js';

const PHRASES = [
  "I'm sure we'll see what they've done, WE'LL SEE; it's 9 o'clock.",
  '你好，世界。今天天气怎么样？请用一句话回答。',
  '日本語の文章とカタカナ、ひらがな１２３。',
  '한국어 문장입니다. 잘 지내요?',
  'Привет, мир! Ёлка и чай.',
  'Γειά σου Κόσμε, τι κάνεις;',
  'مرحبا بالعالم، كيف الحال؟ ٣٤٥',
  'שלום עולם, מה שלומך?',
  'नमस्ते दुनिया। आप कैसे हैं?',
  'สวัสดีชาวโลก น้ำใจ',
  'Xin chào thế giới, đường phố',
  'Zażółć gęślą jaźń; straße, café, cafe\u0301, Ångström \u212b',
  '👨‍👩‍👧 🇩🇪🇫🇷 👍🏽 ❤️ 𝕏 𠀀',
  'for (let i = 0; i < n; i++) {\n\tx[i] += 2 ** i; // ok\n}\r\n',
  '{"a": [1, 2.50, null], "b": {"c": "d\\n"}}',
  '1,234,567.89 + 0x7FFF = 3.0e-10 %',
  'https://example.com/a?b=c%20d#e user@example.org C:\\Users\\x',
];
const SPACES = [
  ' ',
  '  ',
  '   ',
  '\n',
  '\n\n',
  '\r\n',
  '\t',
  '\t\t',
  ' \n ',
  '\u00a0',
  '\u3000',
  '\u2028',
  '\u0085',
  '',
];
/** Ranges of code points of which letters are drawn: Latin, Greek to Cyrillic, Devanagari, symbols, kana, Han, Hangul, emoji, beyond. */
const RANGES: readonly (readonly [number, number])[] = [
  [0x20, 0x7f],
  [0x80, 0x250],
  [0x300, 0x530],
  [0x900, 0x980],
  [0x2000, 0x2c00],
  [0x3040, 0x3100],
  [0x4e00, 0x9fff],
  [0xac00, 0xd7a4],
  [0x1f300, 0x1fb00],
  [0x10000, 0x10450],
];

const WRITTEN = [
  'README.md',
  'docs/api.md',
  'docs/options.md',
  'engine/generation-loop.ts',
  'engine/executors/native/kernels/simd_avx2.h',
  'tools/reference/families.py',
  'package.json',
];
const ROOT = new URL('../../', import.meta.url);

type Kind = (random: Random, tokenizer: Tokenizer) => string;

const pick = <T>(random: Random, list: readonly T[]): T => list[random.below(list.length)]!;
const times = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make);

/** Pieces of documents and sources of this repository. */
function written(): Kind {
  const names = [...WRITTEN, ...readdirSync(new URL('docs/lab/', ROOT)).map((name) => `docs/lab/${name}`)];
  const files = names.map((name) => readFileSync(new URL(name, ROOT), 'utf8'));
  return (random) => {
    const file = pick(random, files);
    const begin = random.below(file.length);
    return file.slice(begin, begin + 1 + random.below(1500));
  };
}

const phrases: Kind = (random) =>
  times(1 + random.below(6), () => pick(random, PHRASES) + pick(random, SPACES)).join('');

/** Parts of phrases put together, cut anywhere between code points. */
const mixtures: Kind = (random) =>
  times(1 + random.below(20), () => {
    const letters = [...pick(random, PHRASES)];
    const begin = random.below(letters.length);
    return letters.slice(begin, begin + 1 + random.below(8)).join('') + pick(random, SPACES);
  }).join('');

const letters: Kind = (random) =>
  times(1 + random.below(40), () => {
    const [begin, end] = pick(random, RANGES);
    return String.fromCodePoint(begin + random.below(end - begin));
  }).join('');

const spaces: Kind = (random) =>
  times(1 + random.below(12), () => pick(random, SPACES) + (random.below(3) === 0 ? 'x' : '')).join('');

/** Texts of tokens one after another, special ones among them. */
const tokens: Kind = (random, tokenizer) =>
  times(1 + random.below(30), () =>
    random.below(12) === 0
      ? pick(random, [...tokenizer.specialTokenTexts, ''])
      : (tokenizer.tokenText(random.below(tokenizer.vocabSize)) ?? ''),
  ).join('');

/** `count` texts of all kinds in turn, the same for the same seed. They are well formed: JSON of Python has no half of a pair. */
export function judgedTexts(count: number, random: Random, tokenizer: Tokenizer): string[] {
  const kinds = [written(), phrases, mixtures, letters, spaces, tokens];
  // Half of a pair becomes U+FFFD.
  return Array.from({ length: count }, (_, i) =>
    Buffer.from(kinds[i % kinds.length]!(random, tokenizer)).toString(),
  );
}
