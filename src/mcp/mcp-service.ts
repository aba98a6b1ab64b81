import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import * as z from 'zod';
import { messageOf } from '../../base/error-text.js';
import { skeinVersion } from '../../base/package-info.js';
import type { ModelTool, Post } from './model-tools.js';

/** What an MCP server offers, once its models are loaded. */
export interface Offer {
  tools: readonly ModelTool[];
  post: Post;
}

/** An MCP server for one client. It answers at once, and its tools wait for the models. */
export function mcpService(offer: Promise<Offer>): Server {
  const server = new Server(
    { name: 'skein', title: 'Skein', version: skeinVersion() },
    { capabilities: { tools: {} } },
  );
  server.setRequestHandler(ListToolsRequestSchema, async () => ({ tools: (await offer).tools.map(listed) }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal }) => {
    const { tools, post } = await offer;
    const tool = tools.find(({ name }) => name === params.name);
    if (tool === undefined) {
      const names = tools.map(({ name }) => name).join(', ');
      return failed(`There is no tool '${params.name}': the tools are ${names}.`);
    }
    const parsed = tool.input.safeParse(params.arguments ?? {});
    if (!parsed.success)
      return failed(`The arguments are not those of '${tool.name}': ${faults(parsed.error)}.`);
    try {
      const { text, structured } = await tool.call(parsed.data, post, signal);
      return { content: [{ type: 'text', text }], structuredContent: structured };
    } catch (error) {
      return failed(messageOf(error));
    }
  });
  return server;
}

function listed({ name, title, description, input, output }: ModelTool) {
  return {
    ...{ name, title, description },
    inputSchema: schemaOf(input, 'input'),
    outputSchema: schemaOf(output, 'output'),
    annotations: { readOnlyHint: true, openWorldHint: false },
  };
}

function schemaOf(schema: z.ZodObject, io: 'input' | 'output') {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io });
  return rest as { type: 'object' };
}

function faults({ issues }: z.ZodError): string {
  return issues.map(({ path, message }) => `${path.join('.') || 'they'}: ${message}`).join('; ');
}

function failed(text: string) {
  return { content: [{ type: 'text' as const, text }], isError: true };
}
