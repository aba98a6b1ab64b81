/** A tool that a server of tools offers. */
export interface ServedTool {
  name: string;
  description: string | undefined;
  /** JSON schema of its arguments, an object's. */
  inputSchema: Readonly<Record<string, unknown>>;
  /** What the server says of it besides, such as `readOnlyHint`; null: nothing. */
  annotations: Readonly<Record<string, unknown>> | null;
}

/** What a call gave. */
export interface CallOutcome {
  /** Its result, or what went wrong. */
  text: string;
  isError: boolean;
}

/** What a client gives along for a server of tools; it is sent to this server alone, and neither kept nor logged. */
export interface ToolAccess {
  /** Token for the header Authorization; undefined: none. */
  authorization: string | undefined;
  headers: Readonly<Record<string, string>>;
}

/** A connection to a server of tools, for one request. It is made when it is first needed. */
export interface ToolSession {
  /** The tools of the server. @throws ApiError 424 where it cannot list them; the reason of an aborted signal */
  list(signal: AbortSignal): Promise<ServedToolList>;
  /** Calls a tool. Whatever goes wrong at the server is an outcome. @throws the reason of an aborted signal */
  call(name: string, args: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<CallOutcome>;
  close(): void;
}

export interface ServedToolList {
  tools: readonly ServedTool[];
  /** What was left out, in sentences. */
  warnings: readonly string[];
}

/** What was asked of a server, and what came of it. */
export interface ToolServerCount {
  server: string;
  asked: 'list' | 'call';
  /** `failed`: also a call whose tool reports an error. */
  outcome: 'ok' | 'failed';
  count: number;
  seconds: number;
}

/** A server of tools that the operator has named. */
export interface ToolServer {
  readonly name: string;
  /** @param wanted names of the only tools that matter; null: all do */
  open(access: ToolAccess, wanted: ReadonlySet<string> | null): ToolSession;
}

/** The servers of tools (MCP) that requests may use. */
export interface ToolServers {
  readonly names: readonly string[];
  /** Most milliseconds of a call. */
  readonly callTimeoutMs: number;
  named(name: string): ToolServer | null;
  at(url: string): ToolServer | null;
  /** What the servers were asked since the start; lists that were kept do not count. */
  counts(): readonly ToolServerCount[];
}
