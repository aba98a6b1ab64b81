import { join } from 'node:path';
import OpenAI from 'openai';
import type { ChatCompletionMessageParam, ChatCompletionTool } from 'openai/resources/chat/completions';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as z from 'zod';
// Its threads run compiled files (npm run build:ts).
import { ModelCodec } from '../../../../dist/src/generation/model-codec.js';
import { toolStyle } from '../../../../src/generation/tools/detect-format.js';
import { temporaryFolder } from '../../../support/fresh-folders.js';
import { draws } from '../../../support/scale.js';
import { type SkeinProcess, startFakeServer } from '../../support/skein-process.js';
import { listen, type ToyServer, toyServer } from '../../support/toy-server.js';
import { type Call, TOOL_FORMATS, type ToolFormat } from './formats.js';
import { modelFolder } from './model-folder.js';

const weather = z.object({
  city: z.string().max(30),
  days: z.number().int().min(1).max(9),
  unit: z.enum(['c', 'f']).optional(),
  detailed: z.boolean().optional(),
});
const search = z.object({ tags: z.array(z.string().max(20)).max(3) });
const SCHEMAS: Record<string, z.ZodType> = { get_weather: weather, search };
const tools: ChatCompletionTool[] = Object.entries(SCHEMAS).map(([name, schema]) => {
  const { $schema: _, ...parameters } = z.toJSONSchema(schema);
  return { type: 'function', function: { name, parameters: parameters as Record<string, unknown> } };
});
const messages: ChatCompletionMessageParam[] = [{ role: 'user', content: 'Weather?' }];

const PARIS: Call = { name: 'get_weather', args: { city: 'Paris', days: 3, detailed: true } };
// Characters of two, three and four bytes: none of them is one token.
const ZURICH: Call = { name: 'get_weather', args: { city: 'Zürich 雁 "🪿" \\ </b>', days: 1, unit: 'c' } };
const TAGS: Call = { name: 'search', args: { tags: ['ñ', '[x]', '{"a": 1}'] } };

const folder = temporaryFolder('skein-tool-formats');
const folderOf = ({ name }: ToolFormat) => join(folder, name.replaceAll(/\W+/g, '-').toLowerCase());
beforeAll(() => {
  for (const format of TOOL_FORMATS) modelFolder(folderOf(format), format);
});

/** The parts of an answer that a caller uses. */
function saidOf({ choices: [choice] }: OpenAI.ChatCompletion) {
  const { content, tool_calls: calls = [] } = choice!.message;
  return {
    content,
    calls: calls.map((call): Call => {
      if (call.type !== 'function') throw new Error(`a call of type ${call.type}`);
      return { name: call.function.name, args: JSON.parse(call.function.arguments) as Call['args'] };
    }),
    finish: choice!.finish_reason,
  };
}

