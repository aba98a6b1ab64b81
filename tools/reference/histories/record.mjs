/**
 * Writes the bodies that client libraries send for a conversation with calls into test/fixtures/histories:
 *
 *     node tools/reference/histories/record.mjs
 *
 * Each conversation is given as the library's users give it. The bodies of programs (Claude Code, Codex, Cline, aider) are
 * written by hand after what those send, with short texts in place of their prompts.
 */

import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import Anthropic from '@anthropic-ai/sdk';
import { AIMessage, HumanMessage, SystemMessage, ToolMessage } from '@langchain/core/messages';
import { tool as langchainTool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';
import { generateText, tool } from 'ai';
import { Ollama } from 'ollama';
import OpenAI from 'openai';
import * as z from 'zod';

const folder = new URL('../../../test/fixtures/histories/', import.meta.url);
const version = (name) =>
  JSON.parse(readFileSync(new URL(`../../../node_modules/${name}/package.json`, import.meta.url), 'utf8'))
    .version;

const place = z.object({
  place: z.string().describe('City, as "Oslo"'),
  days: z.number().int().default(1),
  unit: z.enum(['c', 'f']).nullable(),
});
const described = 'The weather at a place: <b>days</b> & nights';
const parameters = {
  type: 'object',
  properties: {
    place: { type: 'string', description: 'City, as "Oslo"' },
    note: { anyOf: [{ type: 'string' }, { type: 'null' }], default: null },
    least: { type: 'number', minimum: 1e-7 },
  },
  required: ['place'],
};
const NUMBERS = '{"place": "Oslo", "least": 1.0, "id": 12345678901234567890, "rate": 1e-07}';

async function openaiChat(baseURL) {
  const call = (id, args) => ({ id, type: 'function', function: { name: 'get_weather', arguments: args } });
  await new OpenAI({ baseURL, apiKey: 'none' }).chat.completions.create({
    model: 'toy',
    messages: [
      { role: 'developer', content: 'Be brief.' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Weather in Oslo' },
          { type: 'text', text: 'and Rome?' },
        ],
      },
      { role: 'assistant', content: null, tool_calls: [call('call_a1', NUMBERS), call('call_b2', '{}')] },
      { role: 'tool', tool_call_id: 'call_a1', content: '{"temp": 4}' },
      { role: 'tool', tool_call_id: 'call_b2', content: 'no place' },
      { role: 'system', content: 'Answer in French.' },
      { role: 'user', content: '  And now?\n' },
    ],
    tools: [{ type: 'function', function: { name: 'get_weather', description: described, parameters } }],
  });
}

async function openaiResponses(baseURL) {
  await new OpenAI({ baseURL, apiKey: 'none' }).responses.create({
    model: 'toy',
    instructions: 'Be brief.',
    input: [
      { role: 'user', content: 'Weather in Oslo?' },
      {
        type: 'reasoning',
        id: 'rs_1',
        summary: [],
        content: [{ type: 'reasoning_text', text: 'I have a function.' }],
      },
      {
        type: 'message',
        role: 'assistant',
        id: 'msg_1',
        status: 'completed',
        content: [{ type: 'output_text', text: 'Let me see.', annotations: [] }],
      },
      { type: 'function_call', call_id: 'call_a1', name: 'get_weather', arguments: '{"place":"Oslo"}' },
      {
        type: 'function_call_output',
        call_id: 'call_a1',
        output: [
          { type: 'input_text', text: 'four' },
          { type: 'input_text', text: 'degrees' },
        ],
      },
      { role: 'developer', content: [{ type: 'input_text', text: 'Answer in French.' }] },
    ],
    tools: [{ type: 'function', name: 'get_weather', description: described, parameters, strict: false }],
  });
}

async function anthropic(baseURL) {
  await new Anthropic({ baseURL: baseURL.replace('/v1', ''), apiKey: 'none' }).messages.create({
    model: 'toy',
    max_tokens: 64,
    system: [
      { type: 'text', text: 'Be brief.' },
      { type: 'text', text: 'Be kind.' },
    ],
    messages: [
      { role: 'user', content: 'Weather in Oslo and Rome?' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'I have a function.', signature: '' },
          { type: 'text', text: 'Let me see.' },
          { type: 'tool_use', id: 'toolu_01', name: 'get_weather', input: { place: 'Oslo' } },
          { type: 'tool_use', id: 'toolu_02', name: 'get_weather', input: { place: 'Rome', note: null } },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'toolu_01', content: [{ type: 'text', text: '4 degrees' }] },
          { type: 'tool_result', tool_use_id: 'toolu_02', content: 'no such place', is_error: true },
          { type: 'text', text: 'Then Oslo alone.' },
        ],
      },
    ],
    tools: [{ name: 'get_weather', description: described, input_schema: parameters }],
  });
}

