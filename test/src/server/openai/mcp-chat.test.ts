import { afterEach, describe, expect, it } from 'vitest';
import { McpServers } from '../../../../src/server/mcp/mcp-servers.js';
import { type McpScript, mcpServer, type TestMcpServer, text } from '../../support/mcp-server.js';
import { templatedCodec } from '../../support/toy-codec.js';
import { readChunks, say, toyServer } from '../../support/toy-server.js';

// biome-ignore lint/suspicious/noExplicitAny: its shape is what is tested.
type Any = any;

const PATH = '/v1/chat/completions';
const HERMES = '{% if tools %}{{ tools }}<tool_call>{% endif %}{{ messages }}';
const call = (name: string, args: string) =>
  `<tool_call>\n{"name": "${name}", "arguments": ${args}}\n</tool_call>`;
const ADDED = call('calc__add', '{"a": 2, "b": 3}');
const messages = [{ role: 'user', content: 'What is 2 + 3?' }];
const never = { type: 'mcp', server_label: 'calc', require_approval: 'never' };
const QUIET = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

const opened: TestMcpServer[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});

async function served(answers: string[], script?: McpScript) {
  const mcp = await mcpServer(script);
  opened.push(mcp);
  const codec = templatedCodec(HERMES);
  const toldTo: Any[] = [];
  const noting: typeof codec = {
    ...codec,
    encodeChat: (told, given) => {
      toldTo.push(structuredClone(told));
      return codec.encodeChat(told, given);
    },
  };
  const toy = toyServer((_, index) => say(answers[Math.min(index, answers.length - 1)]!), {
    model: { codec: noting, maxInputLen: 40_000, maxSeqLen: 50_000, defaultMaxTokens: 4000 },
    toolServers: new McpServers(new Map([['calc', mcp.url]]), 5000, QUIET),
  });
  const post = async (body: object) => {
    const response = await toy.post(PATH, { messages, ...body });
    return { status: response.status, json: (await response.json()) as Any };
  };
  return { toy, mcp, toldTo, post };
}

