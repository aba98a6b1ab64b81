import { type AskedServer, askedServers, isAllowed, wantedNames } from '../../answering/asked-servers.js';
import type { EnginePass } from '../../answering/several-passes.js';
import type { RoundsAnswer, RoundsEnd, ToolRounds } from '../../answering/tool-rounds.js';
import { ListedTools } from '../../mcp/listed-tools.js';
import type { CallOutcome, ServedToolList } from '../../mcp/tool-server.js';
import { toApiError } from '../../web/errors.js';
import type { RequestMemory } from '../../web/memory/request-memory.js';
import { type Warn, warnOfAll } from '../../web/warnings.js';
import type { ApprovedCall } from './approvals.js';
import type { Conversation } from './conversation.js';
import type { ResponseMaking } from './response-making.js';
import type { McpCallItem } from './response-object.js';
import type { KeptItem } from './response-store.js';
import { modelName } from './tool-set.js';

/** Bytes of memory for a character of a result: its item, its event and its part of a prompt. */
const PER_CHARACTER = 8;

/** What the passes of a response are made with. */
export interface ServedPasses {
  /** Passes before the answer. @returns false where there is no answer to make */
  before(): AsyncGenerator<EnginePass, boolean>;
  answer(mayCall: boolean, isFirst: boolean): Promise<EnginePass | null>;
}

interface ServedAnswerOptions {
  servers: readonly AskedServer[];
  approved: readonly ApprovedCall[];
  conversation: Conversation;
  making: ResponseMaking;
  rounds: ToolRounds;
  passes: ServedPasses;
  memory: RequestMemory;
  tell: () => void;
  warn: Warn;
}

/** A response whose calls run here: its lists, its calls and its passes as the rounds want them. */
export class ServedAnswer implements RoundsAnswer<McpCallItem> {
  readonly #options: ServedAnswerOptions;

  constructor(options: ServedAnswerOptions) {
    this.#options = options;
  }

  /** @throws ApiError 424 where a server cannot list its tools, 400 where they are too many */
  async *begin(): AsyncGenerator<EnginePass, boolean> {
    const { conversation, servers, rounds, passes, making } = this.#options;
    making.start();
    for (const server of servers) {
      const known = listInContext(conversation.items, server);
      const { tools } = known ?? (await rounds.whileLive(() => this.#list(server)));
      conversation.tools.addServed(server, tools);
    }
    if (!(yield* passes.before())) return false;
    for (const call of this.#options.approved) making.served.approved(call);
    making.closeItem();
    return true;
  }

  async #list(server: AskedServer): Promise<ServedToolList> {
    const { making, rounds, tell, warn, memory } = this.#options;
    const { served } = making;
    const item = served.beginList(server.label);
    tell();
    try {
      const list = await rounds.session(server).list(rounds.signal);
      const shown = list.tools.filter((tool) => isAllowed(server.tool, tool));
      memory.addTaken(PER_CHARACTER * JSON.stringify(shown).length);
      served.endList(item, shown);
      warnOfAll(list.warnings, warn);
      return list;
    } catch (error) {
      if (!rounds.signal.aborted) served.endList(item, { error: toApiError(error).message });
      throw error;
    } finally {
      tell();
    }
  }

  pass(mayCall: boolean, isFirst: boolean): Promise<EnginePass | null> {
    return this.#options.passes.answer(mayCall, isFirst);
  }

  takeCalls(): readonly McpCallItem[] {
    const { making, conversation, tell } = this.#options;
    const taken = making.served.take();
    const known = taken.filter(
      ({ server_label: label, name }) => conversation.tools.find(modelName(name, label)) !== null,
    );
    for (const item of taken.filter((one) => !known.includes(one))) {
      const text = `The MCP server '${item.server_label}' has no tool '${item.name}' that may be called.`;
      making.served.outcome(item, { text, isError: true });
    }
    tell();
    return known;
  }

  outcome(item: McpCallItem, outcome: CallOutcome): void {
    this.#options.memory.addTaken(PER_CHARACTER * outcome.text.length);
    this.#options.making.served.outcome(item, outcome);
  }

  goesOn(): boolean {
    const { making } = this.#options;
    if (making.isOver) return false;
    if (!making.waitsForClient) return true;
    making.endBetween('stop');
    return false;
  }

  end(why: RoundsEnd): void {
    this.#options.making.endBetween(why);
  }
}

/** The tools that a list in the conversation has; null: there is none. */
function listInContext(items: readonly KeptItem[], { label, tool }: AskedServer): ServedToolList | null {
  const item = items.findLast(
    (one) => one.type === 'mcp_list_tools' && one.server_label === label && one.error == null,
  );
  if (item?.type !== 'mcp_list_tools') return null;
  const tools = new ListedTools(wantedNames(tool));
  tools.add(item.tools.map(({ input_schema: inputSchema, ...one }) => ({ ...one, inputSchema })));
  return tools.list(label);
}

/** Adds the tools of those servers whose lists are in a conversation, for requests that ask no server. @throws as askedServers */
export function addKnownTools(
  { items, tools }: Conversation,
  ...asked: Parameters<typeof askedServers>
): void {
  for (const server of askedServers(...asked)) {
    const known = listInContext(items, server);
    if (known !== null) tools.addServed(server, known.tools);
  }
}
