import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StopStringMatcher, StopStrings } from '../../../models/tokenizer/stop-strings.js';
import { CallsOnlyParser } from '../../../src/generation/chat-plan.js';
import { ContentStops } from '../../../src/generation/content-stops.js';
import { THINK_MARKS } from '../../../src/generation/reasoning/reasoning-marks.js';
import { PlainParser, ReasoningParser } from '../../../src/generation/reasoning/reasoning-parser.js';
import { HermesParser } from '../../../src/generation/tools/hermes-parser.js';
import { PartList } from '../../../src/generation/tools/part-list.js';
import type { AnswerParser, AnswerPart } from '../../../src/generation/tools/types.js';
import { draws } from '../../support/scale.js';
import { cut, nearlyCalls, PARSERS } from './tools/nearly-calls.js';

type Make = () => AnswerParser;
const MAKERS: Record<string, Make> = {
  ...PARSERS,
  plain: () => new PlainParser(),
  'reasoning that may come': () =>
    new ReasoningParser({ start: 'maybe', marks: THINK_MARKS }, new PlainParser()),
  'open reasoning before calls': () =>
    new ReasoningParser({ start: 'open', marks: THINK_MARKS }, new HermesParser()),
};

interface Ended {
  text: string;
  /** The stop string; null: none. */
  stop: string | null;
}

function ended(make: Make, stops: readonly string[], pieces: readonly string[], includeStop = false): Ended {
  const finder = new ContentStops(new StopStrings(stops), make(), { includeStop });
  let text = '';
  for (const piece of pieces) {
    const { emit, matched } = finder.push(piece);
    text += emit;
    if (matched !== null) return { text, stop: stops[matched]! };
  }
  const { emit, matched } = finder.end();
  return { text: text + emit, stop: matched === null ? null : stops[matched]! };
}

function read(make: Make, text: string): AnswerPart[] {
  const parser = make();
  const parts = new PartList();
  parts.append(parser.push(text));
  parts.append(parser.end());
  return parts.take();
}

const contentOf = (parts: readonly AnswerPart[]) =>
  parts.flatMap((part) => (part.type === 'content' ? [part.text] : [])).join('');

describe('the stop strings of an answer', () => {
  const call = '<tool_call>\n{"name": "f", "arguments": {"a": "x\\ny"}}\n</tool_call>';
  const thinking = 'open reasoning before calls';

  it.each<[string, string, string[], Ended]>([
    ['hermes', `a${call}`, ['\n'], { text: `a${call}`, stop: null }],
    ['hermes', `a\n${call}`, ['\n'], { text: `a\n${call}`, stop: null }],
    ['hermes', 'a\nb', ['\n'], { text: 'a', stop: '\n' }],
    ['hermes', 'a\n', ['\n'], { text: 'a', stop: '\n' }],
    ['hermes', `a${call}b END c`, ['END'], { text: `a${call}b `, stop: 'END' }],
    // It does not reach across a call, and markup that is none is text.
    ['hermes', `EN${call}D`, ['END'], { text: `EN${call}D`, stop: null }],
    ['hermes', '<tool_call>no</tool_call>', ['</tool'], { text: '<tool_call>no', stop: '</tool' }],
    ['hermes', '<tool_call>{"a"', ['{'], { text: '<tool_call>', stop: '{' }],
    [
      thinking,
      'Hm.\n\nSo.\n</think>\n\nYes.\nOr',
      ['\n'],
      { text: 'Hm.\n\nSo.\n</think>\n\nYes.', stop: '\n' },
    ],
    [thinking, 'Hm.\n', ['\n'], { text: 'Hm.\n', stop: null }],
    [thinking, `\n</think>\n${call}`, ['\n', 'name'], { text: `\n</think>\n${call}`, stop: null }],
    ['reasoning that may come', '<think>a</think>a', ['a'], { text: '<think>a</think>', stop: 'a' }],
    ['reasoning that may come', '<thin', ['hi'], { text: '<t', stop: 'hi' }],
    [
      'llama3_json',
      '{"name": "f", "parameters": {"a": 1}}',
      ['a'],
      { text: '{"name": "f", "parameters": {"a": 1}}', stop: null },
    ],
    ['llama3_json', '{"answer": 1}', ['a'], { text: '{"', stop: 'a' }],
    ['pythonic', '[f(a=1)]', ['a'], { text: '[f(a=1)]', stop: null }],
    ['pythonic', '[1, 2]', [','], { text: '[1', stop: ',' }],
  ])('%s: %j with %j', (name, text, stops, expected) => {
    expect(ended(MAKERS[name]!, stops, text.split(''))).toEqual(expected);
    expect(ended(MAKERS[name]!, stops, [text])).toEqual(expected);
    const withStop = { ...expected, text: expected.text + (expected.stop ?? '') };
    expect(ended(MAKERS[name]!, stops, [text], true)).toEqual(withStop);
  });

  it('are of no account where the answer has to be calls', () => {
    const make = () => new CallsOnlyParser(new HermesParser());
    for (const text of [call, `a\n${call}`, call.slice(0, 20)]) {
      expect(ended(make, ['\n', 'a'], text.split(''))).toEqual({ text, stop: null });
    }
    expect(read(make, call.slice(0, 25))).toEqual([]);
    expect(read(make, `a ${call.slice(0, 45)}`).map(({ type }) => type)).toEqual(['call', 'arguments']);
  });

  it('are refused where one is empty', () => {
    expect(() => ended(MAKERS.plain!, ['a', ''], [])).toThrow('Stop string 1 is empty');
  });

  it('hold back what may become content and a stop string, and no more', () => {
    const finder = new ContentStops(new StopStrings(['\n\n']), MAKERS[thinking]!(), { includeStop: false });
    const emitted = (text: string) => finder.push(text).emit;
    expect(emitted('Hm.\n\nYes')).toBe('Hm.\n\nYes');
    expect(emitted('</thi')).toBe('</thi');
    expect(emitted('nk>\n\n')).toBe('nk>\n\n');
    expect(emitted('So')).toBe('So');
    expect(emitted(' it\n')).toBe(' it');
    expect(emitted('is <tool')).toBe('\nis');
    expect(emitted('_call>{"name": "f", ')).toBe('');
    expect(emitted('"arguments": {"a')).toBe(' <tool_call>{"name": "f", "arguments": {"a');
    expect(emitted('\\n')).toBe('\\n');
  });
});

