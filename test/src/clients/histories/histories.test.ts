import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseWritten, writtenJson } from '../../../../base/written-json.js';
import { ChatTemplate } from '../../../../models/chat-template.js';
import { gemma4Messages } from '../../../../src/generation/prompt/gemma4-messages.js';
import { reasoningStyle } from '../../../../src/generation/reasoning/reasoning-style.js';
import { toolStyle } from '../../../../src/generation/tools/detect-format.js';
import { Gemma4Parser } from '../../../../src/generation/tools/gemma4-parser.js';
import { type Judged, judged } from '../../../models/jinja/judge.js';
import { NOW } from '../../../models/jinja/render.js';
import { templatesFolder } from '../../../support/published-templates.js';
import { draws } from '../../../support/scale.js';
import { readGolden } from '../../generation/harmony/streams.js';
import { promptText, renderedCodec } from '../../support/rendered-codec.js';
import { testPython } from '../../support/test-python.js';
import { say, type ToyServer, toyServer } from '../../support/toy-server.js';
import {
  asValues,
  type Conversation,
  type Form,
  formsOf,
  type Gemma4Reading,
  gemma4Form,
  harmonyForm,
} from './forms.js';
import { harmonyBody } from './harmony-body.js';

/** What a client sent, and the conversation that it is in transformers' words. */
interface History {
  name: string;
  path: string;
  body: Record<string, unknown> & { tools?: Conversation['tools'] };
  expected: Partial<Conversation> & {
    messages: Conversation['messages'];
    /** Variables of the template that the request asks for. */
    variables?: object;
  };
}

interface Reading {
  /** Contents as lists of parts. Default: as text. */
  parts?: boolean;
  /** False where functions, calls and results can only be text. Default true. */
  tools?: boolean;
  /** True for a template that leaves out what is in other forms than one. Default false. */
  harmony?: boolean;
  /** Of a template of Gemma 4: where it has the text of a message with calls. */
  gemma4?: Gemma4Reading;
}

/** Published templates, and how each reads a conversation. */
const TEMPLATES: Readonly<Record<string, Reading>> = {
  'llama-cpp--Qwen-Qwen3-0.6B': {},
  'llama-cpp--Qwen3-Coder': {},
  'llama-cpp--Qwen3.5-4B': { parts: true },
  'trl--gemma3': { parts: true, tools: false },
  'llama-cpp--google-gemma-2-2b-it': { tools: false },
  'llama-cpp--meta-llama-Llama-3.1-8B-Instruct': {},
  'llama-cpp--meta-llama-Llama-3.2-3B-Instruct': {},
  'llama-cpp--meta-llama-Llama-3.3-70B-Instruct': {},
  'llama-cpp--mistralai-Mistral-Nemo-Instruct-2407': {},
  'llama-cpp--Mistral-Small-3.2-24B-Instruct-2506': { parts: true },
  'llama-cpp--mistralai-Ministral-3-14B-Reasoning-2512': { parts: true },
  'unsloth--phi4_template': { tools: false },
  'llama-cpp--deepseek-ai-DeepSeek-R1-Distill-Qwen-32B': { tools: false },
  'llama-cpp--llama-cpp-deepseek-r1': {},
  'llama-cpp--openai-gpt-oss-120b': { harmony: true },
  'llama-cpp--google-gemma-4-31B-it': { parts: true, gemma4: 'text last' },
  'llama-cpp--google-gemma-4-31B-it-interleaved': { parts: true, gemma4: 'responses' },
  'axolotl--gemma4': { parts: true, gemma4: 'text last' },
  'trl--gemma4': { parts: true, gemma4: 'text last' },
  'trl--gemma4_v2': { parts: true, gemma4: 'responses' },
  'trl--gemma4_v3': { parts: true, gemma4: 'text last' },
  'trl--gemma4_v4': { parts: true, gemma4: 'text last' },
  'trl--gemma4_v5': { parts: true, gemma4: 'text first' },
  'unsloth--gemma-4': { parts: true, gemma4: 'text first' },
  'unsloth--gemma-4-edge': { parts: true, gemma4: 'text first' },
  'unsloth--gemma4_template': { parts: true, gemma4: 'as given' },
  'unsloth--gemma4_thinking_template': { parts: true, gemma4: 'as given' },
  'llama-cpp--GLM-4.6': { parts: true },
  'llama-cpp--GLM-4.7-Flash': { parts: true },
};

