import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { mcpServer, type TestMcpServer } from '../support/mcp-server.js';
import { expectIdle } from '../support/metrics.js';
import { type SkeinProcess, startServer } from '../support/skein-process.js';

const input = 'What is two plus three?';

describe('tools of an MCP server by the openai package from npm against skein serve', () => {
  let mcp: TestMcpServer;
  let server: SkeinProcess;
  let client: OpenAI;
  const tool: OpenAI.Responses.Tool.Mcp = {
    type: 'mcp',
    server_label: 'calc',
    allowed_tools: ['add'],
    require_approval: 'never',
  };
  const ask = {
    model: 'smol',
    temperature: 0,
    max_output_tokens: 200,
    tools: [tool],
    parallel_tool_calls: false,
  };

  beforeAll(async () => {
    mcp = await mcpServer();
    server = await startServer([
      '--served-model-name',
      'smol',
      '--mcp-server',
      `calc=${mcp.url}`,
      '--max-active-requests',
      '4',
    ]);
    client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
  });

  afterAll(async () => {
    await server?.stop();
    await mcp?.close();
  });

  it('run within a response, and are remembered by the next', async () => {
    const first = await client.responses.create({ ...ask, input, tool_choice: 'required' });
    const [list, call, ...rest] = first.output;
    expect(list).toMatchObject({ type: 'mcp_list_tools', server_label: 'calc', tools: [{ name: 'add' }] });
    expect(call).toMatchObject({ type: 'mcp_call', name: 'add', status: 'completed' });
    expect(rest.length).toBeGreaterThan(0);
    const { a, b } = JSON.parse((call as OpenAI.Responses.ResponseOutputItem.McpCall).arguments) as {
      a: number;
      b: number;
    };
    expect((call as OpenAI.Responses.ResponseOutputItem.McpCall).output).toBe(String(a + b));
    // The second pass finds the first one's prompt in the cache.
    expect(first.usage!.input_tokens_details.cached_tokens).toBeGreaterThan(first.usage!.input_tokens / 4);
    const lists = mcp.lists;
    const second = await client.responses.create({
      ...ask,
      input: 'Are you sure?',
      previous_response_id: first.id,
      tool_choice: 'none',
    });
    expect(second.output_text).not.toBe('');
    expect(mcp.lists).toBe(lists);
    const items: string[] = [];
    for await (const item of client.responses.inputItems.list(second.id, { order: 'asc' }))
      items.push(item.type);
    expect(items.slice(0, 3)).toEqual(['message', 'mcp_list_tools', 'mcp_call']);
  });

  it('are streamed as its accumulator takes them', async () => {
    const stream = client.responses.stream({ ...ask, input, tool_choice: 'required' });
    const types = new Set<string>();
    let args = '';
    for await (const event of stream) {
      types.add(event.type);
      if (event.type === 'response.mcp_call_arguments.delta') args += event.delta;
    }
    const { output } = await stream.finalResponse();
    const call = output.find((item) => item.type === 'mcp_call')!;
    expect(args.startsWith(call.arguments)).toBe(true);
    for (const type of [
      'response.mcp_list_tools.in_progress',
      'response.mcp_list_tools.completed',
      'response.mcp_call.in_progress',
      'response.mcp_call_arguments.done',
      'response.mcp_call.completed',
    ])
      expect(types).toContain(type);
  });

  it('are approved and refused', async () => {
    const asking = { ...ask, tools: [{ ...tool, require_approval: 'always' as const }] };
    const first = await client.responses.create({ ...asking, input, tool_choice: 'required' });
    const request = first.output.find((item) => item.type === 'mcp_approval_request')!;
    expect(request).toMatchObject({ name: 'add', server_label: 'calc' });
    const calls = mcp.calls.length;
    const answer = (approve: boolean) =>
      client.responses.create({
        ...asking,
        previous_response_id: first.id,
        input: [{ type: 'mcp_approval_response', approval_request_id: request.id, approve }],
        tool_choice: 'none',
      });
    const approved = await answer(true);
    expect(approved.output[0]).toMatchObject({ type: 'mcp_call', approval_request_id: request.id });
    expect(mcp.calls).toHaveLength(calls + 1);
    const refused = await answer(false);
    expect(refused.output.map(({ type }) => type)).toEqual(['message']);
    expect(mcp.calls).toHaveLength(calls + 1);
  });

  it('run within a chat', async () => {
    const chat = await client.chat.completions.create({
      model: 'smol',
      temperature: 0,
      max_completion_tokens: 200,
      messages: [{ role: 'user', content: input }],
      tools: [tool as never],
      tool_choice: 'required',
    });
    const message = chat.choices[0]!.message as { mcp_calls?: { name: string; error: unknown }[] };
    expect(message.mcp_calls![0]).toMatchObject({ name: 'add', error: null });
  });

  it('are errors of its classes where they cannot be used', async () => {
    const other = { ...ask, tools: [{ ...tool, server_url: 'http://169.254.169.254/mcp' }] };
    await expect(client.responses.create({ ...other, input })).rejects.toThrow(OpenAI.BadRequestError);
    await expectIdle(server.url);
  });
});
