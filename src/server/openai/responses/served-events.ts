import type { CallOutcome, ServedTool } from '../../mcp/tool-server.js';
import { itemJson } from './response-json.js';
import type { McpApprovalItem, McpCallItem, McpListItem, newId, OutputItem } from './response-object.js';

interface ServedOptions {
  /** Begins an item of the output, the one before it having ended. */
  begin: (item: OutputItem) => void;
  place: (item: OutputItem) => { item_id: string; output_index: number };
  tell: (type: string, fields: object) => void;
  newId: typeof newId;
}

/** Makes the items of tools of servers, with their events in OpenAI's order: lists, calls, and calls that wait for approval. */
export class ServedEvents {
  readonly #options: ServedOptions;
  /** Calls whose arguments are whole, and that were not run yet. */
  #waiting: McpCallItem[] = [];
  /** Calls that are being run. */
  readonly #running = new Set<McpCallItem>();

  constructor(options: ServedOptions) {
    this.#options = options;
  }

  get hasWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  beginList(server_label: string): McpListItem {
    const item: McpListItem = {
      ...{ type: 'mcp_list_tools', id: this.#options.newId('mcpl') },
      ...{ server_label, tools: [], error: null },
    };
    this.#options.begin(item);
    this.#tell('response.mcp_list_tools.in_progress', item);
    return item;
  }

  endList(item: McpListItem, found: readonly ServedTool[] | { error: string }): void {
    if ('error' in found) item.error = found.error;
    else item.tools = found.map(listed);
    this.#tell(`response.mcp_list_tools.${item.error === null ? 'completed' : 'failed'}`, item);
    this.#done(item);
  }

  /** Begins a call by the model. */
  call(server_label: string, name: string, needsApproval: boolean): void {
    const called = { server_label, name, arguments: '' };
    if (needsApproval) {
      this.#options.begin({ type: 'mcp_approval_request', id: this.#options.newId('mcpr'), ...called });
      return;
    }
    this.#beginCall({ ...called, approval_request_id: null });
  }

  /** Begins a call that the client has approved, whose arguments are known. */
  approved(call: Pick<McpCallItem, 'server_label' | 'name' | 'arguments' | 'approval_request_id'>): void {
    const item = this.#beginCall({ ...call, arguments: '' });
    this.addArguments(item, call.arguments);
  }

  addArguments(item: McpCallItem | McpApprovalItem, delta: string): void {
    item.arguments += delta;
    if (item.type === 'mcp_call') this.#tell('response.mcp_call_arguments.delta', item, { delta });
  }

  /** Ends what the model writes of an item. @returns false where nothing is left of it: a call that was cut off is not asked about */
  close(item: McpListItem | McpCallItem | McpApprovalItem, status: 'completed' | 'incomplete'): boolean {
    if (item.type === 'mcp_list_tools') return true;
    if (item.type === 'mcp_approval_request') {
      if (status === 'incomplete') return false;
      const { output_index } = this.#options.place(item);
      this.#options.tell('response.output_item.added', { output_index, item });
      this.#done(item);
      return true;
    }
    this.#tell('response.mcp_call_arguments.done', item, { arguments: item.arguments });
    if (status === 'completed') this.#waiting.push(item);
    else this.#cut(item);
    return true;
  }

  /** Takes the calls that are to be run. */
  take(): McpCallItem[] {
    const taken = this.#waiting;
    this.#waiting = [];
    for (const item of taken) {
      item.status = 'calling';
      this.#running.add(item);
    }
    return taken;
  }

  outcome(item: McpCallItem, { text, isError }: CallOutcome): void {
    this.#running.delete(item);
    item.status = isError ? 'failed' : 'completed';
    if (isError) item.error = text;
    else item.output = text;
    this.#tell(`response.mcp_call.${item.status}`, item);
    this.#done(item);
  }

  /** Ends the calls that have no result, since nothing more comes. */
  breakOff(): void {
    this.take();
    for (const item of this.#running) this.#cut(item);
    this.#running.clear();
  }

  #beginCall(
    call: Pick<McpCallItem, 'server_label' | 'name' | 'arguments' | 'approval_request_id'>,
  ): McpCallItem {
    const item: McpCallItem = {
      ...{ type: 'mcp_call', id: this.#options.newId('mcp'), status: 'in_progress' },
      ...{ ...call, output: null, error: null },
    };
    this.#options.begin(item);
    this.#tell('response.mcp_call.in_progress', item);
    return item;
  }

  #cut(item: McpCallItem): void {
    item.status = 'incomplete';
    this.#done(item);
  }

  #done(item: OutputItem): void {
    const { output_index } = this.#options.place(item);
    this.#options.tell('response.output_item.done', { output_index, item: itemJson(item) });
  }

  #tell(type: string, item: OutputItem, fields: object = {}): void {
    this.#options.tell(type, { ...this.#options.place(item), ...fields });
  }
}

function listed({ name, description, inputSchema, annotations }: ServedTool) {
  return { name, description: description ?? null, input_schema: inputSchema, annotations };
}
