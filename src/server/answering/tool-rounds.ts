import { SkeinError } from '../../../base/skein-error.js';
import type { ChatAsk } from '../../generation/chat-plan.js';
import type { CallOutcome, ToolSession } from '../mcp/tool-server.js';
import type { LiveRequest } from '../web/request-registry.js';
import type { AskedServer } from './asked-servers.js';
import { wantedNames } from './asked-servers.js';
import type { EnginePass } from './several-passes.js';

/** Bounds of what one request may have run. */
const ROUND_LIMITS = {
  /** Answers of the model with calls; after them it has to answer without. */
  rounds: 16,
  calls: 64,
  callsAtOnce: 8,
  /** Characters of a call's result that the model reads; the rest is cut. */
  resultLength: 65_536,
} as const;

/** A call of a tool of a server. */
export interface ServedCall {
  /** Label of the server in the request. */
  server_label: string;
  name: string;
  /** JSON, as the model wrote it. */
  arguments: string;
}

/** Why rounds end before the answer does. */
export type RoundsEnd = 'cancelled' | 'timeout';

class EndedRounds extends SkeinError {
  override name = 'EndedRounds';
  override readonly code = 'SKEIN_TOOL_ROUNDS';
  readonly why: RoundsEnd | 'left';

  constructor(why: RoundsEnd | 'left') {
    super(`The calls were ended: ${why}.`);
    this.why = why;
  }
}

interface RoundsOptions {
  servers: readonly AskedServer[];
  live: Pick<LiveRequest, 'onCancel'>;
  /** Most milliseconds of the whole answer; null: no limit. */
  timeLimitMs: number | null;
  /** Most milliseconds of a call. */
  callTimeoutMs: number;
  /** Most calls that the request asks for; undefined: no limit of its own. */
  maxCalls: number | undefined;
  /** Most characters of a result. */
  maxResult: number;
}

/** The tools of servers as one request uses them: connections, calls, and what may be left of both. */
export class ToolRounds {
  readonly #options: RoundsOptions;
  readonly #sessions = new Map<string, ToolSession>();
  readonly #stop = new AbortController();
  readonly #limit: ReturnType<typeof setTimeout> | undefined;
  #calls = 0;

  constructor(options: RoundsOptions) {
    this.#options = options;
    const { timeLimitMs } = options;
    if (timeLimitMs !== null) this.#limit = setTimeout(() => this.#end('timeout'), timeLimitMs);
  }

  /** Calls that have been made. */
  get numCalls(): number {
    return this.#calls;
  }

  get #most(): number {
    return Math.min(this.#options.maxCalls ?? ROUND_LIMITS.calls, ROUND_LIMITS.calls);
  }

  /** True as long as a further call may be made. */
  get mayCall(): boolean {
    return this.#calls < this.#most;
  }

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  session({ label, server, tool }: AskedServer): ToolSession {
    const known = this.#sessions.get(label);
    if (known !== undefined) return known;
    const { authorization, headers = {} } = tool;
    const opened = server.open({ authorization, headers }, wantedNames(tool));
    this.#sessions.set(label, opened);
    return opened;
  }

