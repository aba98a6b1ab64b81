import { createHash } from 'node:crypto';
import { ApiError } from '../web/errors.js';
import type { ServerLog } from '../web/server-log.js';
import type { McpSession } from './mcp-session.js';
import { TOOL_LIMITS } from './tool-limits.js';
import type {
  CallOutcome,
  ServedToolList,
  ToolAccess,
  ToolServer,
  ToolServerCount,
  ToolServers,
  ToolSession,
} from './tool-server.js';

/** The servers that the operator has named, by the official client of the protocol, which is loaded when it is needed. */
export class McpServers implements ToolServers {
  readonly callTimeoutMs: number;
  readonly #servers: readonly McpServer[];

  /** @param urls addresses by the names of their servers @param callTimeoutMs most milliseconds of a call */
  constructor(urls: ReadonlyMap<string, string>, callTimeoutMs: number, log: ServerLog) {
    this.callTimeoutMs = callTimeoutMs;
    const lists = new KeptLists();
    this.#servers = [...urls].map(([name, url]) => new McpServer(name, url, lists, log));
  }

  get names(): readonly string[] {
    return this.#servers.map(({ name }) => name);
  }

  named(name: string): ToolServer | null {
    return this.#servers.find((server) => server.name === name) ?? null;
  }

  at(url: string): ToolServer | null {
    const asked = canonical(url);
    return this.#servers.find((server) => canonical(server.url) === asked) ?? null;
  }

  counts(): readonly ToolServerCount[] {
    return this.#servers.flatMap((server) => server.counts);
  }
}

/** An address in one spelling; what is none is itself. */
function canonical(url: string): string {
  return URL.canParse(url) ? new URL(url).href : url;
}

class McpServer implements ToolServer {
  readonly name: string;
  readonly url: string;
  readonly #lists: KeptLists;
  readonly #log: ServerLog;
  readonly counts: readonly ToolServerCount[];

  constructor(name: string, url: string, lists: KeptLists, log: ServerLog) {
    this.name = name;
    this.url = url;
    this.#lists = lists;
    this.#log = log;
    // All from the start: a rate needs a sample from before the first event.
    this.counts = (['list', 'call'] as const).flatMap((asked) =>
      (['ok', 'failed'] as const).map((outcome) => ({ server: name, asked, outcome, count: 0, seconds: 0 })),
    );
  }

  open(access: ToolAccess, wanted: ReadonlySet<string> | null): ToolSession {
    const { name: server, url } = this;
    let opened: Promise<McpSession> | null = null;
    const session = () => {
      opened ??= import('./mcp-session.js').then(({ McpSession }) => new McpSession(url, access));
      return opened;
    };
    return {
      list: (signal) =>
        this.#lists.get(keyOf(server, access, wanted), () =>
          this.#timed('list', 'list', async () => {
            const limit = AbortSignal.timeout(TOOL_LIMITS.listMs);
            try {
              return await (await session()).list(wanted, server, AbortSignal.any([signal, limit]));
            } catch (error) {
              signal.throwIfAborted();
              const why = limit.aborted
                ? `it has not answered within ${TOOL_LIMITS.listMs / 1000} seconds`
                : (error as Error).message;
              throw cannotList(server, why);
            }
          }),
        ),
      call: (tool, args, signal) =>
        this.#timed('call', tool, async () => {
          try {
            return await (await session()).call(tool, args, signal);
          } catch (error) {
            signal.throwIfAborted();
            return { text: `The call failed: ${(error as Error).message}.`, isError: true };
          }
        }),
      close: () => void opened?.then((one) => one.close()),
    };
  }

  /** Counts and logs what a server was asked, how long it took, and nothing of what was said. */
  async #timed<T extends ServedToolList | CallOutcome>(
    kind: ToolServerCount['asked'],
    asked: string,
    ask: () => Promise<T>,
  ): Promise<T> {
    const since = performance.now();
    let outcome: ToolServerCount['outcome'] = 'failed';
    try {
      const answer = await ask();
      if (!('isError' in answer && answer.isError)) outcome = 'ok';
      return answer;
    } finally {
      const ms = performance.now() - since;
      const counted = this.counts.find((one) => one.asked === kind && one.outcome === outcome)!;
      counted.count++;
      counted.seconds += ms / 1000;
      this.#log.info({ server: this.name, asked, outcome, ms: Math.round(ms) }, 'MCP server asked');
    }
  }
}

function cannotList(server: string, why: string): ApiError {
  return new ApiError(424, `The MCP server '${server}' cannot list its tools: ${why}.`, {
    type: 'external_connector_error',
    param: 'tools',
    code: 'mcp_list_failed',
  });
}

/** Lists belong to a server and to what its client gives along: another client may be shown other tools. */
function keyOf(
  server: string,
  { authorization, headers }: ToolAccess,
  wanted: ReadonlySet<string> | null,
): string {
  const all = [server, authorization ?? null, Object.entries(headers).sort(), wanted && [...wanted].sort()];
  return createHash('sha256').update(JSON.stringify(all)).digest('base64');
}

/** Lists of tools, each for a while; the oldest makes room. */
class KeptLists {
  readonly #kept = new Map<string, { list: ServedToolList; until: number }>();

  async get(key: string, ask: () => Promise<ServedToolList>): Promise<ServedToolList> {
    const found = this.#kept.get(key);
    if (found !== undefined && performance.now() < found.until) return found.list;
    const list = await ask();
    this.#kept.delete(key);
    this.#kept.set(key, { list, until: performance.now() + TOOL_LIMITS.listKeptMs });
    if (this.#kept.size > TOOL_LIMITS.listsKept) this.#kept.delete(this.#kept.keys().next().value!);
    return list;
  }
}