const stopTexts = fc.array(
  fc.oneof(
    fc.constantFrom('\n', ' ', '"', 'f', '</tool_call>', '{', '}}', ', ', 'think', 'x'),
    fc.string({ minLength: 1, maxLength: 3, unit: fc.constantFrom('a', '<', '\n', '"', 'f', '{', ' ') }),
  ),
  { minLength: 1, maxLength: 3 },
);
const texts = fc
  .tuple(fc.constantFrom('', '<think>', 'a\n</think>\n', '<think>\na</think>a', '</think>'), nearlyCalls)
  .map((parts) => parts.join(''));

describe.each(Object.keys(MAKERS))('stop strings of answers as %s reads them', (name) => {
  const make = MAKERS[name]!;

  it('end the text at the first one in its content, however it is cut', () => {
    fc.assert(
      fc.property(texts, stopTexts, fc.array(fc.nat(200), { maxLength: 20 }), (text, stops, places) => {
        const whole = ended(make, stops, text.split(''));
        expect(ended(make, stops, cut(text, places))).toEqual(whole);
        expect(whole).toEqual(reference(make, stops, text));
        const shown = { ...whole, text: whole.text + (whole.stop ?? '') };
        expect(ended(make, stops, [text], true)).toEqual(shown);
      }),
      { numRuns: draws(100) },
    );
  });

  it('leave nothing of themselves in the content', () => {
    fc.assert(
      fc.property(texts, stopTexts, (text, stops) => {
        const { text: left, stop } = ended(make, stops, [text]);
        if (stop === null) expect(left).toBe(text);
        else expect(text.startsWith(left + stop)).toBe(true);
        const matcher = new StopStringMatcher(stops);
        for (const part of read(make, left)) {
          if (part.type === 'content') expect(matcher.push(part.text).matched).toBeNull();
        }
      }),
      { numRuns: draws(80) },
    );
  });

  it('need no more text held than may become content', () => {
    fc.assert(
      fc.property(texts, fc.nat(200), (text, place) => {
        const parser = make();
        parser.push(text.slice(0, place % (text.length + 1)));
        const { held } = parser;
        expect(held).toBeGreaterThanOrEqual(contentOf(parser.end()).length);
        expect(held).toBeLessThanOrEqual(text.length);
      }),
      { numRuns: draws(100) },
    );
  });
});

/** The same by another way: the content of each unit, and the first stop string in a run of them. */
function reference(make: Make, stops: readonly string[], text: string): Ended {
  const parser = make();
  let run = '';
  const parts: AnswerPart[][] = [];
  const breaks: (number | undefined)[] = [];
  for (const unit of text.split('')) {
    parts.push(parser.push(unit));
    breaks.push(parser.breaks);
  }
  const found = (list: readonly AnswerPart[]): { before: string; stop: string } | null => {
    for (const part of list) {
      if (part.type !== 'content') run = '';
      else {
        for (const unit of part.text.split('')) {
          run += unit;
          const stop = stops.filter((one) => run.endsWith(one)).toSorted((a, b) => b.length - a.length)[0];
          if (stop !== undefined) return { before: run.slice(0, -stop.length), stop };
        }
      }
    }
    return null;
  };
  for (let end = 0; end <= text.length; end++) {
    const match = found(end < text.length ? parts[end]! : parser.end());
    if (end > 0 ? breaks[end] !== breaks[end - 1] : breaks[0]) run = '';
    if (match === null) continue;
    // The content before it, in the text: the last place where it stands followed by the stop string.
    const seen = text.slice(0, end + 1);
    return {
      text: seen.slice(0, seen.lastIndexOf(match.before + match.stop) + match.before.length),
      stop: match.stop,
    };
  }
  return { text, stop: null };
}