describe.each(TOOL_FORMATS)('$name: what the model writes', (format) => {
  let codec: ModelCodec;
  let toy: ToyServer;
  let close: () => Promise<void>;
  let client: OpenAI;
  /** Text that the model writes next. */
  let written = '';
  let writtenTokens: number[] = [];

  beforeAll(async () => {
    codec = await ModelCodec.open(folderOf(format));
    toy = toyServer(() => [...writtenTokens.map((token) => ({ tokens: [token] })), { finish: 'stop' }], {
      model: { codec, vocabSize: 320, maxInputLen: 8000, maxSeqLen: 9000 },
    });
    const server = await listen(toy);
    close = server.close;
    client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
  });
  afterAll(async () => {
    await close();
    await codec.close();
  });

  /** The answer of a model that writes this, streamed and whole, which say the same. */
  async function answer(text: string, asked: ChatCompletionMessageParam[] = messages) {
    written = text;
    writtenTokens = Array.from(await codec.encodeText(written));
    const body = { model: 'toy', messages: asked, tools };
    const whole = saidOf(await client.chat.completions.create(body));
    const stream = client.chat.completions.stream(body);
    let deltas = 0;
    stream.on('tool_calls.function.arguments.delta', () => deltas++);
    expect(saidOf(await stream.finalChatCompletion())).toEqual(whole);
    return { ...whole, deltas };
  }

  async function promptText(): Promise<string> {
    const detokenizer = codec.createDetokenizer({ skipSpecialTokens: false });
    return detokenizer.push(toy.engine.requests.at(-1)!.promptTokens) + detokenizer.flush();
  }

  it('is found by its template, which tells the model of the functions', async () => {
    expect(toolStyle(format.template, 'auto')).toEqual({ format: format.format, usesTemplate: true });
    await answer('Hi.');
    const prompt = await promptText();
    expect(prompt).toContain(format.told);
    for (const name of Object.keys(SCHEMAS)) expect(prompt).toContain(`"name": "${name}"`);
  });

  it('one call', async () => {
    const { deltas, ...said } = await answer(format.write([PARIS]));
    expect(said).toEqual({ content: null, calls: [PARIS], finish: 'tool_calls' });
    expect(deltas).toBeGreaterThan(2);
  });

  it('parallel calls, with characters that are cut in tokens', async () => {
    const calls = [ZURICH, TAGS, PARIS];
    const text = format.write(calls);
    const { deltas: _, ...said } = await answer(text);
    expect(said).toEqual({ content: null, calls, finish: 'tool_calls' });
    // They are cut, indeed.
    const bytes = writtenTokens.map((token) => codec.tokenBytes(token));
    expect(bytes.filter((one) => Buffer.from(one).toString().includes('\ufffd')).length).toBeGreaterThan(6);
  });

  it('text before a call', async () => {
    const said = 'Let me löok 🪿.';
    const { content, calls } = await answer(`${format.talk?.(said) ?? `${said}\n`}${format.write([PARIS])}`);
    if (format.mayTalkFirst) expect({ content, calls }).toEqual({ content: said, calls: [PARIS] });
    // Its calls are the whole answer, or none.
    else expect({ content, calls }).toEqual({ content: written, calls: [] });
  });

  it('nearly a call stays text', async () => {
    for (const text of format.malformed) {
      const { content, calls, finish } = await answer(text);
      expect({ content, calls, finish }).toEqual({ content: text, calls: [], finish: 'stop' });
    }
  });

  it('comes back to it as it would have written it, with the result', async () => {
    const text = format.write([PARIS]);
    written = text;
    writtenTokens = Array.from(await codec.encodeText(text));
    const { choices } = await client.chat.completions.create({ model: 'toy', messages, tools });
    const [{ message } = { message: undefined }] = choices;
    const id = message!.tool_calls![0]!.id;
    await answer('Sunny.', [
      ...messages,
      message!,
      { role: 'tool', tool_call_id: id, content: 'It is sunny.' },
    ]);
    const prompt = await promptText();
    const plain = (one: string) => one.replaceAll(/\s+|, "id": "\w+"/g, '');
    expect(plain(prompt)).toContain(
      plain(format.format === 'pythonic' ? text.replaceAll('True', 'true') : text),
    );
    expect(prompt).toContain('It is sunny.');
  });
});

describe('calls that have to be, by grammar, from a model that would write anything', () => {
  let server: SkeinProcess;
  let client: OpenAI;
  beforeAll(async () => {
    const models = TOOL_FORMATS.map((format, i) => `m${i}=${folderOf(format)}`);
    const limits = { maxActiveRequests: '8', kvCacheTokens: '8192', maxContextTokens: '2048' };
    server = await startFakeServer(
      { model: models, ...limits },
      { vocabSize: 320, maxSeqLen: 2048, endToken: 2 },
    );
    client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
  });
  afterAll(() => server?.stop());

  it.each(TOOL_FORMATS.map(({ name }, i) => [name, `m${i}`] as const))('%s', async (_, model) => {
    const choices = ['required', { type: 'function' as const, function: { name: 'search' } }] as const;
    let ended = 0;
    for (const tool_choice of choices) {
      for (let seed = 1; seed <= draws(2); seed++) {
        const ask = {
          ...{ model, messages, tools, tool_choice, seed, max_tokens: 500, temperature: 1 },
          parallel_tool_calls: seed % 2 === 0,
        };
        const answer = await client.chat.completions.create(ask);
        // An answer of random text may not come to an end.
        if (answer.choices[0]!.finish_reason === 'length') continue;
        ended++;
        const { content, calls, finish } = saidOf(answer);
        expect(content).toBe(null);
        expect(finish).toBe(tool_choice === 'required' ? 'tool_calls' : 'stop');
        expect(calls.length).toBeGreaterThan(0);
        if (seed % 2 === 1) expect(calls).toHaveLength(1);
        for (const { name, args } of calls) {
          if (tool_choice !== 'required') expect(name).toBe('search');
          expect(SCHEMAS[name]!.parse(args)).toEqual(args);
        }
        expect(saidOf(await client.chat.completions.stream(ask).finalChatCompletion())).toEqual({
          content,
          calls,
          finish,
        });
      }
    }
    expect(ended).toBeGreaterThan(1);
  });
});