const { any: ANY_VALUE } = fc.letrec((tie) => ({
  any: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.string({ unit: 'grapheme', maxLength: 12 }).filter((text) => !text.includes('<|')),
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.constantFrom(true, false, null),
    fc.array(tie('any'), { maxLength: 3 }),
    fc.dictionary(fc.stringMatching(/^[A-Za-z_]\w{0,6}$/), tie('any'), { maxKeys: 3, noNullPrototype: true }),
  ),
}));
const ARGUMENTS = fc.dictionary(fc.stringMatching(/^[A-Za-z_]\w{0,6}$/), ANY_VALUE, {
  ...{ maxKeys: 4, noNullPrototype: true },
});

const folder = new URL('../../../fixtures/histories/', import.meta.url);
const HISTORIES = readdirSync(folder).map((file): History => {
  const history = parseWritten(readFileSync(new URL(file, folder), 'utf8')) as Omit<History, 'name'>;
  return { ...history, name: file.replace('.json', '') };
});
const COMMON = { documents: null, bos_token: '<bos>', eos_token: '<eos>', add_generation_prompt: true };

interface Wanted {
  form: string;
  text: string;
}

/** What Python makes of the first form that a template takes, for each history. */
function wantedOf(
  source: string,
  { parts = false, tools: knowsTools = true, harmony = false, gemma4 }: Reading,
): Wanted[] {
  const asked = HISTORIES.map(({ body, expected: { messages, tools = body.tools ?? [], variables } }) => {
    const given = harmony ? harmonyForm(messages) : gemma4 ? gemma4Form(messages, gemma4) : messages;
    const forms = [...formsOf({ messages: given, tools }, knowsTools)];
    return forms.map((form): [Form, string] => {
      const values = { messages: asValues(form.messages, parts), tools: form.tools ?? null, ...variables };
      return [form, writtenJson(values)];
    });
  });
  const conversations = [...new Set(asked.flat().map(([, json]) => json))];
  const job = `{"templates": ${JSON.stringify([source])}, "conversations": [${conversations.join()}], "variables": ${JSON.stringify(COMMON)}}`;
  const [results] = judged(job) as [Judged[]];
  const made = new Map(conversations.map((json, i) => [json, results[i]!]));
  return asked.map((forms) => {
    for (const [{ name }, json] of forms) {
      const result = made.get(json)!;
      if ('text' in result) return { form: name, text: result.text };
    }
    throw new Error('Python takes no form of the conversation.');
  });
}

/** The prompt that is computed, and whether the client is warned that functions came as text. */
async function computed(toy: ToyServer, { path, body }: History) {
  const response = await toy.post(path, writtenJson(body));
  expect(response.status, await response.text()).toBe(200);
  const { promptTokens } = toy.engine.requests.at(-1)!;
  const isToldAsText =
    response.headers.get('x-skein-warning')?.includes('a text in the conversation') ?? false;
  return { tokens: [...promptTokens], isToldAsText };
}

