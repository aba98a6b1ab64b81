import { defineRoute } from '../services.js';

export const mcpServersRoute = defineRoute({
  method: 'get',
  path: '/v1/mcp_servers',
  tags: ['Models'],
  summary: 'Lists the MCP servers whose tools requests may name: those of --mcp-server',
  responses: async () => (await import('../answers/server.js')).mcpServersResponses(),
  handle: async (_, { toolServers }) => {
    const names = toolServers?.names ?? [];
    return Response.json({
      object: 'list',
      data: names.map((server_label) => ({ object: 'mcp_server', server_label })),
    });
  },
});
