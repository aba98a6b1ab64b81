import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import type { GrammarMatcher } from '../../../engine/guided/grammar-matcher.js';
import { specialBytes } from '../../../engine/guided/special-bytes.js';
import { hasParts } from '../../../src/generation/chat-options.js';
import { type ChatAsk, type ChatPlan, planChat, stopParser } from '../../../src/generation/chat-plan.js';
import { toldPrompt } from '../../../src/generation/prompt/chat-prompt.js';
import { reasoningStart, reasoningStyle } from '../../../src/generation/reasoning/reasoning-style.js';
import type { TextModel } from '../../../src/generation/text-model.js';
import type { FunctionTool, ToolFormatName } from '../../../src/generation/tools/types.js';
import { Random } from '../../../tools/soak/random.js';
import { matcherOf, nextOf } from '../../engine/guided/follow.js';
import { draws } from '../../support/scale.js';
import { FakeEngine } from '../support/fake-engine.js';
import { templatedCodec } from '../support/toy-codec.js';

const tools: FunctionTool[] = [
  {
    name: 'weather',
    parameters: {
      type: 'object',
      properties: {
        city: { type: 'string', maxLength: 4 },
        days: { type: 'integer', minimum: 1, maximum: 9 },
        unit: { enum: ['c', 'f', null] },
      },
      required: ['city', 'unit'],
    },
    strict: true,
  },
  {
    name: 'find',
    parameters: {
      type: 'object',
      properties: {
        tags: { type: 'array', items: { type: ['boolean', 'number'] }, maxItems: 2 },
        where: { type: 'object', properties: { x: { type: 'string', maxLength: 2 } }, required: ['x'] },
      },
      required: ['where'],
    },
    strict: true,
  },
  { name: 'now', strict: true },
];
const ajv = new Ajv({ allowUnionTypes: true });
const CHECKS = new Map(
  tools.map(({ name, parameters }) => [
    name,
    ajv.compile(parameters ?? { type: 'object', additionalProperties: false }),
  ]),
);

const HERMES = '{{ tools }}<tool_call>';
/** Template, special tokens. */
const MODELS: Record<string, [ToolFormatName, string, string[]]> = {
  hermes: ['hermes', HERMES, []],
  'hermes with special tokens': ['hermes', HERMES, ['<tool_call>', '</tool_call>']],
  llama3_json: [
    'llama3_json',
    '{{ tools }}<|start_header_id|>{"name": x, "parameters": y}',
    ['<|python_tag|>'],
  ],
  pythonic: ['pythonic', '{{ tools }}[func_name1(params)]', []],
  'mistral, a list': ['mistral', '{{ tools }}[TOOL_CALLS] [', ['[TOOL_CALLS]']],
  'mistral, names': ['mistral', '{{ tools }}[TOOL_CALLS][ARGS]', ['[TOOL_CALLS]', '[ARGS]']],
  'mistral, names and ids': [
    'mistral',
    '{{ tools }}[TOOL_CALLS][CALL_ID][ARGS]',
    ['[TOOL_CALLS]', '[ARGS]', '[CALL_ID]'],
  ],
  'mistral, as text': ['mistral', '{{ tools }}[TOOL_CALLS] [', []],
  gemma4: ['gemma4', '{{ tools }}<|tool_call>call:', []],
  'gemma4 with special tokens': [
    'gemma4',
    '{{ tools }}<|tool_call>call:',
    ['<|tool_call>', '<tool_call|>', '<|"|>'],
  ],
  'a template without tools': ['hermes', '{{ messages }}', []],
  'a template whose calls nobody knows': ['hermes', '{{ tools }}<function_calls>', []],
};

function modelOf(template: string, specialTexts: readonly string[]): TextModel {
  const codec = { ...templatedCodec(template), specialTexts };
  return {
    codec,
    engine: new FakeEngine(() => []),
    vocabSize: 258,
    maxInputLen: 1e6,
    maxSeqLen: 1e6,
    endTokens: [],
  };
}

