import OpenAI from 'openai';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { QueueLab, until } from '../../../tools/support/queue/queue-lab.js';
import { mcpServer, type TestMcpServer } from '../support/mcp-server.js';
import {
  cleanEnvironment,
  cliPath,
  type SkeinProcess,
  start,
  testCacheDir,
} from '../support/skein-process.js';
import { describeWithNats, testNats } from '../support/test-nats.js';

const WORKER = ['--threads', '1', '--cache-dir', testCacheDir, '--kv-cache-tokens', '4096'];

describeWithNats('tools of MCP servers through a gateway', () => {
  let lab: QueueLab;
  let mcp: TestMcpServer;
  let gateway: SkeinProcess;
  let client: OpenAI;

  beforeAll(async () => {
    mcp = await mcpServer();
    lab = await QueueLab.start({ nats: testNats!, environment: cleanEnvironment({}) });
    const named = ['--nats', lab.nats.url, '--cache-dir', testCacheDir, '--mcp-server', `calc=${mcp.url}`];
    gateway = await start([cliPath, 'gateway', '--port', '0', ...named], {});
    client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0 });
    await lab.startWorker(WORKER);
    await until('the worker', async () => (await client.models.list()).data.length === 1);
  });
  afterAll(async () => {
    await gateway?.stop();
    await lab?.close();
    await mcp?.close();
  });

  it('are asked by the gateway, at once and in the background, whose response is no task of another', async () => {
    const tool: OpenAI.Responses.Tool.Mcp = {
      ...{ type: 'mcp', server_label: 'calc' },
      ...{ allowed_tools: ['add'], require_approval: 'never' },
    };
    const ask: OpenAI.Responses.ResponseCreateParamsNonStreaming = {
      ...{ input: 'What is two plus three?', tools: [tool], tool_choice: 'required' },
      ...{ max_tool_calls: 1, parallel_tool_calls: false, max_output_tokens: 100 },
    };
    const response = await client.responses.create(ask);
    expect(response.output.slice(0, 2)).toMatchObject([
      { type: 'mcp_list_tools', tools: [{ name: 'add' }] },
      { type: 'mcp_call', status: 'completed', output: expect.stringMatching(/^\d+$/) },
    ]);
    const later = await client.responses.create({
      ...ask,
      background: true,
    });
    expect(later.status).toBe('in_progress');
    await until('the response in the background', async () => {
      return (await client.responses.retrieve(later.id)).status !== 'in_progress';
    });
    const { output } = await client.responses.retrieve(later.id);
    expect(output[1]).toMatchObject({ type: 'mcp_call', status: 'completed' });
    // An earlier response is found in the place that gateways share, with its calls.
    const next = await client.responses.create({
      ...{ tools: [tool], tool_choice: 'none', max_output_tokens: 4 },
      ...{ previous_response_id: response.id, input: 'Sure?' },
    });
    expect(next.output.map(({ type }) => type)).toEqual(['message']);
    expect(mcp.lists).toBe(1);
  });
});
