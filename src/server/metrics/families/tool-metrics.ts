import type { Registry } from 'prom-client';
import { liveCounter } from './live-family.js';

/** How often an MCP server was asked for something, with one outcome. */
export interface ToolServerAsks {
  server: string;
  asked: string;
  outcome: string;
  count: number;
  seconds: number;
}

/** What MCP servers were asked, as it is when the metrics are read. */
export function toolFamilies(registry: Registry, counts: () => readonly ToolServerAsks[]): void {
  const family = (name: string, help: string, of: 'count' | 'seconds') =>
    liveCounter(registry, {
      ...{ name, help, labelNames: ['server', 'asked', 'outcome'] },
      read: () =>
        counts().map(({ server, asked, outcome, [of]: value }) => [{ server, asked, outcome }, value]),
    });
  family(
    'skein:mcp_requests_total',
    'Lists and calls that MCP servers were asked for; failed: also calls whose tool reports an error',
    'count',
  );
  family('skein:mcp_request_seconds_total', 'Time that MCP servers took for them, added up', 'seconds');
}