  /** Makes calls, some at once. @throws EndedRounds */
  async run<Call extends ServedCall>(
    calls: readonly Call[],
    onOutcome: (call: Call, outcome: CallOutcome) => void,
  ): Promise<void> {
    const { callsAtOnce } = ROUND_LIMITS;
    for (let start = 0; start < calls.length; start += callsAtOnce) {
      const some = calls.slice(start, start + callsAtOnce);
      await Promise.all(some.map(async (call) => onOutcome(call, await this.#outcome(call))));
    }
  }

  /** Runs what waits for servers, which the request's cancellation, its limit of time and its client's leaving end. */
  async whileLive<T>(run: () => Promise<T>): Promise<T> {
    this.#options.live.onCancel(() => this.#end('cancelled'));
    this.#stop.signal.throwIfAborted();
    return run();
  }

  /** Ends what runs, since the client has left. */
  abort(): void {
    this.#end('left');
  }

  close(): void {
    clearTimeout(this.#limit);
    for (const session of this.#sessions.values()) session.close();
  }

  #end(why: EndedRounds['why']): void {
    this.#stop.abort(new EndedRounds(why));
  }

  async #outcome(call: ServedCall): Promise<CallOutcome> {
    const server = this.#options.servers.find(({ label }) => label === call.server_label);
    if (server === undefined) return failed(`There is no MCP server '${call.server_label}' in this request.`);
    if (!this.mayCall) return failed(`The limit of ${this.#most} calls is reached.`);
    this.#calls++;
    const args = argumentsOf(call.arguments);
    if (args === null) return failed('The arguments are not a JSON object.');
    const { callTimeoutMs, maxResult } = this.#options;
    const limit = AbortSignal.timeout(callTimeoutMs);
    const signal = AbortSignal.any([this.#stop.signal, limit]);
    try {
      const { text, isError } = await this.session(server).call(call.name, args, signal);
      return { text: cut(text, Math.min(maxResult, ROUND_LIMITS.resultLength)), isError };
    } catch (error) {
      this.#stop.signal.throwIfAborted();
      if (!limit.aborted) throw error;
      return failed(`The call took longer than ${callTimeoutMs / 1000} seconds.`);
    }
  }
}

/** What changes of the choice of tools from pass to pass. @param isFirst false: there have been calls, so that none is required any more */
export function choiceOfPass(
  { toolChoice }: Pick<ChatAsk, 'toolChoice'>,
  mayCall: boolean,
  isFirst: boolean,
): Partial<Pick<ChatAsk, 'toolChoice' | 'showsTools'>> {
  // The tools stay in the prompt, so that it begins as the one before it.
  if (!mayCall) return { toolChoice: { mode: 'none' }, showsTools: true };
  return isFirst || toolChoice?.mode === 'none' ? {} : { toolChoice: { mode: 'auto' } };
}

/** An answer whose calls run here, as its protocol writes it. */
export interface RoundsAnswer<Call extends ServedCall> {
  /** Lists the tools, and makes the passes before the answer. @returns false where there is no answer to make */
  begin(): AsyncGenerator<EnginePass, boolean>;
  /**
   * Makes the next pass; null: nothing may be generated any more, and the answer has ended. @param mayCall false: the
   * model has to answer without calls. @param isFirst false: there have been calls
   */
  pass(mayCall: boolean, isFirst: boolean): Promise<EnginePass | null>;
  /** Takes the calls that are to be run: those of the pass that has ended, or approved ones before the first. */
  takeCalls(): readonly Call[];
  outcome(call: Call, outcome: CallOutcome): void;
  /** True where the answer continues with the results of the calls; else it ends. */
  goesOn(): boolean;
  end(why: RoundsEnd): void;
}

/**
 * The passes of an answer whose calls run here, one after the other:
 *
 *   lists -> [ approved calls ] -> pass -> calls -> pass -> calls -> ... -> pass without calls
 *
 * Each prompt begins as the one before it, so that the cache has all but what the calls gave.
 * @param tell sends events that no piece brings
 */
export async function* toolLoop<Call extends ServedCall>(
  rounds: ToolRounds,
  answer: RoundsAnswer<Call>,
  tell: () => void,
): AsyncGenerator<EnginePass, void> {
  try {
    if (!(yield* answer.begin())) return;
    for (let round = 0; ; round++) {
      const calls = answer.takeCalls();
      await rounds.whileLive(() =>
        rounds.run(calls, (call, outcome) => {
          answer.outcome(call, outcome);
          tell();
        }),
      );
      if (round > 0 && !answer.goesOn()) return;
      const pass = await answer.pass(
        rounds.mayCall && round < ROUND_LIMITS.rounds,
        round === 0 && calls.length === 0,
      );
      if (pass === null) return;
      yield pass;
    }
  } catch (error) {
    if (!(error instanceof EndedRounds)) throw error;
    if (error.why !== 'left') answer.end(error.why);
  }
}

function failed(text: string): CallOutcome {
  return { text, isError: true };
}

function argumentsOf(text: string): Record<string, unknown> | null {
  try {
    const args = JSON.parse(text.trim() === '' ? '{}' : text) as unknown;
    return typeof args === 'object' && args !== null && !Array.isArray(args)
      ? (args as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}

function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  // Half a character at the cut would not be valid UTF-8.
  const kept = text.slice(0, most).replace(/[\ud800-\udbff]$/, '');
  return `${kept}\n[${text.length - kept.length} of ${text.length} characters were cut off]`;
}
