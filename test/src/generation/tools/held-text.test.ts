import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CALL_BEGIN, CALL_END, CALL_SEPARATOR } from '../../../../src/generation/tools/deepseek-parser.js';
import { draws } from '../../../support/scale.js';
import { nearlyCalls, PARSERS } from './nearly-calls.js';

/** Units held back after a text. */
function heldBehind(format: string, text: string): number {
  const parser = PARSERS[format]!();
  parser.push(text);
  return parser.held;
}

describe('text that is held back', () => {
  it.each(Object.keys(PARSERS))('%s: is all that the end of the text may make content', (format) => {
    fc.assert(
      fc.property(nearlyCalls, (text) => {
        const parser = PARSERS[format]!();
        parser.push(text);
        const { held } = parser;
        const content = parser.end().filter(({ type }) => type === 'content');
        const length = content.reduce((sum, part) => sum + ('text' in part ? part.text.length : 0), 0);
        expect(length).toBeLessThanOrEqual(held);
      }),
      { numRuns: draws(100) },
    );
  });

  it.each<[string, string, number]>([
    ['hermes', 'x ', 1],
    ['hermes', 'x <tool', 6],
    ['hermes', '<tool_call>{"name": "f', 22],
    ['hermes', '<tool_call>{"name": "f", "arguments": {"a', 0],
    ['hermes', '<tool_call>{"name": "f"}</tool_call>', 0],
    ['hermes', '<tool_call>{"name": "f"}</tool', 6],
    ['hermes', '<tool_call>{"name": "f", "arguments": {"a": x', 0],
    ['deepseek_v3', `${CALL_BEGIN}f${CALL_SEPARATOR}{"`, 0],
    ['deepseek_v3', `${CALL_BEGIN}f`, CALL_BEGIN.length + 1],
    ['deepseek_v3', `${CALL_BEGIN}f${CALL_SEPARATOR}{"a": x`, 0],
    ['deepseek_v3', `${CALL_BEGIN}f${CALL_SEPARATOR}{}${CALL_END}\n${CALL_BEGIN}`, CALL_BEGIN.length + 1],
    ['mistral', '[TOOL_CALLS]f{"a": ', 0],
    ['gemma4', '<|tool_call>call:f{a:1', 0],
    ['gemma4', '<|tool_call>call:f', 18],
    ['qwen3_coder', '<tool_call>\n<function=f', 23],
    ['qwen3_coder', '<tool_call>\n<function=f>', 0],
    ['llama3_json', '{"name": "f", ', 14],
    ['pythonic', '[f(a', 4],
    ['pythonic', '[f(a=1', 0],
  ])('%s: of %s are held %i units', (format, text, held) => {
    expect(heldBehind(format, text)).toBe(held);
  });
});
