import { afterEach, describe, expect, it } from 'vitest';
import { McpServers } from '../../../../../src/server/mcp/mcp-servers.js';
import { ServerMetrics } from '../../../../../src/server/metrics/families/server-metrics.js';
import type { ServerLog } from '../../../../../src/server/web/server-log.js';
import { LiveModels } from '../../../../../src/serving/model-directory.js';
import { ADD, type McpScript, mcpServer, type TestMcpServer, text } from '../../../support/mcp-server.js';
import { templatedCodec } from '../../../support/toy-codec.js';
import { say, type ToyOptions, toyServer } from '../../../support/toy-server.js';
import { type Any, create, PATH, promptText, readEvents, refusal } from './support.js';

const HERMES = '{% if tools %}{{ tools }}<tool_call>{% endif %}{{ messages }}';
const call = (name: string, args: string) =>
  `<tool_call>\n{"name": "${name}", "arguments": ${args}}\n</tool_call>`;
const ADDED = call('calc__add', '{"a": 2, "b": 3}');
const input = 'What is 2 + 3?';
const never = { type: 'mcp', server_label: 'calc', require_approval: 'never' };
const QUIET: ServerLog = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

const opened: TestMcpServer[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});

interface Given {
  script?: McpScript;
  timeoutMs?: number;
  options?: ToyOptions;
  log?: ServerLog;
}

/** A server whose model says these answers in turn, the last one again and again. */
async function served(answers: string[], { script, timeoutMs = 5000, options, log = QUIET }: Given = {}) {
  const mcp = await mcpServer(script);
  opened.push(mcp);
  const codec = templatedCodec(HERMES);
  const toldTo: Any[] = [];
  const noting: typeof codec = {
    ...codec,
    encodeChat: (messages, given) => {
      toldTo.push(structuredClone(messages));
      return codec.encodeChat(messages, given);
    },
  };
  const toy = toyServer((_, index) => say(answers[Math.min(index, answers.length - 1)]!), {
    model: { codec: noting, maxInputLen: 40_000, maxSeqLen: 50_000, defaultMaxTokens: 4000 },
    toolServers: new McpServers(new Map([['calc', mcp.url]]), timeoutMs, log),
    ...options,
  });
  return { toy, mcp, toldTo };
}

