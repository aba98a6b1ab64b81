import { describe, expect, it } from 'vitest';
import type { GrammarMatcher } from '../../../../engine/guided/grammar-matcher.js';
import { specialBytes } from '../../../../engine/guided/special-bytes.js';
import { type ChatAsk, type ChatPlan, planChat } from '../../../../src/generation/chat-plan.js';
import { HARMONY_TOKENS, type HarmonyToken, markOf } from '../../../../src/generation/harmony/tokens.js';
import type { TextModel } from '../../../../src/generation/text-model.js';
import type { FunctionTool } from '../../../../src/generation/tools/types.js';
import { Random } from '../../../../tools/soak/random.js';
import { matcherOf, nextOf } from '../../../engine/guided/follow.js';
import { draws } from '../../../support/scale.js';
import { FakeEngine } from '../../support/fake-engine.js';
import { templatedCodec } from '../../support/toy-codec.js';

const TEMPLATE =
  '{{ tools }}{{ messages }}{{ reasoning_effort }}{{ builtin_tools }}<|start|><|channel|><|message|>';
const messages = [{ role: 'user', content: 'x' }];
const city = { type: 'object', properties: { city: { enum: ['Oslo', 'Bern'] } }, required: ['city'] };
const tools: FunctionTool[] = [
  { name: 'weather', parameters: city, strict: true },
  { name: 'now', strict: true },
];
const guide = { type: 'regex' as const, guide: '[0-9]+' };

function modelOf(specialTexts: readonly string[] = HARMONY_TOKENS, template = TEMPLATE): TextModel {
  return {
    codec: { ...templatedCodec(template), specialTexts },
    engine: new FakeEngine(() => []),
    vocabSize: 258,
    maxInputLen: 1e6,
    maxSeqLen: 1e6,
    endTokens: [],
  };
}

/** Bytes of an answer, with its special tokens as such or as text. */
function bytesOf(answer: string, isSpecial = true): Uint8Array {
  const parts = answer.split(/(<\|\w+\|>)/);
  return Buffer.concat(
    parts.map((part) => (isSpecial && part.startsWith('<|') ? specialBytes(part) : Buffer.from(part))),
  );
}

/** The parts of an answer; special tokens in it are such. */
function read(plan: ChatPlan, answer: string): [string, string][] {
  const parser = plan.createParser!();
  const text = answer.replaceAll(/<\|\w+\|>/g, (token) => markOf(token as HarmonyToken));
  const parts = [...parser.push(text), ...parser.end()];
  return parts.map((part) => [part.type, part.type === 'call' ? part.name : part.text]);
}

/** How far an answer fits a guide: 'whole', 'begun' or 'no'. */
function fitOf(plan: ChatPlan, answer: string, isSpecial = true): string {
  const matcher = matcherOf('structural_tag', JSON.parse(plan.guide!.guide));
  const places = matcher.follow(matcher.start, bytesOf(answer, isSpecial));
  return places === null ? 'no' : places.isAccepting ? 'whole' : 'begun';
}

const NEXT = '<|end|><|start|>assistant';
const THOUGHT = `<|channel|>analysis<|message|>Hm, <call> {}.${NEXT}`;
const OSLO = '<|message|>{"city": "Oslo"}';
const CALL = `<|channel|>commentary to=functions.weather <|constrain|>json${OSLO}`;
const FINAL = '<|channel|>final<|message|>';

const CASES: Record<string, [Partial<ChatAsk>, Record<string, string>]> = {
  'a required call': [
    { tools, toolChoice: { mode: 'required' } },
    {
      [CALL]: 'whole',
      [THOUGHT + CALL]: 'whole',
      [THOUGHT + THOUGHT + CALL]: 'whole',
      [`${THOUGHT} to=functions.weather<|channel|>commentary json${OSLO}`]: 'whole',
      [`${THOUGHT} to=functions.weather<|channel|>commentary <|constrain|>json${OSLO}`]: 'whole',
      '<|channel|>commentary to=functions.now <|constrain|>json<|message|>{}': 'whole',
      '<|channel|>commentary to=functions.find': 'no',
      '<|channel|>commentary to=python': 'no',
      [FINAL]: 'no',
      Hi: 'no',
      [CALL.replace('Oslo', 'Rome')]: 'no',
      '<|channel|>commentary<|message|>': 'no',
      [CALL + NEXT]: 'no',
    },
  ],
  'a named call': [
    { tools, toolChoice: { mode: 'named', name: 'now' } },
    {
      [THOUGHT]: 'begun',
      '<|channel|>commentary to=functions.now <|constrain|>json<|message|>{}': 'whole',
      [CALL]: 'no',
    },
  ],
  'a strict function': [
    { tools },
    {
      [CALL]: 'whole',
      [THOUGHT + CALL]: 'whole',
      [`${THOUGHT}<|channel|>commentary<|message|>I look.${NEXT}${CALL}`]: 'whole',
      [`${THOUGHT}${FINAL}Anything {`]: 'whole',
      [CALL.replace('Oslo', 'Rome')]: 'no',
    },
  ],
  'a form': [
    { guide },
    {
      [`${FINAL}42`]: 'whole',
      [`${THOUGHT}${FINAL}42`]: 'whole',
      [`${THOUGHT}${FINAL}x`]: 'no',
      '42': 'no',
      [CALL]: 'no',
    },
  ],
  'a form beside functions': [
    { guide, tools },
    { [`${FINAL}42`]: 'whole', [THOUGHT + CALL]: 'whole', [`${FINAL}x`]: 'no' },
  ],
  'a form where the final text has begun': [
    { guide, continueFinalMessage: true, messages: [...messages, { role: 'assistant', content: '4' }] },
    { '42': 'whole', [FINAL]: 'no', x: 'no' },
  ],
  'a form where the reasoning has begun': [
    {
      guide,
      continueFinalMessage: true,
      messages: [...messages, { role: 'assistant', content: '', reasoning_content: 'H' }],
    },
    { [`m.${NEXT}${FINAL}42`]: 'whole', '42': 'begun', [`m.${NEXT}x`]: 'no' },
  ],
  'a required call where the final text has begun': [
    {
      tools,
      toolChoice: { mode: 'required' },
      continueFinalMessage: true,
      messages: [...messages, { role: 'assistant', content: '4' }],
    },
    { [`2${NEXT}${CALL}`]: 'whole', [`2${NEXT}${FINAL}`]: 'no' },
  ],
};

