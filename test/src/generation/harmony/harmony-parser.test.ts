import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StopStrings } from '../../../../models/tokenizer/stop-strings.js';
import { ContentStops } from '../../../../src/generation/content-stops.js';
import { HarmonyParser } from '../../../../src/generation/harmony/parser.js';
import { HARMONY_TOKENS, markOf, tokenOfMark } from '../../../../src/generation/harmony/tokens.js';
import { ReasoningCounter } from '../../../../src/generation/reasoning/reasoning-counter.js';
import type { AnswerPart } from '../../../../src/generation/tools/types.js';
import { partsOf } from '../../../../tools/judge-harmony/stream.js';
import { draws } from '../../../support/scale.js';
import { toyCodec } from '../../support/toy-codec.js';
import { cut } from '../tools/nearly-calls.js';
import { parserOf, readGolden, readTexts, textsOf } from './streams.js';

const { streams } = readGolden();
const NEXT = '<|end|><|start|>assistant';

describe('messages beside openai-harmony', () => {
  it.each(streams)('$name', ({ tokens, read }) => {
    const texts = textsOf(tokens);
    expect(readTexts(texts)).toEqual(partsOf(read.messages));
    if (!read.strict) return;
    const parser = parserOf();
    const deltas = texts.map((text) => parser.push(text).map(textOf).join('').replace(/^\n\n/, ''));
    expect(deltas).toEqual(read.deltas);
  });
});

const textOf = (part: AnswerPart) => (part.type === 'call' ? '' : part.text);

/** Such as ['content', 'Hi']. */
function told(text: string): string[][] {
  return readTexts([text], false).map((part) => [part.type, part.type === 'call' ? part.name : part.text]);
}