describe('tools of MCP servers in responses', () => {
  it('are listed, called, and answered from', async () => {
    const { toy, mcp, toldTo } = await served([`Let me see.${ADDED}`, 'It is 5.']);
    const response = await create(toy, { input, tools: [never] });
    expect(response.status).toBe('completed');
    expect(response.output).toMatchObject([
      {
        type: 'mcp_list_tools',
        id: expect.stringMatching(/^mcpl_/),
        server_label: 'calc',
        error: null,
        tools: [
          {
            name: 'add',
            description: 'Adds two numbers.',
            input_schema: ADD.inputSchema,
            annotations: { readOnlyHint: true },
          },
          { name: 'drop' },
        ],
      },
      { type: 'message', content: [{ text: 'Let me see.' }] },
      {
        type: 'mcp_call',
        id: expect.stringMatching(/^mcp_/),
        status: 'completed',
        server_label: 'calc',
        name: 'add',
        arguments: '{"a": 2, "b": 3}',
        output: '5',
        error: null,
        approval_request_id: null,
      },
      { type: 'message', content: [{ text: 'It is 5.' }] },
    ]);
    expect(mcp.calls).toEqual([{ name: 'add', args: { a: 2, b: 3 } }]);
    const [asked, called, result] = toldTo.at(-1);
    expect(asked).toMatchObject({ role: 'user' });
    expect(called).toMatchObject({
      role: 'assistant',
      content: 'Let me see.',
      tool_calls: [{ function: { name: 'calc__add' } }],
    });
    expect(result).toMatchObject({ role: 'tool', content: '5', tool_call_id: called.tool_calls[0].id });
    const [first, second] = toy.engine.requests.map(({ promptTokens }) => promptTokens.length);
    expect(response.usage).toMatchObject({ input_tokens: first! + second! });
    expect(promptText(toy)).toContain('"name":"calc__add"');
    expect(response.tools).toMatchObject([{ type: 'mcp', server_label: 'calc', require_approval: 'never' }]);
  });

  it("are streamed with OpenAI's events", async () => {
    const { toy } = await served([ADDED, 'It is 5.']);
    const events = await readEvents(await toy.post(PATH, { input, tools: [never], stream: true }));
    const types = events.map(({ type }) => type).filter((type, i, all) => type !== all[i - 1]);
    expect(types).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.mcp_list_tools.in_progress',
      'response.mcp_list_tools.completed',
      'response.output_item.done',
      'response.output_item.added',
      'response.mcp_call.in_progress',
      'response.mcp_call_arguments.delta',
      'response.mcp_call_arguments.done',
      'response.mcp_call.completed',
      'response.output_item.done',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ]);
    expect(events[0].response.output).toEqual([]);
    const of = (type: string) => events.filter((event) => event.type === type);
    const [list, called] = of('response.output_item.added');
    expect(list).toMatchObject({ output_index: 0, item: { type: 'mcp_list_tools', tools: [] } });
    expect(called).toMatchObject({
      output_index: 1,
      item: { type: 'mcp_call', status: 'in_progress', arguments: '', output: null },
    });
    const [done] = of('response.mcp_call_arguments.done');
    expect(done).toMatchObject({ item_id: called.item.id, output_index: 1, arguments: '{"a": 2, "b": 3}' });
    const deltas = of('response.mcp_call_arguments.delta').map(({ delta }) => delta);
    expect(deltas.join('')).toBe(done.arguments);
    const ended = of('response.output_item.done')[1];
    expect(ended).toMatchObject({ output_index: 1, item: { status: 'completed', output: '5' } });
    const { output } = events.at(-1).response;
    expect(output[1]).toEqual(ended.item);
    expect(output.map(({ type }: Any) => type)).toEqual(['mcp_list_tools', 'mcp_call', 'message']);
  });

  it('are several calls of one answer, and of several answers', async () => {
    const two = `${ADDED}\n${call('calc__add', '{"a": 1, "b": 1}')}`;
    const { toy, mcp, toldTo } = await served([two, ADDED, 'Done.']);
    const { output } = await create(toy, { input, tools: [never] });
    expect(output.map(({ type, output }: Any) => output ?? type)).toEqual([
      'mcp_list_tools',
      '5',
      '2',
      '5',
      'message',
    ]);
    expect(mcp.calls).toHaveLength(3);
    expect(toldTo.at(-1).map(({ role }: Any) => role)).toEqual([
      'user',
      ...['assistant', 'tool', 'assistant', 'tool', 'assistant', 'tool'],
    ]);
    // Each prompt begins as the one before it up to the first call whose result it adds.
    const [, second, third] = toldTo;
    expect(third.slice(0, second.length)).toEqual(second);
  });

  it('go on in the next response, without asking the server for its list', async () => {
    const { toy, mcp, toldTo } = await served([ADDED, 'It is 5.', 'As I said.']);
    const first = await create(toy, { input, tools: [never] });
    const second = await create(toy, { input: 'Sure?', tools: [never], previous_response_id: first.id });
    expect(mcp.lists).toBe(1);
    expect(second.output).toMatchObject([{ type: 'message' }]);
    expect(toldTo.at(-1)).toMatchObject([
      { role: 'user' },
      { role: 'assistant', tool_calls: [{ function: { name: 'calc__add' } }] },
      { role: 'tool', content: '5' },
      { role: 'assistant', content: 'It is 5.' },
      { role: 'user' },
    ]);
    expect(promptText(toy)).toContain('"name":"calc__add"');
    // The same by items that the client keeps.
    const items = [{ role: 'user', content: input }, ...first.output, { role: 'user', content: 'Sure?' }];
    const third = await create(toy, { input: items, tools: [never], store: false });
    expect(third.output).toMatchObject([{ type: 'message' }]);
    expect(toldTo.at(-1)).toEqual(toldTo.at(-2));
  });

  it('wait for approval unless the request says otherwise, and run when they are approved', async () => {
    const { toy, mcp, toldTo } = await served([ADDED, 'It is 5.']);
    const { require_approval: _, ...asking } = never;
    const first = await create(toy, { input, tools: [asking] });
    expect(first.status).toBe('completed');
    const request = first.output[1];
    expect(request).toEqual({
      type: 'mcp_approval_request',
      id: expect.stringMatching(/^mcpr_/),
      server_label: 'calc',
      name: 'add',
      arguments: '{"a": 2, "b": 3}',
    });
    expect(mcp.calls).toEqual([]);
    const approval = { type: 'mcp_approval_response', approval_request_id: request.id, approve: true };
    const ask = { tools: [asking], previous_response_id: first.id, input: [approval] };
    const second = await create(toy, ask);
    expect(second.output).toMatchObject([
      { type: 'mcp_call', status: 'completed', output: '5', approval_request_id: request.id },
      { type: 'message', content: [{ text: 'It is 5.' }] },
    ]);
    expect(mcp.calls).toEqual([{ name: 'add', args: { a: 2, b: 3 } }]);
    expect(toldTo.at(-1).map(({ role }: Any) => role)).toEqual(['user', 'assistant', 'tool']);
    const events = await readEvents(await toy.post(PATH, { ...ask, stream: true }));
    const types = events.map(({ type }) => type).filter((type, i, all) => type !== all[i - 1]);
    expect(types.slice(0, 8)).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.mcp_call.in_progress',
      'response.mcp_call_arguments.delta',
      'response.mcp_call_arguments.done',
      'response.mcp_call.completed',
      'response.output_item.done',
    ]);
    // A conversation that has the result already does not make the call once more.
    const all = [{ role: 'user', content: input }, ...first.output, approval, ...second.output];
    await create(toy, { tools: [asking], input: [...all, { role: 'user', content: 'Thanks.' }] });
    expect(mcp.calls).toHaveLength(2);
  });

  it('are not run where they are refused, which the model is told with the reason', async () => {
    const { toy, mcp, toldTo } = await served([ADDED, 'Then not.']);
    const first = await create(toy, { input, tools: [{ ...never, require_approval: 'always' }] });
    const answer = { type: 'mcp_approval_response', approval_request_id: first.output[1].id, approve: false };
    const second = await create(toy, {
      ...{ tools: [never], previous_response_id: first.id },
      input: [{ ...answer, reason: 'Too dear.' }],
    });
    expect(second.output).toMatchObject([{ type: 'message', content: [{ text: 'Then not.' }] }]);
    expect(mcp.calls).toEqual([]);
    const [, called, result] = toldTo.at(-1);
    expect(called.tool_calls).toMatchObject([{ function: { name: 'calc__add' } }]);
    expect(result.content).toMatch(/did not approve.*Too dear\./);
  });

  it.each([
    [{ never: { tool_names: ['add'] } }, 'mcp_call'],
    [{ never: { tool_names: ['drop'] } }, 'mcp_approval_request'],
    [{ always: { tool_names: ['add'] } }, 'mcp_approval_request'],
    [{ always: { tool_names: ['drop'] } }, 'mcp_call'],
    [{ never: { read_only: true } }, 'mcp_call'],
    [{ never: { read_only: false } }, 'mcp_approval_request'],
    [{ always: { read_only: true }, never: { tool_names: ['add'] } }, 'mcp_approval_request'],
    [{}, 'mcp_approval_request'],
  ])('need approval by rules of tools: %j', async (rule, type) => {
    const { toy } = await served([ADDED, 'Done.']);
    const { output } = await create(toy, { input, tools: [{ ...never, require_approval: rule }] });
    expect(output[1].type).toBe(type);
  });

  it.each([
    [['add'], ['add']],
    [{ tool_names: ['drop', 'other'] }, ['drop']],
    [{ read_only: true }, ['add']],
    [{ read_only: false }, ['drop']],
    [[], []],
  ])('are those that the request allows: %j', async (allowed, names) => {
    const { toy } = await served(['Hi']);
    const { output } = await create(toy, { input, tools: [{ ...never, allowed_tools: allowed }] });
    expect(output[0].tools.map(({ name }: Any) => name)).toEqual(names);
    for (const name of ['add', 'drop'])
      expect(promptText(toy).includes(`"calc__${name}"`)).toBe(names.includes(name));
  });

  it('stop where the client has a function to call as well', async () => {
    const own = { type: 'function', name: 'mine' };
    const { toy, mcp } = await served([`${ADDED}\n${call('mine', '{}')}`, 'Not said.']);
    const { output, status } = await create(toy, { input, tools: [never, own] });
    expect(output.map(({ type }: Any) => type)).toEqual(['mcp_list_tools', 'mcp_call', 'function_call']);
    expect(output[1].output).toBe('5');
    expect(status).toBe('completed');
    expect(mcp.calls).toHaveLength(1);
    expect(toy.engine.requests).toHaveLength(1);
  });

  it('are called once at least with a choice of them, and then as the model likes', async () => {
    const { toy } = await served([ADDED, 'It is 5.']);
    for (const tool_choice of [
      'required',
      { type: 'mcp', server_label: 'calc', name: 'add' },
      { type: 'mcp', server_label: 'calc' },
    ]) {
      const before = toy.engine.requests.length;
      await create(toy, { input, tools: [never], tool_choice });
      const guides = toy.engine.requests.slice(before).map(({ guide }) => guide !== undefined);
      expect(guides).toEqual(before === 0 ? [true, false] : [true]);
    }
    expect(
      await refusal(toy, { input, tools: [never], tool_choice: { type: 'mcp', server_label: 'x' } }),
    ).toMatchObject({ status: 400, param: 'tool_choice' });
  });

  it('are called no more than the request allows', async () => {
    const { toy, mcp } = await served([ADDED, ADDED, 'Done.']);
    const { output, max_tool_calls } = await create(toy, { input, tools: [never], max_tool_calls: 1 });
    expect(max_tool_calls).toBe(1);
    expect(mcp.calls).toHaveLength(1);
    // The second answer may have no calls, so that what looks like one is text.
    expect(output.map(({ type }: Any) => type)).toEqual(['mcp_list_tools', 'mcp_call', 'message']);
  });

  it('end with the limits of rounds and of tokens', async () => {
    const { toy, mcp } = await served([ADDED]);
    const all = await create(toy, { input, tools: [never] });
    expect(mcp.calls).toHaveLength(16);
    expect(toy.engine.requests).toHaveLength(17);
    expect(all.output.at(-1).type).toBe('message');
    const short = await create(toy, { input, tools: [never], max_output_tokens: ADDED.length });
    expect(short).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
    });
  });
});