describe('tools of MCP servers in chats', () => {
  it('run while the answer is made', async () => {
    const { toy, mcp, toldTo, post } = await served([`Let me see.${ADDED}`, 'It is 5.']);
    const { status, json } = await post({ tools: [never] });
    expect(status).toBe(200);
    expect(json.choices).toMatchObject([
      {
        index: 0,
        finish_reason: 'stop',
        message: {
          role: 'assistant',
          content: 'Let me see.\n\nIt is 5.',
          mcp_calls: [
            {
              server_label: 'calc',
              name: 'add',
              arguments: '{"a": 2, "b": 3}',
              output: '5',
              error: null,
            },
          ],
        },
      },
    ]);
    expect(json.choices[0].message.tool_calls).toBeUndefined();
    expect(mcp.calls).toEqual([{ name: 'add', args: { a: 2, b: 3 } }]);
    expect(toldTo.at(-1)).toMatchObject([
      { role: 'user' },
      { role: 'assistant', content: 'Let me see.', tool_calls: [{ function: { name: 'calc__add' } }] },
      { role: 'tool', content: '5' },
    ]);
    const prompts = toy.engine.requests.map(({ promptTokens }) => promptTokens.length);
    expect(json.usage.prompt_tokens).toBe(prompts[0]! + prompts[1]!);
  });

  it('are streamed, with each call once it has ended', async () => {
    const { toy } = await served([`Let me see.${ADDED}`, 'It is 5.']);
    const response = await toy.post(PATH, {
      ...{ messages, tools: [never], stream: true },
      stream_options: { include_usage: true },
    });
    const chunks = await readChunks<Any>(response);
    const deltas = chunks.flatMap(({ choices }) => choices).map(({ delta }: Any) => delta);
    expect(deltas[0]).toEqual({ role: 'assistant', content: '' });
    expect(deltas.map(({ content }: Any) => content ?? '').join('')).toBe('Let me see.\n\nIt is 5.');
    const calls = deltas.flatMap(({ mcp_calls }: Any) => mcp_calls ?? []);
    expect(calls).toMatchObject([{ index: 0, name: 'add', output: '5' }]);
    expect(chunks.at(-2).choices[0]).toMatchObject({ delta: {}, finish_reason: 'stop' });
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: expect.any(Number) } });
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
  });

  it('stop where the client has a function to call as well', async () => {
    const own = { type: 'function', function: { name: 'mine' } };
    const { toy, post } = await served([`${ADDED}${call('mine', '{"x": 1}')}`, 'Not said.']);
    const { json } = await post({ tools: [never, own] });
    const [{ message, finish_reason }] = json.choices;
    expect(finish_reason).toBe('tool_calls');
    expect(message).toMatchObject({
      content: null,
      tool_calls: [{ type: 'function', function: { name: 'mine', arguments: '{"x": 1}' } }],
      mcp_calls: [{ name: 'add', output: '5' }],
    });
    expect(toy.engine.requests).toHaveLength(1);
  });

  it('fail as calls, and end with the limits of rounds and tokens', async () => {
    const failing = await served([ADDED, 'Sorry.'], { call: () => text('no', true) });
    const { json } = await failing.post({ tools: [never] });
    expect(json.choices[0].message).toMatchObject({
      content: 'Sorry.',
      mcp_calls: [{ output: null, error: 'no' }],
    });
    const endless = await served([ADDED]);
    const all = await endless.post({ tools: [never] });
    expect(endless.mcp.calls).toHaveLength(16);
    expect(all.json.choices[0].message.content).toBe(ADDED);
    const short = await endless.post({ tools: [never], max_completion_tokens: ADDED.length });
    expect(short.json.choices[0].finish_reason).toBe('length');
  });

  it('are called once at least with a choice of them, and then as the model likes', async () => {
    const { toy, post } = await served([ADDED, 'It is 5.']);
    await post({ tools: [never], tool_choice: { type: 'function', function: { name: 'calc__add' } } });
    expect(toy.engine.requests.map(({ guide }) => guide !== undefined)).toEqual([true, false]);
  });

  it('end their calls when the client leaves, and when their time is over', async () => {
    const hang = { call: () => new Promise<never>(() => {}) };
    const until = async (holds: () => boolean) => {
      for (let i = 0; i < 500 && !holds(); i++) await new Promise((resolve) => setTimeout(resolve, 10));
      expect(holds()).toBe(true);
    };
    const left = await served([ADDED, 'Hi'], hang);
    const leaving = new AbortController();
    const asked = left.toy.post(PATH, { messages, tools: [never] }, { signal: leaving.signal });
    await until(() => left.mcp.calls.length === 1);
    leaving.abort();
    await (await asked).text();
    await until(() => left.mcp.cancelled === 1);
    const over = await served([ADDED, 'Hi'], hang);
    const { json } = await over.post({ tools: [never], time_limit_ms: 400 });
    expect(json.choices[0]).toMatchObject({ finish_reason: 'length', stop_reason: 'time_limit' });
    await until(() => over.mcp.cancelled === 1);
  });

  it.each([
    [{ tools: [{ ...never, require_approval: 'always' }] }, 'tools[0].require_approval'],
    [{ tools: [never], n: 2 }, 'n'],
    [{ tools: [never], logprobs: true }, 'logprobs'],
    [{ tools: [{ ...never, server_label: 'other' }] }, 'tools[0].server_label'],
    [{ tools: [{ ...never, server_url: 'http://10.0.0.1/' }] }, 'tools[0].server_url'],
  ])('are refused where a chat cannot have them: %j', async (body, param) => {
    const { toy, post } = await served(['Hi']);
    const { status, json } = await post(body);
    expect({ status, param: json.error.param }).toEqual({ status: 400, param });
    expect(toy.engine.requests).toEqual([]);
  });

  it('are refused without --mcp-server, by servers that cannot list them, and where nothing is answered', async () => {
    const none = toyServer(() => say('Hi'));
    const refused = await none.post(PATH, { messages, tools: [never] });
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({ error: { code: 'mcp_not_enabled' } });
    const broken = await served(['Hi'], { intercept: (_, response) => !!response.writeHead(500).end() });
    const { status, json } = await broken.post({ tools: [never] });
    expect(status).toBe(424);
    expect(json.error.message).toBe("The MCP server 'calc' cannot list its tools: it answers with HTTP 500.");
    const { toy } = await served(['Hi']);
    const counted = await toy.post('/tokenize', { messages, tools: [never] });
    expect(counted.status).toBe(400);
  });
});