describe('the parser for stop strings of a chat that is not taken apart', () => {
  const prompt = [...Buffer.from('<assistant>')];
  const read = (text: string, template: string, before = prompt) => {
    const { codec } = modelOf(template, []);
    const reasoning = reasoningStart(reasoningStyle(template, 'auto'), codec, before);
    const parser = stopParser(reasoning)?.();
    return parser === undefined ? null : [...parser.push(text), ...parser.end()];
  };
  const parts = [
    { type: 'reasoning', text: 'a' },
    { type: 'content', text: 'b' },
  ];

  it('knows the reasoning by the template, also where the prompt has opened it', () => {
    expect(read('<think>a</think>b', '{{ messages }}</think>')).toEqual(parts);
    expect(read('a</think>b', '{{ messages }}</think>', [...Buffer.from('<think>\n')])).toEqual(parts);
  });

  it('is not asked for where marks of reasoning do not show, or a guide is for the answer alone', () => {
    const messages = [{ role: 'user', content: 'hi' }];
    const special = modelOf('{{ messages }}', ['</think>']);
    const plain = modelOf('{{ messages }}', []);
    expect(hasParts({ messages, stop: 'x' }, special)).toBe(true);
    expect(hasParts({ messages, stop: 'x' }, plain)).toBe(false);
    expect(hasParts({ messages }, special)).toBe(false);
    expect(hasParts({ messages, guided: { json: true } }, plain)).toBe(true);
    expect(hasParts({ guided: { json: true }, stop: 'x' }, special)).toBe(false);
    // Messages in channels would else run into each other.
    const harmony = modelOf('<|start|><|channel|><|message|>{{ messages }}', []);
    expect(hasParts({ messages }, harmony)).toBe(true);
    expect(hasParts({}, harmony)).toBe(false);
  });

  it('is none where there is no reasoning', () => {
    expect(read('<think>a</think>b', '{{ messages }}')).toBeNull();
  });
});

/** Walks at random wherever the guide lets it, towards an end; null where it takes too long. */
function randomText(matcher: GrammarMatcher, random: Random, begun: readonly number[]): string | null {
  const bytes = [...begun];
  for (let places = matcher.follow(matcher.start, Uint8Array.from(begun))!; bytes.length < 1500; ) {
    const next = nextOf(matcher, places);
    const fitting = [...next.keys()].filter((byte) => next[byte] !== null);
    if (places.isAccepting && (fitting.length === 0 || random.chance(0.2))) return asText(bytes);
    const good = [...Buffer.from('"]})<{[f'), 0xff].filter((byte) => next[byte] !== null);
    const byte = random.pick(good.length > 0 && random.chance(0.6) ? good : fitting);
    bytes.push(byte);
    places = next[byte]!;
  }
  return null;
}

/** Text in which a call begins, for formats in which calling is the model's choice. */
function begunCall(format: ToolFormatName, specials: readonly string[]): number[] {
  if (format === 'llama3_json') return [...Buffer.from('{')];
  if (format === 'pythonic') return [...Buffer.from('[')];
  const marker = { hermes: '<tool_call>', gemma4: '<|tool_call>' }[format as string] ?? '[TOOL_CALLS]';
  const bytes = specials.includes(marker) ? specialBytes(marker) : Buffer.from(marker);
  return [...Buffer.from('Well: '), ...bytes];
}

/** Special tokens have bytes of their own around their text. */
function asText(bytes: readonly number[]): string {
  const text = bytes.filter((byte) => byte !== 0xff && byte !== 0xfe);
  return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(text));
}

function read(plan: ChatPlan, text: string) {
  const parser = plan.createParser!();
  const calls: { name: string; args: string }[] = [];
  let content = '';
  let reasoning = '';
  for (const part of [...text.split('').flatMap((unit) => parser.push(unit)), ...parser.end()]) {
    if (part.type === 'call') calls.push({ name: part.name, args: '' });
    else if (part.type === 'arguments') calls.at(-1)!.args += part.text;
    else if (part.type === 'content') content += part.text;
    else reasoning += part.text;
  }
  return { calls, content, reasoning };
}

