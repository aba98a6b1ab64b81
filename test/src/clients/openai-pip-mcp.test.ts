import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { testModelPath } from '../../support/test-model.js';
import { mcpServer, type TestMcpServer } from '../support/mcp-server.js';
import { type SkeinProcess, startServer } from '../support/skein-process.js';
import { testPython } from '../support/test-python.js';

const script = `
import json, sys
from openai import OpenAI

client = OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)
tool = {"type": "mcp", "server_label": "calc", "allowed_tools": ["add"], "require_approval": "never"}
ask = {
    "model": client.models.list().data[0].id,
    "temperature": 0,
    "max_output_tokens": 100,
    "max_tool_calls": 1,
    "parallel_tool_calls": False,
    "tools": [tool],
    "input": "What is two plus three?",
    "tool_choice": "required",
}
whole = client.responses.create(**ask)
with client.responses.stream(**ask) as stream:
    told = list(stream)
events = [event.type for event in told]
# The last event, which says that a limit was reached where the model does not end.
final = told[-1].response
asking = {**ask, "tools": [{**tool, "require_approval": "always"}]}
first = client.responses.create(**asking)
request = next(item for item in first.output if item.type == "mcp_approval_request")
rest = {key: value for key, value in asking.items() if key not in ("input", "tool_choice")}
second = client.responses.create(
    previous_response_id=first.id,
    input=[{"type": "mcp_approval_response", "approval_request_id": request.id, "approve": True}],
    **rest,
)
call = next(item for item in whole.output if item.type == "mcp_call")
print(json.dumps({
    "types": [item.type for item in whole.output[:2]],
    "call": [call.name, call.output, call.error, call.status],
    "arguments": json.loads(call.arguments),
    "streamed": [item.type for item in final.output[:2]],
    "events": sorted({event for event in events if ".mcp_" in event}),
    "approved": [second.output[0].type, second.output[0].approval_request_id == request.id],
}))
`;

describe.skipIf(testPython === null || testModelPath === null)(
  'tools of an MCP server by the openai package from pip',
  () => {
    let mcp: TestMcpServer;
    let server: SkeinProcess;
    beforeAll(async () => {
      mcp = await mcpServer();
      const limits = [
        '--max-active-requests',
        '4',
        '--max-context-tokens',
        '2048',
        '--kv-cache-tokens',
        '8192',
      ];
      const named = ['--model', testModelPath!, '--weights', 'bf16', '--mcp-server', `calc=${mcp.url}`];
      server = await startServer([...named, ...limits]);
    });
    afterAll(async () => {
      await server?.stop();
      await mcp?.close();
    });

    it('run within a response, streamed, whole and approved', async () => {
      const { stdout } = await promisify(execFile)(testPython!, ['-c', script, `${server.url}/v1`]);
      const told = JSON.parse(stdout) as { arguments: { a: number; b: number } };
      const sum = String(told.arguments.a + told.arguments.b);
      expect(told).toMatchObject({
        types: ['mcp_list_tools', 'mcp_call'],
        call: ['add', sum, null, 'completed'],
        streamed: ['mcp_list_tools', 'mcp_call'],
        events: [
          'response.mcp_call.completed',
          'response.mcp_call.in_progress',
          'response.mcp_call_arguments.delta',
          'response.mcp_call_arguments.done',
          'response.mcp_list_tools.completed',
          'response.mcp_list_tools.in_progress',
        ],
        approved: ['mcp_call', true],
      });
    });
  },
);