describe('MCP servers that fail', () => {
  it('fail one call, which the model is told', async () => {
    const script = { call: () => text('no such number', true) };
    const { toy, toldTo } = await served([ADDED, 'Sorry.'], { script });
    const events = await readEvents(await toy.post(PATH, { input, tools: [never], stream: true }));
    expect(events.some(({ type }) => type === 'response.mcp_call.failed')).toBe(true);
    expect(events.at(-1).response.output[1]).toMatchObject({
      status: 'failed',
      error: 'no such number',
      output: null,
    });
    expect(toldTo.at(-1).at(-1)).toMatchObject({ role: 'tool', content: 'no such number' });
  });

  it('throw, hang, answer with too much, and are not there any more', async () => {
    const thrown = await served([ADDED, 'Sorry.'], {
      script: {
        call: () => {
          throw new Error('broken');
        },
      },
    });
    const [, one] = (await create(thrown.toy, { input, tools: [never] })).output;
    expect(one).toMatchObject({ status: 'failed', error: expect.stringContaining('broken') });

    const hanging = await served([ADDED, 'Sorry.'], {
      timeoutMs: 300,
      script: { call: () => new Promise<never>(() => {}) },
    });
    const [, two] = (await create(hanging.toy, { input, tools: [never] })).output;
    expect(two).toMatchObject({ status: 'failed', error: 'The call took longer than 0.3 seconds.' });

    const long = await served([ADDED, 'Sorry.'], { script: { call: () => text('x'.repeat(10_000_000)) } });
    const [, three] = (await create(long.toy, { input, tools: [never] })).output;
    expect(three).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('longer than 1048576 bytes'),
    });

    const gone = await served([ADDED, 'Sorry.'], {
      script: { intercept: (_, response) => gone.mcp.lists > 0 && !!response.writeHead(503).end() },
    });
    const [, four] = (await create(gone.toy, { input, tools: [never] })).output;
    expect(four).toMatchObject({ status: 'failed', error: expect.stringContaining('HTTP 503') });
  });

  it('are cut where a result is longer than the model may read', async () => {
    const { toy } = await served([ADDED, 'Hm.'], {
      script: { call: () => text('x'.repeat(200_000)) },
      options: { model: { codec: templatedCodec(HERMES), maxInputLen: 69_000, maxSeqLen: 70_000 } },
    });
    const [, call] = (await create(toy, { input, tools: [{ ...never, allowed_tools: ['add'] }] })).output;
    expect(call.output).toMatch(/^x{65536}\n\[134464 of 200000 characters were cut off\]$/);
  });

  it.each([
    [
      'redirects elsewhere',
      (r: Any) => r.writeHead(307, { location: 'http://localhost:1/mcp' }).end(),
      /redirects.*not followed/,
    ],
    ['refuses', (r: Any) => r.writeHead(401).end('secret text'), /HTTP 401/],
    [
      'speaks HTML',
      (r: Any) => r.writeHead(200, { 'content-type': 'text/html' }).end('<p>'),
      /not of the Model Context Protocol/,
    ],
    ['breaks off', (r: Any) => r.destroy(), /cannot be reached/],
  ])('cannot list their tools: one that %s', async (_, answer, why) => {
    const { toy } = await served(['Hi'], {
      script: {
        intercept: (_, response) => {
          answer(response);
          return true;
        },
      },
    });
    const refused = await refusal(toy, { input, tools: [never] });
    expect(refused).toMatchObject({ status: 424, param: 'tools', code: 'mcp_list_failed' });
    expect(refused.message).toMatch(why);
    expect(refused.message).not.toContain('secret');
    const events = await readEvents(await toy.post(PATH, { input, tools: [never], stream: true }));
    const types = events.map(({ type }) => type);
    expect(types).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.mcp_list_tools.in_progress',
      'response.mcp_list_tools.failed',
      'response.output_item.done',
      'error',
      'response.failed',
    ]);
    expect(events[5].item.error).toMatch(why);
    expect(events.at(-1).response.error).toMatchObject({ code: 'server_error' });
    expect(toy.engine.requests).toEqual([]);
  });

  it('list too much, or what is wrong', async () => {
    const many = Array.from({ length: 100_000 }, (_, i) => ({ ...ADD, name: `add${i}` }));
    const pages = await served(['Hi'], {
      script: {
        list: (asked) => ({ tools: many.slice(asked * 1000, asked * 1000 + 1000), nextCursor: 'more' }),
      },
    });
    expect((await refusal(pages.toy, { input, tools: [never] })).message).toMatch(/more than 512 tools/);
    expect(pages.mcp.lists).toBe(1);
    const atOnce = await served(['Hi'], { script: { list: () => ({ tools: many }) } });
    expect((await refusal(atOnce.toy, { input, tools: [never] })).message).toMatch(
      /longer than 1048576 bytes/,
    );
    const some = await create(pages.toy, { input, tools: [{ ...never, allowed_tools: ['add2500'] }] });
    expect(some.output[0].tools).toHaveLength(1);
    const empty = await served(['Hi'], { script: { list: () => ({ tools: [], nextCursor: 'more' }) } });
    expect((await refusal(empty.toy, { input, tools: [never] })).message).toMatch(/more than 64 pages/);
    let deep: Any = {};
    for (let i = 0; i < 200; i++) deep = { properties: { a: deep } };
    const wrong = await served([call('calc__add', '{}'), 'Hi'], {
      script: {
        list: () => ({
          tools: [
            { ...ADD, inputSchema: 'text' },
            { ...ADD, name: 'deep', inputSchema: deep },
            { ...ADD, name: 'with space' },
            { ...ADD, name: 'odd', inputSchema: { type: 'object', pattern: 7, $ref: '#/nowhere' } },
            { ...ADD, name: 'add' },
            { ...ADD, name: 'add', description: 'Another of this name.' },
          ],
        }),
      },
    });
    const response = await wrong.toy.post(PATH, { input, tools: [never] });
    expect(response.headers.get('x-skein-warning')).toMatch(/'calc' were left out for a schema.*'add'/);
    const { output } = (await response.json()) as Any;
    expect(output[0].tools.map(({ name }: Any) => name)).toEqual(['odd', 'add']);
    expect(output[0].tools[1].description).toBe('Adds two numbers.');
  });

  it('change their list while it is kept: what is gone fails as a call', async () => {
    const { toy, mcp } = await served([ADDED, 'Hm.'], {
      script: { call: (name) => text(`unknown tool ${name}`, true) },
    });
    await create(toy, { input, tools: [never] });
    const { output } = await create(toy, { input, tools: [never] });
    expect(mcp.lists).toBe(1);
    expect(output[1]).toBeDefined();
  });
});