describe.skipIf(testPython === null || templatesFolder === null)('prompts of agents', () => {
  const { conversations, schema } = readGolden();
  it.each(conversations)(
    'are those of openai-harmony, but for what the template of gpt-oss writes otherwise: $name',
    async (one) => {
      const source = readFileSync(join(templatesFolder!, 'llama-cpp--openai-gpt-oss-120b.jinja'), 'utf8');
      const codec = renderedCodec(source, () => NOW);
      const toy = toyServer(() => say('x'), { model: { codec, maxInputLen: 10_000, maxSeqLen: 12_000 } });
      const response = await toy.post('/v1/chat/completions', harmonyBody(one, schema));
      expect(response.status, await response.text()).toBe(200);
      const wanted = one.text
        .replaceAll('// default: c\n', '// default: c,\n')
        .replace(/(# Instructions\n\n(?:(?!# Tools).)*?)<\|end\|>/s, '$1\n\n<|end|>')
        .replace(
          /(to=assistant<\|channel\|>commentary<\|message\|>)(.*?)(?=<\|end\|>)/,
          (_, head: string, result: string) => head + JSON.stringify(result),
        );
      expect(promptText(toy.engine.requests[0]!.promptTokens)).toBe(wanted);
    },
  );

  it('of gpt-oss may end within the final text or the reasoning', async () => {
    const source = readFileSync(join(templatesFolder!, 'llama-cpp--openai-gpt-oss-120b.jinja'), 'utf8');
    const codec = renderedCodec(source, () => NOW);
    const toy = toyServer(() => say('x'), { model: { codec, maxInputLen: 10_000, maxSeqLen: 12_000 } });
    for (const [last, end] of [
      [{ content: 'Ye' }, '<|channel|>final<|message|>Ye'],
      [{ content: '', reasoning: 'H m' }, '<|channel|>analysis<|message|>H m'],
    ] as const) {
      const messages = [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', ...last },
      ];
      const response = await toy.post('/v1/chat/completions', { messages, continue_final_message: true });
      expect(response.status, await response.text()).toBe(200);
      const prompt = promptText(toy.engine.requests.at(-1)!.promptTokens);
      expect(prompt.slice(prompt.indexOf('<|start|>user'))).toBe(
        `<|start|>user<|message|>Hi<|end|><|start|>assistant${end}`,
      );
    }
  });

  const gemma4 = Object.keys(TEMPLATES).filter((name) => TEMPLATES[name]!.gemma4 !== undefined);
  it.each(gemma4)('have calls with any arguments, which are read as they were made: %s', (name) => {
    const source = readFileSync(join(templatesFolder!, `${name}.jinja`), 'utf8');
    expect(toolStyle(source, 'auto')).toEqual({ format: 'gemma4', usesTemplate: true });
    expect(reasoningStyle(source, 'auto')).toBe('gemma4');
    const template = new ChatTemplate(source, { bosToken: '', eosToken: '', controlTokenTexts: [] });
    const tools = ['f', 'get_weather'].map((tool) => ({ name: tool }));
    fc.assert(
      fc.property(fc.array(ARGUMENTS, { minLength: 1, maxLength: 3 }), (list) => {
        const calls = list.map((args, i) => ({
          id: `call_${i}`,
          type: 'function',
          function: { name: tools[i % 2]!.name, arguments: JSON.stringify(args) },
        }));
        const results = calls.map(({ id, function: { name: called } }) => ({
          ...{ role: 'tool', name: called, tool_call_id: id, content: 'Done.' },
        }));
        const asked = { role: 'user', content: 'Do it.' };
        const told = [asked, { role: 'assistant', content: null, tool_calls: calls }, ...results];
        const { text } = template.render(gemma4Messages(told, source), { addGenerationPrompt: true });
        const written = text.slice(text.indexOf('<|tool_call>'), text.indexOf('<|tool_response>'));
        const found: { name: string; args: string }[] = [];
        for (const part of new Gemma4Parser(tools).push(written)) {
          if (part.type === 'call') found.push({ name: part.name, args: '' });
          else if (part.type === 'arguments') found.at(-1)!.args += part.text;
          else throw new Error(`${part.type}: ${part.text}`);
        }
        const meant = calls.map(({ function: callee }) => [callee.name, JSON.parse(callee.arguments)]);
        expect(found.map((call) => [call.name, JSON.parse(call.args)])).toEqual(meant);
      }),
      { numRuns: draws(40) },
    );
  });

  it.each(Object.entries(TEMPLATES))('are those of Python: %s', async (template, reading) => {
    const source = readFileSync(join(templatesFolder!, `${template}.jinja`), 'utf8');
    const wanted = wantedOf(source, reading);
    const codec = renderedCodec(source, () => NOW);
    const toy = toyServer(() => say('x'), { model: { codec, maxInputLen: 100_000, maxSeqLen: 120_000 } });
    for (const [i, history] of HISTORIES.entries()) {
      const { form, text } = wanted[i]!;
      const { tokens, isToldAsText } = await computed(toy, history);
      expect(promptText(tokens), `${history.name}, ${form}`).toBe(text);
      expect(isToldAsText, history.name).toBe(reading.tools !== false && form.endsWith('as text'));
      if (history.path !== '/v1/chat/completions') continue;
      const { stream: _, ...body } = history.body;
      const asked = writtenJson(body);
      const rendered = await toy.post('/v1/chat/completions/render', asked);
      expect(await rendered.json()).toMatchObject({ token_ids: tokens });
      expect(await (await toy.post('/apply-template', asked)).json()).toEqual({ prompt: text });
    }
  });
});
