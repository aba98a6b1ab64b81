import { describe, expect, it } from 'vitest';
import type { Guide } from '../../../callbacks/guide.js';
import { type ChatAsk, planChat } from '../../../src/generation/chat-plan.js';
import { checkGuideHere } from '../../../src/generation/guide-checks.js';
import type { TextModel } from '../../../src/generation/text-model.js';
import type { ToolFormatName } from '../../../src/generation/tools/types.js';
import { FakeEngine } from '../support/fake-engine.js';
import { templatedCodec } from '../support/toy-codec.js';

/** A model that counts the guides that are checked. */
function model(toolCallParser: ToolFormatName = 'hermes') {
  const checked: Guide[] = [];
  const codec = {
    ...templatedCodec('{{ tools }}<tool_call>'),
    specialTexts: [],
    checkGuide: async (guide: Guide) => {
      checked.push(guide);
      return checkGuideHere(guide);
    },
  };
  const lengths = { vocabSize: 258, maxInputLen: 1e6, maxSeqLen: 1e6 };
  const made: TextModel = {
    codec,
    engine: new FakeEngine(() => []),
    ...lengths,
    endTokens: [],
    toolCallParser,
  };
  return { made, checked };
}

const tool = (name: string, strict: boolean, parameters?: object) => ({
  name,
  strict,
  parameters: parameters as never,
});
const schema = (field: string) => ({
  type: 'object',
  properties: { [field]: { type: 'string' } },
  required: [field],
});
const TOOLS = [tool('find', true, schema('name')), tool('now', false), tool('add', true, schema('n'))];
const ASK: ChatAsk = { messages: [{ role: 'user', content: 'x' }], tools: TOOLS };
const JSON_GUIDE: Guide = { type: 'json_schema', guide: '{"type":"object"}' };

/** Requests whose guides differ, each from the first in one thing. */
const ASKS: readonly Partial<ChatAsk>[] = [
  {},
  { toolChoice: { mode: 'required' } },
  { toolChoice: { mode: 'required' }, parallelToolCalls: false },
  { toolChoice: { mode: 'named', name: 'find' } },
  { toolChoice: { mode: 'named', name: 'add' } },
  { parallelToolCalls: false },
  { guide: JSON_GUIDE },
  { guide: { type: 'regex', guide: 'a+' } },
  { tools: [TOOLS[1]!, TOOLS[0]!, TOOLS[2]!] },
  { tools: TOOLS.map((one) => ({ ...one, strict: true })) },
  {
    tools: [
      tool('find', true, { ...schema('name'), properties: { name: { type: 'integer' } } }),
      ...TOOLS.slice(1),
    ],
  },
  { tools: [tool('look', true, schema('name')), ...TOOLS.slice(1)] },
  { tools: TOOLS.slice(0, 2) },
  { template: '{{ tools }}[TOOL_CALLS] [' },
  { template: '<think>{{ tools }}<tool_call></think>' },
];

const guidesOf = async (model: TextModel) => {
  const guides: (Guide | undefined)[] = [];
  for (const ask of ASKS) guides.push((await planChat(model, { ...ASK, ...ask })).guide);
  return guides;
};

describe('the guide of a chat with functions', () => {
  it.each<ToolFormatName>(['hermes', 'qwen3_coder', 'pythonic', 'mistral', 'gemma4'])(
    'is that of a model that never saw them, in the format %s',
    async (format) => {
      const { made } = model(format);
      const guides = await guidesOf(made);
      for (const [i, ask] of ASKS.entries()) {
        const { guide } = await planChat(model(format).made, structuredClone({ ...ASK, ...ask }));
        expect(guides[i]).toEqual(guide);
      }
      expect(await guidesOf(made)).toEqual(guides);
      expect(new Set(guides.map((guide) => JSON.stringify(guide))).size).toBeGreaterThan(10);
    },
  );

  it('is neither made nor checked again', async () => {
    const { made, checked } = model();
    const guides = await guidesOf(made);
    expect(checked.length).toBeGreaterThan(ASKS.length);
    checked.length = 0;
    expect(await guidesOf(made)).toEqual(guides);
    expect(checked).toEqual([]);
  });

  it('is made again for other functions', async () => {
    const { made, checked } = model();
    for (let i = 0; i < 70; i++) await planChat(made, { ...ASK, tools: [tool(`f${i}`, true)] });
    checked.length = 0;
    await planChat(made, { ...ASK, tools: [tool('f69', true)] });
    expect(checked).toEqual([]);
    // Sixty-four are remembered.
    await planChat(made, { ...ASK, tools: [tool('f0', true)] });
    expect(checked.length).toBeGreaterThan(0);
  });

  it.each<ToolFormatName>([
    'hermes',
    'qwen3_coder',
    'pythonic',
    'mistral',
    'llama3_json',
    'deepseek_v3',
    'gemma4',
  ])(
    'leaves out what functions without strict ask for beyond it, and says so, in the format %s',
    async (format) => {
      const { made } = model(format);
      const list = { type: 'array', items: { type: 'integer' }, uniqueItems: true };
      const tools = [
        tool('find', false, schema('name')),
        tool('sort', false, { type: 'object', properties: { list } }),
        tool('odd', false, { type: 'objekt' }),
      ];
      const ask: ChatAsk = { ...ASK, tools, toolChoice: { mode: 'required' } };
      const plan = await planChat(made, ask);
      expect(plan.warnings).toEqual([
        expect.stringMatching(
          /^The parameters of the function 'sort' are not followed at .*list: uniqueItems is/,
        ),
        expect.stringMatching(/^The parameters of the function 'odd' are not followed: .*type is "objekt"/),
      ]);
      expect(checkGuideHere(plan.guide!)).toHaveLength(1);
      expect(await planChat(made, ask)).toEqual({ ...plan, createParser: expect.any(Function) });
      const strict = tools.map((one) => ({ ...one, strict: true }));
      await expect(planChat(made, { ...ask, tools: strict })).rejects.toThrow(
        /tools\[1\]\.function\.parameters.*properties\/list: uniqueItems is/,
      );
    },
  );

  it('keeps the other parameters of a function whose arguments are tags', async () => {
    const { made } = model('qwen3_coder');
    const parameters = {
      type: 'object',
      properties: { day: { type: 'string', format: 'date' }, n: { type: 'integer' } },
    };
    const plan = await planChat(made, {
      ...ASK,
      tools: [tool('f', false, parameters)],
      toolChoice: { mode: 'required' },
    });
    expect(plan.warnings).toEqual([expect.stringContaining("format of the parameter 'day'")]);
    expect(plan.guide!.guide).toContain('<parameter=n>');
  });

  it('is refused as often as it is asked for', async () => {
    const { made } = model();
    const tools = [tool('a', true), tool('b', true, { type: 'nothing' })];
    for (let i = 0; i < 3; i++) {
      await expect(planChat(made, { ...ASK, tools })).rejects.toThrow(/tools\[1\]\.function\.parameters/);
    }
  });
});
