import { describe, expect, it } from 'vitest';
import { OPTIONS } from '../src/options/table.js';
import {
  documentTexts,
  pageTexts,
  proseLines,
  type SpokenText,
  sourceTexts,
  wordsOf,
} from './support/spoken-texts.js';

interface Exception {
  file: string;
  /** The line has it where the word may stay. */
  phrase: string;
  why: string;
}

/** Words that a person who reads a message or a document should not meet, each with what is said in its place. */
const WORDS: readonly { word: string; instead: string; exceptions?: readonly Exception[] }[] = [
  { word: 'whoever', instead: 'anyone who, or clients that' },
  {
    word: 'nobody',
    instead: 'no client, no process, or no request',
    exceptions: [
      {
        file: 'src/server/metrics/families/routing-metrics.ts',
        phrase: 'taken, full, nobody (it has ended), silent',
        why: 'a value of the label "answer"',
      },
      {
        file: 'tools/reference/triton/ensemble-cases.mjs',
        phrase: 'nobody X=A -> Y=B',
        why: "the name of a model in Triton's recorded answers",
      },
    ],
  },
  { word: 'anew', instead: 'again' },
  { word: 'so many', instead: 'the number of, or this number of' },
  { word: 'hears', instead: 'receives' },
  { word: 'heard of', instead: 'known, or reported' },
  { word: 'tells', instead: 'reports, says, names, or describes' },
  { word: 'somebody', instead: 'someone, a client, or a reader' },
  { word: 'beside', instead: 'besides, next to, together with, or compared with' },
];

const PATTERNS = WORDS.map((entry) => ({ ...entry, pattern: new RegExp(`\\b${entry.word}\\b`, 'i') }));
const ANY = new RegExp(WORDS.map(({ word }) => `\\b${word}\\b`).join('|'), 'i');

/** What is wrong with texts, and the exceptions that were needed. */
function judge(texts: readonly SpokenText[]) {
  const used = new Set<Exception>();
  const faults = texts.flatMap(({ file, line, text }) =>
    PATTERNS.flatMap(({ word, instead, exceptions = [], pattern }) => {
      if (!pattern.test(text)) return [];
      const found = exceptions.filter((one) => one.file === file && text.includes(one.phrase));
      for (const one of found) used.add(one);
      const rest = found.reduce((left, { phrase }) => left.replaceAll(phrase, ''), text);
      return pattern.test(rest) ? [`${file}:${line}: "${word}": say ${instead}`] : [];
    }),
  );
  return { faults, used };
}

const helps = OPTIONS.map(({ name, flag }) => ({
  file: `help of the option ${name}`,
  line: 1,
  text: flag.help,
}));

describe('what a person reads', () => {
  it('has no words that the house has others for, and needs all its exceptions', () => {
    const texts = [...documentTexts(), ...pageTexts(), ...sourceTexts(ANY), ...helps];
    const { faults, used } = judge(texts);
    expect(faults).toEqual([]);
    expect(WORDS.flatMap(({ exceptions = [] }) => exceptions).filter((one) => !used.has(one))).toEqual([]);
    expect(helps.length).toBeGreaterThan(100);
    expect(texts.length).toBeGreaterThan(5000);
  });

  it('is named with its file, line and what to say (the check itself)', () => {
    expect(judge([{ file: 'a.md', line: 7, text: 'Loads it anew, Beside others.' }]).faults).toEqual([
      'a.md:7: "anew": say again',
      'a.md:7: "beside": say besides, next to, together with, or compared with',
    ]);
    const [exception] = WORDS.flatMap(({ exceptions = [] }) => exceptions);
    const text = exception!.phrase;
    expect(judge([{ file: exception!.file, line: 1, text }]).faults).toEqual([]);
    expect(judge([{ file: exception!.file, line: 1, text: `${text}; nobody` }]).faults).toHaveLength(1);
    expect(judge([{ file: 'other.ts', line: 1, text }]).faults).toHaveLength(1);
  });

  it('in documents is their prose, without code, comments and targets of links', () => {
    const text = 'a\n```\nanew\n```\n<!-- nobody\n-->b `beside`\n[c](#beside-it) d';
    const lines = proseLines(text);
    expect(lines.map((line) => line.trim())).toEqual(['a', '', '', '', '', 'b', `[c]${' '.repeat(12)} d`]);
  });

  it('in sources is their literals and comments, without patterns, names and values of one word', () => {
    const source =
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the source that is read has a template
      "// anew `beside`\nconst beside = /`anew/.test(x) ? 'nobody' : `an ${a({ b: `in ${1 / 2} er` })} end\nof it`;\n'it is';";
    const found = wordsOf('a.ts', source).map(({ line, text }) => `${line}: ${text}`);
    expect(found).toEqual([
      '1: // anew         ',
      '2: `an ${',
      '2: `in ${',
      '2: } er`',
      '2: } end',
      '3: of it`',
      "4: 'it is'",
    ]);
  });
});
