import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import {
  StreamableHTTPClientTransport,
  StreamableHTTPError,
} from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { McpError } from '@modelcontextprotocol/sdk/types.js';
import * as z from 'zod';
import { skeinVersion } from '../../../base/package-info.js';
import { SkeinError } from '../../../base/skein-error.js';
import { boundedFetch } from './bounded-fetch.js';
import { ListedTools } from './listed-tools.js';
import { outcomeOf } from './result-text.js';
import { TOOL_LIMITS } from './tool-limits.js';
import type { CallOutcome, ServedToolList, ToolAccess } from './tool-server.js';

/** A page of a list, whose tools are looked at one by one. */
const page = z.looseObject({ tools: z.array(z.unknown()), nextCursor: z.string().optional() });
const result = z.looseObject({});

/** More than any request may take here: each caller has a limit of its own. */
const NO_TIMEOUT_MS = 2 ** 31 - 1;

/** A server's refusal or silence, as a clause. */
class SessionFault extends SkeinError {
  override name = 'SessionFault';
  override readonly code = 'SKEIN_MCP_SERVER';
}

/** A connection to a server of tools over Streamable HTTP. Nothing that the server offers but its tools is taken. */
export class McpSession {
  readonly #client: Client;
  readonly #transport: StreamableHTTPClientTransport;
  /** Aborted where an answer is too long: the client of the library would wait for it. */
  readonly #tooLong = new AbortController();
  #connected: Promise<void> | null = null;

  constructor(url: string, { authorization, headers }: ToolAccess) {
    const sent = new Headers(headers);
    if (authorization !== undefined) sent.set('authorization', `Bearer ${authorization}`);
    this.#transport = new StreamableHTTPClientTransport(new URL(url), {
      requestInit: { headers: sent },
      fetch: boundedFetch((error) => this.#tooLong.abort(error)),
      reconnectionOptions: {
        maxRetries: 0,
        initialReconnectionDelay: 1000,
        maxReconnectionDelay: 1000,
        reconnectionDelayGrowFactor: 1,
      },
    });
    this.#client = new Client({ name: 'skein', version: skeinVersion() }, { capabilities: {} });
  }

  /** @throws SessionFault; the reason of an aborted signal */
  async list(
    wanted: ReadonlySet<string> | null,
    server: string,
    signal: AbortSignal,
  ): Promise<ServedToolList> {
    const tools = new ListedTools(wanted);
    let cursor: string | undefined;
    for (let pages = 0; pages < TOOL_LIMITS.pages; pages++) {
      const params = cursor === undefined ? {} : { cursor };
      const found = await this.#ask(signal, (options) =>
        this.#client.request({ method: 'tools/list', params }, page, options),
      );
      tools.add(found.tools);
      if (tools.excess !== null) throw new SessionFault(`${tools.excess}: name some in 'allowed_tools'`);
      cursor = found.nextCursor;
      if (cursor === undefined || tools.isComplete) return tools.list(server);
    }
    throw new SessionFault(`it lists its tools in more than ${TOOL_LIMITS.pages} pages`);
  }

  /** @throws SessionFault; the reason of an aborted signal */
  call(name: string, args: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<CallOutcome> {
    return this.#ask(signal, async (options) => {
      const params = { name, arguments: { ...args } };
      return outcomeOf(await this.#client.request({ method: 'tools/call', params }, result, options));
    });
  }

  /** Ends the connection, and what the server keeps of it. */
  close(): void {
    if (this.#connected === null) return;
    const end = async () => {
      await this.#connected;
      const silence = setTimeout(() => void this.#client.close(), 1000).unref();
      await this.#transport.terminateSession();
      clearTimeout(silence);
    };
    void end()
      .catch(() => {})
      .then(() => this.#client.close())
      .catch(() => {});
  }

  async #ask<T>(
    signal: AbortSignal,
    ask: (options: { signal: AbortSignal; timeout: number }) => Promise<T>,
  ): Promise<T> {
    // The library never lets go of a signal, and would cancel what has long been answered.
    const own = new AbortController();
    const signals = [signal, this.#tooLong.signal];
    const onAbort = () => own.abort(signals.find(({ aborted }) => aborted)?.reason);
    if (signals.some(({ aborted }) => aborted)) onAbort();
    for (const one of signals) one.addEventListener('abort', onAbort);
    const options = { signal: own.signal, timeout: NO_TIMEOUT_MS };
    try {
      this.#connected ??= this.#client.connect(this.#transport, options);
      await this.#connected;
      return await ask(options);
    } catch (error) {
      signal.throwIfAborted();
      throw new SessionFault(faultOf(this.#tooLong.signal.aborted ? this.#tooLong.signal.reason : error));
    } finally {
      for (const one of signals) one.removeEventListener('abort', onAbort);
    }
  }
}

/** What went wrong, without addresses and headers. */
function faultOf(error: unknown): string {
  if (error instanceof StreamableHTTPError) return httpFault(error);
  if (error instanceof McpError) return `it answers: ${error.message.slice(0, 300)}`;
  if (error instanceof z.ZodError) return 'its answer is not of the Model Context Protocol';
  if (!(error instanceof Error)) return 'it cannot be used';
  const { cause } = error;
  const code = cause instanceof Error && 'code' in cause ? ` (${String(cause.code)})` : '';
  if (error instanceof TypeError) return `it cannot be reached${code}`;
  return error.message.slice(0, 300);
}

function httpFault({ code }: StreamableHTTPError): string {
  if (code === undefined || code < 0) return 'its answer is not of the Model Context Protocol';
  if (code >= 300 && code < 400) return `it redirects to another place (HTTP ${code}), which is not followed`;
  return `it answers with HTTP ${code}`;
}