describe('broken messages', () => {
  it.each<[string, string, ...string[][]]>([
    ['no format', 'Hello {you}', ['content', 'Hello {you}']],
    ['text that begins like a header', ' to be', ['content', ' to be']],
    [
      'no end before the next message',
      '<|channel|>analysis<|message|>a<|start|>assistant<|channel|>final<|message|>b',
      ['reasoning', 'a'],
      ['content', 'b'],
    ],
    [
      'a channel without a start',
      '<|channel|>analysis<|message|>a<|channel|>final<|message|>b<|return|>',
      ['reasoning', 'a'],
      ['content', 'b'],
    ],
    [
      'text behind a message',
      '<|channel|>analysis<|message|>a<|end|> b c',
      ['reasoning', 'a'],
      ['content', ' b c'],
    ],
    ['white space behind a message', `<|channel|>final<|message|>a<|end|>\n`, ['content', 'a']],
    [
      'tokens that belong nowhere',
      '<|channel|>final<|message|>a<|message|>b<|constrain|>c<|end|><|constrain|><|end|>',
      ['content', 'abc'],
    ],
    [
      'a message without a header',
      `<|channel|>analysis<|message|>a<|end|><|message|>b`,
      ['reasoning', 'a'],
      ['content', 'b'],
    ],
    [
      'no channel',
      `<|channel|>analysis<|message|>a${NEXT}<|message|>b`,
      ['reasoning', 'a'],
      ['content', 'b'],
    ],
    [
      'a header that ends',
      `<|channel|>analysis<|message|>a${NEXT} Yes.<|return|>`,
      ['reasoning', 'a'],
      ['content', 'Yes.'],
    ],
    [
      'a header that is cut',
      `<|channel|>analysis<|message|>a${NEXT}<|channel|>commentary to=functions.wea`,
      ['reasoning', 'a'],
    ],
    [
      'a call without arguments',
      '<|channel|>commentary to=functions.weather<|message|> <|call|>',
      ['call', 'weather'],
      ['arguments', ' {}'],
    ],
    [
      'a call without the prefix',
      '<|channel|>commentary to=find json<|message|>{}<|call|>',
      ['call', 'find'],
      ['arguments', '{}'],
    ],
    ['a call of nothing', '<|channel|>commentary to=functions. json<|message|>x<|call|>', ['reasoning', 'x']],
    [
      'a result that it makes up',
      `<|channel|>analysis<|message|>a<|end|><|start|>functions.find to=assistant<|channel|>commentary<|message|>b`,
      ['reasoning', 'a'],
      ['content', 'b'],
    ],
    [
      'a type of the final text',
      '<|channel|>final <|constrain|>json<|message|>{}<|return|>',
      ['content', '{}'],
    ],
    [
      'content around a call',
      `<|channel|>commentary<|message|>a${NEXT}<|channel|>commentary to=functions.find<|message|>{}${NEXT}<|channel|>final<|message|>b`,
      ['content', 'a'],
      ['call', 'find'],
      ['arguments', '{}'],
      ['content', 'b'],
    ],
  ])('%s', (_, text, ...parts) => {
    expect(told(text)).toEqual(parts);
  });

  it('a header that never ends is text, and no more than a header is held back', () => {
    const long = 'word '.repeat(200);
    const [part, ...others] = told(`<|channel|>analysis ${long}<|end|>`);
    expect([part![0], part![1]!.trim(), others]).toEqual(['reasoning', long.trim(), []]);
    const parser = parserOf(false);
    let most = 0;
    for (const unit of `<|channel|>final ${long}`) {
      parser.push(unit);
      most = Math.max(most, parser.held);
    }
    expect(most).toBeGreaterThan(300);
    expect(most).toBeLessThan(500);
    expect(parser.held).toBe(0);
  });

  it('a call is reasoning where no function may be called', () => {
    const parser = new HarmonyParser({ start: 'message', functions: null, isMarked: false });
    const parts = parser.push('<|channel|>commentary to=functions.f json<|message|>{}<|call|>');
    expect([...parts, ...parser.end()]).toEqual([{ type: 'reasoning', text: '{}' }]);
  });

  it.each([
    ['analysis', ['reasoning', 'content']],
    ['final', ['content']],
  ] as const)('go on where a prompt ends within %s', (start, types) => {
    const parser = new HarmonyParser({ start, functions: null, isMarked: false });
    const parts = [
      ...parser.push(`a<|end|>`),
      ...(start === 'analysis' ? parser.push('<|start|>assistant<|channel|>final<|message|>b') : []),
      ...parser.end(),
    ];
    expect(parts.map(({ type }) => type)).toEqual(types);
  });
});

const fragment = fc.oneof(
  fc.constantFrom<string>(
    ...HARMONY_TOKENS,
    ...[
      'analysis',
      'final',
      'commentary',
      'assistant',
      ' to=functions.find',
      ' to=python',
      'json',
      ' ',
      '\n',
      '{"a": 1}',
    ],
    ...['<', '<|', '|>', 'end|>', '🪿', 'x'],
  ),
  fc.string({ maxLength: 3, unit: 'grapheme' }),
);
const wild = fc.array(fragment, { maxLength: 16 });

describe('any text', () => {
  it.each([true, false])('says the same however it is cut (special tokens: %s)', (isMarked) => {
    const property = fc.property(wild, fc.array(fc.nat(), { maxLength: 6 }), (fragments, places) => {
      const isToken = (one: string) => isMarked && HARMONY_TOKENS.some((token) => token === one);
      const text = fragments.map((one) => (isToken(one) ? markOf(one as never) : one)).join('');
      const whole = readTexts([text], isMarked);
      expect(readTexts(cut(text, places), isMarked)).toEqual(whole);
      const shown = whole.map(textOf).join('');
      expect(shown).not.toMatch(/\p{Surrogate}/u);
      if (!isMarked) expect(HARMONY_TOKENS.some((token) => shown.includes(token))).toBe(false);
      const parser = parserOf(isMarked);
      for (let i = 0; i < text.length; i++) {
        parser.push(text.charAt(i));
        expect(parser.held).toBeLessThanOrEqual(i + 1);
      }
    });
    fc.assert(property, { numRuns: draws(300) });
  });

  it('keeps characters whose half is a mark by itself', () => {
    const text = HARMONY_TOKENS.map((token) => `\ud83c${markOf(token)}`).join('');
    expect([...text].map((character) => tokenOfMark(character.charAt(1)))).toEqual([...HARMONY_TOKENS]);
    expect(readTexts([`${markOf('<|channel|>')}final${markOf('<|message|>')}${text}`])).toEqual([
      { type: 'content', text },
    ]);
  });
});