describe.each(Object.entries(CASES))('the guide of %s', (_, [ask, answers]) => {
  it.each(Object.entries(answers))('%s: %s', async (answer, wanted) => {
    const plan = await planChat(modelOf(), { messages, ...ask });
    expect(fitOf(plan, answer)).toBe(wanted);
    // A vocabulary without the tokens spells them.
    const spelled = await planChat(modelOf([]), { messages, ...ask });
    expect(fitOf(spelled, answer, false)).toBe(wanted);
  });
});

describe('whatever is drawn', () => {
  /** Walks at random wherever the guide lets it; null where it takes too long. */
  function walk(matcher: GrammarMatcher, random: Random): string | null {
    const bytes: number[] = [];
    for (let places = matcher.start; bytes.length < 1500; ) {
      const next = nextOf(matcher, places);
      const fitting = [...next.keys()].filter((byte) => next[byte] !== null);
      if (places.isAccepting && (fitting.length === 0 || random.chance(0.2))) {
        return Buffer.from(bytes.filter((byte) => byte < 0xfe)).toString();
      }
      const good = fitting.filter((byte) => byte === 0xff || '"]}'.includes(String.fromCharCode(byte)));
      const byte = random.pick(good.length > 0 && random.chance(0.6) ? good : fitting);
      bytes.push(byte);
      places = next[byte]!;
    }
    return null;
  }

  it.each([
    ['required', { toolChoice: { mode: 'required' } }],
    ['named', { toolChoice: { mode: 'named', name: 'weather' } }],
  ] as const)('is read as a call that follows its schema: %s', async (_name, ask) => {
    const plan = await planChat(modelOf(), { messages, tools, ...ask });
    const matcher = matcherOf('structural_tag', JSON.parse(plan.guide!.guide));
    const random = new Random(3);
    let count = 0;
    for (let k = 0; k < draws(12); k++) {
      const answer = walk(matcher, random);
      if (answer === null) continue;
      count++;
      const parts = read(plan, answer).filter(([type]) => type !== 'reasoning');
      expect(
        parts.map(([type]) => type),
        answer,
      ).toEqual(['call', 'arguments']);
      const { city } = JSON.parse(parts[1]![1]) as { city?: string };
      expect(parts[0]![1] === 'now' ? [undefined] : ['Oslo', 'Bern']).toContain(city);
    }
    expect(count).toBeGreaterThan(3);
  });

  it('is shown to the parser with marks, where the tokens are special', async () => {
    const plan = await planChat(modelOf(), { messages, tools, toolChoice: { mode: 'required' } });
    expect(plan.shownTokens).toContainEqual({ token: '<|end|>', mark: markOf('<|end|>') });
    expect(read(plan, `${THOUGHT}${CALL}`)).toEqual([
      ['reasoning', 'Hm, <call> {}.'],
      ['call', 'weather'],
      ['arguments', '{"city": "Oslo"}'],
    ]);
  });
});

it('calls are found in the text for the user too, where the template knows no functions and a text has told of them', async () => {
  const model = modelOf(HARMONY_TOKENS, '{{ messages }}<|start|><|channel|><|message|>');
  const plan = await planChat(model, { messages, tools: [{ name: 'now' }] });
  const call = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>';
  const called = [
    ['call', 'now'],
    ['arguments', '{}'],
  ];
  expect(read(plan, `${THOUGHT}${FINAL}Well. ${call}`)).toEqual([
    ['reasoning', 'Hm, <call> {}.'],
    ['content', 'Well.'],
    ...called,
  ]);
  expect(read(plan, '<|channel|>commentary to=functions.now json<|message|>{}')).toEqual(called);
  expect(read(plan, `${THOUGHT}${FINAL}<tool_`)).toEqual([
    ['reasoning', 'Hm, <call> {}.'],
    ['content', '<tool_'],
  ]);
});

describe('efforts', () => {
  const effortOf = async (ask: Partial<ChatAsk>) => {
    let variables: Readonly<Record<string, unknown>> | undefined;
    const model = modelOf();
    model.codec.encodeChat = (_, options) => {
      variables = options.variables;
      return [1];
    };
    await planChat(model, { messages, ...ask });
    return variables;
  };

  it.each([
    ['low', 'low'],
    ['minimal', 'low'],
    ['xhigh', 'high'],
  ])('%s is %s', async (reasoningEffort, wanted) => {
    expect(await effortOf({ reasoningEffort })).toEqual({ reasoning_effort: wanted });
  });

  it.each(['none', 'thorough'])('%s is refused', async (reasoningEffort) => {
    await expect(effortOf({ reasoningEffort })).rejects.toThrow(
      /reasoning_effort is refused: this model always reasons/,
    );
  });

  it('tools that nothing runs are refused', async () => {
    await expect(effortOf({ variables: { builtin_tools: ['python'] } })).rejects.toThrow(
      /browser and python are not run/,
    );
  });
});
