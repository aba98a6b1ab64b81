import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  CHANNEL_MARKS,
  type ReasoningStart,
  THINK_MARKS,
} from '../../../../src/generation/reasoning/reasoning-marks.js';
import { PlainParser, ReasoningParser } from '../../../../src/generation/reasoning/reasoning-parser.js';
import { HermesParser } from '../../../../src/generation/tools/hermes-parser.js';
import { PartList } from '../../../../src/generation/tools/part-list.js';
import type { AnswerPart } from '../../../../src/generation/tools/types.js';
import { draws } from '../../../support/scale.js';

function read(
  start: ReasoningStart,
  pieces: readonly string[],
  hasTools = false,
  marks = THINK_MARKS,
): AnswerPart[] {
  const parser = new ReasoningParser({ start, marks }, hasTools ? new HermesParser() : new PlainParser());
  const parts = new PartList();
  for (const piece of pieces) parts.append(parser.push(piece));
  parts.append(parser.end());
  return parts.take();
}

const reasoning = (text: string): AnswerPart => ({ type: 'reasoning', text });
const content = (text: string): AnswerPart => ({ type: 'content', text });

describe('reasoning', () => {
  it.each<[ReasoningStart, string, AnswerPart[]]>([
    [
      'maybe',
      '<think>\nHm, 1 < 2.\n\nSo.\n</think>\n\nYes.',
      [reasoning('Hm, 1 < 2.\n\nSo.'), content('Yes.')],
    ],
    ['maybe', '<think>\n\n</think>\n\nYes.', [content('Yes.')]],
    ['maybe', 'Yes <think>x</think>', [content('Yes <think>x</think>')]],
    ['maybe', ' <thin', [content(' <thin')]],
    ['maybe', '', []],
    ['open', 'Hm.</think>Yes.', [reasoning('Hm.'), content('Yes.')]],
    ['open', '<think>Hm.</think>Yes.</think>', [reasoning('Hm.'), content('Yes.</think>')]],
    ['open', 'cut </thi', [reasoning('cut </thi')]],
    ['open', '<th', [reasoning('<th')]],
  ])('%s: %j', (start, text, parts) => {
    expect(read(start, [text])).toEqual(parts);
    expect(read(start, text.split(''))).toEqual(parts);
  });

  it.each<[ReasoningStart, string, AnswerPart[]]>([
    ['maybe', '<|channel>thought\nHm.\n<channel|>Yes.', [reasoning('Hm.'), content('Yes.')]],
    ['maybe', '<|channel>thought\n<channel|>Yes.', [content('Yes.')]],
    ['maybe', '<|channel>final\nYes.', [content('<|channel>final\nYes.')]],
    ['maybe', '<think>Hm.</think>Yes.', [content('<think>Hm.</think>Yes.')]],
    ['open', '\nHm.\n<channel|>\nYes.', [reasoning('Hm.'), content('Yes.')]],
    ['open', '<|channel>thought\nHm.<channel|>Yes.', [reasoning('Hm.'), content('Yes.')]],
    ['inside', ' so.<channel|>Yes.', [reasoning(' so.'), content('Yes.')]],
  ])('in a channel, %s: %j', (start, text, parts) => {
    expect(read(start, [text], false, CHANNEL_MARKS)).toEqual(parts);
    expect(read(start, text.split(''), false, CHANNEL_MARKS)).toEqual(parts);
  });

  it('holds no calls', () => {
    const call = '<tool_call>{"name": "f", "arguments": {}}</tool_call>';
    expect(read('maybe', [`<think>${call}</think>${call}`], true)).toEqual([
      reasoning(call),
      { type: 'call', name: 'f' },
      { type: 'arguments', text: '{}' },
    ]);
  });

  it('is the same however the text is cut', () => {
    const fragment = fc.oneof(
      fc.constantFrom('<think>', '</think>', '<thi', '</', '\n', ' ', 'x', '<tool_call>'),
      fc.string({ maxLength: 3 }),
    );
    fc.assert(
      fc.property(
        fc.constantFrom<ReasoningStart>('open', 'maybe'),
        fc.array(fragment, { maxLength: 10 }),
        (start, pieces) => {
          const whole = read(start, [pieces.join('')], true);
          expect(read(start, pieces, true)).toEqual(whole);
          expect(read(start, pieces.join('').split(''), true)).toEqual(whole);
        },
      ),
      { numRuns: draws(200) },
    );
  });
});