describe('requests with MCP servers', () => {
  it('are refused without --mcp-server, and for others than those', async () => {
    const none = toyServer(() => say('Hi'));
    const refused = await refusal(none, { input, tools: [never] });
    expect(refused).toMatchObject({ status: 400, param: 'tools[0]', code: 'mcp_not_enabled' });
    expect(refused.message).toContain('--mcp-server NAME=URL');
    const { toy, mcp } = await served(['Hi']);
    const other = await refusal(toy, { input, tools: [{ ...never, server_label: 'other' }] });
    expect(other).toMatchObject({
      status: 400,
      param: 'tools[0].server_label',
      code: 'mcp_server_not_allowed',
    });
    const url = await refusal(toy, { input, tools: [{ ...never, server_url: 'http://169.254.169.254/' }] });
    expect(url).toMatchObject({ status: 400, param: 'tools[0].server_url' });
    expect(url.message).not.toContain(mcp.url);
    const twice = await refusal(toy, { input, tools: [never, never] });
    expect(twice).toMatchObject({ status: 400, param: 'tools[1].server_label' });
    const named = { ...never, server_label: 'mine', server_url: mcp.url };
    expect((await create(toy, { input, tools: [named] })).output[0]).toMatchObject({ server_label: 'mine' });
    const connector = await refusal(toy, { input, tools: [{ ...never, connector_id: 'connector_gmail' }] });
    expect(connector.status).toBe(400);
  });

  it('are refused for approvals of what was not asked', async () => {
    const { toy } = await served([ADDED, 'Hi']);
    const approval = { type: 'mcp_approval_response', approval_request_id: 'mcpr_1', approve: true };
    expect(await refusal(toy, { input: [approval], tools: [never] })).toMatchObject({
      status: 400,
      param: 'input[0].approval_request_id',
    });
    const request = {
      ...{ type: 'mcp_approval_request', id: 'mcpr_1', server_label: 'calc' },
      ...{ name: 'format_disk', arguments: '{}' },
    };
    const without = await refusal(toy, { input: [request, approval] });
    expect(without).toMatchObject({ status: 400, param: 'input[1].approval_request_id' });
    // One that the client has made up is still held to the tools that it may call.
    const { output } = await create(toy, { input: [request, approval], tools: [never] });
    expect(output[1]).toMatchObject({
      type: 'mcp_call',
      status: 'failed',
      error: "The MCP server 'calc' has no tool 'format_disk' that may be called.",
    });
  });

  it('send what is for the server to it alone, and neither keep nor log it', async () => {
    const lines: string[] = [];
    const note = (fields: object, message: string) => lines.push(JSON.stringify(fields) + message);
    const { toy, mcp } = await served([ADDED, 'It is 5.'], {
      log: { debug: note, info: note, warn: note, error: note },
    });
    const secret = { authorization: 'tok-123', headers: { 'x-team': 'key-456' } };
    const response = await create(toy, { input, tools: [{ ...never, ...secret }] });
    expect(mcp.headers.every(({ authorization }) => authorization === 'Bearer tok-123')).toBe(true);
    expect(mcp.headers.every((headers) => headers['x-team'] === 'key-456')).toBe(true);
    const kept = await (await toy.get(`${PATH}/${response.id}`)).text();
    for (const text of [JSON.stringify(response), kept, lines.join('\n')]) {
      expect(text).not.toContain('tok-123');
      expect(text).not.toContain('key-456');
      expect(text).not.toContain(mcp.url);
    }
    expect(lines.some((line) => line.includes('"asked":"add"') && line.includes('"outcome":"ok"'))).toBe(
      true,
    );
    // The list of one client is not that of another.
    await create(toy, { input, tools: [never] });
    expect(mcp.lists).toBe(2);
    const host = await refusal(toy, { input, tools: [{ ...never, headers: { Host: 'a' } }] });
    expect(host).toMatchObject({ status: 400, param: 'tools[0].headers' });
  });

  it('are counted, with what failed and how long it took', async () => {
    let calls = 0;
    const script = { call: () => (calls++ === 0 ? text('5') : text('no', true)) };
    const mcp = await mcpServer(script);
    opened.push(mcp);
    const toolServers = new McpServers(new Map([['calc', mcp.url]]), 5000, QUIET);
    const metrics = new ServerMetrics(new LiveModels());
    metrics.watchTools(toolServers);
    const count = async (asked: string, outcome: string) => {
      const labels = `server="calc",asked="${asked}",outcome="${outcome}"`;
      const [, value] = new RegExp(`^skein:mcp_requests_total\\{${labels}\\} (\\d+)$`, 'm').exec(
        await metrics.text(),
      )!;
      return Number(value);
    };
    expect(await count('call', 'ok')).toBe(0);
    const session = toolServers.named('calc')!.open({ authorization: undefined, headers: {} }, null);
    const { signal } = new AbortController();
    await session.list(signal);
    await session.list(signal); // kept
    await session.call('add', {}, signal);
    await session.call('add', {}, signal);
    session.close();
    expect(await count('list', 'ok')).toBe(1);
    expect(await count('list', 'failed')).toBe(0);
    expect(await count('call', 'ok')).toBe(1);
    expect(await count('call', 'failed')).toBe(1);
    expect(toolServers.counts().reduce((sum, { seconds }) => sum + seconds, 0)).toBeGreaterThan(0);
  });

  it('end their calls when the client leaves, when they are cancelled, and when their time is over', async () => {
    const hang = { call: () => new Promise<never>(() => {}) };
    const until = async (holds: () => boolean) => {
      for (let i = 0; i < 500 && !holds(); i++) await new Promise((resolve) => setTimeout(resolve, 10));
      expect(holds()).toBe(true);
    };
    const left = await served([ADDED, 'Hi'], { script: hang, timeoutMs: 60_000 });
    const leaving = new AbortController();
    const asked = left.toy.post(PATH, { input, tools: [never] }, { signal: leaving.signal });
    await until(() => left.mcp.calls.length === 1);
    leaving.abort();
    await (await asked).text();
    await until(() => left.mcp.cancelled === 1);
    expect(left.toy.engine.requests).toHaveLength(1);

    const over = await served([ADDED, 'Hi'], { script: hang, timeoutMs: 60_000 });
    const cut = await create(over.toy, { input, tools: [never], time_limit_ms: 500 });
    expect(cut).toMatchObject({ status: 'incomplete', incomplete_details: { stop_reason: 'time_limit' } });
    expect(cut.output[1]).toMatchObject({ type: 'mcp_call', status: 'incomplete', output: null });
    await until(() => over.mcp.cancelled === 1);

    const stopped = await served([ADDED, 'Hi'], { script: hang, timeoutMs: 60_000 });
    const headers = { 'x-request-id': 'mine' };
    const running = stopped.toy.post(PATH, { input, tools: [never] }, { headers });
    await until(() => stopped.mcp.calls.length === 1);
    expect((await stopped.toy.post('/v1/requests/mine/cancel', {})).status).toBe(200);
    expect(await (await running).json()).toMatchObject({ status: 'cancelled' });
    await until(() => stopped.mcp.cancelled === 1);

    const later = await served([ADDED, 'Hi'], { script: hang, timeoutMs: 60_000 });
    const begun = await create(later.toy, { input, tools: [never], background: true });
    expect(begun.status).toBe('in_progress');
    await until(() => later.mcp.calls.length === 1);
    const ended = await later.toy.post(`${PATH}/${begun.id}/cancel`, {});
    expect(await ended.json()).toMatchObject({ status: 'cancelled' });
    await until(() => later.mcp.cancelled === 1);
  });
});
