import type { ServedTool, ToolServer, ToolServers } from '../mcp/tool-server.js';
import { ApiError } from '../web/errors.js';
import type { McpTool, ToolFilter } from './schemas/mcp-tools.js';

/** A server of tools as a request asks for it. */
export interface AskedServer {
  label: string;
  server: ToolServer;
  tool: McpTool;
  /** Path of the entry in the request. */
  place: string;
}

/** The servers that a request names, of those that the operator has. @throws ApiError 400 for others */
export function askedServers(
  tools: readonly { type: string }[] | undefined,
  servers: ToolServers | null,
): AskedServer[] {
  const asked: AskedServer[] = [];
  for (const [index, tool] of (tools ?? []).entries()) {
    if (!isMcp(tool)) continue;
    const place = `tools[${index}]`;
    const { server_label: label } = tool;
    if (asked.some((one) => one.label === label)) {
      const param = `${place}.server_label`;
      throw new ApiError(400, `'${param}' is '${label}', as another MCP server is called already.`, {
        param,
      });
    }
    asked.push({ label, server: namedServer(tool, place, servers), tool, place });
  }
  return asked;
}

export function isMcp(tool: { type: string }): tool is McpTool {
  return tool.type === 'mcp';
}

function namedServer(
  { server_label: label, server_url: url }: McpTool,
  place: string,
  servers: ToolServers | null,
): ToolServer {
  if (servers === null || servers.names.length === 0) {
    const message = `'${place}' is a tool of the type mcp, and this server runs no tools of MCP servers: it has to be started with --mcp-server NAME=URL.`;
    throw new ApiError(400, message, { param: place, code: 'mcp_not_enabled' });
  }
  const found = url === undefined ? servers.named(label) : servers.at(url);
  if (found !== null) return found;
  const param = url === undefined ? `${place}.server_label` : `${place}.server_url`;
  const known = servers.names.map((name) => `'${name}'`).join(', ');
  const message =
    url === undefined
      ? `'${param}' is '${label}', but the MCP servers (--mcp-server) are ${known}.`
      : `'${param}' is the address of none of the MCP servers (--mcp-server) ${known}.`;
  throw new ApiError(400, message, { param, code: 'mcp_server_not_allowed' });
}

/** Names of the only tools that a request wants of a server; null: all. */
export function wantedNames({ allowed_tools: allowed }: McpTool): ReadonlySet<string> | null {
  if (allowed === undefined) return null;
  const names = Array.isArray(allowed) ? allowed : allowed.tool_names;
  return names === undefined ? null : new Set(names);
}

/** True for a tool that a request may call. */
export function isAllowed({ allowed_tools: allowed }: McpTool, tool: ServedTool): boolean {
  if (allowed === undefined) return true;
  return Array.isArray(allowed) ? allowed.includes(tool.name) : fits(allowed, tool);
}

/** True for a tool whose calls wait for the client's approval. */
export function needsApproval({ require_approval: rule = 'always' }: McpTool, tool: ServedTool): boolean {
  if (typeof rule === 'string') return rule === 'always';
  const { always, never } = rule;
  if (always !== undefined && fits(always, tool)) return true;
  if (never !== undefined) return !fits(never, tool);
  return always === undefined;
}

function fits({ tool_names: names, read_only: readOnly }: ToolFilter, { name, annotations }: ServedTool) {
  if (names !== undefined && !names.includes(name)) return false;
  if (readOnly === undefined) return names !== undefined;
  return (annotations?.readOnlyHint === true) === readOnly;
}