async function langchain(baseURL) {
  const weather = langchainTool(() => '', { name: 'get_weather', description: described, schema: place });
  const model = new ChatOpenAI({ model: 'toy', apiKey: 'none', configuration: { baseURL }, maxRetries: 0 });
  await model.bindTools([weather]).invoke([
    new SystemMessage('Be brief.'),
    new HumanMessage('Weather in Oslo?'),
    new AIMessage({
      content: '',
      tool_calls: [{ id: 'call_a1', name: 'get_weather', args: { place: 'Oslo', days: 2 } }],
    }),
    new ToolMessage({ tool_call_id: 'call_a1', name: 'get_weather', content: '4 degrees' }),
    new AIMessage('4 degrees.'),
    new SystemMessage('The user has left; a colleague goes on.'),
    new HumanMessage('Thank you.'),
    new HumanMessage('And in Rome?'),
  ]);
}

async function aiSdk(baseURL) {
  const provider = createOpenAICompatible({ name: 'skein', baseURL });
  await generateText({
    model: provider('toy'),
    maxRetries: 0,
    system: 'Be brief.',
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'Weather in Oslo?' }] },
      {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'I have a function.' },
          {
            type: 'tool-call',
            toolCallId: 'call_a1',
            toolName: 'get_weather',
            input: { place: 'Oslo', unit: null },
          },
        ],
      },
      {
        role: 'tool',
        content: [
          {
            type: 'tool-result',
            toolCallId: 'call_a1',
            toolName: 'get_weather',
            output: { type: 'json', value: { temp: 4 } },
          },
        ],
      },
    ],
    tools: { get_weather: tool({ description: described, inputSchema: place }) },
  });
}

async function ollama(baseURL) {
  const call = (args) => ({ function: { name: 'get_weather', arguments: args } });
  await new Ollama({ host: baseURL.replace('/v1', '') }).chat({
    model: 'toy',
    messages: [
      { role: 'user', content: 'Weather in Oslo and Rome?' },
      {
        role: 'assistant',
        content: '',
        thinking: 'I have a function.',
        tool_calls: [call({ place: 'Oslo' }), call({ place: 'Rome' })],
      },
      { role: 'tool', tool_name: 'get_weather', content: '4 degrees' },
      { role: 'tool', tool_name: 'get_weather', content: '21 degrees' },
    ],
    tools: [{ type: 'function', function: { name: 'get_weather', description: described, parameters } }],
  });
}

const CLIENTS = {
  'openai-chat': { run: openaiChat, packageName: 'openai' },
  'openai-responses': { run: openaiResponses, packageName: 'openai' },
  'anthropic-sdk': { run: anthropic, packageName: '@anthropic-ai/sdk' },
  langchain: { run: langchain, packageName: '@langchain/openai' },
  'ai-sdk': { run: aiSdk, packageName: '@ai-sdk/openai-compatible' },
  ollama: { run: ollama, packageName: 'ollama' },
};

let received = null;
const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  received = { path: request.url, body: JSON.parse(Buffer.concat(chunks).toString()) };
  // The client fails on this, after it has sent what is wanted.
  response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":{"message":"recorded"}}');
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const baseURL = `http://127.0.0.1:${server.address().port}/v1`;

for (const [name, { run, packageName }] of Object.entries(CLIENTS)) {
  received = null;
  await run(baseURL).catch((error) => {
    if (received === null) throw error;
  });
  const file = new URL(`${name}.json`, folder);
  const { expected = {} } = readIfThere(file);
  const client = `${packageName} ${version(packageName)}`;
  writeFileSync(file, `${JSON.stringify({ client, ...received, expected }, null, 2)}\n`);
}
server.close();

function readIfThere(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    if (error.code === 'ENOENT') return {};
    throw error;
  }
}