function checkCalls(calls: readonly { name: string; args: string }[], text: string): void {
  for (const { name, args } of calls) {
    const check = CHECKS.get(name)!;
    expect(check(JSON.parse(args)), `${text}: ${args}: ${ajv.errorsText(check.errors)}`).toBe(true);
  }
}

const messages = [{ role: 'user', content: 'x' }];
const ASKS: Record<string, Partial<ChatAsk>> = {
  required: { toolChoice: { mode: 'required' } },
  'required, one': { toolChoice: { mode: 'required' }, parallelToolCalls: false },
  named: { toolChoice: { mode: 'named', name: 'find' } },
  'auto and strict': {},
  'auto, one at most': { parallelToolCalls: false },
};

describe.each(Object.entries(MODELS))('calls of %s', (_, [format, template, specials]) => {
  it.each(Object.entries(ASKS))(
    '%s: whatever is drawn is read as calls that follow their schemas',
    async (name, ask) => {
      const plan = await planChat(modelOf(template, specials), { messages, tools, ...ask });
      expect(plan.guide!.type).toBe('structural_tag');
      const matcher = matcherOf('structural_tag', JSON.parse(plan.guide!.guide));
      const random = new Random(name.length);
      const begun = ask.toolChoice === undefined ? begunCall(format, specials) : [];
      let numCalls = 0;
      for (let k = 0; k < draws(8); k++) {
        const text = randomText(matcher, random, begun);
        if (text === null) continue;
        const { calls, content } = read(plan, text);
        numCalls += calls.length;
        checkCalls(calls, text);
        if (ask.toolChoice !== undefined) {
          expect(calls.length, text).toBeGreaterThan(0);
          expect(content, text).toBe('');
        }
        if (name === 'named') expect(calls.map((call) => call.name)).toEqual(['find']);
        if (name.includes('one')) expect(calls.length).toBeLessThanOrEqual(1);
      }
      expect(numCalls).toBeGreaterThan(3);
      expect(new Set(plan.shownTokens)).toEqual(new Set(specials));
    },
  );

  it('come behind reasoning', async () => {
    const plan = await planChat(modelOf(`${template}</think>`, specials), {
      messages,
      tools,
      toolChoice: { mode: 'required' },
    });
    const matcher = matcherOf('structural_tag', JSON.parse(plan.guide!.guide));
    const begun = Buffer.from('<think>\nA <tool_call> or [TOOL_CALLS]?\n</think>\n\n');
    const places = matcher.follow(matcher.start, begun);
    expect(places).not.toBeNull();
    expect(places!.isAccepting).toBe(false);
    expect(matcher.follow(places!, Buffer.from('No.'))).toBeNull();
    expect(read(plan, begun.toString()).reasoning).toBe('A <tool_call> or [TOOL_CALLS]?');
  });
});

it('thoughts of Gemma 4 precede calls and a form of the answer, as special tokens or as texts', async () => {
  const template = '{{ tools }}<|tool_call>call:<|channel><channel|>';
  const marks = ['<|channel>', '<channel|>', '<|tool_call>', '<tool_call|>', '<|"|>'];
  const ask: ChatAsk = { messages, tools: [tools[2]!], toolChoice: { mode: 'required' } };
  for (const specials of [marks, []]) {
    const bytes = (text: string) =>
      text.split(/(<\|\w+>|<\w+\|>)/).flatMap((part) => {
        return specials.includes(part) ? [...specialBytes(part)] : [...Buffer.from(part)];
      });
    const plan = await planChat(modelOf(template, specials), ask);
    const matcher = matcherOf('structural_tag', JSON.parse(plan.guide!.guide));
    const accepts = (text: string) =>
      matcher.follow(matcher.start, Uint8Array.from(bytes(text)))?.isAccepting ?? null;
    const [thought, call] = ['<|channel>thought\nHm <b>?\n<channel|>', '<|tool_call>call:now{}<tool_call|>'];
    expect([call, thought + call, thought + call + call].map(accepts)).toEqual([true, true, true]);
    expect([thought, `${thought}No.`, `${call}No.`].map(accepts)).toEqual([false, null, null]);
    expect(read(plan, thought + call)).toEqual({
      ...{ calls: [{ name: 'now', args: '{}' }], content: '', reasoning: 'Hm <b>?' },
    });
    const formed = await planChat(modelOf(template, specials), {
      messages,
      guide: { type: 'regex', guide: '4+' },
    });
    const form = matcherOf('structural_tag', JSON.parse(formed.guide!.guide));
    for (const [text, fits] of [
      ['44', true],
      [`${thought}4`, true],
      [`${thought}x`, false],
    ] as const)
      expect(form.follow(form.start, Uint8Array.from(bytes(text)))?.isAccepting ?? false).toBe(fits);
  }
});