describe('stop strings', () => {
  const message = fc.tuple(
    fc.constantFrom('analysis', 'final', 'commentary', 'remark'),
    fc.string({ maxLength: 8, unit: fc.constantFrom('a', 'b', '\n', '<', 'end') }),
  );
  const stopTexts = fc.array(
    fc.string({ minLength: 1, maxLength: 2, unit: fc.constantFrom('a', 'b', '\n', '<') }),
    {
      minLength: 1,
      maxLength: 2,
    },
  );

  it.each([true, false])(
    'end an answer at the first one in a text for the user (special tokens: %s)',
    (isMarked) => {
      const marked = (text: string) =>
        text.replaceAll(/<\|\w+\|>/g, (token) => (isMarked ? markOf(token as never) : token));
      const property = fc.property(
        fc.array(message, { maxLength: 4 }),
        stopTexts,
        fc.array(fc.nat(), { maxLength: 5 }),
        (messages, stops, places) => {
          const pieces = messages.map(([channel, text]) => ({
            channel,
            text,
            head: marked(`<|channel|>${channel}<|message|>`),
          }));
          const whole = pieces.map(({ head, text }) => head + text).join(marked(NEXT));
          let wanted = '';
          for (const { channel, text, head } of pieces) {
            const found = channel === 'analysis' ? null : firstStop(text, stops);
            const cutText = found === null ? text : text.slice(0, found);
            wanted += (wanted === '' ? '' : marked(NEXT)) + head + cutText;
            if (found !== null) break;
          }
          const finder = new ContentStops(new StopStrings(stops), parserOf(isMarked), { includeStop: false });
          let emitted = '';
          for (const part of cut(whole, places)) emitted += finder.push(part).emit;
          emitted += finder.end().emit;
          expect(emitted).toBe(wanted);
        },
      );
      fc.assert(property, { numRuns: draws(300) });
    },
  );

  /** Place of the stop string that ends first; null: there is none. Of those that end at one place, the longest. */
  function firstStop(text: string, stops: readonly string[]): number | null {
    for (let end = 1; end <= text.length; end++) {
      const ending = stops.filter((stop) => text.slice(0, end).endsWith(stop));
      if (ending.length > 0) return end - Math.max(...ending.map(({ length }) => length));
    }
    return null;
  }

  it('are not looked for in what a broken header is made of', () => {
    const finder = new ContentStops(new StopStrings(['Yes']), parserOf(false), { includeStop: false });
    const text = '<|channel|>final Yes.<|end|><|start|>assistant<|channel|>final<|message|>No, Yes.';
    expect(finder.push(text)).toEqual({ emit: text.slice(0, -4), matched: 0 });
  });
});

it('counts the tokens of all analysis, with those around it', () => {
  const answer = `<|channel|>analysis<|message|>ab<|end|><|start|>assistant<|channel|>analysis<|message|>c${NEXT}<|channel|>final<|message|>d`;
  const harmony = { start: 'message' as const, functions: null, isMarked: false };
  const counter = ReasoningCounter.of(toyCodec, { reasoning: null, harmony })!;
  counter.push(new TextEncoder().encode(answer));
  expect(counter.count).toBe(answer.indexOf('<|end|>', answer.indexOf('c<')) + '<|end|>'.length);
});
