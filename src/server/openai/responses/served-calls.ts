import type { KeptItem } from './response-store.js';
import { modelName } from './tool-set.js';

type Item<Type extends KeptItem['type']> = Extract<KeptItem, { type: Type }>;
type AskedCall = Item<'mcp_approval_request'>;
type McpItem = AskedCall | Item<'mcp_call' | 'mcp_approval_response' | 'mcp_list_tools'>;

/** What a model reads in place of a result. */
const NO_RESULT = 'The call was cut off before it had a result.';
const REFUSED = 'The user did not approve this call, so it was not made.';

/** Reads the items of calls that run here, for a chat template: each call is followed by its result. */
export class ServedCalls {
  /** Calls that the client was asked about. */
  readonly #asked = new Map<string, AskedCall>();

  /** The call of an item, with its result; null: none. */
  read(item: McpItem) {
    switch (item.type) {
      case 'mcp_call':
        return { call: callOf(item), result: item.error ?? item.output ?? NO_RESULT };
      case 'mcp_approval_request':
        this.#asked.set(item.id ?? '', item);
        return null;
      case 'mcp_approval_response': {
        const asked = item.approve ? undefined : this.#asked.get(item.approval_request_id);
        if (asked === undefined) return null;
        const why = item.reason === undefined ? '' : ` The reason: ${item.reason}`;
        return { call: callOf(asked), result: REFUSED + why };
      }
      case 'mcp_list_tools':
        return null;
    }
  }
}

function callOf({ id, name, server_label: label, arguments: args }: AskedCall | Item<'mcp_call'>) {
  const called = { name: modelName(name, label), arguments: args };
  return { id: callId(id), type: 'function', function: called };
}

/** An id of nine letters and digits, which the templates of all models take, out of that of an item. */
function callId(id: string | undefined): string {
  const digits = (id ?? '').replace(/^[a-z]+_/, '').replaceAll(/[^a-zA-Z0-9]/g, '');
  return digits.slice(0, 9).padEnd(9, '0');
}