describe('a form of the answer', () => {
  const guide = { type: 'regex' as const, guide: '[0-9]+' };
  const model = modelOf('{{ tools }}<tool_call></think>', []);

  it('holds for what follows reasoning', async () => {
    const plan = await planChat(model, { messages, guide });
    const matcher = matcherOf('structural_tag', JSON.parse(plan.guide!.guide));
    for (const [text, fits] of [
      ['<think>a 1 b</think>\n\n42', true],
      ['42', true],
      ['<think>a</think>x', false],
      ['<think>42', true],
    ] as const) {
      const places = matcher.follow(matcher.start, Buffer.from(text));
      expect(places !== null, text).toBe(fits);
      expect(places?.isAccepting ?? false, text).toBe(fits && !text.endsWith('<think>42'));
    }
  });

  it('is one way to answer beside calls', async () => {
    const plan = await planChat(modelOf(HERMES, []), { messages, tools: [tools[2]!], guide });
    const matcher = matcherOf('structural_tag', JSON.parse(plan.guide!.guide));
    for (const text of ['42', '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>']) {
      expect(matcher.follow(matcher.start, Buffer.from(text))?.isAccepting, text).toBe(true);
    }
    expect(matcher.follow(matcher.start, Buffer.from('Hi'))).toBeNull();
  });
});

describe("a model's own special tokens", () => {
  it('are nothing that a text of a guide may hold', async () => {
    const plan = await planChat(modelOf('{{ tools }}[TOOL_CALLS] [', ['[TOOL_CALLS]']), {
      messages,
      tools,
      toolChoice: { mode: 'required' },
    });
    const matcher = matcherOf('structural_tag', JSON.parse(plan.guide!.guide));
    // The characters of the marker are not the marker.
    expect(matcher.follow(matcher.start, Buffer.from('['))).toBeNull();
    expect(nextOf(matcher, matcher.start).findIndex((place) => place !== null)).toBe(0xff);
  });
});

describe('a prompt that is only counted', () => {
  it.each([
    [8, 64, 2 ** 18 / 8],
    [8, 100_000, 100_000],
    [undefined, 64, 2 ** 18 / 256],
  ])(
    'with %s characters a token and a context of %i has a text of %i tokens at most',
    async (unitsPerToken, maxInputLen, most) => {
      let limit: number | undefined;
      const codec = {
        ...templatedCodec('{{ messages }}'),
        ...(unitsPerToken === undefined ? {} : { unitsPerToken }),
        encodeChat: (_: unknown, { maxTokens }: { maxTokens?: number | undefined }) => {
          limit = maxTokens;
          return Int32Array.of(1, 2, 3) as unknown as number[];
        },
      };
      const model = { codec, maxInputLen, maxSeqLen: maxInputLen } as unknown as TextModel;
      const told = await toldPrompt(model, { messages: [{ role: 'user', content: 'a' }] } as ChatAsk);
      expect(told.promptTokens).toHaveLength(3);
      expect(limit).toBe(most);
    },
  );
});
