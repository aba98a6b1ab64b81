import * as fc from 'fast-check';
import {
  CALL_BEGIN,
  CALL_END,
  CALL_SEPARATOR,
  CALLS_BEGIN,
  CALLS_END,
  DeepSeekParser,
} from '../../../../src/generation/tools/deepseek-parser.js';
import { Gemma4Parser } from '../../../../src/generation/tools/gemma4-parser.js';
import { HermesParser } from '../../../../src/generation/tools/hermes-parser.js';
import { Llama3Parser } from '../../../../src/generation/tools/llama3-parser.js';
import { MistralParser } from '../../../../src/generation/tools/mistral-parser.js';
import { PythonicParser } from '../../../../src/generation/tools/pythonic-parser.js';
import { Qwen3CoderParser } from '../../../../src/generation/tools/qwen3-coder-parser.js';
import type { AnswerParser } from '../../../../src/generation/tools/types.js';

export const NAMES = new Set(['f', 'get_weather', 'a.b']);
const TOOLS = [...NAMES].map((name) => ({
  name,
  parameters: {
    type: 'object',
    properties: {
      city: { type: 'string' },
      days: { type: 'integer' },
      flag: { type: 'boolean' },
      maybe: { anyOf: [{ type: 'string' }, { type: 'null' }] },
      tags: { type: 'array', items: {} },
      unit: { enum: ['c', 'f'] },
      free: {},
    },
  },
}));
/** A parser of each format, of tools named f, get_weather and a.b. */
export const PARSERS: Record<string, () => AnswerParser> = {
  hermes: () => new HermesParser(),
  llama3_json: () => new Llama3Parser(NAMES),
  pythonic: () => new PythonicParser(NAMES),
  mistral: () => new MistralParser(),
  qwen3_coder: () => new Qwen3CoderParser(TOOLS),
  deepseek_v3: () => new DeepSeekParser(),
  gemma4: () => new Gemma4Parser(TOOLS),
};

const fragment = fc.oneof(
  fc.constantFrom(
    ...[
      '<tool_call>',
      '</tool_call>',
      '<tool',
      '[TOOL_CALLS]',
      '[TOOL_',
      '[ARGS]',
      '[CALL_ID]',
      '<|python_tag|>',
    ],
    ...[
      '{"name": "f", "arguments": {"a": 1}}',
      '{"name": "f", "parameters": {',
      '"a": "x"',
      '}}',
      '{',
      '}',
      '[',
      ']',
    ],
    ...[
      '[f(a=1)]',
      'f(',
      "b='x",
      ')',
      'a=',
      ', ',
      ';',
      ' ',
      '\n',
      '"',
      '\\',
      '"arguments": "{}"',
      'null',
      '-1.5e',
      'True',
      '<function=f>',
      '<function=',
      '</function>',
      '<parameter=city>',
      '<parameter=days>\n',
      '</parameter>',
      CALLS_BEGIN,
      CALL_BEGIN,
      CALL_SEPARATOR,
      CALL_END,
      CALLS_END,
      'function',
      '\n```json\n',
    ],
    ...[
      '<|tool_call>call:f{',
      '<|tool_call>',
      '<tool_call|>',
      'call:',
      '<|"|>',
      'city:',
      'days:',
      ':',
      ',',
      '<|tool_response>',
      '<|channel>thought\n',
      '<channel|>',
    ],
  ),
  fc.string({ maxLength: 4, unit: 'grapheme' }),
);
/** Texts that are nearly calls: fragments of the formats in any order. */
export const nearlyCalls = fc.array(fragment, { maxLength: 14 }).map((parts) => parts.join(''));

/** The text cut at these places. */
export function cut(whole: string, places: readonly number[]): string[] {
  const borders = [...new Set(places.map((place) => place % (whole.length + 1)))].sort((a, b) => a - b);
  return [0, ...borders].map((start, i) => whole.slice(start, borders[i] ?? whole.length));
}
